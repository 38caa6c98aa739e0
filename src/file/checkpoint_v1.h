// checkpoint_v1.h — Checkpoints in TensorFlow's first format: one sorted table a file, whose first
// entry says which tensors and slices it holds, and each other is a slice.
//
// Writers and readers are thread-confined. Types: all numbers but bfloat16, uint32, uint64, qint16
// and quint16, and bool and string.
#ifndef WEIR_FILE_CHECKPOINT_V1_H_
#define WEIR_FILE_CHECKPOINT_V1_H_

#include "file/fs.h"
#include "file/slice.h"

// ---- writing ----

typedef struct weir_v1_writer_t weir_v1_writer_t;

WEIR_MUST_USE weir_status_t* weir_v1_writer_create(const char* path, weir_v1_writer_t** out_writer);
void weir_v1_writer_destroy(weir_v1_writer_t* writer);
// Adds |tensor|, the part |slice| of a tensor of |dims|. INTERNAL when an earlier part had another
// shape or type; UNIMPLEMENTED for types the format has no place for. A part that was there before
// stays.
WEIR_MUST_USE weir_status_t* weir_v1_writer_add(weir_v1_writer_t* writer, weir_view_t name,
                                                const int64_t* dims, const weir_slice_t* slice,
                                                const weir_tensor_t* tensor);
// Writes the file under a temporary name and renames it.
WEIR_MUST_USE weir_status_t* weir_v1_writer_finish(weir_v1_writer_t* writer);

// ---- reading ----

typedef struct weir_v1_reader_t weir_v1_reader_t;
typedef struct weir_v1_tensor_t weir_v1_tensor_t;  // one of its tensors

// Opens all files that match |pattern|. NOT_FOUND when there are none; DATA_LOSS when one is no
// table; INTERNAL when they contradict each other.
WEIR_MUST_USE weir_status_t* weir_v1_reader_open(const char* pattern,
                                                 weir_v1_reader_t** out_reader);
void weir_v1_reader_close(weir_v1_reader_t* reader);  // NULL is fine
size_t weir_v1_reader_count(const weir_v1_reader_t* reader);
const weir_v1_tensor_t* weir_v1_reader_at(const weir_v1_reader_t* reader, size_t index);
const weir_v1_tensor_t* weir_v1_reader_find(const weir_v1_reader_t* reader, weir_view_t name);
weir_view_t weir_v1_tensor_name(const weir_v1_tensor_t* tensor);
size_t weir_v1_tensor_part_count(const weir_v1_tensor_t* tensor);  // slices it is stored in
weir_dtype_t weir_v1_tensor_dtype(const weir_v1_tensor_t* tensor);
int weir_v1_tensor_rank(const weir_v1_tensor_t* tensor);
const int64_t* weir_v1_tensor_dims(const weir_v1_tensor_t* tensor);
// Reads the box |slice|, resolved. INVALID_ARGUMENT when the files do not hold all of it.
WEIR_MUST_USE weir_status_t* weir_v1_reader_read(weir_v1_reader_t* reader,
                                                 const weir_v1_tensor_t* tensor,
                                                 const weir_slice_t* slice,
                                                 weir_tensor_t** out_tensor);

#endif  // WEIR_FILE_CHECKPOINT_V1_H_
