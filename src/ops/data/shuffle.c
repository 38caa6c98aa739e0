// shuffle.c — ShuffleDataset, V2, V3, ShuffleAndRepeatDataset, V2: elements in a random order,
// TensorFlow's for the same seeds.
//
// Elements wait in a ring. A slice of it holds those of one walk over the input; the next element
// is drawn from the oldest slice that is not empty, so that one walk is through before the next.
#include <stdatomic.h>

#include "ops/data/seeds.h"

typedef struct shuffle_t {
  weir_data_t base;
  int64_t buffer_size;  // WEIR_CARDINALITY_UNKNOWN: all elements
  int64_t times;        // walks over the input; -1: for ever
  weir_seeds_t* seeds;
  bool has_own_seeds;       // not those of a handle, which all who have it share
  _Atomic(int64_t*) order;  // in which single elements are found; NULL: nobody has asked
} shuffle_t;

#define MAX_SLICES 3  // of walks that are begun before older ones are used up

typedef struct slice_t {  // [start, end), modulo the ring's size
  int64_t start, end;
} slice_t;

typedef struct shuffle_iterator_t {
  weir_iterator_t base;
  weir_seeds_t* seeds;  // borrowed
  weir_samples_t samples;
  weir_tensor_t*** ring;
  size_t ring_size;      // of it, in use
  size_t ring_capacity;  // of a ring that grows
  slice_t* slices;       // the oldest first
  size_t slice_count;
  size_t slice_capacity;
  int64_t count;  // elements in the ring
  int64_t epoch;  // walks begun
  int64_t times;  // of those; -1: for ever
  bool has_produced;
} shuffle_iterator_t;

static bool is_growing(const shuffle_iterator_t* self) {
  return ((const shuffle_t*)self->base.dataset)->buffer_size == WEIR_CARDINALITY_UNKNOWN;
}

// ---- filling ----

static bool should_fill(const shuffle_iterator_t* self) {
  if (!self->base.inputs[0] && self->times != -1 && self->epoch >= self->times) return false;
  if (self->slice_count > MAX_SLICES && self->count > 0) return false;
  return is_growing(self) || self->count < (int64_t)self->ring_size;
}

static weir_status_t* add_slice(shuffle_iterator_t* self) {
  if (!WEIR_GROW(self->slices, self->slice_capacity, self->slice_count + 1))
    return weir_out_of_memory();
  int64_t at = self->slice_count ? self->slices[self->slice_count - 1].end : 0;
  self->slices[self->slice_count++] = (slice_t){.start = at, .end = at};
  return NULL;
}

static weir_status_t* begin_epoch(shuffle_iterator_t* self) {
  WEIR_TRY(weir_iterator_open(&self->base, 0));
  weir_status_t* status = add_slice(self);
  if (status) weir_iterator_close(&self->base, 0);
  else ++self->epoch;
  return status;
}

static weir_status_t* add(shuffle_iterator_t* self, weir_tensor_t** take_element) {
  slice_t* slice = &self->slices[self->slice_count - 1];
  if (is_growing(self)) {
    if (!WEIR_GROW(self->ring, self->ring_capacity, self->ring_size + 1)) {
      weir_element_free(take_element, self->base.dataset->count);
      return weir_out_of_memory();
    }
    self->ring[self->ring_size++] = NULL;
  }
  self->ring[(size_t)slice->end % self->ring_size] = take_element;
  ++slice->end;
  ++self->count;
  self->has_produced = true;
  return NULL;
}

static weir_status_t* fill(shuffle_iterator_t* self, weir_cancel_t* cancel) {
  int width = self->base.dataset->count;
  while (should_fill(self)) {
    if (!self->base.inputs[0]) WEIR_TRY(begin_epoch(self));
    weir_tensor_t** element = weir_element_create(width);
    bool is_end = false;
    weir_status_t* status = element ? weir_iterator_pull(&self->base, 0, cancel, element, &is_end)
                                    : weir_out_of_memory();
    if (!status && !is_end) {
      WEIR_TRY(add(self, element));
      continue;
    }
    weir_element_free(element, width);
    if (status) return status;
    weir_iterator_close(&self->base, 0);
    // An input without elements for ever has none.
    if (!self->has_produced && self->times == -1) return NULL;
  }
  return NULL;
}

// ---- drawing ----

// Every walk over the input has seeds of its own.
static void drop_empty_slices(shuffle_iterator_t* self) {
  size_t empty = 0;
  while (empty < self->slice_count && self->slices[empty].start == self->slices[empty].end) {
    ++empty;
    self->samples = weir_seeds_next(self->seeds);
  }
  self->slice_count -= empty;
  memmove(self->slices, self->slices + empty, self->slice_count * sizeof(*self->slices));
}

static weir_status_t* shuffle_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                   weir_tensor_t** out, bool* out_is_end) {
  shuffle_iterator_t* self = (shuffle_iterator_t*)iterator;
  WEIR_TRY(fill(self, cancel));
  *out_is_end = self->count == 0;
  if (*out_is_end) return NULL;
  drop_empty_slices(self);
  slice_t* slice = &self->slices[0];
  int64_t offset = weir_samples_next(&self->samples) % (slice->end - slice->start);
  size_t chosen = (size_t)(slice->start + offset) % self->ring_size;
  size_t first = (size_t)slice->start % self->ring_size;
  weir_tensor_t** element = self->ring[chosen];
  self->ring[chosen] = self->ring[first];
  self->ring[first] = NULL;
  ++slice->start;
  --self->count;
  weir_element_move(element, out, iterator->dataset->count);
  weir_element_free(element, iterator->dataset->count);
  return NULL;
}

static weir_status_t* shuffle_start(weir_iterator_t* iterator) {
  shuffle_iterator_t* self = (shuffle_iterator_t*)iterator;
  const shuffle_t* shuffle = (const shuffle_t*)iterator->dataset;
  self->seeds = shuffle->seeds;
  self->times = shuffle->times;
  if (shuffle->has_own_seeds) WEIR_TRY(weir_seeds_at(iterator, shuffle->seeds, &self->seeds));
  self->samples = weir_seeds_next(self->seeds);
  if (shuffle->buffer_size == WEIR_CARDINALITY_UNKNOWN) return NULL;
  self->ring_size = (size_t)shuffle->buffer_size;
  self->ring = weir_calloc(self->ring_size, sizeof(*self->ring));
  return self->ring ? NULL : weir_out_of_memory();
}

static void shuffle_stop(weir_iterator_t* iterator) {
  shuffle_iterator_t* self = (shuffle_iterator_t*)iterator;
  for (size_t i = 0; i < self->ring_size && self->ring; ++i)
    weir_element_free(self->ring[i], iterator->dataset->count);
  weir_free(self->ring);
  weir_free(self->slices);
}

// ---- saving and restoring ----

static void place_state(shuffle_iterator_t* self, slice_t* slice, weir_state_t* state) {
  int width = self->base.dataset->count;
  weir_element_types_t components = weir_element_types_of(self->base.dataset);
  weir_tensor_t** element = NULL;
  if (!state->is_restoring) {
    weir_state_element(state, "element", components,
                       self->ring[(size_t)slice->end++ % self->ring_size]);
    return;
  }
  weir_state_require(state, is_growing(self) || self->count < (int64_t)self->ring_size);
  if (weir_state_is_good(state) && !(element = weir_element_create(width)))
    weir_state_fail(state, weir_out_of_memory());
  if (!weir_state_is_good(state)) return;
  weir_state_element(state, "element", components, element);
  weir_state_fail(state, add(self, element));
}

// Slices of the ring one after the other, as if the first began at its front.
static void slices_state(shuffle_iterator_t* self, weir_state_t* state) {
  size_t slices = self->slice_count;
  weir_state_count(state, "slices", &slices);
  for (size_t i = 0; i < slices && weir_state_is_good(state); ++i) {
    if (state->is_restoring) weir_state_fail(state, add_slice(self));
    if (!weir_state_is_good(state)) return;
    slice_t saved = {.start = self->slices[i].start, .end = self->slices[i].start};
    size_t count = (size_t)(self->slices[i].end - self->slices[i].start);
    weir_state_count(state, "elements", &count);
    for (size_t k = 0; k < count && weir_state_is_good(state); ++k)
      place_state(self, &saved, state);
  }
}

static void shuffle_state(weir_iterator_t* iterator, weir_state_t* state) {
  shuffle_iterator_t* self = (shuffle_iterator_t*)iterator;
  weir_state_int(state, "epoch", &self->epoch, 0, INT64_MAX);
  slices_state(self, state);
  weir_state_bool(state, "has_produced", &self->has_produced);
  weir_state_input(iterator, state, 0);
  weir_state_require(state, !iterator->inputs[0] || self->slice_count > 0);
  weir_samples_state(&self->samples, state);
  weir_seeds_state(self->seeds, state);
}

static const weir_iterator_vtable_t shuffle_iterator = {.size = sizeof(shuffle_iterator_t),
                                                        .start = shuffle_start,
                                                        .next = shuffle_next,
                                                        .stop = shuffle_stop,
                                                        .state = shuffle_state};

bool weir_shuffle_is_plain(const weir_data_t* dataset) {
  return dataset->vtable->iterator == &shuffle_iterator && dataset->vtable->get;
}

void weir_shuffle_set_times(weir_iterator_t* iterator, int64_t times) {
  ((shuffle_iterator_t*)iterator)->times = times;
}

// ---- datasets ----

// Seeds are those of handle input |i|, -1: there is none; else inputs 2 and 3 say what they begin
// with.
static weir_status_t* find_seeds(weir_kernel_ctx_t* ctx, int i, bool has_own, shuffle_t* self) {
  int64_t seed = 0, seed2 = 0;
  if (has_own) WEIR_TRY(weir_dataset_int(ctx, 2, "seed", &seed));
  if (has_own) WEIR_TRY(weir_dataset_int(ctx, 3, "seed2", &seed2));
  if (i >= 0) WEIR_TRY(weir_seeds_find(ctx, i, &self->seeds));
  const weir_attr_t* renews = weir_attrs_find(weir_kernel_attrs(ctx), "reshuffle_each_iteration");
  self->has_own_seeds = !self->seeds;
  return self->seeds ? NULL : weir_seeds_create(seed, seed2, !renews || renews->u.b, &self->seeds);
}

static weir_status_t* read_size(weir_kernel_ctx_t* ctx, shuffle_t* self) {
  WEIR_TRY(weir_dataset_init_like_input(ctx, &self->base));
  WEIR_TRY(weir_dataset_int(ctx, 1, "buffer_size", &self->buffer_size));
  self->times = 1;
  if (self->buffer_size > 0 || self->buffer_size == WEIR_CARDINALITY_UNKNOWN) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "buffer_size must be greater than zero or UNKNOWN_CARDINALITY");
}

static weir_status_t* shuffle_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(read_size(ctx, (shuffle_t*)dataset));
  return find_seeds(ctx, ctx->input_count > 4 ? 4 : -1, true, (shuffle_t*)dataset);
}

static weir_status_t* shuffle_v2_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(read_size(ctx, (shuffle_t*)dataset));
  return find_seeds(ctx, 2, false, (shuffle_t*)dataset);
}

static weir_status_t* repeat_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  shuffle_t* self = (shuffle_t*)dataset;
  WEIR_TRY(read_size(ctx, self));
  WEIR_TRY(weir_dataset_int(ctx, 4, "count", &self->times));
  if (self->times <= 0 && self->times != -1)
    return WEIR_STATUS(INVALID_ARGUMENT, "count must be greater than zero or equal to -1.");
  return find_seeds(ctx, ctx->input_count > 5 ? 5 : -1, true, self);
}

static void shuffle_deinit(weir_data_t* dataset) {
  weir_free(atomic_load(&((shuffle_t*)dataset)->order));
  weir_seeds_release(((shuffle_t*)dataset)->seeds);
}

static int64_t shuffle_cardinality(const weir_data_t* dataset) {
  int64_t times = ((const shuffle_t*)dataset)->times;
  int64_t n = weir_dataset_cardinality(dataset->inputs[0]);
  if (times == -1) return n == 0 ? 0 : WEIR_CARDINALITY_INFINITE;
  return n < 0 ? n : n * times;
}

// ---- single elements ----

enum { kMaxOrdered = 1 << 26 };  // elements

static weir_status_t* make_order(const shuffle_t* self, int64_t count, int64_t** out_order) {
  if (count > kMaxOrdered)
    return WEIR_STATUS(RESOURCE_EXHAUSTED,
                       "random access to a shuffled dataset of %lld elements, more than %d",
                       (long long)count, kMaxOrdered);
  int64_t* order = weir_alloc_array((size_t)count, sizeof(*order));
  if (!order) return weir_out_of_memory();
  weir_samples_t samples = weir_seeds_order(self->seeds);
  for (int64_t i = 0; i < count; ++i) order[i] = i;
  for (int64_t i = 0; i < count; ++i) {
    int64_t chosen = i + weir_samples_next(&samples) % (count - i);
    int64_t index = order[chosen];
    order[chosen] = order[i];
    order[i] = index;
  }
  *out_order = order;
  return NULL;
}

// As in TensorFlow, this is not the order of any walk.
static weir_status_t* shuffle_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                                  weir_tensor_t** out) {
  shuffle_t* self = (shuffle_t*)dataset;
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  int64_t* order = atomic_load(&self->order);
  if (!order) {
    int64_t* made = NULL;
    WEIR_TRY(make_order(self, weir_dataset_cardinality(dataset), &made));
    if (atomic_compare_exchange_strong(&self->order, &order, made)) order = made;
    else weir_free(made);
  }
  return weir_dataset_get(dataset->inputs[0], walk, order[index], out);
}

#define DATASET(label, init_fn, get_fn)                                                  \
  {                                                                                      \
    .name = label, .size = sizeof(shuffle_t), .init = init_fn, .deinit = shuffle_deinit, \
    .cardinality = shuffle_cardinality, .get = get_fn, .iterator = &shuffle_iterator     \
  }
static const weir_dataset_vtable_t shuffle_dataset = DATASET("Shuffle", shuffle_init, shuffle_get);
static const weir_dataset_vtable_t shuffle_v2_dataset =
    DATASET("Shuffle", shuffle_v2_init, shuffle_get);
static const weir_dataset_vtable_t repeat_dataset = DATASET("ShuffleAndRepeat", repeat_init, NULL);

weir_status_t* weir_shuffle_create_like(const weir_data_t* dataset, weir_data_t* input,
                                        weir_data_t** out_dataset) {
  const shuffle_t* like = (const shuffle_t*)dataset;
  WEIR_TRY(weir_dataset_create_over(dataset->vtable, input, out_dataset));
  shuffle_t* self = (shuffle_t*)*out_dataset;
  self->buffer_size = like->buffer_size;
  self->times = like->times;
  self->seeds = weir_seeds_retain(like->seeds);
  self->has_own_seeds = like->has_own_seeds;
  return NULL;
}

static weir_status_t* shuffle_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &shuffle_dataset);
}
static weir_status_t* shuffle_v2_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &shuffle_v2_dataset);
}
static weir_status_t* repeat_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &repeat_dataset);
}

#define SHUFFLE(op, attributes, others, traits, kernel)                                          \
  {                                                                                              \
    .name = op, .attrs = attributes,                                                             \
    .inputs = "input_dataset: variant; buffer_size: int64" others, .outputs = "handle: variant", \
    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | (traits),                                 \
    .summary = "The same elements in a random order", .infer_shape = weir_dataset_shape_scalars, \
    .kernels = WEIR_DATASET_KERNEL(kernel)                                                       \
  }
#define RENEWS "reshuffle_each_iteration: bool = true"
#define SEEDS "; seed: int64; seed2: int64"
#define GENERATOR "; seed_generator: resource"

const weir_op_module_t weir_ops_data_shuffle = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        SHUFFLE("ShuffleDataset", RENEWS "; " WEIR_DATASET_ATTRS, SEEDS, 0, shuffle_cpu),
        SHUFFLE("ShuffleDatasetV2", WEIR_DATASET_ATTRS, GENERATOR, WEIR_OP_STATEFUL,
                shuffle_v2_cpu),
        SHUFFLE("ShuffleDatasetV3", RENEWS "; " WEIR_DATASET_ATTRS, SEEDS GENERATOR,
                WEIR_OP_STATEFUL, shuffle_cpu),
        SHUFFLE("ShuffleAndRepeatDataset", WEIR_DATASET_SPEC "; " RENEWS "; metadata: string = ''",
                SEEDS "; count: int64", 0, repeat_cpu),
        SHUFFLE("ShuffleAndRepeatDatasetV2", RENEWS "; " WEIR_DATASET_ATTRS,
                SEEDS "; count: int64" GENERATOR, WEIR_OP_STATEFUL, repeat_cpu),
        {0}}};
