// zip.h — Zip archives: members that are stored or deflated, also beyond 4 GiB (zip64). What .npz
// files are made of.
//
// What comes in is never trusted. Members are named by relative paths without "..", each once; they
// lie one after another and do not share bytes; a member is read up to the size that it claims, and
// its CRC-32 must be right. Anything else is DATA_LOSS or INVALID_ARGUMENT naming file and member.
// Encryption, other methods and archives of several parts are UNIMPLEMENTED.
//
// Threading: an open archive is immutable, reading from it thread-safe; writers are
// thread-compatible.
#ifndef WEIR_FILE_ZIP_H_
#define WEIR_FILE_ZIP_H_

#include "base/string.h"
#include "file/fs.h"

typedef enum weir_zip_method_t {
  WEIR_ZIP_STORED = 0,
  WEIR_ZIP_DEFLATED = 8,
} weir_zip_method_t;

typedef struct weir_zip_member_t {
  weir_view_t name;
  weir_zip_method_t method;
  uint32_t crc;
  uint64_t packed_size;  // bytes in the archive
  uint64_t size;         // bytes once unpacked
  uint64_t offset;       // of its header in the archive
  uint64_t data_offset;  // of its packed bytes
} weir_zip_member_t;

// ---- reading ----

typedef struct weir_zip_t weir_zip_t;
// Reads the directory of |take_file|, which is closed with the archive, also when this fails.
WEIR_MUST_USE weir_status_t* weir_zip_open(weir_file_t* take_file, weir_zip_t** out_zip);
void weir_zip_close(weir_zip_t* zip);
size_t weir_zip_count(const weir_zip_t* zip);
const weir_zip_member_t* weir_zip_at(const weir_zip_t* zip,
                                     size_t index);  // in the order of offsets
const weir_zip_member_t* weir_zip_find(const weir_zip_t* zip,
                                       weir_view_t name);  // NULL when absent
const char* weir_zip_path(const weir_zip_t* zip);
// Appends the unpacked bytes of |member| to |out|. RESOURCE_EXHAUSTED when it claims more than
// |limit|.
WEIR_MUST_USE weir_status_t* weir_zip_read(const weir_zip_t* zip, const weir_zip_member_t* member,
                                           uint64_t limit, weir_strbuf_t* out);

// ---- writing: members are appended to |file|, the directory is written by finish ----

typedef struct weir_zip_writer_t {
  weir_writer_t* file;      // borrowed
  weir_strbuf_t directory;  // its entries so far
  uint64_t count;
} weir_zip_writer_t;
WEIR_MUST_USE weir_status_t* weir_zip_add(weir_zip_writer_t* writer, weir_view_t name,
                                          weir_zip_method_t method, weir_view_t data);
WEIR_MUST_USE weir_status_t* weir_zip_finish(weir_zip_writer_t* writer);
void weir_zip_writer_free(weir_zip_writer_t* writer);

#endif  // WEIR_FILE_ZIP_H_
