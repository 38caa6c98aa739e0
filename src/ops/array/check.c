// check.c — CheckNumerics, CheckNumericsV2, EnsureShape: pass a tensor on if it is as expected.
#include <math.h>

#include "kernel/cuda/answer.h"
#include "kernel/cuda/source.h"
#include "ops/array/common.h"
#include "tensor/numeric.h"

// ---- CheckNumerics ----

enum { HAS_NEGATIVE_INF = 1, HAS_POSITIVE_INF = 2, HAS_NAN = 4 };

static int classify(double x) {
  if (isfinite(x)) return 0;
  return isnan(x) ? HAS_NAN : x < 0 ? HAS_NEGATIVE_INF : HAS_POSITIVE_INF;
}

static int scan(const weir_tensor_t* t) {
  int found = 0;
  for (int64_t i = 0; i < t->count; ++i) {
    switch (t->dtype) {
      case WEIR_DTYPE_FLOAT: found |= classify((double)((const float*)t->data)[i]); break;
      case WEIR_DTYPE_DOUBLE: found |= classify(((const double*)t->data)[i]); break;
      case WEIR_DTYPE_HALF:
        found |= classify((double)weir_half_to_float(((const weir_half_t*)t->data)[i]));
        break;
      default:
        found |= classify((double)weir_bfloat16_to_float(((const weir_bfloat16_t*)t->data)[i]));
        break;
    }
  }
  return found;
}

// TensorFlow's words: V2 tells the two infinities apart.
static const char* describe(int found, bool is_v2) {
  static const char* const v2[] = {"",    "-Inf",         "+Inf",         "-Inf and +Inf",
                                   "NaN", "-Inf and NaN", "+Inf and NaN", "-Inf, +Inf, and NaN"};
  if (is_v2) return v2[found];
  if (!(found & HAS_NAN)) return "Inf";
  return found == HAS_NAN ? "NaN" : "Inf and NaN";
}

// Passes the tensor on unless something was |found|.
static weir_status_t* judge(weir_kernel_ctx_t* ctx, int found) {
  if (found) {
    bool is_v2 = strcmp(ctx->node->op_name, "CheckNumericsV2") == 0;
    weir_view_t message = weir_attrs_string(weir_kernel_attrs(ctx), "message");
    return WEIR_STATUS(INVALID_ARGUMENT, "%.*s : Tensor had %s values", WEIR_VIEW_ARG(message),
                       describe(found, is_v2));
  }
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

static weir_status_t* check_cpu(weir_kernel_ctx_t* ctx) {
  return judge(ctx, scan(weir_kernel_input(ctx, 0)));
}

WEIR_CUDA_SOURCE(check_numerics);
static weir_status_t* check_gpu_init(const weir_kernel_init_t* init, void* state) {
  weir_strbuf_t text = {0};
  weir_dtype_t dtype = weir_dtype_base(init->node->input_types[0]);
  weir_strbuf_printf(&text, "#define T %s\n", weir_cuda_type_name(dtype));
  return weir_cuda_build(init->device, &text, weir_cuda_source_check_numerics, "check_numerics",
                         state);
}

static weir_status_t* scan_gpu(weir_answer_t* answer) {
  weir_kernel_ctx_t* ctx = answer->ctx;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const void* data = x->data;
  int64_t count = x->count, *found = NULL;
  if (count == 0) return judge(ctx, 0);
  WEIR_TRY(weir_answer_numbers(answer, 1, &found));
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, count);
  return weir_cuda_launch(ctx->device, *(const weir_cuda_function_t*)ctx->state, &size,
                          WEIR_CUDA_ARGS(&data, &count, &found));
}

static weir_status_t* judge_gpu(weir_answer_t* answer, const int64_t* numbers) {
  return judge(answer->ctx, (int)numbers[0]);
}

static void check_gpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  static const weir_answer_fns_t fns = {
      .size = sizeof(weir_answer_t), .before = scan_gpu, .after = judge_gpu};
  weir_answer_run(ctx, &fns, done);
}

#define CHECK_KERNELS                                                       \
  ((const weir_kernel_def_t[]){                                             \
      {WEIR_DEVICE_CPU, .compute = check_cpu},                              \
      {WEIR_DEVICE_GPU, .compute_async = check_gpu, .init = check_gpu_init, \
       .state_size = sizeof(weir_cuda_function_t)},                         \
      {0}})

static weir_status_t* check_grad(weir_grad_ctx_t* g) {
  weir_strbuf_t text = {0};
  weir_view_t message = weir_attrs_string(weir_grad_attrs(g), "message");
  weir_strbuf_puts(&text, "Not a number (NaN) or infinity (Inf) values detected in gradient. ");
  weir_strbuf_append(&text, message.data, message.size);
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status) {
    weir_edge_t dx =
        weir_grad_node_with(g, g->node->op_name, WEIR_EDGES(weir_grad_dy(g, 0)),
                            WEIR_ATTRS(weir_attr_view("message", weir_strbuf_view(&text))));
    status = weir_grad_set(g, 0, dx);
  }
  weir_strbuf_free(&text);
  return status;
}

// ---- EnsureShape ----

static weir_status_t* ensure_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* expected = weir_attrs_shape(weir_shape_attrs(ctx), "shape");
  const weir_shape_t* merged = NULL;
  WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, 0), expected, &merged));
  return weir_shape_set(ctx, 0, merged);
}

static weir_status_t* ensure(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_shape_t* expected = weir_attrs_shape(weir_kernel_attrs(ctx), "shape");
  if (!weir_shape_accepts(expected, x->rank, x->dims)) {
    char actual[WEIR_SHAPE_TEXT_SIZE];
    weir_strbuf_t text = {0};
    weir_shape_append(expected, &text);
    weir_status_t* status = WEIR_STATUS(
        INVALID_ARGUMENT, "Shape of tensor %s %s is not compatible with expected shape %.*s.",
        weir_kernel_input_name(ctx, 0), weir_tensor_shape_text(x, actual),
        WEIR_VIEW_ARG(weir_strbuf_view(&text)));
    weir_strbuf_free(&text);
    return status;
  }
  weir_kernel_pass(ctx, 0, 0);
  return NULL;
}

static weir_status_t* ensure_grad(weir_grad_ctx_t* g) {
  return weir_grad_set_value(g, 0, weir_grad_dy_value(g, 0));
}

const weir_op_module_t weir_ops_array_check = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CheckNumerics",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: {bfloat16, half, float, double}; message: string",
         .inputs = "tensor: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_STATEFUL,
         .summary = "Fails when a tensor holds a NaN or an infinity.",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = check_grad,
         .kernels = CHECK_KERNELS},
        {.name = "CheckNumericsV2",
         .attrs = "T: {bfloat16, half, float, double}; message: string",
         .inputs = "tensor: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_STATEFUL,
         .summary = "Fails when a tensor holds a NaN or an infinity, saying of which sign.",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = check_grad,
         .kernels = CHECK_KERNELS},
        {.name = "EnsureShape",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "shape: shape; T: type",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW | WEIR_OP_CHEAP | WEIR_OP_NO_FOLD,
         .summary = "Fails when a tensor's shape is not compatible with the one expected.",
         .infer_shape = ensure_shape,
         .build_grad = ensure_grad,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = ensure)},
        {0}}};
