// reader_file.c — A reader's current file: opening it, and the ways to cut it up into records.
#include "base/alloc.h"
#include "ops/reader/reader_internal.h"

enum { READ_AHEAD = 1 << 18 };

// ---- opening and closing ----
void weir_reader_close_file(weir_reader_t* r) {
  weir_record_reader_destroy(r->records);
  if (r->file) weir_file_close(r->file);
  weir_free(r->path);
  r->records = NULL;
  r->file = NULL;
  r->path = NULL;
  r->offset = r->buffer_offset = 0;
  r->index = 0;
  r->buffer.size = 0;
}

// Makes at least |size| bytes at |offset| readable, fewer only at the end of the file.
static weir_status_t* look(weir_reader_t* r, size_t size, weir_view_t* out_bytes) {
  size_t skip = (size_t)(r->offset - r->buffer_offset);
  size_t kept = r->offset >= r->buffer_offset && skip < r->buffer.size ? r->buffer.size - skip : 0;
  if (kept < size) {
    size_t got = 0;
    size_t want = WEIR_MAX(size, kept + READ_AHEAD);
    if (kept > 0 && skip > 0) memmove(r->buffer.data, r->buffer.data + skip, kept);
    r->buffer.size = kept;
    r->buffer_offset = r->offset;
    skip = 0;
    if (!weir_strbuf_reserve(&r->buffer, want - kept)) return weir_out_of_memory();
    WEIR_TRY(weir_file_read(r->file, r->offset + kept, r->buffer.data + kept, want - kept, &got));
    r->buffer.size = kept += got;
  }
  *out_bytes = kept > 0 ? weir_view(r->buffer.data + skip, kept) : weir_view("", 0);
  return NULL;
}

// Splits the next line off, with *out_is_end at the end of the file. A view until the next look.
static weir_status_t* next_line(weir_reader_t* r, weir_view_t* out_line, bool* out_is_end) {
  weir_view_t bytes = {0};
  const char* end = NULL;
  for (size_t want = 1;; want = bytes.size + 1) {
    size_t seen = bytes.size;
    WEIR_TRY(look(r, want, &bytes));
    if (bytes.size > seen) end = memchr(bytes.data + seen, '\n', bytes.size - seen);
    if (end || bytes.size < want) break;
  }
  *out_is_end = bytes.size == 0;
  size_t size = end ? (size_t)(end - bytes.data) : bytes.size;
  r->offset += size + (end ? 1 : 0);
  if (size > 0 && bytes.data[size - 1] == '\r') --size;
  *out_line = weir_view(bytes.data, size);
  return NULL;
}

static weir_status_t* skip_lines(weir_reader_t* r) {
  bool is_end = false;
  weir_view_t line;
  while (!is_end && r->index < r->config.skip_lines) {
    WEIR_TRY(next_line(r, &line, &is_end));
    if (!is_end) r->index += 1;
  }
  return NULL;
}

static weir_status_t* open_any(const weir_reader_t* r, weir_file_t** out_file) {
  if (!r->config.is_compressed) return weir_file_open(r->path, out_file);
  return weir_file_open_inflated(r->path, r->config.compression, out_file);
}

static weir_status_t* open_records(weir_reader_t* r) {
  weir_file_t* file = NULL;
  WEIR_TRY(open_any(r, &file));
  return weir_record_reader_create(file, &r->records);
}

static weir_status_t* open_fixed(weir_reader_t* r) {
  const uint64_t header = (uint64_t)r->config.header_size;
  weir_view_t bytes = {0};
  WEIR_TRY(open_any(r, &r->file));
  if (header > 0 && header <= r->file->size) {  // the size of a compressed file is not known
    r->offset = header - 1;
    WEIR_TRY(look(r, 1, &bytes));
  }
  r->offset = header;
  if (header > 0 && bytes.size == 0) return WEIR_STATUS(OUT_OF_RANGE, "reached end of file");
  return NULL;
}

static weir_status_t* open_file(weir_reader_t* r) {
  switch (r->config.kind) {
    case WEIR_READER_TEXT_LINE: WEIR_TRY(weir_file_open(r->path, &r->file)); return skip_lines(r);
    case WEIR_READER_RECORD: return open_records(r);
    case WEIR_READER_FIXED_LENGTH: return open_fixed(r);
    case WEIR_READER_IDENTITY: return NULL;
    case WEIR_READER_WHOLE_FILE:
      break;  // opened when it is read: a missing file fails every read, as in TensorFlow
  }
  return NULL;
}

weir_status_t* weir_reader_start_file(weir_reader_t* r, const weir_tensor_t* name) {
  if (weir_tensor_type(name) != WEIR_DTYPE_STRING || name->count != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected to dequeue a one-element string tensor");
  }
  weir_view_t path = weir_string_view(WEIR_TENSOR_DATA(name, weir_string_t));
  weir_reader_close_file(r);
  r->work.size = 0;
  weir_strbuf_append(&r->work, path.data, path.size);
  WEIR_TRY(weir_strbuf_finish(&r->work));
  if (r->config.kind == WEIR_READER_IDENTITY) {
    r->started_count += 1;
    return NULL;
  }
  if (path.size > 0 && memchr(path.data, '\0', path.size)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "path '%.*s' holds a zero byte", WEIR_VIEW_ARG(path));
  }
  r->path = weir_strndup(path.data ? path.data : "", path.size);
  weir_status_t* status = r->path ? open_file(r) : weir_out_of_memory();
  if (status) {
    weir_reader_close_file(r);
  } else {
    r->started_count += 1;
  }
  return status;
}
// ---- records ----
static weir_status_t* next_text(weir_reader_t* r, weir_strbuf_t* key, weir_strbuf_t* value,
                                bool* out_is_end) {
  weir_view_t line;
  WEIR_TRY(next_line(r, &line, out_is_end));
  if (*out_is_end) return NULL;
  weir_strbuf_printf(key, "%s:%lld", r->path, (long long)++r->index);
  weir_strbuf_append(value, line.data, line.size);
  return NULL;
}

static weir_status_t* next_whole(weir_reader_t* r, weir_strbuf_t* key, weir_strbuf_t* value,
                                 bool* out_is_end) {
  *out_is_end = r->index > 0;
  if (*out_is_end) return NULL;
  WEIR_TRY(weir_fs_read_all(r->path, value));
  weir_strbuf_puts(key, r->path);
  r->index = 1;
  return NULL;
}

static weir_status_t* next_record(weir_reader_t* r, weir_strbuf_t* key, weir_strbuf_t* value,
                                  bool* out_is_end) {
  weir_view_t record;
  uint64_t offset = weir_record_tell(r->records);
  weir_status_t* status = weir_record_next(r->records, &record);
  *out_is_end = status && weir_status_code(status) == WEIR_OUT_OF_RANGE;
  if (*out_is_end) {
    weir_status_destroy(status);
    return NULL;
  }
  if (status) return status;
  weir_strbuf_printf(key, "%s:%llu", r->path, (unsigned long long)offset);
  weir_strbuf_append(value, record.data, record.size);
  return NULL;
}

static weir_status_t* next_fixed(weir_reader_t* r, weir_strbuf_t* key, weir_strbuf_t* value,
                                 bool* out_is_end) {
  const weir_reader_config_t* c = &r->config;
  const uint64_t need = (uint64_t)c->record_size + (uint64_t)c->footer_size;
  weir_view_t bytes = {0};
  *out_is_end = r->offset > r->file->size || r->file->size - r->offset < need;
  if (*out_is_end) return NULL;
  WEIR_TRY(look(r, (size_t)need, &bytes));
  *out_is_end = bytes.size < need;
  if (*out_is_end) return NULL;
  weir_strbuf_printf(key, "%s:%lld", r->path, (long long)r->index++);
  weir_strbuf_append(value, bytes.data, (size_t)c->record_size);
  r->offset += (uint64_t)(c->hop_size > 0 ? c->hop_size : c->record_size);
  return NULL;
}

static weir_status_t* next_name(weir_reader_t* r, weir_strbuf_t* key, weir_strbuf_t* value,
                                bool* out_is_end) {
  *out_is_end = false;
  weir_strbuf_append(key, r->work.data, r->work.size);
  weir_strbuf_append(value, r->work.data, r->work.size);
  return NULL;
}

weir_status_t* weir_reader_next(weir_reader_t* r, weir_strbuf_t* key, weir_strbuf_t* value,
                                bool* out_is_end) {
  switch (r->config.kind) {
    case WEIR_READER_TEXT_LINE: return next_text(r, key, value, out_is_end);
    case WEIR_READER_WHOLE_FILE: return next_whole(r, key, value, out_is_end);
    case WEIR_READER_RECORD: return next_record(r, key, value, out_is_end);
    case WEIR_READER_IDENTITY: return next_name(r, key, value, out_is_end);
    case WEIR_READER_FIXED_LENGTH: break;
  }
  return next_fixed(r, key, value, out_is_end);
}
