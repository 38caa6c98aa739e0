// dataset.c — Data sets in memory: batches of rows, in a new order every epoch.
#include <string.h>

#include "base/alloc.h"
#include "tensor/tensor.h"
#include "weir/input.h"

enum { DEFAULT_BATCH = 32 };

struct weir_dataset_t {
  weir_dataset_options_t options;
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
  if (count < 1) return WEIR_STATUS(INVALID_ARGUMENT, "a data set needs a tensor");
  for (int i = 0; i < count; ++i) {
    if (weir_tensor_rank(tensors[i]) < 1)
      return WEIR_STATUS(INVALID_ARGUMENT, "tensor %d of the data set is a scalar: no rows", i);
    if (weir_tensor_dim(tensors[i], 0) == weir_tensor_dim(tensors[0], 0)) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "tensor %d of the data set has %lld rows, tensor 0 %lld",
                       i, (long long)weir_tensor_dim(tensors[i], 0),
                       (long long)weir_tensor_dim(tensors[0], 0));
  }
  const int64_t rows = weir_tensor_dim(tensors[0], 0);
  if (batch < 1) return WEIR_STATUS(INVALID_ARGUMENT, "a batch of %lld rows", (long long)batch);
  if (rows >= (drop_remainder ? batch : 1)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%lld rows do not make a batch of %lld", (long long)rows,
                     (long long)batch);
}

weir_status_t* weir_dataset_create_with(weir_tensor_t* const* tensors, int count,
                                        const weir_dataset_options_t* options,
                                        weir_dataset_t** out_dataset) {
  options = options ? options : &(const weir_dataset_options_t){0};
  WEIR_REQUIRE_ARG(tensors);
  WEIR_REQUIRE_ARG(out_dataset);
  const int64_t batch = options->batch_size ? options->batch_size : DEFAULT_BATCH;
  WEIR_TRY(check(tensors, count, batch, options->drop_remainder));
  weir_dataset_t* dataset = weir_calloc(1, sizeof(*dataset));
  if (!dataset) return weir_out_of_memory();
  const int64_t rows = weir_tensor_dim(tensors[0], 0);
  *dataset = (weir_dataset_t){.options = *options, .rows = rows, .ordered = -1};
  dataset->options.batch_size = (int)batch;
  dataset->batches = options->drop_remainder ? rows / batch : (rows + batch - 1) / batch;
  dataset->tensors = weir_calloc((size_t)count, sizeof(*dataset->tensors));
  if (!options->no_shuffle)
    dataset->order = weir_alloc_array((size_t)rows, sizeof(*dataset->order));
  if (!dataset->tensors || (!dataset->order && !options->no_shuffle)) {
    weir_dataset_destroy(dataset);
    return weir_out_of_memory();
  }
  dataset->count = count;
  for (int i = 0; i < count; ++i) dataset->tensors[i] = weir_tensor_retain(tensors[i]);
  *out_dataset = dataset;
  return NULL;
}

void weir_dataset_destroy(weir_dataset_t* dataset) {
  if (!dataset) return;
  for (int i = 0; i < dataset->count; ++i) weir_tensor_release(dataset->tensors[i]);
  weir_free(dataset->tensors);
  weir_free(dataset->order);
  weir_free(dataset);
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
static void shuffle(weir_dataset_t* dataset, int64_t epoch) {
  uint64_t state = dataset->options.seed;
  state = draw(&state) + (uint64_t)epoch;
  for (int64_t i = 0; i < dataset->rows; ++i) dataset->order[i] = i;
  for (int64_t i = dataset->rows - 1; i > 0; --i) {
    const int64_t k = (int64_t)(draw(&state) % (uint64_t)(i + 1));
    const int64_t other = dataset->order[k];
    dataset->order[k] = dataset->order[i];
    dataset->order[i] = other;
  }
  dataset->ordered = epoch;
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

weir_status_t* weir_dataset_next(weir_dataset_t* dataset, weir_tensor_t** out_tensors) {
  WEIR_REQUIRE_ARG(dataset);
  WEIR_REQUIRE_ARG(out_tensors);
  const int64_t epoch = dataset->next / dataset->batches;
  const int epochs = dataset->options.epochs;
  if (epochs > 0 && epoch >= epochs)
    return WEIR_STATUS(OUT_OF_RANGE, "the data set ends after %d epochs", epochs);
  if (dataset->order && dataset->ordered != epoch) shuffle(dataset, epoch);
  const int64_t begin = dataset->next % dataset->batches * dataset->options.batch_size;
  const int64_t end = WEIR_MIN(begin + dataset->options.batch_size, dataset->rows);
  weir_status_t* status = NULL;
  int made = 0;
  for (; made < dataset->count && !status; made += !status) {
    weir_tensor_t* tensor = dataset->tensors[made];
    status = dataset->order
                 ? gather(tensor, dataset->order + begin, end - begin, &out_tensors[made])
                 : weir_tensor_slice(tensor, begin, end, &out_tensors[made]);
  }
  if (!status) ++dataset->next;
  for (int i = 0; status && i < made; ++i) weir_tensor_release(out_tensors[i]);
  return status;
}

int weir_dataset_tensor_count(const weir_dataset_t* dataset) {
  WEIR_ASSERT_ARG(dataset);
  return dataset->count;
}
int64_t weir_dataset_batch_count(const weir_dataset_t* dataset) {
  WEIR_ASSERT_ARG(dataset);
  return dataset->batches;
}
int64_t weir_dataset_epoch(const weir_dataset_t* dataset) {
  WEIR_ASSERT_ARG(dataset);
  return dataset->next / dataset->batches;
}
void weir_dataset_seek(weir_dataset_t* dataset, int64_t index) {
  WEIR_ASSERT_ARG(dataset);
  dataset->next = index > 0 ? index : 0;
}
