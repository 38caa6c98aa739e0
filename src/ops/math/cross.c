// cross.c — Cross: the vector product of pairs of 3-vectors.
#include "kernel/cuda/source.h"
#include "ops/math/common.h"

static weir_status_t* check(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const weir_tensor_t* b = weir_kernel_input(ctx, 1);
  if (!weir_tensor_same_shape(a, b)) {
    char x[WEIR_SHAPE_TEXT_SIZE];
    char y[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Both inputs must be of same shape: %s vs. %s",
                       weir_tensor_shape_text(a, x), weir_tensor_shape_text(b, y));
  }
  if (a->rank < 1) return WEIR_STATUS(INVALID_ARGUMENT, "Input must be at least 1D");
  if (a->dims[a->rank - 1] != 3) {
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "Cross-products are only defined for 3-element vectors.");
  }
  return NULL;
}

// product[k] = a[i] b[j] - a[j] b[i] for (k, i, j) in cyclic order, over vectors laid out one after
// another.
static weir_status_t* cross_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  weir_tensor_t* c = NULL;
  WEIR_TRY(check(ctx));
  WEIR_TRY(weir_kernel_output(ctx, 0, a->rank, a->dims, &c));
  weir_dtype_t dtype = weir_tensor_type(a);
  size_t size = weir_dtype_size(dtype);
  weir_binary_fn_t mul = weir_binary_find(WEIR_BINARY_MUL, dtype);
  weir_binary_fn_t sub = weir_binary_find(WEIR_BINARY_SUB, dtype);
  const char* x = a->data;
  const char* y = weir_kernel_input(ctx, 1)->data;
  char* z = c->data;
  for (int64_t v = 0; v < c->count / 3; ++v, x += 3 * size, y += 3 * size, z += 3 * size) {
    for (size_t k = 0; k < 3; ++k) {
      size_t i = (k + 1) % 3;
      size_t j = (k + 2) % 3;
      char left[16];
      char right[16];
      mul(x + i * size, y + j * size, left, 1, WEIR_SPAN_BOTH);
      mul(x + j * size, y + i * size, right, 1, WEIR_SPAN_BOTH);
      sub(left, right, z + k * size, 1, WEIR_SPAN_BOTH);
    }
  }
  return NULL;
}

WEIR_CUDA_SOURCE(cross);
static weir_status_t* cross_gpu_init(const weir_kernel_init_t* init, void* state) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "#define T %s\n",
                     weir_cuda_type_name(weir_dtype_base(init->node->output_types[0])));
  return weir_cuda_build(init->device, &text, weir_cuda_source_cross, "cross_product", state);
}

static weir_status_t* cross_gpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const void *x = a->data, *y = weir_kernel_input(ctx, 1)->data;
  weir_tensor_t* c = NULL;
  WEIR_TRY(check(ctx));
  WEIR_TRY(weir_kernel_output(ctx, 0, a->rank, a->dims, &c));
  int64_t vectors = c->count / 3;
  if (vectors == 0) return NULL;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, vectors);
  return weir_cuda_launch(ctx->device, *(const weir_cuda_function_t*)ctx->state, &size,
                          WEIR_CUDA_ARGS(&x, &y, &c->data, &vectors));
}

static weir_status_t* cross_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = weir_shape_input(ctx, 0);
  const weir_shape_t* b = weir_shape_input(ctx, 1);
  WEIR_TRY(weir_shape_at_least(ctx, a, 1));
  WEIR_TRY(weir_shape_at_least(ctx, b, 1));
  const weir_shape_t* both;
  WEIR_TRY(weir_shape_join(ctx, a, b, &both));
  int64_t last;
  if (both->rank > 0) WEIR_TRY(weir_dim_join(ctx, both->dims[both->rank - 1], 3, &last));
  return weir_shape_set(ctx, 0, both);
}

static weir_status_t* cross_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 0, node2(g, "Cross", weir_grad_input(g, 1), dy)));
  return weir_grad_set(g, 1, node2(g, "Cross", dy, weir_grad_input(g, 0)));
}

const weir_op_module_t weir_ops_math_cross = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Cross",
         .attrs = "T: realnumbertype",
         .inputs = "a: T; b: T",
         .outputs = "product: T",
         .summary = "The vector product of 3-vectors",
         .infer_shape = cross_shape,
         .build_grad = cross_grad,
         .kernels = (const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = cross_cpu},
                                                {WEIR_DEVICE_GPU, .compute = cross_gpu,
                                                 .init = cross_gpu_init,
                                                 .state_size = sizeof(weir_cuda_function_t)},
                                                {0}}},
        {0}}};
