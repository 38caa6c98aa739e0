// ngrams.c — StringNGrams: runs of a few neighbouring strings of each row of a ragged tensor,
// joined.
#include <limits.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/string.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

typedef struct ngrams_t {
  weir_view_t separator, left_pad, right_pad;
  const int64_t* widths;
  size_t width_count;
  int64_t pad_width;  // negative: one less than the n-gram's width
  bool keeps_short;
} ngrams_t;

static weir_status_t* ngrams_init(const weir_kernel_init_t* init, void* state) {
  const weir_attrs_t attrs = init->node->attrs;
  const weir_attr_t* widths = weir_attrs_list(attrs, "ngram_widths");
  ngrams_t* g = state;
  *g = (ngrams_t){.separator = weir_attrs_string(attrs, "separator"),
                  .left_pad = weir_attrs_string(attrs, "left_pad"),
                  .right_pad = weir_attrs_string(attrs, "right_pad"),
                  .widths = widths->u.ints,
                  .width_count = widths->count,
                  .pad_width = weir_attrs_int(attrs, "pad_width"),
                  .keeps_short = weir_attrs_bool(attrs, "preserve_short_sequences")};
  if (g->pad_width < INT32_MIN || g->pad_width > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Attr pad_width has value %lld out of range for an int32",
                       (long long)g->pad_width);
  }
  for (size_t i = 0; i < g->width_count; ++i) {
    if (g->widths[i] > INT32_MAX || g->widths[i] < INT32_MIN) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Attr ngram_widths has value %lld out of range for an int32",
                         (long long)g->widths[i]);
    }
  }
  return NULL;
}

static int64_t padding(const ngrams_t* g, int64_t width) {
  return g->pad_width < 0 ? width - 1 : WEIR_MIN(g->pad_width, width - 1);
}

static int64_t ngram_count(const ngrams_t* g, int64_t length, int64_t width) {
  return WEIR_MAX(0, length + 2 * padding(g, width) - width + 1);
}

// A row that has no n-gram of any width is one whole, with its padding, where that is asked for.
static bool is_short(const ngrams_t* g, int64_t length, int64_t found) {
  return g->keeps_short && found == 0 && length > 0;
}

static int64_t row_count(const ngrams_t* g, int64_t length) {
  int64_t count = 0;
  for (size_t i = 0; i < g->width_count; ++i) count += ngram_count(g, length, g->widths[i]);
  return count + is_short(g, length, count);
}

static void put(weir_strbuf_t* text, weir_view_t view) {
  weir_strbuf_append(text, view.data, view.size);
}

// N-gram |index| of |count| with |width| parts.
static void append_ngram(const ngrams_t* g, const weir_string_t* row, int64_t index, int64_t count,
                         int64_t width, weir_strbuf_t* text) {
  const int64_t pad = padding(g, width);
  const int64_t left = WEIR_MAX(0, pad - index), right = WEIR_MAX(0, pad - (count - (index + 1)));
  const int64_t first = left > 0 ? 0 : index - pad, tokens = width - (left + right);
  bool is_first = true;
  for (int64_t i = 0; i < left; ++i) {
    put(text, g->left_pad);
    put(text, g->separator);
  }
  for (int64_t i = 0; i < tokens; ++i, is_first = false) {
    if (!is_first) put(text, g->separator);
    put(text, weir_string_view(&row[first + i]));
  }
  for (int64_t i = 0; i < right; ++i, is_first = false) {
    if (!is_first) put(text, g->separator);
    put(text, g->right_pad);
  }
}

static weir_status_t* write_ngrams(const ngrams_t* g, const weir_string_t* row, int64_t count,
                                   int64_t width, weir_string_t** out) {
  weir_strbuf_t text = {0};
  weir_status_t* status = NULL;
  for (int64_t i = 0; i < count && !status; ++i) {
    text.size = 0;
    append_ngram(g, row, i, count, width, &text);
    status = weir_interrupt_poll(i);
    if (!status) status = weir_strbuf_finish(&text);
    if (!status) status = weir_string_set((*out)++, text.data, text.size);
  }
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* write_row(const ngrams_t* g, const weir_string_t* row, int64_t length,
                                weir_string_t** out) {
  int64_t found = 0;
  for (size_t i = 0; i < g->width_count; ++i) {
    const int64_t count = ngram_count(g, length, g->widths[i]);
    WEIR_TRY(write_ngrams(g, row, count, g->widths[i], out));
    found += count;
  }
  if (!is_short(g, length, found)) return NULL;
  return write_ngrams(g, row, 1, length + 2 * g->pad_width, out);
}

static weir_status_t* check_splits(const weir_tensor_t* data, const weir_tensor_t* splits) {
  if (splits->count == 0) return NULL;
  int64_t previous = weir_tensor_int_at(splits, 0);
  if (previous != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "First split value must be 0, got %lld",
                       (long long)previous);
  }
  for (int64_t i = 1; i < splits->count; ++i) {
    const int64_t split = weir_tensor_int_at(splits, i);
    if (split < previous || split > data->count) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Invalid split value %lld, must be in [%lld, %lld]",
                         (long long)split, (long long)previous, (long long)data->count);
    }
    previous = split;
  }
  if (previous == data->count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Last split value must be data size. Expected %lld, got %lld",
                     (long long)data->count, (long long)previous);
}

static weir_status_t* check_widths(const ngrams_t* g) {
  for (size_t i = 0; i < g->width_count; ++i) {
    if (g->widths[i] <= 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "ngram_widths must contain positive values");
    }
  }
  if (!g->keeps_short || g->width_count > 0 || g->pad_width >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Pad width should be >= 0 when preserve_short_sequences is True and "
                     "ngram_widths are not provided, got %lld",
                     (long long)g->pad_width);
}

static void set_split(weir_tensor_t* splits, int64_t i, int64_t value) {
  if (splits->dtype == WEIR_DTYPE_INT32) {
    WEIR_TENSOR_DATA(splits, int32_t)[i] = (int32_t)value;
  } else {
    WEIR_TENSOR_DATA(splits, int64_t)[i] = value;
  }
}

// Counts the n-grams, row by row, into |out_splits|.
static weir_status_t* count_all(const ngrams_t* g, const weir_tensor_t* splits,
                                weir_tensor_t* out_splits, int64_t* out_count) {
  int64_t count = 0;
  set_split(out_splits, 0, 0);
  for (int64_t i = 1; i < splits->count; ++i) {
    count += row_count(g, weir_tensor_int_at(splits, i) - weir_tensor_int_at(splits, i - 1));
    set_split(out_splits, i, count);
  }
  // Padding makes much of little.
  const size_t size = (size_t)count * sizeof(weir_string_t);
  if (size >= WEIR_LARGE_BLOCK && weir_memory_lacks(size)) {
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "there is no memory for %lld n-grams", (long long)count);
  }
  *out_count = count;
  return NULL;
}

static weir_status_t* ngrams_cpu(weir_kernel_ctx_t* ctx) {
  const ngrams_t* g = ctx->state;
  const weir_tensor_t* data = weir_kernel_input(ctx, 0);
  const weir_tensor_t* splits = weir_kernel_input(ctx, 1);
  weir_tensor_t *out = NULL, *out_splits = NULL;
  int64_t count = 0;
  WEIR_TRY(check_widths(g));
  WEIR_TRY(check_splits(data, splits));
  WEIR_TRY(weir_kernel_output(ctx, 1, splits->rank, splits->dims, &out_splits));
  if (data->count == 0 || splits->count == 0) {
    memset(out_splits->data, 0, (size_t)splits->count * weir_dtype_size(weir_tensor_type(splits)));
    return weir_kernel_output(ctx, 0, data->rank, data->dims, &out);
  }
  WEIR_TRY(count_all(g, splits, out_splits, &count));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &count, &out));
  weir_string_t* next = out->data;
  for (int64_t i = 1; i < splits->count; ++i) {
    const int64_t begin = weir_tensor_int_at(splits, i - 1), end = weir_tensor_int_at(splits, i);
    WEIR_TRY(write_row(g, WEIR_TENSOR_DATA(data, weir_string_t) + begin, end - begin, &next));
  }
  return NULL;
}

static weir_status_t* ngrams_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, -1));
  return weir_shape_set(ctx, 1, weir_shape_input(ctx, 1));
}

const weir_op_module_t weir_ops_string_ngrams = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StringNGrams",
         .attrs = "separator: string; ngram_widths: list(int) >= 0; left_pad: string; right_pad: "
                  "string; pad_width: int; preserve_short_sequences: bool; Tsplits: {int32, int64} "
                  "= DT_INT64",
         .inputs = "data: string; data_splits: Tsplits",
         .outputs = "ngrams: string; ngrams_splits: Tsplits",
         .summary = "Runs of neighbouring strings of each row, joined",
         .infer_shape = ngrams_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = ngrams_cpu, .init = ngrams_init,
                                    .state_size = sizeof(ngrams_t))},
        {0}}};
