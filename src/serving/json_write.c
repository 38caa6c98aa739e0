// json_write.c — Tensors into JSON.
#include <inttypes.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "serving/json_tensor.h"
#include "tensor/numeric.h"
#include "wire/utf8.h"

static void put_b64(weir_view_t bytes, weir_strbuf_t* out) {
  weir_strbuf_puts(out, "{\"b64\":\"");
  weir_base64_append(bytes, true, out);
  weir_strbuf_puts(out, "\"}");
}

static void put_string(const weir_tensor_t* tensor, int64_t i, bool is_binary, weir_strbuf_t* out) {
  weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(tensor, weir_string_t) + i);
  if (is_binary || !weir_utf8_is_valid(text)) put_b64(text, out);
  else weir_json_put_view(text, out);
}

static void put_integer(int64_t value, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "%" PRId64, value);
}

// False: JSON has nothing for the type.
static bool put_element(const weir_tensor_t* tensor, int64_t i, bool is_binary,
                        weir_strbuf_t* out) {
  const void* data = tensor->data;
  switch (weir_tensor_type(tensor)) {
    case WEIR_DTYPE_FLOAT: weir_json_put_float(((const float*)data)[i], out); return true;
    case WEIR_DTYPE_DOUBLE: weir_json_put_double(((const double*)data)[i], out); return true;
    case WEIR_DTYPE_HALF:
      weir_json_put_float(weir_half_to_float(((const weir_half_t*)data)[i]), out);
      return true;
    case WEIR_DTYPE_BFLOAT16:
      weir_json_put_float(weir_bfloat16_to_float(((const weir_bfloat16_t*)data)[i]), out);
      return true;
    case WEIR_DTYPE_INT8: put_integer(((const int8_t*)data)[i], out); return true;
    case WEIR_DTYPE_INT16: put_integer(((const int16_t*)data)[i], out); return true;
    case WEIR_DTYPE_INT32: put_integer(((const int32_t*)data)[i], out); return true;
    case WEIR_DTYPE_INT64: put_integer(((const int64_t*)data)[i], out); return true;
    case WEIR_DTYPE_UINT8: put_integer(((const uint8_t*)data)[i], out); return true;
    case WEIR_DTYPE_UINT16: put_integer(((const uint16_t*)data)[i], out); return true;
    case WEIR_DTYPE_UINT32: put_integer(((const uint32_t*)data)[i], out); return true;
    case WEIR_DTYPE_UINT64:
      weir_strbuf_printf(out, "%" PRIu64, ((const uint64_t*)data)[i]);
      return true;
    case WEIR_DTYPE_BOOL:
      weir_strbuf_puts(out, ((const bool*)data)[i] ? "true" : "false");
      return true;
    case WEIR_DTYPE_STRING: put_string(tensor, i, is_binary, out); return true;
    default: return false;
  }
}

// |count| elements from |begin| on, in arrays as |dims| from |axis| on say.
static bool put_nested(const weir_tensor_t* tensor, int axis, int64_t begin, int64_t count,
                       bool is_binary, weir_strbuf_t* out) {
  if (axis == tensor->rank) return put_element(tensor, begin, is_binary, out);
  int64_t rows = tensor->dims[axis], step = rows > 0 ? count / rows : 0;
  bool is_known = true;
  weir_strbuf_putc(out, '[');
  for (int64_t i = 0; i < rows && is_known; ++i) {
    if (i > 0) weir_strbuf_putc(out, ',');
    is_known = put_nested(tensor, axis + 1, begin + i * step, step, is_binary, out);
  }
  weir_strbuf_putc(out, ']');
  return is_known;
}

static weir_status_t* unknown_type(const weir_tensor_t* tensor) {
  return WEIR_STATUS(UNIMPLEMENTED, "tensors of %s have no JSON",
                     weir_dtype_name(weir_tensor_type(tensor)));
}

weir_status_t* weir_json_put_tensor(const weir_tensor_t* tensor, bool is_binary,
                                    weir_strbuf_t* out) {
  bool is_known = put_nested(tensor, 0, 0, tensor->count, is_binary, out);
  return is_known ? NULL : unknown_type(tensor);
}

weir_status_t* weir_json_put_row(const weir_tensor_t* tensor, int64_t row, bool is_binary,
                                 weir_strbuf_t* out) {
  int64_t step = tensor->count / tensor->dims[0];
  bool is_known = put_nested(tensor, 1, row * step, step, is_binary, out);
  return is_known ? NULL : unknown_type(tensor);
}

weir_status_t* weir_json_put_flat(const weir_tensor_t* tensor, weir_strbuf_t* out) {
  bool is_known = true;
  weir_strbuf_putc(out, '[');
  for (int64_t i = 0; i < tensor->count && is_known; ++i) {
    if (i > 0) weir_strbuf_putc(out, ',');
    is_known = put_element(tensor, i, false, out);
  }
  weir_strbuf_putc(out, ']');
  return is_known ? NULL : unknown_type(tensor);
}
