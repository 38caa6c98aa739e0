// map_and_batch.c — MapAndBatchDataset: a function on several elements at a time, and what it makes
// stacked.
#include "ops/data/map.h"
#include "ops/data/rows.h"

typedef struct fused_t {
  weir_data_t base;  // its input is a dataset that maps
  int64_t size;
  bool drops_remainder;
} fused_t;

static const weir_dataset_vtable_t mapping_dataset = {.name = "MapAndBatch",
                                                      .size = sizeof(weir_map_dataset_t),
                                                      .init = weir_map_init,
                                                      .deinit = weir_map_deinit,
                                                      .cardinality = weir_map_cardinality,
                                                      .iterator = &weir_parallel_map_iterator};

// Puts a dataset that maps below this one. Shapes that the node declares are those of batches.
static weir_status_t* put_mapping(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  int first = ctx->input_count - 3;
  weir_data_t* mapping = NULL;
  dataset->inputs = weir_calloc(1, sizeof(*dataset->inputs));
  if (!dataset->inputs) return weir_out_of_memory();
  WEIR_TRY(weir_dataset_create(&mapping_dataset, &mapping));
  dataset->inputs[dataset->input_count++] = mapping;
  WEIR_TRY(weir_map_init(ctx, mapping));
  for (int i = 0; i < mapping->count; ++i) WEIR_TRY(weir_dataset_set_shape(mapping, i, -1, NULL));
  return weir_map_parallel_calls(ctx, first + 1, &((weir_map_dataset_t*)mapping)->parallel_calls);
}

static weir_status_t* fused_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  fused_t* self = (fused_t*)dataset;
  int first = ctx->input_count - 3;  // the captured values come before
  WEIR_TRY(weir_dataset_int(ctx, first, "batch_size", &self->size));
  if (self->size <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "batch_size must be greater than zero.");
  dataset->batch_size = self->size;
  WEIR_TRY(weir_dataset_bool(ctx, first + 2, "drop_remainder", &self->drops_remainder));
  WEIR_TRY(weir_dataset_set_attrs(ctx, "output_types", "output_shapes", dataset));
  return put_mapping(ctx, dataset);
}

static int64_t fused_cardinality(const weir_data_t* dataset) {
  const fused_t* self = (const fused_t*)dataset;
  return weir_rows_cardinality(weir_dataset_cardinality(dataset->inputs[0]), self->size,
                               self->drops_remainder);
}

static weir_status_t* fused_next(weir_iterator_t* self, weir_cancel_t* cancel, weir_tensor_t** out,
                                 bool* out_is_end) {
  const fused_t* fused = (const fused_t*)self->dataset;
  weir_tensor_t*** elements = NULL;
  int64_t count = 0;
  weir_rows_limit_t limit = {.count = fused->size, .takes_all = true};
  WEIR_TRY(weir_rows_pull(self, cancel, limit, &elements, &count, out_is_end));
  // What cannot be stacked is seen before it is dropped.
  weir_status_t* status =
      count == 0 ? NULL : weir_rows_stack(elements, count, self->dataset->count, out);
  bool is_dropped = count < fused->size && fused->drops_remainder;
  *out_is_end = count == 0 || (is_dropped && !status);
  if (*out_is_end) weir_element_clear(out, self->dataset->count);
  weir_rows_free(elements, count, self->dataset->count);
  return status;
}

static const weir_iterator_vtable_t fused_iterator = {.size = sizeof(weir_iterator_t),
                                                      .start = weir_iterator_start_input,
                                                      .next = fused_next,
                                                      .state = weir_state_inputs};
static const weir_dataset_vtable_t fused_dataset = {.name = "MapAndBatch",
                                                    .size = sizeof(fused_t),
                                                    .init = fused_init,
                                                    .cardinality = fused_cardinality,
                                                    .iterator = &fused_iterator};

static weir_status_t* fused_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &fused_dataset);
}

const weir_op_module_t weir_ops_data_map_and_batch = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MapAndBatchDataset",
         .attrs = "f: func; Targuments: list(type) >= 0; " WEIR_DATASET_SPEC
                  "; preserve_cardinality: bool = false; metadata: string = ''",
         .inputs = "input_dataset: variant; other_arguments: Targuments; batch_size: int64; "
                   "num_parallel_calls: int64; drop_remainder: bool",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The results of a function on every element, stacked to batches",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(fused_cpu)},
        {0}}};
