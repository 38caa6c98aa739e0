// cuda_bias.c — Launches of bias.cu.
#include "kernel/nn/cuda_bias.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(bias);

weir_status_t* weir_cuda_bias_find(weir_device_t* device, weir_dtype_t dtype, bool is_relu,
                                   weir_cuda_function_t* out_function) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "#define T %s\n#define RELU %d\n", weir_cuda_type_name(dtype), is_relu);
  return weir_cuda_build(device, &text, weir_cuda_source_bias, "bias_add", out_function);
}

weir_status_t* weir_cuda_bias_add(weir_device_t* device, weir_cuda_function_t function,
                                  weir_dtype_t dtype, const weir_bias_t* shape, const void* x,
                                  const void* bias, void* y) {
  int64_t n = shape->outer * shape->channels * shape->inner;
  if (n == 0) return NULL;
  int64_t width = 16 / (int64_t)weir_dtype_size(dtype);
  bool is_aligned = (((uintptr_t)x | (uintptr_t)bias | (uintptr_t)y) & 15) == 0;
  int is_packed = is_aligned && (shape->inner == 1 ? shape->channels : shape->inner) % width == 0;
  int64_t channels = shape->channels, inner = shape->inner;
  weir_cuda_size_t size = weir_cuda_size_for(device, is_packed ? n / width : n);
  return weir_cuda_launch(device, function, &size,
                          WEIR_CUDA_ARGS(&x, &bias, &y, &n, &channels, &inner, &is_packed));
}
