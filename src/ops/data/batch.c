// batch.c — BatchDataset, BatchDatasetV2, ParallelBatchDataset: elements stacked.
#include "ops/data/map.h"
#include "ops/data/rows.h"

typedef struct batch_t {
  weir_data_t base;
  int64_t size;
  bool drops_remainder;
  bool is_fused;  // with the map below, as TensorFlow does: a batch fails as a whole
} batch_t;

static weir_status_t* set_components(weir_data_t* dataset) {
  const batch_t* self = (const batch_t*)dataset;
  const weir_data_t* input = dataset->inputs[0];
  if (self->size <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Batch size must be greater than zero.");
  WEIR_TRY(weir_dataset_set_like(input, dataset));
  bool is_full =
      self->drops_remainder || weir_dataset_cardinality(input) == WEIR_CARDINALITY_INFINITE;
  for (int i = 0; i < dataset->count; ++i)
    WEIR_TRY(weir_rows_set_shape(dataset, i, is_full ? self->size : -1, input->shapes[i]));
  return NULL;
}

static weir_status_t* batch_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  batch_t* self = (batch_t*)dataset;
  WEIR_TRY(weir_dataset_set_inputs(ctx, 0, 1, dataset));
  WEIR_TRY(weir_dataset_int(ctx, 1, "batch_size", &self->size));
  int last = ctx->input_count - 1;  // where there is one beside the size
  if (last > 1) WEIR_TRY(weir_dataset_bool(ctx, last, "drop_remainder", &self->drops_remainder));
  self->is_fused = last < 3 && weir_map_is_fusible(dataset->inputs[0]);
  WEIR_TRY(set_components(dataset));
  dataset->batch_size = self->size;
  return NULL;
}

// TensorFlow neither looks into these nor has single elements of them.
static weir_status_t* parallel_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(batch_init(ctx, dataset));
  dataset->batch_size = 0;
  return NULL;
}

static int64_t batch_cardinality(const weir_data_t* dataset) {
  const batch_t* self = (const batch_t*)dataset;
  return weir_rows_cardinality(weir_dataset_cardinality(dataset->inputs[0]), self->size,
                               self->drops_remainder);
}

static weir_status_t* batch_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                                weir_tensor_t** out) {
  const batch_t* self = (const batch_t*)dataset;
  weir_data_t* input = dataset->inputs[0];
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  int64_t begin = index * self->size, count = 0;
  int64_t limit = WEIR_MIN(self->size, weir_dataset_cardinality(input) - begin);
  weir_tensor_t*** elements = NULL;
  size_t capacity = 0;
  weir_status_t* status = NULL;
  while (!status && count < limit) {
    weir_tensor_t** element = weir_element_create(dataset->count);
    bool has_place = element && WEIR_GROW(elements, capacity, (size_t)count + 1);
    status =
        has_place ? weir_dataset_get(input, walk, begin + count, element) : weir_out_of_memory();
    if (status) weir_element_free(element, dataset->count);
    else elements[count++] = element;
  }
  if (!status) status = weir_rows_stack(elements, count, dataset->count, out);
  weir_rows_free(elements, count, dataset->count);
  return status;
}

typedef struct batch_iterator_t {
  weir_iterator_t base;
  bool has_filled;  // the last batch was whole
} batch_iterator_t;

// Stacks what was pulled, unless there is too little of it. What cannot be stacked is seen before
// it is dropped where TensorFlow maps into the batch.
static weir_status_t* finish(batch_iterator_t* self, bool is_mapped_into, weir_stack_t* stack,
                             weir_tensor_t** out, bool* out_is_end) {
  const batch_t* batch = (const batch_t*)self->base.dataset;
  bool is_dropped = stack->count < batch->size && batch->drops_remainder;
  weir_status_t* status = NULL;
  self->has_filled = stack->count == batch->size;
  if (stack->count > 0 && (!is_dropped || is_mapped_into)) status = weir_stack_finish(stack, out);
  *out_is_end = stack->count == 0 || (is_dropped && !status);
  if (*out_is_end) weir_element_clear(out, self->base.dataset->count);
  return status;
}

// Elements are copied into the batch as they come where one as large has been filled before: until
// then nobody knows that there are so many, and memory for them is not asked for.
static weir_status_t* batch_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                 weir_tensor_t** out, bool* out_is_end) {
  batch_iterator_t* self = (batch_iterator_t*)iterator;
  const batch_t* batch = (const batch_t*)iterator->dataset;
  const int width = iterator->dataset->count;
  weir_tensor_t*** elements = NULL;
  int64_t count = 0;
  weir_stack_t stack;
  WEIR_TRY(weir_stack_init(&stack, batch->size, width));
  weir_rows_limit_t limit = {.count = batch->size,
                             .takes_all = batch->is_fused && iterator->place,
                             .stack = self->has_filled ? &stack : NULL};
  weir_status_t* status = weir_rows_pull(iterator, cancel, limit, &elements, &count, out_is_end);
  if (!status && !self->has_filled) {
    stack.rows = count;
    for (int64_t i = 0; i < count; ++i) weir_stack_add(&stack, elements[i]);
    weir_rows_free(elements, count, width);
  }
  if (!status) status = finish(self, limit.takes_all, &stack, out, out_is_end);
  weir_stack_free(&stack);
  return status;
}

static const weir_iterator_vtable_t batch_iterator = {.size = sizeof(batch_iterator_t),
                                                      .start = weir_iterator_start_input,
                                                      .next = batch_next,
                                                      .state = weir_state_inputs};
static const weir_dataset_vtable_t batch_dataset = {.name = "Batch",
                                                    .size = sizeof(batch_t),
                                                    .init = batch_init,
                                                    .cardinality = batch_cardinality,
                                                    .get = batch_get,
                                                    .iterator = &batch_iterator};
static const weir_dataset_vtable_t parallel_dataset = {.name = "ParallelBatch",
                                                       .size = sizeof(batch_t),
                                                       .init = parallel_init,
                                                       .cardinality = batch_cardinality,
                                                       .iterator = &batch_iterator};

static weir_status_t* batch_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &batch_dataset);
}

static weir_status_t* parallel_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &parallel_dataset);
}

const weir_op_module_t weir_ops_data_batch = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "BatchDataset",
         .attrs = WEIR_DATASET_ATTRS,
         .inputs = "input_dataset: variant; batch_size: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Elements stacked, batch_size at a time",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(batch_cpu)},
        {.name = "BatchDatasetV2",
         .attrs = "parallel_copy: bool = false; " WEIR_DATASET_ATTRS,
         .inputs = "input_dataset: variant; batch_size: int64; drop_remainder: bool",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Elements stacked, batch_size at a time",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(batch_cpu)},
        {.name = "ParallelBatchDataset",
         .attrs = "parallel_copy: bool = false; " WEIR_DATASET_SPEC
                  "; deterministic: string = 'default'; metadata: string = ''",
         .inputs = "input_dataset: variant; batch_size: int64; num_parallel_calls: int64; "
                   "drop_remainder: bool",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Elements stacked, batch_size at a time",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(parallel_cpu)},
        {0}}};
