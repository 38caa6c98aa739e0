// auto_shard.c — AutoShardDataset: a worker's part of a dataset, by files where it reads files that
// a dataset names, else by elements.
//
// TensorFlow rewrites the graph that made the dataset. Here datasets are values that others may
// have as well, so they stay, and a walk goes over others in place of some inputs (weir_instead_t).
#include "ops/data/captured.h"
#include "ops/data/reader_function.h"
#include "ops/data/seeds.h"
#include "ops/data/shard.h"

enum { kOff = -1, kAuto = 0, kFile = 1, kData = 2, kHint = 3 };

typedef struct auto_shard_t {
  weir_data_t base;
  weir_instead_t* instead;
  bool is_counted;  // whether the input's cardinality is this one's
} auto_shard_t;

typedef struct auto_iterator_t {
  weir_iterator_t base;
  weir_walk_t walk;  // with what is walked over instead
} auto_iterator_t;

typedef struct search_t {
  auto_shard_t* self;
  weir_functions_t* functions;
  int64_t workers, index;
  const weir_data_t* shuffle;  // of those that were taken out, the one nearest to the source
} search_t;

// Consumes |take_dataset|.
static weir_status_t* put_instead(search_t* search, const weir_data_t* parent, int input,
                                  weir_data_t* take_dataset) {
  weir_instead_t* entry = weir_malloc(sizeof(*entry));
  if (!entry) {
    weir_dataset_release(take_dataset);
    return weir_out_of_memory();
  }
  *entry = (weir_instead_t){
      .next = search->self->instead, .parent = parent, .input = input, .dataset = take_dataset};
  search->self->instead = entry;
  return NULL;
}

static weir_status_t* put_shard(search_t* search, const weir_data_t* parent, int input) {
  weir_data_t* shard = NULL;
  WEIR_TRY(weir_shard_create(parent->inputs[input], search->workers, search->index, &shard));
  return put_instead(search, parent, input, shard);
}

static bool is_one_of(const weir_data_t* dataset, const char* const* names) {
  for (; *names; ++names)
    if (strcmp(dataset->vtable->name, *names) == 0) return true;
  return false;
}

static bool passes_on(const weir_data_t* dataset) {
  static const char* const kNames[] = {
      "Batch",       "Cache",    "Filter",  "Map",         "MapAndBatch",
      "Model",       "Optimize", "Options", "PaddedBatch", "ParallelBatch",
      "ParallelMap", "Prefetch", "Rebatch", "Repeat",      "ParseExample",
      "Shard",       "Shuffle",  "Skip",    "Take",        "ShuffleAndRepeat",
      "Unbatch",     "Window",   NULL};
  return is_one_of(dataset, kNames);
}

// ---- by files ----

static weir_data_t* without_shuffles(search_t* search, weir_data_t* dataset) {
  while (weir_shuffle_is_plain(dataset)) {
    search->shuffle = dataset;
    dataset = dataset->inputs[0];
  }
  return dataset;
}

// Takes out what shuffles below |dataset|: shards of it must be the same for all workers.
static weir_status_t* remove_shuffles(search_t* search, const weir_data_t* dataset) {
  for (int i = 0; i < dataset->input_count; ++i) {
    weir_data_t* bare = without_shuffles(search, dataset->inputs[i]);
    if (bare != dataset->inputs[i])
      WEIR_TRY(put_instead(search, dataset, i, weir_dataset_retain(bare)));
    WEIR_TRY(remove_shuffles(search, bare));
  }
  return NULL;
}

// |reader| reads the files that its input names: a shard of those, shuffled if it was before.
static weir_status_t* shard_names(search_t* search, const weir_data_t* reader) {
  weir_data_t *shard = NULL, *shuffled = NULL;
  search->shuffle = NULL;
  weir_data_t* bare = without_shuffles(search, reader->inputs[0]);
  WEIR_TRY(remove_shuffles(search, bare));
  WEIR_TRY(weir_shard_create(bare, search->workers, search->index, &shard));
  if (!search->shuffle) return put_instead(search, reader, 0, shard);
  weir_status_t* status = weir_shuffle_create_like(search->shuffle, shard, &shuffled);
  weir_dataset_release(shard);
  return status ? status : put_instead(search, reader, 0, shuffled);
}

// Below a dataset that makes others, TensorFlow has a shard of the elements of one that does so,
// too, from a list.
static bool find_list_reader(const weir_data_t* dataset, const weir_data_t** out_parent) {
  const weir_data_t* parent = dataset;
  while (passes_on(parent->inputs[0])) parent = parent->inputs[0];
  const weir_data_t* below = parent->inputs[0];
  *out_parent = parent;
  return strcmp(below->vtable->name, "FlatMap") == 0 &&
         strcmp(below->inputs[0]->vtable->name, "TensorSlice") == 0;
}

// NOT_FOUND where there is nothing to shard.
static weir_status_t* find_files(search_t* search, const weir_data_t* parent, int input) {
  static const char* const kSources[] = {"Generator", "Range", "Tensor", "TensorSlice", NULL};
  static const char* const kReaders[] = {"FixedLengthRecord", "TextLine", "TFRecord", NULL};
  static const char* const kJoins[] = {"Concatenate", "Zip", NULL};
  const weir_data_t* dataset = parent->inputs[input];
  const weir_func_t* function = weir_interleave_function(dataset);
  const weir_data_t* above = NULL;
  if (is_one_of(dataset, kSources))
    return WEIR_STATUS(NOT_FOUND, "Found an unshardable source dataset: %sDataset",
                       dataset->vtable->name);
  if (is_one_of(dataset, kReaders))
    return WEIR_STATUS(NOT_FOUND,
                       "Unable to shard this input. You may need to wrap the inputs to your reader "
                       "dataset in a TensorSliceDataset. Input node is of %sDataset",
                       dataset->vtable->name);
  if (function && find_list_reader(dataset, &above)) return put_shard(search, above, 0);
  if (function && weir_reads_files(search->functions, function->name))
    return shard_names(search, dataset);
  bool is_assertion = strcmp(dataset->vtable->name, "AssertCardinality") == 0;
  if (!function && !is_assertion && !passes_on(dataset) && !is_one_of(dataset, kJoins))
    return WEIR_STATUS(NOT_FOUND,
                       "Did not find a shardable source, walked to a node which is not a dataset: "
                       "%sDataset. Consider either turning off auto-sharding or switching the "
                       "auto_shard_policy to DATA to shard this dataset.",
                       dataset->vtable->name);
  for (int i = 0; i < dataset->input_count; ++i) WEIR_TRY(find_files(search, dataset, i));
  if (!is_assertion) return NULL;
  search->self->is_counted = false;  // it would be wrong now, and is taken out
  weir_data_t* below = weir_instead_find(search->self->instead, dataset, 0);
  return put_instead(search, parent, input, weir_dataset_retain(below));
}

// ---- as datasets ask for it ----

static weir_status_t* find_hints(search_t* search, const weir_data_t* parent) {
  for (int i = 0; i < parent->input_count; ++i) {
    const weir_data_t* dataset = parent->inputs[i];
    if (!weir_shard_is_hint(dataset)) {
      WEIR_TRY(find_hints(search, dataset));
      continue;
    }
    weir_data_t* shard = NULL;
    search->self->is_counted = false;
    WEIR_TRY(weir_shard_create(dataset->inputs[0], search->workers, search->index, &shard));
    WEIR_TRY(put_instead(search, parent, i, shard));
    WEIR_TRY(find_hints(search, shard));
  }
  return NULL;
}

// ---- the dataset ----

static void clear(auto_shard_t* self) {
  while (self->instead) {
    weir_instead_t* entry = self->instead;
    self->instead = entry->next;
    weir_dataset_release(entry->dataset);
    weir_free(entry);
  }
}

static weir_status_t* check_policy(int64_t policy, int64_t workers, int64_t index) {
  if (workers <= 0) return WEIR_STATUS(INVALID_ARGUMENT, "num_workers must be greater than zero.");
  if (index < 0 || index >= workers)
    return WEIR_STATUS(INVALID_ARGUMENT, "index must be between 0 and %lld",
                       (long long)(workers - 1));
  if (policy >= kOff && policy <= kHint) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "auto_shard_policy is invalid.");
}

static weir_status_t* choose(search_t* search, int64_t policy) {
  auto_shard_t* self = search->self;
  if (policy == kOff || search->workers == 1) return NULL;
  if (policy == kHint) return find_hints(search, &self->base);
  if (policy != kData) {
    weir_status_t* status = find_files(search, &self->base, 0);
    if (policy == kFile || weir_status_code(status) != WEIR_NOT_FOUND) return status;
    weir_status_destroy(status);  // what was sharded on the way stays so, as in TensorFlow
  }
  self->is_counted = true;
  return put_shard(search, &self->base, 0);
}

static weir_status_t* auto_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  search_t search = {.self = (auto_shard_t*)dataset, .functions = ctx->step->functions};
  int64_t policy = weir_attrs_int(weir_kernel_attrs(ctx), "auto_shard_policy");
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  WEIR_TRY(weir_dataset_int(ctx, 1, "num_workers", &search.workers));
  WEIR_TRY(weir_dataset_int(ctx, 2, "index", &search.index));
  WEIR_TRY(check_policy(policy, search.workers, search.index));
  search.self->is_counted = true;
  return choose(&search, policy);
}

static void auto_deinit(weir_data_t* dataset) { clear((auto_shard_t*)dataset); }

static int64_t auto_cardinality(const weir_data_t* dataset) {
  const auto_shard_t* self = (const auto_shard_t*)dataset;
  if (!self->is_counted && weir_instead_find(self->instead, dataset, 0) == dataset->inputs[0])
    return WEIR_CARDINALITY_UNKNOWN;
  return weir_dataset_cardinality(weir_instead_find(self->instead, dataset, 0));
}

static weir_status_t* auto_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                               weir_tensor_t** out) {
  const auto_shard_t* self = (const auto_shard_t*)dataset;
  weir_data_t* input = weir_instead_find(self->instead, dataset, 0);
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  return weir_dataset_get(input, walk, index, out);
}

static weir_status_t* auto_start(weir_iterator_t* iterator) {
  auto_iterator_t* self = (auto_iterator_t*)iterator;
  self->walk = *iterator->walk;
  self->walk.instead = ((const auto_shard_t*)iterator->dataset)->instead;
  iterator->walk = &self->walk;
  return weir_iterator_open(iterator, 0);
}

static const weir_iterator_vtable_t auto_iterator = {.size = sizeof(auto_iterator_t),
                                                     .start = auto_start,
                                                     .next = weir_iterator_next_input,
                                                     .may_resume = true};
static const weir_dataset_vtable_t auto_dataset = {.name = "AutoShard",
                                                   .size = sizeof(auto_shard_t),
                                                   .init = auto_init,
                                                   .deinit = auto_deinit,
                                                   .cardinality = auto_cardinality,
                                                   .get = auto_get,
                                                   .iterator = &auto_iterator};

static weir_status_t* auto_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &auto_dataset);
}

const weir_op_module_t weir_ops_data_auto_shard = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "AutoShardDataset",
         .attrs = "auto_shard_policy: int = 0; " WEIR_DATASET_SPEC "; num_replicas: int = 0",
         .inputs = "input_dataset: variant; num_workers: int64; index: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "A worker's part of a dataset: some of its files, or of its elements",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(auto_cpu)},
        {0}}};
