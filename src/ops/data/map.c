// map.c — MapDataset: a function on every element.
#include "ops/data/map.h"

weir_status_t* weir_map_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  weir_map_dataset_t* self = (weir_map_dataset_t*)dataset;
  WEIR_TRY(weir_dataset_init_declared(ctx, dataset));
  self->keeps_cardinality = weir_attrs_bool(weir_kernel_attrs(ctx), "preserve_cardinality");
  return weir_captured_init(ctx, "f", 1, weir_captured_count(ctx, "Targuments"), &self->function);
}

void weir_map_deinit(weir_data_t* dataset) {
  weir_captured_deinit(&((weir_map_dataset_t*)dataset)->function);
}

int64_t weir_map_cardinality(const weir_data_t* dataset) {
  return ((const weir_map_dataset_t*)dataset)->keeps_cardinality
             ? weir_dataset_cardinality(dataset->inputs[0])
             : WEIR_CARDINALITY_UNKNOWN;
}

weir_status_t* weir_map_parallel_calls(weir_kernel_ctx_t* ctx, int i, int64_t* out_calls) {
  WEIR_TRY(weir_dataset_int(ctx, i, "num_parallel_calls", out_calls));
  if (*out_calls == -1) *out_calls = weir_pool_thread_count(weir_kernel_pool(ctx));
  if (*out_calls > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "num_parallel_calls must be greater than zero.");
}

weir_status_t* weir_map_finish(const weir_data_t* dataset, weir_status_t* take_status,
                               bool* out_is_end) {
  if (weir_status_code(take_status) != WEIR_OUT_OF_RANGE)
    return weir_captured_blame(dataset, take_status);
  weir_status_t* status = NULL;
  if (((const weir_map_dataset_t*)dataset)->keeps_cardinality)
    status = WEIR_STATUS(INVALID_ARGUMENT, "Function invocation produced OutOfRangeError: %s",
                         weir_status_message(take_status));
  else *out_is_end = true;
  weir_status_destroy(take_status);
  return status;
}

static weir_status_t* map_next(weir_iterator_t* self, weir_cancel_t* cancel, weir_tensor_t** out,
                               bool* out_is_end) {
  const weir_map_dataset_t* map = (const weir_map_dataset_t*)self->dataset;
  int width = self->dataset->inputs[0]->count;
  weir_tensor_t** element = weir_element_create(width);
  if (!element) return weir_out_of_memory();
  weir_status_t* status = weir_iterator_pull(self, 0, cancel, element, out_is_end);
  if (!status && !*out_is_end) {
    weir_results_t results = {
        .count = self->dataset->count, .types = self->dataset->types, .items = out};
    status = weir_captured_call(&map->function, self->walk, cancel, element, width, &results);
    status = weir_map_finish(self->dataset, status, out_is_end);
  }
  weir_element_free(element, width);
  return status;
}

weir_status_t* weir_map_get(weir_data_t* self, const weir_walk_t* walk, int64_t index,
                            weir_tensor_t** out) {
  int width = self->inputs[0]->count;
  weir_tensor_t** element = weir_element_create(width);
  if (!element) return weir_out_of_memory();
  weir_status_t* status = weir_dataset_get(self->inputs[0], walk, index, element);
  weir_results_t results = {.count = self->count, .types = self->types, .items = out};
  if (!status)
    status = weir_captured_call(&((weir_map_dataset_t*)self)->function, walk, walk->cancel, element,
                                width, &results);
  weir_element_free(element, width);
  return status;
}

static void map_state(weir_iterator_t* iterator, weir_state_t* state) {
  weir_captured_state(&((const weir_map_dataset_t*)iterator->dataset)->function, iterator, state);
  weir_state_inputs(iterator, state);
}

const weir_iterator_vtable_t weir_map_iterator = {.size = sizeof(weir_iterator_t),
                                                  .start = weir_iterator_start_input,
                                                  .next = map_next,
                                                  .state = map_state,
                                                  .may_resume = true};
static const weir_dataset_vtable_t map_dataset = {.name = "Map",
                                                  .size = sizeof(weir_map_dataset_t),
                                                  .init = weir_map_init,
                                                  .deinit = weir_map_deinit,
                                                  .cardinality = weir_map_cardinality,
                                                  .get = weir_map_get,
                                                  .iterator = &weir_map_iterator};

static weir_status_t* map_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &map_dataset);
}

const weir_op_module_t weir_ops_data_map = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MapDataset",
         .attrs = "f: func; Targuments: list(type) >= 0; " WEIR_DATASET_SPEC
                  "; use_inter_op_parallelism: bool = true; preserve_cardinality: bool = false; "
                  "force_synchronous: bool = false; metadata: string = ''",
         .inputs = "input_dataset: variant; other_arguments: Targuments",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The results of a function on every element",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(map_cpu)},
        {0}}};
