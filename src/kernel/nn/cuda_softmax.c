// cuda_softmax.c — Launches of softmax.cu.
#include "kernel/nn/cuda_softmax.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(softmax);

weir_status_t* weir_cuda_softmax_find(weir_device_t* device, weir_softmax_kind_t kind,
                                      weir_dtype_t dtype, weir_dtype_t label_dtype,
                                      weir_cuda_softmax_t* out) {
  static const char* const kinds[] = {"SOFTMAX", "LOG_SOFTMAX", "DENSE_LOSS", "SPARSE_LOSS"};
  const char* const names[] = {"softmax_short", "softmax_medium", "softmax_long"};
  weir_cuda_function_t* const functions[] = {&out->few, &out->some, &out->many};
  for (int i = 0; i < 3; ++i) {
    weir_strbuf_t text = {0};
    weir_strbuf_printf(&text, "#define T %s\n#define L %s\n#define KIND %s\n",
                       weir_cuda_type_name(dtype), weir_cuda_type_name(label_dtype), kinds[kind]);
    WEIR_TRY(weir_cuda_build(device, &text, weir_cuda_source_softmax, names[i], functions[i]));
  }
  return NULL;
}

weir_status_t* weir_cuda_softmax(weir_device_t* device, const weir_cuda_softmax_t* functions,
                                 const weir_softmax_rows_t* rows) {
  enum { SHORT = 128, MEDIUM = 1024, WARP = 32, BLOCK = 256 };
  if (rows->rows == 0) return NULL;
  weir_softmax_rows_t passed = *rows;
  bool is_long = rows->columns > MEDIUM;
  weir_cuda_size_t size =
      weir_cuda_size_for(device, rows->rows * (is_long ? (int64_t)BLOCK : (int64_t)WARP));
  weir_cuda_function_t function = is_long                  ? functions->many
                                  : rows->columns <= SHORT ? functions->few
                                                           : functions->some;
  return weir_cuda_launch(device, function, &size, WEIR_CUDA_ARGS(&passed));
}
