// tensor_json.c — Tensors as JSON.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/json.h"
#include "tensor/cast.h"
#include "weir/argument.h"
#include "weir/inspect.h"
#include "wire/utf8.h"

static void put_string(weir_view_t text, weir_strbuf_t* out) {
  if (weir_utf8_is_valid(text)) {
    weir_json_put_view(text, out);
    return;
  }
  weir_strbuf_puts(out, "{\"b64\": \"");
  weir_base64_append(text, true, out);
  weir_strbuf_puts(out, "\"}");
}

// The fewest of 9 or 17 digits that read back as the same number.
static void put_floating(double value, bool is_double, weir_strbuf_t* out) {
  if (isnan(value) || isinf(value)) {
    weir_strbuf_puts(out, isnan(value) ? "\"NaN\"" : value < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    return;
  }
  char text[40];
  for (int digits = is_double ? 15 : 6; digits <= 17; ++digits) {
    snprintf(text, sizeof(text), "%.*g", digits, value);
    double back = strtod(text, NULL);
    if (is_double ? back == value : (float)back == (float)value) break;
  }
  weir_strbuf_puts(out, text);
}

static void put_part(weir_dtype_t dtype, const void* element, weir_strbuf_t* out) {
  double value = 0;
  weir_element_to_double(dtype, element, &value);
  put_floating(value, dtype == WEIR_DTYPE_DOUBLE, out);
}

static void put_complex(weir_dtype_t dtype, const char* element, weir_strbuf_t* out) {
  weir_dtype_t part = dtype == WEIR_DTYPE_COMPLEX64 ? WEIR_DTYPE_FLOAT : WEIR_DTYPE_DOUBLE;
  weir_strbuf_putc(out, '[');
  put_part(part, element, out);
  weir_strbuf_puts(out, ", ");
  put_part(part, element + weir_dtype_size(part), out);
  weir_strbuf_putc(out, ']');
}

static void put_integer(weir_dtype_t dtype, const void* element, weir_strbuf_t* out) {
  uint64_t bits = 0;
  bool is_wide = dtype == WEIR_DTYPE_UINT64;
  if (is_wide) memcpy(&bits, element, sizeof(bits));
  else weir_status_destroy(weir_cast_elements(WEIR_DTYPE_INT64, &bits, dtype, element, 1));
  if (is_wide) weir_strbuf_printf(out, "%llu", (unsigned long long)bits);
  else weir_strbuf_printf(out, "%lld", (long long)(int64_t)bits);
}

static void put_element(const weir_tensor_t* tensor, int64_t index, weir_strbuf_t* out) {
  weir_dtype_t dtype = weir_tensor_dtype(tensor);
  const char* element =
      (const char*)weir_tensor_data(tensor) + (size_t)index * weir_dtype_size(dtype);
  size_t size = 0;
  const char* text = dtype == WEIR_DTYPE_STRING ? weir_tensor_string(tensor, index, &size) : NULL;
  if (text) put_string(weir_view(text, size), out);
  else if (dtype == WEIR_DTYPE_STRING) weir_strbuf_puts(out, "\"\"");
  else if (dtype == WEIR_DTYPE_BOOL) weir_strbuf_puts(out, *element ? "true" : "false");
  else if (weir_dtype_is_complex(dtype)) put_complex(dtype, element, out);
  else if (weir_dtype_is_floating(dtype)) put_part(dtype, element, out);
  else put_integer(dtype, element, out);
}

weir_status_t* weir_tensor_to_json(const weir_tensor_t* tensor, char** out_text) {
  WEIR_REQUIRE_ARG(tensor);
  WEIR_REQUIRE_ARG(out_text);
  weir_dtype_t dtype = weir_tensor_dtype(tensor);
  if (!weir_dtype_is_plain(dtype) && dtype != WEIR_DTYPE_STRING)
    return WEIR_STATUS(UNIMPLEMENTED, "a tensor of type %s as JSON", weir_dtype_name(dtype));
  weir_strbuf_t out = {0};
  weir_strbuf_printf(&out, "{\"dtype\": \"%s\", \"shape\": [", weir_dtype_name(dtype));
  for (int i = 0; i < weir_tensor_rank(tensor); ++i)
    weir_strbuf_printf(&out, "%s%lld", i ? ", " : "", (long long)weir_tensor_dim(tensor, i));
  weir_strbuf_puts(&out, "], \"values\": [");
  for (int64_t i = 0; i < weir_tensor_count(tensor); ++i) {
    if (i) weir_strbuf_puts(&out, ", ");
    put_element(tensor, i, &out);
  }
  weir_strbuf_puts(&out, "]}");
  weir_status_t* status = weir_strbuf_finish(&out);
  if (status) weir_strbuf_free(&out);
  else *out_text = out.data;
  return status;
}
