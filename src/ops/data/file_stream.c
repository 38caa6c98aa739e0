// file_stream.c — Reading a file from front to end.
#include "ops/data/file_stream.h"

#include "base/alloc.h"

enum { READ_AHEAD = 1 << 18 };

bool weir_compression_parse(weir_view_t text, weir_compression_t* out_compression) {
  bool is_zlib = weir_view_is(text, "ZLIB"), is_gzip = weir_view_is(text, "GZIP");
  *out_compression =
      (weir_compression_t){.is_compressed = is_zlib || is_gzip,
                           .format = is_zlib ? WEIR_DEFLATE_ZLIB : WEIR_DEFLATE_GZIP};
  return is_zlib || is_gzip || text.size == 0;
}

weir_status_t* weir_compression_open(weir_compression_t compression, const char* path,
                                     weir_file_t** out_file) {
  if (!compression.is_compressed) return weir_file_open(path, out_file);
  return weir_file_open_inflated(path, compression.format, out_file);
}

weir_status_t* weir_file_stream_open(weir_compression_t compression, const char* path,
                                     weir_file_stream_t* out_stream) {
  *out_stream = (weir_file_stream_t){.file = NULL};
  return weir_compression_open(compression, path, &out_stream->file);
}

void weir_file_stream_close(weir_file_stream_t* stream) {
  if (stream->file) weir_file_close(stream->file);
  weir_strbuf_free(&stream->buffer);
  *stream = (weir_file_stream_t){.file = NULL};
}

void weir_file_stream_seek(weir_file_stream_t* stream, uint64_t offset) {
  stream->offset = stream->buffer_offset = offset;
  stream->buffer.size = 0;
}

weir_status_t* weir_file_stream_look(weir_file_stream_t* stream, size_t size,
                                     weir_view_t* out_bytes) {
  weir_strbuf_t* buffer = &stream->buffer;
  size_t skip = (size_t)(stream->offset - stream->buffer_offset);
  size_t kept = skip < buffer->size ? buffer->size - skip : 0;
  if (kept < size) {
    size_t got = 0, want = WEIR_MAX(size, kept + READ_AHEAD);
    if (kept > 0 && skip > 0) memmove(buffer->data, buffer->data + skip, kept);
    buffer->size = kept;
    stream->buffer_offset = stream->offset;
    skip = 0;
    if (!weir_strbuf_reserve(buffer, want - kept)) return weir_out_of_memory();
    WEIR_TRY(weir_file_read(stream->file, stream->offset + kept, buffer->data + kept, want - kept,
                            &got));
    buffer->size = kept += got;
  }
  *out_bytes = kept > 0 ? weir_view(buffer->data + skip, kept) : weir_view("", 0);
  return NULL;
}

weir_status_t* weir_file_stream_line(weir_file_stream_t* stream, weir_view_t* out_line,
                                     bool* out_is_end) {
  weir_view_t bytes = {0};
  const char* end = NULL;
  for (size_t want = 1;; want = bytes.size + 1) {
    size_t seen = bytes.size;
    WEIR_TRY(weir_file_stream_look(stream, want, &bytes));
    if (bytes.size > seen) end = memchr(bytes.data + seen, '\n', bytes.size - seen);
    if (end || bytes.size < want) break;
  }
  *out_is_end = bytes.size == 0;
  size_t size = end ? (size_t)(end - bytes.data) : bytes.size;
  stream->offset += size + (end ? 1 : 0);
  if (size > 0 && bytes.data[size - 1] == '\r') --size;
  *out_line = weir_view(bytes.data, size);
  return NULL;
}
