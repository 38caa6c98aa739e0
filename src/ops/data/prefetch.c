// prefetch.c — PrefetchDataset: elements made while others are used.
#include "ops/data/ahead.h"

typedef struct prefetch_t {
  weir_data_t base;
  int64_t size;  // 0: none are
} prefetch_t;

typedef struct prefetch_iterator_t {
  weir_iterator_t base;
  weir_ahead_t ahead;
} prefetch_iterator_t;

#define AUTO_SIZE 8  // elements, where the size is left to us

static weir_status_t* prefetch_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  prefetch_t* self = (prefetch_t*)dataset;
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  WEIR_TRY(weir_dataset_int(ctx, 1, "buffer_size", &self->size));
  if (self->size < -1)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "buffer_size must be >= 0 or set buffer_size to be -1 "
                       "for auto-tuning");
  if (self->size == -1) self->size = AUTO_SIZE;
  return NULL;
}

static weir_status_t* prefetch_start(weir_iterator_t* iterator) {
  prefetch_iterator_t* self = (prefetch_iterator_t*)iterator;
  WEIR_TRY(weir_iterator_open(iterator, 0));
  self->ahead.input = iterator->inputs[0];
  self->ahead.out_width = iterator->dataset->count;
  self->ahead.limit = ((const prefetch_t*)iterator->dataset)->size;
  return weir_ahead_init(&self->ahead, iterator->walk);
}

static void prefetch_stop(weir_iterator_t* iterator) {
  weir_ahead_stop(&((prefetch_iterator_t*)iterator)->ahead);
}

static weir_status_t* prefetch_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                    weir_tensor_t** out, bool* out_is_end) {
  prefetch_iterator_t* self = (prefetch_iterator_t*)iterator;
  if (self->ahead.limit == 0) return weir_iterator_pull(iterator, 0, cancel, out, out_is_end);
  return weir_ahead_next(&self->ahead, cancel, out, out_is_end);
}

static void prefetch_state(weir_iterator_t* iterator, weir_state_t* state) {
  weir_ahead_state(&((prefetch_iterator_t*)iterator)->ahead, state,
                   weir_element_types_of(iterator->dataset));
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t prefetch_iterator = {.size = sizeof(prefetch_iterator_t),
                                                         .start = prefetch_start,
                                                         .next = prefetch_next,
                                                         .stop = prefetch_stop,
                                                         .state = prefetch_state};
static const weir_dataset_vtable_t prefetch_dataset = {.name = "Prefetch",
                                                       .size = sizeof(prefetch_t),
                                                       .init = prefetch_init,
                                                       .get = weir_dataset_get_input,
                                                       .iterator = &prefetch_iterator};

static weir_status_t* prefetch_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &prefetch_dataset);
}

const weir_op_module_t weir_ops_data_prefetch = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "PrefetchDataset",
         .attrs = WEIR_DATASET_SPEC "; slack_period: int = 0; legacy_autotune: bool = true; "
                                    "buffer_size_min: int = 0; metadata: string = ''",
         .inputs = "input_dataset: variant; buffer_size: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The same elements, made ahead by a thread of their own",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(prefetch_cpu)},
        {0}}};
