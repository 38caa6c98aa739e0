// candidate_sampler.c — UniformCandidateSampler, LogUniformCandidateSampler, ComputeAccidentalHits:
// negative classes for losses over many classes.
#include <float.h>
#include <limits.h>
#include <math.h>

#include "base/map.h"
#include "kernel/random/random.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

// ---- a table from classes to places, of a size known beforehand ----

typedef struct table_t {
  int64_t* keys;
  int64_t* places;  // place + 1; 0 is a free slot
  size_t mask;
} table_t;

static void table_free(table_t* table) {
  weir_free(table->keys);
  weir_free(table->places);
}

static weir_status_t* table_init(table_t* table, int64_t count) {
  size_t slots = 8;
  while (slots < 2 * (size_t)count) slots *= 2;
  table->mask = slots - 1;
  table->keys = weir_alloc_array(slots, sizeof(int64_t));
  table->places = weir_calloc(slots, sizeof(int64_t));
  return table->keys && table->places ? NULL : weir_out_of_memory();
}

// The slot that holds |key|, or the free one where it belongs.
static size_t table_slot(const table_t* table, int64_t key) {
  size_t slot = weir_hash_mix((uint64_t)key) & table->mask;
  while (table->places[slot] != 0 && table->keys[slot] != key) slot = (slot + 1) & table->mask;
  return slot;
}

// ---- samplers ----

typedef struct sampler_t {
  weir_random_state_t random;
  int64_t (*draw)(const struct sampler_t* sampler, weir_random_words_t* words);
  float (*probability)(const struct sampler_t* sampler, int64_t value);
  int64_t range;
  double log_range;
  int64_t true_count;  // classes a row
  int64_t sample_count;
  bool is_unique;
} sampler_t;

static uint64_t draw_bits(weir_random_words_t* words) {
  uint64_t low = weir_random_word(words);
  return low | (uint64_t)weir_random_word(words) << 32;
}

// Rejects the lowest numbers so that every remainder is equally likely.
static int64_t uniform_draw(const sampler_t* sampler, weir_random_words_t* words) {
  uint64_t range = (uint64_t)sampler->range;
  if ((range & (range - 1)) == 0) return (int64_t)(draw_bits(words) & (range - 1));
  const uint64_t rejected = UINT64_MAX % range + 1;
  uint64_t bits = draw_bits(words);
  while (bits < rejected) bits = draw_bits(words);
  return (int64_t)(bits % range);
}

static float uniform_probability(const sampler_t* sampler, int64_t value) {
  (void)value;
  return (float)(1.0 / (double)sampler->range);
}

static int64_t log_uniform_draw(const sampler_t* sampler, weir_random_words_t* words) {
  double value = exp(weir_random_double(words) * sampler->log_range);
  if (value >= 0x1p63) return 0;  // only by rounding, for a range next to the largest integer
  return ((int64_t)value - 1) % sampler->range;
}

static float log_uniform_probability(const sampler_t* sampler, int64_t value) {
  return (float)(log(((double)value + 2.0) / ((double)value + 1.0)) / sampler->log_range);
}

static weir_status_t* sampler_init(const weir_kernel_init_t* init, sampler_t* sampler) {
  weir_attrs_t attrs = init->node->attrs;
  weir_random_state_init(&sampler->random, weir_attrs_int(attrs, "seed"),
                         weir_attrs_int(attrs, "seed2"));
  sampler->range = weir_attrs_int(attrs, "range_max");
  sampler->log_range = log1p((double)sampler->range);
  sampler->true_count = weir_attrs_int(attrs, "num_true");
  sampler->sample_count = weir_attrs_int(attrs, "num_sampled");
  sampler->is_unique = weir_attrs_bool(attrs, "unique");
  if (sampler->true_count > INT32_MAX || sampler->sample_count > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Attr num_true or num_sampled has a value out of range for an int32");
  }
  return NULL;
}

static weir_status_t* uniform_init(const weir_kernel_init_t* init, void* state) {
  sampler_t* sampler = state;
  sampler->draw = uniform_draw;
  sampler->probability = uniform_probability;
  return sampler_init(init, sampler);
}

static weir_status_t* log_uniform_init(const weir_kernel_init_t* init, void* state) {
  sampler_t* sampler = state;
  sampler->draw = log_uniform_draw;
  sampler->probability = log_uniform_probability;
  return sampler_init(init, sampler);
}

static void sampler_deinit(void* state) { weir_random_state_deinit(&((sampler_t*)state)->random); }

static weir_status_t* check_classes(const sampler_t* sampler, const weir_tensor_t* classes) {
  if (classes->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "true_classes must be a matrix");
  }
  if (classes->dims[1] != sampler->true_count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "true_classes must have num_true columns, expected: %lld was: %lld",
                       (long long)classes->dims[1], (long long)sampler->true_count);
  }
  if (sampler->is_unique && sampler->sample_count > sampler->range) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Sampler's range is too small.");
  }
  const int64_t* values = classes->data;
  for (int64_t i = 0; i < classes->count; ++i) {
    if (values[i] < 0 || values[i] >= sampler->range) {
      return WEIR_STATUS(INVALID_ARGUMENT, "`true_candidate` out of range [0, %lld), received %lld",
                         (long long)sampler->range, (long long)values[i]);
    }
  }
  return NULL;
}

// Draws until all are different.
static weir_status_t* draw_unique(const sampler_t* sampler, weir_random_words_t* words,
                                  int64_t* samples, int64_t* out_tries) {
  table_t used = {0};
  int64_t tries = 0, found = 0;
  weir_status_t* status = table_init(&used, sampler->sample_count);
  if (status) goto done;
  while (found < sampler->sample_count) {
    if (++tries == INT32_MAX) {
      status = WEIR_STATUS(RESOURCE_EXHAUSTED, "found only %lld of %lld unique candidates",
                           (long long)found, (long long)sampler->sample_count);
      goto done;
    }
    int64_t value = sampler->draw(sampler, words);
    size_t slot = table_slot(&used, value);
    if (used.places[slot] != 0) continue;
    used.keys[slot] = value;
    used.places[slot] = 1;
    samples[found++] = value;
  }
  *out_tries = tries;
done:
  table_free(&used);
  return status;
}

// How often each value is expected among the samples. For unique ones an approximation by the tries
// it took: 1 - (1 - p)^tries.
static void expect(const sampler_t* sampler, int64_t tries, const int64_t* values, int64_t count,
                   float* expected) {
  for (int64_t i = 0; i < count; ++i) {
    float p = sampler->probability(sampler, values[i]);
    expected[i] =
        tries == sampler->sample_count ? p * (float)tries : -expm1f((float)tries * log1pf(-p));
  }
}

static weir_status_t* sampler_cpu(weir_kernel_ctx_t* ctx) {
  sampler_t* sampler = ctx->state;
  const weir_tensor_t* classes = weir_kernel_input(ctx, 0);
  const int64_t count = sampler->sample_count;
  weir_tensor_t *samples = NULL, *true_expected = NULL, *sampled_expected = NULL;
  WEIR_TRY(check_classes(sampler, classes));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &count, &samples));
  WEIR_TRY(weir_kernel_output(ctx, 1, 2, classes->dims, &true_expected));
  WEIR_TRY(weir_kernel_output(ctx, 2, 1, &count, &sampled_expected));
  // 2048 words a sample, as TensorFlow reserves.
  weir_random_words_t words =
      weir_random_words(weir_random_reserve(&sampler->random, 512 * (uint64_t)count));
  int64_t* values = samples->data;
  int64_t tries = count;
  if (sampler->is_unique) {
    WEIR_TRY(draw_unique(sampler, &words, values, &tries));
  } else {
    for (int64_t i = 0; i < count; ++i) values[i] = sampler->draw(sampler, &words);
  }
  expect(sampler, tries, values, count, sampled_expected->data);
  expect(sampler, tries, classes->data, classes->count, true_expected->data);
  return NULL;
}

static weir_status_t* sampler_shape(weir_shape_ctx_t* ctx) {
  weir_attrs_t attrs = weir_shape_attrs(ctx);
  const weir_shape_t* classes = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &classes));
  const int64_t dims[2] = {weir_shape_dim(classes, 0), weir_attrs_int(attrs, "num_true")};
  WEIR_TRY(weir_shape_set_vector(ctx, 0, weir_attrs_int(attrs, "num_sampled")));
  WEIR_TRY(weir_shape_set_dims(ctx, 1, 2, dims));
  return weir_shape_set_vector(ctx, 2, weir_attrs_int(attrs, "num_sampled"));
}

// ---- accidental hits ----

typedef struct hits_t {
  const weir_tensor_t* classes;
  table_t table;  // of the sampled candidates
} hits_t;

static int64_t count_hits(const hits_t* h) {
  const int64_t* values = h->classes->data;
  int64_t count = 0;
  for (int64_t i = 0; i < h->classes->count; ++i) {
    count += h->table.places[table_slot(&h->table, values[i])] != 0;
  }
  return count;
}

static void write_hits(const hits_t* h, int32_t* rows, int64_t* ids, float* weights) {
  const int64_t* values = h->classes->data;
  int64_t at = 0;
  for (int64_t i = 0; i < h->classes->count; ++i) {
    int64_t place = h->table.places[table_slot(&h->table, values[i])];
    if (place == 0) continue;
    rows[at] = (int32_t)(i / h->classes->dims[1]);
    ids[at] = place - 1;
    weights[at++] = -FLT_MAX;
  }
}

// Of a candidate sampled more than once the last place counts.
static void fill_table(table_t* table, const weir_tensor_t* sampled) {
  const int64_t* values = sampled->data;
  for (int64_t i = 0; i < sampled->count; ++i) {
    size_t slot = table_slot(table, values[i]);
    table->keys[slot] = values[i];
    table->places[slot] = i + 1;
  }
}

static weir_status_t* hits_cpu(weir_kernel_ctx_t* ctx) {
  hits_t h = {.classes = weir_kernel_input(ctx, 0)};
  const weir_tensor_t* sampled = weir_kernel_input(ctx, 1);
  weir_tensor_t *rows = NULL, *ids = NULL, *weights = NULL;
  if (h.classes->rank != 2 ||
      h.classes->dims[1] != weir_attrs_int(weir_kernel_attrs(ctx), "num_true")) {
    return WEIR_STATUS(INVALID_ARGUMENT, "true_candidates must be a batch_size * num_true matrix");
  }
  if (sampled->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "sampled_candidates must be a vector, which is typically an output from "
                       "CandidateSampler");
  }
  weir_status_t* status = table_init(&h.table, sampled->count);
  if (status) goto done;
  fill_table(&h.table, sampled);
  const int64_t count = count_hits(&h);
  status = weir_kernel_output(ctx, 0, 1, &count, &rows);
  if (status) goto done;
  status = weir_kernel_output(ctx, 1, 1, &count, &ids);
  if (status) goto done;
  status = weir_kernel_output(ctx, 2, 1, &count, &weights);
  if (status) goto done;
  write_hits(&h, rows->data, ids->data, weights->data);
done:
  table_free(&h.table);
  return status;
}

static weir_status_t* hits_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* classes = NULL;
  const int64_t num_true = weir_attrs_int(weir_shape_attrs(ctx), "num_true");
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &classes));
  const int64_t columns = weir_shape_dim(classes, 1);
  if (columns >= 0 && columns != num_true) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Dimension must be %lld but is %lld", (long long)num_true,
                       (long long)columns);
  }
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  for (int i = 0; i < 3; ++i) WEIR_TRY(weir_shape_set_vector(ctx, i, -1));
  return NULL;
}

#define SAMPLER_ATTRS                                                                        \
  "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; seed: int " \
  "= 0; seed2: int = 0"
#define SAMPLER_OUTPUTS \
  "sampled_candidates: int64; true_expected_count: float; sampled_expected_count: float"

const weir_op_module_t weir_ops_random_candidate_sampler = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "UniformCandidateSampler",
         .attrs = SAMPLER_ATTRS,
         .inputs = "true_classes: int64",
         .outputs = SAMPLER_OUTPUTS,
         .flags = WEIR_OP_STATEFUL,
         .summary = "Samples classes, all equally likely",
         .infer_shape = sampler_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = sampler_cpu, .state_size = sizeof(sampler_t),
                                    .init = uniform_init, .deinit = sampler_deinit)},
        {.name = "LogUniformCandidateSampler",
         .attrs = SAMPLER_ATTRS,
         .inputs = "true_classes: int64",
         .outputs = SAMPLER_OUTPUTS,
         .flags = WEIR_OP_STATEFUL,
         .summary = "Samples classes, the first ones more likely, as in a vocabulary by frequency",
         .infer_shape = sampler_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = sampler_cpu, .state_size = sizeof(sampler_t),
                                    .init = log_uniform_init, .deinit = sampler_deinit)},
        {.name = "ComputeAccidentalHits",
         .attrs = "num_true: int; seed: int = 0; seed2: int = 0",
         .inputs = "true_classes: int64; sampled_candidates: int64",
         .outputs = "indices: int32; ids: int64; weights: float",
         .summary = "Finds true classes among sampled candidates",
         .infer_shape = hits_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = hits_cpu)},
        {0}}};
