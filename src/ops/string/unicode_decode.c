// unicode_decode.c — UnicodeDecode, UnicodeDecodeWithOffsets, UnicodeTranscode: the characters of
// strings in any encoding, as numbers or in another encoding.
#include <limits.h>

#include "base/alloc.h"
#include "base/interrupt.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/string/unicode.h"

// What becomes of bytes that are no character.
typedef enum policy_t { POLICY_STRICT, POLICY_REPLACE, POLICY_IGNORE } policy_t;

typedef struct unicode_t {
  weir_view_t input_encoding;
  weir_encoding_t output_encoding;  // UnicodeTranscode
  policy_t policy;
  int32_t replacement;
  bool replaces_controls;
} unicode_t;

static weir_status_t* decode_init(const weir_kernel_init_t* init, void* state) {
  const weir_attrs_t attrs = init->node->attrs;
  const weir_view_t errors = weir_attrs_string(attrs, "errors");
  const int64_t replacement = weir_attrs_int(attrs, "replacement_char");
  unicode_t* u = state;
  if (replacement < INT32_MIN || replacement > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Attr replacement_char has value %lld out of range for an int32",
                       (long long)replacement);
  }
  if (replacement < 0 || replacement > WEIR_MAX_RUNE) {
    return WEIR_STATUS(INVALID_ARGUMENT, "replacement_char out of unicode codepoint range");
  }
  *u = (unicode_t){.input_encoding = weir_attrs_string(attrs, "input_encoding"),
                   .policy = weir_view_is(errors, "strict")    ? POLICY_STRICT
                             : weir_view_is(errors, "replace") ? POLICY_REPLACE
                                                               : POLICY_IGNORE,
                   .replacement = (int32_t)replacement,
                   .replaces_controls = weir_attrs_bool(attrs, "replace_control_characters")};
  weir_decoder_t decoder;
  WEIR_TRY(weir_decoder_open(u->input_encoding, &decoder));
  weir_decoder_close(&decoder);
  return NULL;
}

static bool is_control(const unicode_t* u, int32_t rune) {
  return u->replaces_controls && rune >= 0 && rune <= 0x1f;
}

static weir_status_t* bad_format(void) {
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid formatting on input string");
}

// ---- UnicodeDecode ----

typedef struct decoded_t {
  int32_t* runes;
  size_t count, capacity;
  int64_t* starts;
  size_t start_capacity;
} decoded_t;

static weir_status_t* decode_text(const unicode_t* u, weir_decoder_t* decoder, weir_view_t text,
                                  decoded_t* out) {
  int32_t rune = 0;
  weir_decoder_start(decoder, text);
  for (size_t start = 0; weir_decoder_next(decoder, &rune); start = decoder->at) {
    const bool is_odd = rune < 0 || is_control(u, rune);
    if (rune < 0 && u->policy == POLICY_STRICT) return bad_format();
    if (is_odd && u->policy == POLICY_IGNORE) continue;
    if (!WEIR_GROW(out->runes, out->capacity, out->count + 1) ||
        !WEIR_GROW(out->starts, out->start_capacity, out->count + 1)) {
      return weir_out_of_memory();
    }
    out->runes[out->count] = is_odd ? u->replacement : rune;
    out->starts[out->count++] = (int64_t)start;
  }
  return NULL;
}

static void set_split(weir_tensor_t* splits, int64_t i, size_t value) {
  if (splits->dtype == WEIR_DTYPE_INT32) {
    WEIR_TENSOR_DATA(splits, int32_t)[i] = (int32_t)value;
  } else {
    WEIR_TENSOR_DATA(splits, int64_t)[i] = (int64_t)value;
  }
}

static weir_status_t* decode_all(weir_kernel_ctx_t* ctx, weir_decoder_t* decoder, decoded_t* all) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t *splits = NULL, *runes = NULL, *starts = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, (int64_t[]){in->count + 1}, &splits));
  set_split(splits, 0, 0);
  for (int64_t i = 0; i < in->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    const weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(in, weir_string_t) + i);
    WEIR_TRY(decode_text(ctx->state, decoder, text, all));
    set_split(splits, i + 1, all->count);
  }
  const int64_t count = (int64_t)all->count;
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &count, &runes));
  if (count) memcpy(runes->data, all->runes, all->count * sizeof(*all->runes));
  if (ctx->output_count < 3) return NULL;
  WEIR_TRY(weir_kernel_output(ctx, 2, 1, &count, &starts));
  if (count) memcpy(starts->data, all->starts, all->count * sizeof(*all->starts));
  return NULL;
}

static weir_status_t* decode_cpu(weir_kernel_ctx_t* ctx) {
  weir_decoder_t decoder;
  decoded_t all = {.runes = NULL};
  WEIR_TRY(weir_decoder_open(((const unicode_t*)ctx->state)->input_encoding, &decoder));
  weir_status_t* status = decode_all(ctx, &decoder, &all);
  weir_free(all.runes);
  weir_free(all.starts);
  weir_decoder_close(&decoder);
  return status;
}

static weir_status_t* decode_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  int64_t rows = in->rank < 0 ? -1 : 1;
  for (int i = 0; i < in->rank && rows >= 0; ++i) {
    rows = in->dims[i] < 0 ? -1 : rows * in->dims[i];
  }
  WEIR_TRY(weir_shape_set_vector(ctx, 0, rows < 0 ? -1 : rows + 1));
  for (int i = 1; i < ctx->node->output_count; ++i) WEIR_TRY(weir_shape_set_vector(ctx, i, -1));
  return NULL;
}

// ---- UnicodeTranscode ----

static weir_encoding_t encoding_named(weir_view_t name) {
  return weir_view_is(name, "UTF-8")       ? WEIR_ENCODING_UTF8
         : weir_view_is(name, "UTF-16-BE") ? WEIR_ENCODING_UTF16_BE
                                           : WEIR_ENCODING_UTF32_BE;
}

static weir_status_t* transcode_init(const weir_kernel_init_t* init, void* state) {
  WEIR_TRY(decode_init(init, state));
  ((unicode_t*)state)->output_encoding =
      encoding_named(weir_attrs_string(init->node->attrs, "output_encoding"));
  return NULL;
}

static weir_status_t* transcode_text(const unicode_t* u, weir_decoder_t* decoder, weir_view_t text,
                                     weir_strbuf_t* out) {
  int32_t rune = 0;
  out->size = 0;
  weir_decoder_start(decoder, text);
  while (weir_decoder_next(decoder, &rune)) {
    if (rune < 0 || is_control(u, rune)) {
      if (u->policy == POLICY_STRICT) return bad_format();
      if (u->policy == POLICY_IGNORE) continue;
      rune = u->replacement;
    }
    weir_rune_put(u->output_encoding, rune, out);
  }
  return weir_strbuf_finish(out);
}

static weir_status_t* transcode_all(weir_kernel_ctx_t* ctx, weir_decoder_t* decoder,
                                    weir_strbuf_t* text) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  for (int64_t i = 0; i < in->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    WEIR_TRY(transcode_text(ctx->state, decoder,
                            weir_string_view(WEIR_TENSOR_DATA(in, weir_string_t) + i), text));
    WEIR_TRY(weir_string_set(WEIR_TENSOR_DATA(out, weir_string_t) + i, text->data, text->size));
  }
  return NULL;
}

static weir_status_t* transcode_cpu(weir_kernel_ctx_t* ctx) {
  weir_decoder_t decoder;
  weir_strbuf_t text = {0};
  WEIR_TRY(weir_decoder_open(((const unicode_t*)ctx->state)->input_encoding, &decoder));
  weir_status_t* status = transcode_all(ctx, &decoder, &text);
  weir_strbuf_free(&text);
  weir_decoder_close(&decoder);
  return status;
}

#define DECODING                                                                               \
  "input_encoding: string; errors: {'strict', 'replace', 'ignore'} = 'replace'; "              \
  "replacement_char: int = 65533; replace_control_characters: bool = false; Tsplits: {int32, " \
  "int64} = DT_INT64"

const weir_op_module_t weir_ops_string_unicode_decode = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "UnicodeDecode",
         .attrs = DECODING,
         .inputs = "input: string",
         .outputs = "row_splits: Tsplits; char_values: int32",
         .summary = "The characters of strings as numbers, a ragged row each",
         .infer_shape = decode_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = decode_cpu, .init = decode_init,
                                    .state_size = sizeof(unicode_t))},
        {.name = "UnicodeDecodeWithOffsets",
         .attrs = DECODING,
         .inputs = "input: string",
         .outputs = "row_splits: Tsplits; char_values: int32; char_to_byte_starts: int64",
         .summary = "The characters of strings and where each begins",
         .infer_shape = decode_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = decode_cpu, .init = decode_init,
                                    .state_size = sizeof(unicode_t))},
        {.name = "UnicodeTranscode",
         .attrs = "input_encoding: string; output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}; "
                  "errors: {'strict', 'replace', 'ignore'} = 'replace'; replacement_char: int = "
                  "65533; replace_control_characters: bool = false",
         .inputs = "input: string",
         .outputs = "output: string",
         .summary = "Strings in another encoding",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = transcode_cpu, .init = transcode_init,
                                    .state_size = sizeof(unicode_t))},
        {0}}};
