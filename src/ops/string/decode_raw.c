// decode_raw.c — DecodeRaw: reads the bytes of strings as numbers.
#include "op/kernel.h"
#include "op/shape_ctx.h"

static weir_status_t* raw_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* input = weir_shape_input(ctx, 0);
  if (input->rank < 0) return NULL;
  if (input->rank >= WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "DecodeRaw needs an input of rank at most %d",
                       WEIR_MAX_RANK - 1);
  }
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < input->rank; ++i) dims[i] = input->dims[i];
  dims[input->rank] = -1;
  return weir_shape_set_dims(ctx, 0, input->rank + 1, dims);
}

// The size that all strings share; 0 when there are none.
static weir_status_t* common_size(const weir_tensor_t* input, weir_dtype_t dtype,
                                  size_t* out_size) {
  const weir_string_t* strings = input->data;
  const size_t element = weir_dtype_size(dtype);
  size_t size = 0;
  for (int64_t i = 0; i < input->count; ++i) {
    size_t own = weir_string_view(&strings[i]).size;
    if (i == 0) size = own;
    if (own == size) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "DecodeRaw requires input strings to all be the same size, but element "
                       "%lld has size %zu != %zu",
                       (long long)i, size, own);
  }
  if (size % element != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input to DecodeRaw has length %zu that is not a multiple of %zu, the size "
                       "of %s",
                       size, element, weir_dtype_name(dtype));
  }
  *out_size = size;
  return NULL;
}

static void copy_reversed(char* dst, const char* src, size_t size, size_t unit) {
  for (size_t i = 0; i < size; i += unit) {
    for (size_t j = 0; j < unit; ++j) dst[i + j] = src[i + unit - 1 - j];
  }
}

static bool host_is_little_endian(void) {
  const uint16_t one = 1;
  uint8_t first;
  memcpy(&first, &one, 1);
  return first == 1;
}

static weir_status_t* raw_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_attrs_type(weir_kernel_attrs(ctx), "out_type");
  const bool is_little = weir_attrs_bool(weir_kernel_attrs(ctx), "little_endian");
  weir_tensor_t* out = NULL;
  size_t size = 0;
  int64_t dims[WEIR_MAX_RANK];
  if (input->rank >= WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "DecodeRaw needs an input of rank at most %d",
                       WEIR_MAX_RANK - 1);
  }
  WEIR_TRY(common_size(input, dtype, &size));
  for (int i = 0; i < input->rank; ++i) dims[i] = input->dims[i];
  dims[input->rank] = (int64_t)(size / weir_dtype_size(dtype));
  WEIR_TRY(weir_kernel_output(ctx, 0, input->rank + 1, dims, &out));
  if (size == 0) return NULL;
  // The parts of a complex number each have their own order of bytes.
  const size_t unit = weir_dtype_size(dtype) / (weir_dtype_is_complex(dtype) ? 2 : 1);
  const weir_string_t* strings = input->data;
  for (int64_t i = 0; i < input->count; ++i) {
    char* dst = (char*)out->data + (size_t)i * size;
    const char* src = weir_string_view(&strings[i]).data;
    if (is_little == host_is_little_endian()) {
      memcpy(dst, src, size);
    } else {
      copy_reversed(dst, src, size, unit);
    }
  }
  return NULL;
}

const weir_op_module_t weir_ops_string_decode_raw = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DecodeRaw",
         .attrs = "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, "
                  "complex64, complex128, bool, bfloat16}; little_endian: bool = true",
         .inputs = "bytes: string",
         .outputs = "output: out_type",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Reads the bytes of strings as numbers",
         .infer_shape = raw_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = raw_cpu)},
        {0}}};
