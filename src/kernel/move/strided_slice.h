// strided_slice.h — The meaning of begin, end, strides and the five masks of StridedSlice and its
// kin, also where parts are not known yet.
#ifndef WEIR_KERNEL_MOVE_STRIDED_SLICE_H_
#define WEIR_KERNEL_MOVE_STRIDED_SLICE_H_

#include "kernel/move/move.h"

// What the op was given. Values are borrowed for the call.
typedef struct weir_strided_slice_spec_t {
  int count;             // of entries of begin, end and strides
  const int64_t* begin;  // NULL: not known
  const int64_t* end;    // NULL: not known
  const int64_t* strides;
  uint64_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
} weir_strided_slice_spec_t;

// What it means for an input of given rank: one range a dimension, and the shape of the result.
typedef struct weir_strided_slice_t {
  int rank;                      // of the input
  int64_t begin[WEIR_MAX_RANK];  // valid where is_known
  int64_t stride[WEIR_MAX_RANK];
  int64_t size[WEIR_MAX_RANK];      // elements taken; -1: not known
  bool is_known;                    // begin and every size are
  int out_rank;                     // without shrunk axes, with new ones
  int64_t out_dims[WEIR_MAX_RANK];  // -1: not known
  int out_axis[WEIR_MAX_RANK];      // the input's dimension each comes from; -1: a new axis
} weir_strided_slice_t;

// Resolves |spec| against an input of |dims| (-1: not known). INVALID_ARGUMENT in TensorFlow's
// words.
WEIR_MUST_USE weir_status_t* weir_strided_slice_resolve(const weir_strided_slice_spec_t* spec,
                                                        int rank, const int64_t* dims,
                                                        weir_strided_slice_t* out_slice);

// The box that the slice cuts out of row-major memory of |dims|: sizes and strides of the big side
// go into |out_dims|'s src_stride, those of the packed side into dst_stride. Returns the offset of
// its first element. REQUIRES: is_known.
int64_t weir_strided_slice_box(const weir_strided_slice_t* slice, const int64_t* dims,
                               weir_move_dim_t* out_dims);

#endif  // WEIR_KERNEL_MOVE_STRIDED_SLICE_H_
