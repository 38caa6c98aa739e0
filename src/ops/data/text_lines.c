// text_lines.c — TextLineDataset, FixedLengthRecordDataset, V2: lines of files, or equal pieces.
#include "ops/data/files.h"

typedef struct pieces_t {
  weir_files_t files;
  int64_t header_size, record_size, footer_size;  // FixedLengthRecordDataset
} pieces_t;

typedef struct pieces_iterator_t {
  weir_files_iterator_t files;
  weir_file_stream_t stream;
} pieces_iterator_t;

static weir_status_t* open_stream(weir_iterator_t* iterator, int64_t file) {
  const weir_files_t* files = (const weir_files_t*)iterator->dataset;
  return weir_file_stream_open(files->compression, files->names[file],
                               &((pieces_iterator_t*)iterator)->stream);
}

static void close_stream(weir_iterator_t* iterator) {
  weir_file_stream_close(&((pieces_iterator_t*)iterator)->stream);
}

static weir_status_t* read_compression(weir_kernel_ctx_t* ctx, int i, weir_files_t* files) {
  weir_view_t text;
  WEIR_TRY(weir_dataset_string(ctx, i, "compression_type", &text));
  if (weir_compression_parse(text, &files->compression)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported compression_type.");
}

static weir_status_t* check_buffer_size(weir_kernel_ctx_t* ctx, int i) {
  int64_t size = 0;
  WEIR_TRY(weir_dataset_int(ctx, i, "buffer_size", &size));
  if (size >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "`buffer_size` must be >= 0 (0 == default)");
}

// ---- places ----

static uint64_t tell(weir_iterator_t* iterator) {
  return ((pieces_iterator_t*)iterator)->stream.offset;
}

static void seek(weir_iterator_t* iterator, uint64_t offset) {
  weir_file_stream_seek(&((pieces_iterator_t*)iterator)->stream, offset);
}

static const weir_files_place_t place = {.tell = tell, .seek = seek};

// ---- lines ----

static weir_status_t* lines_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  weir_files_t* self = (weir_files_t*)dataset;
  WEIR_TRY(weir_files_init(ctx, self));
  WEIR_TRY(read_compression(ctx, 1, self));
  return check_buffer_size(ctx, 2);
}

static weir_status_t* lines_read(weir_iterator_t* iterator, weir_view_t* out_record,
                                 bool* out_is_end) {
  return weir_file_stream_line(&((pieces_iterator_t*)iterator)->stream, out_record, out_is_end);
}

static const weir_files_reader_t lines_reader = {
    .open = open_stream, .read = lines_read, .close = close_stream};

static weir_status_t* lines_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                 weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  return weir_files_next((weir_files_iterator_t*)iterator, &lines_reader, out, out_is_end);
}

static void lines_state(weir_iterator_t* iterator, weir_state_t* state) {
  weir_files_state((weir_files_iterator_t*)iterator, &lines_reader, &place, state);
}

static const weir_iterator_vtable_t lines_iterator = {.size = sizeof(pieces_iterator_t),
                                                      .next = lines_next,
                                                      .stop = close_stream,
                                                      .state = lines_state};
static const weir_dataset_vtable_t lines_dataset = {.name = "TextLine",
                                                    .size = sizeof(weir_files_t),
                                                    .init = lines_init,
                                                    .deinit = weir_files_deinit,
                                                    .cardinality = weir_dataset_unknown_size,
                                                    .iterator = &lines_iterator};

static weir_status_t* lines_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &lines_dataset);
}

// ---- equal pieces ----

static weir_status_t* pieces_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  pieces_t* self = (pieces_t*)dataset;
  WEIR_TRY(weir_files_init(ctx, &self->files));
  WEIR_TRY(weir_dataset_int(ctx, 1, "header_bytes", &self->header_size));
  WEIR_TRY(weir_dataset_int(ctx, 2, "record_bytes", &self->record_size));
  WEIR_TRY(weir_dataset_int(ctx, 3, "footer_bytes", &self->footer_size));
  if (self->header_size < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "`header_bytes` must be a non-negative integer");
  if (self->record_size <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "`record_bytes` must be a positive integer");
  if (self->footer_size < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "`footer_bytes` must be a non-negative integer");
  WEIR_TRY(check_buffer_size(ctx, 4));
  return ctx->input_count > 5 ? read_compression(ctx, 5, &self->files) : NULL;
}

// With |left| bytes before the end of the file.
static weir_status_t* bad_length(const weir_file_stream_t* stream, const pieces_t* pieces,
                                 size_t left, weir_code_t code) {
  long long body = (long long)(stream->offset + left) - pieces->header_size - pieces->footer_size;
  return weir_status_create(
      code, __FILE__, __LINE__,
      "Excluding the header (%lld bytes) and footer (%lld bytes), input file \"%s\" has body "
      "length %lld bytes, which is not an exact multiple of the record length (%lld bytes).",
      (long long)pieces->header_size, (long long)pieces->footer_size, stream->file->path, body,
      (long long)pieces->record_size);
}

static weir_status_t* pieces_open(weir_iterator_t* iterator, int64_t file) {
  const pieces_t* pieces = (const pieces_t*)iterator->dataset;
  weir_file_stream_t* stream = &((pieces_iterator_t*)iterator)->stream;
  WEIR_TRY(open_stream(iterator, file));
  stream->offset = (uint64_t)pieces->header_size;
  stream->buffer_offset = stream->offset;
  if (pieces->files.compression.is_compressed) return NULL;  // its size is not known
  int64_t body = (int64_t)stream->file->size - pieces->header_size - pieces->footer_size;
  if (body >= 0 && body % pieces->record_size == 0) return NULL;
  return bad_length(stream, pieces, (size_t)(body + pieces->footer_size), WEIR_INVALID_ARGUMENT);
}

// What is left may be the footer, which a compressed file does not tell from a record before its
// end is seen.
static weir_status_t* pieces_read(weir_iterator_t* iterator, weir_view_t* out_record,
                                  bool* out_is_end) {
  const pieces_t* pieces = (const pieces_t*)iterator->dataset;
  weir_file_stream_t* stream = &((pieces_iterator_t*)iterator)->stream;
  size_t record = (size_t)pieces->record_size, footer = (size_t)pieces->footer_size;
  weir_view_t bytes;
  WEIR_TRY(weir_file_stream_look(stream, record + footer, &bytes));
  *out_is_end = bytes.size < record + footer;
  if (*out_is_end && bytes.size != footer)
    return bad_length(stream, pieces, bytes.size, WEIR_DATA_LOSS);
  *out_record = weir_view(bytes.data, *out_is_end ? 0 : record);
  if (!*out_is_end) stream->offset += record;
  return NULL;
}

static const weir_files_reader_t pieces_reader = {
    .open = pieces_open, .read = pieces_read, .close = close_stream, .skips_damaged = true};

static weir_status_t* pieces_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                  weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  return weir_files_next((weir_files_iterator_t*)iterator, &pieces_reader, out, out_is_end);
}

static void pieces_state(weir_iterator_t* iterator, weir_state_t* state) {
  weir_files_state((weir_files_iterator_t*)iterator, &pieces_reader, &place, state);
}

static const weir_iterator_vtable_t pieces_iterator = {.size = sizeof(pieces_iterator_t),
                                                       .next = pieces_next,
                                                       .stop = close_stream,
                                                       .state = pieces_state};
static const weir_dataset_vtable_t pieces_dataset = {.name = "FixedLengthRecord",
                                                     .size = sizeof(pieces_t),
                                                     .init = pieces_init,
                                                     .deinit = weir_files_deinit,
                                                     .cardinality = weir_dataset_unknown_size,
                                                     .iterator = &pieces_iterator};

static weir_status_t* pieces_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &pieces_dataset);
}

#define PIECES_INPUTS                                                                  \
  "filenames: string; header_bytes: int64; record_bytes: int64; footer_bytes: int64; " \
  "buffer_size: int64"

const weir_op_module_t weir_ops_data_text_lines = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "TextLineDataset",
         .attrs = "metadata: string = ''",
         .inputs = "filenames: string; compression_type: string; buffer_size: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The lines of files",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(lines_cpu)},
        {.name = "FixedLengthRecordDataset",
         .attrs = "metadata: string = ''",
         .inputs = PIECES_INPUTS,
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Equal pieces of files, between a header and a footer",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(pieces_cpu)},
        {.name = "FixedLengthRecordDatasetV2",
         .attrs = "metadata: string = ''",
         .inputs = PIECES_INPUTS "; compression_type: string",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Equal pieces of files, between a header and a footer",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(pieces_cpu)},
        {0}}};
