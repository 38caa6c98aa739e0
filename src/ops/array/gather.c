// gather.c — Gather and GatherV2: rows of a tensor by index.
#include "ops/array/common.h"

// ---- shapes ----

static weir_status_t* gather_shape(weir_shape_ctx_t* ctx) {  // indices.shape + params.shape[1:]
  const weir_shape_t* params = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_least(ctx, params, 1));
  const weir_shape_t* tail = weir_shape_sub(ctx, params, 1, params->rank);
  if (!tail) return weir_out_of_memory();
  return weir_shape_set(ctx, 0, weir_shape_concat(ctx, weir_shape_input(ctx, 1), tail));
}

// The gather of one number out of a shape vector.
static weir_status_t* gather_value(weir_shape_ctx_t* ctx) {
  array_ints_t params, index;
  if (!array_is_index_type(weir_dtype_base(ctx->node->input_types[0]))) return NULL;
  array_input_ints(ctx, 0, &params);
  array_input_ints(ctx, 1, &index);
  if (!params.is_known || !index.is_exact) return NULL;
  int64_t values[WEIR_MAX_RANK];
  for (int i = 0; i < index.count; ++i) {
    if (index.values[i] < 0 || index.values[i] >= params.count) return NULL;
    values[i] = params.values[index.values[i]];
  }
  return array_set_value(ctx, 0, index.count, values);
}

static weir_status_t* check_axis(int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return NULL;
  const uint64_t needed = axis < 0 ? -(uint64_t)axis : (uint64_t)axis + 1;
  return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be at least rank %llu but is rank %d",
                     (unsigned long long)needed, rank);
}

static weir_status_t* join_batch(weir_shape_ctx_t* ctx, const weir_shape_t* params,
                                 const weir_shape_t* indices, int batch_dims, int64_t* dims) {
  for (int i = 0; i < batch_dims; ++i)
    WEIR_TRY(weir_dim_join(ctx, params->dims[i], indices->dims[i], &dims[i]));
  return NULL;
}

static weir_status_t* gather_v2_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* params = weir_shape_input(ctx, 0);
  const weir_shape_t* indices = weir_shape_input(ctx, 1);
  int64_t batch_dims = weir_attrs_int(weir_shape_attrs(ctx), "batch_dims");
  array_ints_t axis_ints;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  WEIR_TRY(weir_shape_at_least(ctx, params, 1));
  array_input_ints(ctx, 2, &axis_ints);
  if (params->rank < 0 || indices->rank < 0) return weir_shape_set(ctx, 0, &weir_shape_unknown);
  if (batch_dims < 0) batch_dims += indices->rank;
  if (batch_dims < 0 || batch_dims > indices->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "batch_dims must be in [-%d, %d]", indices->rank,
                       indices->rank);
  }
  int64_t dims[2 * WEIR_MAX_RANK];
  int rank = params->rank - 1 + indices->rank - (int)batch_dims;
  if (rank > WEIR_MAX_RANK || rank < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Gather result has rank %d", rank);
  if (!axis_ints.is_exact || axis_ints.count != 1) {
    for (int i = 0; i < rank; ++i) dims[i] = -1;
    return weir_shape_set_dims(ctx, 0, rank, dims);
  }
  int64_t axis = axis_ints.values[0];
  WEIR_TRY(check_axis(axis, params->rank));
  if (axis < 0) axis += params->rank;
  if (batch_dims > axis) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "batch_dims (%lld) must be less than or equal to axis (%lld)",
                       (long long)batch_dims, (long long)axis);
  }
  WEIR_TRY(join_batch(ctx, params, indices, (int)batch_dims, dims));
  int n = (int)batch_dims;
  for (int64_t i = batch_dims; i < axis; ++i) dims[n++] = params->dims[i];
  for (int64_t i = batch_dims; i < indices->rank; ++i) dims[n++] = indices->dims[i];
  for (int64_t i = axis + 1; i < params->rank; ++i) dims[n++] = params->dims[i];
  WEIR_TRY(weir_shape_set_dims(ctx, 0, rank, dims));
  return params->rank == 1 && indices->rank <= 1 && batch_dims == 0 ? gather_value(ctx) : NULL;
}

// ---- kernels ----

static weir_status_t* check_batch(const weir_tensor_t* params, const weir_tensor_t* indices,
                                  int64_t axis, int64_t batch_dims) {
  if (batch_dims < 0 || batch_dims > indices->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Expected batch_dims in the range [%d, %d], but got %lld",
                       -indices->rank, indices->rank,
                       (long long)(batch_dims < 0 ? batch_dims - indices->rank : batch_dims));
  }
  if (batch_dims >= params->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "batch_dims (%lld) must be less than rank(params) (%d).",
                       (long long)batch_dims, params->rank);
  }
  if (batch_dims > axis) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "batch_dims (%lld) must be less than or equal to axis (%lld).",
                       (long long)batch_dims, (long long)axis);
  }
  for (int i = 0; i < batch_dims; ++i) {
    if (params->dims[i] != indices->dims[i]) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "params.shape[%d]: %lld should be equal to indices.shape[%d]: %lld", i,
                         (long long)params->dims[i], i, (long long)indices->dims[i]);
    }
  }
  return NULL;
}

static weir_status_t* gather(weir_kernel_ctx_t* ctx, int64_t axis, int64_t batch_dims) {
  const weir_tensor_t* params = weir_kernel_input(ctx, 0);
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  int64_t dims[2 * WEIR_MAX_RANK];
  int rank = 0;
  weir_move_gather_t g = {
      .batch = 1, .outer = 1, .rows = params->dims[axis], .index_count = 1, .inner = 1};
  for (int64_t i = 0; i < axis; ++i) {
    dims[rank++] = params->dims[i];
    if (i < batch_dims) g.batch *= params->dims[i];
    if (i >= batch_dims) g.outer *= params->dims[i];
  }
  for (int64_t i = batch_dims; i < indices->rank; ++i) {
    dims[rank++] = indices->dims[i];
    g.index_count *= indices->dims[i];
  }
  for (int64_t i = axis + 1; i < params->rank; ++i) {
    dims[rank++] = params->dims[i];
    g.inner *= params->dims[i];
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  if (out->count == 0) return NULL;  // nothing is read, so no index is wrong
  int64_t bad = -1;
  WEIR_TRY(weir_kernel_move_gather(ctx, weir_tensor_type(params), &g, params->data, indices,
                                   out->data, &bad));
  if (bad < 0) return NULL;
  char place[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "indices%s = %lld is not in [0, %lld)",
                     array_place_text(indices, bad, place),
                     (long long)weir_move_int_at(indices, bad), (long long)g.rows);
}

static weir_status_t* check_params(const weir_tensor_t* params) {
  if (params->rank >= 1) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "params must be at least 1 dimensional");
}

static weir_status_t* gather_rows(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_params(weir_kernel_input(ctx, 0)));
  return gather(ctx, 0, 0);
}

static weir_status_t* gather_v2(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* params = weir_kernel_input(ctx, 0);
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  const weir_tensor_t* axis_input = weir_kernel_input(ctx, 2);
  WEIR_TRY(check_params(params));
  if (axis_input->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "axis must be scalar");
  int64_t axis = weir_tensor_int_at(axis_input, 0);
  WEIR_TRY(check_axis(axis, params->rank));
  if (axis < 0) axis += params->rank;
  int64_t batch_dims = weir_attrs_int(weir_kernel_attrs(ctx), "batch_dims");
  if (batch_dims < 0) batch_dims += indices->rank;
  WEIR_TRY(check_batch(params, indices, axis, batch_dims));
  return gather(ctx, axis, batch_dims);
}

// ---- gradients ----

// Rows of dy for the flattened indices, as the sparse gradient of params.
static weir_status_t* rows_grad(weir_grad_ctx_t* g) {
  const int64_t flat[] = {-1};
  weir_edge_t params = weir_grad_input(g, 0);
  weir_edge_t indices = weir_grad_input(g, 1);
  weir_edge_t values = weir_grad_dy(g, 0);
  weir_edge_t shape = weir_grad_shape_of(g, params);
  if (weir_grad_shape(g, indices)->rank == 1)
    return weir_grad_set_slices(g, 0, values, indices, shape);
  weir_edge_t count = array_grad_vector(g, weir_grad_node(g, "Size", WEIR_EDGES(indices)));
  const weir_shape_t* p = weir_grad_shape(g, params);
  const weir_shape_t* ix = weir_grad_shape(g, indices);
  weir_edge_t values_shape;
  if (weir_shape_is_full(p) && weir_shape_is_full(ix)) {
    int64_t dims[WEIR_MAX_RANK] = {1};
    for (int i = 0; i < ix->rank; ++i) dims[0] *= ix->dims[i];
    for (int i = 1; i < p->rank; ++i) dims[i] = p->dims[i];
    values_shape = array_grad_ints(g, WEIR_DTYPE_INT32, dims, p->rank);
  } else {
    const int64_t one[] = {1};
    weir_edge_t tail =
        weir_grad_node(g, "Slice",
                       WEIR_EDGES(shape, array_grad_ints(g, WEIR_DTYPE_INT32, one, 1),
                                  array_grad_ints(g, WEIR_DTYPE_INT32, flat, 1)));
    values_shape =
        weir_grad_node(g, "ConcatV2", WEIR_EDGES(count, tail, weir_build_int32(g->builder, 0)));
  }
  values = weir_grad_node(g, "Reshape", WEIR_EDGES(values, values_shape));
  indices = weir_grad_node(g, "Reshape",
                           WEIR_EDGES(indices, array_grad_ints(g, WEIR_DTYPE_INT32, flat, 1)));
  return weir_grad_set_slices(g, 0, values, indices, shape);
}

// Dimensions [begin, end) of |shape|.
static weir_edge_t dims_at(weir_grad_ctx_t* g, weir_edge_t shape, int64_t begin, int64_t end) {
  const int64_t first[] = {begin}, size[] = {end - begin};
  const weir_tensor_t* value = array_grad_constant(g, shape);
  if (value && end <= value->count) {
    int64_t dims[WEIR_MAX_RANK];
    for (int64_t i = begin; i < end; ++i) dims[i - begin] = weir_tensor_int_at(value, i);
    return array_grad_ints(g, WEIR_DTYPE_INT32, dims, (int)(end - begin));
  }
  return weir_grad_node(g, "Slice",
                        WEIR_EDGES(shape, array_grad_ints(g, WEIR_DTYPE_INT32, first, 1),
                                   array_grad_ints(g, WEIR_DTYPE_INT32, size, 1)));
}

// The rest of |shape| from |begin| on.
static weir_edge_t dims_from(weir_grad_ctx_t* g, weir_edge_t shape, weir_edge_t begin) {
  const int64_t rest[] = {-1};
  return weir_grad_node(g, "Slice",
                        WEIR_EDGES(shape, begin, array_grad_ints(g, WEIR_DTYPE_INT32, rest, 1)));
}

static weir_edge_t join(weir_grad_ctx_t* g, weir_edge_t a, weir_edge_t b, weir_edge_t c) {
  return weir_grad_node(g, "ConcatV2", WEIR_EDGES(a, b, c, weir_build_int32(g->builder, 0)));
}

static weir_edge_t product(weir_grad_ctx_t* g, weir_edge_t dims) {
  return weir_grad_node(g, "Prod", WEIR_EDGES(dims, weir_build_int32(g->builder, 0)));
}

static weir_edge_t range(weir_grad_ctx_t* g, weir_edge_t begin, weir_edge_t end) {
  return weir_grad_node(g, "Range", WEIR_EDGES(begin, end, weir_build_int32(g->builder, 1)));
}

// How axes are moved: the gathered one behind the batch, and back.
typedef struct gather_axes_t {
  weir_edge_t outer, inner;  // dimensions of params before and after the axis
  weir_edge_t there, back;   // permutations; none when the axis is there already
} gather_axes_t;

static gather_axes_t static_axes(weir_grad_ctx_t* g, weir_edge_t shape, int axis, int batch_dims,
                                 int rank) {
  gather_axes_t axes = {.outer = dims_at(g, shape, 0, axis),
                        .inner = dims_at(g, shape, axis + 1, rank)};
  if (axis == batch_dims) return axes;
  int64_t there[WEIR_MAX_RANK], back[WEIR_MAX_RANK];
  for (int i = 0; i < rank; ++i) {
    there[i] = i == batch_dims ? axis : i > batch_dims && i <= axis ? i - 1 : i;
    back[there[i]] = i;
  }
  axes.there = array_grad_ints(g, WEIR_DTYPE_INT32, there, rank);
  axes.back = array_grad_ints(g, WEIR_DTYPE_INT32, back, rank);
  return axes;
}

// The same when axis or rank are known at run time only.
static gather_axes_t dynamic_axes(weir_grad_ctx_t* g, weir_edge_t shape, int batch_dims) {
  weir_edge_t zero = weir_build_int32(g->builder, 0), one = weir_build_int32(g->builder, 1);
  weir_edge_t rank = weir_grad_node(g, "Size", WEIR_EDGES(shape)), axis = weir_grad_input(g, 2);
  if (weir_grad_dtype(g, axis) != WEIR_DTYPE_INT32) {
    axis = weir_grad_node_with(g, "Cast", WEIR_EDGES(axis),
                               WEIR_ATTRS(weir_attr_type("DstT", WEIR_DTYPE_INT32)));
  }
  axis = weir_grad_node(g, "FloorMod", WEIR_EDGES(axis, rank));
  weir_edge_t at = array_grad_vector(g, axis), batch = weir_build_int32(g->builder, batch_dims);
  weir_edge_t after = weir_grad_node(g, "AddV2", WEIR_EDGES(axis, one));
  const int64_t first[] = {0};
  weir_edge_t start = array_grad_ints(g, WEIR_DTYPE_INT32, first, 1);
  gather_axes_t axes = {.outer = weir_grad_node(g, "Slice", WEIR_EDGES(shape, start, at)),
                        .inner = dims_from(g, shape, array_grad_vector(g, after))};
  weir_edge_t head = range(g, zero, batch);
  weir_edge_t tail =
      weir_grad_node(g, "ConcatV2", WEIR_EDGES(range(g, batch, axis), range(g, after, rank), zero));
  axes.there = join(g, head, at, tail);
  axes.back = weir_grad_node(g, "InvertPermutation", WEIR_EDGES(axes.there));
  return axes;
}

// indices + batch number * rows, flattened: where each row goes when batches are laid one after the
// other.
static weir_edge_t batch_indices(weir_grad_ctx_t* g, weir_edge_t rows, weir_edge_t batch,
                                 weir_edge_t count) {
  const int64_t flat[] = {-1}, column[] = {-1, 1};
  weir_edge_t indices = weir_grad_input(g, 1);
  weir_attrs_t as_index = WEIR_ATTRS(weir_attr_type("DstT", WEIR_DTYPE_INT32));
  if (weir_grad_dtype(g, indices) != WEIR_DTYPE_INT32)
    indices = weir_grad_node_with(g, "Cast", WEIR_EDGES(indices), as_index);
  weir_edge_t starts = range(g, weir_build_int32(g->builder, 0), batch);
  starts = weir_grad_node(g, "Mul", WEIR_EDGES(starts, rows));
  starts = weir_grad_node(g, "Reshape",
                          WEIR_EDGES(starts, array_grad_ints(g, WEIR_DTYPE_INT32, column, 2)));
  indices = weir_grad_node(
      g, "Reshape", WEIR_EDGES(indices, weir_grad_node(g, "Pack", WEIR_EDGES(batch, count))));
  weir_edge_t sum = weir_grad_node(g, "AddV2", WEIR_EDGES(indices, starts));
  return weir_grad_node(g, "Reshape",
                        WEIR_EDGES(sum, array_grad_ints(g, WEIR_DTYPE_INT32, flat, 1)));
}

// dy with the gathered axis brought behind the batch, summed by index, and the axis put back.
static weir_status_t* axis_grad(weir_grad_ctx_t* g, weir_edge_t shape, gather_axes_t axes,
                                int batch_dims) {
  const int64_t behind_batch[] = {batch_dims}, behind_axis[] = {batch_dims + 1}, all[] = {-1};
  weir_edge_t indices = weir_grad_input(g, 1), zero = weir_build_int32(g->builder, 0);
  weir_edge_t from = array_grad_ints(g, WEIR_DTYPE_INT32, behind_batch, 1);
  weir_edge_t count = product(g, dims_from(g, weir_grad_shape_of(g, indices), from));
  weir_edge_t values_shape = join(g, axes.outer, array_grad_vector(g, count), axes.inner);
  weir_edge_t values = weir_grad_node(g, "Reshape", WEIR_EDGES(weir_grad_dy(g, 0), values_shape));
  weir_edge_t moved = shape;  // of params with the axis behind the batch
  if (!weir_edge_is_none(axes.there)) {
    values = weir_grad_node(g, "Transpose", WEIR_EDGES(values, axes.there));
    moved = weir_grad_node(g, "GatherV2", WEIR_EDGES(shape, axes.there, zero));
  }
  weir_edge_t rows = product(g, dims_at(g, moved, batch_dims, batch_dims + 1));
  weir_edge_t segments = rows;
  if (batch_dims > 0) {
    weir_edge_t batch = product(g, dims_at(g, moved, 0, batch_dims));
    weir_edge_t size = array_grad_vector(g, weir_grad_node(g, "Mul", WEIR_EDGES(batch, count)));
    weir_edge_t rest = dims_from(g, moved, array_grad_ints(g, WEIR_DTYPE_INT32, behind_axis, 1));
    weir_edge_t rows_shape = weir_grad_node(g, "ConcatV2", WEIR_EDGES(size, rest, zero));
    values = weir_grad_node(g, "Reshape", WEIR_EDGES(values, rows_shape));
    segments = weir_grad_node(g, "Mul", WEIR_EDGES(rows, batch));
    indices = batch_indices(g, rows, batch, count);
  } else {
    indices = weir_grad_node(g, "Reshape",
                             WEIR_EDGES(indices, array_grad_ints(g, WEIR_DTYPE_INT32, all, 1)));
  }
  weir_edge_t dx = weir_grad_node(g, "UnsortedSegmentSum", WEIR_EDGES(values, indices, segments));
  if (batch_dims > 0) dx = weir_grad_node(g, "Reshape", WEIR_EDGES(dx, moved));
  if (!weir_edge_is_none(axes.back)) dx = weir_grad_node(g, "Transpose", WEIR_EDGES(dx, axes.back));
  return weir_grad_set(g, 0, dx);
}

static weir_status_t* gather_v2_grad(weir_grad_ctx_t* g) {
  const weir_tensor_t* axis_value = array_grad_constant(g, weir_grad_input(g, 2));
  int rank = weir_grad_shape(g, weir_grad_input(g, 0))->rank;
  int index_rank = weir_grad_shape(g, weir_grad_input(g, 1))->rank;
  int64_t batch_dims = weir_attrs_int(weir_grad_attrs(g), "batch_dims");
  if (g->builder->status) return weir_grad_set(g, 0, WEIR_NO_EDGE);
  if (batch_dims < 0 && index_rank < 0) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "the gradient of GatherV2 with batch_dims < 0 needs indices of known rank: node '%s'",
        g->node->name);
  }
  if (batch_dims < 0) batch_dims += index_rank;
  int64_t axis = axis_value && axis_value->count == 1 ? weir_tensor_int_at(axis_value, 0) : -1;
  if (axis_value && axis < 0 && rank >= 0) axis += rank;
  if (axis_value && axis == 0 && batch_dims == 0) return rows_grad(g);
  weir_edge_t shape = weir_grad_shape_of(g, weir_grad_input(g, 0));
  gather_axes_t axes = axis >= 0 && axis < rank
                           ? static_axes(g, shape, (int)axis, (int)batch_dims, rank)
                           : dynamic_axes(g, shape, (int)batch_dims);
  return axis_grad(g, shape, axes, (int)batch_dims);
}

static weir_status_t* gather_gpu(const weir_kernel_init_t* init, void* state) {
  return weir_move_indexed_gpu_init(init, state, "gather", 1);
}
#define GATHER_KERNELS(...)                                                            \
  ((const weir_kernel_def_t[]){                                                        \
      {WEIR_DEVICE_CPU, __VA_ARGS__},                                                  \
      WEIR_MOVE_GPU_ROW("Tparams: int32, " WEIR_MOVED_TYPES, gather_gpu, __VA_ARGS__), \
      {0}})

const weir_op_module_t weir_ops_array_gather = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Gather",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "validate_indices: bool = true; Tparams: type; Tindices: {int32, int64}",
         .inputs = "params: Tparams; indices: Tindices",
         .outputs = "output: Tparams",
         .summary = "Gathers rows of a tensor by index.",
         .infer_shape = gather_shape,
         .cost = weir_cost_fn_outputs,
         .build_grad = rows_grad,
         .kernels = GATHER_KERNELS(.compute = gather_rows)},
        {.name = "GatherV2",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "batch_dims: int = 0; Tparams: type; Tindices: {int16, int32, int64}; Taxis: "
                  "{int32, int64}",
         .inputs = "params: Tparams; indices: Tindices; axis: Taxis",
         .outputs = "output: Tparams",
         .summary = "Gathers slices of a tensor along an axis by index.",
         .infer_shape = gather_v2_shape,
         .cost = weir_cost_fn_outputs,
         .build_grad = gather_v2_grad,
         .kernels = GATHER_KERNELS(.compute = gather_v2, .host_inputs = "axis")},
        {0}}};
