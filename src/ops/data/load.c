// load.c — LoadDataset: what SaveDataset saved. A function makes one dataset of those of the
// shards.
#include "file/record.h"
#include "ops/data/captured.h"
#include "ops/data/snapshot.h"
#include "tensor/tensor_proto.h"

// ---- a shard ----

typedef struct shard_t {
  weir_data_t base;
  char* folder;
  weir_compression_t compression;
} shard_t;

typedef struct shard_iterator_t {
  weir_iterator_t base;
  weir_names_t files;
  bool is_begun;
  size_t next;  // file
  weir_record_reader_t* reader;
} shard_iterator_t;

static void shard_deinit(weir_data_t* dataset) { weir_free(((shard_t*)dataset)->folder); }

static weir_status_t* list_files(shard_iterator_t* self) {
  char* pattern = NULL;
  WEIR_TRY(
      weir_snapshot_join(((const shard_t*)self->base.dataset)->folder, "*.snapshot", &pattern));
  weir_status_t* status = weir_fs_glob(pattern, &self->files);
  weir_names_sort(&self->files);
  self->is_begun = !status;
  weir_free(pattern);
  return status;
}

// Opens the next file; *|out_is_end| where there is none.
static weir_status_t* open_file(shard_iterator_t* self, bool* out_is_end) {
  weir_file_t* file = NULL;
  if (!self->is_begun) WEIR_TRY(list_files(self));
  *out_is_end = self->next >= self->files.count;
  if (*out_is_end) return NULL;
  WEIR_TRY(weir_compression_open(((const shard_t*)self->base.dataset)->compression,
                                 self->files.items[self->next++], &file));
  return weir_record_reader_create(file, &self->reader);
}

static weir_status_t* read_component(shard_iterator_t* self, weir_tensor_t** out) {
  weir_view_t record;
  WEIR_TRY(weir_record_next(self->reader, &record));
  return weir_tensor_parse(record, out);
}

static weir_status_t* read_element(shard_iterator_t* self, weir_tensor_t** out, bool* out_is_over) {
  const int width = self->base.dataset->count;
  weir_status_t* status = read_component(self, &out[0]);
  *out_is_over = weir_status_code(status) == WEIR_OUT_OF_RANGE;
  if (*out_is_over) {
    weir_status_destroy(status);
    return NULL;
  }
  for (int i = 1; i < width && !status; ++i) status = read_component(self, &out[i]);
  if (weir_status_code(status) != WEIR_OUT_OF_RANGE) return status;
  weir_status_destroy(status);
  return WEIR_STATUS(DATA_LOSS, "a saved element has fewer than %d components", width);
}

static weir_status_t* shard_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                 weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  shard_iterator_t* self = (shard_iterator_t*)iterator;
  for (;;) {
    bool is_over = false;
    if (!self->reader) WEIR_TRY(open_file(self, out_is_end));
    if (*out_is_end) return NULL;
    WEIR_TRY(read_element(self, out, &is_over));
    if (!is_over) return NULL;
    weir_record_reader_destroy(self->reader);
    self->reader = NULL;
  }
}

static void shard_stop(weir_iterator_t* iterator) {
  shard_iterator_t* self = (shard_iterator_t*)iterator;
  if (self->reader) weir_record_reader_destroy(self->reader);
  weir_names_free(&self->files);
}

static void shard_state(weir_iterator_t* iterator, weir_state_t* state) {
  shard_iterator_t* self = (shard_iterator_t*)iterator;
  int64_t offset = self->reader ? (int64_t)weir_record_tell(self->reader) : 0;
  bool is_open = self->reader != NULL, is_end = false;
  weir_state_size(state, "next", &self->next, SIZE_MAX);
  weir_state_bool(state, "is_open", &is_open);
  weir_state_int(state, "offset", &offset, 0, INT64_MAX);
  if (!state->is_restoring || !weir_state_is_good(state) || !is_open) return;
  weir_state_require(state, self->next > 0);
  if (!weir_state_is_good(state)) return;
  --self->next;
  weir_state_fail(state, open_file(self, &is_end));
  weir_state_require(state, !is_end);
  if (weir_state_is_good(state)) weir_record_seek(self->reader, (uint64_t)offset);
}

static const weir_iterator_vtable_t shard_iterator = {
    .size = sizeof(shard_iterator_t), .next = shard_next, .stop = shard_stop, .state = shard_state};
static const weir_dataset_vtable_t shard_dataset = {.name = "SnapshotReader",
                                                    .size = sizeof(shard_t),
                                                    .deinit = shard_deinit,
                                                    .cardinality = weir_dataset_unknown_size,
                                                    .iterator = &shard_iterator};

// ---- all shards: elements are datasets ----

typedef struct shards_t {
  weir_data_t base;
  weir_names_t folders;
  weir_compression_t compression;
  weir_data_t* like;  // retained: whose components the shards have
} shards_t;

typedef struct shards_iterator_t {
  weir_iterator_t base;
  size_t next;
} shards_iterator_t;

static void shards_deinit(weir_data_t* dataset) {
  shards_t* self = (shards_t*)dataset;
  weir_names_free(&self->folders);
  weir_dataset_release(self->like);
}

static int64_t shards_cardinality(const weir_data_t* dataset) {
  return (int64_t)((const shards_t*)dataset)->folders.count;
}

static weir_status_t* shards_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                  weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  shards_iterator_t* self = (shards_iterator_t*)iterator;
  const shards_t* shards = (const shards_t*)iterator->dataset;
  weir_data_t* made = NULL;
  *out_is_end = self->next >= shards->folders.count;
  if (*out_is_end) return NULL;
  WEIR_TRY(weir_dataset_create(&shard_dataset, &made));
  shard_t* shard = (shard_t*)made;
  const char* folder = shards->folders.items[self->next++];
  shard->compression = shards->compression;
  shard->folder = weir_strndup(folder, strlen(folder));
  weir_status_t* status =
      shard->folder ? weir_dataset_set_like(shards->like, made) : weir_out_of_memory();
  if (!status) return weir_tensor_create_variant(&made->base, &out[0]);
  weir_dataset_release(made);
  return status;
}

static void shards_state(weir_iterator_t* iterator, weir_state_t* state) {
  weir_state_size(state, "next", &((shards_iterator_t*)iterator)->next, SIZE_MAX);
}

static const weir_iterator_vtable_t shards_iterator = {
    .size = sizeof(shards_iterator_t), .next = shards_next, .state = shards_state};
static const weir_dataset_vtable_t shards_dataset = {.name = "SnapshotNestedDataset",
                                                     .size = sizeof(shards_t),
                                                     .deinit = shards_deinit,
                                                     .cardinality = shards_cardinality,
                                                     .iterator = &shards_iterator};

// ---- LoadDataset ----

typedef struct load_t {
  weir_data_t base;
  weir_captured_t function;
  weir_compression_t compression;
  char* folder;  // of the run
  int64_t count;
} load_t;

typedef struct load_iterator_t {
  weir_iterator_t base;
  weir_iterator_t* made;  // over what the function made; NULL: not called yet
} load_iterator_t;

static weir_status_t* load_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  load_t* self = (load_t*)dataset;
  weir_view_t text;
  WEIR_TRY(weir_dataset_set_attrs(ctx, "output_types", "output_shapes", dataset));
  WEIR_TRY(weir_dataset_string(ctx, 0, "path", &text));
  WEIR_TRY(weir_snapshot_compression(weir_attrs_string(weir_kernel_attrs(ctx), "compression"),
                                     &self->compression));
  if (text.size > 0 && memchr(text.data, '\0', text.size))
    return WEIR_STATUS(INVALID_ARGUMENT, "path '%.*s' holds a zero byte", WEIR_VIEW_ARG(text));
  char* path = weir_strndup(text.data ? text.data : "", text.size);
  if (!path) return weir_out_of_memory();
  weir_status_t* status = weir_snapshot_find(path, &self->folder, &self->count);
  weir_free(path);
  if (status) return status;
  return weir_captured_init(ctx, "reader_func", 1, weir_captured_count(ctx, "Treader_func_args"),
                            &self->function);
}

static void load_deinit(weir_data_t* dataset) {
  load_t* self = (load_t*)dataset;
  weir_captured_deinit(&self->function);
  weir_free(self->folder);
}

static int64_t load_cardinality(const weir_data_t* dataset) {
  return ((const load_t*)dataset)->count;
}

static weir_status_t* find_shards(const load_t* self, shards_t* shards) {
  char* pattern = NULL;
  WEIR_TRY(weir_snapshot_join(self->folder, "*.shard", &pattern));
  weir_status_t* status = weir_fs_glob(pattern, &shards->folders);
  weir_free(pattern);
  if (status) return status;
  weir_names_sort(&shards->folders);
  const weir_dtype_t type = WEIR_DTYPE_VARIANT;
  WEIR_TRY(weir_dataset_set_components(1, &type, &shards->base));
  return weir_dataset_set_shape(&shards->base, 0, 0, NULL);
}

static weir_status_t* create_shards(load_iterator_t* self, weir_tensor_t** out) {
  const load_t* load = (const load_t*)self->base.dataset;
  weir_data_t* made = NULL;
  WEIR_TRY(weir_dataset_create(&shards_dataset, &made));
  shards_t* shards = (shards_t*)made;
  shards->compression = load->compression;
  shards->like = weir_dataset_retain(self->base.dataset);
  weir_status_t* status = find_shards(load, shards);
  if (!status) return weir_tensor_create_variant(&made->base, out);
  weir_dataset_release(made);
  return status;
}

static weir_status_t* begin(load_iterator_t* self, weir_cancel_t* cancel) {
  const load_t* load = (const load_t*)self->base.dataset;
  weir_tensor_t* shards = NULL;
  WEIR_TRY(create_shards(self, &shards));
  weir_status_t* status =
      weir_captured_walk(&load->function, self->base.walk, cancel, &shards, 1, &self->made);
  weir_tensor_release(shards);
  if (status) return status;
  const weir_data_t* made = self->made->dataset;
  status =
      weir_components_check_types(load->base.count, load->base.types, made->count, made->types);
  if (!status) return NULL;
  weir_iterator_destroy(self->made);
  self->made = NULL;
  return status;
}

static weir_status_t* load_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                weir_tensor_t** out, bool* out_is_end) {
  load_iterator_t* self = (load_iterator_t*)iterator;
  if (!self->made) WEIR_TRY(begin(self, cancel));
  return weir_iterator_next(self->made, cancel, out, out_is_end);
}

static void load_stop(weir_iterator_t* iterator) {
  weir_iterator_destroy(((load_iterator_t*)iterator)->made);
}

static void load_state(weir_iterator_t* iterator, weir_state_t* state) {
  load_iterator_t* self = (load_iterator_t*)iterator;
  bool is_begun = self->made != NULL;
  weir_captured_state(&((const load_t*)iterator->dataset)->function, iterator, state);
  weir_state_bool(state, "is_begun", &is_begun);
  if (!is_begun || !weir_state_is_good(state)) return;
  if (state->is_restoring) weir_state_fail(state, begin(self, state->cancel));
  if (weir_state_is_good(state)) weir_state_iterator(self->made, state);
}

static const weir_iterator_vtable_t load_iterator = {
    .size = sizeof(load_iterator_t), .next = load_next, .stop = load_stop, .state = load_state};
static const weir_dataset_vtable_t load_dataset = {.name = "Load",
                                                   .size = sizeof(load_t),
                                                   .init = load_init,
                                                   .deinit = load_deinit,
                                                   .cardinality = load_cardinality,
                                                   .iterator = &load_iterator};

static weir_status_t* load_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &load_dataset);
}

const weir_op_module_t weir_ops_data_load = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "LoadDataset",
         .attrs = WEIR_DATASET_SPEC
         "; compression: string = ''; reader_func: func; Treader_func_args: list(type) >= 0",
         .inputs = "path: string; reader_func_other_args: Treader_func_args",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Elements that were saved in a folder",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(load_cpu)},
        {0}}};
