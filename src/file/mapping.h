// mapping.h — Files mapped into memory, for tensors that lie in them.
//
// A mapping is reference-counted: each tensor that lies in it holds one. A file that somebody
// shortens while it is mapped ends whoever reads what is gone (SIGBUS). Thread-safe.
#ifndef WEIR_FILE_MAPPING_H_
#define WEIR_FILE_MAPPING_H_

#include "base/thread.h"
#include "file/fs.h"

typedef struct weir_mapping_t {
  weir_ref_t ref;
  char* data;  // read only
  size_t size;
  bool is_borrowed;  // bytes of somebody else's
} weir_mapping_t;

// Maps the whole of |path|. INVALID_ARGUMENT for what cannot be mapped: an empty file, a pipe.
WEIR_MUST_USE weir_status_t* weir_mapping_create(const char* path, weir_mapping_t** out_mapping);
// Bytes that are in memory already, borrowed until the mapping is gone.
WEIR_MUST_USE weir_status_t* weir_mapping_from_view(weir_view_t bytes,
                                                    weir_mapping_t** out_mapping);
weir_mapping_t* weir_mapping_retain(weir_mapping_t* mapping);
void weir_mapping_release(weir_mapping_t* mapping);
// Releases |mapping|: a weir_deallocator_fn_t.
void weir_mapping_drop(void* data, size_t size, void* mapping);

#endif  // WEIR_FILE_MAPPING_H_
