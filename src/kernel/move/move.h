// move.h — Moving elements without knowing their type: strided copies of any rank, fills, gathers
// of rows.
//
// Elements are told apart by size alone, but for strings, resource handles and variants, which are
// copied one by one on the calling thread. Results do not depend on the number of threads. |pool|
// may be NULL: everything runs on the caller.
#ifndef WEIR_KERNEL_MOVE_MOVE_H_
#define WEIR_KERNEL_MOVE_MOVE_H_

#include "base/thread.h"
#include "tensor/tensor.h"

// One dimension of a strided copy. Strides are in elements: 0 repeats, a negative one runs
// backwards.
typedef struct weir_move_dim_t {
  int64_t size;
  int64_t src_stride;
  int64_t dst_stride;
} weir_move_dim_t;

// A tensor of the highest rank, each of whose dimensions is split in two (Tile).
#define WEIR_MOVE_MAX_RANK (2 * WEIR_MAX_RANK)

// Copies the elements of an |rank|-dimensional box; |src| and |dst| point at the box's element of
// index 0 and do not overlap. |dims| is overwritten: dimensions are merged and reordered.
// Destinations of distinct indices must be distinct.
WEIR_MUST_USE weir_status_t* weir_move_box(weir_pool_t* pool, weir_dtype_t dtype, int rank,
                                           weir_move_dim_t* dims, const void* src, void* dst);

// Copies |count| contiguous elements.
WEIR_MUST_USE weir_status_t* weir_move_copy(weir_pool_t* pool, weir_dtype_t dtype, const void* src,
                                            void* dst, int64_t count);

// Sets |count| elements to a copy of |value|.
WEIR_MUST_USE weir_status_t* weir_move_fill(weir_pool_t* pool, weir_dtype_t dtype,
                                            const void* value, void* dst, int64_t count);

// Makes |count| freshly allocated elements zero (strings, handles and variants already are empty).
void weir_move_zero(weir_dtype_t dtype, void* dst, int64_t count);

// Drops dimensions of size 1 and joins neighbours that are one run in both memories. Returns the
// rank left; -1 when the box is empty.
int weir_move_merge(int rank, weir_move_dim_t* dims);

// Sets the strides of |dims| to those of row-major memory of its sizes.
void weir_move_contiguous_src(int rank, weir_move_dim_t* dims);
void weir_move_contiguous_dst(int rank, weir_move_dim_t* dims);

// dst[b][o][i][:] = src[b][o][indices[b][i]][:], each row |inner| elements.
typedef struct weir_move_gather_t {
  int64_t batch;
  int64_t outer;
  int64_t rows;         // of |src|: indices are in [0, rows)
  int64_t index_count;  // a batch
  int64_t inner;
} weir_move_gather_t;
// |indices| is an int16, int32 or int64 tensor of batch * index_count elements. Nothing is moved
// when an index is out of range: *|out_bad| is its position then, else -1.
WEIR_MUST_USE weir_status_t* weir_move_gather(weir_pool_t* pool, weir_dtype_t dtype,
                                              const weir_move_gather_t* gather, const void* src,
                                              const weir_tensor_t* indices, void* dst,
                                              int64_t* out_bad);

// Element |index| of an integer tensor of any width; unsigned 64-bit values wrap.
WEIR_INLINE int64_t weir_move_int_at(const weir_tensor_t* tensor, int64_t index) {
  switch (tensor->dtype) {
    case WEIR_DTYPE_INT8: return ((const int8_t*)tensor->data)[index];
    case WEIR_DTYPE_UINT8: return ((const uint8_t*)tensor->data)[index];
    case WEIR_DTYPE_INT16: return ((const int16_t*)tensor->data)[index];
    case WEIR_DTYPE_UINT16: return ((const uint16_t*)tensor->data)[index];
    case WEIR_DTYPE_INT32: return ((const int32_t*)tensor->data)[index];
    case WEIR_DTYPE_UINT32: return ((const uint32_t*)tensor->data)[index];
    default: return ((const int64_t*)tensor->data)[index];
  }
}

// Stores |value| as element |index| of an integer tensor of 2, 4 or 8 bytes an element.
WEIR_INLINE void weir_move_set_int(weir_tensor_t* tensor, int64_t index, int64_t value) {
  switch (tensor->dtype) {
    case WEIR_DTYPE_INT16: ((int16_t*)tensor->data)[index] = (int16_t)value; break;
    case WEIR_DTYPE_INT32: ((int32_t*)tensor->data)[index] = (int32_t)value; break;
    default: ((int64_t*)tensor->data)[index] = value; break;
  }
}

#endif  // WEIR_KERNEL_MOVE_MOVE_H_
