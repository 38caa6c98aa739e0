// cross_columns.c — Combinations of features, and their hashes, which are TensorFlow's: models
// depend on them.
#include "ops/sparse/cross_columns.h"

#include <string.h>

#include "base/fingerprint.h"
#include "base/interrupt.h"
#include "base/siphash.h"
#include "base/string.h"

static uint64_t mix(uint64_t x) { return x ^ x >> 47; }

// Two fingerprints as one, which depends on their order.
static uint64_t join_fingerprints(uint64_t a, uint64_t b) {
  const uint64_t factor = 0xc6a4a7935bd1e995u;
  uint64_t joined = ((a ^ factor) ^ mix(b * factor) * factor) * factor;
  return mix(mix(joined) * factor);
}

static uint64_t feature_hash(const weir_cross_t* cross, const weir_cross_column_t* column,
                             int64_t at) {
  weir_view_t text;
  uint8_t low[4];
  if (weir_tensor_type(column->values) == WEIR_DTYPE_STRING) {
    text = weir_string_view(WEIR_TENSOR_DATA(column->values, weir_string_t) + at);
  } else {
    const uint64_t value = (uint64_t)WEIR_TENSOR_DATA(column->values, int64_t)[at];
    if (cross->kind == WEIR_CROSS_HASH || !column->starts) return value;
    // SparseCrossHashed takes four bytes of the number's eight in sparse columns.
    for (int i = 0; i < 4; ++i) low[i] = (uint8_t)(value >> 8 * i);
    text = weir_view(low, sizeof(low));
  }
  return cross->kind == WEIR_CROSS_HASH_STRONG ? weir_siphash(cross->salt, text.data, text.size)
                                               : weir_fingerprint64(text.data, text.size);
}

static int64_t combined_hash(const weir_cross_t* cross, int64_t row, const int64_t* pick) {
  uint64_t hash = cross->key;
  for (int c = 0; c < cross->count; ++c) {
    const weir_cross_column_t* column = &cross->columns[c];
    uint64_t own = feature_hash(cross, column, weir_cross_begin(column, row) + pick[c]);
    bool is_first = c == 0 && cross->kind != WEIR_CROSS_HASH;
    hash = is_first ? own : join_fingerprints(hash, own);
  }
  return (int64_t)(hash % (uint64_t)(cross->buckets > 0 ? cross->buckets : INT64_MAX));
}

static void append_text(const weir_cross_t* cross, int64_t row, const int64_t* pick,
                        weir_strbuf_t* out) {
  for (int c = 0; c < cross->count; ++c) {
    const weir_cross_column_t* column = &cross->columns[c];
    int64_t at = weir_cross_begin(column, row) + pick[c];
    if (c > 0) weir_strbuf_append(out, cross->separator.data, cross->separator.size);
    if (weir_tensor_type(column->values) == WEIR_DTYPE_STRING) {
      weir_view_t text = weir_string_view(WEIR_TENSOR_DATA(column->values, weir_string_t) + at);
      weir_strbuf_append(out, text.data, text.size);
    } else {
      weir_strbuf_printf(out, "%" PRId64, WEIR_TENSOR_DATA(column->values, int64_t)[at]);
    }
  }
}

weir_status_t* weir_cross_size(const weir_cross_t* cross, int64_t row, int64_t* out_size) {
  int64_t size = 1;
  for (int c = 0; c < cross->count; ++c) {
    int64_t width = weir_cross_width(&cross->columns[c], row);
    if (width > 0 && size > INT64_MAX / width)
      return WEIR_STATUS(INVALID_ARGUMENT, "Row %" PRId64 " has too many crossed features", row);
    size *= width;
  }
  *out_size = size;
  return NULL;
}

// The next combination, the last column first.
static void advance(const weir_cross_t* cross, int64_t row, int64_t* pick) {
  for (int c = cross->count - 1; c >= 0; --c) {
    if (++pick[c] < weir_cross_width(&cross->columns[c], row)) return;
    pick[c] = 0;
  }
}

static weir_status_t* write_row(const weir_cross_t* cross, int64_t row, int64_t size,
                                weir_tensor_t* out, int64_t at, int64_t* pick,
                                weir_strbuf_t* text) {
  for (int64_t i = 0; i < size; ++i, advance(cross, row, pick)) {
    WEIR_TRY(weir_interrupt_poll(i));
    if (cross->kind != WEIR_CROSS_TEXT) {
      WEIR_TENSOR_DATA(out, int64_t)[at + i] = combined_hash(cross, row, pick);
      continue;
    }
    text->size = 0;
    append_text(cross, row, pick, text);
    WEIR_TRY(weir_strbuf_finish(text));
    WEIR_TRY(
        weir_string_set(WEIR_TENSOR_DATA(out, weir_string_t) + at + i, text->data, text->size));
  }
  return NULL;
}

weir_status_t* weir_cross_row(const weir_cross_t* cross, int64_t row, int64_t size,
                              weir_tensor_t* out, int64_t at) {
  weir_strbuf_t text = {0};
  int64_t* pick = weir_calloc((size_t)cross->count, sizeof(*pick));
  if (!pick) return weir_out_of_memory();
  weir_status_t* status = write_row(cross, row, size, out, at, pick, &text);
  weir_strbuf_free(&text);
  weir_free(pick);
  return status;
}

void weir_cross_free(weir_cross_t* cross) {
  for (int c = 0; cross->columns && c < cross->count; ++c) weir_free(cross->columns[c].starts);
  weir_free(cross->columns);
}
