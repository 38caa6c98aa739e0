// deflate.h — Deflate (RFC 1951) with its zlib (RFC 1950) and gzip (RFC 1952) wrappers: bytes in
// and out of memory, and files that are inflated while they are read.
//
// What comes in is never trusted: a damaged stream is DATA_LOSS. Inflaters are thread-compatible;
// the functions on memory are thread-safe.
#ifndef WEIR_FILE_DEFLATE_H_
#define WEIR_FILE_DEFLATE_H_

#include "base/string.h"
#include "file/fs.h"

typedef enum weir_deflate_format_t {
  WEIR_DEFLATE_RAW,
  WEIR_DEFLATE_ZLIB,
  WEIR_DEFLATE_GZIP,  // one member after another
} weir_deflate_format_t;

// ---- in memory ----

// Appends the inflated |data| to |out|. RESOURCE_EXHAUSTED when it is more than |limit| bytes: a
// thousandfold is possible. DATA_LOSS also when |data| is cut off.
WEIR_MUST_USE weir_status_t* weir_inflate(weir_deflate_format_t format, weir_view_t data,
                                          size_t limit, weir_strbuf_t* out);

// Appends the deflated |data| to |out|, whose failure is sticky. |level|: 0 stores, 1 is the
// fastest, 9 the smallest; negative is 6.
WEIR_MUST_USE weir_status_t* weir_deflate(weir_deflate_format_t format, int level, weir_view_t data,
                                          weir_strbuf_t* out);

// The checksums of the wrappers, going on from |crc| (0 at first) and |adler| (1 at first).
uint32_t weir_crc32(uint32_t crc, const void* data, size_t size);
uint32_t weir_adler32(uint32_t adler, const void* data, size_t size);

// ---- piece by piece ----

// Gives up to |size| more bytes; none only at the end.
typedef weir_status_t* (*weir_inflate_source_fn_t)(void* arg, void* buffer, size_t size,
                                                   size_t* out_size);
typedef struct weir_inflater_t weir_inflater_t;

// |source| is called with |arg| by reads.
WEIR_MUST_USE weir_status_t* weir_inflater_create(weir_deflate_format_t format,
                                                  weir_inflate_source_fn_t source, void* arg,
                                                  weir_inflater_t** out_inflater);
void weir_inflater_destroy(weir_inflater_t* inflater);
// Fewer than |size| bytes only at the end, be it that of the stream or of a source that is cut off.
// An error is reported when all that came before it was read.
WEIR_MUST_USE weir_status_t* weir_inflater_read(weir_inflater_t* inflater, void* buffer,
                                                size_t size, size_t* out_size);
// Whether the stream's own end was reached.
bool weir_inflater_is_complete(const weir_inflater_t* inflater);

// Opens |path| for reading what it inflates to. Its size is UINT64_MAX: nobody knows it before it
// is read. Meant for reading onward; going back starts anew. A file that is cut off ends there, as
// TensorFlow has it. Thread-compatible, unlike other files.
WEIR_MUST_USE weir_status_t* weir_file_open_inflated(const char* path, weir_deflate_format_t format,
                                                     weir_file_t** out_file);

#endif  // WEIR_FILE_DEFLATE_H_
