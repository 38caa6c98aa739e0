// string_case.c — StringLower, StringUpper, StringStrip: letters of the other case; no white space
// around.
#include "base/alloc.h"
#include "base/interrupt.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/string/unicode.h"

typedef weir_status_t* (*change_fn_t)(weir_view_t text, weir_string_t* out);

static weir_status_t* change_all(weir_kernel_ctx_t* ctx, change_fn_t change) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  for (int64_t i = 0; i < in->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    WEIR_TRY(change(weir_string_view(WEIR_TENSOR_DATA(in, weir_string_t) + i),
                    WEIR_TENSOR_DATA(out, weir_string_t) + i));
  }
  return NULL;
}

// ---- bytes ----

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static weir_status_t* strip(weir_view_t text, weir_string_t* out) {
  while (text.size > 0 && is_space(text.data[text.size - 1])) --text.size;
  while (text.size > 0 && is_space(text.data[0])) text = weir_view(text.data + 1, text.size - 1);
  return weir_string_set(out, text.data, text.size);
}

static weir_status_t* shift_letters(weir_view_t text, char first, int distance,
                                    weir_string_t* out) {
  char* to = weir_string_resize(out, text.size);
  if (!to) return weir_out_of_memory();
  for (size_t i = 0; i < text.size; ++i) {
    const char c = text.data[i];
    to[i] = c >= first && c < first + 26 ? (char)(c + distance) : c;
  }
  return NULL;
}

static weir_status_t* lower_bytes(weir_view_t text, weir_string_t* out) {
  return shift_letters(text, 'A', 'a' - 'A', out);
}
static weir_status_t* upper_bytes(weir_view_t text, weir_string_t* out) {
  return shift_letters(text, 'a', 'A' - 'a', out);
}

// ---- UTF-8 ----

typedef struct runes_t {
  int32_t* items;
  size_t count, capacity;
} runes_t;

// TensorFlow reads up to the first zero byte.
static weir_status_t* read_runes(weir_view_t text, runes_t* runes) {
  weir_decoder_t decoder = {.encoding = WEIR_ENCODING_UTF8};
  const char* zero = text.size ? memchr(text.data, 0, text.size) : NULL;
  weir_decoder_start(&decoder, zero ? weir_view(text.data, (size_t)(zero - text.data)) : text);
  int32_t rune = 0;
  while (weir_decoder_next(&decoder, &rune)) {
    if (!WEIR_GROW(runes->items, runes->capacity, runes->count + 1)) return weir_out_of_memory();
    runes->items[runes->count++] = rune < 0 ? WEIR_REPLACEMENT_RUNE : rune;
  }
  return NULL;
}

// Whether a letter stands before |at| (|step| -1) or after it (1), next to it but for what does not
// count.
static bool has_letter(const runes_t* runes, size_t at, int step) {
  for (at += (size_t)step; at < runes->count; at += (size_t)step) {
    if (!weir_rune_is_case_ignorable(runes->items[at])) return weir_rune_is_cased(runes->items[at]);
  }
  return false;
}

static int lower_at(const runes_t* runes, size_t i, int32_t out_runes[3]) {
  const int32_t sigma = 0x3a3, final_sigma = 0x3c2;
  if (runes->items[i] == sigma && has_letter(runes, i, -1) && !has_letter(runes, i, 1)) {
    out_runes[0] = final_sigma;
    return 1;
  }
  return weir_rune_lower(runes->items[i], out_runes);
}

static weir_status_t* change_runes(weir_view_t text, bool is_lower, weir_string_t* out) {
  runes_t runes = {.items = NULL};
  weir_strbuf_t changed = {0};
  weir_status_t* status = read_runes(text, &runes);
  for (size_t i = 0; i < runes.count && !status; ++i) {
    int32_t mapped[3];
    const int count =
        is_lower ? lower_at(&runes, i, mapped) : weir_rune_upper(runes.items[i], mapped);
    for (int j = 0; j < count; ++j) weir_rune_put(WEIR_ENCODING_UTF8, mapped[j], &changed);
  }
  if (!status) status = weir_strbuf_finish(&changed);
  if (!status) status = weir_string_set(out, changed.data, changed.size);
  weir_strbuf_free(&changed);
  weir_free(runes.items);
  return status;
}

static weir_status_t* lower_runes(weir_view_t text, weir_string_t* out) {
  return change_runes(text, true, out);
}
static weir_status_t* upper_runes(weir_view_t text, weir_string_t* out) {
  return change_runes(text, false, out);
}

// ---- kernels ----

typedef struct case_state_t {
  bool is_utf8;
} case_state_t;

static weir_status_t* case_init(const weir_kernel_init_t* init, void* state) {
  const weir_view_t encoding = weir_attrs_string(init->node->attrs, "encoding");
  ((case_state_t*)state)->is_utf8 = weir_view_is(encoding, "utf-8");
  if (encoding.size == 0 || ((case_state_t*)state)->is_utf8) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "only utf-8 or '' (no encoding) is supported, received %.*s",
                     WEIR_VIEW_ARG(encoding));
}

static weir_status_t* lower_cpu(weir_kernel_ctx_t* ctx) {
  return change_all(ctx, ((const case_state_t*)ctx->state)->is_utf8 ? lower_runes : lower_bytes);
}
static weir_status_t* upper_cpu(weir_kernel_ctx_t* ctx) {
  return change_all(ctx, ((const case_state_t*)ctx->state)->is_utf8 ? upper_runes : upper_bytes);
}
static weir_status_t* strip_cpu(weir_kernel_ctx_t* ctx) { return change_all(ctx, strip); }

#define CASE_OP(name_, text, fn)                                                              \
  {                                                                                           \
    .name = name_, .attrs = "encoding: string = ''", .inputs = "input: string",               \
    .outputs = "output: string", .summary = text, .infer_shape = weir_shape_fn_unchanged,     \
    .kernels =                                                                                \
        WEIR_CPU_KERNEL(.compute = fn, .init = case_init, .state_size = sizeof(case_state_t)) \
  }

const weir_op_module_t weir_ops_string_string_case = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){CASE_OP("StringLower", "Strings in lower case", lower_cpu),
                                   CASE_OP("StringUpper", "Strings in upper case", upper_cpu),
                                   {.name = "StringStrip",
                                    .inputs = "input: string",
                                    .outputs = "output: string",
                                    .summary = "Strings without white space around them",
                                    .infer_shape = weir_shape_fn_unchanged,
                                    .kernels = WEIR_CPU_KERNEL(.compute = strip_cpu)},
                                   {0}}};
