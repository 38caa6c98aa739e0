// at_index.c — GetElementAtIndex: one element without those before it, where datasets have that.
#include "ops/data/background_kernel.h"

weir_status_t* weir_dataset_check_index(const weir_data_t* dataset, int64_t index) {
  int64_t n = weir_dataset_cardinality(dataset);
  if (n < 0)
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "Dataset of type %sDatasetOp::Dataset has %s cardinality, which does not "
                       "support random access.",
                       dataset->vtable->name,
                       n == WEIR_CARDINALITY_INFINITE ? "infinite" : "unknown");
  if (index >= 0 && index < n) return NULL;
  return WEIR_STATUS(OUT_OF_RANGE, "Index out of range [0, %lld):%lld", (long long)n,
                     (long long)index);
}

weir_status_t* weir_dataset_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                                weir_tensor_t** out) {
  if (weir_cancel_is_cancelled(walk->cancel)) return WEIR_STATUS(CANCELLED, "Step was cancelled");
  if (!dataset->vtable->get)
    return WEIR_STATUS(UNIMPLEMENTED,
                       "Random access is not implemented for dataset %sDatasetOp::Dataset",
                       dataset->vtable->name);
  weir_status_t* status = dataset->vtable->get(dataset, walk, index, out);
  if (status) weir_element_clear(out, dataset->count);
  return status;
}

weir_status_t* weir_dataset_get_input(weir_data_t* self, const weir_walk_t* walk, int64_t index,
                                      weir_tensor_t** out) {
  return weir_dataset_get(self->inputs[0], walk, index, out);
}

static weir_status_t* at_index(weir_kernel_ctx_t* ctx) {
  const weir_walk_t walk = weir_step_walk(ctx);
  weir_data_t* dataset = NULL;
  int64_t index = 0;
  WEIR_TRY(weir_dataset_of(weir_kernel_input(ctx, 0), &dataset));
  WEIR_TRY(weir_dataset_int(ctx, 1, "index", &index));
  weir_tensor_t** element = weir_element_create(dataset->count);
  if (!element) return weir_out_of_memory();
  weir_status_t* status = weir_dataset_get(dataset, &walk, index, element);
  if (!status) status = weir_element_output(ctx, element, dataset->count);
  weir_element_free(element, dataset->count);
  return status;
}

static void at_index_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, at_index);
}

const weir_op_module_t weir_ops_data_at_index = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "GetElementAtIndex",
         .attrs = WEIR_DATASET_SPEC,
         .inputs = "dataset: variant; index: int64",
         .outputs = "components: output_types",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | WEIR_OP_UNBOUNDED,
         .summary = "The element at an index, of a dataset that need not be walked over",
         .infer_shape = weir_element_shape,
         .kernels = WEIR_CPU_KERNEL(.compute_async = at_index_cpu)},
        {0}}};
