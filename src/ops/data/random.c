// random.c — RandomDataset, V2, SamplingDataset: random numbers, and elements chosen by them.
#include "ops/data/seeds.h"

typedef struct random_t {
  weir_data_t base;
  weir_seeds_t* seeds;
  float rate;  // SamplingDataset: how probable an element is
} random_t;

typedef struct random_iterator_t {
  weir_iterator_t base;
  weir_samples_t samples;
} random_iterator_t;

static void random_deinit(weir_data_t* dataset) { weir_seeds_release(((random_t*)dataset)->seeds); }

static weir_status_t* create_seeds(weir_kernel_ctx_t* ctx, int first, bool is_renewed,
                                   random_t* self) {
  int64_t seed = 0, seed2 = 0;
  WEIR_TRY(weir_dataset_int(ctx, first, "seed", &seed));
  WEIR_TRY(weir_dataset_int(ctx, first + 1, "seed2", &seed2));
  return weir_seeds_create(seed, seed2, is_renewed, &self->seeds);
}

static void random_state(weir_iterator_t* iterator, weir_state_t* state) {
  weir_samples_state(&((random_iterator_t*)iterator)->samples, state);
  weir_seeds_state(((const random_t*)iterator->dataset)->seeds, state);
  weir_state_inputs(iterator, state);
}

// ---- RandomDataset ----

static weir_status_t* random_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  random_t* self = (random_t*)dataset;
  WEIR_TRY(weir_dataset_set_components(1, (const weir_dtype_t[]){WEIR_DTYPE_INT64}, dataset));
  WEIR_TRY(weir_dataset_set_shape(dataset, 0, 0, NULL));
  const weir_attr_t* renews = weir_attrs_find(weir_kernel_attrs(ctx), "rerandomize_each_iteration");
  if (ctx->input_count > 2) WEIR_TRY(weir_seeds_find(ctx, 2, &self->seeds));
  return self->seeds ? NULL : create_seeds(ctx, 0, renews && renews->u.b, self);
}

static int64_t random_cardinality(const weir_data_t* dataset) {
  (void)dataset;
  return WEIR_CARDINALITY_INFINITE;
}

static weir_status_t* random_start(weir_iterator_t* iterator) {
  ((random_iterator_t*)iterator)->samples =
      weir_seeds_next(((const random_t*)iterator->dataset)->seeds);
  return NULL;
}

static weir_status_t* random_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                  weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  (void)out_is_end;
  int64_t value = weir_samples_next(&((random_iterator_t*)iterator)->samples);
  return weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &value, &out[0]);
}

static const weir_iterator_vtable_t random_iterator = {.size = sizeof(random_iterator_t),
                                                       .start = random_start,
                                                       .next = random_next,
                                                       .state = random_state};
static const weir_dataset_vtable_t random_dataset = {.name = "Random",
                                                     .size = sizeof(random_t),
                                                     .init = random_init,
                                                     .deinit = random_deinit,
                                                     .cardinality = random_cardinality,
                                                     .iterator = &random_iterator};

static weir_status_t* random_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &random_dataset);
}

// ---- SamplingDataset ----

static weir_status_t* sampling_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  random_t* self = (random_t*)dataset;
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  const weir_tensor_t* rate = weir_kernel_input(ctx, 1);
  if (rate->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "rate must be a scalar");
  self->rate = *WEIR_TENSOR_DATA(rate, const float);
  return create_seeds(ctx, 2, false, self);
}

static weir_status_t* sampling_start(weir_iterator_t* iterator) {
  WEIR_TRY(random_start(iterator));
  return weir_iterator_open(iterator, 0);
}

// In [0, 1): 23 bits behind the point.
static float uniform(weir_samples_t* samples) {
  return (float)(weir_samples_next(samples) & 0x7fffffu) / 8388608.0f;
}

static weir_status_t* sampling_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                    weir_tensor_t** out, bool* out_is_end) {
  random_iterator_t* self = (random_iterator_t*)iterator;
  for (;; weir_element_clear(out, iterator->dataset->count)) {
    WEIR_TRY(weir_iterator_pull(iterator, 0, cancel, out, out_is_end));
    if (*out_is_end) return NULL;
    if (uniform(&self->samples) < ((const random_t*)iterator->dataset)->rate) return NULL;
  }
}

static const weir_iterator_vtable_t sampling_iterator = {.size = sizeof(random_iterator_t),
                                                         .start = sampling_start,
                                                         .next = sampling_next,
                                                         .state = random_state};
static const weir_dataset_vtable_t sampling_dataset = {.name = "Sampling",
                                                       .size = sizeof(random_t),
                                                       .init = sampling_init,
                                                       .deinit = random_deinit,
                                                       .cardinality = weir_dataset_unknown_size,
                                                       .iterator = &sampling_iterator};

static weir_status_t* sampling_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &sampling_dataset);
}

const weir_op_module_t weir_ops_data_random = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RandomDataset",
         .attrs = WEIR_DATASET_ATTRS,
         .inputs = "seed: int64; seed2: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Random numbers of 32 bits, without end",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(random_cpu)},
        {.name = "RandomDatasetV2",
         .attrs = "rerandomize_each_iteration: bool = false; " WEIR_DATASET_ATTRS,
         .inputs = "seed: int64; seed2: int64; seed_generator: resource",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Random numbers of 32 bits, without end",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(random_cpu)},
        {.name = "SamplingDataset",
         .attrs = WEIR_DATASET_SPEC,
         .inputs = "input_dataset: variant; rate: float; seed: int64; seed2: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Each element with the probability rate",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(sampling_cpu)},
        {0}}};
