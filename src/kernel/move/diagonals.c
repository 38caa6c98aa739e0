// diagonals.c — Launches of diagonals.cu.
#include "kernel/move/diagonals.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(diagonals);

static weir_status_t* find(const weir_kernel_init_t* init, const char* name, void* state) {
  size_t size = weir_dtype_size(weir_dtype_base(init->node->output_types[0]));
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "typedef %s E;\n", weir_cuda_bytes_name(size));
  return weir_cuda_build(init->device, &text, weir_cuda_source_diagonals, name, state);
}

weir_status_t* weir_gpu_put_diagonals_init(const weir_kernel_init_t* init, void* state) {
  return find(init, "put_diagonals", state);
}
weir_status_t* weir_gpu_take_diagonals_init(const weir_kernel_init_t* init, void* state) {
  return find(init, "take_diagonals", state);
}
weir_status_t* weir_gpu_keep_band_init(const weir_kernel_init_t* init, void* state) {
  return find(init, "keep_band", state);
}

static weir_status_t* launch(const weir_kernel_ctx_t* ctx, int64_t count, void** args) {
  if (count == 0) return NULL;
  weir_cuda_size_t grid = weir_cuda_size_for(ctx->device, count);
  return weir_cuda_launch(ctx->device, *(const weir_cuda_function_t*)ctx->state, &grid, args);
}

// A copy of the element, as large and aligned as any is. NULL: zero.
typedef struct element_t {
  _Alignas(16) char bytes[16];
} element_t;
static element_t element_at(const void* data, const weir_tensor_t* like) {
  element_t element = {0};
  if (data) memcpy(element.bytes, data, weir_dtype_size(weir_tensor_type(like)));
  return element;
}

weir_status_t* weir_gpu_put_diagonals(const weir_kernel_ctx_t* ctx, weir_diagonals_t diagonals,
                                      const weir_tensor_t* packed, const void* background,
                                      const void* padding, const weir_tensor_t* y) {
  const void* from = packed->data;
  void* to = y->data;
  int64_t count = y->count;
  element_t value = element_at(padding, y);
  return launch(ctx, count, WEIR_CUDA_ARGS(&from, &background, &to, &diagonals, &count, &value));
}

weir_status_t* weir_gpu_take_diagonals(const weir_kernel_ctx_t* ctx, weir_diagonals_t diagonals,
                                       const weir_tensor_t* x, const void* padding,
                                       const weir_tensor_t* y) {
  const void* from = x->data;
  void* to = y->data;
  int64_t count = y->count;
  element_t value = element_at(padding, y);
  return launch(ctx, count, WEIR_CUDA_ARGS(&from, &to, &diagonals, &count, &value));
}

weir_status_t* weir_gpu_keep_band(const weir_kernel_ctx_t* ctx, weir_diagonals_t diagonals,
                                  const void* x, const weir_tensor_t* y) {
  void* to = y->data;
  int64_t count = y->count;
  return launch(ctx, count, WEIR_CUDA_ARGS(&x, &to, &diagonals, &count));
}
