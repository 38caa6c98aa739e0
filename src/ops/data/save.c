// save.c — SaveDataset, SaveDatasetV2: elements into a folder, as a function says into which shard.
#include "ops/data/background_kernel.h"
#include "ops/data/captured.h"
#include "ops/data/snapshot.h"

// What both ops have of their node.
typedef struct target_t {
  weir_captured_t function;
  bool asks;  // the function; else all is one shard
  char* path;
  weir_compression_t compression;
} target_t;

static weir_status_t* target_init(weir_kernel_ctx_t* ctx, target_t* self) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  weir_view_t path;
  WEIR_TRY(weir_dataset_string(ctx, 1, "path", &path));
  WEIR_TRY(weir_snapshot_compression(weir_attrs_string(attrs, "compression"), &self->compression));
  if (path.size > 0 && memchr(path.data, '\0', path.size))
    return WEIR_STATUS(INVALID_ARGUMENT, "path '%.*s' holds a zero byte", WEIR_VIEW_ARG(path));
  self->path = weir_strndup(path.data ? path.data : "", path.size);
  if (!self->path) return weir_out_of_memory();
  self->asks = weir_attrs_bool(attrs, "use_shard_func");
  return weir_captured_init(ctx, "shard_func", 2, weir_captured_count(ctx, "Tshard_func_args"),
                            &self->function);
}

static void target_deinit(target_t* self) {
  weir_captured_deinit(&self->function);
  weir_free(self->path);
}

static weir_status_t* choose_shard(const target_t* self, const weir_walk_t* walk,
                                   weir_cancel_t* cancel, weir_tensor_t* const* element, int width,
                                   int64_t* out_shard) {
  weir_tensor_t* number = NULL;
  int count = 0;
  *out_shard = 0;
  if (!self->asks) return NULL;
  WEIR_TRY(weir_captured_result_count(&self->function, walk, &count));
  if (count != 1) return WEIR_STATUS(INVALID_ARGUMENT, "`shard_func` must return a scalar int64.");
  weir_results_t results = {.count = 1, .items = &number};
  WEIR_TRY(weir_captured_call(&self->function, walk, cancel, element, width, &results));
  weir_status_t* status = NULL;
  if (weir_tensor_type(number) != WEIR_DTYPE_INT64 || number->count != 1)
    status = WEIR_STATUS(INVALID_ARGUMENT, "`shard_func` must return a scalar int64.");
  else *out_shard = *WEIR_TENSOR_DATA(number, int64_t);
  weir_tensor_release(number);
  return status;
}

// ---- SaveDataset ----

static weir_status_t* save_all(const target_t* target, weir_iterator_t* iterator,
                               weir_snapshot_writer_t* writer, weir_tensor_t** element) {
  const weir_walk_t* walk = iterator->walk;
  const int width = iterator->dataset->count;
  for (;;) {
    bool is_end = false;
    int64_t shard = 0;
    WEIR_TRY(weir_iterator_next(iterator, walk->cancel, element, &is_end));
    if (is_end) return weir_snapshot_writer_finish(writer);
    WEIR_TRY(choose_shard(target, walk, walk->cancel, element, width, &shard));
    WEIR_TRY(weir_snapshot_writer_add(writer, shard, element));
    weir_element_clear(element, width);
  }
}

static weir_status_t* save(weir_kernel_ctx_t* ctx) {
  const weir_walk_t walk = weir_step_walk(ctx);
  weir_data_t* dataset = NULL;
  target_t target = {.asks = false};
  weir_iterator_t* iterator = NULL;
  weir_snapshot_writer_t* writer = NULL;
  weir_tensor_t** element = NULL;
  WEIR_TRY(weir_dataset_of(weir_kernel_input(ctx, 0), &dataset));
  weir_status_t* status = target_init(ctx, &target);
  if (!status)
    status = weir_snapshot_writer_create(weir_view_of(target.path), target.compression, dataset,
                                         &writer);
  if (!status) status = weir_iterator_create(dataset, &walk, &iterator);
  if (!status) element = weir_element_create(dataset->count);
  if (!status)
    status = element ? save_all(&target, iterator, writer, element) : weir_out_of_memory();
  weir_element_free(element, dataset->count);
  weir_iterator_destroy(iterator);
  weir_snapshot_writer_destroy(writer);
  target_deinit(&target);
  return status;
}

static void save_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, save);
}

// ---- SaveDatasetV2: the same elements, which are saved as they are asked for ----

typedef struct saving_t {
  weir_data_t base;
  target_t target;
} saving_t;

typedef struct saving_iterator_t {
  weir_iterator_t base;
  weir_snapshot_writer_t* writer;
} saving_iterator_t;

static weir_status_t* saving_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  return target_init(ctx, &((saving_t*)dataset)->target);
}

static void saving_deinit(weir_data_t* dataset) { target_deinit(&((saving_t*)dataset)->target); }

static weir_status_t* saving_start(weir_iterator_t* iterator) {
  const target_t* target = &((const saving_t*)iterator->dataset)->target;
  WEIR_TRY(weir_snapshot_writer_create(weir_view_of(target->path), target->compression,
                                       iterator->dataset, &((saving_iterator_t*)iterator)->writer));
  return weir_iterator_open(iterator, 0);
}

static weir_status_t* saving_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                  weir_tensor_t** out, bool* out_is_end) {
  saving_iterator_t* self = (saving_iterator_t*)iterator;
  const target_t* target = &((const saving_t*)iterator->dataset)->target;
  int64_t shard = 0;
  WEIR_TRY(weir_iterator_pull(iterator, 0, cancel, out, out_is_end));
  if (*out_is_end) return weir_snapshot_writer_finish(self->writer);
  WEIR_TRY(choose_shard(target, iterator->walk, cancel, out, iterator->dataset->count, &shard));
  return weir_snapshot_writer_add(self->writer, shard, out);
}

static void saving_stop(weir_iterator_t* iterator) {
  weir_snapshot_writer_destroy(((saving_iterator_t*)iterator)->writer);
}

static const weir_iterator_vtable_t saving_iterator = {.size = sizeof(saving_iterator_t),
                                                       .start = saving_start,
                                                       .next = saving_next,
                                                       .stop = saving_stop};
static const weir_dataset_vtable_t saving_dataset = {.name = "SaveV2",
                                                     .size = sizeof(saving_t),
                                                     .init = saving_init,
                                                     .deinit = saving_deinit,
                                                     .iterator = &saving_iterator};

static weir_status_t* saving_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &saving_dataset);
}

#define INPUTS "input_dataset: variant; path: string; shard_func_other_args: Tshard_func_args"
#define ATTRS                                                                 \
  "compression: string = ''; shard_func: func; use_shard_func: bool = true; " \
  "Tshard_func_args: list(type) >= 0"

const weir_op_module_t weir_ops_data_save = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SaveDataset",
         .attrs = ATTRS,
         .inputs = INPUTS,
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | WEIR_OP_UNBOUNDED,
         .summary = "Saves the elements of a dataset in a folder",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute_async = save_cpu)},
        {.name = "SaveDatasetV2",
         .attrs = ATTRS "; " WEIR_DATASET_SPEC,
         .inputs = INPUTS,
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The same elements, saved in a folder as they are asked for",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(saving_cpu)},
        {0}}};
