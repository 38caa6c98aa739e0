// broadcast.c — BroadcastTo, BroadcastArgs, BroadcastGradientArgs.
#include "ops/array/common.h"

// ---- BroadcastTo ----

static weir_status_t* broadcast_to_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  const weir_shape_t* out = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  WEIR_TRY(weir_shape_from_value(ctx, 1, &out));
  if (out->rank < 0) return weir_shape_set(ctx, 0, out);
  if (in->rank > out->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be at most rank %d but is rank %d", out->rank,
                       in->rank);
  }
  for (int i = 0; i < in->rank; ++i) {
    int64_t from = in->dims[in->rank - 1 - i], to = out->dims[out->rank - 1 - i];
    if (from >= 0 && to >= 0 && from != to && from != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Dimensions must be equal, but are %lld and %lld",
                         (long long)from, (long long)to);
    }
  }
  return weir_shape_set(ctx, 0, out);
}

static weir_status_t* read_target(const weir_tensor_t* in, const weir_tensor_t* shape,
                                  int64_t* dims) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (shape->rank != 1 || shape->count > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape must be a vector of at most %d sizes, got shape %s",
                       WEIR_MAX_RANK, weir_tensor_shape_text(shape, a));
  }
  int rank = (int)shape->count;
  for (int i = 0; i < rank; ++i) dims[i] = weir_tensor_int_at(shape, i);
  if (in->rank > rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Rank of input (%d) must be no greater than rank of output shape (%d).",
                       in->rank, rank);
  }
  for (int i = 0; i < in->rank; ++i) {
    int64_t from = in->dims[in->rank - 1 - i], to = dims[rank - 1 - i];
    if (from != to && from != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                         weir_tensor_shape_text(in, a), weir_shape_text(rank, dims, b));
    }
  }
  return NULL;
}

static weir_status_t* broadcast_to(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* shape = weir_kernel_input(ctx, 1);
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(read_target(in, shape, dims));
  int rank = (int)shape->count;
  if (rank == in->rank &&
      (rank == 0 || memcmp(dims, in->dims, (size_t)rank * sizeof(*dims)) == 0)) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  if (out->count == 0) return NULL;
  weir_move_dim_t box[WEIR_MAX_RANK];
  int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    int k = i - (rank - in->rank);
    int64_t from = k >= 0 ? in->dims[k] : 1;
    box[i].size = dims[i];
    box[i].src_stride = from == 1 ? 0 : stride;
    stride *= from;
  }
  weir_move_contiguous_dst(rank, box);
  return weir_kernel_move_box(ctx, weir_tensor_type(in), rank, box, in->data, out->data);
}

// The dimensions of |to| along which |from| was repeated.
static int repeated_axes(const weir_shape_t* from, const weir_shape_t* to, int64_t* axes) {
  int count = 0;
  for (int i = 0; i < to->rank; ++i) {
    int k = i - (to->rank - from->rank);
    if (k < 0 || (from->dims[k] == 1 && to->dims[i] != 1)) axes[count++] = i;
  }
  return count;
}

static weir_status_t* broadcast_to_grad(weir_grad_ctx_t* g) {  // dy summed over what was repeated
  weir_edge_t x = weir_grad_input(g, 0);
  weir_edge_t target = weir_grad_input(g, 1);
  weir_edge_t dy = weir_grad_dy(g, 0);
  const weir_shape_t* from = weir_grad_shape(g, x);
  const weir_shape_t* to = weir_grad_shape(g, weir_grad_output(g, 0));
  weir_attrs_t keep = WEIR_ATTRS(weir_attr_bool("keep_dims", true));
  if (weir_shape_is_full(from) && weir_shape_is_full(to)) {
    int64_t axes[WEIR_MAX_RANK];
    int count = repeated_axes(from, to, axes);
    if (count == 0) return weir_grad_set(g, 0, dy);
    dy = weir_grad_node_with(
        g, "Sum", WEIR_EDGES(dy, array_grad_ints(g, WEIR_DTYPE_INT32, axes, count)), keep);
    if (from->rank != to->rank)
      dy = weir_grad_node(g, "Reshape", WEIR_EDGES(dy, weir_grad_shape_of(g, x)));
    return weir_grad_set(g, 0, dy);
  }
  weir_edge_t x_shape = array_grad_shape(g, x, weir_grad_dtype(g, target));
  weir_edge_t axes =
      weir_build_output(weir_grad_node(g, "BroadcastGradientArgs", WEIR_EDGES(target, x_shape)), 1);
  dy = weir_grad_node_with(g, "Sum", WEIR_EDGES(dy, axes), keep);
  return weir_grad_set(g, 0, weir_grad_node(g, "Reshape", WEIR_EDGES(dy, x_shape)));
}

// ---- BroadcastArgs, BroadcastGradientArgs ----

static weir_status_t* args_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = NULL;
  const weir_shape_t* b = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, &a));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &b));
  int64_t x = weir_shape_dim(a, 0), y = weir_shape_dim(b, 0);
  return weir_shape_set_vector(ctx, 0, x < 0 || y < 0 ? -1 : WEIR_MAX(x, y));
}

static weir_status_t* gradient_args_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, -1));
  return weir_shape_set_vector(ctx, 1, -1);
}

// Two shapes aligned at their ends, the shorter filled up with ones.
typedef struct pair_t {
  int rank;
  int64_t a[WEIR_MAX_RANK];
  int64_t b[WEIR_MAX_RANK];
  bool is_equal;  // as given
} pair_t;

static weir_status_t* read_pair(const weir_kernel_ctx_t* ctx, pair_t* pair) {
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const weir_tensor_t* b = weir_kernel_input(ctx, 1);
  char at[WEIR_SHAPE_TEXT_SIZE], bt[WEIR_SHAPE_TEXT_SIZE];
  if (a->rank != 1 || b->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "In[%d] must be a vector. %s", a->rank != 1 ? 0 : 1,
                       weir_tensor_shape_text(a->rank != 1 ? a : b, at));
  }
  if (a->count > WEIR_MAX_RANK || b->count > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shapes have more than %d dimensions", WEIR_MAX_RANK);
  }
  pair->rank = (int)WEIR_MAX(a->count, b->count);
  pair->is_equal = a->count == b->count;
  for (int i = 0; i < pair->rank; ++i) {
    int64_t ka = i - (pair->rank - a->count), kb = i - (pair->rank - b->count);
    pair->a[i] = ka < 0 ? 1 : weir_tensor_int_at(a, ka);
    pair->b[i] = kb < 0 ? 1 : weir_tensor_int_at(b, kb);
    if (pair->a[i] != pair->b[i]) pair->is_equal = false;
  }
  for (int i = 0; i < pair->rank; ++i) {
    if (pair->a[i] != pair->b[i] && pair->a[i] != 1 && pair->b[i] != 1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                         weir_shape_text(pair->rank, pair->a, at),
                         weir_shape_text(pair->rank, pair->b, bt));
    }
  }
  return NULL;
}

static weir_status_t* set_ints(weir_kernel_ctx_t* ctx, int output, int64_t count,
                               const int64_t* values) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, output, 1, &count, &out));
  for (int64_t i = 0; i < count; ++i) weir_move_set_int(out, i, values[i]);
  return NULL;
}

static weir_status_t* args_cpu(weir_kernel_ctx_t* ctx) {
  pair_t pair;
  WEIR_TRY(read_pair(ctx, &pair));
  for (int i = 0; i < pair.rank; ++i) {
    if (pair.a[i] == 1) pair.a[i] = pair.b[i];
  }
  return set_ints(ctx, 0, pair.rank, pair.a);
}

// Dimensions where one side has size 1 are summed up, also where both have, unless the shapes are
// equal.
static weir_status_t* gradient_args_cpu(weir_kernel_ctx_t* ctx) {
  pair_t pair;
  int64_t a[WEIR_MAX_RANK], b[WEIR_MAX_RANK];
  int a_count = 0, b_count = 0;
  WEIR_TRY(read_pair(ctx, &pair));
  for (int i = 0; i < pair.rank && !pair.is_equal; ++i) {
    if (pair.a[i] == 1) a[a_count++] = i;
    if (pair.b[i] == 1) b[b_count++] = i;
  }
  WEIR_TRY(set_ints(ctx, 0, a_count, a));
  return set_ints(ctx, 1, b_count, b);
}

const weir_op_module_t weir_ops_array_broadcast = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "BroadcastTo",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; Tidx: {int32, int64} = DT_INT32",
         .inputs = "input: T; shape: Tidx",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Repeats a tensor so that it has a given shape.",
         .infer_shape = broadcast_to_shape,
         .build_grad = broadcast_to_grad,
         .simplify = array_simplify_same,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", broadcast_to, "input, shape", "output",
                                           .host_inputs = "shape")},
        {.name = "BroadcastArgs",
         .attrs = "T: {int32, int64} = DT_INT32",
         .inputs = "s0: T; s1: T",
         .outputs = "r0: T",
         .flags = WEIR_OP_CHEAP,
         .summary = "Returns the shape that two shapes broadcast to.",
         .infer_shape = args_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = args_cpu, .host_inputs = "s0, s1",
                                         .host_outputs = "r0")},
        {.name = "BroadcastGradientArgs",
         .attrs = "T: {int32, int64} = DT_INT32",
         .inputs = "s0: T; s1: T",
         .outputs = "r0: T; r1: T",
         .flags = WEIR_OP_CHEAP | WEIR_OP_NO_GRADIENT,
         .summary = "Returns the axes along which the gradients of a broadcast are summed.",
         .infer_shape = gradient_args_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = gradient_args_cpu, .host_inputs = "s0, s1",
                                         .host_outputs = "r0, r1")},
        {0}}};
