// replacement.h — Files written piece by piece that appear all at once: under a temporary name
// until they are whole. weir_fs_replace does the same with bytes that are in memory.
//
// Thread-compatible.
#ifndef WEIR_FILE_REPLACEMENT_H_
#define WEIR_FILE_REPLACEMENT_H_

#include "file/fs.h"

// Zero-initialise to use.
typedef struct weir_replacement_t {
  weir_writer_t* writer;  // to write to, between begin and end
  const char* path;       // borrowed
  weir_strbuf_t temporary;
} weir_replacement_t;

WEIR_MUST_USE weir_status_t* weir_replacement_begin(weir_replacement_t* file, const char* path);
// Puts what was written in the place of |path|, or drops it when |take_status| is an error, which
// is returned. To be called also when begin failed.
WEIR_MUST_USE weir_status_t* weir_replacement_end(weir_replacement_t* file,
                                                  weir_status_t* take_status);

#endif  // WEIR_FILE_REPLACEMENT_H_
