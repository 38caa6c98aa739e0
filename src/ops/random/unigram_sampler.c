// unigram_sampler.c — LearnedUnigramCandidateSampler, ThreadUnsafeUnigramCandidateSampler: classes
// by how often they were true ones.
#include "base/alloc.h"
#include "ops/random/sampler.h"

typedef struct unigram_t {
  weir_sampler_t sampler;
  weir_mutex_t mu;  // made before all else
  // Guarded by mu: weights, 1 at first, and their sums by Fenwick: place i, from 1 on, has the sum
  // of as many weights up to it as its lowest bit says.
  int32_t* weights_of;
  int64_t* sums;
  int64_t total;
} unigram_t;

static int64_t lowest_bit(int64_t i) { return i & -i; }

// The class in whose stretch of all weights, side by side, |place| is.
static int64_t class_at(const unigram_t* self, int64_t place) {
  const int64_t range = self->sampler.range;
  int64_t at = 0, step = 1;
  while (2 * step <= range) step *= 2;
  for (; step > 0; step /= 2) {
    if (at + step > range || self->sums[at + step] > place) continue;
    at += step;
    place -= self->sums[at];
  }
  return at;
}

static int64_t unigram_draw(const weir_sampler_t* sampler, weir_random_words_t* words) {
  const unigram_t* self = (const unigram_t*)sampler;
  const uint32_t total = (uint32_t)self->total;
  const uint32_t rejected = (total & (total - 1)) == 0 ? 0 : UINT32_MAX % total + 1;
  uint32_t bits = weir_random_word(words);
  while (bits < rejected) bits = weir_random_word(words);
  return class_at(self, bits % total);
}

static float unigram_probability(const weir_sampler_t* sampler, int64_t value) {
  const unigram_t* self = (const unigram_t*)sampler;
  return (float)self->weights_of[value] / (float)self->total;
}

static weir_status_t* unigram_init(const weir_kernel_init_t* init, void* state) {
  unigram_t* self = state;
  weir_mutex_init(&self->mu);
  self->sampler.draw = unigram_draw;
  self->sampler.probability = unigram_probability;
  WEIR_TRY(weir_sampler_init(init, &self->sampler));
  const int64_t range = self->sampler.range;
  if (range >= INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "range_max must be below %d, got %lld", INT32_MAX,
                       (long long)range);
  }
  self->weights_of = weir_alloc_array((size_t)range, sizeof(*self->weights_of));
  self->sums = weir_alloc_array((size_t)range + 1, sizeof(*self->sums));
  if (!self->weights_of || !self->sums) return weir_out_of_memory();
  for (int64_t i = 0; i < range; ++i) self->weights_of[i] = 1;
  for (int64_t i = 0; i <= range; ++i) self->sums[i] = lowest_bit(i);
  self->total = range;
  return NULL;
}

static void unigram_deinit(void* state) {
  unigram_t* self = state;
  weir_sampler_deinit(&self->sampler);
  weir_mutex_destroy(&self->mu);
  weir_free(self->weights_of);
  weir_free(self->sums);
}

static void learn(unigram_t* self, const weir_tensor_t* classes) {
  const int64_t* values = classes->data;
  for (int64_t i = 0; i < classes->count && self->total < INT32_MAX; ++i) {
    ++self->weights_of[values[i]];
    ++self->total;
    for (int64_t at = values[i] + 1; at <= self->sampler.range; at += lowest_bit(at)) {
      ++self->sums[at];
    }
  }
}

static weir_status_t* unigram_cpu(weir_kernel_ctx_t* ctx) {
  unigram_t* self = ctx->state;
  weir_mutex_lock(&self->mu);
  weir_status_t* status = weir_sampler_cpu(ctx);
  if (!status) learn(self, weir_kernel_input(ctx, 0));
  weir_mutex_unlock(&self->mu);
  return status;
}

#define UNIGRAM_OP(op)                                                                  \
  {                                                                                     \
    .name = op, .attrs = WEIR_SAMPLER_ATTRS, .inputs = "true_classes: int64",           \
    .outputs = WEIR_SAMPLER_OUTPUTS, .flags = WEIR_OP_STATEFUL,                         \
    .summary = "Samples classes by how often they were true ones",                      \
    .infer_shape = weir_sampler_shape,                                                  \
    .kernels = WEIR_CPU_KERNEL(.compute = unigram_cpu, .state_size = sizeof(unigram_t), \
                               .init = unigram_init, .deinit = unigram_deinit)          \
  }

const weir_op_module_t weir_ops_random_unigram_sampler = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){UNIGRAM_OP("LearnedUnigramCandidateSampler"),
                                   UNIGRAM_OP("ThreadUnsafeUnigramCandidateSampler"),
                                   {0}}};
