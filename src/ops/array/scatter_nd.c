// scatter_nd.c — ScatterNd, TensorScatterUpdate, TensorScatterAdd, TensorScatterSub.
#include "kernel/element_add.h"
#include "ops/array/nd_index.h"

typedef enum scatter_t { SCATTER_UPDATE, SCATTER_ADD, SCATTER_SUB } scatter_t;

// ---- shapes ----

static weir_status_t* check_shapes(weir_shape_ctx_t* ctx, const weir_shape_t* indices,
                                   const weir_shape_t* updates, const weir_shape_t* out) {
  WEIR_TRY(weir_shape_at_least(ctx, indices, 1));
  if (indices->rank < 0 || updates->rank < 0 || out->rank < 0 ||
      indices->dims[indices->rank - 1] < 0)
    return NULL;
  int outer = indices->rank - 1;
  int64_t depth = indices->dims[outer];
  if (depth > out->rank || updates->rank != outer + out->rank - depth) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Shapes of indices, updates and output do not fit: ranks %d, %d and %d with "
                       "%lld indices a row",
                       indices->rank, updates->rank, out->rank, (long long)depth);
  }
  for (int i = 0; i < updates->rank; ++i) {
    int64_t expected = i < outer ? indices->dims[i] : out->dims[i - outer + depth];
    int64_t joined = 0;
    WEIR_TRY(weir_dim_join(ctx, expected, updates->dims[i], &joined));
  }
  return NULL;
}

static weir_status_t* scatter_nd_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  WEIR_TRY(weir_shape_from_value(ctx, 2, &out));
  WEIR_TRY(check_shapes(ctx, weir_shape_input(ctx, 0), weir_shape_input(ctx, 1), out));
  return weir_shape_set(ctx, 0, out);
}

static weir_status_t* tensor_scatter_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = weir_shape_input(ctx, 0);
  WEIR_TRY(check_shapes(ctx, weir_shape_input(ctx, 1), weir_shape_input(ctx, 2), out));
  return weir_shape_set(ctx, 0, out);
}

// ---- kernels ----

static weir_status_t* check_inputs(const weir_tensor_t* indices, const weir_tensor_t* updates,
                                   int rank, const int64_t* dims) {
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE], c[WEIR_SHAPE_TEXT_SIZE];
  if (indices->rank < 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Indices shape must have rank at least one. Found:%s",
                       weir_tensor_shape_text(indices, a));
  }
  int outer = indices->rank - 1;
  int64_t depth = indices->dims[outer];
  bool fits = depth <= rank && updates->rank == outer + rank - depth;
  for (int i = 0; fits && i < updates->rank; ++i) {
    fits = updates->dims[i] == (i < outer ? indices->dims[i] : dims[i - outer + depth]);
  }
  if (fits) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Outer dimensions of indices and update must match, and inner ones those of "
                     "the output. Indices "
                     "shape: %s, updates shape:%s, output shape: %s",
                     weir_tensor_shape_text(indices, a), weir_tensor_shape_text(updates, b),
                     weir_shape_text(rank, dims, c));
}

// TensorFlow refuses updates that no index places.
static weir_status_t* check_empty(const weir_tensor_t* indices, const weir_tensor_t* updates,
                                  int64_t count) {
  bool has_any = indices->count > 0 || updates->count > 0;
  if (!has_any || (count > 0 && indices->count > 0)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Indices and updates specified for empty output shape");
}

// Strings are added by joining them.
static weir_status_t* join_strings(weir_string_t* dst, const weir_string_t* src, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    weir_view_t more = weir_string_view(&src[i]);
    size_t size = weir_string_view(&dst[i]).size;
    char* bytes = weir_string_resize(&dst[i], size + more.size);
    if (!bytes) return weir_out_of_memory();
    if (more.size) memcpy(bytes + size, more.data, more.size);
  }
  return NULL;
}

static weir_status_t* put_slice(weir_dtype_t dtype, scatter_t mode, weir_element_add_fn_t fn,
                                char* dst, const char* src, int64_t count) {
  if (mode == SCATTER_UPDATE) return weir_elements_copy(dtype, dst, src, count);
  if (dtype == WEIR_DTYPE_STRING)
    return join_strings((weir_string_t*)dst, (const weir_string_t*)src, count);
  fn(dst, src, count);
  return NULL;
}

static weir_status_t* scatter(const weir_kernel_ctx_t* ctx, const weir_tensor_t* indices,
                              const weir_tensor_t* updates, scatter_t mode, weir_tensor_t* out) {
  const weir_dtype_t dtype = weir_tensor_type(out);
  weir_element_add_fn_t fn =
      mode == SCATTER_SUB ? weir_element_sub_fn(dtype) : weir_element_add_fn(dtype);
  bool ignore = false;
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(nd_index_policy(weir_kernel_attrs(ctx), &ignore));
  if (mode != SCATTER_UPDATE && !fn && dtype != WEIR_DTYPE_STRING) {
    return WEIR_STATUS(INVALID_ARGUMENT, "elements of type %s cannot be added",
                       weir_dtype_name(dtype));
  }
  nd_index_t nd = nd_index_make(indices, out->rank, out->dims);
  size_t step = (size_t)nd.slice * weir_dtype_size(dtype);
  for (int64_t i = 0; i < nd.count; ++i) {
    int64_t at = nd_index_at(&nd, i);
    if (at < 0 && ignore) continue;
    if (at < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "%s does not index into shape %s",
                         nd_index_text(&nd, i, a), weir_tensor_shape_text(out, b));
    }
    WEIR_TRY(put_slice(dtype, mode, fn, (char*)out->data + (size_t)at * step,
                       (const char*)updates->data + (size_t)i * step, nd.slice));
  }
  return NULL;
}

static weir_status_t* scatter_nd_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 0);
  const weir_tensor_t* updates = weir_kernel_input(ctx, 1);
  const weir_tensor_t* shape = weir_kernel_input(ctx, 2);
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
  WEIR_TRY(check_empty(indices, updates, count));
  WEIR_TRY(check_inputs(indices, updates, rank, dims));
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  weir_move_zero(weir_tensor_type(out), out->data, out->count);
  return scatter(ctx, indices, updates, SCATTER_ADD, out);
}

static weir_status_t* tensor_scatter(weir_kernel_ctx_t* ctx, scatter_t mode) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  const weir_tensor_t* updates = weir_kernel_input(ctx, 2);
  WEIR_TRY(check_inputs(indices, updates, x->rank, x->dims));
  WEIR_TRY(check_empty(indices, updates, x->count));
  if (indices->rank == 1 && indices->count > 0) {
    // One row of indices to TensorFlow's shape functions, a column to its kernels: never both.
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Indices must be rows of indices, a matrix or more, got shape %s",
                       weir_tensor_shape_text(indices, text));
  }
  const void* data = x->data;
  const weir_dtype_t dtype = weir_tensor_type(x);
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &out));
  if (out->data != data)
    WEIR_TRY(weir_move_copy(weir_kernel_pool(ctx), dtype, data, out->data, out->count));
  return scatter(ctx, indices, updates, mode, out);
}

static weir_status_t* update_cpu(weir_kernel_ctx_t* ctx) {
  return tensor_scatter(ctx, SCATTER_UPDATE);
}
static weir_status_t* add_cpu(weir_kernel_ctx_t* ctx) { return tensor_scatter(ctx, SCATTER_ADD); }
static weir_status_t* sub_cpu(weir_kernel_ctx_t* ctx) { return tensor_scatter(ctx, SCATTER_SUB); }

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
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .compute = scatter_nd_cpu, .host_inputs = "shape"}, {0}}},
        {.name = "TensorScatterUpdate",
         .attrs =
             "T: type; Tindices: {int16, int32, int64, uint16}; bad_indices_policy: string = ''",
         .inputs = "tensor: T; indices: Tindices; updates: T",
         .outputs = "output: T",
         .summary = "Replaces slices of a tensor by rows of indices.",
         .infer_shape = tensor_scatter_shape,
         .build_grad = update_grad,
         .kernels = (const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = update_cpu}, {0}}},
        {.name = "TensorScatterAdd",
         .attrs = "T: type; Tindices: {int32, int64}; bad_indices_policy: string = ''",
         .inputs = "tensor: T; indices: Tindices; updates: T",
         .outputs = "output: T",
         .summary = "Adds to slices of a tensor by rows of indices.",
         .infer_shape = tensor_scatter_shape,
         .build_grad = add_grad,
         .kernels = (const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .compute = add_cpu}, {0}}},
        {.name = "TensorScatterSub",
         .attrs = "T: type; Tindices: {int32, int64}; bad_indices_policy: string = ''",
         .inputs = "tensor: T; indices: Tindices; updates: T",
         .outputs = "output: T",
         .summary = "Subtracts from slices of a tensor by rows of indices.",
         .infer_shape = tensor_scatter_shape,
         .build_grad = sub_grad,
         .kernels =
             (const weir_kernel_def_t[]){{WEIR_DEVICE_CPU, .types = NUMBERS, .compute = sub_cpu},
                                         {0}}},
        {0}}};
