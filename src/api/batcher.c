// batcher.c — Batchers: tensors in memory by batches of rows, in a new order every epoch.
#include <string.h>

#include "base/alloc.h"
#include "tensor/tensor.h"
#include "weir/input.h"

enum { DEFAULT_BATCH = 32 };

struct weir_batcher_t {
  weir_batcher_options_t options;
  weir_tensor_t** tensors;  // retained
  int count;
  int64_t rows;
  int64_t batches;  // an epoch
  int64_t next;     // batch, over all epochs
  int64_t ordered;  // the epoch |order| is of; -1: none
  int64_t* order;   // of rows; NULL when they are not shuffled
};

static weir_status_t* check(weir_tensor_t* const* tensors, int count, int64_t batch,
                            bool drop_remainder) {
  if (count < 1) return WEIR_STATUS(INVALID_ARGUMENT, "a batcher needs a tensor");
  for (int i = 0; i < count; ++i) {
    if (weir_tensor_rank(tensors[i]) < 1)
      return WEIR_STATUS(INVALID_ARGUMENT, "tensor %d of the batcher is a scalar: no rows", i);
    if (weir_tensor_dim(tensors[i], 0) == weir_tensor_dim(tensors[0], 0)) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "tensor %d of the batcher has %lld rows, tensor 0 %lld", i,
                       (long long)weir_tensor_dim(tensors[i], 0),
                       (long long)weir_tensor_dim(tensors[0], 0));
  }
  const int64_t rows = weir_tensor_dim(tensors[0], 0);
  if (batch < 1) return WEIR_STATUS(INVALID_ARGUMENT, "a batch of %lld rows", (long long)batch);
  if (rows >= (drop_remainder ? batch : 1)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%lld rows do not make a batch of %lld", (long long)rows,
                     (long long)batch);
}

weir_status_t* weir_batcher_create_with(weir_tensor_t* const* tensors, int count,
                                        const weir_batcher_options_t* options,
                                        weir_batcher_t** out_batcher) {
  options = options ? options : &(const weir_batcher_options_t){0};
  WEIR_REQUIRE_ARG(tensors);
  WEIR_REQUIRE_ARG(out_batcher);
  const int64_t batch = options->batch_size ? options->batch_size : DEFAULT_BATCH;
  WEIR_TRY(check(tensors, count, batch, options->drop_remainder));
  weir_batcher_t* batcher = weir_calloc(1, sizeof(*batcher));
  if (!batcher) return weir_out_of_memory();
  const int64_t rows = weir_tensor_dim(tensors[0], 0);
  *batcher = (weir_batcher_t){.options = *options, .rows = rows, .ordered = -1};
  batcher->options.batch_size = (int)batch;
  batcher->batches = options->drop_remainder ? rows / batch : (rows + batch - 1) / batch;
  batcher->tensors = weir_calloc((size_t)count, sizeof(*batcher->tensors));
  if (!options->no_shuffle)
    batcher->order = weir_alloc_array((size_t)rows, sizeof(*batcher->order));
  if (!batcher->tensors || (!batcher->order && !options->no_shuffle)) {
    weir_batcher_destroy(batcher);
    return weir_out_of_memory();
  }
  batcher->count = count;
  for (int i = 0; i < count; ++i) batcher->tensors[i] = weir_tensor_retain(tensors[i]);
  *out_batcher = batcher;
  return NULL;
}

void weir_batcher_destroy(weir_batcher_t* batcher) {
  if (!batcher) return;
  for (int i = 0; i < batcher->count; ++i) weir_tensor_release(batcher->tensors[i]);
  weir_free(batcher->tensors);
  weir_free(batcher->order);
  weir_free(batcher);
}

// ---- orders ----

// SplitMix64: every seed gives a good sequence, also those that differ by one.
static uint64_t draw(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The order of an epoch depends on seed and epoch alone, so that a resumed run goes on alike.
static void shuffle(weir_batcher_t* batcher, int64_t epoch) {
  uint64_t state = batcher->options.seed;
  state = draw(&state) + (uint64_t)epoch;
  for (int64_t i = 0; i < batcher->rows; ++i) batcher->order[i] = i;
  for (int64_t i = batcher->rows - 1; i > 0; --i) {
    const int64_t k = (int64_t)(draw(&state) % (uint64_t)(i + 1));
    const int64_t other = batcher->order[k];
    batcher->order[k] = batcher->order[i];
    batcher->order[i] = other;
  }
  batcher->ordered = epoch;
}

// ---- batches ----

static weir_status_t* copy_strings(const weir_tensor_t* from, int64_t row, int64_t width,
                                   weir_tensor_t* to, int64_t at) {
  for (int64_t i = 0; i < width; ++i) {
    size_t size = 0;
    const char* text = weir_tensor_string(from, row * width + i, &size);
    WEIR_TRY(weir_tensor_set_string(to, at * width + i, text, size));
  }
  return NULL;
}

static weir_status_t* gather(const weir_tensor_t* from, const int64_t* rows, int64_t count,
                             weir_tensor_t** out_tensor) {
  int64_t dims[WEIR_MAX_RANK];
  const int rank = weir_tensor_rank(from);
  for (int i = 0; i < rank; ++i) dims[i] = i ? weir_tensor_dim(from, i) : count;
  weir_tensor_t* to = NULL;
  weir_status_t* status = NULL;
  WEIR_TRY(weir_tensor_create(weir_tensor_dtype(from), rank, dims, &to));
  const int64_t width = count ? weir_tensor_count(to) / count : 0;
  const size_t size = count ? weir_tensor_byte_size(to) / (size_t)count : 0;
  const bool is_string = weir_tensor_dtype(from) == WEIR_DTYPE_STRING;
  for (int64_t i = 0; i < count && !status; ++i) {
    if (is_string) status = copy_strings(from, rows[i], width, to, i);
    else if (size)
      memcpy((char*)weir_tensor_data(to) + (size_t)i * size,
             (const char*)weir_tensor_data(from) + (size_t)rows[i] * size, size);
  }
  if (status) weir_tensor_release(to);
  else *out_tensor = to;
  return status;
}

weir_status_t* weir_batcher_next(weir_batcher_t* batcher, weir_tensor_t** out_tensors) {
  WEIR_REQUIRE_ARG(batcher);
  WEIR_REQUIRE_ARG(out_tensors);
  const int64_t epoch = batcher->next / batcher->batches;
  const int epochs = batcher->options.epochs;
  if (epochs > 0 && epoch >= epochs)
    return WEIR_STATUS(OUT_OF_RANGE, "the batcher ends after %d epochs", epochs);
  if (batcher->order && batcher->ordered != epoch) shuffle(batcher, epoch);
  const int64_t begin = batcher->next % batcher->batches * batcher->options.batch_size;
  const int64_t end = WEIR_MIN(begin + batcher->options.batch_size, batcher->rows);
  weir_status_t* status = NULL;
  int made = 0;
  for (; made < batcher->count && !status; made += !status) {
    weir_tensor_t* tensor = batcher->tensors[made];
    status = batcher->order
                 ? gather(tensor, batcher->order + begin, end - begin, &out_tensors[made])
                 : weir_tensor_slice(tensor, begin, end, &out_tensors[made]);
  }
  if (!status) ++batcher->next;
  for (int i = 0; status && i < made; ++i) weir_tensor_release(out_tensors[i]);
  return status;
}

int weir_batcher_tensor_count(const weir_batcher_t* batcher) {
  WEIR_ASSERT_ARG(batcher);
  return batcher->count;
}
int64_t weir_batcher_batch_count(const weir_batcher_t* batcher) {
  WEIR_ASSERT_ARG(batcher);
  return batcher->batches;
}
int64_t weir_batcher_epoch(const weir_batcher_t* batcher) {
  WEIR_ASSERT_ARG(batcher);
  return batcher->next / batcher->batches;
}
void weir_batcher_seek(weir_batcher_t* batcher, int64_t index) {
  WEIR_ASSERT_ARG(batcher);
  batcher->next = index > 0 ? index : 0;
}
