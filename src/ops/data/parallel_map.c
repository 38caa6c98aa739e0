// parallel_map.c — ParallelMapDataset, V2: a function on several elements at a
// time; results come in the order of the elements.
#include "ops/data/ahead.h"
#include "ops/data/map.h"

typedef struct parallel_iterator_t {
  weir_iterator_t base;
  weir_ahead_t ahead;
} parallel_iterator_t;

enum { MOST_KEPT = 1 << 16 };

static void call_function(void* arg, weir_ahead_entry_t* entry) {
  parallel_iterator_t* self = arg;
  const weir_data_t* dataset = self->base.dataset;
  const weir_map_dataset_t* map = (const weir_map_dataset_t*)dataset;
  int width = dataset->inputs[0]->count;
  weir_tensor_t** out = weir_element_create(dataset->count);
  weir_results_t results = {.count = dataset->count, .types = dataset->types, .items = out};
  entry->status = out ? weir_captured_call(&map->function, self->base.walk, self->ahead.cancel,
                                           entry->element, width, &results)
                      : weir_out_of_memory();
  entry->status = weir_map_finish(dataset, entry->status, &entry->is_end);
  weir_element_free(entry->element, width);
  entry->element = out;
}

// ---- the iterator ----

static weir_status_t* parallel_start(weir_iterator_t* iterator) {
  parallel_iterator_t* self = (parallel_iterator_t*)iterator;
  WEIR_TRY(weir_iterator_open(iterator, 0));
  self->ahead.input = iterator->inputs[0];
  self->ahead.out_width = iterator->dataset->count;
  const int64_t calls = ((const weir_map_dataset_t*)iterator->dataset)->parallel_calls;
  self->ahead.at_once = calls;
  self->ahead.limit = calls < MOST_KEPT ? 2 * calls : calls;  // one that takes long holds up none
  self->ahead.process = call_function;
  self->ahead.arg = self;
  return weir_ahead_init(&self->ahead, iterator->walk);
}

static void parallel_stop(weir_iterator_t* iterator) {
  weir_ahead_stop(&((parallel_iterator_t*)iterator)->ahead);
}

static weir_status_t* parallel_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                    weir_tensor_t** out, bool* out_is_end) {
  return weir_ahead_next(&((parallel_iterator_t*)iterator)->ahead, cancel, out, out_is_end);
}

static void parallel_state(weir_iterator_t* iterator, weir_state_t* state) {
  weir_captured_state(&((const weir_map_dataset_t*)iterator->dataset)->function, iterator, state);
  weir_ahead_state(&((parallel_iterator_t*)iterator)->ahead, state,
                   weir_element_types_of(iterator->dataset));
  weir_state_inputs(iterator, state);
}

const weir_iterator_vtable_t weir_parallel_map_iterator = {.size = sizeof(parallel_iterator_t),
                                                           .start = parallel_start,
                                                           .next = parallel_next,
                                                           .stop = parallel_stop,
                                                           .state = parallel_state,
                                                           .may_resume = true};

static weir_status_t* parallel_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(weir_map_init(ctx, dataset));
  return weir_map_parallel_calls(ctx, ctx->input_count - 1,
                                 &((weir_map_dataset_t*)dataset)->parallel_calls);
}

static const weir_dataset_vtable_t parallel_dataset = {.name = "ParallelMap",
                                                       .size = sizeof(weir_map_dataset_t),
                                                       .init = parallel_init,
                                                       .deinit = weir_map_deinit,
                                                       .cardinality = weir_map_cardinality,
                                                       .get = weir_map_get,
                                                       .iterator = &weir_parallel_map_iterator};

static weir_status_t* parallel_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &parallel_dataset);
}

const weir_op_module_t weir_ops_data_parallel_map = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ParallelMapDataset",
         .attrs = "f: func; Targuments: list(type) >= 0; " WEIR_DATASET_SPEC
                  "; use_inter_op_parallelism: bool = true; sloppy: bool = false; "
                  "preserve_cardinality: bool = false; metadata: string = ''",
         .inputs = "input_dataset: variant; other_arguments: Targuments; num_parallel_calls: int32",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The results of a function on every element, several at a time",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(parallel_cpu)},
        {.name = "ParallelMapDatasetV2",
         .attrs = "f: func; Targuments: list(type) >= 0; " WEIR_DATASET_SPEC
                  "; use_inter_op_parallelism: bool = true; deterministic: string = 'default'; "
                  "preserve_cardinality: bool = false; use_unbounded_threadpool: bool = false; "
                  "metadata: string = ''",
         .inputs = "input_dataset: variant; other_arguments: Targuments; num_parallel_calls: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The results of a function on every element, several at a time",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(parallel_cpu)},
        {0}}};
