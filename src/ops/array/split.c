// split.c — Split and SplitV: cutting a tensor along an axis.
#include "ops/array/common.h"

// ---- shapes ----

// The axis where it is constant; -1 when it is not known.
static weir_status_t* known_axis(weir_shape_ctx_t* ctx, int input, const weir_shape_t* in,
                                 int* out_axis) {
  array_ints_t ints;
  *out_axis = -1;
  array_input_ints(ctx, input, &ints);
  if (!ints.is_exact || ints.count != 1 || in->rank < 0) return NULL;
  int64_t axis = ints.values[0];
  if (axis < -in->rank || axis >= in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Dimension size, given by scalar input %lld must be in range [%d, %d)",
                       (long long)axis, -in->rank, in->rank);
  }
  *out_axis = (int)(axis < 0 ? axis + in->rank : axis);
  return NULL;
}

static weir_status_t* set_unknown_parts(weir_shape_ctx_t* ctx, const weir_shape_t* in) {
  int64_t dims[WEIR_MAX_RANK];
  if (in->rank < 0) return NULL;
  for (int i = 0; i < in->rank; ++i) dims[i] = -1;
  for (int i = 0; i < ctx->node->output_count; ++i)
    WEIR_TRY(weir_shape_set_dims(ctx, i, in->rank, dims));
  return NULL;
}

static weir_status_t* split_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 1);
  int64_t num = ctx->node->output_count;
  int axis = 0;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  WEIR_TRY(known_axis(ctx, 0, in, &axis));
  if (axis < 0) return set_unknown_parts(ctx, in);
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i < in->rank; ++i) dims[i] = in->dims[i];
  if (dims[axis] >= 0) {
    if (dims[axis] % num != 0) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Dimension size must be evenly divisible by %lld but is %lld\n\tNumber of "
                         "ways to split should evenly divide the split dimension",
                         (long long)num, (long long)dims[axis]);
    }
    dims[axis] /= num;
  }
  for (int i = 0; i < num; ++i) WEIR_TRY(weir_shape_set_dims(ctx, i, in->rank, dims));
  return NULL;
}

static weir_status_t* misfit(int64_t total, int64_t count, const int64_t* sizes) {
  weir_strbuf_t pieces = {0};
  for (int64_t i = 0; i < count; ++i)
    weir_strbuf_printf(&pieces, "%s%lld", i == 0 ? "" : ",", (long long)sizes[i]);
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT, "can't split axis of size %lld into pieces of size [%s]",
                  (long long)total, pieces.data ? pieces.data : "");
  weir_strbuf_free(&pieces);
  return status;
}

// Resolves the one size that may be -1; -1 stays where |total| is not known. Shape functions name
// all sizes where they do not fit, kernels their sum, as TensorFlow's do.
static weir_status_t* resolve_sizes(int64_t total, int64_t count, bool is_kernel, int64_t* sizes) {
  int64_t sum = 0;
  int64_t missing = -1;
  for (int64_t i = 0; i < count; ++i) {
    if (sizes[i] == -1) {
      if (missing >= 0)
        return WEIR_STATUS(INVALID_ARGUMENT, "There can only be one -1 in the input.");
      missing = i;
    } else if (sizes[i] < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Split size at index %lld must be >= 0. Got: %lld",
                         (long long)i, (long long)sizes[i]);
    } else if (__builtin_add_overflow(sum, sizes[i], &sum)) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Sum of split sizes is too large");
    }
  }
  if (total < 0) return NULL;
  if (missing < 0 ? sum != total : sum > total) {
    if (!is_kernel) return misfit(total, count, sizes);
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Determined shape must either match input shape along split_dim exactly if fully "
        "specified, or "
        "be less than the size of the input along split_dim if not fully specified.  Got: %lld",
        (long long)sum);
  }
  if (missing >= 0) sizes[missing] = total - sum;
  return NULL;
}

static weir_status_t* set_parts(weir_shape_ctx_t* ctx, const weir_shape_t* in, int axis,
                                const weir_tensor_t* sizes_value) {
  int64_t count = ctx->node->output_count;
  int64_t dims[WEIR_MAX_RANK];
  int64_t* sizes = weir_arena_array(ctx->arena, (size_t)count, sizeof(*sizes));
  if (!sizes) return weir_out_of_memory();
  if (sizes_value && sizes_value->count != count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Length of size_splits should be equal to num_outputs");
  }
  for (int64_t i = 0; i < count; ++i)
    sizes[i] = sizes_value ? weir_move_int_at(sizes_value, i) : -1;
  if (sizes_value) WEIR_TRY(resolve_sizes(in->dims[axis], count, false, sizes));
  for (int i = 0; i < in->rank; ++i) dims[i] = in->dims[i];
  for (int i = 0; i < count; ++i) {
    dims[axis] = sizes[i];
    WEIR_TRY(weir_shape_set_dims(ctx, i, in->rank, dims));
  }
  return NULL;
}

static weir_status_t* split_v_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  int axis = 0;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  const weir_tensor_t* sizes = weir_shape_value(ctx, 1);
  if (sizes && sizes->count != ctx->node->output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Length of size_splits should be equal to num_outputs");
  }
  WEIR_TRY(known_axis(ctx, 2, in, &axis));
  if (axis < 0) return set_unknown_parts(ctx, in);
  return set_parts(ctx, in, axis, sizes);
}

// ---- kernels ----

static weir_status_t* split_axis(const weir_tensor_t* dim, const weir_tensor_t* in, int* out_axis) {
  if (dim->rank > 1 || dim->count != 1) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "split_dim_tensor must have exactly one element. Its shape is %s",
                       weir_tensor_shape_text(dim, shape));
  }
  int64_t axis = weir_tensor_int_at(dim, 0);
  if (axis < -in->rank || axis >= in->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "-input rank(-%d) <= split_dim < input rank (%d), but got %lld", in->rank,
                       in->rank, (long long)axis);
  }
  *out_axis = (int)(axis < 0 ? axis + in->rank : axis);
  return NULL;
}

// Along the first dimension each part is a run of memory.
static bool are_views(const weir_tensor_t* in, const int64_t* sizes, int count) {
  int64_t begin = 0;
  for (int i = 0; i < count; ++i) {
    if (!array_rows_are_view(in, begin, sizes[i])) return false;
    begin += sizes[i];
  }
  return true;
}

static weir_status_t* cut_views(weir_kernel_ctx_t* ctx, weir_tensor_t* in, const int64_t* sizes) {
  int64_t begin = 0;
  for (int i = 0; i < ctx->output_count; ++i) {
    weir_tensor_t* part = NULL;
    WEIR_TRY(weir_tensor_slice(in, begin, begin + sizes[i], &part));
    weir_kernel_set(ctx, i, part);
    begin += sizes[i];
  }
  return NULL;
}

static weir_status_t* cut(weir_kernel_ctx_t* ctx, int input, int axis, const int64_t* sizes) {
  const weir_tensor_t* in = weir_kernel_input(ctx, input);
  const weir_dtype_t dtype = weir_tensor_type(in);
  int64_t dims[WEIR_MAX_RANK];
  int64_t outer = 1, inner = 1;
  if (ctx->output_count == 1) {
    weir_kernel_pass(ctx, input, 0);
    return NULL;
  }
  for (int i = 0; i < in->rank; ++i) {
    dims[i] = in->dims[i];
    if (i < axis) outer *= dims[i];
    if (i > axis) inner *= dims[i];
  }
  // Of a variable that is a vector Split, unlike SplitV, gives copies in TensorFlow.
  bool is_copied = input == 1 && in->rank == 1 && weir_tensor_is_variable(in);
  if (axis == 0 && !is_copied && are_views(in, sizes, ctx->output_count))
    return cut_views(ctx, ctx->inputs[input].tensor, sizes);
  weir_kernel_parts_t parts = {.ctx = ctx,
                               .dtype = dtype,
                               .is_cut = true,
                               .rows = outer,
                               .columns = in->dims[axis] * inner,
                               .whole = (uintptr_t)in->data};
  for (int i = 0; i < ctx->output_count; ++i) {
    weir_tensor_t* out = NULL;
    dims[axis] = sizes[i];
    WEIR_TRY(weir_kernel_output(ctx, i, in->rank, dims, &out));
    WEIR_TRY(weir_kernel_cut_part(&parts, out->data, sizes[i] * inner));
  }
  return weir_kernel_finish_parts(&parts);
}

static weir_status_t* split(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 1);
  int64_t num = ctx->output_count;
  int axis = 0;
  if (weir_kernel_input(ctx, 0)->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "split_dim must be a scalar but has rank %d",
                       weir_kernel_input(ctx, 0)->rank);
  }
  WEIR_TRY(split_axis(weir_kernel_input(ctx, 0), in, &axis));
  if (in->dims[axis] % num != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of ways to split should evenly divide the split dimension, but got "
                       "split_dim %d (size = "
                       "%lld) and num_split %lld",
                       axis, (long long)in->dims[axis], (long long)num);
  }
  int64_t* sizes = weir_alloc_array((size_t)num, sizeof(*sizes));
  if (!sizes) return weir_out_of_memory();
  for (int64_t i = 0; i < num; ++i) sizes[i] = in->dims[axis] / num;
  weir_status_t* status = cut(ctx, 1, axis, sizes);
  weir_free(sizes);
  return status;
}

static weir_status_t* split_v(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_tensor_t* sizes_input = weir_kernel_input(ctx, 1);
  int64_t num = ctx->output_count;
  int axis = 0;
  if (sizes_input->rank != 1 || sizes_input->count != num) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "size of the split_tensor must be 1-D and have the same elements as outputs "
                       "got %d-D and %lld "
                       "elements",
                       sizes_input->rank, (long long)sizes_input->count);
  }
  WEIR_TRY(split_axis(weir_kernel_input(ctx, 2), in, &axis));
  int64_t* sizes = weir_alloc_array((size_t)num, sizeof(*sizes));
  if (!sizes) return weir_out_of_memory();
  for (int64_t i = 0; i < num; ++i) sizes[i] = weir_move_int_at(sizes_input, i);
  weir_status_t* status = resolve_sizes(in->dims[axis], num, true, sizes);
  if (!status) status = cut(ctx, 0, axis, sizes);
  weir_free(sizes);
  return status;
}

// ---- gradient: the parts joined again ----

static weir_status_t* join_grad(weir_grad_ctx_t* g, int input, int axis_input) {
  int count = g->node->output_count;
  if (count == 1) return weir_grad_set(g, input, weir_grad_dy(g, 0));
  weir_edge_t* parts = weir_alloc_array((size_t)count + 1, sizeof(*parts));
  if (!parts) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) parts[i] = weir_grad_dy(g, i);
  parts[count] = weir_grad_input(g, axis_input);
  weir_edge_t dx = weir_grad_node(g, "ConcatV2", (weir_edges_t){parts, count + 1});
  weir_free(parts);
  return weir_grad_set(g, input, dx);
}

static weir_status_t* split_grad(weir_grad_ctx_t* g) { return join_grad(g, 1, 0); }
static weir_status_t* split_v_grad(weir_grad_ctx_t* g) { return join_grad(g, 0, 2); }

const weir_op_module_t weir_ops_array_split = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Split",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "num_split: int >= 1; T: type",
         .inputs = "split_dim: int32; value: T",
         .outputs = "output: num_split * T",
         .flags = WEIR_OP_VIEW,
         .summary = "Cuts a tensor into equal parts along a dimension.",
         .infer_shape = split_shape,
         .build_grad = split_grad,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", split, "split_dim, value", "output",
                                           .host_inputs = "split_dim")},
        {.name = "SplitV",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "num_split: int >= 1; T: type; Tlen: {int8, int32, int64} = DT_INT64",
         .inputs = "value: T; size_splits: Tlen; split_dim: int32",
         .outputs = "output: num_split * T",
         .flags = WEIR_OP_VIEW,
         .summary = "Cuts a tensor into parts of given sizes along a dimension.",
         .infer_shape = split_v_shape,
         .build_grad = split_v_grad,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", split_v, "value, size_splits, split_dim", "output",
                                           .host_inputs = "size_splits, split_dim")},
        {0}}};
