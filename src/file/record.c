// record.c — TFRecord files.
#include "file/record.h"

#include "base/alloc.h"
#include "base/crc32c.h"
#include "file/coding.h"

enum { kHeaderSize = 12, kFooterSize = 4, kReadAhead = 1 << 18 };

// ---- writing ----

weir_status_t* weir_record_write(weir_writer_t* writer, const void* data, size_t size) {
  uint8_t header[kHeaderSize];
  uint8_t footer[kFooterSize];
  weir_encode64(header, size);
  weir_encode32(header + 8, weir_crc32c_mask(weir_crc32c(header, 8)));
  weir_encode32(footer, weir_crc32c_mask(weir_crc32c(data, size)));
  WEIR_TRY(weir_writer_write(writer, header, sizeof header));
  WEIR_TRY(weir_writer_write(writer, data, size));
  return weir_writer_write(writer, footer, sizeof footer);
}

// ---- reading ----

struct weir_record_reader_t {
  weir_file_t* file;
  uint64_t offset;  // of the next record
  char* buffer;     // file bytes [buffer_offset, buffer_offset + buffer_size)
  size_t buffer_capacity;
  uint64_t buffer_offset;
  size_t buffer_size;
};

weir_status_t* weir_record_reader_create(weir_file_t* take_file,
                                         weir_record_reader_t** out_reader) {
  weir_record_reader_t* reader = weir_calloc(1, sizeof *reader);
  if (!reader) {
    weir_file_close(take_file);
    return weir_out_of_memory();
  }
  reader->file = take_file;
  *out_reader = reader;
  return NULL;
}

weir_status_t* weir_record_reader_open(const char* path, weir_record_reader_t** out_reader) {
  weir_file_t* file = NULL;
  WEIR_TRY(weir_file_open(path, &file));
  return weir_record_reader_create(file, out_reader);
}

void weir_record_reader_destroy(weir_record_reader_t* reader) {
  if (!reader) return;
  weir_file_close(reader->file);
  weir_free(reader->buffer);
  weir_free(reader);
}

uint64_t weir_record_tell(const weir_record_reader_t* reader) { return reader->offset; }
void weir_record_seek(weir_record_reader_t* reader, uint64_t offset) { reader->offset = offset; }

// Makes [offset, offset + size) readable; *out_bytes is shorter when the file ends before.
static weir_status_t* fill(weir_record_reader_t* reader, uint64_t offset, size_t size,
                           weir_view_t* out_bytes) {
  uint64_t skip = offset - reader->buffer_offset;
  bool is_inside = offset >= reader->buffer_offset && skip <= reader->buffer_size;
  size_t kept = is_inside ? reader->buffer_size - (size_t)skip : 0;
  if (kept < size) {
    size_t want = WEIR_MAX(size, (size_t)kReadAhead);
    size_t got = 0;
    if (kept > 0) memmove(reader->buffer, reader->buffer + skip, kept);
    reader->buffer_offset = offset;
    reader->buffer_size = kept;
    if (!WEIR_GROW(reader->buffer, reader->buffer_capacity, want)) return weir_out_of_memory();
    WEIR_TRY(weir_file_read(reader->file, offset + kept, reader->buffer + kept, want - kept, &got));
    reader->buffer_size = kept += got;
    skip = 0;
  }
  *out_bytes = weir_view(reader->buffer + skip, WEIR_MIN(kept, size));
  return NULL;
}

static weir_status_t* truncated(const weir_record_reader_t* reader) {
  return WEIR_STATUS(DATA_LOSS, "truncated record at %llu in %s",
                     (unsigned long long)reader->offset, reader->file->path);
}

static weir_status_t* corrupted(const weir_record_reader_t* reader) {
  return WEIR_STATUS(DATA_LOSS, "corrupted record at %llu in %s",
                     (unsigned long long)reader->offset, reader->file->path);
}

// A length is believed only in steps: a false one that passed its checksum must not allocate more
// than twice what the file holds.
static weir_status_t* fill_body(weir_record_reader_t* reader, uint64_t size,
                                weir_view_t* out_body) {
  uint64_t offset = reader->offset + kHeaderSize;
  size_t step = (size_t)WEIR_MIN(size, (uint64_t)1 << 24);
  for (;;) {
    WEIR_TRY(fill(reader, offset, step, out_body));
    if (out_body->size < step) return truncated(reader);
    if (step == size) return NULL;
    step = (size_t)WEIR_MIN(size, (uint64_t)step * 2);
  }
}

weir_status_t* weir_record_next(weir_record_reader_t* reader, weir_view_t* out_record) {
  weir_view_t header;
  WEIR_TRY(fill(reader, reader->offset, kHeaderSize, &header));
  // TensorFlow takes a header that is cut off for the end, too: no record has begun.
  if (header.size < kHeaderSize) {
    return WEIR_STATUS(OUT_OF_RANGE, "end of file: %s", reader->file->path);
  }
  uint64_t size = weir_decode64(header.data);
  uint32_t crc = weir_crc32c_unmask(weir_decode32(header.data + 8));
  if (crc != weir_crc32c(header.data, 8) || size > INT64_MAX) return corrupted(reader);
  weir_view_t body;
  WEIR_TRY(fill_body(reader, size + kFooterSize, &body));
  crc = weir_crc32c_unmask(weir_decode32(body.data + size));
  if (crc != weir_crc32c(body.data, (size_t)size)) return corrupted(reader);
  *out_record = weir_view(body.data, (size_t)size);
  reader->offset += kHeaderSize + size + kFooterSize;
  return NULL;
}
