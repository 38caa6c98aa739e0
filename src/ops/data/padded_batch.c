// padded_batch.c — PaddedBatchDataset, V2: elements stacked, the smaller ones filled up.
#include "kernel/move/move.h"
#include "ops/data/rows.h"
#include "ops/data/state.h"

typedef struct padded_t {
  weir_data_t base;
  int64_t size;
  bool drops_remainder;
  weir_shape_t** shapes;   // one a component; a dimension of -1: as the largest of a batch
  weir_tensor_t** values;  // to fill up with
} padded_t;

// Whether elements fit is seen when there are some.
static weir_status_t* read_shape(const weir_tensor_t* tensor, weir_shape_t** out_shape) {
  if (tensor->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "All padded shapes must be vectors");
  weir_arena_t arena = {0};
  const weir_shape_t* shape =
      weir_shape_make(&arena, (int)tensor->count, WEIR_TENSOR_DATA(tensor, const int64_t));
  *out_shape = shape ? weir_shape_clone(shape) : NULL;
  weir_arena_free(&arena);
  if (!*out_shape) return weir_out_of_memory();
  for (int i = 0; i < (*out_shape)->rank; ++i)
    (*out_shape)->dims[i] = WEIR_MAX(-1, (*out_shape)->dims[i]);
  return NULL;
}

static weir_status_t* read_padding(weir_kernel_ctx_t* ctx, padded_t* self, int count) {
  const weir_data_t* input = self->base.inputs[0];
  self->shapes = weir_calloc((size_t)count, sizeof(*self->shapes));
  self->values = weir_element_create(count);
  if (!self->shapes || !self->values) return weir_out_of_memory();
  for (int i = 0; i < count; ++i)
    WEIR_TRY(read_shape(weir_kernel_input(ctx, 2 + i), &self->shapes[i]));
  for (int i = 0; i < count; ++i) {
    weir_tensor_t* value = ctx->inputs[2 + count + i].tensor;
    if (value->rank != 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "All padding values must be scalars");
    if (weir_tensor_type(value) != input->types[i])
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Mismatched type between padding value %d and input dataset's component "
                         "%d: %s vs. %s",
                         i, i, weir_dtype_name(weir_tensor_type(value)),
                         weir_dtype_name(input->types[i]));
    self->values[i] = weir_tensor_retain(value);
  }
  return NULL;
}

static weir_status_t* padded_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  padded_t* self = (padded_t*)dataset;
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  WEIR_TRY(weir_dataset_int(ctx, 1, "batch_size", &self->size));
  if (self->size <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Batch size must be greater than zero.");
  int count = (int)weir_attrs_int(weir_kernel_attrs(ctx), "N");
  if (count != dataset->count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of padded shapes (%d) must match the number of components in the "
                       "input dataset's elements (%d)",
                       count, dataset->count);
  int values = (int)weir_attrs_list(weir_kernel_attrs(ctx), "Toutput_types")->count;
  if (values != count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of padding values (%d) must match the number of components in the "
                       "input dataset's elements (%d)",
                       values, count);
  if (ctx->input_count > 2 + 2 * count)
    WEIR_TRY(weir_dataset_bool(ctx, 2 + 2 * count, "drop_remainder", &self->drops_remainder));
  WEIR_TRY(read_padding(ctx, self, count));
  dataset->batch_size = self->size;
  bool is_full = self->drops_remainder ||
                 weir_dataset_cardinality(dataset->inputs[0]) == WEIR_CARDINALITY_INFINITE;
  for (int i = 0; i < count; ++i)
    WEIR_TRY(weir_rows_set_shape(dataset, i, is_full ? self->size : -1, self->shapes[i]));
  return NULL;
}

static void padded_deinit(weir_data_t* dataset) {
  padded_t* self = (padded_t*)dataset;
  for (int i = 0; i < dataset->count && self->shapes; ++i) weir_free(self->shapes[i]);
  weir_free(self->shapes);
  weir_element_free(self->values, dataset->count);
}

static int64_t padded_cardinality(const weir_data_t* dataset) {
  const padded_t* self = (const padded_t*)dataset;
  return weir_rows_cardinality(weir_dataset_cardinality(dataset->inputs[0]), self->size,
                               self->drops_remainder);
}

// ---- batches ----

// The sizes that all of a batch's elements fit into.
static weir_status_t* find_dims(const weir_shape_t* shape, weir_tensor_t** const* elements,
                                int64_t count, int i, int64_t* dims) {
  if (shape->rank >= WEIR_MAX_RANK)
    return WEIR_STATUS(INVALID_ARGUMENT, "Cannot batch tensors of rank %d", shape->rank);
  dims[0] = count;
  for (int k = 0; k < shape->rank; ++k) dims[k + 1] = WEIR_MAX(0, shape->dims[k]);
  for (int64_t e = 0; e < count; ++e) {
    const weir_tensor_t* item = elements[e][i];
    if (item->rank != shape->rank)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "All elements in a batch must have the same rank as the padded shape for "
                         "component%d: expected rank %d but got element with rank %d",
                         i, shape->rank, item->rank);
    for (int k = 0; k < shape->rank; ++k) {
      if (shape->dims[k] < 0) dims[k + 1] = WEIR_MAX(dims[k + 1], item->dims[k]);
      else if (item->dims[k] > shape->dims[k])
        return WEIR_STATUS(DATA_LOSS, "Attempted to pad to a smaller size than the input element.");
    }
  }
  return NULL;
}

static weir_status_t* put_in(const weir_tensor_t* item, weir_tensor_t* out, int64_t row) {
  weir_move_dim_t dims[WEIR_MOVE_MAX_RANK];
  if (item->count == 0) return NULL;
  int64_t src = 1, dst = 1;
  for (int k = item->rank - 1; k >= 0; --k) {
    dims[k] = (weir_move_dim_t){.size = item->dims[k], .src_stride = src, .dst_stride = dst};
    src *= item->dims[k];
    dst *= out->dims[k + 1];
  }
  size_t size = weir_dtype_size(weir_tensor_type(item));
  return weir_move_box(NULL, weir_tensor_type(item), item->rank, dims, item->data,
                       (char*)out->data + (size_t)(row * dst) * size);
}

static weir_status_t* stack_padded(const padded_t* self, weir_tensor_t** const* elements,
                                   int64_t count, int i, weir_tensor_t** out) {
  int64_t dims[WEIR_MAX_RANK + 1];
  weir_dtype_t type = self->base.types[i];
  WEIR_TRY(find_dims(self->shapes[i], elements, count, i, dims));
  WEIR_TRY(weir_tensor_create(type, self->shapes[i]->rank + 1, dims, out));
  WEIR_TRY(weir_move_fill(NULL, type, self->values[i]->data, (*out)->data, (*out)->count));
  for (int64_t e = 0; e < count; ++e) WEIR_TRY(put_in(elements[e][i], *out, e));
  return NULL;
}

static weir_status_t* padded_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                  weir_tensor_t** out, bool* out_is_end) {
  const padded_t* self = (const padded_t*)iterator->dataset;
  weir_tensor_t*** elements = NULL;
  int64_t count = 0;
  weir_rows_limit_t limit = {.count = self->size};
  WEIR_TRY(weir_rows_pull(iterator, cancel, limit, &elements, &count, out_is_end));
  *out_is_end = count == 0 || (count < self->size && self->drops_remainder);
  int width = iterator->dataset->count;
  weir_status_t* status = NULL;
  for (int i = 0; i < width && !*out_is_end && !status; ++i)
    status = stack_padded(self, elements, count, i, &out[i]);
  weir_rows_free(elements, count, width);
  return status;
}

static const weir_iterator_vtable_t padded_iterator = {.size = sizeof(weir_iterator_t),
                                                       .start = weir_iterator_start_input,
                                                       .next = padded_next,
                                                       .state = weir_state_inputs};
static const weir_dataset_vtable_t padded_dataset = {.name = "PaddedBatch",
                                                     .size = sizeof(padded_t),
                                                     .init = padded_init,
                                                     .deinit = padded_deinit,
                                                     .cardinality = padded_cardinality,
                                                     .iterator = &padded_iterator};

static weir_status_t* padded_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &padded_dataset);
}

#define ATTRS                                                                      \
  "Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; N: int >= 1; " \
  "metadata: string = ''"
#define INPUTS                                                            \
  "input_dataset: variant; batch_size: int64; padded_shapes: N * int64; " \
  "padding_values: Toutput_types"

const weir_op_module_t weir_ops_data_padded_batch = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "PaddedBatchDataset",
                                    .attrs = ATTRS,
                                    .inputs = INPUTS,
                                    .outputs = "handle: variant",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "Elements stacked, the smaller ones filled up",
                                    .infer_shape = weir_dataset_shape,
                                    .kernels = WEIR_DATASET_KERNEL(padded_cpu)},
                                   {.name = "PaddedBatchDatasetV2",
                                    .attrs = "parallel_copy: bool = false; " ATTRS,
                                    .inputs = INPUTS "; drop_remainder: bool",
                                    .outputs = "handle: variant",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "Elements stacked, the smaller ones filled up",
                                    .infer_shape = weir_dataset_shape,
                                    .kernels = WEIR_DATASET_KERNEL(padded_cpu)},
                                   {0}}};
