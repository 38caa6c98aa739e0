// select.c — Select, SelectV2: elements of t where the condition holds, of e elsewhere.
#include "kernel/elementwise/select.h"

#include "kernel/elementwise/cuda_ternary.h"
#include "ops/math/common.h"

// How the three inputs lie over the output: strides in elements, 0 where an input repeats.
typedef struct selection_t {
  const bool* condition;
  const char* t;
  const char* e;
  char* out;
  weir_dtype_t dtype;
  size_t size;
  int rank;
  const int64_t* dims;
  int64_t strides[3][WEIR_MAX_RANK];
} selection_t;

static void fill_strides(int rank, const int64_t* dims, const weir_tensor_t* input,
                         int64_t* strides) {
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    int at = i - (rank - input->rank);
    int64_t dim = at < 0 ? 1 : input->dims[at];
    strides[i] = dim == 1 && dims[i] != 1 ? 0 : stride;
    stride *= dim;
  }
}

// |n| elements of the innermost dimension, the first of them at |at| in the inputs.
static void select_plain(const selection_t* s, const int64_t at[3], int64_t out, int64_t n) {
  int last = s->rank - 1;
  weir_select_run_t run = {.count = n,
                           .condition = s->condition + at[0],
                           .t = s->t + (size_t)at[1] * s->size,
                           .e = s->e + (size_t)at[2] * s->size,
                           .y = s->out + (size_t)out * s->size,
                           .condition_step = last < 0 ? 0 : s->strides[0][last],
                           .t_step = last < 0 ? 0 : s->strides[1][last],
                           .e_step = last < 0 ? 0 : s->strides[2][last]};
  weir_select_run(&run, s->size);
}

// Elements [begin, end) of the output, a run of the innermost dimension at a time.
static void select_range(void* arg, int64_t begin, int64_t end) {
  const selection_t* s = arg;
  int64_t width = s->rank > 0 ? s->dims[s->rank - 1] : 1;
  while (begin < end) {
    int64_t at[3] = {0, 0, 0};
    int64_t rest = begin;
    for (int i = s->rank - 1; i >= 0; --i) {
      int64_t index = rest % s->dims[i];
      rest /= s->dims[i];
      for (int k = 0; k < 3; ++k) at[k] += index * s->strides[k][i];
    }
    int64_t n = WEIR_MIN(width - begin % width, end - begin);
    select_plain(s, at, begin, n);
    begin += n;
  }
}

// Strings, handles and variants, one at a time.
static weir_status_t* select_objects(const selection_t* s, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t at[3] = {0, 0, 0};
    int64_t rest = i;
    for (int d = s->rank - 1; d >= 0; --d) {
      int64_t index = rest % s->dims[d];
      rest /= s->dims[d];
      for (int k = 0; k < 3; ++k) at[k] += index * s->strides[k][d];
    }
    const char* from =
        s->condition[at[0]] ? s->t + (size_t)at[1] * s->size : s->e + (size_t)at[2] * s->size;
    WEIR_TRY(weir_elements_copy(s->dtype, s->out + (size_t)i * s->size, from, 1));
  }
  return NULL;
}

static weir_status_t* select_on_gpu(weir_kernel_ctx_t* ctx, const selection_t* s) {
  weir_ternary_t operands = {.x = s->condition,
                             .a = s->t,
                             .b = s->e,
                             .y = s->out,
                             .rank = s->rank,
                             .dims = s->dims,
                             .strides = {s->strides[0], s->strides[1], s->strides[2]}};
  return weir_cuda_ternary_run(ctx->device, ctx->state, &operands);
}

static weir_status_t* run_selection(weir_kernel_ctx_t* ctx, selection_t* s, int64_t count) {
  if (weir_device_is_cuda(ctx->device)) return select_on_gpu(ctx, s);
  if (!weir_dtype_is_plain(s->dtype)) return select_objects(s, count);
  weir_pool_for(weir_kernel_pool(ctx), count, 1.0, select_range, s);
  return NULL;
}

// An input (t or e) of the output's shape whose memory may be written over; 0 when none.
static int forwardable(const weir_kernel_ctx_t* ctx, int64_t count) {
  for (int i = 1; i <= 2; ++i) {
    if (ctx->inputs[i].tensor->count == count && weir_tensor_is_sole(ctx->inputs[i].tensor))
      return i;
  }
  return 0;
}

static weir_status_t* select_into(weir_kernel_ctx_t* ctx, int rank, const int64_t* dims,
                                  selection_t* s) {
  const weir_tensor_t* t = weir_kernel_input(ctx, 1);
  s->condition = weir_kernel_input(ctx, 0)->data;
  s->t = t->data;
  s->e = weir_kernel_input(ctx, 2)->data;
  s->dtype = weir_tensor_type(t);
  s->size = weir_dtype_size(s->dtype);
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= dims[i];
  int from = weir_dtype_is_plain(s->dtype) ? forwardable(ctx, count) : 0;
  weir_tensor_t* y = NULL;
  if (from) {
    WEIR_TRY(weir_kernel_forward(ctx, from, 0, rank, dims, &y));
  } else {
    WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &y));
  }
  s->out = y->data;
  s->rank = y->rank;
  s->dims = y->dims;
  return run_selection(ctx, s, count);
}

static weir_status_t* shape_error(const char* what, const weir_tensor_t* a,
                                  const weir_tensor_t* b) {
  char x[WEIR_SHAPE_TEXT_SIZE];
  char y[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "%s %s vs. %s", what, weir_tensor_shape_text(a, x),
                     weir_tensor_shape_text(b, y));
}

static weir_status_t* check_all_alike(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* c = weir_kernel_input(ctx, 0);
  for (int i = 1; i <= 2; ++i) {
    const weir_tensor_t* other = weir_kernel_input(ctx, i);
    char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
    if (weir_tensor_same_shape(c, other)) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Inputs to operation %s of type Select must have the same size and shape.  "
                       "Input 0: %s != input %d: %s",
                       ctx->node->name, weir_tensor_shape_text(c, a), i,
                       weir_tensor_shape_text(other, b));
  }
  return NULL;
}

static weir_status_t* check_rows(const weir_tensor_t* c, const weir_tensor_t* t) {
  if (t->rank == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "'then' must be at least a vector, but saw shape: []");
  }
  if (t->dims[0] == c->count) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Number of batches of 'then' must match size of 'cond', but saw: %lld vs. %lld",
      (long long)t->dims[0], (long long)c->count);
}

// The condition has t's shape, is a scalar, or a vector that chooses rows.
static weir_status_t* select_compute(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* c = weir_kernel_input(ctx, 0);
  const weir_tensor_t* t = weir_kernel_input(ctx, 1);
  const weir_tensor_t* e = weir_kernel_input(ctx, 2);
  const bool has_rows = c->rank == 1 && t->rank != 1;
  if (has_rows) WEIR_TRY(check_rows(c, t));
  else if (c->rank > 0) WEIR_TRY(check_all_alike(ctx));
  if (!weir_tensor_same_shape(t, e))
    return shape_error("'then' and 'else' must have the same size. But received:", t, e);
  if (c->rank == 0 && !weir_device_is_cuda(ctx->device)) {
    weir_kernel_pass(ctx, *(const bool*)c->data ? 1 : 2, 0);
    return NULL;
  }
  selection_t s;
  fill_strides(t->rank, t->dims, t, s.strides[1]);
  memcpy(s.strides[2], s.strides[1], sizeof(s.strides[1]));
  if (c->rank > 0 && !has_rows) {
    memcpy(s.strides[0], s.strides[1], sizeof(s.strides[1]));
  } else {
    memset(s.strides[0], 0, sizeof(s.strides[0]));
    if (has_rows) s.strides[0][0] = 1;
  }
  return select_into(ctx, t->rank, t->dims, &s);
}

static weir_status_t* select_v2_compute(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* c = weir_kernel_input(ctx, 0);
  weir_broadcast_t values;
  weir_broadcast_t all;
  if (!weir_broadcast_plan(weir_shape_view_of(weir_kernel_input(ctx, 1)),
                           weir_shape_view_of(weir_kernel_input(ctx, 2)), &values) ||
      !weir_broadcast_plan(weir_shape_view_of(c),
                           (weir_shape_view_t){values.out_rank, values.out_dims}, &all)) {
    return weir_cwise_select_error(weir_shape_view_of(c),
                                   weir_shape_view_of(weir_kernel_input(ctx, 1)),
                                   weir_shape_view_of(weir_kernel_input(ctx, 2)));
  }
  selection_t s;
  for (int k = 0; k < 3; ++k)
    fill_strides(all.out_rank, all.out_dims, weir_kernel_input(ctx, k), s.strides[k]);
  return select_into(ctx, all.out_rank, all.out_dims, &s);
}

static weir_status_t* select_gpu_init(const weir_kernel_init_t* init, void* state) {
  return weir_cuda_select_find(
      init->device, weir_dtype_size(weir_dtype_base(init->node->output_types[0])), state);
}

static weir_status_t* select_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* c = weir_shape_input(ctx, 0);
  const weir_shape_t* out;
  WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, 1), weir_shape_input(ctx, 2), &out));
  if (c->rank < 0 || out->rank < 0 || c->rank == 0) return weir_shape_set(ctx, 0, out);
  if (c->rank == 1 && out->rank != 1) {
    if (out->rank == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be rank 0 but is rank 1");
    int64_t rows;
    WEIR_TRY(weir_dim_join(ctx, c->dims[0], out->dims[0], &rows));
    return weir_shape_set(ctx, 0, out);
  }
  WEIR_TRY(weir_shape_join(ctx, out, c, &out));
  return weir_shape_set(ctx, 0, out);
}

static weir_status_t* select_v2_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* values;
  const weir_shape_t* all;
  WEIR_TRY(weir_shape_broadcast(ctx, weir_shape_input(ctx, 1), weir_shape_input(ctx, 2), &values));
  WEIR_TRY(weir_shape_broadcast(ctx, weir_shape_input(ctx, 0), values, &all));
  return weir_shape_set(ctx, 0, all);
}

static weir_status_t* select_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t c = weir_grad_input(g, 0);
  weir_edge_t zeros = node1(g, "ZerosLike", weir_grad_input(g, 1));
  WEIR_TRY(weir_grad_set(g, 1, node3(g, "Select", c, dy, zeros)));
  return weir_grad_set(g, 2, node3(g, "Select", c, zeros, dy));
}

// Sums |dx| down to the shape of input |i|, which was broadcast to the output's shape.
static weir_edge_t reduce_to_input(weir_grad_ctx_t* g, weir_edge_t dx, int i) {
  weir_edge_t x = weir_grad_input(g, i);
  const weir_shape_t* from = weir_grad_shape(g, weir_grad_output(g, 0));
  const weir_shape_t* to = weir_grad_shape(g, x);
  if (weir_shape_is_full(from) && weir_shape_equal(from, to)) return dx;
  weir_edge_t shape = weir_grad_shape_of(g, x);
  weir_edge_t axes =
      node2(g, "BroadcastGradientArgs", shape, weir_grad_shape_of(g, weir_grad_output(g, 0)));
  weir_edge_t sum = weir_grad_node_with(g, "Sum", WEIR_EDGES(dx, axes),
                                        WEIR_ATTRS(weir_attr_bool("keep_dims", true)));
  return node2(g, "Reshape", sum, shape);
}

static weir_status_t* select_v2_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t c = weir_grad_input(g, 0);
  weir_edge_t zero = weir_grad_scalar(g, dy, 0);
  WEIR_TRY(weir_grad_set(g, 1, reduce_to_input(g, node3(g, "SelectV2", c, dy, zero), 1)));
  return weir_grad_set(g, 2, reduce_to_input(g, node3(g, "SelectV2", c, zero, dy), 2));
}

// A condition that is the same everywhere chooses an input, if that has the output's shape.
static weir_status_t* select_simplify(weir_simplify_ctx_t* ctx) {
  if (weir_simplify_is_all(ctx, 0, 1)) return weir_simplify_to_input(ctx, 1);
  return weir_simplify_is_all(ctx, 0, 0) ? weir_simplify_to_input(ctx, 2) : NULL;
}

#define SELECT_KERNELS(fn)                                                                      \
  (const weir_kernel_def_t[]) {                                                                 \
    {WEIR_DEVICE_CPU, .types = CPU_NUMBER ", bool, string, resource, variant", .compute = fn},  \
        {WEIR_DEVICE_GPU, .types = CPU_NUMBER ", bool", .compute = fn, .init = select_gpu_init, \
         .state_size = sizeof(weir_cuda_ternary_t)},                                            \
    {                                                                                           \
      0                                                                                         \
    }                                                                                           \
  }

const weir_op_module_t weir_ops_math_select = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Select",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type",
         .inputs = "condition: bool; t: T; e: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Elements (or rows) of t where the condition holds, of e elsewhere",
         .infer_shape = select_shape,
         .build_grad = select_grad,
         .simplify = select_simplify,
         .kernels = SELECT_KERNELS(select_compute)},
        {.name = "SelectV2",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type",
         .inputs = "condition: bool; t: T; e: T",
         .outputs = "output: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_SELECT, 0},
         .summary = "Elements of t where the condition holds, of e elsewhere, with broadcasting",
         .infer_shape = select_v2_shape,
         .build_grad = select_v2_grad,
         .simplify = select_simplify,
         .kernels = SELECT_KERNELS(select_v2_compute)},
        {0}}};
