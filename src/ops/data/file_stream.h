// file_stream.h — A file read from front to end, inflated where it is compressed. Thread-confined.
#ifndef WEIR_OPS_DATA_FILE_STREAM_H_
#define WEIR_OPS_DATA_FILE_STREAM_H_

#include "file/deflate.h"

// How files are compressed.
typedef struct weir_compression_t {
  bool is_compressed;
  weir_deflate_format_t format;
} weir_compression_t;
// "", "ZLIB" or "GZIP"; false: another word.
bool weir_compression_parse(weir_view_t text, weir_compression_t* out_compression);
WEIR_MUST_USE weir_status_t* weir_compression_open(weir_compression_t compression, const char* path,
                                                   weir_file_t** out_file);

typedef struct weir_file_stream_t {
  weir_file_t* file;     // owned; NULL: closed
  uint64_t offset;       // of the next byte
  weir_strbuf_t buffer;  // what was read ahead, from |buffer_offset| on
  uint64_t buffer_offset;
} weir_file_stream_t;

WEIR_MUST_USE weir_status_t* weir_file_stream_open(weir_compression_t compression, const char* path,
                                                   weir_file_stream_t* out_stream);
void weir_file_stream_close(weir_file_stream_t* stream);
// Goes on at |offset|.
void weir_file_stream_seek(weir_file_stream_t* stream, uint64_t offset);
// Makes at least |size| bytes from |offset| on readable, fewer only at the end; borrowed until the
// next call. Does not advance.
WEIR_MUST_USE weir_status_t* weir_file_stream_look(weir_file_stream_t* stream, size_t size,
                                                   weir_view_t* out_bytes);
// The next line without its end, "\n" or "\r\n"; borrowed likewise.
WEIR_MUST_USE weir_status_t* weir_file_stream_line(weir_file_stream_t* stream,
                                                   weir_view_t* out_line, bool* out_is_end);

#endif  // WEIR_OPS_DATA_FILE_STREAM_H_
