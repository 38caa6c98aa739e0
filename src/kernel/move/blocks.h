// blocks.h — Moving the places within blocks of space into batches of their own, and back.
// Thread-safe.
#ifndef WEIR_KERNEL_MOVE_BLOCKS_H_
#define WEIR_KERNEL_MOVE_BLOCKS_H_

#include "kernel/move/move_op.h"

// Both tensors: position o * block + i - before of space is position o of batch i.
typedef struct weir_block_axis_t {
  int64_t block, before;
  int64_t space, outer;  // sizes of the dimension in the one and in the other
  int64_t space_stride, outer_stride;
  int64_t batch_stride;  // from one i to the next
} weir_block_axis_t;
typedef struct weir_blocks_t {
  int count;  // of axes
  weir_block_axis_t axes[WEIR_MAX_RANK];
  int64_t batch, product;   // of the tensor with space in it; of all blocks
  int64_t inner;            // elements behind the axes
  int64_t batch_stride[2];  // of a batch in the tensor with space, and in the other
} weir_blocks_t;

WEIR_INLINE bool weir_block_axis_is_whole(const weir_block_axis_t* a) {
  return a->before == 0 && a->outer * a->block == a->space;
}

// Moves all elements from |in| to |out|: the tensor with space to that with more batches, or the
// other way round. |blocks| gets its strides. Places of |out| that have no source are left alone.
WEIR_MUST_USE weir_status_t* weir_blocks_move(weir_kernel_ctx_t* ctx, weir_blocks_t* blocks,
                                              bool to_batch, const weir_tensor_t* in,
                                              weir_tensor_t* out);

#endif  // WEIR_KERNEL_MOVE_BLOCKS_H_
