// cumsum.c — Cumsum, Cumprod, CumulativeLogsumexp: running sums and products along an axis.
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "kernel/reduce/cuda_scan.h"
#include "ops/math/common.h"
#include "tensor/cast.h"

typedef struct scan_state_t {
  weir_binary_op_t op;
  bool exclusive;
  bool reverse;
  bool is_gpu;
  weir_cuda_scan_t gpu;  // of a GPU
} scan_state_t;

static weir_status_t* scan_init(const weir_kernel_init_t* init, scan_state_t* s,
                                weir_binary_op_t op) {
  s->op = op;
  s->exclusive = weir_attrs_bool(init->node->attrs, "exclusive");
  s->reverse = weir_attrs_bool(init->node->attrs, "reverse");
  s->is_gpu = weir_device_is_cuda(init->device);
  if (!s->is_gpu) return NULL;
  return weir_cuda_scan_find(init->device, op, weir_dtype_base(init->node->input_types[0]),
                             &s->gpu);
}
static weir_status_t* cumsum_init(const weir_kernel_init_t* init, void* state) {
  return scan_init(init, state, WEIR_BINARY_ADD);
}
static weir_status_t* cumprod_init(const weir_kernel_init_t* init, void* state) {
  return scan_init(init, state, WEIR_BINARY_MUL);
}
static weir_status_t* logsumexp_init(const weir_kernel_init_t* init, void* state) {
  return scan_init(init, state, WEIR_BINARY_LOG_ADD_EXP);
}

typedef struct scan_job_t {
  const scan_state_t* state;
  weir_binary_fn_t fn;
  const char* x;
  char* y;
  size_t size;
  int64_t length;
  int64_t inner;
  char identity[16];  // one element
} scan_job_t;

// One slab [length, inner]: row by row, each from the row before.
static void scan_slab(const scan_job_t* job, const char* x, char* y) {
  size_t row = (size_t)job->inner * job->size;
  for (int64_t i = 0; i < job->length; ++i) {
    int64_t at = job->state->reverse ? job->length - 1 - i : i;
    int64_t before = job->state->reverse ? at + 1 : at - 1;
    char* out = y + (size_t)at * row;
    if (i == 0 && job->state->exclusive) {
      for (int64_t j = 0; j < job->inner; ++j)
        memcpy(out + (size_t)j * job->size, job->identity, job->size);
    } else if (i == 0) {
      memcpy(out, x + (size_t)at * row, row);
    } else {
      int64_t source = job->state->exclusive ? before : at;
      job->fn(y + (size_t)before * row, x + (size_t)source * row, out, job->inner, WEIR_SPAN_BOTH);
    }
  }
}

static void scan_range(void* arg, int64_t begin, int64_t end) {
  const scan_job_t* job = arg;
  size_t slab = (size_t)(job->length * job->inner) * job->size;
  for (int64_t i = begin; i < end; ++i)
    scan_slab(job, job->x + (size_t)i * slab, job->y + (size_t)i * slab);
}

static weir_status_t* read_axis(const weir_kernel_ctx_t* ctx, int64_t* out_axis) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* axis_tensor = weir_kernel_input(ctx, 1);
  if (axis_tensor->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "ScanOp: axis must be a scalar, not %s",
                       weir_tensor_shape_text(axis_tensor, text));
  }
  int64_t axis = weir_tensor_int_at(axis_tensor, 0);
  if (axis < -(int64_t)x->rank || axis >= x->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "ScanOp: Expected scan axis in the range [%d, %d), but got %" PRId64,
                       -x->rank, x->rank, axis < 0 ? axis + x->rank : axis);  // its words
  }
  *out_axis = axis < 0 ? axis + x->rank : axis;
  return NULL;
}

static weir_status_t* scan_on_cpu(weir_kernel_ctx_t* ctx, const weir_scan_shape_t* shape,
                                  const weir_tensor_t* x, weir_tensor_t* y) {
  const scan_state_t* s = ctx->state;
  scan_job_t job = {.state = s,
                    .fn = weir_binary_find(s->op, weir_tensor_type(x)),
                    .x = x->data,
                    .y = y->data,
                    .size = weir_dtype_size(weir_tensor_type(x)),
                    .length = shape->length,
                    .inner = shape->inner};
  double identity = s->op == WEIR_BINARY_MUL ? 1 : s->op == WEIR_BINARY_ADD ? 0 : -INFINITY;
  WEIR_TRY(weir_cast_elements(weir_tensor_type(x), job.identity, WEIR_DTYPE_DOUBLE, &identity, 1));
  weir_pool_for(weir_kernel_pool(ctx), shape->outer, 2.0 * (double)(job.length * job.inner),
                scan_range, &job);
  return NULL;
}

static weir_status_t* scan(weir_kernel_ctx_t* ctx) {
  const scan_state_t* s = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  int64_t axis = 0;
  WEIR_TRY(read_axis(ctx, &axis));
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, x->dims, &y));
  if (y->count == 0) return NULL;
  weir_scan_shape_t shape = {
      .length = x->dims[axis], .inner = 1, .is_exclusive = s->exclusive, .is_reverse = s->reverse};
  for (int i = (int)axis + 1; i < x->rank; ++i) shape.inner *= x->dims[i];
  shape.outer = y->count / (shape.length * shape.inner);
  if (!s->is_gpu) return scan_on_cpu(ctx, &shape, x, y);
  return weir_cuda_scan(ctx, &s->gpu, &shape, x->data, y->data);
}

static weir_edge_t scan_node(weir_grad_ctx_t* g, const char* op, weir_edge_t x, bool flip) {
  bool exclusive = weir_attrs_bool(weir_grad_attrs(g), "exclusive");
  bool reverse = weir_attrs_bool(weir_grad_attrs(g), "reverse") != flip;
  return weir_grad_node_with(
      g, op, WEIR_EDGES(x, weir_grad_input(g, 1)),
      WEIR_ATTRS(weir_attr_bool("exclusive", exclusive), weir_attr_bool("reverse", reverse)));
}

static weir_status_t* cumsum_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, scan_node(g, "Cumsum", weir_grad_dy(g, 0), true));
}

static weir_status_t* cumprod_grad(weir_grad_ctx_t* g) {
  weir_edge_t sum =
      scan_node(g, "Cumsum", weir_grad_mul(g, weir_grad_output(g, 0), weir_grad_dy(g, 0)), true);
  return weir_grad_set(g, 0, node2(g, "DivNoNan", sum, weir_grad_input(g, 0)));
}

// The lowest number of |dtype|.
static double lowest(weir_dtype_t dtype) {
  switch (dtype) {
    case WEIR_DTYPE_HALF: return -65504;
    case WEIR_DTYPE_BFLOAT16: return -0x1.fep127;
    case WEIR_DTYPE_FLOAT: return -(double)FLT_MAX;
    default: return -DBL_MAX;
  }
}

// exp(the running log-sum of log |dy| - y from the other end + x), of the gradients that are
// positive
// (|sign| 1) or negative.
static weir_edge_t logsumexp_part(weir_grad_ctx_t* g, bool is_positive) {
  weir_edge_t dy = weir_grad_dy(g, 0), zero = weir_grad_scalar(g, dy, 0);
  weir_edge_t has_sign = node2(g, is_positive ? "Greater" : "Less", dy, zero);
  weir_edge_t logarithm = node1(g, "Log", is_positive ? dy : weir_grad_neg(g, dy));
  weir_edge_t least = weir_grad_scalar(g, dy, lowest(weir_grad_dtype(g, dy)));
  logarithm = node3(g, "SelectV2", has_sign, logarithm, least);
  weir_edge_t sum =
      scan_node(g, "CumulativeLogsumexp", node2(g, "Sub", logarithm, weir_grad_output(g, 0)), true);
  return node1(g, "Exp", node2(g, "AddV2", sum, weir_grad_input(g, 0)));
}

static weir_status_t* logsumexp_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, node2(g, "Sub", logsumexp_part(g, true), logsumexp_part(g, false)));
}

#define SCAN_ROW(device, types_, init_fn)                                                          \
  {                                                                                                \
    device, .types = types_, .compute = scan, .init = init_fn, .state_size = sizeof(scan_state_t), \
            .host_inputs = "axis"                                                                  \
  }
#define GPU_TYPES "T: bfloat16, half, float, double"
#define SCAN_OP(op_name, text, grad, init_fn)                                                   \
  {                                                                                             \
    .name = op_name,                                                                            \
    .attrs =                                                                                    \
        "exclusive: bool = false; reverse: bool = false; T: numbertype; Tidx: {int32,int64} = " \
        "DT_INT32",                                                                             \
    .inputs = "x: T; axis: Tidx", .outputs = "out: T", .summary = text,                         \
    .infer_shape = weir_shape_fn_unchanged, .build_grad = grad,                                 \
    .kernels = (const weir_kernel_def_t[]) {                                                    \
      SCAN_ROW(WEIR_DEVICE_CPU, CPU_NUMBER, init_fn),                                           \
          SCAN_ROW(WEIR_DEVICE_GPU, GPU_TYPES, init_fn), {                                      \
        0                                                                                       \
      }                                                                                         \
    }                                                                                           \
  }

const weir_op_module_t weir_ops_math_cumsum = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        SCAN_OP("Cumsum", "Running sums along an axis", cumsum_grad, cumsum_init),
        SCAN_OP("Cumprod", "Running products along an axis", cumprod_grad, cumprod_init),
        {.name = "CumulativeLogsumexp",
         .attrs = "exclusive: bool = false; reverse: bool = false; T: " FLOATING_TYPES
                  "; Tidx: {int32,int64} = DT_INT32",
         .inputs = "x: T; axis: Tidx",
         .outputs = "out: T",
         .summary = "Running logarithms of sums of exponentials along an axis",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = logsumexp_grad,
         .kernels =
             (const weir_kernel_def_t[]){SCAN_ROW(WEIR_DEVICE_CPU, NULL, logsumexp_init),
                                         SCAN_ROW(WEIR_DEVICE_GPU, GPU_TYPES, logsumexp_init),
                                         {0}}},
        {0}}};
