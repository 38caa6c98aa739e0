// pack.c — Pack and Unpack: stacking tensors along a new axis, and taking them apart.
#include "ops/array/common.h"

// ---- Pack ----

// Scalars packed into a vector are how graphs build shapes: each may be known by itself.
static weir_status_t* pack_value(weir_shape_ctx_t* ctx) {
  int count = ctx->node->input_count;
  int64_t values[WEIR_MAX_RANK];
  if (count > WEIR_MAX_RANK || !array_is_index_type(weir_dtype_base(ctx->node->input_types[0])))
    return NULL;
  for (int i = 0; i < count; ++i) {
    array_ints_t ints;
    array_input_ints(ctx, i, &ints);
    values[i] = ints.is_known && ints.count == 1 ? ints.values[0] : -1;
  }
  return array_set_value(ctx, 0, count, values);
}

static weir_status_t* pack_shape(weir_shape_ctx_t* ctx) {
  int count = ctx->node->input_count;
  const weir_shape_t* cell = weir_shape_input(ctx, count - 1);
  for (int i = count - 2; i >= 0; --i) {
    weir_status_t* status = weir_shape_join(ctx, weir_shape_input(ctx, i), cell, &cell);
    if (status) return weir_status_prefix(status, "From merging shape %d with other shapes.: ", i);
  }
  if (cell->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  int axis = 0;
  WEIR_TRY(array_axis(weir_attrs_int(weir_shape_attrs(ctx), "axis"), cell->rank + 1, &axis));
  int64_t dims[WEIR_MAX_RANK + 1];
  for (int i = 0; i <= cell->rank; ++i)
    dims[i] = i < axis ? cell->dims[i] : i == axis ? count : cell->dims[i - 1];
  WEIR_TRY(weir_shape_set_dims(ctx, 0, cell->rank + 1, dims));
  return cell->rank == 0 ? pack_value(ctx) : NULL;
}

static weir_status_t* check_cells(const weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* first = weir_kernel_input(ctx, 0);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 1; i < ctx->input_count; ++i) {
    const weir_tensor_t* other = weir_kernel_input(ctx, i);
    if (!weir_tensor_same_shape(first, other)) {
      return WEIR_STATUS(
          INVALID_ARGUMENT,
          "Shapes of all inputs must match: values[0].shape = %s != values[%d].shape = %s",
          weir_tensor_shape_text(first, a), i, weir_tensor_shape_text(other, b));
    }
  }
  return NULL;
}

static weir_status_t* pack(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* first = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(first);
  int64_t dims[WEIR_MAX_RANK + 1];
  int axis = 0;
  WEIR_TRY(array_axis(weir_attrs_int(weir_kernel_attrs(ctx), "axis"), first->rank + 1, &axis));
  WEIR_TRY(check_cells(ctx));
  int64_t inner = 1;
  for (int i = 0; i <= first->rank; ++i) {
    dims[i] = i < axis ? first->dims[i] : i == axis ? ctx->input_count : first->dims[i - 1];
    if (i > axis) inner *= dims[i];
  }
  weir_tensor_t* out = NULL;
  if (ctx->input_count == 1) {
    WEIR_TRY(weir_tensor_reshape(ctx->inputs[0].tensor, first->rank + 1, dims, &out));
    weir_kernel_set(ctx, 0, out);
    return NULL;
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, first->rank + 1, dims, &out));
  if (out->count == 0) return NULL;
  weir_kernel_parts_t parts = {.ctx = ctx,
                               .dtype = dtype,
                               .rows = first->count / inner,
                               .columns = inner * ctx->input_count,
                               .whole = (uintptr_t)out->data};
  for (int i = 0; i < ctx->input_count; ++i)
    WEIR_TRY(weir_kernel_join_part(&parts, weir_kernel_input(ctx, i)->data, inner));
  return weir_kernel_finish_parts(&parts);
}

static weir_status_t* pack_grad(weir_grad_ctx_t* g) {  // the pieces of dy
  int64_t count = g->node->input_count;
  weir_edge_t parts = weir_grad_node_with(
      g, "Unpack", WEIR_EDGES(weir_grad_dy(g, 0)),
      WEIR_ATTRS(weir_attr_int("num", count),
                 weir_attr_int("axis", weir_attrs_int(weir_grad_attrs(g), "axis"))));
  for (int i = 0; i < count; ++i) WEIR_TRY(weir_grad_set(g, i, weir_build_output(parts, i)));
  return NULL;
}

// ---- Unpack ----

static weir_status_t* unpack_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  int64_t num = weir_attrs_int(weir_shape_attrs(ctx), "num");
  if (in->rank < 0) return NULL;
  int axis = 0;
  WEIR_TRY(array_axis(weir_attrs_int(weir_shape_attrs(ctx), "axis"), in->rank, &axis));
  if (in->dims[axis] >= 0 && in->dims[axis] != num) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Dimension must be %lld but is %lld", (long long)num,
                       (long long)in->dims[axis]);
  }
  int64_t dims[WEIR_MAX_RANK];
  for (int i = 0; i + 1 < in->rank; ++i) dims[i] = in->dims[i < axis ? i : i + 1];
  array_ints_t ints = {.is_known = false};
  if (in->rank == 1 && array_is_index_type(weir_dtype_base(ctx->node->input_types[0]))) {
    array_input_ints(ctx, 0, &ints);
  }
  for (int i = 0; i < num; ++i) {
    WEIR_TRY(weir_shape_set_dims(ctx, i, in->rank - 1, dims));
    if (ints.is_known && i < ints.count) WEIR_TRY(array_set_value(ctx, i, 1, &ints.values[i]));
  }
  return NULL;
}

static weir_status_t* unpack_view(weir_kernel_ctx_t* ctx, int i) {
  weir_tensor_t* in = ctx->inputs[0].tensor;
  weir_tensor_t* row = NULL;
  weir_tensor_t* view = NULL;
  WEIR_TRY(weir_tensor_slice(in, i, i + 1, &row));
  weir_status_t* status = weir_tensor_reshape(row, in->rank - 1, in->dims + 1, &view);
  weir_tensor_release(row);
  if (!status) weir_kernel_set(ctx, i, view);
  return status;
}

static weir_status_t* unpack(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(in);
  int64_t num = ctx->output_count;
  char text[WEIR_SHAPE_TEXT_SIZE];
  int axis = 0;
  WEIR_TRY(array_axis(weir_attrs_int(weir_kernel_attrs(ctx), "axis"), in->rank, &axis));
  if (in->dims[axis] != num) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input shape axis %d must equal %lld, got shape %s", axis,
                       (long long)num, weir_tensor_shape_text(in, text));
  }
  int64_t dims[WEIR_MAX_RANK];
  int64_t inner = 1;
  for (int i = 0; i < in->rank; ++i) {
    if (i != axis) dims[i < axis ? i : i - 1] = in->dims[i];
    if (i > axis) inner *= in->dims[i];
  }
  bool is_whole = num == 1;  // which TensorFlow copies all the same
  bool as_views =
      axis == 0 && array_rows_are_view(in, 0, 1) && !(is_whole && weir_tensor_is_variable(in));
  weir_kernel_parts_t parts = {.ctx = ctx,
                               .dtype = dtype,
                               .is_cut = true,
                               .rows = in->count ? in->count / (inner * num) : 0,
                               .columns = inner * num,
                               .whole = (uintptr_t)in->data};
  for (int i = 0; i < num; ++i) {
    weir_tensor_t* out = NULL;
    if (as_views) {
      WEIR_TRY(unpack_view(ctx, i));
      continue;
    }
    WEIR_TRY(weir_kernel_output(ctx, i, in->rank - 1, dims, &out));
    WEIR_TRY(weir_kernel_cut_part(&parts, out->data, inner));
  }
  return weir_kernel_finish_parts(&parts);
}

static weir_status_t* unpack_grad(weir_grad_ctx_t* g) {  // Pack(dys)
  int count = g->node->output_count;
  weir_edge_t* parts = weir_alloc_array((size_t)count, sizeof(*parts));
  if (!parts) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) parts[i] = weir_grad_dy(g, i);
  weir_edge_t dx = weir_grad_node_with(
      g, "Pack", (weir_edges_t){parts, count},
      WEIR_ATTRS(weir_attr_int("axis", weir_attrs_int(weir_grad_attrs(g), "axis"))));
  weir_free(parts);
  return weir_grad_set(g, 0, dx);
}

const weir_op_module_t weir_ops_array_pack = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Pack",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "N: int >= 1; T: type; axis: int = 0",
         .inputs = "values: N * T",
         .outputs = "output: T",
         .flags = WEIR_OP_VIEW,
         .summary = "Stacks tensors of one shape along a new axis.",
         .infer_shape = pack_shape,
         .build_grad = pack_grad,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", pack, "values", "output", .host_inputs = NULL)},
        {.name = "Unpack",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "num: int >= 0; T: type; axis: int = 0",
         .inputs = "value: T",
         .outputs = "output: num * T",
         .flags = WEIR_OP_VIEW,
         .summary = "Takes a tensor apart along an axis, which disappears.",
         .infer_shape = unpack_shape,
         .build_grad = unpack_grad,
         .kernels = WEIR_MOVE_HOST_KERNELS("T", unpack, "value", "output", .host_inputs = NULL)},
        {0}}};
