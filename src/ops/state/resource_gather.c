// resource_gather.c — ResourceGather, ResourceGatherNd: rows of a variable, read without copying
// the whole.
#include "file/mapping.h"
#include "kernel/move/move_op.h"
#include "op/cost.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

// A job of copying |count| slices of |slice_count| elements each, slice i from offsets[i].
typedef struct gather_t {
  weir_dtype_t dtype;
  const char* src;
  char* dst;
  const int64_t* offsets;  // in slices
  int64_t slice_count;
  int64_t size;  // bytes an element
  bool is_plain;
  weir_first_error_t error;
} gather_t;

static void gather_range(void* arg, int64_t begin, int64_t end) {
  gather_t* g = arg;
  const int64_t bytes = g->slice_count * g->size;
  for (int64_t i = begin; i < end; ++i) {
    const char* src = g->src + g->offsets[i] * bytes;
    if (g->is_plain) {
      memcpy(g->dst + i * bytes, src, (size_t)bytes);
      continue;
    }
    weir_status_t* status = weir_elements_copy(g->dtype, g->dst + i * bytes, src, g->slice_count);
    if (!status) continue;
    weir_first_error_set(&g->error, status);
    return;
  }
}

static weir_status_t* gather_slices(weir_kernel_ctx_t* ctx, const weir_tensor_t* params,
                                    weir_tensor_t* out, const int64_t* offsets, int64_t count,
                                    int64_t slice_count) {
  gather_t g = {.dtype = weir_tensor_type(params),
                .src = params->data,
                .dst = out->data,
                .offsets = offsets,
                .slice_count = slice_count,
                .size = (int64_t)weir_dtype_size(weir_tensor_type(params)),
                .is_plain = weir_dtype_is_plain(weir_tensor_type(params))};
  weir_pool_for(weir_kernel_pool(ctx), count, 5.0 + (double)(slice_count * g.size) * 0.1,
                gather_range, &g);
  return g.error.status;
}

// The variable that rows are read of.
typedef struct source_t {
  weir_variable_t* variable;  // retained
  weir_tensor_t* tensor;      // retained, unless the variable is locked
  bool is_locked;
} source_t;

static weir_status_t* check_source(const weir_kernel_ctx_t* ctx, const weir_tensor_t* params) {
  if (!params) {
    return WEIR_STATUS(FAILED_PRECONDITION, "Attempting to use uninitialized variable in %s",
                       ctx->node->name);
  }
  if (weir_tensor_type(params) == ctx->node->output_types[0]) return NULL;
  return WEIR_STATUS(
      INVALID_ARGUMENT, "Trying to read variable with wrong dtype. Expected %s got %s",
      weir_dtype_name(ctx->node->output_types[0]), weir_dtype_name(weir_tensor_type(params)));
}

// Small tables are held as they are, so that many threads read them at once. A writer that found a
// large one held would copy it, however few rows are read, and one in a file is written in place:
// those stay locked meanwhile.
static weir_status_t* open_source(weir_kernel_ctx_t* ctx, source_t* source) WEIR_NO_THREAD_SAFETY {
  enum { MOST_COPIED = 1 << 20 };  // bytes
  WEIR_TRY(weir_kernel_variable(ctx, 0, &source->variable));
  weir_mutex_lock(&source->variable->mu);
  source->tensor = source->variable->tensor;
  weir_status_t* status = check_source(ctx, source->tensor);
  if (!status && !weir_move_gpu(ctx))
    source->is_locked = weir_mapping_has(source->tensor) ||
                        source->tensor->count > MOST_COPIED / (int64_t)weir_dtype_size(
                                                                  weir_tensor_type(source->tensor));
  if (!source->is_locked) {
    source->tensor = status ? NULL : weir_tensor_retain(source->tensor);
    weir_mutex_unlock(&source->variable->mu);
  }
  if (status) weir_resource_release(&source->variable->base);
  return status;
}

static weir_status_t* close_source(source_t* source,
                                   weir_status_t* take_status) WEIR_NO_THREAD_SAFETY {
  if (!take_status) take_status = weir_mapping_check(source->tensor);
  if (source->is_locked) weir_mutex_unlock(&source->variable->mu);
  else weir_tensor_release(source->tensor);
  weir_resource_release(&source->variable->base);
  return take_status;
}

static int64_t product(const int64_t* dims, int begin, int end) {
  int64_t p = 1;
  for (int i = begin; i < end; ++i) p *= dims[i];
  return p;
}

// ---- ResourceGather ----
static weir_status_t* gather_offsets(const weir_tensor_t* params, const weir_tensor_t* indices,
                                     int batch_dims, int64_t* offsets) {
  const int64_t limit = params->dims[batch_dims];
  const int64_t inner = product(indices->dims, batch_dims, indices->rank);
  for (int64_t i = 0; i < indices->count; ++i) {
    int64_t index = weir_tensor_int_at(indices, i);
    if (index < 0 || index >= limit) {
      char place[WEIR_SHAPE_TEXT_SIZE];
      int64_t at[WEIR_MAX_RANK], rest = i;
      for (int d = indices->rank - 1; d >= 0; --d) {
        at[d] = rest % indices->dims[d];
        rest /= indices->dims[d];
      }
      return WEIR_STATUS(INVALID_ARGUMENT, "indices%s = %lld is not in [0, %lld)",
                         indices->rank > 0 ? weir_shape_text(indices->rank, at, place) : "",
                         (long long)index, (long long)limit);
    }
    offsets[i] = (inner ? i / inner : 0) * limit + index;
  }
  return NULL;
}

static weir_status_t* check_gather(const weir_tensor_t* params, const weir_tensor_t* indices,
                                   int64_t batch_dims) {
  if (params->rank < 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "params must be at least 1 dimensional");
  if (batch_dims < 0 || batch_dims > indices->rank || batch_dims >= params->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "batch_dims (%lld) must be in [0, %d] and less than rank(params) (%d)",
                       (long long)batch_dims, indices->rank, params->rank);
  }
  for (int i = 0; i < (int)batch_dims; ++i) {
    if (params->dims[i] != indices->dims[i]) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "params.shape[%d]: %lld should be equal to indices.shape[%d]: %lld", i,
                         (long long)params->dims[i], i, (long long)indices->dims[i]);
    }
  }
  return NULL;
}

static weir_status_t* gather_on_gpu(const weir_kernel_ctx_t* ctx, const weir_tensor_t* params,
                                    int batch_dims, weir_tensor_t* out) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  weir_move_gather_t g = {.batch = product(indices->dims, 0, batch_dims),
                          .outer = 1,
                          .rows = params->dims[batch_dims],
                          .index_count = product(indices->dims, batch_dims, indices->rank),
                          .inner = product(params->dims, batch_dims + 1, params->rank)};
  int64_t bad = -1;
  return weir_kernel_move_gather(ctx, weir_tensor_type(params), &g, params->data, indices,
                                 out->data, &bad);
}

static weir_status_t* gather(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  source_t source = {0};
  weir_tensor_t* scratch = NULL;
  weir_tensor_t* out = NULL;
  int64_t dims[WEIR_MAX_RANK];
  const int64_t batch_dims = weir_attrs_int(weir_kernel_attrs(ctx), "batch_dims");
  if (batch_dims < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "batch_dims is negative (%lld)", (long long)batch_dims);
  }
  WEIR_TRY(open_source(ctx, &source));
  const weir_tensor_t* params = source.tensor;
  weir_status_t* status = check_gather(params, indices, batch_dims);
  if (status) goto done;
  int rest = params->rank - (int)batch_dims - 1;
  if (indices->rank + rest > WEIR_MAX_RANK) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "The result would have more than %d dimensions",
                         WEIR_MAX_RANK);
    goto done;
  }
  for (int i = 0; i < indices->rank; ++i) dims[i] = indices->dims[i];
  for (int i = 0; i < rest; ++i) dims[indices->rank + i] = params->dims[batch_dims + 1 + i];
  status = weir_kernel_output(ctx, 0, indices->rank + rest, dims, &out);
  if (status || out->count == 0) goto done;
  if (weir_move_gpu(ctx)) {
    status = gather_on_gpu(ctx, params, (int)batch_dims, out);
    goto done;
  }
  status = weir_kernel_scratch(ctx, WEIR_DTYPE_INT64, indices->count, &scratch);
  if (status) goto done;
  int64_t* offsets = WEIR_TENSOR_DATA(scratch, int64_t);
  status = gather_offsets(params, indices, (int)batch_dims, offsets);
  if (status) goto done;
  status = gather_slices(ctx, params, out, offsets, indices->count,
                         product(params->dims, (int)batch_dims + 1, params->rank));
done:
  weir_tensor_release(scratch);
  return close_source(&source, status);
}

static weir_status_t* gather_shape(weir_shape_ctx_t* ctx) {
  const weir_handle_info_t* info = ctx->input_handles[0];
  const weir_shape_t* indices = weir_shape_input(ctx, 1);
  const int64_t batch_dims = weir_attrs_int(weir_shape_attrs(ctx), "batch_dims");
  if (batch_dims < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "batch_dims is negative (%lld)", (long long)batch_dims);
  }
  if (!info || !info->shape || info->shape->rank < 0 || indices->rank < 0) return NULL;
  WEIR_TRY(weir_shape_at_least(ctx, info->shape, 1));
  if (batch_dims > indices->rank || batch_dims >= info->shape->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "batch_dims (%lld) must be less than rank(params) (%d)",
                       (long long)batch_dims, info->shape->rank);
  }
  const weir_shape_t* rest =
      weir_shape_sub(ctx, info->shape, (int)batch_dims + 1, info->shape->rank);
  return weir_shape_set(ctx, 0, weir_shape_concat(ctx, indices, rest));
}

// The declared shape of the variable behind |handle| where its maker is in sight, else NULL.
static const weir_shape_t* declared_shape(weir_grad_ctx_t* g, weir_edge_t handle) {
  if (g->builder->status) return NULL;
  const weir_node_def_t* node = g->builder->vtable->node(g->builder, handle);
  if (!node || !node->op || node->op->role != WEIR_ROLE_VARIABLE) return NULL;
  const weir_attr_t* shape = weir_attrs_find(node->attrs, "shape");
  return shape && shape->kind == WEIR_ATTR_SHAPE && weir_shape_is_full(shape->u.shape)
             ? shape->u.shape
             : NULL;
}

static weir_edge_t variable_shape(weir_grad_ctx_t* g, weir_edge_t handle) {
  int32_t dims[WEIR_MAX_RANK];
  const weir_shape_t* shape = declared_shape(g, handle);
  for (int i = 0; shape && i < shape->rank; ++i) {
    if (shape->dims[i] > INT32_MAX) shape = NULL;
    else dims[i] = (int32_t)shape->dims[i];
  }
  if (shape) return weir_build_int32s(g->builder, dims, shape->rank);
  return weir_grad_node_with(g, "VariableShape", WEIR_EDGES(handle),
                             WEIR_ATTRS(weir_attr_type("out_type", WEIR_DTYPE_INT32)));
}

// d params: the rows of dy at indices, as slices.
static weir_status_t* gather_grad(weir_grad_ctx_t* g) {
  if (weir_attrs_int(weir_grad_attrs(g), "batch_dims") != 0) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "Gradient of ResourceGather with batch_dims is not implemented");
  }
  weir_edge_t handle = weir_grad_input(g, 0);
  weir_edge_t indices = weir_grad_input(g, 1);
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t shape = variable_shape(g, handle);
  weir_edge_t flat = weir_build_int32s(g->builder, (const int32_t[]){-1}, 1);
  const weir_shape_t* index_shape = weir_grad_shape(g, indices);
  weir_edge_t values = dy, rows = indices;
  if (index_shape->rank != 1) {
    weir_edge_t one = weir_build_int32s(g->builder, (const int32_t[]){1}, 1);
    weir_edge_t zero = weir_build_int32s(g->builder, (const int32_t[]){0}, 1);
    weir_edge_t rest = weir_grad_node_with(g, "StridedSlice", WEIR_EDGES(shape, one, zero, one),
                                           WEIR_ATTRS(weir_attr_int("end_mask", 1)));
    weir_edge_t count = weir_grad_node(g, "ExpandDims",
                                       WEIR_EDGES(weir_grad_node(g, "Size", WEIR_EDGES(indices)),
                                                  weir_build_int32(g->builder, 0)));
    weir_edge_t target =
        weir_grad_node(g, "ConcatV2", WEIR_EDGES(count, rest, weir_build_int32(g->builder, 0)));
    values = weir_grad_node(g, "Reshape", WEIR_EDGES(dy, target));
    rows = weir_grad_node(g, "Reshape", WEIR_EDGES(indices, flat));
  }
  return weir_grad_set_slices(g, 0, values, rows, shape);
}

// ---- ResourceGatherNd ----
static weir_status_t* gather_nd_offsets(const weir_tensor_t* params, const weir_tensor_t* indices,
                                        int depth, int64_t count, int64_t* offsets) {
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (int d = 0; d < depth; ++d) {
      int64_t index = weir_tensor_int_at(indices, i * depth + d);
      if (index < 0 || index >= params->dims[d]) {
        char shape[WEIR_SHAPE_TEXT_SIZE];
        return WEIR_STATUS(INVALID_ARGUMENT, "indices[%lld] does not index into param shape %s",
                           (long long)i, weir_tensor_shape_text(params, shape));
      }
      offset = offset * params->dims[d] + index;
    }
    offsets[i] = offset;
  }
  return NULL;
}

static weir_status_t* gather_nd(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  source_t source = {0};
  weir_tensor_t* scratch = NULL;
  weir_tensor_t* out = NULL;
  int64_t dims[WEIR_MAX_RANK];
  if (indices->rank < 1) return WEIR_STATUS(INVALID_ARGUMENT, "indices must be at least a vector");
  WEIR_TRY(open_source(ctx, &source));
  const weir_tensor_t* params = source.tensor;
  weir_status_t* status = NULL;
  int64_t depth = indices->dims[indices->rank - 1];
  if (params->rank < 1) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "params must be at least a vector");
    goto done;
  }
  if (depth > params->rank || indices->rank - 1 + params->rank - depth > WEIR_MAX_RANK) {
    status =
        WEIR_STATUS(INVALID_ARGUMENT,
                    "index innermost dimension length must be <= params rank; saw: %lld vs. %d",
                    (long long)depth, params->rank);
    goto done;
  }
  int outer = indices->rank - 1, rest = params->rank - (int)depth;
  if (params->count == 0 && product(indices->dims, 0, outer) > 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    status = WEIR_STATUS(INVALID_ARGUMENT,
                         "Requested more than 0 entries, but params is empty.  Params shape: %s",
                         weir_tensor_shape_text(params, text));
    goto done;
  }
  for (int i = 0; i < outer; ++i) dims[i] = indices->dims[i];
  for (int i = 0; i < rest; ++i) dims[outer + i] = params->dims[(int)depth + i];
  status = weir_kernel_output(ctx, 0, outer + rest, dims, &out);
  if (status || out->count == 0) goto done;
  int64_t count = product(indices->dims, 0, outer);
  if (weir_move_gpu(ctx)) {
    weir_move_places_t places = {.indices = indices,
                                 .count = count,
                                 .depth = (int)depth,
                                 .dims = params->dims,
                                 .inner = product(params->dims, (int)depth, params->rank)};
    status = weir_gpu_move_slices(ctx, weir_tensor_type(params), &places, params->data, out->data);
    goto done;
  }
  status = weir_kernel_scratch(ctx, WEIR_DTYPE_INT64, count, &scratch);
  if (status) goto done;
  int64_t* offsets = WEIR_TENSOR_DATA(scratch, int64_t);
  status = gather_nd_offsets(params, indices, (int)depth, count, offsets);
  if (status) goto done;
  status = gather_slices(ctx, params, out, offsets, count,
                         product(params->dims, (int)depth, params->rank));
done:
  weir_tensor_release(scratch);
  return close_source(&source, status);
}

static weir_status_t* gather_nd_shape(weir_shape_ctx_t* ctx) {
  const weir_handle_info_t* info = ctx->input_handles[0];
  const weir_shape_t* indices = weir_shape_input(ctx, 1);
  WEIR_TRY(weir_shape_at_least(ctx, indices, 1));
  if (!info || !info->shape || info->shape->rank < 0 || indices->rank < 0) return NULL;
  int64_t depth = indices->dims[indices->rank - 1];
  if (depth < 0) return NULL;
  if (depth > info->shape->rank) {
    char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "indices.shape[-1] must be <= params.rank, but saw indices shape: %s and params shape: %s",
        weir_shape_text(indices->rank, indices->dims, a),
        weir_shape_text(info->shape->rank, info->shape->dims, b));
  }
  const weir_shape_t* rest = weir_shape_sub(ctx, info->shape, (int)depth, info->shape->rank);
  const weir_shape_t* outer = weir_shape_sub(ctx, indices, 0, indices->rank - 1);
  return weir_shape_set(ctx, 0, weir_shape_concat(ctx, outer, rest));
}

static weir_status_t* gather_nd_grad(weir_grad_ctx_t* g) {
  weir_edge_t indices = weir_grad_input(g, 1);
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t shape =
      weir_grad_node_with(g, "VariableShape", WEIR_EDGES(weir_grad_input(g, 0)),
                          WEIR_ATTRS(weir_attr_type("out_type", weir_grad_dtype(g, indices))));
  const weir_shape_t* known = weir_grad_shape(g, indices);
  if (known->rank == 2 && known->dims[1] == 1) {  // one index a row: slices
    weir_edge_t axis = weir_build_int32s(g->builder, (const int32_t[]){-1}, 1);
    return weir_grad_set_slices(g, 0, dy, weir_grad_node(g, "Reshape", WEIR_EDGES(indices, axis)),
                                shape);
  }
  return weir_grad_set(g, 0, weir_grad_node(g, "ScatterNd", WEIR_EDGES(indices, dy, shape)));
}

static weir_status_t* gather_gpu(const weir_kernel_init_t* init, void* state) {
  return weir_move_indexed_gpu_init(init, state, "gather", 1);
}
static weir_status_t* gather_nd_gpu(const weir_kernel_init_t* init, void* state) {
  return weir_move_indexed_gpu_init(init, state, "slices", 1);
}
#define GATHER_KERNELS(fn)                                                                  \
  ((const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = fn, .host_inputs = "resource"}, \
                               WEIR_MOVE_GPU_ROW("dtype: " WEIR_MOVED_TYPES, fn##_gpu,      \
                                                 .compute = fn, .host_inputs = "resource"), \
                               {0}})

const weir_op_module_t weir_ops_state_resource_gather = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ResourceGather",
         .summary = "Rows of a variable by index",
         .attrs = "batch_dims: int = 0; validate_indices: bool = true; dtype: type; Tindices: "
                  "{int32, int64}",
         .inputs = "resource: resource; indices: Tindices",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_READ_ONLY,
         .infer_shape = gather_shape,
         .cost = weir_cost_fn_outputs,
         .build_grad = gather_grad,
         .kernels = GATHER_KERNELS(gather)},
        {.name = "ResourceGatherNd",
         .summary = "Slices of a variable by rows of indices",
         .attrs = "dtype: type; Tindices: {int32, int64}",
         .inputs = "resource: resource; indices: Tindices",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_READ_ONLY,
         .infer_shape = gather_nd_shape,
         .cost = weir_cost_fn_outputs,
         .build_grad = gather_nd_grad,
         .kernels = GATHER_KERNELS(gather_nd)},
        {0}}};
