// gather_nd.c — GatherNd: slices of a tensor by rows of indices.
#include "base/string.h"
#include "ops/array/nd_index.h"

static weir_status_t* gather_nd_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* params = weir_shape_input(ctx, 0);
  const weir_shape_t* indices = weir_shape_input(ctx, 1);
  WEIR_TRY(weir_shape_at_least(ctx, indices, 1));
  if (indices->rank < 0 || params->rank < 0 || indices->dims[indices->rank - 1] < 0) {
    return weir_shape_set(ctx, 0, &weir_shape_unknown);
  }
  int64_t depth = indices->dims[indices->rank - 1];
  if (depth > params->rank) {
    weir_strbuf_t text = {0};
    weir_strbuf_puts(&text, "indices shape: ");
    weir_shape_append(indices, &text);
    weir_strbuf_puts(&text, " and params shape: ");
    weir_shape_append(params, &text);
    weir_status_t* status =
        WEIR_STATUS(INVALID_ARGUMENT, "indices.shape[-1] must be <= params.rank, but saw %s",
                    text.data ? text.data : "shapes that do not fit");
    weir_strbuf_free(&text);
    return status;
  }
  const weir_shape_t* head = weir_shape_sub(ctx, indices, 0, indices->rank - 1);
  const weir_shape_t* tail = weir_shape_sub(ctx, params, (int)depth, params->rank);
  if (!head || !tail) return weir_out_of_memory();
  return weir_shape_set(ctx, 0, weir_shape_concat(ctx, head, tail));
}

static weir_status_t* check(const weir_tensor_t* params, const weir_tensor_t* indices) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  if (params->rank < 1) return WEIR_STATUS(INVALID_ARGUMENT, "params must be at least a vector");
  if (indices->rank < 1) return WEIR_STATUS(INVALID_ARGUMENT, "indices must be at least a vector");
  if (indices->dims[indices->rank - 1] > params->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "index innermost dimension length must be <= params rank; saw: %lld vs. %d, "
                       "indices shape: %s, "
                       "params shape: %s",
                       (long long)indices->dims[indices->rank - 1], params->rank,
                       weir_tensor_shape_text(indices, a), weir_tensor_shape_text(params, b));
  }
  return NULL;
}

static weir_status_t* copy_slices(const weir_kernel_ctx_t* ctx, const nd_index_t* nd, bool ignore,
                                  weir_tensor_t* out) {
  const weir_tensor_t* params = weir_kernel_input(ctx, 0);
  const weir_dtype_t dtype = weir_tensor_type(params);
  size_t step = (size_t)nd->slice * weir_dtype_size(dtype);
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  for (int64_t i = 0; i < nd->count; ++i) {
    int64_t at = nd_index_at(nd, i);
    char* dst = (char*)out->data + (size_t)i * step;
    if (at < 0 && !ignore) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s does not index into param shape %s, node name: %s",
                         nd_index_text(nd, i, a), weir_tensor_shape_text(params, b),
                         ctx->node->name);
    }
    if (at < 0) {
      weir_move_zero(dtype, dst, nd->slice);
    } else {
      WEIR_TRY(
          weir_elements_copy(dtype, dst, (const char*)params->data + (size_t)at * step, nd->slice));
    }
  }
  return NULL;
}

static weir_status_t* gather_nd_gpu(const weir_kernel_init_t* init, void* state) {
  return weir_move_indexed_gpu_init(init, state, "slices", 1);
}

static weir_status_t* gather_on_gpu(const weir_kernel_ctx_t* ctx, const nd_index_t* nd,
                                    weir_tensor_t* out) {
  weir_move_places_t places = {.indices = nd->indices,
                               .count = nd->count,
                               .depth = nd->depth,
                               .dims = nd->dims,
                               .inner = nd->slice};
  return weir_gpu_move_slices(ctx, weir_tensor_type(out), &places, weir_kernel_input(ctx, 0)->data,
                              out->data);
}

static weir_status_t* gather_nd(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* params = weir_kernel_input(ctx, 0);
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  int64_t dims[2 * WEIR_MAX_RANK];
  bool ignore = false;
  char text[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(nd_index_policy(weir_kernel_attrs(ctx), &ignore));
  WEIR_TRY(check(params, indices));
  nd_index_t nd = nd_index_make(indices, params->rank, params->dims);
  if (nd.count > 0 && params->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Requested more than 0 entries, but params is empty.  Params shape: %s",
                       weir_tensor_shape_text(params, text));
  }
  int rank = 0;
  for (int i = 0; i + 1 < indices->rank; ++i) dims[rank++] = indices->dims[i];
  for (int i = nd.depth; i < params->rank; ++i) dims[rank++] = params->dims[i];
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  return weir_move_gpu(ctx) ? gather_on_gpu(ctx, &nd, out) : copy_slices(ctx, &nd, ignore, out);
}

static weir_status_t* gather_nd_grad(weir_grad_ctx_t* g) {
  weir_edge_t indices = weir_grad_input(g, 1);
  const weir_shape_t* s = weir_grad_shape(g, indices);
  weir_dtype_t dtype = weir_grad_dtype(g, indices);
  if (dtype == WEIR_DTYPE_INT16) {
    dtype = WEIR_DTYPE_INT32;
    indices = weir_grad_node_with(g, "Cast", WEIR_EDGES(indices),
                                  WEIR_ATTRS(weir_attr_type("DstT", dtype)));
  }
  weir_edge_t shape = array_grad_shape(g, weir_grad_input(g, 0), dtype);
  if (s->rank == 2 && s->dims[1] == 1) {  // rows of the first dimension
    const int64_t last[] = {-1};
    weir_edge_t rows = weir_grad_node_with(g, "Squeeze", WEIR_EDGES(indices),
                                           WEIR_ATTRS(weir_attr_ints("squeeze_dims", last, 1)));
    return weir_grad_set_slices(g, 0, weir_grad_dy(g, 0), rows, shape);
  }
  weir_view_t policy = weir_attrs_string(weir_grad_attrs(g), "bad_indices_policy");
  return weir_grad_set(
      g, 0,
      weir_grad_node_with(g, "ScatterNd", WEIR_EDGES(indices, weir_grad_dy(g, 0), shape),
                          WEIR_ATTRS(weir_attr_view("bad_indices_policy", policy))));
}

const weir_op_module_t weir_ops_array_gather_nd = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "GatherNd",
         .mixed = WEIR_MIXED_CLEAR,
         .attrs = "Tparams: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''",
         .inputs = "params: Tparams; indices: Tindices",
         .outputs = "output: Tparams",
         .summary = "Gathers slices of a tensor by rows of indices.",
         .infer_shape = gather_nd_shape,
         .cost = weir_cost_fn_outputs,
         .build_grad = gather_nd_grad,
         .kernels =
             (const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = gather_nd},
                                         WEIR_MOVE_GPU_ROW("Tparams: int32, " WEIR_MOVED_TYPES,
                                                           gather_nd_gpu, .compute = gather_nd),
                                         {0}}},
        {0}}};
