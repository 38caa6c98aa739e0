// mapping.h — Files mapped into memory, for tensors that lie in them.
//
// A mapping is reference-counted: each tensor that lies in it holds one. A file that somebody
// shortens while it is mapped ends whoever reads what is gone (SIGBUS), unless the mapping is
// shared: that is guarded (mapping_guard.h). Thread-safe.
#ifndef WEIR_FILE_MAPPING_H_
#define WEIR_FILE_MAPPING_H_

#include "base/thread.h"
#include "file/fs.h"
#include "file/mapping_guard.h"
#include "tensor/tensor.h"

typedef struct weir_mapping_t {
  weir_ref_t ref;
  char* data;  // read only, unless it is shared
  size_t size;
  bool is_borrowed;     // bytes of somebody else's
  weir_guard_t* guard;  // of a shared one
} weir_mapping_t;

// Maps the whole of |path|. INVALID_ARGUMENT for what cannot be mapped: an empty file, a pipe.
WEIR_MUST_USE weir_status_t* weir_mapping_create(const char* path, weir_mapping_t** out_mapping);
// Maps |size| bytes of |path| so that what is written to them is in the file. The file is made, and
// all zeros without taking space, where there is none or an empty one; nothing is read before it is
// needed, and no more than that. INVALID_ARGUMENT when it has another size.
WEIR_MUST_USE weir_status_t* weir_mapping_create_shared(const char* path, size_t size,
                                                        weir_mapping_t** out_mapping);
// Bytes that are in memory already, borrowed until the mapping is gone.
WEIR_MUST_USE weir_status_t* weir_mapping_from_view(weir_view_t bytes,
                                                    weir_mapping_t** out_mapping);
weir_mapping_t* weir_mapping_retain(weir_mapping_t* mapping);
void weir_mapping_release(weir_mapping_t* mapping);
// Releases |mapping|: a weir_deallocator_fn_t.
void weir_mapping_drop(void* data, size_t size, void* mapping);

// A tensor in a shared mapping, which it consumes also on failure.
WEIR_MUST_USE weir_status_t* weir_mapping_to_tensor(weir_mapping_t* take_mapping,
                                                    weir_dtype_t dtype, int rank,
                                                    const int64_t* dims,
                                                    weir_tensor_t** out_tensor);
// Whether |tensor|, or what it is a view of, was made by that: what is written to it is in a file.
bool weir_mapping_has(const weir_tensor_t* tensor);
// DATA_LOSS when |tensor| is one and a page of its file could not be read or written: a disk may be
// full when a page is written for the first time. To be asked after a read, and before a write.
WEIR_MUST_USE weir_status_t* weir_mapping_check(const weir_tensor_t* tensor);

#endif  // WEIR_FILE_MAPPING_H_
