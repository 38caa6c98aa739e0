// sampler.h — Samplers of candidates: what those of given weights and those that learn them share.
#ifndef WEIR_OPS_RANDOM_SAMPLER_H_
#define WEIR_OPS_RANDOM_SAMPLER_H_

#include "kernel/random/random.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

// The kernel's own struct, or the first member of it.
typedef struct weir_sampler_t {
  weir_random_state_t random;
  int64_t (*draw)(const struct weir_sampler_t* sampler, weir_random_words_t* words);
  float (*probability)(const struct weir_sampler_t* sampler, int64_t value);
  int64_t range;
  double log_range;
  int64_t true_count;  // classes a row
  int64_t sample_count;
  bool is_unique;
  // Of given weights: by class, their sum, and Walker's table of aliases.
  float* weights;
  size_t weight_count, weight_capacity;
  float total_weight;
  struct weir_sampler_alias_t* aliases;
} weir_sampler_t;

// Of the attributes; what draws is for the caller to set.
WEIR_MUST_USE weir_status_t* weir_sampler_init(const weir_kernel_init_t* init,
                                               weir_sampler_t* sampler);
void weir_sampler_deinit(void* state);
weir_status_t* weir_sampler_cpu(weir_kernel_ctx_t* ctx);
weir_status_t* weir_sampler_shape(weir_shape_ctx_t* ctx);

#define WEIR_SAMPLER_ATTRS                                                                   \
  "num_true: int >= 1; num_sampled: int >= 1; unique: bool; range_max: int >= 1; seed: int " \
  "= 0; seed2: int = 0"
#define WEIR_SAMPLER_OUTPUTS \
  "sampled_candidates: int64; true_expected_count: float; sampled_expected_count: float"

#endif  // WEIR_OPS_RANDOM_SAMPLER_H_
