// regex_replace.c — RegexReplace, StaticRegexReplace: puts a text in place of what matches a
// pattern.
#include "base/interrupt.h"
#include "base/regex.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

typedef struct replacer_t {
  weir_regex_search_t* search;
  weir_view_t rewrite;  // "\1" is the text of group 1
  bool is_global;
  bool is_idle;  // names a group that the pattern lacks: nothing is replaced, as in RE2
} replacer_t;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static int greatest_group(weir_view_t rewrite) {
  int greatest = 0;
  for (size_t i = 0; i + 1 < rewrite.size; ++i) {
    if (rewrite.data[i] != '\\') continue;
    ++i;
    if (is_digit(rewrite.data[i])) greatest = WEIR_MAX(greatest, rewrite.data[i] - '0');
  }
  return greatest;
}

// False where a backslash is followed by neither a digit nor another; what was before it stays.
static bool put_rewrite(weir_view_t rewrite, weir_view_t text, const weir_regex_span_t* spans,
                        weir_strbuf_t* out) {
  for (size_t i = 0; i < rewrite.size; ++i) {
    if (rewrite.data[i] != '\\') {
      weir_strbuf_putc(out, rewrite.data[i]);
      continue;
    }
    const char c = ++i < rewrite.size ? rewrite.data[i] : 0;
    if (is_digit(c)) {
      const weir_regex_span_t span = spans[c - '0'];
      if (span.begin < span.end)
        weir_strbuf_append(out, text.data + span.begin, span.end - span.begin);
    } else if (c == '\\') {
      weir_strbuf_putc(out, c);
    } else {
      return false;
    }
  }
  return true;
}

// The bytes of the character at |at|; 1 where there is none.
static size_t rune_size(weir_view_t text, size_t at) {
  const uint8_t lead = (uint8_t)text.data[at];
  size_t size = lead < 0xc2 || lead > 0xf4 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (at + size > text.size) return 1;
  const uint8_t second = size > 1 ? (uint8_t)text.data[at + 1] : 0;
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90)) return 1;  // too long
  if (lead == 0xf4 && second > 0x8f) return 1;
  for (size_t i = 1; i < size; ++i) {
    if (((uint8_t)text.data[at + i] & 0xc0) != 0x80) return 1;
  }
  return size;
}

static void replace_first(const replacer_t* r, weir_view_t text, weir_strbuf_t* out) {
  weir_regex_span_t spans[WEIR_REGEX_MAX_GROUP + 1];
  if (weir_regex_search(r->search, text, 0, spans)) {
    weir_strbuf_append(out, text.data, spans[0].begin);
    if (put_rewrite(r->rewrite, text, spans, out)) {
      weir_strbuf_append(out, text.data + spans[0].end, text.size - spans[0].end);
      return;
    }
  }
  out->size = 0;
  weir_strbuf_append(out, text.data, text.size);
}

static weir_status_t* replace_all(const replacer_t* r, weir_view_t text, weir_strbuf_t* out) {
  weir_regex_span_t spans[WEIR_REGEX_MAX_GROUP + 1];
  size_t at = 0, last_end = SIZE_MAX;
  for (int64_t turn = 0; at <= text.size; ++turn) {
    WEIR_TRY(weir_interrupt_poll(turn));
    if (!weir_regex_search(r->search, text, at, spans)) break;
    if (spans[0].begin > at) weir_strbuf_append(out, text.data + at, spans[0].begin - at);
    if (spans[0].begin == last_end && spans[0].end == last_end) {
      // Nothing right after a match is no match: go on behind the next character.
      const size_t size = at < text.size ? rune_size(text, at) : 1;
      if (at < text.size) weir_strbuf_append(out, text.data + at, size);
      at += size;
      continue;
    }
    (void)put_rewrite(r->rewrite, text, spans, out);
    at = last_end = spans[0].end;
  }
  if (at < text.size) weir_strbuf_append(out, text.data + at, text.size - at);
  return NULL;
}

static weir_status_t* replace_strings(const replacer_t* r, const weir_tensor_t* in,
                                      weir_strbuf_t* text, weir_tensor_t* out) {
  for (int64_t i = 0; i < in->count; ++i) {
    const weir_view_t old = weir_string_view(WEIR_TENSOR_DATA(in, weir_string_t) + i);
    WEIR_TRY(weir_interrupt_poll(i));
    text->size = 0;
    if (r->is_idle) {
      weir_strbuf_append(text, old.data, old.size);
    } else if (r->is_global) {
      WEIR_TRY(replace_all(r, old, text));
    } else {
      replace_first(r, old, text);
    }
    WEIR_TRY(weir_strbuf_finish(text));
    WEIR_TRY(weir_string_set(WEIR_TENSOR_DATA(out, weir_string_t) + i, text->data, text->size));
  }
  return NULL;
}

static weir_status_t* replace(weir_kernel_ctx_t* ctx, const weir_regex_t* regex,
                              weir_view_t rewrite) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  replacer_t r = {.rewrite = rewrite,
                  .is_global = weir_attrs_bool(weir_kernel_attrs(ctx), "replace_global"),
                  .is_idle = greatest_group(rewrite) > weir_regex_group_count(regex)};
  weir_tensor_t* out = NULL;
  weir_strbuf_t text = {0};
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  WEIR_TRY(weir_regex_search_create(regex, &r.search));
  weir_status_t* status = replace_strings(&r, in, &text, out);
  weir_regex_search_destroy(r.search);
  weir_strbuf_free(&text);
  return status;
}

// ---- kernels ----

typedef struct static_t {
  weir_regex_t* regex;
} static_t;

static weir_status_t* static_init(const weir_kernel_init_t* init, void* state) {
  return weir_regex_create(weir_attrs_string(init->node->attrs, "pattern"),
                           &((static_t*)state)->regex);
}
static void static_deinit(void* state) { weir_regex_destroy(((static_t*)state)->regex); }

static weir_status_t* static_cpu(weir_kernel_ctx_t* ctx) {
  return replace(ctx, ((const static_t*)ctx->state)->regex,
                 weir_attrs_string(weir_kernel_attrs(ctx), "rewrite"));
}

static weir_status_t* scalar_text(const weir_kernel_ctx_t* ctx, int i, const char* name,
                                  weir_view_t* out_text) {
  const weir_tensor_t* t = weir_kernel_input(ctx, i);
  if (t->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be scalar, but received %s", name,
                       weir_tensor_shape_text(t, text));
  }
  *out_text = weir_string_view(t->data);
  return NULL;
}

static weir_status_t* replace_cpu(weir_kernel_ctx_t* ctx) {
  weir_view_t pattern, rewrite;
  weir_regex_t* regex = NULL;
  WEIR_TRY(scalar_text(ctx, 1, "Pattern", &pattern));
  WEIR_TRY(scalar_text(ctx, 2, "Rewrite", &rewrite));
  WEIR_TRY(weir_regex_create(pattern, &regex));
  weir_status_t* status = replace(ctx, regex, rewrite);
  weir_regex_destroy(regex);
  return status;
}

static weir_status_t* replace_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  return weir_shape_set(ctx, 0, weir_shape_input(ctx, 0));
}

const weir_op_module_t weir_ops_string_regex_replace = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RegexReplace",
         .attrs = "replace_global: bool = true",
         .inputs = "input: string; pattern: string; rewrite: string",
         .outputs = "output: string",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Replaces what matches a pattern",
         .infer_shape = replace_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = replace_cpu)},
        {.name = "StaticRegexReplace",
         .attrs = "pattern: string; rewrite: string; replace_global: bool = true",
         .inputs = "input: string",
         .outputs = "output: string",
         .summary = "Replaces what matches a fixed pattern",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = static_cpu, .state_size = sizeof(static_t),
                                    .init = static_init, .deinit = static_deinit)},
        {0}}};
