// filter.c — FilterDataset, ParallelFilterDataset, TakeWhileDataset: elements that a function
// chooses.
#include "ops/data/captured.h"

typedef struct filter_t {
  weir_data_t base;
  weir_captured_t predicate;
} filter_t;

static weir_status_t* filter_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  return weir_captured_init(ctx, "predicate", 1, weir_captured_count(ctx, "Targuments"),
                            &((filter_t*)dataset)->predicate);
}

static void filter_deinit(weir_data_t* dataset) {
  weir_captured_deinit(&((filter_t*)dataset)->predicate);
}

// Pulls an element and asks the function about it.
static weir_status_t* pull_tested(weir_iterator_t* self, weir_cancel_t* cancel, weir_tensor_t** out,
                                  bool* out_is_end, bool* out_is_true) {
  const filter_t* filter = (const filter_t*)self->dataset;
  WEIR_TRY(weir_iterator_pull(self, 0, cancel, out, out_is_end));
  if (*out_is_end) return NULL;
  return weir_captured_test(&filter->predicate, self, cancel, out, out_is_true);
}

static weir_status_t* filter_next(weir_iterator_t* self, weir_cancel_t* cancel, weir_tensor_t** out,
                                  bool* out_is_end) {
  for (bool is_true = false;; weir_element_clear(out, self->dataset->count)) {
    WEIR_TRY(pull_tested(self, cancel, out, out_is_end, &is_true));
    if (is_true || *out_is_end) return NULL;
  }
}

static weir_status_t* while_next(weir_iterator_t* self, weir_cancel_t* cancel, weir_tensor_t** out,
                                 bool* out_is_end) {
  bool is_true = false;
  WEIR_TRY(pull_tested(self, cancel, out, out_is_end, &is_true));
  if (*out_is_end || is_true) return NULL;
  weir_element_clear(out, self->dataset->count);
  *out_is_end = true;
  return NULL;
}

static void filter_state(weir_iterator_t* iterator, weir_state_t* state) {
  weir_captured_state(&((const filter_t*)iterator->dataset)->predicate, iterator, state);
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t filter_iterator = {.size = sizeof(weir_iterator_t),
                                                       .start = weir_iterator_start_input,
                                                       .next = filter_next,
                                                       .state = filter_state};
static const weir_dataset_vtable_t filter_dataset = {.name = "Filter",
                                                     .size = sizeof(filter_t),
                                                     .init = filter_init,
                                                     .deinit = filter_deinit,
                                                     .cardinality = weir_dataset_unknown_size,
                                                     .iterator = &filter_iterator};
static const weir_iterator_vtable_t while_iterator = {.size = sizeof(weir_iterator_t),
                                                      .start = weir_iterator_start_input,
                                                      .next = while_next,
                                                      .state = filter_state};
static const weir_dataset_vtable_t while_dataset = {.name = "TakeWhile",
                                                    .size = sizeof(filter_t),
                                                    .init = filter_init,
                                                    .deinit = filter_deinit,
                                                    .cardinality = weir_dataset_unknown_size,
                                                    .iterator = &while_iterator};

static weir_status_t* filter_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &filter_dataset);
}

static weir_status_t* while_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &while_dataset);
}

const weir_op_module_t weir_ops_data_filter = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "FilterDataset",
         .attrs = "predicate: func; Targuments: list(type) >= 0; " WEIR_DATASET_ATTRS,
         .inputs = "input_dataset: variant; other_arguments: Targuments",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The elements that a function says yes to",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(filter_cpu)},
        {.name = "ParallelFilterDataset",
         .attrs = "predicate: func; deterministic: string = 'default'; "
                  "Targuments: list(type) >= 0; " WEIR_DATASET_ATTRS,
         .inputs = "input_dataset: variant; other_arguments: Targuments; num_parallel_calls: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The elements that a function says yes to",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(filter_cpu)},
        {.name = "TakeWhileDataset",
         .attrs = "predicate: func; Targuments: list(type) >= 0; " WEIR_DATASET_ATTRS,
         .inputs = "input_dataset: variant; other_arguments: Targuments",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The elements before the first that a function says no to",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(while_cpu)},
        {0}}};
