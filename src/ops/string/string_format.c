// string_format.c — StringFormat: fills tensors into a template, as tf.print shows them.
#include "base/string.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/string/summarize.h"

// Splits off the text before the next placeholder; false when this is the last piece. An empty
// placeholder stands between all bytes.
static bool next_piece(weir_view_t* rest, weir_view_t placeholder, weir_view_t* out_piece) {
  const char* found = NULL;
  if (placeholder.size > 0) {
    if (rest->size > 0) found = memmem(rest->data, rest->size, placeholder.data, placeholder.size);
  } else if (rest->size > 1) {
    found = rest->data + 1;
  }
  *out_piece = found ? weir_view(rest->data, (size_t)(found - rest->data)) : *rest;
  size_t used = out_piece->size + (found ? placeholder.size : 0);
  if (used > 0) *rest = weir_view(rest->data + used, rest->size - used);
  return found != NULL;
}

static weir_status_t* check_placeholders(weir_attrs_t attrs, int input_count) {
  weir_view_t rest = weir_attrs_string(attrs, "template"), piece;
  const weir_view_t placeholder = weir_attrs_string(attrs, "placeholder");
  int64_t count = 0;
  while (next_piece(&rest, placeholder, &piece)) ++count;
  if (count == input_count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "num placeholders in template and num inputs must match: %lld vs. %d",
                     (long long)count, input_count);
}

static weir_status_t* format_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_placeholders(weir_shape_attrs(ctx), ctx->node->input_count));
  return weir_shape_set_scalar(ctx, 0);
}

// ---- one tensor ----

typedef struct printer_t {
  const weir_tensor_t* tensor;
  weir_tensor_t* element;  // a scalar of the tensor's type, for the words of one element
  int64_t edge;            // elements shown at either end of a dimension
  weir_strbuf_t* out;
} printer_t;

// Bytes from 128 on may be UTF-8 and stay.
static void put_escaped(weir_view_t text, weir_strbuf_t* out) {
  weir_strbuf_putc(out, '"');
  for (size_t i = 0; i < text.size; ++i) {
    const unsigned char c = (unsigned char)text.data[i];
    static const char kSpecial[] = "\n\r\t\"'\\", kLetters[] = "nrt\"'\\";
    const char* special = c ? strchr(kSpecial, c) : NULL;
    if (special) {
      weir_strbuf_printf(out, "\\%c", kLetters[special - kSpecial]);
    } else if (c < 32 || c == 127) {
      weir_strbuf_printf(out, "\\%03o", c);
    } else {
      weir_strbuf_putc(out, (char)c);
    }
  }
  weir_strbuf_putc(out, '"');
}

static void put_element(const printer_t* p, int64_t index) {
  const weir_dtype_t dtype = weir_tensor_type(p->tensor);
  if (dtype == WEIR_DTYPE_STRING) {
    put_escaped(weir_string_view(WEIR_TENSOR_DATA(p->tensor, weir_string_t) + index), p->out);
    return;
  }
  const size_t size = weir_dtype_size(dtype);
  memcpy(p->element->data, (const char*)p->tensor->data + (size_t)index * size, size);
  weir_tensor_summarize(p->element, -1, p->out);
}

// Elements of a row stand side by side; deeper ones on lines of their own, indented and set apart
// by the more lines the more dimensions they have.
static void put_gap(const printer_t* p, int axis) {
  if (axis == p->tensor->rank - 1) {
    weir_strbuf_putc(p->out, ' ');
    return;
  }
  for (int i = axis; i < p->tensor->rank - 1; ++i) weir_strbuf_putc(p->out, '\n');
  for (int i = 0; i <= axis; ++i) weir_strbuf_putc(p->out, ' ');
}

static void put_axis(const printer_t* p, int axis, int64_t index) {
  if (axis == p->tensor->rank) {
    put_element(p, index);
    return;
  }
  const int64_t count = p->tensor->dims[axis];
  int64_t stride = 1;
  for (int i = axis + 1; i < p->tensor->rank; ++i) stride *= p->tensor->dims[i];
  weir_strbuf_putc(p->out, '[');
  for (int64_t i = 0; i < p->edge && i < count; ++i) {
    if (i > 0) put_gap(p, axis);
    put_axis(p, axis + 1, index + stride * i);
  }
  if (count - p->edge > p->edge) {
    put_gap(p, axis);
    weir_strbuf_puts(p->out, "...");
  }
  for (int64_t i = WEIR_MAX(p->edge, count - p->edge); i < count; ++i) {
    put_gap(p, axis);
    put_axis(p, axis + 1, index + stride * i);
  }
  weir_strbuf_putc(p->out, ']');
}

// Types TensorFlow has no words for: a flat list, whatever the shape.
static void put_opaque(const printer_t* p) {
  const weir_dtype_t dtype = weir_tensor_type(p->tensor);
  const bool is_scalar = p->tensor->rank == 0;
  if (!is_scalar) weir_strbuf_putc(p->out, '[');
  for (int64_t i = 0; i < p->edge; ++i) {
    if (i > 0) weir_strbuf_putc(p->out, ' ');
    if (weir_dtype_is_plain(dtype)) {
      weir_strbuf_putc(p->out, '?');
    } else {
      weir_strbuf_printf(p->out, "<%s>", weir_dtype_name(dtype));
    }
  }
  if (p->edge < p->tensor->count) weir_strbuf_puts(p->out, "...");
  if (!is_scalar) weir_strbuf_putc(p->out, ']');
}

static weir_status_t* put_tensor(const weir_tensor_t* tensor, int64_t limit, weir_strbuf_t* out) {
  const weir_dtype_t dtype = weir_tensor_type(tensor);
  printer_t p = {.tensor = tensor,
                 .edge = limit < 0 ? tensor->count : WEIR_MIN(limit, tensor->count),
                 .out = out};
  if (weir_dtype_is_complex(dtype) || dtype == WEIR_DTYPE_QINT32 || dtype == WEIR_DTYPE_RESOURCE ||
      dtype == WEIR_DTYPE_VARIANT) {
    put_opaque(&p);
    return NULL;
  }
  if (dtype == WEIR_DTYPE_BOOL && p.edge == 0) return NULL;  // TensorFlow shows nothing then
  WEIR_TRY(weir_tensor_create(dtype, 0, NULL, &p.element));
  if (tensor->rank == 0 && p.edge == 0) {
    weir_strbuf_puts(out, "...");
  } else {
    put_axis(&p, 0, 0);
  }
  weir_tensor_release(p.element);
  return NULL;
}

static weir_status_t* format_cpu(weir_kernel_ctx_t* ctx) {
  weir_attrs_t attrs = weir_kernel_attrs(ctx);
  weir_view_t rest = weir_attrs_string(attrs, "template"), piece;
  const weir_view_t placeholder = weir_attrs_string(attrs, "placeholder");
  const int64_t limit = weir_attrs_int(attrs, "summarize");
  weir_strbuf_t text = {0};
  weir_tensor_t* out = NULL;
  weir_status_t* status = check_placeholders(attrs, ctx->input_count);
  if (status) goto done;
  for (int i = 0; next_piece(&rest, placeholder, &piece); ++i) {
    weir_strbuf_append(&text, piece.data, piece.size);
    status = put_tensor(weir_kernel_input(ctx, i), limit, &text);
    if (status) goto done;
  }
  weir_strbuf_append(&text, piece.data, piece.size);
  status = weir_strbuf_finish(&text);
  if (status) goto done;
  status = weir_kernel_output(ctx, 0, 0, NULL, &out);
  if (status) goto done;
  status = weir_string_set(out->data, text.data, text.size);
done:
  weir_strbuf_free(&text);
  return status;
}

const weir_op_module_t weir_ops_string_string_format = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StringFormat",
         .attrs = "T: list(type) >= 0; template: string = '%s'; placeholder: string = '%s'; "
                  "summarize: int = 3",
         .inputs = "inputs: T",
         .outputs = "output: string",
         .summary = "Fills tensors into a template",
         .infer_shape = format_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = format_cpu)},
        {0}}};
