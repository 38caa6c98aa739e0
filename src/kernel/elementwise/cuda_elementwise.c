// cuda_elementwise.c — Formulas as text, compiled for the type at hand, and their launches.
#include "kernel/elementwise/cuda_elementwise.h"

#include "kernel/cuda/source.h"
#include "kernel/elementwise/cuda_formula.h"
#include "kernel/elementwise/cwise.h"

WEIR_CUDA_SOURCE(elementwise);

weir_status_t* weir_cuda_formula_find(weir_device_t* device, bool is_unary, const char* formula,
                                      weir_dtype_t dtype, weir_dtype_t result,
                                      weir_cuda_elementwise_t* out) {
  const char* names[] = {is_unary ? "unary" : "binary", "broadcast"};
  weir_cuda_function_t* functions[] = {&out->function, &out->broadcast};
  if (!formula || !weir_cuda_type_name(dtype) || !weir_cuda_type_name(result))
    return WEIR_STATUS(UNIMPLEMENTED, "type %s has no GPU kernel", weir_dtype_name(dtype));
  for (int i = 0; i < (is_unary ? 1 : 2); ++i) {
    weir_strbuf_t text = {0};
    weir_strbuf_printf(&text, "#define T %s\n#define OUT %s\n#define R T\n#define U %s\n",
                       weir_cuda_type_name(dtype), weir_cuda_type_name(result),
                       weir_cuda_wrapping_name(dtype));
    weir_strbuf_printf(&text, "#define UNARY %d\n#define FORMULA %s\n", is_unary, formula);
    weir_cuda_put_words(&text);
    WEIR_TRY(weir_cuda_build(device, &text, weir_cuda_source_elementwise, names[i], functions[i]));
  }
  return NULL;
}

// ---- init ----

weir_status_t* weir_cuda_unary_init(const weir_kernel_init_t* init, void* state,
                                    weir_unary_op_t op) {
  weir_dtype_t dtype = weir_dtype_base(init->node->input_types[0]);
  return weir_cuda_formula_find(init->device, true, weir_cuda_unary_formula(op, dtype), dtype,
                                init->node->output_types[0], state);
}

weir_status_t* weir_cuda_binary_find(weir_device_t* device, weir_binary_op_t op, weir_dtype_t dtype,
                                     weir_dtype_t result, weir_cuda_elementwise_t* out) {
  return weir_cuda_formula_find(device, false, weir_cuda_binary_formula(op, dtype), dtype, result,
                                out);
}

weir_status_t* weir_cuda_binary_init(const weir_kernel_init_t* init, void* state,
                                     weir_binary_op_t op) {
  return weir_cuda_binary_find(init->device, op, weir_dtype_base(init->node->input_types[0]),
                               init->node->output_types[0], state);
}

// ---- launches ----

static bool is_aligned(const void* pointer) { return ((uintptr_t)pointer & 15) == 0; }

weir_status_t* weir_cuda_unary_compute(weir_kernel_ctx_t* ctx) {
  const weir_cuda_elementwise_t* s = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const void* from = x->data;
  int64_t n = x->count;
  weir_tensor_t* y = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &y));
  if (n == 0) return NULL;
  void* to = y->data;
  int aligned = is_aligned(from) && is_aligned(to);
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, n / 4 + 1);
  return weir_cuda_launch(ctx->device, s->function, &size,
                          WEIR_CUDA_ARGS(&from, &to, &n, &aligned));
}

weir_status_t* weir_cuda_binary_run(weir_device_t* device, const weir_cuda_elementwise_t* functions,
                                    const void* x, const void* y, void* z, int64_t n,
                                    weir_span_t span) {
  if (n == 0) return NULL;
  int x_step = span != WEIR_SPAN_Y, y_step = span != WEIR_SPAN_X;
  int aligned = is_aligned(z) && (!x_step || is_aligned(x)) && (!y_step || is_aligned(y));
  weir_cuda_size_t size = weir_cuda_size_for(device, n / 4 + 1);
  return weir_cuda_launch(device, functions->function, &size,
                          WEIR_CUDA_ARGS(&x, &y, &z, &n, &x_step, &y_step, &aligned));
}

static weir_status_t* compute_run(weir_kernel_ctx_t* ctx, int like, int64_t n, weir_span_t span) {
  const weir_tensor_t* shape = weir_kernel_input(ctx, like);
  const void* x = weir_kernel_input(ctx, 0)->data;
  const void* y = weir_kernel_input(ctx, 1)->data;
  int from = like;
  if (span == WEIR_SPAN_BOTH && !weir_tensor_is_sole(ctx->inputs[like].tensor)) from = 1 - like;
  weir_tensor_t* z = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, from, 0, shape->rank, shape->dims, &z));
  return weir_cuda_binary_run(ctx->device, ctx->state, x, y, z->data, n, span);
}

// As the kernel has it.
typedef struct broadcast_t {
  int64_t dims[WEIR_BROADCAST_MAX], x_strides[WEIR_BROADCAST_MAX], y_strides[WEIR_BROADCAST_MAX];
  int rank;
} broadcast_t;

static weir_status_t* compute_broadcast(weir_kernel_ctx_t* ctx) {
  const weir_cuda_elementwise_t* s = ctx->state;
  const void* x = weir_kernel_input(ctx, 0)->data;
  const void* y = weir_kernel_input(ctx, 1)->data;
  weir_broadcast_t plan;
  WEIR_TRY(weir_kernel_broadcast(ctx, 0, 1, &plan));
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, plan.out_rank, plan.out_dims, &out));
  int64_t n = plan.count;
  if (n == 0) return NULL;
  broadcast_t passed = {.rank = plan.rank};
  for (int i = 0; i < plan.rank; ++i) {
    passed.dims[i] = plan.dims[i];
    passed.x_strides[i] = plan.x_strides[i];
    passed.y_strides[i] = plan.y_strides[i];
  }
  void* z = out->data;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, n);
  return weir_cuda_launch(ctx->device, s->broadcast, &size,
                          WEIR_CUDA_ARGS(&x, &y, &z, &n, &passed));
}

weir_status_t* weir_cuda_binary_compute(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* y = weir_kernel_input(ctx, 1);
  if (weir_tensor_same_shape(x, y)) return compute_run(ctx, 0, x->count, WEIR_SPAN_BOTH);
  if (y->rank == 0) return compute_run(ctx, 0, x->count, WEIR_SPAN_X);
  if (x->rank == 0) return compute_run(ctx, 1, y->count, WEIR_SPAN_Y);
  return compute_broadcast(ctx);
}

weir_status_t* weir_cuda_binary_flat_compute(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* y = weir_kernel_input(ctx, 1);
  if (x->count != y->count)
    return weir_cwise_flat_error(weir_shape_view_of(x), weir_shape_view_of(y));
  return compute_run(ctx, 0, x->count, WEIR_SPAN_BOTH);
}
