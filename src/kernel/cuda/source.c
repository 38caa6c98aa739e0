// source.c — Putting CUDA sources together.
#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(prelude);

const char* weir_cuda_type_name(weir_dtype_t dtype) {
  static const char* const names[WEIR_DTYPE_COUNT] = {
      [WEIR_DTYPE_FLOAT] = "float",
      [WEIR_DTYPE_DOUBLE] = "double",
      [WEIR_DTYPE_HALF] = "half_t",
      [WEIR_DTYPE_BFLOAT16] = "bfloat16_t",
      [WEIR_DTYPE_INT8] = "int8_t",
      [WEIR_DTYPE_INT16] = "int16_t",
      [WEIR_DTYPE_INT32] = "int32_t",
      [WEIR_DTYPE_INT64] = "int64_t",
      [WEIR_DTYPE_UINT8] = "uint8_t",
      [WEIR_DTYPE_UINT16] = "uint16_t",
      [WEIR_DTYPE_UINT32] = "uint32_t",
      [WEIR_DTYPE_UINT64] = "uint64_t",
      [WEIR_DTYPE_BOOL] = "bool",
      [WEIR_DTYPE_COMPLEX64] = "complex_t<float>",
      [WEIR_DTYPE_COMPLEX128] = "complex_t<double>"};
  return dtype < WEIR_DTYPE_COUNT ? names[dtype] : NULL;
}

const char* weir_cuda_bytes_name(size_t size) {
  switch (size) {
    case 1: return "uint8_t";
    case 2: return "uint16_t";
    case 4: return "uint32_t";
    case 8: return "uint64_t";
    case 16: return "pack_t<uint32_t, 4>";
    default: return NULL;
  }
}

weir_status_t* weir_cuda_build(weir_device_t* device, weir_strbuf_t* take_definitions,
                               const char* text, const char* name,
                               weir_cuda_function_t* out_function) {
  weir_strbuf_t source = {0};
  weir_status_t* status = weir_strbuf_finish(take_definitions);
  weir_strbuf_printf(&source, "%s\n%s\n%s", weir_cuda_source_prelude,
                     take_definitions->data ? take_definitions->data : "", text);
  if (!status) status = weir_strbuf_finish(&source);
  if (!status) status = weir_cuda_function(device, source.data, name, out_function);
  weir_strbuf_free(&source);
  weir_strbuf_free(take_definitions);
  return status;
}

weir_cuda_divisor_t weir_cuda_divisor(int64_t size) {
  uint32_t d = (uint32_t)size, shift = 0;
  while (shift < 32 && (UINT64_C(1) << shift) < d) ++shift;
  uint64_t multiplier = (UINT64_C(1) << 32) * ((UINT64_C(1) << shift) - d) / d + 1;
  return (weir_cuda_divisor_t){.size = d, .multiplier = (uint32_t)multiplier, .shift = shift};
}
