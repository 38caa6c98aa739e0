// space_to_batch.c — SpaceToBatchND, BatchToSpaceND and their older forms of images: the places of
// a block become batches of their own, and back.
#include "kernel/move/blocks.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"

enum { MAX_MOVED = 4 };  // dimensions that are not left as they are: as many as TensorFlow takes

#define MOVED_TYPES \
  "T: float, double, half, bfloat16, int8, int16, int32, int64, uint8, uint16, uint32, uint64"

// ---- shapes ----

// What a shape function knows of the blocks.
typedef struct blocks_t {
  const weir_shape_t* shape;    // of block_shape
  const weir_tensor_t* values;  // NULL: not known, or |size|
  int64_t size;                 // 0: |values| say it
} blocks_t;

static bool has_block(const blocks_t* b) { return b->values || b->size > 0; }
static int64_t block_at(const blocks_t* b, int i) {
  return b->values ? weir_tensor_int_at(b->values, i) : b->size;
}

static weir_status_t* divide(int64_t dim, int64_t by, int64_t* out) {
  *out = dim < 0 ? -1 : dim / by;
  if (dim < 0 || dim % by == 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Dimension size must be evenly divisible by %lld but is %lld", (long long)by,
                     (long long)dim);
}

static weir_status_t* multiply(int64_t dim, int64_t by, int64_t* out) {
  *out = -1;
  if (dim < 0 || !__builtin_mul_overflow(dim, by, out)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Negative dimension size caused by overflow when multiplying %lld and %lld",
                     (long long)dim, (long long)by);
}

static weir_status_t* add(int64_t dim, int64_t more, int64_t* out) {
  *out = -1;
  if (dim < 0 || !__builtin_add_overflow(dim, more, out)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Dimension size overflow when adding %lld and %lld",
                     (long long)dim, (long long)more);
}

static weir_status_t* subtract(int64_t dim, int64_t less, int64_t* out) {
  *out = dim < 0 ? -1 : dim - less;
  if (dim < 0 || *out >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Negative dimension size caused by subtracting %lld from %lld",
                     (long long)less, (long long)dim);
}

static weir_status_t* batch_dim(const blocks_t* blocks, int count, bool to_batch, int64_t batch,
                                int64_t* out) {
  *out = count == 0 || has_block(blocks) ? batch : -1;
  for (int i = 0; i < count && has_block(blocks); ++i) {
    int64_t block = block_at(blocks, i);
    if (block < 1) return WEIR_STATUS(INVALID_ARGUMENT, "block_shape must be positive");
    WEIR_TRY(to_batch ? multiply(*out, block, out) : divide(*out, block, out));
  }
  return NULL;
}

static weir_status_t* space_dim(bool to_batch, int64_t dim, int64_t block, int64_t before,
                                int64_t after, int64_t* out) {
  if (to_batch) {
    WEIR_TRY(add(dim, before, &dim));
    WEIR_TRY(add(dim, after, &dim));
    return divide(dim, block, out);
  }
  WEIR_TRY(multiply(dim, block, &dim));
  WEIR_TRY(subtract(dim, before, &dim));
  return subtract(dim, after, out);
}

static weir_status_t* space_dims(const weir_shape_t* in, const blocks_t* blocks, int count,
                                 const weir_tensor_t* edges, bool to_batch, int64_t* dims) {
  for (int i = 0; i < count; ++i) dims[i] = -1;
  if (!edges || edges->count != 2 * (int64_t)count) return NULL;
  for (int i = 0; i < count; ++i) {
    int64_t before = weir_tensor_int_at(edges, 2 * i), after = weir_tensor_int_at(edges, 2 * i + 1);
    if (before < 0 || after < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s cannot be negative",
                         to_batch ? "paddings" : "crops");
    }
    if (!has_block(blocks)) continue;
    WEIR_TRY(space_dim(to_batch, weir_shape_dim(in, i + 1), block_at(blocks, i), before, after,
                       &dims[i]));
  }
  return NULL;
}

static weir_status_t* same_rank(weir_shape_ctx_t* ctx, const weir_shape_t* in) {
  int64_t dims[WEIR_MAX_RANK];
  if (in->rank < 0) return NULL;
  for (int i = 0; i < in->rank; ++i) dims[i] = -1;
  return weir_shape_set_dims(ctx, 0, in->rank, dims);
}

static weir_status_t* blocks_shape(weir_shape_ctx_t* ctx, const blocks_t* blocks, int edges_input,
                                   bool to_batch) {
  const weir_shape_t *in = weir_shape_input(ctx, 0), *edges;
  int64_t dims[WEIR_MAX_RANK], joined;
  if (blocks->shape->rank >= 0 && blocks->shape->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "block_shape must have rank 1.");
  }
  // TensorFlow refuses a number of blocks that is not known yet; the kernel will see it.
  const int64_t count = weir_shape_dim(blocks->shape, 0);
  if (count < 0) return same_rank(ctx, in);
  if (count >= WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be at least rank %lld", (long long)count + 1);
  }
  WEIR_TRY(weir_shape_at_least(ctx, in, (int)count + 1));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, edges_input), 2, &edges));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(edges, 0), count, &joined));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(edges, 1), 2, &joined));
  WEIR_TRY(batch_dim(blocks, (int)count, to_batch, weir_shape_dim(in, 0), &dims[0]));
  WEIR_TRY(
      space_dims(in, blocks, (int)count, weir_shape_value(ctx, edges_input), to_batch, dims + 1));
  if (in->rank < 0) return NULL;
  for (int i = (int)count + 1; i < in->rank; ++i) dims[i] = in->dims[i];
  return weir_shape_set_dims(ctx, 0, in->rank, dims);
}

static weir_status_t* nd_shape(weir_shape_ctx_t* ctx, bool to_batch) {
  blocks_t blocks = {.shape = weir_shape_input(ctx, 1), .values = weir_shape_value(ctx, 1)};
  return blocks_shape(ctx, &blocks, 2, to_batch);
}
static weir_status_t* to_batch_nd_shape(weir_shape_ctx_t* ctx) { return nd_shape(ctx, true); }
static weir_status_t* to_space_nd_shape(weir_shape_ctx_t* ctx) { return nd_shape(ctx, false); }

// The one size of an image's blocks, which TensorFlow keeps as an int32.
static weir_status_t* read_block_size(weir_attrs_t attrs, int64_t* out) {
  *out = weir_attrs_int(attrs, "block_size");
  if (*out <= INT32_MAX) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Attr block_size has value %lld out of range for an int32",
                     (long long)*out);
}

static weir_status_t* image_shape(weir_shape_ctx_t* ctx, bool to_batch) {
  static const int64_t two[] = {2}, unknown[] = {-1, -1, -1, -1};
  blocks_t blocks = {.shape = weir_shape_make(ctx->arena, 1, two)};
  if (!blocks.shape) return weir_out_of_memory();
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, NULL));
  WEIR_TRY(read_block_size(weir_shape_attrs(ctx), &blocks.size));
  WEIR_TRY(blocks_shape(ctx, &blocks, 1, to_batch));
  return weir_shape_input(ctx, 0)->rank < 0 ? weir_shape_set_dims(ctx, 0, 4, unknown) : NULL;
}
static weir_status_t* to_batch_shape(weir_shape_ctx_t* ctx) { return image_shape(ctx, true); }
static weir_status_t* to_space_shape(weir_shape_ctx_t* ctx) { return image_shape(ctx, false); }

// ---- gradients: the other direction ----

static weir_status_t* nd_grad(weir_grad_ctx_t* g, const char* back) {
  return weir_grad_set(
      g, 0,
      weir_grad_node(g, back,
                     WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 1), weir_grad_input(g, 2))));
}
static weir_status_t* to_batch_nd_grad(weir_grad_ctx_t* g) { return nd_grad(g, "BatchToSpaceND"); }
static weir_status_t* to_space_nd_grad(weir_grad_ctx_t* g) { return nd_grad(g, "SpaceToBatchND"); }

static weir_status_t* image_grad(weir_grad_ctx_t* g, const char* back) {
  return weir_grad_set(
      g, 0,
      weir_grad_node_like(g, back, WEIR_EDGES(weir_grad_dy(g, 0), weir_grad_input(g, 1)),
                          WEIR_NAMES("block_size")));
}
static weir_status_t* to_batch_grad(weir_grad_ctx_t* g) { return image_grad(g, "BatchToSpace"); }
static weir_status_t* to_space_grad(weir_grad_ctx_t* g) { return image_grad(g, "SpaceToBatch"); }

// ---- kernels ----

// The product of all blocks, and how many dimensions there are between those at both ends that stay
// as they are.
static weir_status_t* check_blocks(const weir_blocks_t* l, const int64_t* after, bool to_batch,
                                   int64_t* product, int* moved) {
  int first = 0, last = l->count;
  *product = 1;
  for (int i = 0; i < l->count; ++i) {
    if (to_batch && l->axes[i].block < 1) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "All values in block_shape must be positive, got value, %lld at index %d.",
                         (long long)l->axes[i].block, i);
    }
    if (l->axes[i].block < 1 || __builtin_mul_overflow(*product, l->axes[i].block, product)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Product of block sizes must be positive, got %lld",
                         (long long)WEIR_MIN(l->axes[i].block, 0));
    }
  }
#define STAYS(i) (l->axes[i].block == 1 && l->axes[i].before == 0 && after[i] == 0)
  while (first < last && STAYS(first)) ++first;
  while (last > first && STAYS(last - 1)) --last;
#undef STAYS
  *moved = last - first;
  if (*moved <= MAX_MOVED) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Maximum number of non-combined block dimensions is %d but must not exceed %d",
                     *moved, MAX_MOVED);
}

static weir_status_t* weir_block_axis_to_batch(weir_block_axis_t* a, int i, int64_t in,
                                               int64_t after) {
  int64_t padded;
  if (a->before < 0 || after < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Paddings must be non-negative");
  }
  if (__builtin_add_overflow(in, a->before, &padded) ||
      __builtin_add_overflow(padded, after, &padded)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "padded_shape[%d] is too large", i);
  }
  if (padded % a->block != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "padded_shape[%d]=%lld is not divisible by block_shape[%d]=%lld", i,
                       (long long)padded, i, (long long)a->block);
  }
  a->space = in;
  a->outer = padded / a->block;
  return NULL;
}

static weir_status_t* weir_block_axis_to_space(weir_block_axis_t* a, int i, int64_t in,
                                               int64_t after) {
  int64_t whole, crops;
  if (a->before < 0 || after < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Crops must be non-negative");
  }
  if (__builtin_mul_overflow(in, a->block, &whole)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "cropped_shape[%d] is too large", i);
  }
  a->outer = in;
  a->space = __builtin_add_overflow(a->before, after, &crops) ? INT64_MIN : whole - crops;
  if (a->space >= 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "cropped_shape[%d]=%lld must be non-negative", i,
                     (long long)a->space);
}

static weir_status_t* find_batch(weir_blocks_t* l, int64_t in, bool to_batch, int64_t* out) {
  if (to_batch) {
    l->batch = in;
    if (!__builtin_mul_overflow(in, l->product, out)) return NULL;
    return WEIR_STATUS(INVALID_ARGUMENT, "batch of %lld blocks of %lld elements is too large",
                       (long long)in, (long long)l->product);
  }
  l->batch = *out = in / l->product;
  if (in % l->product == 0) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT,
      "Input batch dimension (%lld) is not divisible by product of block sizes (%lld)",
      (long long)in, (long long)l->product);
}

static weir_status_t* rearrange(weir_kernel_ctx_t* ctx, weir_blocks_t* l,
                                const weir_tensor_t* edges, bool to_batch) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK], after[WEIR_MAX_RANK] = {0};
  bool is_all = true;
  int moved = 0;
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (in->rank < 1 + l->count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input rank should be >= %d instead of %d", 1 + l->count,
                       in->rank);
  }
  if (edges->rank != 2 || edges->dims[0] != l->count || edges->dims[1] != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s should have shape [%d, 2] instead of %s",
                       to_batch ? "paddings" : "crops", l->count,
                       weir_tensor_shape_text(edges, text));
  }
  for (int i = 0; i < l->count; ++i) {
    l->axes[i].before = weir_tensor_int_at(edges, 2 * i);
    after[i] = weir_tensor_int_at(edges, 2 * i + 1);
  }
  WEIR_TRY(check_blocks(l, after, to_batch, &l->product, &moved));
  if (moved == 0) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  WEIR_TRY(find_batch(l, in->dims[0], to_batch, &dims[0]));
  for (int i = 0; i < l->count; ++i) {
    weir_block_axis_t* a = &l->axes[i];
    WEIR_TRY(to_batch ? weir_block_axis_to_batch(a, i, in->dims[i + 1], after[i])
                      : weir_block_axis_to_space(a, i, in->dims[i + 1], after[i]));
    dims[i + 1] = to_batch ? a->outer : a->space;
    is_all = is_all && weir_block_axis_is_whole(a);
  }
  l->inner = 1;
  for (int i = l->count + 1; i < in->rank; ++i) {
    dims[i] = in->dims[i];
    l->inner *= in->dims[i];
  }
  weir_tensor_t* out;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, dims, &out));
  if (out->count == 0) return NULL;
  if (to_batch && !is_all)
    WEIR_TRY(weir_kernel_move_zero(ctx, weir_tensor_type(out), out->data, out->count));
  return weir_blocks_move(ctx, l, to_batch, in, out);
}

static weir_status_t* nd(weir_kernel_ctx_t* ctx, bool to_batch) {
  const weir_tensor_t* blocks = weir_kernel_input(ctx, 1);
  weir_blocks_t l = {0};
  if (blocks->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "block_shape rank should be 1 instead of %d",
                       blocks->rank);
  }
  if (blocks->count >= WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input rank should be >= %lld instead of %d",
                       1 + (long long)blocks->count, weir_kernel_input(ctx, 0)->rank);
  }
  l.count = (int)blocks->count;
  for (int i = 0; i < l.count; ++i) l.axes[i].block = weir_tensor_int_at(blocks, i);
  return rearrange(ctx, &l, weir_kernel_input(ctx, 2), to_batch);
}
static weir_status_t* to_batch_nd_cpu(weir_kernel_ctx_t* ctx) { return nd(ctx, true); }
static weir_status_t* to_space_nd_cpu(weir_kernel_ctx_t* ctx) { return nd(ctx, false); }

static weir_status_t* image(weir_kernel_ctx_t* ctx, bool to_batch) {
  weir_blocks_t l = {.count = 2};
  int64_t block;
  if (weir_kernel_input(ctx, 0)->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input rank should be: 4instead of: %d",
                       weir_kernel_input(ctx, 0)->rank);
  }
  WEIR_TRY(read_block_size(weir_kernel_attrs(ctx), &block));
  l.axes[0].block = l.axes[1].block = block;
  return rearrange(ctx, &l, weir_kernel_input(ctx, 1), to_batch);
}
static weir_status_t* to_batch_cpu(weir_kernel_ctx_t* ctx) { return image(ctx, true); }
static weir_status_t* to_space_cpu(weir_kernel_ctx_t* ctx) { return image(ctx, false); }

#define ND_ATTRS(edges) \
  "T: type; Tblock_shape: {int32, int64} = DT_INT32; " edges ": {int32, int64} = DT_INT32"

const weir_op_module_t weir_ops_nn_space_to_batch = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SpaceToBatchND",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Makes batches of the places within blocks",
         .attrs = ND_ATTRS("Tpaddings"),
         .inputs = "input: T; block_shape: Tblock_shape; paddings: Tpaddings",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .infer_shape = to_batch_nd_shape,
         .build_grad = to_batch_nd_grad,
         .kernels = WEIR_CPU_KERNEL(.types = MOVED_TYPES, .compute = to_batch_nd_cpu)},
        {.name = "BatchToSpaceND",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Makes places within blocks of batches",
         .attrs = ND_ATTRS("Tcrops"),
         .inputs = "input: T; block_shape: Tblock_shape; crops: Tcrops",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .infer_shape = to_space_nd_shape,
         .build_grad = to_space_nd_grad,
         .kernels = WEIR_CPU_KERNEL(.types = MOVED_TYPES, .compute = to_space_nd_cpu)},
        {.name = "SpaceToBatch",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Makes batches of the places within blocks of images",
         .attrs = "T: type; Tpaddings: {int32, int64} = DT_INT32; block_size: int >= 2",
         .inputs = "input: T; paddings: Tpaddings",
         .outputs = "output: T",
         .infer_shape = to_batch_shape,
         .build_grad = to_batch_grad,
         .kernels = WEIR_CPU_KERNEL(.types = MOVED_TYPES, .compute = to_batch_cpu)},
        {.name = "BatchToSpace",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Makes places within blocks of images of batches",
         .attrs = "T: type; block_size: int >= 2; Tidx: {int32, int64} = DT_INT32",
         .inputs = "input: T; crops: Tidx",
         .outputs = "output: T",
         .infer_shape = to_space_shape,
         .build_grad = to_space_grad,
         .kernels = WEIR_CPU_KERNEL(.types = MOVED_TYPES, .compute = to_space_cpu)},
        {0}}};
