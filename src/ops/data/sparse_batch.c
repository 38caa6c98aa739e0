// sparse_batch.c — DenseToSparseBatchDataset: elements of different sizes in one sparse tensor.
#include "kernel/move/move.h"
#include "ops/data/rows.h"
#include "ops/data/state.h"
#include "tensor/parcel.h"

typedef struct sparse_batch_t {
  weir_data_t base;
  int64_t size;
  int64_t row_dims[WEIR_MAX_RANK];  // -1: that of the largest element
  int row_rank;
} sparse_batch_t;

static weir_status_t* read_row_shape(weir_kernel_ctx_t* ctx, sparse_batch_t* self) {
  const weir_tensor_t* row = weir_kernel_input(ctx, 2);
  if (row->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "row_shape must be a vector");
  if (row->count >= WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "row_shape has too many dimensions: %lld",
                       (long long)row->count);
  self->row_rank = (int)row->count;
  for (int i = 0; i < self->row_rank; ++i) {
    self->row_dims[i] = WEIR_TENSOR_DATA(row, const int64_t)[i];
    if (self->row_dims[i] < -1)
      return WEIR_STATUS(INVALID_ARGUMENT, "Dimension %lld must be >= -1",
                         (long long)self->row_dims[i]);
  }
  return NULL;
}

static weir_status_t* sparse_batch_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  sparse_batch_t* self = (sparse_batch_t*)dataset;
  WEIR_TRY(weir_dataset_set_inputs(ctx, 0, 1, dataset));
  if (dataset->inputs[0]->count != 1)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "DenseToSparseBatchDataset only supports inputs with a single component.");
  WEIR_TRY(weir_dataset_int(ctx, 1, "batch_size", &self->size));
  if (self->size <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Batch size must be greater than zero.");
  WEIR_TRY(read_row_shape(ctx, self));
  int64_t dims[WEIR_MAX_RANK] = {-1};
  for (int i = 0; i < self->row_rank; ++i) dims[i + 1] = self->row_dims[i];
  WEIR_TRY(weir_dataset_set_components(1, (const weir_dtype_t[]){WEIR_DTYPE_VARIANT}, dataset));
  return weir_dataset_set_shape(dataset, 0, self->row_rank + 1, dims);
}

static int64_t sparse_batch_cardinality(const weir_data_t* dataset) {
  return weir_rows_cardinality(weir_dataset_cardinality(dataset->inputs[0]),
                               ((const sparse_batch_t*)dataset)->size, false);
}

// |dims| of a row grow to those of |item| where they are free.
static weir_status_t* fit(const sparse_batch_t* self, const weir_tensor_t* item, int64_t* dims) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (item->rank != self->row_rank)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input element had shape (%s) that is incompatible with the row shape",
                       weir_tensor_shape_text(item, text));
  for (int i = 0; i < self->row_rank; ++i) {
    if (self->row_dims[i] < 0) dims[i] = WEIR_MAX(dims[i], item->dims[i]);
    else if (item->dims[i] > dims[i])
      return WEIR_STATUS(DATA_LOSS,
                         "Input element had shape (%s) that is larger than the row shape",
                         weir_tensor_shape_text(item, text));
  }
  return NULL;
}

static void write_indices(const weir_tensor_t* item, int64_t row, int64_t* index) {
  int64_t at[WEIR_MAX_RANK] = {0};
  for (int64_t i = 0; i < item->count; ++i) {
    *index++ = row;
    for (int k = 0; k < item->rank; ++k) *index++ = at[k];
    for (int k = item->rank - 1; k >= 0 && ++at[k] == item->dims[k]; --k) at[k] = 0;
  }
}

// Puts indices, values and shape of |count| elements into |parts|; those made are the caller's.
static weir_status_t* join(const sparse_batch_t* self, weir_tensor_t*** elements, int64_t count,
                           const int64_t* dims, weir_tensor_t** parts) {
  int64_t total = 0, width = self->row_rank + 1;
  const weir_dtype_t type = self->base.inputs[0]->types[0];
  for (int64_t e = 0; e < count; ++e) total += elements[e][0]->count;
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_INT64, 2, (const int64_t[]){total, width}, &parts[0]));
  WEIR_TRY(weir_tensor_create(type, 1, &total, &parts[1]));
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_INT64, 1, &width, &parts[2]));
  int64_t at = 0;
  for (int64_t e = 0; e < count; ++e) {
    const weir_tensor_t* item = elements[e][0];
    write_indices(item, e, WEIR_TENSOR_DATA(parts[0], int64_t) + at * width);
    void* to = (char*)parts[1]->data + (size_t)at * weir_dtype_size(type);
    if (item->count > 0) WEIR_TRY(weir_move_copy(NULL, type, item->data, to, item->count));
    at += item->count;
  }
  int64_t* shape = WEIR_TENSOR_DATA(parts[2], int64_t);
  shape[0] = count;
  for (int i = 0; i < self->row_rank; ++i) shape[i + 1] = dims[i];
  return NULL;
}

// Up to a batch of elements; one that does not fit ends it, and is lost with those before it.
static weir_status_t* pull_rows(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                weir_tensor_t**** elements, int64_t* out_count, int64_t* dims) {
  const sparse_batch_t* self = (const sparse_batch_t*)iterator->dataset;
  size_t capacity = 0;
  while (*out_count < self->size) {
    bool is_end = false;
    if (!WEIR_GROW(*elements, capacity, (size_t)*out_count + 1)) return weir_out_of_memory();
    weir_tensor_t** element = (*elements)[*out_count] = weir_element_create(1);
    if (!element) return weir_out_of_memory();
    weir_status_t* status = weir_iterator_pull(iterator, 0, cancel, element, &is_end);
    if (status || is_end) weir_element_free(element, 1);
    if (status || is_end) return status;
    ++*out_count;
    WEIR_TRY(fit(self, element[0], dims));
  }
  return NULL;
}

static weir_status_t* wrap(weir_tensor_t** parts, weir_tensor_t** out) {
  WEIR_TRY(weir_tensor_create(WEIR_DTYPE_VARIANT, 1, (const int64_t[]){3}, out));
  for (int i = 0; i < 3; ++i) {
    weir_parcel_t* parcel = NULL;
    WEIR_TRY(weir_parcel_create(&weir_tensor_variant_type, 1, &parcel));
    parcel->items[0] = weir_tensor_retain(parts[i]);
    weir_parcel_put(*out, i, parcel);
  }
  return NULL;
}

static weir_status_t* sparse_batch_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                        weir_tensor_t** out, bool* out_is_end) {
  const sparse_batch_t* self = (const sparse_batch_t*)iterator->dataset;
  weir_tensor_t*** elements = NULL;
  weir_tensor_t* parts[3] = {NULL, NULL, NULL};
  int64_t dims[WEIR_MAX_RANK], count = 0;
  for (int i = 0; i < self->row_rank; ++i) dims[i] = WEIR_MAX(self->row_dims[i], 0);
  weir_status_t* status = pull_rows(iterator, cancel, &elements, &count, dims);
  *out_is_end = !status && count == 0;
  if (!status && !*out_is_end) status = join(self, elements, count, dims, parts);
  if (!status && !*out_is_end) status = wrap(parts, out);
  weir_element_clear(parts, 3);
  weir_rows_free(elements, count, 1);
  return status;
}

static const weir_iterator_vtable_t sparse_batch_iterator = {.size = sizeof(weir_iterator_t),
                                                             .start = weir_iterator_start_input,
                                                             .next = sparse_batch_next,
                                                             .state = weir_state_inputs};
static const weir_dataset_vtable_t sparse_batch_dataset = {.name = "DenseToSparseBatch",
                                                           .size = sizeof(sparse_batch_t),
                                                           .init = sparse_batch_init,
                                                           .cardinality = sparse_batch_cardinality,
                                                           .iterator = &sparse_batch_iterator};

static weir_status_t* sparse_batch_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &sparse_batch_dataset);
}

const weir_op_module_t weir_ops_data_sparse_batch = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DenseToSparseBatchDataset",
         .attrs = WEIR_DATASET_SPEC,
         .inputs = "input_dataset: variant; batch_size: int64; row_shape: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Elements of different sizes in sparse tensors",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(sparse_batch_cpu)},
        {0}}};
