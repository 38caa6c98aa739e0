// csv.c — CSVDataset, V2: records of comma-separated values in files, a component for each column.
#include "ops/data/files.h"
#include "ops/string/number_text.h"

typedef struct csv_t {
  weir_files_t files;
  bool has_header;
  bool uses_quotes;
  char delimiter;
  char* missing;  // what also stands for no value
  size_t missing_size;
  int64_t* columns;  // that are read, or that are not; ascending
  int64_t column_count;
  bool excludes;
  weir_tensor_t** defaults;  // one a component; empty: it must be there
} csv_t;

typedef struct csv_iterator_t {
  weir_files_iterator_t files;
  weir_file_stream_t stream;
  // The record that is being read.
  weir_view_t bytes;     // from its begin on, as far as looked at
  size_t at;             // in |bytes|
  bool is_end;           // of the file, behind |bytes|
  weir_strbuf_t text;    // of the field
  int64_t field;         // in the file
  int64_t column;        // selected fields so far
  weir_status_t* error;  // the first; the record is read to its end all the same
} csv_iterator_t;

// ---- characters ----

// Whether there is a character at |at|.
static weir_status_t* look(csv_iterator_t* self, bool* out_is_there) {
  if (self->at >= self->bytes.size && !self->is_end) {
    const size_t before = self->bytes.size;
    WEIR_TRY(weir_file_stream_look(&self->stream, 2 * before + 1, &self->bytes));
    self->is_end = self->bytes.size < 2 * before + 1;
  }
  *out_is_there = self->at < self->bytes.size;
  return NULL;
}

static void fail(csv_iterator_t* self, weir_status_t* take_status) {
  if (!self->error) self->error = take_status;
  else weir_status_destroy(take_status);
}

// Behind a '\r' a '\n' belongs to it.
static weir_status_t* skip_newline(csv_iterator_t* self, char c) {
  bool is_there = false;
  if (c != '\r') return NULL;
  WEIR_TRY(look(self, &is_there));
  if (is_there && self->bytes.data[self->at] == '\n') ++self->at;
  return NULL;
}

static weir_status_t* end_field(csv_iterator_t* self, char c, bool* out_is_last) {
  *out_is_last = c != ((const csv_t*)self->files.base.dataset)->delimiter;
  return *out_is_last ? skip_newline(self, c) : NULL;
}

static weir_status_t* read_plain(csv_iterator_t* self, bool* out_is_last) {
  const csv_t* csv = (const csv_t*)self->files.base.dataset;
  for (;;) {
    bool is_there = false;
    WEIR_TRY(look(self, &is_there));
    *out_is_last = !is_there;
    if (!is_there) return NULL;
    const char c = self->bytes.data[self->at++];
    if (c == csv->delimiter || c == '\n' || c == '\r') return end_field(self, c, out_is_last);
    if (c == '"' && csv->uses_quotes)
      fail(self, WEIR_STATUS(INVALID_ARGUMENT, "Unquoted fields cannot have quotes inside"));
    weir_strbuf_putc(&self->text, c);
  }
}

static weir_status_t* read_quoted(csv_iterator_t* self, bool* out_is_last) {
  const csv_t* csv = (const csv_t*)self->files.base.dataset;
  for (++self->at;;) {
    bool is_there = false;
    WEIR_TRY(look(self, &is_there));
    if (!is_there) {
      *out_is_last = true;
      fail(self, WEIR_STATUS(INVALID_ARGUMENT,
                             "Reached end of file without closing quoted field in record"));
      return NULL;
    }
    char c = self->bytes.data[self->at++];
    if (c == '"') {
      WEIR_TRY(look(self, &is_there));
      *out_is_last = !is_there;
      if (!is_there) return NULL;
      c = self->bytes.data[self->at++];
      if (c == csv->delimiter || c == '\n' || c == '\r') return end_field(self, c, out_is_last);
      if (c != '"')
        fail(self, WEIR_STATUS(INVALID_ARGUMENT,
                               "Quote inside a string has to be escaped by another quote"));
    }
    weir_strbuf_putc(&self->text, c);
  }
}

// ---- fields ----

static bool is_selected(const csv_iterator_t* self) {
  const csv_t* csv = (const csv_t*)self->files.base.dataset;
  if (csv->column_count == 0) return true;
  if (!csv->excludes)
    return self->column < csv->column_count && csv->columns[self->column] == self->field;
  const int64_t left_out = self->field - self->column;
  return left_out >= csv->column_count || csv->columns[left_out] != self->field;
}

static weir_status_t* put_field(csv_iterator_t* self, weir_tensor_t** out) {
  const csv_t* csv = (const csv_t*)self->files.base.dataset;
  const weir_dtype_t dtype = csv->files.base.types[self->column];
  const weir_tensor_t* given = csv->defaults[self->column];
  const weir_view_t text = weir_strbuf_view(&self->text);
  WEIR_TRY(weir_tensor_create(dtype, 0, NULL, out));
  if (text.size == 0 || weir_view_equal(text, weir_view(csv->missing, csv->missing_size))) {
    if (given->count == 1) return weir_elements_copy(dtype, (*out)->data, given->data, 1);
    fail(self, WEIR_STATUS(INVALID_ARGUMENT, "Field %lld is required but missing in record!",
                           (long long)self->column));
  } else if (dtype == WEIR_DTYPE_STRING) {
    return weir_tensor_set_string(*out, 0, text.data, text.size);
  } else if (!weir_number_parse(text, dtype, (*out)->data)) {
    fail(self, WEIR_STATUS(INVALID_ARGUMENT, "Field %lld in record is not a valid %s: %.*s",
                           (long long)self->column, weir_dtype_name(dtype), WEIR_VIEW_ARG(text)));
  }
  return NULL;
}

static weir_status_t* read_field(csv_iterator_t* self, weir_tensor_t** out, bool* out_is_last) {
  const csv_t* csv = (const csv_t*)self->files.base.dataset;
  bool is_there = false;
  self->text.size = 0;
  WEIR_TRY(look(self, &is_there));
  const bool is_quoted = is_there && csv->uses_quotes && self->bytes.data[self->at] == '"';
  WEIR_TRY(is_quoted ? read_quoted(self, out_is_last) : read_plain(self, out_is_last));
  if (is_selected(self)) {
    if (out && self->column >= csv->files.base.count) {
      fail(self, WEIR_STATUS(INVALID_ARGUMENT, "Expect %d fields but have more in record",
                             csv->files.base.count));
    } else if (out && !self->error) {
      weir_strbuf_putc(&self->text, '\0');  // who reads numbers wants one behind them
      WEIR_TRY(weir_strbuf_finish(&self->text));
      --self->text.size;
      WEIR_TRY(put_field(self, &out[self->column]));
    }
    ++self->column;
  }
  ++self->field;
  return NULL;
}

// Reads a record; |out| is NULL for one that is passed over. *|out_is_there|: there was one.
static weir_status_t* read_record(csv_iterator_t* self, weir_tensor_t** out, bool* out_is_there) {
  const csv_t* csv = (const csv_t*)self->files.base.dataset;
  self->bytes = (weir_view_t){0};
  self->at = 0;
  self->is_end = false;
  self->field = self->column = 0;
  WEIR_TRY(look(self, out_is_there));
  weir_status_t* status = NULL;
  for (bool is_last = !*out_is_there; !is_last && !status;)
    status = read_field(self, out, &is_last);
  self->stream.offset += self->at;
  weir_status_t* error = self->error;
  self->error = NULL;
  if (status) {
    weir_status_destroy(error);
    return status;
  }
  if (out && !error && *out_is_there && self->column < csv->files.base.count)
    error = WEIR_STATUS(INVALID_ARGUMENT, "Expect %d fields but have %lld in record",
                        csv->files.base.count, (long long)self->column);
  return error;
}

// ---- files ----

static void leave_file(csv_iterator_t* self) {
  weir_file_stream_close(&self->stream);
  self->files.is_open = false;
  ++self->files.at;
}

static weir_status_t* open_file(csv_iterator_t* self) {
  const csv_t* csv = (const csv_t*)self->files.base.dataset;
  WEIR_TRY(weir_file_stream_open(csv->files.compression, csv->files.names[self->files.at],
                                 &self->stream));
  self->files.is_open = true;
  if (!csv->has_header) return NULL;
  bool has_header = false;
  weir_status_t* status = read_record(self, NULL, &has_header);
  if (has_header && !status) return NULL;
  if (weir_status_code(status) == WEIR_RESOURCE_EXHAUSTED) return status;
  // Whoever asks again gets what follows the header.
  weir_status_t* refused = WEIR_STATUS(INVALID_ARGUMENT, "Can't read header of file '%s': %s",
                                       csv->files.names[self->files.at],
                                       status ? weir_status_message(status) : "it is empty");
  weir_status_destroy(status);
  return refused;
}

static weir_status_t* csv_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                               weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  csv_iterator_t* self = (csv_iterator_t*)iterator;
  while (self->files.at < ((const csv_t*)iterator->dataset)->files.count) {
    bool is_there = false;
    if (!self->files.is_open) WEIR_TRY(open_file(self));
    WEIR_TRY(read_record(self, out, &is_there));
    if (is_there) return NULL;
    leave_file(self);
  }
  *out_is_end = true;
  return NULL;
}

static void csv_stop(weir_iterator_t* iterator) {
  csv_iterator_t* self = (csv_iterator_t*)iterator;
  weir_file_stream_close(&self->stream);
  weir_strbuf_free(&self->text);
}

// ---- the dataset ----

static weir_status_t* read_columns(weir_kernel_ctx_t* ctx, int i, const char* name, csv_t* self) {
  const weir_tensor_t* columns = weir_kernel_input(ctx, i);
  if (columns->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "`%s` must be a vector", name);
  if (columns->count == 0) return NULL;
  const int64_t* at = WEIR_TENSOR_DATA(columns, const int64_t);
  self->columns = weir_alloc_array((size_t)columns->count, sizeof(*self->columns));
  if (!self->columns) return weir_out_of_memory();
  self->column_count = columns->count;
  memcpy(self->columns, at, (size_t)columns->count * sizeof(*at));
  for (int64_t k = 1; k < columns->count; ++k) {
    if (at[k] <= at[k - 1])
      return WEIR_STATUS(INVALID_ARGUMENT, "%s should be strictly increasing indices", name);
  }
  if (at[0] < 0) return WEIR_STATUS(INVALID_ARGUMENT, "%s should be non-negative indices", name);
  return NULL;
}

static weir_status_t* read_selection(weir_kernel_ctx_t* ctx, csv_t* self) {
  const int count = self->files.base.count, last = 8 + count;
  const bool has_excluded = ctx->input_count > last;
  if (has_excluded && weir_kernel_input(ctx, 7)->count > 0 &&
      weir_kernel_input(ctx, last)->count > 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Either select_cols or exclude_cols should be empty");
  WEIR_TRY(read_columns(ctx, 7, "select_cols", self));
  if (self->column_count > 0 && self->column_count != count)
    return WEIR_STATUS(INVALID_ARGUMENT, "select_cols should match output size");
  if (!has_excluded || self->column_count > 0) return NULL;
  self->excludes = true;
  return read_columns(ctx, last, "exclude_cols", self);
}

static weir_status_t* read_defaults(weir_kernel_ctx_t* ctx, csv_t* self) {
  const int count = self->files.base.count;
  self->defaults = weir_element_create(count);
  if (!self->defaults) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) {
    const weir_tensor_t* given = weir_kernel_input(ctx, 8 + i);
    if (given->rank > 1)
      return WEIR_STATUS(INVALID_ARGUMENT, "Each record default should be at most rank 1");
    if (given->count > 1)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "There should only be 1 default per field but field %d has %lld", i,
                         (long long)given->count);
    self->defaults[i] = weir_tensor_retain(ctx->inputs[8 + i].tensor);
  }
  return NULL;
}

static weir_status_t* read_format(weir_kernel_ctx_t* ctx, csv_t* self) {
  weir_view_t text;
  int64_t buffer_size = 0;
  WEIR_TRY(weir_dataset_string(ctx, 1, "compression_type", &text));
  if (!weir_compression_parse(text, &self->files.compression))
    return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported compression_type: %.*s.",
                       WEIR_VIEW_ARG(text));
  WEIR_TRY(weir_dataset_int(ctx, 2, "buffer_size", &buffer_size));
  if (buffer_size <= 0) return WEIR_STATUS(INVALID_ARGUMENT, "buffer_size should be positive");
  WEIR_TRY(weir_dataset_bool(ctx, 3, "header", &self->has_header));
  WEIR_TRY(weir_dataset_string(ctx, 4, "field_delim", &text));
  if (text.size != 1) return WEIR_STATUS(INVALID_ARGUMENT, "field_delim should be only 1 char");
  self->delimiter = text.data[0];
  WEIR_TRY(weir_dataset_bool(ctx, 5, "use_quote_delim", &self->uses_quotes));
  WEIR_TRY(weir_dataset_string(ctx, 6, "na_value", &text));
  self->missing = weir_strndup(text.data ? text.data : "", text.size);
  self->missing_size = text.size;
  return self->missing ? NULL : weir_out_of_memory();
}

static weir_status_t* csv_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  csv_t* self = (csv_t*)dataset;
  WEIR_TRY(weir_files_init_names(ctx, &self->files));
  WEIR_TRY(weir_dataset_set_attrs(ctx, "output_types", "output_shapes", dataset));
  WEIR_TRY(read_defaults(ctx, self));
  WEIR_TRY(read_format(ctx, self));
  return read_selection(ctx, self);
}

static void csv_deinit(weir_data_t* dataset) {
  csv_t* self = (csv_t*)dataset;
  weir_element_free(self->defaults, dataset->count);
  weir_free(self->columns);
  weir_free(self->missing);
  weir_files_deinit(dataset);
}

static void csv_state(weir_iterator_t* iterator, weir_state_t* state) {
  csv_iterator_t* self = (csv_iterator_t*)iterator;
  int64_t count = ((const csv_t*)iterator->dataset)->files.count;
  int64_t offset = (int64_t)self->stream.offset;
  bool is_open = self->files.is_open;
  weir_state_int(state, "file", &self->files.at, 0, count);
  weir_state_bool(state, "is_open", &is_open);
  weir_state_int(state, "offset", &offset, 0, INT64_MAX);
  if (!state->is_restoring || !weir_state_is_good(state) || !is_open) return;
  weir_state_require(state, self->files.at < count);
  if (weir_state_is_good(state)) weir_state_fail(state, open_file(self));
  if (weir_state_is_good(state)) weir_file_stream_seek(&self->stream, (uint64_t)offset);
}

static const weir_iterator_vtable_t csv_iterator = {
    .size = sizeof(csv_iterator_t), .next = csv_next, .stop = csv_stop, .state = csv_state};
static const weir_dataset_vtable_t csv_dataset = {.name = "CSV",
                                                  .size = sizeof(csv_t),
                                                  .init = csv_init,
                                                  .deinit = csv_deinit,
                                                  .cardinality = weir_dataset_unknown_size,
                                                  .iterator = &csv_iterator};

static weir_status_t* csv_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &csv_dataset);
}

static weir_status_t* csv_shape(weir_shape_ctx_t* ctx) {
  const int defaults = (int)weir_attrs_list(weir_shape_attrs(ctx), "output_types")->count;
  WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, 0), 1));
  for (int i = 1; i < 7; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 7), 1, NULL));
  for (int i = 8; i < 8 + defaults; ++i) {
    const weir_shape_t* shape = weir_shape_input(ctx, i);
    WEIR_TRY(weir_shape_at_most(ctx, shape, 1));
    if (shape->rank == 1 && shape->dims[0] > 1)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Shape of a default must be a length-0 or length-1 vector, or a scalar.");
  }
  if (ctx->node->input_count > 8 + defaults)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 8 + defaults), 1, NULL));
  return weir_shape_set_scalar(ctx, 0);
}

#define CSV(op, more)                                                                     \
  {                                                                                       \
    .name = op,                                                                           \
    .attrs =                                                                              \
        "output_types: list({float, double, int32, int64, string}) >= 1; "                \
        "output_shapes: list(shape) >= 1",                                                \
    .inputs =                                                                             \
        "filenames: string; compression_type: string; buffer_size: int64; header: bool; " \
        "field_delim: string; use_quote_delim: bool; na_value: string; "                  \
        "select_cols: int64; record_defaults: output_types" more,                         \
    .outputs = "handle: variant",                                                         \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,                  \
    .summary = "Records of comma-separated values in files", .infer_shape = csv_shape,    \
    .kernels = WEIR_DATASET_KERNEL(csv_cpu)                                               \
  }

const weir_op_module_t weir_ops_data_csv = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        CSV("CSVDataset", ""), CSV("CSVDatasetV2", "; exclude_cols: int64"), {0}}};
