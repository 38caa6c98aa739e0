// strided_slice.c — The meaning of begin, end, strides and the five masks of StridedSlice and its
// kin.
#include "kernel/move/strided_slice.h"

// The spec spread over the input's dimensions, ellipsis and new axes resolved.
typedef struct dense_t {
  int64_t begin[WEIR_MAX_RANK];
  int64_t end[WEIR_MAX_RANK];
  int64_t stride[WEIR_MAX_RANK];
  bool begin_masked[WEIR_MAX_RANK];
  bool end_masked[WEIR_MAX_RANK];
  bool shrink[WEIR_MAX_RANK];
} dense_t;

static bool bit(uint64_t mask, int i) { return i < 64 && (mask >> i & 1) != 0; }

static weir_status_t* push_axis(weir_strided_slice_t* slice, int axis) {
  if (slice->out_rank == WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "slice has more than %d dimensions", WEIR_MAX_RANK);
  }
  slice->out_axis[slice->out_rank++] = axis;
  return NULL;
}

static void set_full(dense_t* dense, int axis) {
  dense->begin[axis] = 0;
  dense->end[axis] = 0;
  dense->stride[axis] = 1;
  dense->begin_masked[axis] = true;
  dense->end_masked[axis] = true;
  dense->shrink[axis] = false;
}

static void set_entry(const weir_strided_slice_spec_t* spec, int i, dense_t* dense, int axis) {
  dense->begin[axis] = spec->begin ? spec->begin[i] : 0;
  dense->end[axis] = spec->end ? spec->end[i] : 0;
  dense->stride[axis] = spec->strides[i];
  dense->begin_masked[axis] = bit(spec->begin_mask, i);
  dense->end_masked[axis] = bit(spec->end_mask, i);
  dense->shrink[axis] = bit(spec->shrink_axis_mask, i);
}

static weir_status_t* count_new_axes(const weir_strided_slice_spec_t* spec, int* out_after_ellipsis,
                                     bool* out_ellipsis) {
  *out_after_ellipsis = 0;
  *out_ellipsis = false;
  if (spec->ellipsis_mask & (spec->ellipsis_mask - 1))
    return WEIR_STATUS(INVALID_ARGUMENT, "Multiple ellipses in slice spec not allowed");
  for (int i = 0; i < spec->count; ++i) {
    if (bit(spec->ellipsis_mask, i)) {
      *out_ellipsis = true;
    } else if (*out_ellipsis && bit(spec->new_axis_mask, i)) {
      ++*out_after_ellipsis;
    }
  }
  return NULL;
}

static weir_status_t* spread(const weir_strided_slice_spec_t* spec, int rank, dense_t* dense,
                             weir_strided_slice_t* slice) {
  int new_after = 0;
  bool has_ellipsis = false;
  WEIR_TRY(count_new_axes(spec, &new_after, &has_ellipsis));
  int count = has_ellipsis ? spec->count : spec->count + 1;  // an ellipsis at the end is understood
  int axis = 0;
  for (int i = 0; i < count; ++i) {
    if (i == spec->count || bit(spec->ellipsis_mask, i)) {
      int next = WEIR_MIN(rank - (count - i) + 1 + new_after, rank);
      for (; axis < next; ++axis) {
        set_full(dense, axis);
        WEIR_TRY(push_axis(slice, axis));
      }
    } else if (bit(spec->new_axis_mask, i)) {
      WEIR_TRY(push_axis(slice, -1));
    } else {
      if (rank == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Attempting to slice scalar input.");
      if (axis == rank) {
        return WEIR_STATUS(INVALID_ARGUMENT,
                           "Index out of range using input dim %d; input has only %d dims", axis,
                           rank);
      }
      set_entry(spec, i, dense, axis);
      if (!dense->shrink[axis]) WEIR_TRY(push_axis(slice, axis));
      ++axis;
    }
  }
  return NULL;
}

// A bound as an index into the dimension, clamped to where a walk with this stride starts or ends.
static int64_t clamp_bound(int64_t value, bool is_masked, bool is_end, int64_t stride,
                           int64_t dim) {
  int64_t low = stride > 0 ? 0 : -1;
  int64_t high = stride > 0 ? dim : dim - 1;
  if (is_masked) return (stride > 0) == is_end ? high : low;
  int64_t index = value < 0 ? dim + value : value;
  return index < low ? low : index > high ? high : index;
}

static int64_t range_size(int64_t interval, int64_t stride) {
  if (interval == 0 || (interval < 0) != (stride < 0)) return 0;
  return interval / stride + (interval % stride != 0 ? 1 : 0);
}

static weir_status_t* resolve_axis(const dense_t* dense, int i, bool bounds_known, int64_t dim,
                                   weir_strided_slice_t* slice) {
  int64_t stride = dense->stride[i];
  slice->stride[i] = stride;
  slice->begin[i] = 0;
  if (stride == 0) return WEIR_STATUS(INVALID_ARGUMENT, "strides[%d] must be non-zero", i);
  if (dense->shrink[i] && stride <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "only stride 1 allowed on non-range indexing.");
  }
  bool is_full = dense->begin_masked[i] && dense->end_masked[i];
  if (dim < 0) {
    slice->size[i] = dense->shrink[i] ? 1 : -1;
    slice->is_known = false;
  } else if (dense->shrink[i]) {
    int64_t index = dense->begin[i] < 0 ? dim + dense->begin[i] : dense->begin[i];
    if (bounds_known && (index < 0 || index >= dim)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "slice index %lld of dimension %d out of bounds.",
                         (long long)dense->begin[i], i);
    }
    slice->begin[i] = index;
    slice->size[i] = 1;
  } else if (bounds_known || is_full) {
    int64_t begin = clamp_bound(dense->begin[i], dense->begin_masked[i], false, stride, dim);
    int64_t end = clamp_bound(dense->end[i], dense->end_masked[i], true, stride, dim);
    slice->begin[i] = begin;
    slice->size[i] = range_size(end - begin, stride);
  } else {
    slice->size[i] = -1;
  }
  return NULL;
}

weir_status_t* weir_strided_slice_resolve(const weir_strided_slice_spec_t* spec, int rank,
                                          const int64_t* dims, weir_strided_slice_t* out_slice) {
  dense_t dense;
  bool bounds_known = spec->begin && spec->end;
  out_slice->rank = rank;
  out_slice->out_rank = 0;
  out_slice->is_known = bounds_known;
  WEIR_TRY(spread(spec, rank, &dense, out_slice));
  for (int i = 0; i < rank; ++i)
    WEIR_TRY(resolve_axis(&dense, i, bounds_known, dims[i], out_slice));
  for (int i = 0; i < out_slice->out_rank; ++i) {
    int axis = out_slice->out_axis[i];
    out_slice->out_dims[i] = axis < 0 ? 1 : out_slice->size[axis];
  }
  return NULL;
}

int64_t weir_strided_slice_box(const weir_strided_slice_t* slice, const int64_t* dims,
                               weir_move_dim_t* out_dims) {
  int64_t offset = 0;
  int64_t stride = 1;
  for (int i = slice->rank - 1; i >= 0; --i) {
    offset += slice->begin[i] * stride;
    out_dims[i].size = slice->size[i];
    out_dims[i].src_stride = slice->stride[i] * stride;
    stride *= dims[i];
  }
  weir_move_contiguous_dst(slice->rank, out_dims);
  return offset;
}
