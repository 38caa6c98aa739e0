// rebatch_replicas.c — RebatchDataset: each batch in as many parts as there are replicas.
#include "ops/data/state.h"

typedef struct replicas_t {
  weir_data_t base;
  int64_t count;
} replicas_t;

typedef struct replicas_iterator_t {
  weir_iterator_t base;
  weir_tensor_t** element;  // of the input
  int64_t part;             // of it, the next; 0: there is no element
} replicas_iterator_t;

static weir_status_t* replicas_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  replicas_t* self = (replicas_t*)dataset;
  WEIR_TRY(weir_dataset_init_declared(ctx, dataset));
  WEIR_TRY(weir_dataset_int(ctx, 1, "num_replicas", &self->count));
  if (self->count > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "num_replicas must be greater than zero.");
}

static weir_status_t* replicas_start(weir_iterator_t* iterator) {
  replicas_iterator_t* self = (replicas_iterator_t*)iterator;
  self->element = weir_element_create(iterator->dataset->count);
  return self->element ? weir_iterator_open(iterator, 0) : weir_out_of_memory();
}

static void replicas_stop(weir_iterator_t* iterator) {
  weir_element_free(((replicas_iterator_t*)iterator)->element, iterator->dataset->count);
}

static weir_status_t* check_element(const replicas_iterator_t* self) {
  for (int i = 0; i < self->base.dataset->count; ++i) {
    if (self->element[i]->rank == 0)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Cannot rebatch dataset: All components must have at least one dimension. "
                         "Perhaps your input dataset is not batched? Component %d is scalar.",
                         i);
    if (self->element[i]->dims[0] != self->element[0]->dims[0])
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Cannot rebatch dataset: All components must have the same leading "
                         "dimension. Component %d has first dimension %lld while component 0 has "
                         "first dimension %lld.",
                         i, (long long)self->element[i]->dims[0],
                         (long long)self->element[0]->dims[0]);
  }
  return NULL;
}

static weir_status_t* replicas_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                    weir_tensor_t** out, bool* out_is_end) {
  replicas_iterator_t* self = (replicas_iterator_t*)iterator;
  int64_t count = ((const replicas_t*)iterator->dataset)->count;
  int width = iterator->dataset->count;
  if (self->part == 0) {
    weir_element_clear(self->element, width);
    WEIR_TRY(weir_iterator_pull(iterator, 0, cancel, self->element, out_is_end));
    if (*out_is_end) return NULL;
    WEIR_TRY(check_element(self));
  }
  int64_t rows = self->element[0]->dims[0];
  int64_t size = rows / count + (rows % count ? 1 : 0);
  int64_t begin = WEIR_MIN(rows, self->part * size);
  int64_t end = WEIR_MIN(rows, begin + size);
  for (int i = 0; i < width; ++i)
    WEIR_TRY(weir_tensor_slice(self->element[i], begin, end, &out[i]));
  self->part = (self->part + 1) % count;
  return NULL;
}

static void replicas_state(weir_iterator_t* iterator, weir_state_t* state) {
  replicas_iterator_t* self = (replicas_iterator_t*)iterator;
  int64_t count = ((const replicas_t*)iterator->dataset)->count;
  weir_state_int(state, "part", &self->part, 0, count - 1);
  weir_state_maybe_element(state, "element", weir_element_types_of(iterator->dataset->inputs[0]),
                           self->element);
  weir_state_require(state, self->part == 0 || self->element[0]);
  if (weir_state_is_good(state) && self->part > 0) weir_state_fail(state, check_element(self));
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t replicas_iterator = {.size = sizeof(replicas_iterator_t),
                                                         .start = replicas_start,
                                                         .next = replicas_next,
                                                         .stop = replicas_stop,
                                                         .state = replicas_state};
static const weir_dataset_vtable_t replicas_dataset = {.name = "Rebatch",
                                                       .size = sizeof(replicas_t),
                                                       .init = replicas_init,
                                                       .cardinality = weir_dataset_unknown_size,
                                                       .iterator = &replicas_iterator};

static weir_status_t* replicas_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &replicas_dataset);
}

const weir_op_module_t weir_ops_data_rebatch_replicas = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "RebatchDataset",
                                    .attrs = WEIR_DATASET_SPEC "; use_fallback: bool = true",
                                    .inputs = "input_dataset: variant; num_replicas: int64",
                                    .outputs = "handle: variant",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "Each batch in as many parts as there are replicas",
                                    .infer_shape = weir_dataset_shape,
                                    .kernels = WEIR_DATASET_KERNEL(replicas_cpu)},
                                   {0}}};
