// tensor_print.c — Tensors as text, for Print, Assert and tools.
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/string.h"
#include "tensor/cast.h"
#include "tensor/handle.h"
#include "tensor/numeric.h"
#include "tensor/tensor.h"

// ---- numbers ----

// |value| as type |dtype| can hold it.
static double rounded_to(weir_dtype_t dtype, double value) {
  double element = 0;  // 8 aligned bytes, enough for every floating type
  double back = value;
  weir_status_destroy(weir_cast_elements(dtype, &element, WEIR_DTYPE_DOUBLE, &value, 1));
  weir_element_to_double(dtype, &element, &back);
  return back;
}

// Appends the fewest digits that read back as the same element of |dtype|.
static void print_floating(weir_dtype_t dtype, double value, weir_strbuf_t* out) {
  if (isnan(value) || isinf(value)) {
    weir_strbuf_puts(out, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
    return;
  }
  char text[40];
  int digits = 1;
  for (; digits < 17; ++digits) {
    snprintf(text, sizeof(text), "%.*g", digits, value);
    if (rounded_to(dtype, strtod(text, NULL)) == value) break;
  }
  // "%g" turns to exponents where the digits end before the point; up to a million, "100" reads
  // better than "1e+02".
  double magnitude = fabs(value);
  int whole = 0;
  while (whole < 6 && magnitude >= 1) {
    magnitude /= 10;
    ++whole;
  }
  if (magnitude < 1 && whole > digits) digits = whole;
  weir_strbuf_printf(out, "%.*g", digits, value);
}

static void print_complex(weir_dtype_t dtype, const void* element, weir_strbuf_t* out) {
  weir_dtype_t part = dtype == WEIR_DTYPE_COMPLEX64 ? WEIR_DTYPE_FLOAT : WEIR_DTYPE_DOUBLE;
  double real = 0;
  double imaginary = 0;
  weir_element_to_double(part, element, &real);
  weir_element_to_double(part, (const char*)element + weir_dtype_size(part), &imaginary);
  print_floating(part, real, out);
  if (isnan(imaginary) || !signbit(imaginary)) weir_strbuf_putc(out, '+');
  print_floating(part, imaginary, out);
  weir_strbuf_putc(out, 'j');
}

static void print_integer(weir_dtype_t dtype, const void* element, weir_strbuf_t* out) {
  if (dtype == WEIR_DTYPE_UINT64) {
    uint64_t value;
    memcpy(&value, element, sizeof(value));
    weir_strbuf_printf(out, "%" PRIu64, value);
    return;
  }
  int64_t value = 0;
  weir_status_destroy(weir_cast_elements(WEIR_DTYPE_INT64, &value, dtype, element, 1));
  weir_strbuf_printf(out, "%" PRId64, value);
}

// ---- the other elements ----

static void print_string(weir_view_t text, weir_strbuf_t* out) {
  weir_strbuf_putc(out, '"');
  for (size_t i = 0; i < text.size; ++i) {
    unsigned char c = (unsigned char)text.data[i];
    if (c == '"' || c == '\\') {
      weir_strbuf_printf(out, "\\%c", c);
    } else if (c == '\n') {
      weir_strbuf_puts(out, "\\n");
    } else if (c < 0x20 || c == 0x7f) {
      weir_strbuf_printf(out, "\\x%02x", c);
    } else {
      weir_strbuf_putc(out, (char)c);
    }
  }
  weir_strbuf_putc(out, '"');
}

static void print_handle(const weir_handle_t* handle, weir_strbuf_t* out) {
  weir_strbuf_printf(out, "<resource%s%s>", handle ? " " : "", handle ? handle->name : "");
}

static void print_variant(const weir_variant_t* variant, weir_strbuf_t* out) {
  const weir_variant_object_t* object = variant->object;
  weir_strbuf_printf(out, "<variant%s%s>", object ? " " : "",
                     object ? object->type->type_name : "");
}

static void print_element(weir_dtype_t dtype, const void* element, weir_strbuf_t* out) {
  double value = 0;
  switch (dtype) {
    case WEIR_DTYPE_STRING: print_string(weir_string_view(element), out); break;
    case WEIR_DTYPE_RESOURCE: print_handle(*(weir_handle_t* const*)element, out); break;
    case WEIR_DTYPE_VARIANT: print_variant(element, out); break;
    case WEIR_DTYPE_BOOL: weir_strbuf_puts(out, *(const uint8_t*)element ? "True" : "False"); break;
    default:
      if (weir_dtype_is_complex(dtype)) {
        print_complex(dtype, element, out);
      } else if (weir_dtype_is_floating(dtype) && weir_element_to_double(dtype, element, &value)) {
        print_floating(dtype, value, out);
      } else {
        print_integer(dtype, element, out);
      }
  }
}

// ---- dimensions ----

// Appends dimension |axis|, whose elements take |stride| bytes from |first| on.
static void print_axis(const weir_tensor_t* tensor, int axis, int64_t limit, const char* first,
                       size_t stride, weir_strbuf_t* out) {
  weir_dtype_t dtype = weir_tensor_type(tensor);
  if (axis == tensor->rank) {
    print_element(dtype, first, out);
    return;
  }
  int64_t dim = tensor->dims[axis];
  int64_t shown = limit >= 0 && limit < dim ? limit : dim;
  size_t step = dim > 0 ? stride / (size_t)dim : 0;
  weir_strbuf_putc(out, '[');
  for (int64_t i = 0; i < shown; ++i) {
    if (i > 0) weir_strbuf_putc(out, ' ');
    print_axis(tensor, axis + 1, limit, first + (size_t)i * step, step, out);
  }
  if (shown < dim) weir_strbuf_puts(out, "...");
  weir_strbuf_putc(out, ']');
}

void weir_tensor_print(const weir_tensor_t* tensor, int64_t limit, weir_strbuf_t* out) {
  if (!weir_tensor_is_host(tensor)) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    weir_strbuf_printf(out, "<%s%s in device memory>", weir_dtype_name(weir_tensor_type(tensor)),
                       weir_tensor_shape_text(tensor, text));
    return;
  }
  if (tensor->count == 0) {
    weir_strbuf_puts(out, "[]");
    return;
  }
  print_axis(tensor, 0, limit, tensor->data, weir_tensor_byte_size(tensor), out);
}
