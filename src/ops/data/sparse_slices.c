// sparse_slices.c — SparseTensorSliceDataset: the rows of a sparse tensor, also those without
// values.
#include "ops/data/state.h"
#include "ops/sparse/batch.h"

typedef struct slices_t {
  weir_data_t base;
  weir_tensor_t* parts[3];  // indices, values, shape
} slices_t;

typedef struct slices_iterator_t {
  weir_iterator_t base;
  int64_t row;  // the next
  int64_t at;   // in the values
} slices_iterator_t;

static weir_status_t* check_parts(const weir_sparse_t* s) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (s->indices->rank != 2)
    return WEIR_STATUS(INVALID_ARGUMENT, "Input indices must be a matrix. Got: %s",
                       weir_tensor_shape_text(s->indices, text));
  if (s->values->rank != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "Input values must be a vector. Got: %s",
                       weir_tensor_shape_text(s->values, text));
  if (s->shape->rank != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "Input shape must be a vector. Got: %s",
                       weir_tensor_shape_text(s->shape, text));
  if (s->indices->dims[0] != s->values->count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of values must match first dimension of indices. Got %lld values, "
                       "indices shape: %s",
                       (long long)s->values->count, weir_tensor_shape_text(s->indices, text));
  if (s->indices->dims[1] != s->shape->count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of dimensions must match second dimension of indices. Got %lld "
                       "dimensions, indices shape: %s",
                       (long long)s->shape->count, weir_tensor_shape_text(s->indices, text));
  if (s->shape->count == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "The shape argument requires at least one element.");
  return NULL;
}

static weir_status_t* check_ordered(const weir_sparse_t* s) {
  for (int64_t i = 1; i < s->count; ++i) {
    if (weir_sparse_row(s, i)[0] < weir_sparse_row(s, i - 1)[0])
      return WEIR_STATUS(UNIMPLEMENTED,
                         "The SparseTensor must be ordered in the batch dimension; handling "
                         "arbitrarily ordered input is not currently supported.");
  }
  return NULL;
}

static weir_sparse_t sparse_of(const slices_t* self) {
  weir_sparse_t s;
  weir_sparse_get(self->parts[0], self->parts[1], self->parts[2], &s);
  return s;
}

static weir_status_t* slices_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  slices_t* self = (slices_t*)dataset;
  for (int i = 0; i < 3; ++i) self->parts[i] = weir_tensor_retain(ctx->inputs[i].tensor);
  weir_sparse_t s = sparse_of(self);
  WEIR_TRY(check_parts(&s));
  int64_t product = 0;
  WEIR_TRY(weir_sparse_check_dims(s.dims, s.rank, &product));
  WEIR_TRY(check_ordered(&s));
  const weir_dtype_t types[] = {WEIR_DTYPE_INT64, weir_tensor_type(s.values), WEIR_DTYPE_INT64};
  WEIR_TRY(weir_dataset_set_components(3, types, dataset));
  WEIR_TRY(weir_dataset_set_shape(dataset, 0, 2, (const int64_t[]){-1, s.rank - 1}));
  WEIR_TRY(weir_dataset_set_shape(dataset, 1, 1, (const int64_t[]){-1}));
  return weir_dataset_set_shape(dataset, 2, 1, (const int64_t[]){s.rank - 1});
}

static void slices_deinit(weir_data_t* dataset) {
  for (int i = 0; i < 3; ++i) weir_tensor_release(((slices_t*)dataset)->parts[i]);
}

static int64_t slices_cardinality(const weir_data_t* dataset) {
  return *WEIR_TENSOR_DATA(((const slices_t*)dataset)->parts[2], const int64_t);
}

// Values of rows outside of the shape are in no element, nor are those behind them.
static weir_status_t* slices_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                  weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  slices_iterator_t* self = (slices_iterator_t*)iterator;
  const weir_sparse_t s = sparse_of((const slices_t*)iterator->dataset);
  *out_is_end = self->row >= s.dims[0];
  if (*out_is_end) return NULL;
  int64_t begin = self->at;
  while (self->at < s.count && weir_sparse_row(&s, self->at)[0] == self->row) ++self->at;
  ++self->row;
  return weir_sparse_cut_row(&s, begin, self->at, out);
}

static void slices_state(weir_iterator_t* iterator, weir_state_t* state) {
  slices_iterator_t* self = (slices_iterator_t*)iterator;
  weir_state_int(state, "row", &self->row, 0, INT64_MAX);
  weir_state_int(state, "at", &self->at, 0, sparse_of((const slices_t*)iterator->dataset).count);
}

static const weir_iterator_vtable_t slices_iterator = {
    .size = sizeof(slices_iterator_t), .next = slices_next, .state = slices_state};
static const weir_dataset_vtable_t slices_dataset = {.name = "SparseTensorSlice",
                                                     .size = sizeof(slices_t),
                                                     .init = slices_init,
                                                     .deinit = slices_deinit,
                                                     .cardinality = slices_cardinality,
                                                     .iterator = &slices_iterator};

static weir_status_t* slices_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &slices_dataset);
}

const weir_op_module_t weir_ops_data_sparse_slices = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseTensorSliceDataset",
         .attrs = "Tvalues: type",
         .inputs = "indices: int64; values: Tvalues; dense_shape: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The rows of a sparse tensor",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(slices_cpu)},
        {0}}};
