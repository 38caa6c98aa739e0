// candidate_sampler.c — UniformCandidateSampler, LogUniformCandidateSampler,
// FixedUnigramCandidateSampler, AllCandidateSampler, ComputeAccidentalHits: negative classes for
// losses over many classes.
#include <float.h>
#include <limits.h>
#include <math.h>

#include "base/map.h"
#include "base/string.h"
#include "file/fs.h"
#include "ops/random/sampler.h"

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

static uint64_t draw_bits(weir_random_words_t* words) {
  uint64_t low = weir_random_word(words);
  return low | (uint64_t)weir_random_word(words) << 32;
}

// Rejects the lowest numbers so that every remainder is equally likely.
static int64_t uniform_draw(const weir_sampler_t* sampler, weir_random_words_t* words) {
  uint64_t range = (uint64_t)sampler->range;
  if ((range & (range - 1)) == 0) return (int64_t)(draw_bits(words) & (range - 1));
  const uint64_t rejected = UINT64_MAX % range + 1;
  uint64_t bits = draw_bits(words);
  while (bits < rejected) bits = draw_bits(words);
  return (int64_t)(bits % range);
}

static float uniform_probability(const weir_sampler_t* sampler, int64_t value) {
  (void)value;
  return (float)(1.0 / (double)sampler->range);
}

static int64_t log_uniform_draw(const weir_sampler_t* sampler, weir_random_words_t* words) {
  double value = exp(weir_random_double(words) * sampler->log_range);
  if (value >= 0x1p63) return 0;  // only by rounding, for a range next to the largest integer
  return ((int64_t)value - 1) % sampler->range;
}

static float log_uniform_probability(const weir_sampler_t* sampler, int64_t value) {
  return (float)(log(((double)value + 2.0) / ((double)value + 1.0)) / sampler->log_range);
}

weir_status_t* weir_sampler_init(const weir_kernel_init_t* init, weir_sampler_t* sampler) {
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
  weir_sampler_t* sampler = state;
  sampler->draw = uniform_draw;
  sampler->probability = uniform_probability;
  return weir_sampler_init(init, sampler);
}

static weir_status_t* log_uniform_init(const weir_kernel_init_t* init, void* state) {
  weir_sampler_t* sampler = state;
  sampler->draw = log_uniform_draw;
  sampler->probability = log_uniform_probability;
  return weir_sampler_init(init, sampler);
}

void weir_sampler_deinit(void* state) {
  weir_sampler_t* sampler = state;
  weir_random_state_deinit(&sampler->random);
  weir_free(sampler->weights);
  weir_free(sampler->aliases);
}

// ---- classes of given weights ----

// A class is drawn first, and then itself with |chance|, or |other|.
typedef struct weir_sampler_alias_t {
  float chance;
  int other;
} alias_t;

static int64_t weighted_draw(const weir_sampler_t* sampler, weir_random_words_t* words) {
  const uint32_t range = (uint32_t)sampler->weight_count;
  const uint32_t mantissa = weir_random_word(words) & 0x7fffffu;
  const float chance = (float)mantissa * 0x1p-23f;
  const uint32_t rejected = (range & (range - 1)) == 0 ? 0 : UINT32_MAX % range + 1;
  uint32_t bits = weir_random_word(words);
  while (bits < rejected) bits = weir_random_word(words);
  const uint32_t index = bits % range;
  const alias_t* alias = &sampler->aliases[index];
  return chance < alias->chance ? (int64_t)index : alias->other;
}

static float weighted_probability(const weir_sampler_t* sampler, int64_t value) {
  return sampler->weights[value] / sampler->total_weight;
}

static weir_status_t* add_weight(weir_sampler_t* sampler, float weight) {
  if (!WEIR_GROW(sampler->weights, sampler->weight_capacity, sampler->weight_count + 1)) {
    return weir_out_of_memory();
  }
  sampler->weights[sampler->weight_count++] = weight;
  sampler->total_weight += weight;
  return NULL;
}

// Pairs classes that are less likely than the average with those that are more.
static void pair_classes(double* shares, int* low, int low_count, int* high, int high_count,
                         alias_t* aliases) {
  while (low_count > 0 && high_count > 0) {
    const int l = low[--low_count], h = high[--high_count];
    aliases[l].other = h;
    shares[h] -= 1.0 - shares[l];
    if (shares[h] < 1.0) {
      low[low_count++] = h;
    } else {
      high[high_count++] = h;
    }
  }
  while (low_count > 0) shares[low[--low_count]] = 1.0;
  while (high_count > 0) shares[high[--high_count]] = 1.0;
}

static weir_status_t* make_aliases(weir_sampler_t* sampler) {
  const size_t count = sampler->weight_count;
  double sum = 0;
  int low_count = 0, high_count = 0;
  double* shares = weir_alloc_array(count, sizeof(*shares));
  int* places = weir_alloc_array(2 * count, sizeof(*places));
  sampler->aliases = weir_calloc(count, sizeof(*sampler->aliases));
  const bool has_memory = shares && places && sampler->aliases;
  for (size_t i = 0; has_memory && i < count; ++i) sum += (double)sampler->weights[i];
  for (size_t i = 0; has_memory && i < count; ++i) {
    shares[i] = (double)(sampler->weights[i] * (float)count) / sum;
    if (shares[i] < 1.0) {
      places[low_count++] = (int)i;
    } else {
      places[count + (size_t)high_count++] = (int)i;
    }
    sampler->aliases[i].other = (int)i;
  }
  if (has_memory) {
    pair_classes(shares, places, low_count, places + count, high_count, sampler->aliases);
    for (size_t i = 0; i < count; ++i) sampler->aliases[i].chance = (float)shares[i];
  }
  weir_free(shares);
  weir_free(places);
  return has_memory ? NULL : weir_out_of_memory();
}

// The weights that belong to this shard, of those in |unigrams| or in the last columns of a file.
typedef struct shard_t {
  int64_t count, own, seen;
  float distortion;
} shard_t;

static weir_status_t* take_weight(weir_sampler_t* sampler, shard_t* shard, float weight) {
  if (shard->seen++ % shard->count != shard->own) return NULL;
  return add_weight(sampler, powf(weight, shard->distortion));
}

static weir_status_t* load_weights(weir_sampler_t* sampler, shard_t* shard, weir_view_t text) {
  weir_view_t line;
  while (weir_view_next(&text, '\n', &line)) {
    weir_view_t column, last = weir_view("", 0);
    if (line.size == 0) continue;
    while (weir_view_next(&line, ',', &column)) last = column;
    double weight = 0;
    if (!weir_parse_double(weir_view_trim(last), &weight)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Wrong vocabulary format at line: %lld",
                         (long long)shard->seen);
    }
    WEIR_TRY(take_weight(sampler, shard, (float)weight));
  }
  return NULL;
}

static weir_status_t* load_file(weir_sampler_t* sampler, shard_t* shard, weir_view_t path) {
  weir_strbuf_t text = {0};
  char* name = weir_strndup(path.data, path.size);
  weir_status_t* status = name ? weir_fs_read_all(name, &text) : weir_out_of_memory();
  if (!status) status = load_weights(sampler, shard, weir_strbuf_view(&text));
  weir_strbuf_free(&text);
  weir_free(name);
  return status;
}

static weir_status_t* fixed_init(const weir_kernel_init_t* init, void* state) {
  weir_sampler_t* sampler = state;
  const weir_attrs_t attrs = init->node->attrs;
  const weir_view_t file = weir_attrs_string(attrs, "vocab_file");
  const weir_attr_t* unigrams = weir_attrs_list(attrs, "unigrams");
  shard_t shard = {.count = weir_attrs_int(attrs, "num_shards"),
                   .own = weir_attrs_int(attrs, "shard"),
                   .distortion = weir_attrs_float(attrs, "distortion")};
  sampler->draw = weighted_draw;
  sampler->probability = weighted_probability;
  WEIR_TRY(weir_sampler_init(init, sampler));
  if ((file.size > 0) == (unigrams->count > 0)) {
    return WEIR_STATUS(INVALID_ARGUMENT, file.size > 0
                                             ? "Must provide only one of vocab_file and unigrams."
                                             : "Must provide either vocab_file or unigrams.");
  }
  const int64_t reserved = weir_attrs_int(attrs, "num_reserved_ids");
  for (int64_t i = 0; i < reserved; ++i) {
    if (i % shard.count == shard.own) WEIR_TRY(add_weight(sampler, 0));
  }
  shard.seen = (int64_t)sampler->weight_count;  // of this shard alone, as in TensorFlow
  if (file.size > 0) WEIR_TRY(load_file(sampler, &shard, file));
  for (size_t i = 0; i < unigrams->count; ++i) {
    WEIR_TRY(take_weight(sampler, &shard, unigrams->u.floats[i]));
  }
  if ((int64_t)sampler->weight_count != sampler->range) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "range is not equal to the number of weights: %lld vs. %zu",
                       (long long)sampler->range, sampler->weight_count);
  }
  return make_aliases(sampler);
}

static weir_status_t* check_classes(const weir_sampler_t* sampler, const weir_tensor_t* classes) {
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
static weir_status_t* draw_unique(const weir_sampler_t* sampler, weir_random_words_t* words,
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
static void expect(const weir_sampler_t* sampler, int64_t tries, const int64_t* values,
                   int64_t count, float* expected) {
  for (int64_t i = 0; i < count; ++i) {
    float p = sampler->probability(sampler, values[i]);
    expected[i] =
        tries == sampler->sample_count ? p * (float)tries : -expm1f((float)tries * log1pf(-p));
  }
}

weir_status_t* weir_sampler_cpu(weir_kernel_ctx_t* ctx) {
  weir_sampler_t* sampler = ctx->state;
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

// Every class is sampled, once.
static weir_status_t* all_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* classes = weir_kernel_input(ctx, 0);
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const weir_sampler_t sampler = {.range = weir_attrs_int(attrs, "num_sampled"),
                                  .sample_count = weir_attrs_int(attrs, "num_sampled"),
                                  .true_count = weir_attrs_int(attrs, "num_true")};
  weir_tensor_t *samples = NULL, *true_expected = NULL, *sampled_expected = NULL;
  WEIR_TRY(check_classes(&sampler, classes));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, &sampler.range, &samples));
  WEIR_TRY(weir_kernel_output(ctx, 1, 2, classes->dims, &true_expected));
  WEIR_TRY(weir_kernel_output(ctx, 2, 1, &sampler.range, &sampled_expected));
  for (int64_t i = 0; i < sampler.range; ++i) {
    WEIR_TENSOR_DATA(samples, int64_t)[i] = i;
    WEIR_TENSOR_DATA(sampled_expected, float)[i] = 1;
  }
  for (int64_t i = 0; i < classes->count; ++i) WEIR_TENSOR_DATA(true_expected, float)[i] = 1;
  return NULL;
}

weir_status_t* weir_sampler_shape(weir_shape_ctx_t* ctx) {
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

const weir_op_module_t weir_ops_random_candidate_sampler = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "UniformCandidateSampler",
         .attrs = WEIR_SAMPLER_ATTRS,
         .inputs = "true_classes: int64",
         .outputs = WEIR_SAMPLER_OUTPUTS,
         .flags = WEIR_OP_STATEFUL,
         .summary = "Samples classes, all equally likely",
         .infer_shape = weir_sampler_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute = weir_sampler_cpu, .state_size = sizeof(weir_sampler_t),
                             .init = uniform_init, .deinit = weir_sampler_deinit)},
        {.name = "LogUniformCandidateSampler",
         .attrs = WEIR_SAMPLER_ATTRS,
         .inputs = "true_classes: int64",
         .outputs = WEIR_SAMPLER_OUTPUTS,
         .flags = WEIR_OP_STATEFUL,
         .summary = "Samples classes, the first ones more likely, as in a vocabulary by frequency",
         .infer_shape = weir_sampler_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute = weir_sampler_cpu, .state_size = sizeof(weir_sampler_t),
                             .init = log_uniform_init, .deinit = weir_sampler_deinit)},
        {.name = "FixedUnigramCandidateSampler",
         .attrs = "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; "
                  "vocab_file: string = ''; distortion: float = 1.0; num_reserved_ids: int = 0; "
                  "num_shards: int >= 1 = 1; shard: int >= 0 = 0; unigrams: list(float) = []; "
                  "seed: int = 0; seed2: int = 0",
         .inputs = "true_classes: int64",
         .outputs = WEIR_SAMPLER_OUTPUTS,
         .flags = WEIR_OP_STATEFUL,
         .summary = "Samples classes by given weights",
         .infer_shape = weir_sampler_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute = weir_sampler_cpu, .state_size = sizeof(weir_sampler_t),
                             .init = fixed_init, .deinit = weir_sampler_deinit)},
        {.name = "AllCandidateSampler",
         .attrs = "num_true: int >= 1; num_sampled: int >= 1; unique: bool; seed: int = 0; seed2: "
                  "int = 0",
         .inputs = "true_classes: int64",
         .outputs = WEIR_SAMPLER_OUTPUTS,
         .flags = WEIR_OP_STATEFUL,
         .summary = "Samples every class, for tests",
         .infer_shape = weir_sampler_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = all_cpu)},
        {.name = "ComputeAccidentalHits",
         .attrs = "num_true: int; seed: int = 0; seed2: int = 0",
         .inputs = "true_classes: int64; sampled_candidates: int64",
         .outputs = "indices: int32; ids: int64; weights: float",
         .summary = "Finds true classes among sampled candidates",
         .infer_shape = hits_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = hits_cpu)},
        {0}}};
