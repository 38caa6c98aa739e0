// scatter_nd.c — ScatterNd, TensorScatterUpdate, TensorScatterAdd, TensorScatterSub.
#include "ops/array/nd_scatter.h"

// ---- shapes ----

static weir_status_t* scatter_nd_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  WEIR_TRY(weir_shape_from_value(ctx, 2, &out));
  WEIR_TRY(nd_scatter_check_shapes(ctx, weir_shape_input(ctx, 0), weir_shape_input(ctx, 1), out));
  return weir_shape_set(ctx, 0, out);
}

// ---- kernels ----

static weir_status_t* find_fit(const weir_tensor_t* indices, const weir_tensor_t* updates, int rank,
                               const int64_t* dims, nd_scatter_fit_t* out_fit) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (indices->rank < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Indices shape must have rank at least one. Found:%s",
                       weir_tensor_shape_text(indices, text));
  }
  if (updates->rank < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Updates shape must have rank at least one. Found:%s",
                       weir_tensor_shape_text(updates, text));
  }
  *out_fit = (nd_scatter_fit_t){.indices = indices,
                                .updates = updates,
                                .rank = rank,
                                .dims = dims,
                                .outer = indices->rank - 1,
                                .depth = indices->dims[indices->rank - 1]};
  return NULL;
}

// TensorFlow refuses updates that no index places. |count|: of what they would be put into.
static weir_status_t* check_empty(const weir_tensor_t* indices, const weir_tensor_t* updates,
                                  int64_t count) {
  if (indices->count == 0 && updates->count == 0) return NULL;
  if (count > 0 && indices->count > 0 && updates->count > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Indices and updates specified for empty output shape");
}

static weir_status_t* scatter_nd(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 0);
  const weir_tensor_t* updates = weir_kernel_input(ctx, 1);
  const weir_tensor_t* shape = weir_kernel_input(ctx, 2);
  nd_scatter_fit_t fit = {0};
  int64_t dims[WEIR_MAX_RANK];
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (shape->rank != 1 || shape->count > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape must be a vector, got %s",
                       weir_tensor_shape_text(shape, text));
  }
  int rank = (int)shape->count;
  int64_t count = 0;
  for (int i = 0; i < rank; ++i) dims[i] = weir_move_int_at(shape, i);
  WEIR_TRY(weir_shape_count(weir_tensor_type(updates), rank, dims, &count));
  WEIR_TRY(check_empty(indices, updates, WEIR_MIN(count, shape->count)));
  WEIR_TRY(find_fit(indices, updates, rank, dims, &fit));
  WEIR_TRY(nd_scatter_check_fit(&fit));
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  WEIR_TRY(weir_kernel_move_zero(ctx, weir_tensor_type(out), out->data, out->count));
  nd_index_t nd = nd_index_make(indices, rank, dims);
  return nd_scatter_at(ctx, &nd, updates, ND_SCATTER_ADD, out);
}

static weir_status_t* tensor_scatter(weir_kernel_ctx_t* ctx, nd_scatter_t mode) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  const weir_tensor_t* updates = weir_kernel_input(ctx, 2);
  nd_scatter_fit_t fit = {0};
  WEIR_TRY(find_fit(indices, updates, x->rank, x->dims, &fit));
  WEIR_TRY(check_empty(indices, updates, x->count));
  WEIR_TRY(nd_scatter_check_tensor_fit(&fit));
  if (indices->rank == 1 && indices->count > 0) {
    // One row of indices to TensorFlow's shape functions, a column to its kernels: never both.
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Indices must be rows of indices, a matrix or more, got shape %s",
                       weir_tensor_shape_text(indices, text));
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(nd_scatter_output(ctx, &out));
  nd_index_t nd = nd_index_make(indices, out->rank, out->dims);
  return nd_scatter_at(ctx, &nd, updates, mode, out);
}

static weir_status_t* scatter_nd_gpu(const weir_kernel_init_t* init, void* state) {
  return weir_scatter_find(init, WEIR_SCATTER_ADD, 1, 0, state);
}
WEIR_SCATTER_INIT(update_gpu, ASSIGN)
WEIR_SCATTER_INIT(add_gpu, ADD)
WEIR_SCATTER_INIT(sub_gpu, SUB)

static weir_status_t* update(weir_kernel_ctx_t* ctx) {
  return tensor_scatter(ctx, ND_SCATTER_UPDATE);
}
static weir_status_t* add(weir_kernel_ctx_t* ctx) { return tensor_scatter(ctx, ND_SCATTER_ADD); }
static weir_status_t* sub(weir_kernel_ctx_t* ctx) { return tensor_scatter(ctx, ND_SCATTER_SUB); }

// ---- gradients ----

static weir_edge_t gathered(weir_grad_ctx_t* g, weir_edge_t dy, int indices) {
  return weir_grad_node(g, "GatherNd", WEIR_EDGES(dy, weir_grad_input(g, indices)));
}

static weir_status_t* scatter_nd_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 1, gathered(g, weir_grad_dy(g, 0), 0));
}

static weir_status_t* update_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t zeros = weir_grad_node(g, "ZerosLike", WEIR_EDGES(weir_grad_input(g, 2)));
  WEIR_TRY(weir_grad_set(
      g, 0,
      weir_grad_node(g, "TensorScatterUpdate", WEIR_EDGES(dy, weir_grad_input(g, 1), zeros))));
  return weir_grad_set(g, 2, gathered(g, dy, 1));
}

static weir_status_t* add_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 0, dy));
  return weir_grad_set(g, 2, gathered(g, dy, 1));
}

static weir_status_t* sub_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 0, dy));
  return weir_grad_set(g, 2, weir_grad_neg(g, gathered(g, dy, 1)));
}

#define NUMBERS                                                                                  \
  "T: complex128, complex64, double, float, bfloat16, half, int32, int8, uint8, int16, uint16, " \
  "uint32, int64, uint64"

#define KERNELS(cpu_types, gpu_types, fn, ...)                                                    \
  ((const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .types = cpu_types, .compute = fn, __VA_ARGS__}, \
                               ND_SCATTER_GPU_ROW(gpu_types, fn, __VA_ARGS__),                    \
                               {0}})

const weir_op_module_t weir_ops_array_scatter_nd = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ScatterNd",
         .attrs = "T: type; Tindices: {int16, int32, int64}; bad_indices_policy: string = ''",
         .inputs = "indices: Tindices; updates: T; shape: Tindices",
         .outputs = "output: T",
         .summary = "Adds slices into a tensor of zeros by rows of indices.",
         .infer_shape = scatter_nd_shape,
         .build_grad = scatter_nd_grad,
         .kernels =
             KERNELS(NULL, "int32, " WEIR_SCATTERED_NUMBERS, scatter_nd, .host_inputs = "shape")},
        {.name = "TensorScatterUpdate",
         .attrs =
             "T: type; Tindices: {int16, int32, int64, uint16}; bad_indices_policy: string = ''",
         .inputs = "tensor: T; indices: Tindices; updates: T",
         .outputs = "output: T",
         .summary = "Replaces slices of a tensor by rows of indices.",
         .infer_shape = nd_scatter_shape,
         .build_grad = update_grad,
         .kernels = KERNELS(NULL, "int32, " WEIR_MOVED_TYPES, update, .host_inputs = NULL)},
        {.name = "TensorScatterAdd",
         .attrs = "T: type; Tindices: {int32, int64}; bad_indices_policy: string = ''",
         .inputs = "tensor: T; indices: Tindices; updates: T",
         .outputs = "output: T",
         .summary = "Adds to slices of a tensor by rows of indices.",
         .infer_shape = nd_scatter_shape,
         .build_grad = add_grad,
         .kernels = KERNELS(NULL, "int32, " WEIR_SCATTERED_NUMBERS, add, .host_inputs = NULL)},
        {.name = "TensorScatterSub",
         .attrs = "T: type; Tindices: {int32, int64}; bad_indices_policy: string = ''",
         .inputs = "tensor: T; indices: Tindices; updates: T",
         .outputs = "output: T",
         .summary = "Subtracts from slices of a tensor by rows of indices.",
         .infer_shape = nd_scatter_shape,
         .build_grad = sub_grad,
         .kernels = KERNELS(NUMBERS, "int32, " WEIR_SCATTERED_NUMBERS, sub, .host_inputs = NULL)},
        {0}}};
