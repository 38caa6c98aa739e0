// shard.c — ShardDataset: every so many-th element.
#include "ops/data/shard.h"

#include "ops/data/state.h"

enum { kHint = -1 };  // for the number of shards: AutoShardDataset says it

typedef struct shard_t {
  weir_data_t base;
  int64_t shards;
  int64_t index;
  bool is_strict;  // every shard must have an element
} shard_t;

typedef struct shard_iterator_t {
  weir_iterator_t base;
  int64_t seen;  // elements of the input
} shard_iterator_t;

static weir_status_t* shard_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  shard_t* self = (shard_t*)dataset;
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  self->is_strict = weir_attrs_bool(weir_kernel_attrs(ctx), "require_non_empty");
  WEIR_TRY(weir_dataset_int(ctx, 1, "num_shards", &self->shards));
  WEIR_TRY(weir_dataset_int(ctx, 2, "index", &self->index));
  if (self->shards == kHint) return NULL;
  if (self->shards <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of shards must be greater than zero (currently num_shards = %lld).",
                       (long long)self->shards);
  if (self->index >= 0 && self->index < self->shards) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Index must be between 0 and %lld (currently index = %lld).",
                     (long long)(self->shards - 1), (long long)self->index);
}

static int64_t shard_cardinality(const weir_data_t* dataset) {
  const shard_t* self = (const shard_t*)dataset;
  int64_t n = weir_dataset_cardinality(dataset->inputs[0]);
  return n < 0 ? n : n / self->shards + (self->index < n % self->shards ? 1 : 0);
}

static weir_status_t* shard_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                                weir_tensor_t** out) {
  const shard_t* self = (const shard_t*)dataset;
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  return weir_dataset_get(dataset->inputs[0], walk, index * self->shards + self->index, out);
}

// Pulls and drops elements until |count| were seen.
static weir_status_t* skip_to(shard_iterator_t* self, int64_t count, weir_cancel_t* cancel,
                              weir_tensor_t** scratch, bool* out_is_end) {
  for (; self->seen < count && !*out_is_end; self->seen += !*out_is_end) {
    WEIR_TRY(weir_iterator_pull(&self->base, 0, cancel, scratch, out_is_end));
    if (!*out_is_end) weir_element_clear(scratch, self->base.dataset->count);
  }
  return NULL;
}

// Whether there are as many elements as shards, looked at behind the first of ours.
static weir_status_t* check_enough(shard_iterator_t* self, weir_cancel_t* cancel) {
  const shard_t* shard = (const shard_t*)self->base.dataset;
  int width = shard->base.count;
  weir_tensor_t** scratch = weir_element_create(width);
  if (!scratch) return weir_out_of_memory();
  bool is_end = false;
  weir_status_t* status = skip_to(self, shard->shards, cancel, scratch, &is_end);
  weir_element_free(scratch, width);
  if (status || !is_end) return status;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Could not apply FILE based sharding: the dataset only has %lld file(s), which "
      "is not enough for the required %lld shards/workers. If you are using "
      "datasets with distribution strategy, consider setting the auto sharding "
      "policy to either DATA or OFF using the "
      "`experimental_distribute.auto_shard_policy` option of `tf.data.Options()`. "
      "Or, split your input files into a larger number of small files such that "
      "number of files is greater than number of shards/workers.",
      (long long)self->seen, (long long)shard->shards);
}

static weir_status_t* shard_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                 weir_tensor_t** out, bool* out_is_end) {
  shard_iterator_t* self = (shard_iterator_t*)iterator;
  const shard_t* shard = (const shard_t*)iterator->dataset;
  int64_t ahead = (shard->index - self->seen) % shard->shards;
  if (ahead < 0) ahead += shard->shards;
  WEIR_TRY(skip_to(self, self->seen + ahead, cancel, out, out_is_end));
  if (*out_is_end) return NULL;
  WEIR_TRY(weir_iterator_pull(iterator, 0, cancel, out, out_is_end));
  if (*out_is_end) return NULL;
  ++self->seen;
  return shard->is_strict && self->seen < shard->shards ? check_enough(self, cancel) : NULL;
}

static weir_status_t* shard_start(weir_iterator_t* iterator) {
  if (!weir_shard_is_hint(iterator->dataset)) return weir_iterator_open(iterator, 0);
  return WEIR_STATUS(FAILED_PRECONDITION,
                     "`tf.data.Dataset.shard(SHARD_HINT, ...)` can only be used in "
                     "`tf.distribute.Strategy.experimental_distribute_dataset()` with "
                     "`tf.data.experimental.AutoShardPolicy.HINT` policy, or tf.data service with "
                     "`tf.data.experimental.service.ShardingPolicy.HINT` processing mode.");
}

static void shard_state(weir_iterator_t* iterator, weir_state_t* state) {
  shard_iterator_t* self = (shard_iterator_t*)iterator;
  weir_state_int(state, "seen", &self->seen, 0, INT64_MAX);
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t shard_iterator = {.size = sizeof(shard_iterator_t),
                                                      .start = shard_start,
                                                      .next = shard_next,
                                                      .state = shard_state};
static const weir_dataset_vtable_t shard_dataset = {.name = "Shard",
                                                    .size = sizeof(shard_t),
                                                    .init = shard_init,
                                                    .cardinality = shard_cardinality,
                                                    .get = shard_get,
                                                    .iterator = &shard_iterator};

bool weir_shard_is_hint(const weir_data_t* dataset) {
  return dataset->vtable == &shard_dataset && ((const shard_t*)dataset)->shards == kHint;
}

weir_status_t* weir_shard_create(weir_data_t* input, int64_t count, int64_t index,
                                 weir_data_t** out_dataset) {
  weir_data_t* dataset = NULL;
  WEIR_TRY(weir_dataset_create_over(&shard_dataset, input, &dataset));
  shard_t* self = (shard_t*)dataset;
  self->shards = count;
  self->index = index;
  self->is_strict = true;
  *out_dataset = dataset;
  return NULL;
}

static weir_status_t* shard_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &shard_dataset);
}

const weir_op_module_t weir_ops_data_shard = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ShardDataset",
         .attrs = "require_non_empty: bool = false; " WEIR_DATASET_ATTRS,
         .inputs = "input_dataset: variant; num_shards: int64; index: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Every num_shards-th element, from index on",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(shard_cpu)},
        {0}}};
