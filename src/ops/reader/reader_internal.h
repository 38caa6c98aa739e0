// reader_internal.h — What the files of readers share: the reader itself and its current file
// (reader_file.c). State is saved and restored in reader_state.c; reads and their turns are in
// reader_resource.c.
#ifndef WEIR_OPS_READER_READER_INTERNAL_H_
#define WEIR_OPS_READER_READER_INTERNAL_H_

#include "file/record.h"
#include "ops/reader/reader_resource.h"

struct weir_reader_t {
  weir_resource_t base;
  weir_reader_config_t config;  // immutable; |config.name| is owned
  weir_mutex_t mu;
  weir_waiters_t turns;  // reads that wait for the one that is under way
  bool is_busy;          // a read is under way. All guarded by mu, as what follows
  int64_t record_count;
  int64_t started_count;
  int64_t finished_count;
  char* path;          // of the current file; NULL for none
  weir_strbuf_t work;  // the name that was taken last
  weir_file_t* file;
  weir_record_reader_t* records;  // RECORD: reads and owns the file instead of |file|
  uint64_t offset;                // in |file|, of the next byte to be read from |buffer| or after
  int64_t index;                  // of the next record; TEXT_LINE: lines passed
  weir_strbuf_t buffer;           // what was read ahead, from |buffer_offset|
  uint64_t buffer_offset;
};

// ---- the current file; |mu| held ----
void weir_reader_close_file(weir_reader_t* r);
// Begins the file |name|. Failing, the reader is between files.
WEIR_MUST_USE weir_status_t* weir_reader_start_file(weir_reader_t* r, const weir_tensor_t* name);
// Reads key and value of the next record; |*out_is_end| when there is none.
WEIR_MUST_USE weir_status_t* weir_reader_next(weir_reader_t* r, weir_strbuf_t* key,
                                              weir_strbuf_t* value, bool* out_is_end);

#endif  // WEIR_OPS_READER_READER_INTERNAL_H_
