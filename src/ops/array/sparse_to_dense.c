// sparse_to_dense.c — SparseToDense: listed values in a tensor of a default.
#include "kernel/cuda/source.h"
#include "kernel/move/scatter_op.h"
#include "ops/array/common.h"

static weir_status_t* sparse_to_dense_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = NULL;
  WEIR_TRY(weir_shape_from_value(ctx, 1, &out));
  return weir_shape_set(ctx, 0, out);
}

// The inputs, checked: |count| rows of |depth| indices.
typedef struct sparse_t {
  const weir_tensor_t* indices;
  const weir_tensor_t* values;
  int64_t count;
  int rank;
  int64_t dims[WEIR_MAX_RANK];
} sparse_t;

static weir_status_t* read_sparse(const weir_kernel_ctx_t* ctx, sparse_t* s) {
  const weir_tensor_t* indices = weir_kernel_input(ctx, 0);
  const weir_tensor_t* shape = weir_kernel_input(ctx, 1);
  const weir_tensor_t* values = weir_kernel_input(ctx, 2);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (indices->rank > 2) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "sparse_indices should be a scalar, vector, or matrix, got shape %s",
                       weir_tensor_shape_text(indices, text));
  }
  s->indices = indices;
  s->values = values;
  s->count = indices->rank > 0 ? indices->dims[0] : 1;
  int64_t depth = indices->rank > 1 ? indices->dims[1] : 1;
  if (shape->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "output_shape must be rank 1, got shape %s",
                       weir_tensor_shape_text(shape, text));
  }
  if (shape->count != depth || depth > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "output_shape has incorrect number of elements: %lld should be: %lld",
                       (long long)shape->count, (long long)depth);
  }
  if (values->rank != 0 && !(values->rank == 1 && values->dims[0] == s->count)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "sparse_values has incorrect shape %s, should be [] or [%lld]",
                       weir_tensor_shape_text(values, text), (long long)s->count);
  }
  if (weir_kernel_input(ctx, 3)->rank != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "default_value should be a scalar.");
  s->rank = (int)depth;
  for (int i = 0; i < s->rank; ++i) s->dims[i] = weir_tensor_int_at(shape, i);
  return NULL;
}

// The flat place of row |i|; -1 when it is out of range.
static int64_t place_of(const sparse_t* s, int64_t i) {
  int64_t at = 0;
  for (int k = 0; k < s->rank; ++k) {
    int64_t index = weir_tensor_int_at(s->indices, i * s->rank + k);
    if (index < 0 || index >= s->dims[k]) return -1;
    at = at * s->dims[k] + index;
  }
  return at;
}

static weir_status_t* bad_row(const sparse_t* s, int64_t i, const char* what) {
  int64_t row[WEIR_MAX_RANK];
  char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
  for (int k = 0; k < s->rank; ++k) row[k] = weir_tensor_int_at(s->indices, i * s->rank + k);
  weir_shape_text(s->rank, row, a);
  if (!what) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "indices[%lld] = %s is out of bounds: need 0 <= index < %s", (long long)i, a,
                       weir_shape_text(s->rank, s->dims, b));
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "indices[%lld] = %s is %s", (long long)i, a, what);
}

static weir_status_t* sparse_to_dense_cpu(weir_kernel_ctx_t* ctx) {
  sparse_t s;
  weir_tensor_t* out = NULL;
  WEIR_TRY(read_sparse(ctx, &s));
  const weir_dtype_t dtype = weir_tensor_type(s.values);
  const size_t size = weir_dtype_size(dtype);
  bool validate = weir_attrs_bool(weir_kernel_attrs(ctx), "validate_indices");
  WEIR_TRY(weir_kernel_output(ctx, 0, s.rank, s.dims, &out));
  WEIR_TRY(weir_move_fill(weir_kernel_pool(ctx), dtype, weir_kernel_input(ctx, 3)->data, out->data,
                          out->count));
  int64_t last = -1;
  for (int64_t i = 0; i < s.count; ++i) {
    int64_t at = place_of(&s, i);
    if (at < 0) return bad_row(&s, i, NULL);
    if (validate && at == last) return bad_row(&s, i, "repeated");
    if (validate && at < last)
      return bad_row(&s, i, "out of order. Many sparse ops require sorted indices");
    last = at;
    int64_t from = s.values->rank == 0 ? 0 : i;
    WEIR_TRY(weir_elements_copy(dtype, (char*)out->data + (size_t)at * size,
                                (const char*)s.values->data + (size_t)from * size, 1));
  }
  return NULL;
}

// ---- on GPUs ----

WEIR_CUDA_SOURCE(fill);
typedef struct sparse_to_dense_gpu_t {
  weir_cuda_function_t fill;
  weir_scatter_state_t scatter;
} sparse_to_dense_gpu_t;

static weir_status_t* sparse_to_dense_gpu_init(const weir_kernel_init_t* init, void* state) {
  sparse_to_dense_gpu_t* self = state;
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "#define T %s\n",
                     weir_cuda_bytes_name(weir_dtype_size(init->node->output_types[0])));
  WEIR_TRY(weir_cuda_build(init->device, &text, weir_cuda_source_fill, "fill_with", &self->fill));
  return weir_scatter_find(init, WEIR_SCATTER_ASSIGN, 2, 0, &self->scatter);
}

// Values whose indices are out of range are left out; whether those are sorted, nobody looks.
static weir_status_t* sparse_to_dense_gpu(weir_kernel_ctx_t* ctx) {
  const sparse_to_dense_gpu_t* self = ctx->state;
  const weir_tensor_t* value = weir_kernel_input(ctx, 3);
  sparse_t s;
  weir_tensor_t* out = NULL;
  WEIR_TRY(read_sparse(ctx, &s));
  WEIR_TRY(weir_kernel_output(ctx, 0, s.rank, s.dims, &out));
  if (out->count == 0) return NULL;
  _Alignas(16) char element[16] = {0};
  memcpy(element, value->data, weir_dtype_size(weir_tensor_type(value)));
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, out->count / 4 + 1);
  WEIR_TRY(weir_cuda_launch(ctx->device, self->fill, &size,
                            WEIR_CUDA_ARGS(&out->data, &out->count, element)));
  weir_move_places_t places = {
      .indices = s.indices, .count = s.count, .depth = s.rank, .dims = s.dims, .inner = 1};
  return weir_gpu_scatter(ctx, &self->scatter, &places, s.values, s.values->rank == 0, out);
}

static weir_status_t* sparse_to_dense_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t dvalues = weir_grad_node(g, "GatherNd", WEIR_EDGES(dy, weir_grad_input(g, 0)));
  weir_edge_t all = weir_grad_node(g, "Sum", WEIR_EDGES(dy, array_grad_all_axes(g, dy)));
  weir_edge_t listed =
      weir_grad_node(g, "Sum", WEIR_EDGES(dvalues, array_grad_all_axes(g, dvalues)));
  WEIR_TRY(weir_grad_set(g, 2, dvalues));
  return weir_grad_set(g, 3, weir_grad_node(g, "Sub", WEIR_EDGES(all, listed)));
}

const weir_op_module_t weir_ops_array_sparse_to_dense = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseToDense",
         .attrs = "validate_indices: bool = true; T: type; Tindices: {int32, int64}",
         .inputs =
             "sparse_indices: Tindices; output_shape: Tindices; sparse_values: T; default_value: T",
         .outputs = "dense: T",
         .summary = "Puts listed values into a tensor filled with a default.",
         .infer_shape = sparse_to_dense_shape,
         .build_grad = sparse_to_dense_grad,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .compute = sparse_to_dense_cpu, .host_inputs = "output_shape"},
                 {WEIR_DEVICE_GPU, .types = "T: int32, " WEIR_MOVED_TYPES,
                  .compute = sparse_to_dense_gpu, .init = sparse_to_dense_gpu_init,
                  .state_size = sizeof(sparse_to_dense_gpu_t),
                  .host_inputs = "output_shape, default_value"},
                 {0}}},
        {0}}};
