// files.h — What datasets over files share: a list of names, one file open at a time, elements that
// are scalar strings.
#ifndef WEIR_OPS_DATA_FILES_H_
#define WEIR_OPS_DATA_FILES_H_

#include "ops/data/file_stream.h"
#include "ops/data/state.h"

typedef struct weir_files_t {  // a dataset starts with this
  weir_data_t base;
  char** names;
  int64_t count;
  weir_compression_t compression;
} weir_files_t;

// How to read one file of a dataset. An iterator starts with weir_files_iterator_t.
typedef struct weir_files_reader_t {
  weir_status_t* (*open)(weir_iterator_t* self, int64_t file);  // required
  // Required: the next record of the open file, borrowed until the next call.
  weir_status_t* (*read)(weir_iterator_t* self, weir_view_t* out_record, bool* out_is_end);
  void (*close)(weir_iterator_t* self);  // required; also when none is open
  bool skips_damaged;                    // a file with a damaged record is left; else it is read on
} weir_files_reader_t;

typedef struct weir_files_iterator_t {
  weir_iterator_t base;
  int64_t at;  // the file that is open or comes next
  bool is_open;
} weir_files_iterator_t;

// Input 0 holds the names, a scalar or a vector. Elements are strings.
WEIR_MUST_USE weir_status_t* weir_files_init(weir_kernel_ctx_t* ctx, weir_files_t* self);
// The same, and what elements are is left to the caller.
WEIR_MUST_USE weir_status_t* weir_files_init_names(weir_kernel_ctx_t* ctx, weir_files_t* self);
void weir_files_deinit(weir_data_t* self);
// The whole of next: the next record of this file, or of those after it. A file that cannot be
// opened is tried again by the next call, as in TensorFlow.
WEIR_MUST_USE weir_status_t* weir_files_next(weir_files_iterator_t* self,
                                             const weir_files_reader_t* reader, weir_tensor_t** out,
                                             bool* out_is_end);
// The whole of state. |place| is where the open file is read next, in bytes.
typedef struct weir_files_place_t {
  uint64_t (*tell)(weir_iterator_t* self);
  void (*seek)(weir_iterator_t* self, uint64_t offset);
} weir_files_place_t;
void weir_files_state(weir_files_iterator_t* self, const weir_files_reader_t* reader,
                      const weir_files_place_t* place, weir_state_t* state);

#endif  // WEIR_OPS_DATA_FILES_H_
