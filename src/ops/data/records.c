// records.c — TFRecordDataset, V2: the records of TFRecord files.
#include "file/record.h"
#include "ops/data/files.h"

typedef struct records_t {
  weir_files_t files;
  uint64_t* offsets;  // where to begin in each file; NULL: at its start
} records_t;

typedef struct records_iterator_t {
  weir_files_iterator_t files;
  weir_record_reader_t* reader;
} records_iterator_t;

static weir_status_t* read_offsets(weir_kernel_ctx_t* ctx, records_t* self) {
  const weir_tensor_t* offsets = weir_kernel_input(ctx, 3);
  if (offsets->rank > 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "`byte_offsets` must be a scalar or a vector.");
  if (offsets->count == 0) return NULL;
  if (offsets->count != self->files.count)
    return WEIR_STATUS(INVALID_ARGUMENT, "`byte_offsets` must be of same size as `filenames`");
  self->offsets = weir_calloc((size_t)offsets->count, sizeof(*self->offsets));
  if (!self->offsets) return weir_out_of_memory();
  for (int64_t i = 0; i < offsets->count; ++i) {
    int64_t offset = weir_tensor_int_at(offsets, i);
    self->offsets[i] = offset > 0 ? (uint64_t)offset : 0;
  }
  return NULL;
}

static weir_status_t* records_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  records_t* self = (records_t*)dataset;
  int64_t buffer_size = 0;
  weir_view_t compression;
  WEIR_TRY(weir_files_init(ctx, &self->files));
  WEIR_TRY(weir_dataset_string(ctx, 1, "compression_type", &compression));
  WEIR_TRY(weir_dataset_int(ctx, 2, "buffer_size", &buffer_size));
  if (buffer_size < -1)  // -1: as the reader likes
    return WEIR_STATUS(INVALID_ARGUMENT, "`buffer_size` must be >= 0 (0 == no buffering)");
  // What is not known is taken for none, as in TensorFlow.
  (void)weir_compression_parse(compression, &self->files.compression);
  return ctx->input_count > 3 ? read_offsets(ctx, self) : NULL;
}

static void records_deinit(weir_data_t* dataset) {
  weir_free(((records_t*)dataset)->offsets);
  weir_files_deinit(dataset);
}

static weir_status_t* records_open(weir_iterator_t* iterator, int64_t file) {
  records_iterator_t* self = (records_iterator_t*)iterator;
  const records_t* records = (const records_t*)iterator->dataset;
  weir_file_t* opened = NULL;
  WEIR_TRY(weir_compression_open(records->files.compression, records->files.names[file], &opened));
  WEIR_TRY(weir_record_reader_create(opened, &self->reader));
  if (records->offsets) weir_record_seek(self->reader, records->offsets[file]);
  return NULL;
}

static weir_status_t* records_read(weir_iterator_t* iterator, weir_view_t* out_record,
                                   bool* out_is_end) {
  weir_status_t* status = weir_record_next(((records_iterator_t*)iterator)->reader, out_record);
  *out_is_end = weir_status_code(status) == WEIR_OUT_OF_RANGE;
  if (!*out_is_end) return status;
  weir_status_destroy(status);
  return NULL;
}

static void records_close(weir_iterator_t* iterator) {
  records_iterator_t* self = (records_iterator_t*)iterator;
  weir_record_reader_destroy(self->reader);
  self->reader = NULL;
}

static const weir_files_reader_t records_reader = {
    .open = records_open, .read = records_read, .close = records_close, .skips_damaged = true};

static weir_status_t* records_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                   weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  return weir_files_next((weir_files_iterator_t*)iterator, &records_reader, out, out_is_end);
}

static uint64_t records_tell(weir_iterator_t* iterator) {
  return weir_record_tell(((records_iterator_t*)iterator)->reader);
}

static void records_seek(weir_iterator_t* iterator, uint64_t offset) {
  weir_record_seek(((records_iterator_t*)iterator)->reader, offset);
}

static void records_state(weir_iterator_t* iterator, weir_state_t* state) {
  const weir_files_place_t place = {.tell = records_tell, .seek = records_seek};
  weir_files_state((weir_files_iterator_t*)iterator, &records_reader, &place, state);
}

static const weir_iterator_vtable_t records_iterator = {.size = sizeof(records_iterator_t),
                                                        .next = records_next,
                                                        .stop = records_close,
                                                        .state = records_state};
static const weir_dataset_vtable_t records_dataset = {.name = "TFRecord",
                                                      .size = sizeof(records_t),
                                                      .init = records_init,
                                                      .deinit = records_deinit,
                                                      .cardinality = weir_dataset_unknown_size,
                                                      .iterator = &records_iterator};

static weir_status_t* records_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &records_dataset);
}

const weir_op_module_t weir_ops_data_records = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "TFRecordDataset",
         .attrs = "metadata: string = ''",
         .inputs = "filenames: string; compression_type: string; buffer_size: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The records of TFRecord files",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(records_cpu)},
        {.name = "TFRecordDatasetV2",
         .attrs = "metadata: string = ''",
         .inputs = "filenames: string; compression_type: string; buffer_size: int64; "
                   "byte_offsets: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The records of TFRecord files, from given places on",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(records_cpu)},
        {0}}};
