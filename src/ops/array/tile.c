// tile.c — Tile: a tensor repeated along its dimensions.
#include "ops/array/common.h"

static weir_status_t* tile_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  array_ints_t multiples;
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  array_input_ints(ctx, 1, &multiples);
  int64_t rank = weir_shape_dim(weir_shape_input(ctx, 1), 0);
  if (rank < 0 && multiples.is_known) rank = multiples.count;
  if (in->rank >= 0) {
    if (rank >= 0 && rank != in->rank) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be rank %lld but is rank %d",
                         (long long)rank, in->rank);
    }
    rank = in->rank;
  }
  if (rank < 0 || rank > WEIR_MAX_RANK) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  for (int i = 0; i < rank; ++i) {
    int64_t multiple = multiples.is_known ? multiples.values[i] : -1;
    if (multiples.is_exact && multiple < -1) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Invalid value in tensor used for shape: %lld",
                         (long long)multiple);
    }
    if (multiples.is_exact && multiple < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected multiples[%d] >= 0, but got %lld", i,
                         (long long)multiple);
    }
    dims[i] = -1;
    if (in->rank < 0 || in->dims[i] < 0 || multiple < 0) continue;
    if (__builtin_mul_overflow(in->dims[i], multiple, &dims[i])) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Negative dimension size caused by overflow when multiplying %lld and "
                         "%lld",
                         (long long)in->dims[i], (long long)multiple);
    }
  }
  return weir_shape_set_dims(ctx, 0, (int)rank, dims);
}

static weir_status_t* check_multiples(const weir_tensor_t* in, const weir_tensor_t* multiples) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (multiples->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected multiples to be 1-D, but got shape %s",
                       weir_tensor_shape_text(multiples, text));
  }
  if (multiples->count != in->rank) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Expected multiples argument to be a vector of length %d but got length %lld", in->rank,
        (long long)multiples->count);
  }
  for (int i = 0; i < in->rank; ++i) {
    if (weir_tensor_int_at(multiples, i) < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Expected multiples[%d] >= 0, but got %lld", i,
                         (long long)weir_tensor_int_at(multiples, i));
    }
  }
  return NULL;
}

static weir_status_t* tile(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* multiples = weir_kernel_input(ctx, 1);
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(check_multiples(in, multiples));
  bool is_same = true;
  for (int i = 0; i < in->rank; ++i) {
    int64_t multiple = weir_tensor_int_at(multiples, i);
    if (__builtin_mul_overflow(in->dims[i], multiple, &dims[i])) {
      WEIR_TRY(weir_shape_check_sizes(i + 1, dims));  // TensorFlow's words, of what is left of it
      return WEIR_STATUS(INVALID_ARGUMENT, "multiples[%d] = %lld makes the output too large", i,
                         (long long)multiple);
    }
    is_same = is_same && multiple == 1;
  }
  if (is_same) {
    weir_kernel_pass(ctx, 0, 0);
    return NULL;
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, dims, &out));
  if (out->count == 0) return NULL;
  weir_move_dim_t box[2 * WEIR_MAX_RANK];  // each dimension as (copies, size)
  int64_t stride = 1;
  for (int i = in->rank - 1; i >= 0; --i) {
    box[2 * i] = (weir_move_dim_t){.size = weir_tensor_int_at(multiples, i), .src_stride = 0};
    box[2 * i + 1] = (weir_move_dim_t){.size = in->dims[i], .src_stride = stride};
    stride *= in->dims[i];
  }
  weir_move_contiguous_dst(2 * in->rank, box);
  return weir_kernel_move_box(ctx, weir_tensor_type(in), 2 * in->rank, box, in->data, out->data);
}

// ---- gradient: dy reshaped to (copies, size) pairs and summed over the copies ----

// The interleaved vector multiples[0], shape[0], multiples[1], … where it is not constant.
static weir_edge_t dynamic_pairs(weir_grad_ctx_t* g, weir_edge_t multiples) {
  const int64_t flat[] = {-1};
  weir_edge_t shape = array_grad_shape(g, weir_grad_input(g, 0), weir_grad_dtype(g, multiples));
  weir_edge_t pairs = weir_grad_node_with(g, "Pack", WEIR_EDGES(multiples, shape),
                                          WEIR_ATTRS(weir_attr_int("axis", 1)));
  return weir_grad_node(g, "Reshape",
                        WEIR_EDGES(pairs, array_grad_ints(g, WEIR_DTYPE_INT32, flat, 1)));
}

static weir_edge_t pair_axes(weir_grad_ctx_t* g, weir_edge_t pairs, int rank) {
  if (rank < 0) {
    weir_edge_t count = weir_grad_node(g, "Size", WEIR_EDGES(pairs));
    return weir_grad_node(
        g, "Range",
        WEIR_EDGES(weir_build_int32(g->builder, 0), count, weir_build_int32(g->builder, 2)));
  }
  int64_t axes[WEIR_MAX_RANK];
  for (int i = 0; i < rank; ++i) axes[i] = 2 * i;
  return array_grad_ints(g, WEIR_DTYPE_INT32, axes, rank);
}

static weir_status_t* tile_grad(weir_grad_ctx_t* g) {
  weir_edge_t multiples = weir_grad_input(g, 1);
  const weir_shape_t* x = weir_grad_shape(g, weir_grad_input(g, 0));
  const weir_tensor_t* value = array_grad_constant(g, multiples);
  weir_edge_t pairs;
  if (weir_shape_is_full(x) && value && value->count == x->rank) {
    int64_t dims[2 * WEIR_MAX_RANK];
    for (int i = 0; i < x->rank; ++i) {
      dims[2 * i] = weir_tensor_int_at(value, i);
      dims[2 * i + 1] = x->dims[i];
    }
    pairs = array_grad_ints(g, WEIR_DTYPE_INT32, dims, 2 * x->rank);
  } else {
    pairs = dynamic_pairs(g, multiples);
  }
  weir_edge_t split = weir_grad_node(g, "Reshape", WEIR_EDGES(weir_grad_dy(g, 0), pairs));
  return weir_grad_set(g, 0,
                       weir_grad_node(g, "Sum", WEIR_EDGES(split, pair_axes(g, pairs, x->rank))));
}

const weir_op_module_t weir_ops_array_tile = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Tile",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "T: type; Tmultiples: {int32, int64} = DT_INT32",
         .inputs = "input: T; multiples: Tmultiples",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Repeats a tensor along its dimensions.",
         .infer_shape = tile_shape,
         .build_grad = tile_grad,
         .simplify = array_simplify_same,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", tile, "input, multiples", "output",
                                           .host_inputs = "multiples")},
        {0}}};
