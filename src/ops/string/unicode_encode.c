// unicode_encode.c — UnicodeEncode: ragged rows of characters as strings; UnicodeScript: which
// writing system characters belong to.
#include "base/interrupt.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/string/unicode.h"

typedef struct encode_t {
  weir_encoding_t encoding;
  int32_t replacement;
  bool is_strict, ignores;
} encode_t;

static weir_status_t* encode_init(const weir_kernel_init_t* init, void* state) {
  const weir_attrs_t attrs = init->node->attrs;
  const weir_view_t errors = weir_attrs_string(attrs, "errors");
  const weir_view_t encoding = weir_attrs_string(attrs, "output_encoding");
  const int64_t replacement = weir_attrs_int(attrs, "replacement_char");
  if (replacement < 0 || replacement > WEIR_MAX_RUNE) {
    return WEIR_STATUS(INVALID_ARGUMENT, "replacement_char out of unicode codepoint range");
  }
  *(encode_t*)state =
      (encode_t){.encoding = weir_view_is(encoding, "UTF-8")       ? WEIR_ENCODING_UTF8
                             : weir_view_is(encoding, "UTF-16-BE") ? WEIR_ENCODING_UTF16_BE
                                                                   : WEIR_ENCODING_UTF32_BE,
                 .replacement = (int32_t)replacement,
                 .is_strict = weir_view_is(errors, "strict"),
                 .ignores = weir_view_is(errors, "ignore")};
  return NULL;
}

static weir_status_t* check_splits(const weir_tensor_t* values, const weir_tensor_t* splits) {
  if (splits->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input_splits should contain elements, but given input_values has 0 "
                       "elements");
  }
  if (values->rank != 1 || splits->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Both the input_tensor and input_splits should be of rank 1. ");
  }
  if (weir_tensor_int_at(splits, 0) != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "First value in input_splits must be zero.");
  }
  if (weir_tensor_int_at(splits, splits->count - 1) != values->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Last value in input_splits must be equal to length of input_tensor.");
  }
  for (int64_t i = 1; i < splits->count; ++i) {
    if (weir_tensor_int_at(splits, i - 1) <= weir_tensor_int_at(splits, i)) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Values in input_splits must be equal or in ascending order.");
  }
  return NULL;
}

static weir_status_t* encode_row(const encode_t* e, const int32_t* runes, int64_t count,
                                 weir_strbuf_t* out) {
  out->size = 0;
  for (int64_t i = 0; i < count; ++i) {
    int32_t rune = runes[i];
    if (!weir_rune_is_valid(rune)) {
      if (e->is_strict) {
        return WEIR_STATUS(INVALID_ARGUMENT,
                           "Code point is out of range for Unicode, or is a surrogate.");
      }
      if (e->ignores) continue;
      rune = e->replacement;
    }
    weir_rune_put(e->encoding, rune, out);
  }
  return weir_strbuf_finish(out);
}

static weir_status_t* encode_rows(weir_kernel_ctx_t* ctx, weir_tensor_t* out, weir_strbuf_t* text) {
  const int32_t* runes = weir_kernel_input(ctx, 0)->data;
  const weir_tensor_t* splits = weir_kernel_input(ctx, 1);
  for (int64_t i = 0; i < out->count; ++i) {
    const int64_t begin = weir_tensor_int_at(splits, i), end = weir_tensor_int_at(splits, i + 1);
    WEIR_TRY(weir_interrupt_poll(i));
    WEIR_TRY(encode_row(ctx->state, runes + begin, end - begin, text));
    WEIR_TRY(weir_string_set(WEIR_TENSOR_DATA(out, weir_string_t) + i, text->data, text->size));
  }
  return NULL;
}

static weir_status_t* encode_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* splits = weir_kernel_input(ctx, 1);
  weir_tensor_t* out = NULL;
  weir_strbuf_t text = {0};
  WEIR_TRY(check_splits(weir_kernel_input(ctx, 0), splits));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, (int64_t[]){splits->count - 1}, &out));
  weir_status_t* status = encode_rows(ctx, out, &text);
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* encode_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* splits = weir_shape_input(ctx, 1);
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, splits, 1, NULL));
  const int64_t count = splits->rank < 0 ? -1 : splits->dims[0];
  if (count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Negative dimension size caused by subtracting 1 from 0");
  }
  return weir_shape_set_vector(ctx, 0, count < 0 ? -1 : count - 1);
}

static weir_status_t* script_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  for (int64_t i = 0; i < in->count; ++i) {
    WEIR_TENSOR_DATA(out, int32_t)[i] = weir_rune_script(WEIR_TENSOR_DATA(in, int32_t)[i]);
  }
  return NULL;
}

const weir_op_module_t weir_ops_string_unicode_encode = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "UnicodeEncode",
         .attrs = "errors: {'ignore', 'replace', 'strict'} = 'replace'; output_encoding: {'UTF-8', "
                  "'UTF-16-BE', 'UTF-32-BE'}; replacement_char: int = 65533; Tsplits: {int32, "
                  "int64} = DT_INT64",
         .inputs = "input_values: int32; input_splits: Tsplits",
         .outputs = "output: string",
         .summary = "Strings of ragged rows of characters",
         .infer_shape = encode_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = encode_cpu, .init = encode_init,
                                    .state_size = sizeof(encode_t))},
        {.name = "UnicodeScript",
         .inputs = "input: int32",
         .outputs = "output: int32",
         .summary = "The writing systems of characters, by ICU's numbers",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = script_cpu)},
        {0}}};
