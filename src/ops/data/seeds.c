// seeds.c — AnonymousSeedGenerator, AnonymousRandomSeedGenerator, DummySeedGenerator, and those
// that delete them: seeds that datasets share.
#include "ops/data/seeds.h"

#include "ops/data/resources.h"

weir_samples_t weir_samples_create(int64_t seed, int64_t seed2) {
  return (weir_samples_t){.philox = weir_philox_seed((uint64_t)seed, (uint64_t)seed2), .used = 4};
}

uint32_t weir_samples_next(weir_samples_t* samples) {
  if (samples->used == 4) {
    weir_philox_next(&samples->philox, samples->group);
    samples->used = 0;
  }
  return samples->group[samples->used++];
}

void weir_samples_state(weir_samples_t* samples, weir_state_t* state) {
  int64_t used = samples->used;
  weir_state_words(state, "counter", samples->philox.counter, 4);
  weir_state_words(state, "key", samples->philox.key, 2);
  weir_state_words(state, "group", samples->group, 4);
  weir_state_int(state, "used", &used, 0, 4);
  samples->used = (int)used;
}

// ---- seeds ----

struct weir_seeds_t {
  weir_resource_t base;
  weir_mutex_t mu;
  bool is_renewed;
  int64_t seed, seed2;     // guarded by mu, as a state may replace them
  weir_samples_t samples;  // guarded by mu; seeds to come
};

static void seeds_destroy(weir_resource_t* resource) {
  weir_mutex_destroy(&((weir_seeds_t*)resource)->mu);
  weir_free(resource);
}

static const weir_resource_type_t seeds_type = {.name = "tensorflow::data::SeedGeneratorManager",
                                                .destroy = seeds_destroy};
#define SEEDS_TYPE_NAME "N10tensorflow4data20SeedGeneratorManagerE"

weir_status_t* weir_seeds_create(int64_t seed, int64_t seed2, bool is_renewed,
                                 weir_seeds_t** out_seeds) {
  weir_seeds_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  weir_resource_init(&self->base, &seeds_type);
  weir_mutex_init(&self->mu);
  if (seed == 0 && seed2 == 0) {
    seed = (int64_t)weir_random_entropy();
    seed2 = (int64_t)weir_random_entropy();
  }
  self->is_renewed = is_renewed;
  self->seed = seed;
  self->seed2 = seed2;
  self->samples = weir_samples_create(seed, seed2);
  *out_seeds = self;
  return NULL;
}

weir_seeds_t* weir_seeds_retain(weir_seeds_t* seeds) {
  weir_resource_retain(&seeds->base);
  return seeds;
}

void weir_seeds_release(weir_seeds_t* seeds) {
  if (seeds) weir_resource_release(&seeds->base);
}

weir_samples_t weir_seeds_next(weir_seeds_t* seeds) {
  weir_mutex_lock(&seeds->mu);
  int64_t seed = seeds->is_renewed ? weir_samples_next(&seeds->samples) : seeds->seed;
  int64_t seed2 = seeds->is_renewed ? weir_samples_next(&seeds->samples) : seeds->seed2;
  weir_mutex_unlock(&seeds->mu);
  return weir_samples_create(seed, seed2);
}

// TensorFlow's generator of seeds that stay the same gives out the first for the second here.
weir_samples_t weir_seeds_order(const weir_seeds_t* seeds) {
  return weir_samples_create(seeds->seed, seeds->is_renewed ? seeds->seed2 : seeds->seed);
}

void weir_seeds_state(weir_seeds_t* seeds, weir_state_t* state) {
  weir_mutex_lock(&seeds->mu);
  weir_state_int(state, "seed", &seeds->seed, INT64_MIN, INT64_MAX);
  weir_state_int(state, "seed2", &seeds->seed2, INT64_MIN, INT64_MAX);
  weir_samples_state(&seeds->samples, state);
  weir_mutex_unlock(&seeds->mu);
}

weir_status_t* weir_seeds_find(weir_kernel_ctx_t* ctx, int i, weir_seeds_t** out_seeds) {
  const weir_handle_t* handle = weir_tensor_handle(weir_kernel_input(ctx, i));
  if (!handle || !handle->object) return NULL;
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, i, &seeds_type, &resource));
  *out_seeds = (weir_seeds_t*)resource;
  return NULL;
}

// ---- places ----

typedef struct place_t {
  uint64_t place;
  weir_seeds_t* seeds;
} place_t;

struct weir_seed_places_t {
  weir_mutex_t mu;
  place_t* items;  // guarded by mu
  size_t count, capacity;
};

weir_status_t* weir_seed_places_create(weir_seed_places_t** out_places) {
  weir_seed_places_t* self = weir_calloc(1, sizeof(*self));
  if (!self) return weir_out_of_memory();
  weir_mutex_init(&self->mu);
  *out_places = self;
  return NULL;
}

void weir_seed_places_destroy(weir_seed_places_t* places) {
  if (!places) return;
  for (size_t i = 0; i < places->count; ++i) weir_seeds_release(places->items[i].seeds);
  weir_free(places->items);
  weir_mutex_destroy(&places->mu);
  weir_free(places);
}

static weir_status_t* find_or_add(weir_seed_places_t* self, uint64_t place, const weir_seeds_t* own,
                                  weir_seeds_t** out_seeds) {
  for (size_t i = 0; i < self->count; ++i) {
    *out_seeds = self->items[i].seeds;
    if (self->items[i].place == place) return NULL;
  }
  if (!WEIR_GROW(self->items, self->capacity, self->count + 1)) return weir_out_of_memory();
  WEIR_TRY(weir_seeds_create(own->seed, own->seed2, own->is_renewed, out_seeds));
  self->items[self->count++] = (place_t){.place = place, .seeds = *out_seeds};
  return NULL;
}

weir_status_t* weir_seeds_at(const weir_iterator_t* iterator, weir_seeds_t* own,
                             weir_seeds_t** out_seeds) {
  weir_seed_places_t* places = iterator->walk->seeds;
  *out_seeds = own;
  if (!places || !iterator->place) return NULL;
  weir_mutex_lock(&places->mu);
  weir_status_t* status = find_or_add(places, iterator->place, own, out_seeds);
  weir_mutex_unlock(&places->mu);
  return status;
}

void weir_seed_places_state(weir_seed_places_t* places, weir_state_t* state) {
  size_t count = places->count;
  weir_state_count(state, "places", &count);
  for (size_t i = 0; i < count && weir_state_is_good(state); ++i) {
    int64_t place = state->is_restoring ? 0 : (int64_t)places->items[i].place;
    bool is_renewed = !state->is_restoring && places->items[i].seeds->is_renewed;
    weir_state_int(state, "place", &place, INT64_MIN, INT64_MAX);
    weir_state_bool(state, "is_renewed", &is_renewed);
    weir_seeds_t* seeds = state->is_restoring ? NULL : places->items[i].seeds;
    const weir_seeds_t like = {.is_renewed = is_renewed, .seed = 1};
    if (!seeds) weir_state_fail(state, find_or_add(places, (uint64_t)place, &like, &seeds));
    if (weir_state_is_good(state)) weir_seeds_state(seeds, state);
  }
}

// ---- ops ----

static weir_status_t* anonymous_cpu(weir_kernel_ctx_t* ctx) {
  int64_t seed = 0, seed2 = 0;
  bool is_renewed = true;
  weir_seeds_t* seeds = NULL;
  WEIR_TRY(weir_dataset_int(ctx, 0, "seed", &seed));
  WEIR_TRY(weir_dataset_int(ctx, 1, "seed2", &seed2));
  if (ctx->input_count > 2) WEIR_TRY(weir_dataset_bool(ctx, 2, "reshuffle", &is_renewed));
  WEIR_TRY(weir_seeds_create(seed, seed2, is_renewed, &seeds));
  return weir_data_output_handle(ctx, &seeds->base, "AnonymousSeedGenerator", SEEDS_TYPE_NAME);
}

static weir_status_t* dummy_cpu(weir_kernel_ctx_t* ctx) {
  return weir_data_output_handle(ctx, NULL, "DummySeedGenerator", SEEDS_TYPE_NAME);
}

#define DELETE(op)                                                                           \
  {                                                                                          \
    .name = op, .inputs = "handle: resource; deleter: variant",                              \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,                     \
    .summary = "Nothing: the seeds go with their handle", .infer_shape = weir_shape_fn_none, \
    .kernels = WEIR_CPU_KERNEL(.compute = weir_data_delete_handle)                           \
  }

const weir_op_module_t weir_ops_data_seeds = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "AnonymousSeedGenerator",
         .inputs = "seed: int64; seed2: int64; reshuffle: bool",
         .outputs = "handle: resource; deleter: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "A generator of seeds for one walk over a dataset after another",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = anonymous_cpu)},
        {.name = "AnonymousRandomSeedGenerator",
         .inputs = "seed: int64; seed2: int64",
         .outputs = "handle: resource; deleter: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "A generator of seeds for one walk over a dataset after another",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = anonymous_cpu)},
        {.name = "DummySeedGenerator",
         .outputs = "handle: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "A handle for no seeds: the dataset has its own",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = dummy_cpu)},
        DELETE("DeleteSeedGenerator"),
        DELETE("DeleteRandomSeedGenerator"),
        {0}}};
