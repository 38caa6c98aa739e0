// summarize.c — Tensors in the words of TensorFlow's Assert and Print.
#include "ops/string/summarize.h"

#include <stdio.h>
#include <stdlib.h>

#include "tensor/cast.h"
#include "tensor/handle.h"

typedef struct summary_t {
  const weir_tensor_t* tensor;
  int64_t limit;
  int64_t next;  // the element to print next
  weir_strbuf_t* out;
} summary_t;

// Few digits where they say it all, else enough to read the value back.
static void put_floating(weir_dtype_t dtype, double value, weir_strbuf_t* out) {
  bool is_double = dtype == WEIR_DTYPE_DOUBLE;
  char text[40];
  snprintf(text, sizeof(text), "%.*g", is_double ? 15 : 6, value);
  bool is_exact = is_double ? strtod(text, NULL) == value : strtof(text, NULL) == (float)value;
  if (!is_exact && value == value) snprintf(text, sizeof(text), "%.*g", is_double ? 17 : 9, value);
  weir_strbuf_puts(out, value != value ? "nan" : text);
}

static void put_element(summary_t* s) {
  weir_dtype_t dtype = weir_tensor_type(s->tensor);
  const char* element = (const char*)s->tensor->data + (size_t)s->next++ * weir_dtype_size(dtype);
  double value = 0;
  int64_t whole = 0;
  if (dtype == WEIR_DTYPE_STRING) {
    weir_view_t text = weir_string_view((const weir_string_t*)(const void*)element);
    weir_strbuf_append(s->out, text.data, text.size);
  } else if (dtype == WEIR_DTYPE_RESOURCE || dtype == WEIR_DTYPE_VARIANT) {
    weir_strbuf_printf(s->out, "<%s>", weir_dtype_name(dtype));
  } else if (weir_dtype_is_complex(dtype)) {
    weir_strbuf_putc(s->out, '?');  // what TensorFlow prints
  } else if (weir_dtype_is_floating(dtype)) {
    weir_element_to_double(dtype, element, &value);
    put_floating(dtype, value, s->out);
  } else if (dtype == WEIR_DTYPE_UINT64) {
    weir_strbuf_printf(s->out, "%llu", (unsigned long long)*(const uint64_t*)(const void*)element);
  } else {
    weir_status_destroy(weir_cast_elements(WEIR_DTYPE_INT64, &whole, dtype, element, 1));
    weir_strbuf_printf(s->out, "%lld", (long long)whole);
  }
}

static void put_row(summary_t* s, int axis) {
  for (int64_t i = 0; i < s->tensor->dims[axis]; ++i) {
    if (s->next >= s->limit) {
      if (axis > 0) weir_strbuf_puts(s->out, "...");  // the outermost says so by itself
      return;
    }
    if (i > 0) weir_strbuf_putc(s->out, ' ');
    put_element(s);
  }
}

static void put_axis(summary_t* s, int axis) {
  if (axis == s->tensor->rank - 1) {
    put_row(s, axis);
    return;
  }
  for (int64_t i = 0; i < s->tensor->dims[axis] && s->next < s->limit; ++i) {
    weir_strbuf_putc(s->out, '[');
    put_axis(s, axis + 1);
    weir_strbuf_putc(s->out, ']');
  }
}

void weir_tensor_summarize(const weir_tensor_t* tensor, int64_t limit, weir_strbuf_t* out) {
  summary_t s = {.tensor = tensor,
                 .limit = limit < 0 ? tensor->count : WEIR_MIN(limit, tensor->count),
                 .out = out};
  if (tensor->rank == 0) {
    if (s.limit > 0) put_element(&s);
  } else {
    put_axis(&s, 0);
  }
  if (tensor->count > s.limit) weir_strbuf_puts(out, "...");
}
