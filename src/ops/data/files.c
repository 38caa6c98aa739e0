// files.c — One file after the other.
#include "ops/data/files.h"

weir_status_t* weir_files_init_names(weir_kernel_ctx_t* ctx, weir_files_t* self) {
  const weir_tensor_t* names = weir_kernel_input(ctx, 0);
  if (names->rank > 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "`filenames` must be a scalar or a vector.");
  self->names = weir_calloc((size_t)names->count + 1, sizeof(*self->names));
  if (!self->names) return weir_out_of_memory();
  for (int64_t i = 0; i < names->count; ++i) {
    weir_view_t name = weir_string_view(&WEIR_TENSOR_DATA(names, const weir_string_t)[i]);
    if (name.size > 0 && memchr(name.data, '\0', name.size))
      return WEIR_STATUS(INVALID_ARGUMENT, "path '%.*s' holds a zero byte", WEIR_VIEW_ARG(name));
    self->names[i] = weir_strndup(name.data, name.size);
    if (!self->names[i]) return weir_out_of_memory();
    ++self->count;
  }
  return NULL;
}

weir_status_t* weir_files_init(weir_kernel_ctx_t* ctx, weir_files_t* self) {
  WEIR_TRY(weir_dataset_set_components(1, (const weir_dtype_t[]){WEIR_DTYPE_STRING}, &self->base));
  WEIR_TRY(weir_dataset_set_shape(&self->base, 0, 0, NULL));
  return weir_files_init_names(ctx, self);
}

void weir_files_deinit(weir_data_t* dataset) {
  weir_files_t* self = (weir_files_t*)dataset;
  for (int64_t i = 0; i < self->count; ++i) weir_free(self->names[i]);
  weir_free(self->names);
}

static void leave_file(weir_files_iterator_t* self, const weir_files_reader_t* reader) {
  reader->close(&self->base);
  self->is_open = false;
  ++self->at;
}

static weir_status_t* open_file(weir_files_iterator_t* self, const weir_files_reader_t* reader) {
  if (self->is_open) return NULL;
  weir_status_t* status = reader->open(&self->base, self->at);
  if (status) reader->close(&self->base);
  else self->is_open = true;
  return status;
}

static weir_status_t* output(weir_view_t record, weir_tensor_t** out) {
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_STRING, 0, NULL, out));
  return weir_tensor_set_string(*out, 0, record.data, record.size);
}

weir_status_t* weir_files_next(weir_files_iterator_t* self, const weir_files_reader_t* reader,
                               weir_tensor_t** out, bool* out_is_end) {
  const weir_files_t* files = (const weir_files_t*)self->base.dataset;
  while (self->at < files->count) {
    weir_view_t record;
    bool is_end = false;
    WEIR_TRY(open_file(self, reader));
    weir_status_t* status = reader->read(&self->base, &record, &is_end);
    if (!status && !is_end) return output(record, out);
    if (!status || reader->skips_damaged) leave_file(self, reader);
    if (status) return status;
  }
  *out_is_end = true;
  return NULL;
}

void weir_files_state(weir_files_iterator_t* self, const weir_files_reader_t* reader,
                      const weir_files_place_t* place, weir_state_t* state) {
  int64_t count = ((const weir_files_t*)self->base.dataset)->count;
  int64_t offset = self->is_open ? (int64_t)place->tell(&self->base) : 0;
  bool is_open = self->is_open;
  weir_state_int(state, "file", &self->at, 0, count);
  weir_state_bool(state, "is_open", &is_open);
  weir_state_int(state, "offset", &offset, 0, INT64_MAX);
  if (!state->is_restoring || !weir_state_is_good(state) || !is_open) return;
  weir_state_require(state, self->at < count);
  if (weir_state_is_good(state)) weir_state_fail(state, open_file(self, reader));
  if (weir_state_is_good(state)) place->seek(&self->base, (uint64_t)offset);
}
