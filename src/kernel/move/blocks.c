// blocks.c — Places within blocks as batches: one box for each place of the blocks that reach over
// an edge, one for all of the others.
#include "kernel/move/blocks.h"

// Strides of both tensors, of which the kernel knows that they are no larger than memory.
static void set_strides(weir_blocks_t* l) {
  int64_t space = l->inner, outer = l->inner;
  for (int i = l->count - 1; i >= 0; --i) {
    l->axes[i].space_stride = space;
    l->axes[i].outer_stride = outer;
    space *= l->axes[i].space;
    outer *= l->axes[i].outer;
  }
  l->batch_stride[0] = space;
  l->batch_stride[1] = outer;
  int64_t step = l->batch * outer;
  for (int i = l->count - 1; i >= 0; --i) {
    l->axes[i].batch_stride = step;
    step *= l->axes[i].block;
  }
}

// A box dimension whose source is the tensor with space, or the other way round.
static weir_move_dim_t box_dim(bool to_batch, int64_t size, int64_t space, int64_t outer) {
  return (weir_move_dim_t){size, to_batch ? space : outer, to_batch ? outer : space};
}

// Moves one place of the blocks: place[i] along the axes that are not whole, all of the others.
static weir_status_t* move_place(weir_kernel_ctx_t* ctx, const weir_blocks_t* l,
                                 const int64_t* place, bool to_batch, const weir_tensor_t* in,
                                 weir_tensor_t* out) {
  const size_t size = weir_dtype_size(weir_tensor_type(in));
  weir_move_dim_t box[WEIR_MOVE_MAX_RANK];
  int rank = 0;
  int64_t space = 0, outer = 0;
  box[rank++] = box_dim(to_batch, l->batch, l->batch_stride[0], l->batch_stride[1]);
  for (int i = 0; i < l->count; ++i) {
    const weir_block_axis_t* a = &l->axes[i];
    if (weir_block_axis_is_whole(a)) {
      box[rank++] = box_dim(to_batch, a->block, a->space_stride, a->batch_stride);
      box[rank++] = box_dim(to_batch, a->outer, a->block * a->space_stride, a->outer_stride);
      continue;
    }
    // The first and the last o whose o * block + place - before is in [0, space).
    int64_t shift = a->before - place[i];
    int64_t first = shift <= 0 ? 0 : (shift - 1) / a->block + 1;
    int64_t end = a->space + shift <= 0 ? 0 : (a->space + shift - 1) / a->block + 1;
    if (end > a->outer) end = a->outer;
    if (end <= first) return NULL;
    space += (first * a->block - shift) * a->space_stride;
    outer += place[i] * a->batch_stride + first * a->outer_stride;
    box[rank++] = box_dim(to_batch, end - first, a->block * a->space_stride, a->outer_stride);
  }
  box[rank++] = box_dim(to_batch, l->inner, 1, 1);
  const char* src = (const char*)in->data + (size_t)(to_batch ? space : outer) * size;
  char* dst = (char*)out->data + (size_t)(to_batch ? outer : space) * size;
  return weir_kernel_move_box(ctx, weir_tensor_type(in), rank, box, src, dst);
}

weir_status_t* weir_blocks_move(weir_kernel_ctx_t* ctx, weir_blocks_t* blocks, bool to_batch,
                                const weir_tensor_t* in, weir_tensor_t* out) {
  const weir_blocks_t* l = blocks;
  int64_t place[WEIR_MAX_RANK] = {0};
  if (in->count == 0) return NULL;
  set_strides(blocks);
  for (;;) {
    WEIR_TRY(move_place(ctx, l, place, to_batch, in, out));
    int i = l->count - 1;
    for (; i >= 0; --i) {
      if (weir_block_axis_is_whole(&l->axes[i])) continue;
      if (++place[i] < l->axes[i].block) break;
      place[i] = 0;
    }
    if (i < 0) return NULL;
  }
}
