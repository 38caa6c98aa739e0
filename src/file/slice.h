// slice.h — Slices of tensors: the boxes in which checkpoints hold the parts of a partitioned
// variable.
#ifndef WEIR_FILE_SLICE_H_
#define WEIR_FILE_SLICE_H_

#include "base/string.h"
#include "tensor/tensor.h"

// A box within a tensor. A value type. length == -1: the whole dimension, start is 0 then.
typedef struct weir_slice_t {
  int rank;
  int64_t starts[WEIR_MAX_RANK];
  int64_t lengths[WEIR_MAX_RANK];
} weir_slice_t;

void weir_slice_set_full(weir_slice_t* slice, int rank);

// Parses what SaveV2 and RestoreV2 take: "4 10 0,2:-" is rows 0 and 1 of a [4,10] tensor.
// Dimensions first, then an extent for each: "start,length" or "-". |dims| has room for
// WEIR_MAX_RANK. INVALID_ARGUMENT for bad syntax, INTERNAL (as TensorFlow) for a slice outside of
// the shape.
WEIR_MUST_USE weir_status_t* weir_slice_parse_spec(weir_view_t spec, int* out_rank, int64_t* dims,
                                                   weir_slice_t* out_slice);
// Appends "0,2:-".
void weir_slice_append(const weir_slice_t* slice, weir_strbuf_t* out);

// Whether the slice is all of a tensor of |dims|.
bool weir_slice_is_full(const weir_slice_t* slice, const int64_t* dims);
// Makes every length plain, and checks that the box lies within |dims| (INTERNAL otherwise).
WEIR_MUST_USE weir_status_t* weir_slice_resolve(weir_slice_t* slice, int rank, const int64_t* dims);
// The box that two resolved slices share; false when it is empty.
bool weir_slice_intersect(const weir_slice_t* a, const weir_slice_t* b, weir_slice_t* out_common);
int64_t weir_slice_count(const weir_slice_t* slice);  // elements of a resolved slice

// Copies the elements of the box |common| from |src|, which holds the box |src_slice|, to |dst|,
// which holds |dst_slice|. All resolved, both tensors of one type.
WEIR_MUST_USE weir_status_t* weir_slice_copy(const weir_slice_t* common,
                                             const weir_slice_t* src_slice,
                                             const weir_tensor_t* src,
                                             const weir_slice_t* dst_slice, weir_tensor_t* dst);

// ---- encodings in checkpoints ----

// TensorSliceProto's fields.
WEIR_MUST_USE weir_status_t* weir_slice_parse(weir_view_t proto, weir_slice_t* out_slice);
void weir_slice_write(const weir_slice_t* slice, weir_strbuf_t* out);

// Appends the key under which the part |slice| of tensor |name| is stored: an encoding whose bytes
// sort as the values do.
void weir_slice_append_key(weir_view_t name, const weir_slice_t* slice, weir_strbuf_t* out);
// Whether |key| is the key of a part rather than a tensor's name.
WEIR_INLINE bool weir_slice_is_key(weir_view_t key) { return key.size > 0 && key.data[0] == '\0'; }

#endif  // WEIR_FILE_SLICE_H_
