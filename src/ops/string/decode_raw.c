// decode_raw.c — DecodeRaw, DecodePaddedRaw: read the bytes of strings as numbers.
#include "op/kernel.h"
#include "op/shape_ctx.h"

static weir_status_t* check_rank(int rank) {
  if (rank < WEIR_MAX_RANK) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "DecodeRaw needs an input of rank at most %d",
                     WEIR_MAX_RANK - 1);
}

static weir_status_t* raw_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* input = weir_shape_input(ctx, 0);
  if (input->rank < 0) return NULL;
  WEIR_TRY(check_rank(input->rank));
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

// The parts of a complex number each have their own order of bytes.
static void copy_numbers(char* dst, const char* src, size_t size, weir_dtype_t dtype,
                         bool is_little) {
  const size_t unit = weir_dtype_size(dtype) / (weir_dtype_is_complex(dtype) ? 2 : 1);
  if (is_little == host_is_little_endian()) {
    memcpy(dst, src, size);
  } else {
    copy_reversed(dst, src, size, unit);
  }
}

static weir_status_t* raw_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_attrs_type(weir_kernel_attrs(ctx), "out_type");
  const bool is_little = weir_attrs_bool(weir_kernel_attrs(ctx), "little_endian");
  weir_tensor_t* out = NULL;
  size_t size = 0;
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(check_rank(input->rank));
  WEIR_TRY(common_size(input, dtype, &size));
  for (int i = 0; i < input->rank; ++i) dims[i] = input->dims[i];
  dims[input->rank] = (int64_t)(size / weir_dtype_size(dtype));
  WEIR_TRY(weir_kernel_output(ctx, 0, input->rank + 1, dims, &out));
  if (size == 0) return NULL;
  for (int64_t i = 0; i < input->count; ++i) {
    const weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(input, weir_string_t) + i);
    copy_numbers((char*)out->data + (size_t)i * size, text.data, size, dtype, is_little);
  }
  return NULL;
}

// ---- DecodePaddedRaw ----

static weir_status_t* padded_size(const weir_tensor_t* length, weir_dtype_t dtype,
                                  size_t* out_size) {
  if (length->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "k must be scalar, got shape %s",
                       weir_tensor_shape_text(length, text));
  }
  const int32_t size = WEIR_TENSOR_DATA(length, int32_t)[0];
  if (size % (int32_t)weir_dtype_size(dtype) != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "fixed_length (%d) must be a multiple of the size of out_type (%zu)", size,
                       weir_dtype_size(dtype));
  }
  if (size <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "fixed_length (%d) must be greater than zero.", size);
  }
  *out_size = (size_t)size;
  return NULL;
}

static weir_status_t* padded_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* input = weir_shape_input(ctx, 0);
  const weir_tensor_t* length = weir_shape_value(ctx, 1);
  const int64_t size = (int64_t)weir_dtype_size(weir_attrs_type(weir_shape_attrs(ctx), "out_type"));
  int64_t dims[WEIR_MAX_RANK], width = -1;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  if (length) {
    width = weir_tensor_int_at(length, 0);
    if (width < 0) {
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "Dimension size, given by scalar input 1, must be non-negative but is %lld",
          (long long)width);
    }
    if (width % size != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Dimension size must be evenly divisible by %lld but is %lld",
                         (long long)size, (long long)width);
    }
    width /= size;
  }
  if (input->rank < 0) return NULL;
  WEIR_TRY(check_rank(input->rank));
  for (int i = 0; i < input->rank; ++i) dims[i] = input->dims[i];
  dims[input->rank] = width;
  return weir_shape_set_dims(ctx, 0, input->rank + 1, dims);
}

// Numbers that are cut off by a string's end are filled up with zeros, after its bytes.
static weir_status_t* padded_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_attrs_type(weir_kernel_attrs(ctx), "out_type");
  const bool is_little = weir_attrs_bool(weir_kernel_attrs(ctx), "little_endian");
  weir_tensor_t* out = NULL;
  size_t size = 0;
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(check_rank(input->rank));
  WEIR_TRY(padded_size(weir_kernel_input(ctx, 1), dtype, &size));
  for (int i = 0; i < input->rank; ++i) dims[i] = input->dims[i];
  dims[input->rank] = (int64_t)(size / weir_dtype_size(dtype));
  WEIR_TRY(weir_kernel_output(ctx, 0, input->rank + 1, dims, &out));
  for (int64_t i = 0; i < input->count; ++i) {
    const weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(input, weir_string_t) + i);
    const size_t element = weir_dtype_size(dtype), own = WEIR_MIN(text.size, size);
    const size_t whole = own / element * element;
    char* dst = (char*)out->data + (size_t)i * size;
    char last[16] = {0};
    memset(dst, 0, size);
    copy_numbers(dst, text.data, whole, dtype, is_little);
    if (own == whole) continue;
    memcpy(last, text.data + whole, own - whole);
    copy_numbers(dst + whole, last, element, dtype, is_little);
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
        {.name = "DecodePaddedRaw",
         .attrs = "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, "
                  "bfloat16}; little_endian: bool = true",
         .inputs = "input_bytes: string; fixed_length: int32",
         .outputs = "output: out_type",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Reads the bytes of strings, cut or filled up to one length, as numbers",
         .infer_shape = padded_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = padded_cpu,
                                    .types = "out_type: float, double, int32, uint16, uint8, "
                                             "int16, int8, int64, bfloat16")},
        {0}}};
