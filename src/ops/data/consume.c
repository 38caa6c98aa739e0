// consume.c — InitializeTableFromDataset, DatasetToTFRecord: whole datasets into a table, or a
// file.
#include "file/record.h"
#include "ops/data/background_kernel.h"
#include "ops/data/file_stream.h"
#include "ops/data/rows.h"
#include "ops/table/table.h"

// What is done with each element, which stays the caller's.
typedef weir_status_t* (*consume_fn_t)(void* arg, weir_tensor_t* const* element);

static weir_status_t* consume_all(weir_kernel_ctx_t* ctx, weir_data_t* dataset, consume_fn_t use,
                                  void* arg) {
  const weir_walk_t walk = weir_step_walk(ctx);
  weir_iterator_t* iterator = NULL;
  WEIR_TRY(weir_iterator_create(dataset, &walk, &iterator));
  weir_tensor_t** element = weir_element_create(dataset->count);
  weir_status_t* status = element ? NULL : weir_out_of_memory();
  for (bool is_end = false; !status && !is_end;) {
    status = weir_iterator_next(iterator, walk.cancel, element, &is_end);
    if (!status && !is_end) status = use(arg, element);
    weir_element_clear(element, dataset->count);
  }
  weir_element_free(element, dataset->count);
  weir_iterator_destroy(iterator);
  return status;
}

// ---- InitializeTableFromDataset ----

typedef struct entries_t {
  weir_tensor_t*** items;
  size_t count, capacity;
} entries_t;

static weir_status_t* keep_entry(void* arg, weir_tensor_t* const* element) {
  entries_t* entries = arg;
  weir_tensor_t** copy = weir_element_create(2);
  if (!copy || !WEIR_GROW(entries->items, entries->capacity, entries->count + 1)) {
    weir_free(copy);
    return weir_out_of_memory();
  }
  weir_element_share(element, copy, 2);
  entries->items[entries->count++] = copy;
  return NULL;
}

static weir_status_t* check_entries(const weir_lookup_table_t* table, const weir_data_t* dataset) {
  const weir_lookup_table_config_t* config = weir_lookup_table_config(table);
  const weir_dtype_t types[] = {config->key_dtype, config->value_dtype};
  return weir_components_check_types(2, types, dataset->count, dataset->types);
}

// Entries are gathered first: a table is filled at once or not at all.
static weir_status_t* fill_table(weir_kernel_ctx_t* ctx, weir_lookup_table_t* table) {
  weir_data_t* dataset = NULL;
  entries_t entries = {0};
  weir_tensor_t* columns[2] = {NULL, NULL};
  WEIR_TRY(weir_lookup_table_check_initializable(table));
  WEIR_TRY(weir_dataset_of(weir_kernel_input(ctx, 1), &dataset));
  WEIR_TRY(check_entries(table, dataset));
  weir_status_t* status = consume_all(ctx, dataset, keep_entry, &entries);
  if (!status && entries.count == 0) status = WEIR_STATUS(OUT_OF_RANGE, "end of iterator");
  if (!status) status = weir_rows_stack(entries.items, (int64_t)entries.count, 2, columns);
  if (!status) status = weir_lookup_table_initialize(table, columns[0], columns[1]);
  weir_element_clear(columns, 2);
  weir_rows_free(entries.items, (int64_t)entries.count, 2);
  return status;
}

static weir_status_t* table(weir_kernel_ctx_t* ctx) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, 0, &weir_lookup_table_type, &resource));
  weir_status_t* status = fill_table(ctx, (weir_lookup_table_t*)resource);
  weir_resource_release(resource);
  return status;
}

static void table_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, table);
}

// ---- DatasetToTFRecord ----

typedef struct sink_t {  // a writer into memory, for what is compressed as a whole
  weir_writer_t base;
  weir_strbuf_t text;
} sink_t;

static weir_status_t* sink_write(weir_writer_t* writer, const void* data, size_t size) {
  weir_strbuf_append(&((sink_t*)writer)->text, data, size);
  return NULL;
}

static const weir_writer_vtable_t sink_vtable = {.write = sink_write};

static weir_status_t* write_record(void* arg, weir_tensor_t* const* element) {
  if (element[0]->count != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "a record is one string, not %lld",
                       (long long)element[0]->count);
  weir_view_t text = weir_string_view(element[0]->data);
  return weir_record_write(arg, text.data, text.size);
}

static weir_status_t* write_plain(weir_kernel_ctx_t* ctx, weir_data_t* dataset, const char* path) {
  weir_writer_t* writer = NULL;
  WEIR_TRY(weir_writer_open(path, false, &writer));
  weir_status_t* status = consume_all(ctx, dataset, write_record, writer);
  weir_status_t* closed = weir_writer_close(writer);
  if (!status) return closed;
  weir_status_destroy(closed);
  return status;
}

static weir_status_t* write_compressed(weir_kernel_ctx_t* ctx, weir_data_t* dataset,
                                       weir_deflate_format_t format, const char* path) {
  sink_t sink = {.base = {.vtable = &sink_vtable}};
  weir_strbuf_t packed = {0};
  weir_status_t* status = consume_all(ctx, dataset, write_record, &sink);
  if (!status) status = weir_strbuf_finish(&sink.text);
  if (!status) status = weir_deflate(format, -1, weir_strbuf_view(&sink.text), &packed);
  if (!status) status = weir_strbuf_finish(&packed);
  if (!status) status = weir_fs_write_all(path, weir_strbuf_view(&packed));
  weir_strbuf_free(&sink.text);
  weir_strbuf_free(&packed);
  return status;
}

static weir_status_t* check_records(const weir_data_t* dataset) {
  if (dataset->count != 1)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "ToTFRecordOp currently only support datasets of single tensor.");
  if (dataset->types[0] != WEIR_DTYPE_STRING)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "ToTFRecordOp currently only supports DT_STRING dataypes, but got %s",
                       weir_dtype_name(dataset->types[0]));
  return NULL;
}

// The file is there, empty, also where nothing can be written to it.
static weir_status_t* record(weir_kernel_ctx_t* ctx) {
  weir_data_t* dataset = NULL;
  weir_view_t name, kind;
  weir_compression_t compression;
  WEIR_TRY(weir_dataset_string(ctx, 1, "filename", &name));
  WEIR_TRY(weir_dataset_string(ctx, 2, "compression_type", &kind));
  if (name.size > 0 && memchr(name.data, '\0', name.size))
    return WEIR_STATUS(INVALID_ARGUMENT, "path '%.*s' holds a zero byte", WEIR_VIEW_ARG(name));
  char* path = weir_strndup(name.data, name.size);
  if (!path) return weir_out_of_memory();
  // Any other word is no compression, as in TensorFlow.
  weir_compression_parse(kind, &compression);
  weir_status_t* status = weir_fs_write_all(path, weir_view("", 0));
  if (!status) status = weir_dataset_of(weir_kernel_input(ctx, 0), &dataset);
  if (!status) status = check_records(dataset);
  if (!status)
    status = compression.is_compressed ? write_compressed(ctx, dataset, compression.format, path)
                                       : write_plain(ctx, dataset, path);
  weir_free(path);
  return status;
}

static void record_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, record);
}

static weir_status_t* table_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL);
}

#define FLAGS (WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | WEIR_OP_UNBOUNDED)

const weir_op_module_t weir_ops_data_consume = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "InitializeTableFromDataset",
         .inputs = "table_handle: resource; dataset: variant",
         .flags = FLAGS,
         .summary = "Fills a table with the keys and values that a dataset has",
         .infer_shape = table_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = table_cpu)},
        {.name = "DatasetToTFRecord",
         .inputs = "input_dataset: variant; filename: string; compression_type: string",
         .flags = FLAGS,
         .summary = "Writes the strings of a dataset into a file of records",
         .infer_shape = weir_shape_fn_none,
         .kernels = WEIR_CPU_KERNEL(.compute_async = record_cpu)},
        {0}}};
