// space_to_depth.c — SpaceToDepth and DepthToSpace: the pixels of a block become channels of one
// pixel, and back.
#include "kernel/move/move.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

enum { kMaxBlock = 46340 };  // whose square is an int32

// ---- shapes ----

static weir_status_t* read_block_size(weir_attrs_t attrs, int64_t* out) {
  *out = weir_attrs_int(attrs, "block_size");
  if (*out <= INT32_MAX) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Attr block_size has value %lld out of range for an int32",
                     (long long)*out);
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

// Groups of 4 channels are a fifth dimension of NCHW_VECT_C.
static weir_status_t* block_shape(weir_shape_ctx_t* ctx, bool to_depth) {
  weir_view_t format = weir_attrs_string(weir_shape_attrs(ctx), "data_format");
  const bool is_last = weir_view_is(format, "NHWC");
  const int rank = weir_view_is(format, "NCHW_VECT_C") ? 5 : 4;
  const int h = is_last ? 1 : 2, c = is_last ? 3 : 1;
  const weir_shape_t* in;
  int64_t dims[5], block;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), rank, &in));
  WEIR_TRY(read_block_size(weir_shape_attrs(ctx), &block));
  dims[0] = weir_shape_dim(in, 0);
  dims[4] = 4;
  for (int axis = h; axis < h + 2; ++axis) {
    int64_t dim = weir_shape_dim(in, axis);
    WEIR_TRY(to_depth ? divide(dim, block, &dims[axis]) : multiply(dim, block, &dims[axis]));
  }
  int64_t depth = weir_shape_dim(in, c);
  WEIR_TRY(to_depth ? multiply(depth, block * block, &dims[c])
                    : divide(depth, block * block, &dims[c]));
  return weir_shape_set_dims(ctx, 0, rank, dims);
}
static weir_status_t* to_depth_shape(weir_shape_ctx_t* ctx) { return block_shape(ctx, true); }
static weir_status_t* to_space_shape(weir_shape_ctx_t* ctx) { return block_shape(ctx, false); }

// ---- gradients: the other direction ----

static weir_status_t* block_grad(weir_grad_ctx_t* g, const char* back) {
  if (weir_view_is(weir_attrs_string(weir_grad_attrs(g), "data_format"), "NCHW_VECT_C")) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Cannot compute %s gradient with NCHW_VECT_C.",
                       g->node->op_name);
  }
  return weir_grad_set(g, 0,
                       weir_grad_node_like(g, back, WEIR_EDGES(weir_grad_dy(g, 0)),
                                           WEIR_NAMES("block_size", "data_format")));
}
static weir_status_t* to_depth_grad(weir_grad_ctx_t* g) { return block_grad(g, "DepthToSpace"); }
static weir_status_t* to_space_grad(weir_grad_ctx_t* g) { return block_grad(g, "SpaceToDepth"); }

// ---- kernels ----

typedef struct state_t {
  int64_t block;
} state_t;

static weir_status_t* block_init(const weir_kernel_init_t* init, void* state) {
  weir_view_t format = weir_attrs_string(init->node->attrs, "data_format");
  if (!weir_view_is(format, "NHWC")) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Only NHWC data_format supported on CPU. Got %.*s",
                       WEIR_VIEW_ARG(format));
  }
  return read_block_size(init->node->attrs, &((state_t*)state)->block);
}

static weir_status_t* check_rank(const weir_tensor_t* in) {
  if (in->rank == 4) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Input rank should be 4 instead of %d", in->rank);
}

// Pixel (y * block + i, x * block + j) of |channels| channels, in an image |width| blocks wide, is
// channels (i * block + j) * channels on of pixel (y, x): five dimensions, in the order b*y, i, x,
// j*c in the one and b*y, x, i, j*c in the other.
static weir_status_t* move_blocks(weir_kernel_ctx_t* ctx, weir_tensor_t* out, bool to_depth,
                                  int64_t rows, int64_t width, int64_t channels) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const int64_t block = ((const state_t*)ctx->state)->block, run = block * channels;
  weir_move_dim_t box[4] = {{rows, width * block * run, width * block * run},
                            {block, width * run, run},
                            {width, run, block * run},
                            {run, 1, 1}};
  for (int i = 0; !to_depth && i < 4; ++i) {
    box[i] = (weir_move_dim_t){box[i].size, box[i].dst_stride, box[i].src_stride};
  }
  return weir_move_box(weir_kernel_pool(ctx), weir_tensor_type(in), 4, box, in->data, out->data);
}

static weir_status_t* to_depth_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const int64_t block = ((const state_t*)ctx->state)->block;
  weir_tensor_t* out;
  WEIR_TRY(check_rank(in));
  const int64_t height = in->dims[1], width = in->dims[2];
  int64_t depth;
  if (width % block != 0 || height % block != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Image width %lld and height %lld should be divisible by block_size: %lld",
                       (long long)width, (long long)height, (long long)block);
  }
  WEIR_TRY(multiply(in->dims[3], block * block, &depth));
  const int64_t dims[] = {in->dims[0], height / block, width / block, depth};
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  if (out->count == 0) return NULL;
  return move_blocks(ctx, out, true, dims[0] * dims[1], dims[2], in->dims[3]);
}

static weir_status_t* to_space_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const int64_t block = ((const state_t*)ctx->state)->block;
  weir_tensor_t* out;
  WEIR_TRY(check_rank(in));
  if (block > kMaxBlock) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Block size should be > 1 and <= %d but was: %lld",
                       kMaxBlock, (long long)block);
  }
  if (in->dims[3] % (block * block) != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input depth dimension %lld should be divisible by: %lld",
                       (long long)in->dims[3], (long long)(block * block));
  }
  int64_t dims[] = {in->dims[0], 0, 0, in->dims[3] / (block * block)};
  WEIR_TRY(multiply(in->dims[1], block, &dims[1]));
  WEIR_TRY(multiply(in->dims[2], block, &dims[2]));
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, dims, &out));
  if (out->count == 0) return NULL;
  return move_blocks(ctx, out, false, in->dims[0] * in->dims[1], in->dims[2], dims[3]);
}

#define BLOCK_ATTRS \
  "T: type; block_size: int >= 2; data_format: {'NHWC','NCHW','NCHW_VECT_C'} = 'NHWC'"
#define BLOCK_TYPES                                                                              \
  "T: float, double, half, bfloat16, int8, int16, int32, int64, uint8, uint16, uint32, uint64, " \
  "bool, complex64, complex128, string, resource, variant"

const weir_op_module_t weir_ops_nn_space_to_depth = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SpaceToDepth",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Makes channels of the pixels of a block",
         .attrs = BLOCK_ATTRS,
         .inputs = "input: T",
         .outputs = "output: T",
         .infer_shape = to_depth_shape,
         .build_grad = to_depth_grad,
         .kernels = WEIR_CPU_KERNEL(.types = BLOCK_TYPES ", qint8", .compute = to_depth_cpu,
                                    .init = block_init, .state_size = sizeof(state_t))},
        {.name = "DepthToSpace",
         .mixed = WEIR_MIXED_CLEAR,
         .summary = "Makes pixels of a block of channels",
         .attrs = BLOCK_ATTRS,
         .inputs = "input: T",
         .outputs = "output: T",
         .infer_shape = to_space_shape,
         .build_grad = to_space_grad,
         .kernels = WEIR_CPU_KERNEL(.types = BLOCK_TYPES, .compute = to_space_cpu,
                                    .init = block_init, .state_size = sizeof(state_t))},
        {0}}};
