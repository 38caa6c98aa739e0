// tensors.c — TensorDataset, TensorSliceDataset: given tensors, as one element or row by row.
#include "ops/data/rows.h"
#include "ops/data/state.h"

typedef struct tensors_t {
  weir_data_t base;
  weir_tensor_t** items;  // one a component
} tensors_t;

typedef struct tensors_iterator_t {
  weir_iterator_t base;
  int64_t next;
} tensors_iterator_t;

static weir_status_t* keep_inputs(weir_kernel_ctx_t* ctx, tensors_t* self) {
  weir_data_t* dataset = &self->base;
  WEIR_TRY(weir_dataset_set_components(ctx->input_count, ctx->node->input_types, dataset));
  self->items = weir_element_create(dataset->count);
  if (!self->items) return weir_out_of_memory();
  for (int i = 0; i < dataset->count; ++i)
    self->items[i] = weir_tensor_retain(ctx->inputs[i].tensor);
  return NULL;
}

static void tensors_deinit(weir_data_t* dataset) {
  weir_element_free(((tensors_t*)dataset)->items, dataset->count);
}

// The shapes that the node declares must allow those that the elements have.
static weir_status_t* check_declared(weir_kernel_ctx_t* ctx, const weir_data_t* dataset) {
  const weir_attr_t* shapes = weir_attrs_list(weir_kernel_attrs(ctx), "output_shapes");
  return weir_components_check_shapes((int)shapes->count, shapes->u.shapes, dataset->count,
                                      (const weir_shape_t* const*)dataset->shapes);
}

static void tensors_state(weir_iterator_t* iterator, weir_state_t* state) {
  weir_state_int(state, "next", &((tensors_iterator_t*)iterator)->next, 0, INT64_MAX);
}

// ---- TensorDataset ----

static weir_status_t* tensor_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  tensors_t* self = (tensors_t*)dataset;
  WEIR_TRY(keep_inputs(ctx, self));
  for (int i = 0; i < dataset->count; ++i)
    WEIR_TRY(weir_dataset_set_shape(dataset, i, self->items[i]->rank, self->items[i]->dims));
  return check_declared(ctx, dataset);
}

static int64_t tensor_cardinality(const weir_data_t* dataset) {
  (void)dataset;
  return 1;
}

static weir_status_t* tensor_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                                 weir_tensor_t** out) {
  (void)walk;
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  weir_element_share(((tensors_t*)dataset)->items, out, dataset->count);
  return NULL;
}

static weir_status_t* tensor_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                  weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  tensors_iterator_t* self = (tensors_iterator_t*)iterator;
  *out_is_end = self->next++ > 0;
  if (!*out_is_end)
    weir_element_share(((tensors_t*)iterator->dataset)->items, out, iterator->dataset->count);
  return NULL;
}

static const weir_iterator_vtable_t tensor_iterator = {
    .size = sizeof(tensors_iterator_t), .next = tensor_next, .state = tensors_state};
static const weir_dataset_vtable_t tensor_dataset = {.name = "Tensor",
                                                     .size = sizeof(tensors_t),
                                                     .init = tensor_init,
                                                     .deinit = tensors_deinit,
                                                     .cardinality = tensor_cardinality,
                                                     .get = tensor_get,
                                                     .iterator = &tensor_iterator};

static weir_status_t* tensor_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &tensor_dataset);
}

// ---- TensorSliceDataset ----

static weir_status_t* slice_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  tensors_t* self = (tensors_t*)dataset;
  WEIR_TRY(keep_inputs(ctx, self));
  for (int i = 0; i < dataset->count; ++i) {
    const weir_tensor_t* item = self->items[i];
    if (item->rank == 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "All components must be at least 1-dimensional");
    if (item->dims[0] != self->items[0]->dims[0])
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "All components must have the same size in the 0th dimension");
    WEIR_TRY(weir_dataset_set_shape(dataset, i, item->rank - 1, item->dims + 1));
  }
  return check_declared(ctx, dataset);
}

static int64_t slice_cardinality(const weir_data_t* dataset) {
  return ((const tensors_t*)dataset)->items[0]->dims[0];
}

static weir_status_t* slice_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                                weir_tensor_t** out) {
  (void)walk;
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  for (int i = 0; i < dataset->count; ++i)
    WEIR_TRY(weir_row_create(((const tensors_t*)dataset)->items[i], index, &out[i]));
  return NULL;
}

static weir_status_t* slice_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                 weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  tensors_iterator_t* self = (tensors_iterator_t*)iterator;
  const tensors_t* tensors = (const tensors_t*)iterator->dataset;
  *out_is_end = self->next >= tensors->items[0]->dims[0];
  for (int i = 0; i < iterator->dataset->count && !*out_is_end; ++i)
    WEIR_TRY(weir_row_create(tensors->items[i], self->next, &out[i]));
  if (!*out_is_end) ++self->next;
  return NULL;
}

static const weir_iterator_vtable_t slice_iterator = {
    .size = sizeof(tensors_iterator_t), .next = slice_next, .state = tensors_state};
static const weir_dataset_vtable_t slice_dataset = {.name = "TensorSlice",
                                                    .size = sizeof(tensors_t),
                                                    .init = slice_init,
                                                    .deinit = tensors_deinit,
                                                    .cardinality = slice_cardinality,
                                                    .get = slice_get,
                                                    .iterator = &slice_iterator};

static weir_status_t* slice_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &slice_dataset);
}

const weir_op_module_t weir_ops_data_tensors = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "TensorDataset",
         .attrs = "Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
                  "metadata: string = ''",
         .inputs = "components: Toutput_types",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Given tensors as the one element",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(tensor_cpu)},
        {.name = "TensorSliceDataset",
         .attrs = "Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; "
                  "is_files: bool = false; metadata: string = ''; "
                  "replicate_on_split: bool = false",
         .inputs = "components: Toutput_types",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The rows of given tensors",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(slice_cpu)},
        {0}}};
