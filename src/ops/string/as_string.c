// as_string.c — AsString: elements as text.
#include <limits.h>
#include <stdio.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/string.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "tensor/cast.h"
#include "tensor/handle.h"

typedef struct as_string_t {
  char format[64];  // of one number: "%05.2f", "%-8lld"
  char fill;        // 0: none
  int width;        // less than 0: none
  int precision;    // less than 0: none
} as_string_t;

static weir_status_t* read_int32(weir_attrs_t attrs, const char* name, int* out_value) {
  int64_t value = weir_attrs_int(attrs, name);
  if (value < INT32_MIN || value > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Attr %s has value %lld out of range for an int32", name,
                       (long long)value);
  }
  *out_value = (int)value;
  return NULL;
}

static weir_status_t* check_notation(weir_attrs_t attrs, int precision) {
  const weir_dtype_t dtype = weir_attrs_type(attrs, "T");
  const bool is_scientific = weir_attrs_bool(attrs, "scientific");
  const bool is_shortest = weir_attrs_bool(attrs, "shortest");
  const char* name = weir_dtype_name(dtype);
  if (weir_dtype_is_integer(dtype) || dtype == WEIR_DTYPE_BOOL) {
    if (is_scientific || is_shortest) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "scientific and shortest format not supported for datatype %s", name);
    }
    if (precision >= 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "precision not supported for datatype %s", name);
    }
  }
  if (is_scientific && is_shortest) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Cannot select both scientific and shortest notation");
  }
  return NULL;
}

static weir_status_t* read_fill(weir_attrs_t attrs, char* out_fill) {
  const weir_view_t fill = weir_attrs_string(attrs, "fill");
  if (fill.size > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Fill string must be one or fewer characters");
  }
  if (fill.size == 1 && (fill.data[0] == '\0' || !strchr(" +-0#", fill.data[0]))) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Fill argument not supported: \"%.*s\"",
                       WEIR_VIEW_ARG(fill));
  }
  *out_fill = fill.size == 1 ? fill.data[0] : '\0';
  return NULL;
}

static const char* conversion(weir_attrs_t attrs) {
  switch (weir_attrs_type(attrs, "T")) {
    case WEIR_DTYPE_INT8:
    case WEIR_DTYPE_INT16:
    case WEIR_DTYPE_INT32:
    case WEIR_DTYPE_INT64: return "lld";
    case WEIR_DTYPE_UINT8:
    case WEIR_DTYPE_UINT16:
    case WEIR_DTYPE_UINT32:
    case WEIR_DTYPE_UINT64: return "llu";
    default:
      if (weir_attrs_bool(attrs, "shortest")) return "g";
      return weir_attrs_bool(attrs, "scientific") ? "e" : "f";
  }
}

static weir_status_t* as_string_init(const weir_kernel_init_t* init, void* state) {
  as_string_t* s = state;
  weir_attrs_t attrs = init->node->attrs;
  char width[16] = "", precision[16] = "";
  WEIR_TRY(read_int32(attrs, "width", &s->width));
  WEIR_TRY(read_int32(attrs, "precision", &s->precision));
  WEIR_TRY(check_notation(attrs, s->precision));
  WEIR_TRY(read_fill(attrs, &s->fill));
  const char fill[2] = {s->fill, '\0'};
  if (s->width >= 0) snprintf(width, sizeof(width), "%d", s->width);
  if (s->precision >= 0) snprintf(precision, sizeof(precision), ".%d", s->precision);
  snprintf(s->format, sizeof(s->format), "%%%s%s%s%s", fill, width, precision, conversion(attrs));
  return NULL;
}

static void put_floating(const as_string_t* s, weir_dtype_t dtype, const void* element,
                         weir_strbuf_t* out) {
  double value = 0;
  weir_element_to_double(dtype, element, &value);
  weir_strbuf_printf(out, s->format, value);
}

static void put_complex(const as_string_t* s, weir_dtype_t dtype, const char* element,
                        weir_strbuf_t* out) {
  weir_dtype_t part = dtype == WEIR_DTYPE_COMPLEX64 ? WEIR_DTYPE_FLOAT : WEIR_DTYPE_DOUBLE;
  weir_strbuf_putc(out, '(');
  put_floating(s, part, element, out);
  weir_strbuf_putc(out, ',');
  put_floating(s, part, element + weir_dtype_size(part), out);
  weir_strbuf_putc(out, ')');
}

// As printf's %s does, of all bytes; without a width TensorFlow leaves the precision aside too.
static void put_text(const as_string_t* s, const void* element, weir_strbuf_t* out) {
  weir_view_t text = weir_string_view(element);
  if (s->precision >= 0 && s->width >= 0) text.size = WEIR_MIN(text.size, (size_t)s->precision);
  const size_t width = s->width < 0 ? 0 : (size_t)s->width;
  const size_t padding = width > text.size ? width - text.size : 0;
  if (!weir_strbuf_reserve(out, padding + text.size + 1)) return;
  for (size_t i = 0; s->fill != '-' && i < padding; ++i) weir_strbuf_putc(out, ' ');
  weir_strbuf_append(out, text.data, text.size);
  for (size_t i = 0; s->fill == '-' && i < padding; ++i) weir_strbuf_putc(out, ' ');
}

static void put_variant(const void* element, weir_strbuf_t* out) {
  const weir_variant_object_t* object = ((const weir_variant_t*)element)->object;
  if (!object) {
    weir_strbuf_puts(out, "Variant<type: <empty> value: <empty>>");
    return;
  }
  weir_strbuf_printf(out, "Variant<type: %s value: ", object->type->type_name);
  if (object->type->describe) {
    object->type->describe(object, out);
  } else {
    weir_strbuf_puts(out, object->type->type_name);
  }
  weir_strbuf_puts(out, ">");
}

static weir_status_t* put_element(const as_string_t* s, weir_dtype_t dtype, const char* element,
                                  weir_strbuf_t* out) {
  if (dtype == WEIR_DTYPE_BOOL) {
    weir_strbuf_puts(out, *(const bool*)element ? "true" : "false");
  } else if (dtype == WEIR_DTYPE_STRING) {
    put_text(s, element, out);
  } else if (dtype == WEIR_DTYPE_VARIANT) {
    put_variant(element, out);
  } else if (weir_dtype_is_complex(dtype)) {
    put_complex(s, dtype, element, out);
  } else if (weir_dtype_is_floating(dtype)) {
    put_floating(s, dtype, element, out);
  } else if (dtype == WEIR_DTYPE_UINT64) {
    uint64_t value;
    memcpy(&value, element, sizeof(value));
    weir_strbuf_printf(out, s->format, (unsigned long long)value);
  } else {
    int64_t value = 0;
    WEIR_TRY(weir_cast_elements(WEIR_DTYPE_INT64, &value, dtype, element, 1));
    weir_strbuf_printf(out, s->format, (long long)value);
  }
  return weir_strbuf_finish(out);
}

// Texts are as wide as two attributes say, which nothing else bounds.
static weir_status_t* check_size(const as_string_t* s, int64_t count) {
  size_t width = (size_t)WEIR_MAX(WEIR_MAX(s->width, s->precision), 0);
  size_t bytes = 0;
  bool is_far = __builtin_mul_overflow(width, (size_t)count, &bytes);
  if (!is_far && (bytes < WEIR_LARGE_BLOCK || !weir_memory_lacks(bytes))) return NULL;
  return WEIR_STATUS(RESOURCE_EXHAUSTED,
                     "there is no memory for %lld strings of width %d and precision %d",
                     (long long)count, s->width, s->precision);
}

static weir_status_t* as_string_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(input);
  const size_t size = weir_dtype_size(dtype);
  weir_tensor_t* out = NULL;
  weir_strbuf_t text = {0};
  WEIR_TRY(check_size(ctx->state, input->count));
  WEIR_TRY(weir_kernel_output(ctx, 0, input->rank, input->dims, &out));
  weir_status_t* status = NULL;
  for (int64_t i = 0; !status && i < input->count && !weir_is_interrupted(); ++i) {
    text.size = 0;
    status = put_element(ctx->state, dtype, (const char*)input->data + (size_t)i * size, &text);
    if (!status) {
      status = weir_string_set(WEIR_TENSOR_DATA(out, weir_string_t) + i, text.data, text.size);
    }
  }
  weir_strbuf_free(&text);
  return status;
}

const weir_op_module_t weir_ops_string_as_string = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "AsString",
         .attrs = "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, "
                  "uint32, uint64, complex64, complex128, bool, variant, string}; precision: int = "
                  "-1; scientific: bool = false; shortest: bool = false; width: int = -1; fill: "
                  "string = ''",
         .inputs = "input: T",
         .outputs = "output: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Elements as text",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = as_string_cpu, .state_size = sizeof(as_string_t),
                                    .init = as_string_init)},
        {0}}};
