// string_split.c — StringSplit, StringSplitV2: the pieces of strings as a sparse matrix, a row
// each.
#include <limits.h>

#include "base/alloc.h"
#include "base/interrupt.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

typedef struct pieces_t {
  weir_view_t* items;
  size_t count, capacity;
} pieces_t;

static weir_status_t* add_piece(pieces_t* pieces, const char* begin, const char* end) {
  if (!WEIR_GROW(pieces->items, pieces->capacity, pieces->count + 1)) return weir_out_of_memory();
  pieces->items[pieces->count++] = weir_view(begin, (size_t)(end - begin));
  return NULL;
}

typedef struct splitter_t {
  weir_view_t separator;
  bool skips_empty;  // V1
  int max_split;     // V2; negative: any number
  weir_status_t* (*split)(const struct splitter_t* s, weir_view_t text, pieces_t* pieces);
} splitter_t;

// V1: every byte of the separator separates; an empty one separates all bytes. An empty text
// is no piece, not even an empty one, as in TensorFlow.
static weir_status_t* split_at_bytes(const splitter_t* s, weir_view_t text, pieces_t* pieces) {
  const char* end = text.data + text.size;
  if (s->separator.size == 0) {
    for (const char* c = text.data; c < end; ++c) WEIR_TRY(add_piece(pieces, c, c + 1));
    return NULL;
  }
  if (text.size == 0) return NULL;
  const char* begin = text.data;
  for (const char* c = text.data;; ++c) {
    if (c < end && !memchr(s->separator.data, *c, s->separator.size)) continue;
    if (c > begin || !s->skips_empty) WEIR_TRY(add_piece(pieces, begin, c));
    if (c == end) return NULL;
    begin = c + 1;
  }
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static const char* skip_spaces(const char* at, const char* end) {
  while (at < end && is_space(*at)) ++at;
  return at;
}

// V2 without a separator: at runs of white space, none of which is part of a piece.
static weir_status_t* split_at_spaces(const splitter_t* s, weir_view_t text, pieces_t* pieces) {
  const char* end = text.data + text.size;
  const char* at = skip_spaces(text.data, end);
  for (int done = 1; at < end; ++done) {
    const char* begin = at;
    while (at < end && !is_space(*at)) ++at;
    WEIR_TRY(add_piece(pieces, begin, at));
    at = skip_spaces(at, end);
    if (done == s->max_split) return add_piece(pieces, at, end);
  }
  return NULL;
}

static const char* find(weir_view_t needle, const char* at, const char* end) {
  for (; (size_t)(end - at) >= needle.size; ++at) {
    at = memchr(at, needle.data[0], (size_t)(end - at));
    if (!at || (size_t)(end - at) < needle.size) return NULL;
    if (memcmp(at, needle.data, needle.size) == 0) return at;
  }
  return NULL;
}

// V2: at the separator as a whole.
static weir_status_t* split_at_text(const splitter_t* s, weir_view_t text, pieces_t* pieces) {
  const char* end = text.data + text.size;
  const char* at = text.data;
  if (s->max_split == 0) return add_piece(pieces, at, end);
  if (s->separator.size == 0) return split_at_spaces(s, text, pieces);
  for (int done = 0; done != s->max_split && at < end; ++done) {
    const char* hit = find(s->separator, at, end);
    if (!hit) break;
    WEIR_TRY(add_piece(pieces, at, hit));
    at = hit + s->separator.size;
  }
  return add_piece(pieces, at, end);
}

static weir_status_t* write_pieces(weir_kernel_ctx_t* ctx, const pieces_t* pieces,
                                   const int64_t* row_sizes) {
  const int64_t rows = weir_kernel_input(ctx, 0)->count, count = (int64_t)pieces->count;
  weir_tensor_t *indices = NULL, *values = NULL, *shape = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, (int64_t[]){count, 2}, &indices));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, &count, &values));
  WEIR_TRY(weir_kernel_output(ctx, 2, 1, (int64_t[]){2}, &shape));
  int64_t* index = indices->data;
  int64_t most = 0, at = 0;
  for (int64_t i = 0; i < rows; ++i) {
    most = WEIR_MAX(most, row_sizes[i]);
    for (int64_t j = 0; j < row_sizes[i]; ++j, ++at) {
      *index++ = i;
      *index++ = j;
      const weir_view_t piece = pieces->items[at];
      WEIR_TRY(
          weir_string_set(WEIR_TENSOR_DATA(values, weir_string_t) + at, piece.data, piece.size));
    }
  }
  WEIR_TENSOR_DATA(shape, int64_t)[0] = rows;
  WEIR_TENSOR_DATA(shape, int64_t)[1] = most;
  return NULL;
}

static weir_status_t* split_rows(const splitter_t* s, const weir_tensor_t* input, pieces_t* pieces,
                                 int64_t* row_sizes) {
  for (int64_t i = 0; i < input->count; ++i) {
    WEIR_TRY(weir_interrupt_poll(i));
    const size_t before = pieces->count;
    WEIR_TRY(s->split(s, weir_string_view(WEIR_TENSOR_DATA(input, weir_string_t) + i), pieces));
    row_sizes[i] = (int64_t)(pieces->count - before);
  }
  return NULL;
}

static weir_status_t* split_all(weir_kernel_ctx_t* ctx, splitter_t* s, const char* separator_name) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  const weir_tensor_t* separator = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (input->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be a vector, got shape: %s",
                       weir_tensor_shape_text(input, text));
  }
  if (separator->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar, got shape: %s", separator_name,
                       weir_tensor_shape_text(separator, text));
  }
  s->separator = weir_string_view(separator->data);
  pieces_t pieces = {.items = NULL};
  int64_t* row_sizes = weir_alloc_array((size_t)input->count, sizeof(*row_sizes));
  weir_status_t* status =
      row_sizes ? split_rows(s, input, &pieces, row_sizes) : weir_out_of_memory();
  if (!status) status = write_pieces(ctx, &pieces, row_sizes);
  weir_free(pieces.items);
  weir_free(row_sizes);
  return status;
}

static weir_status_t* split_cpu(weir_kernel_ctx_t* ctx) {
  splitter_t s = {.skips_empty = weir_attrs_bool(weir_kernel_attrs(ctx), "skip_empty"),
                  .split = split_at_bytes};
  return split_all(ctx, &s, "delimiter");
}

static weir_status_t* split_v2_init(const weir_kernel_init_t* init, void* state) {
  const int64_t max_split = weir_attrs_int(init->node->attrs, "maxsplit");
  if (max_split < INT32_MIN || max_split > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Attr maxsplit has value %lld out of range for an int32",
                       (long long)max_split);
  }
  *(int*)state = (int)WEIR_MAX(max_split, -1);
  return NULL;
}

static weir_status_t* split_v2_cpu(weir_kernel_ctx_t* ctx) {
  splitter_t s = {.max_split = *(const int*)ctx->state, .split = split_at_text};
  return split_all(ctx, &s, "sep");
}

static weir_status_t* split_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  WEIR_TRY(weir_shape_set_dims(ctx, 0, 2, (int64_t[]){-1, 2}));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, -1));
  return weir_shape_set_vector(ctx, 2, 2);
}

const weir_op_module_t weir_ops_string_string_split = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StringSplit",
         .attrs = "skip_empty: bool = true",
         .inputs = "input: string; delimiter: string",
         .outputs = "indices: int64; values: string; shape: int64",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Splits strings at any of some bytes",
         .infer_shape = split_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = split_cpu)},
        {.name = "StringSplitV2",
         .attrs = "maxsplit: int = -1",
         .inputs = "input: string; sep: string",
         .outputs = "indices: int64; values: string; shape: int64",
         .summary = "Splits strings at a separator, or at white space",
         .infer_shape = split_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = split_v2_cpu, .init = split_v2_init,
                                    .state_size = sizeof(int))},
        {0}}};
