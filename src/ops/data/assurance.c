// assurance.c — IgnoreErrorsDataset, AssertCardinalityDataset: elements without errors, and as many
// as was said.
#include <stdio.h>

#include "ops/data/state.h"

// ---- IgnoreErrorsDataset ----

static weir_status_t* ignore_next(weir_iterator_t* self, weir_cancel_t* cancel, weir_tensor_t** out,
                                  bool* out_is_end) {
  for (;;) {
    weir_status_t* status = weir_iterator_pull(self, 0, cancel, out, out_is_end);
    if (!status || weir_cancel_is_cancelled(cancel) || weir_cancel_is_cancelled(self->walk->cancel))
      return status;
    weir_status_destroy(status);
  }
}

static const weir_iterator_vtable_t ignore_iterator = {.size = sizeof(weir_iterator_t),
                                                       .start = weir_iterator_start_input,
                                                       .next = ignore_next,
                                                       .state = weir_state_inputs};
static const weir_dataset_vtable_t ignore_dataset = {.name = "IgnoreErrors",
                                                     .size = sizeof(weir_data_t),
                                                     .init = weir_dataset_init_like_input,
                                                     .cardinality = weir_dataset_unknown_size,
                                                     .iterator = &ignore_iterator};

static weir_status_t* ignore_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &ignore_dataset);
}

// ---- AssertCardinalityDataset ----

typedef struct assert_t {
  weir_data_t base;
  int64_t cardinality;
} assert_t;

typedef struct assert_iterator_t {
  weir_iterator_t base;
  int64_t count;
} assert_iterator_t;

static weir_status_t* assert_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  return weir_dataset_int(ctx, 1, "cardinality", &((assert_t*)dataset)->cardinality);
}

static int64_t assert_cardinality(const weir_data_t* dataset) {
  return ((const assert_t*)dataset)->cardinality;
}

static const char* count_text(int64_t count, char text[48]) {
  if (count == WEIR_CARDINALITY_INFINITE) return "an infinite number of elements";
  snprintf(text, 48, "%lld element%s", (long long)count, count == 1 ? "" : "s");
  return text;
}

static weir_status_t* assert_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                                 weir_tensor_t** out) {
  char want[48];
  int64_t wanted = ((const assert_t*)dataset)->cardinality;
  if (wanted != WEIR_CARDINALITY_INFINITE && index >= wanted)
    return WEIR_STATUS(OUT_OF_RANGE, "Index %lld greater than dataset size %lld", (long long)index,
                       (long long)wanted);
  weir_status_t* status = weir_dataset_get(dataset->inputs[0], walk, index, out);
  if (weir_status_code(status) != WEIR_OUT_OF_RANGE) return status;
  weir_status_t* other = WEIR_STATUS(
      FAILED_PRECONDITION,
      "Input dataset was expected to contain %s but index %lld could not be retrieved: %s",
      count_text(wanted, want), (long long)index, weir_status_message(status));
  weir_status_destroy(status);
  return other;
}

static weir_status_t* assert_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                  weir_tensor_t** out, bool* out_is_end) {
  assert_iterator_t* self = (assert_iterator_t*)iterator;
  int64_t wanted = ((const assert_t*)iterator->dataset)->cardinality;
  char want[48], got[48];
  WEIR_TRY(weir_iterator_pull(iterator, 0, cancel, out, out_is_end));
  if (!*out_is_end) ++self->count;
  if (*out_is_end && self->count != wanted)
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "Input dataset was expected to contain %s but contained only %s.",
                       count_text(wanted, want), count_text(self->count, got));
  if (wanted != WEIR_CARDINALITY_INFINITE && self->count > wanted)
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "Input dataset was expected to contain %s but contained at least %s.",
                       count_text(wanted, want), count_text(self->count, got));
  return NULL;
}

static void assert_state(weir_iterator_t* iterator, weir_state_t* state) {
  assert_iterator_t* self = (assert_iterator_t*)iterator;
  weir_state_int(state, "count", &self->count, 0, INT64_MAX);
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t assert_iterator = {.size = sizeof(assert_iterator_t),
                                                       .start = weir_iterator_start_input,
                                                       .next = assert_next,
                                                       .state = assert_state};
static const weir_dataset_vtable_t assert_dataset = {.name = "AssertCardinality",
                                                     .size = sizeof(assert_t),
                                                     .init = assert_init,
                                                     .cardinality = assert_cardinality,
                                                     .get = assert_get,
                                                     .iterator = &assert_iterator};

static weir_status_t* assert_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &assert_dataset);
}

const weir_op_module_t weir_ops_data_assurance = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "IgnoreErrorsDataset",
         .attrs = WEIR_DATASET_SPEC "; log_warning: bool = false",
         .inputs = "input_dataset: variant",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Elements without those that could not be made",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(ignore_cpu)},
        {.name = "AssertCardinalityDataset",
         .attrs = WEIR_DATASET_SPEC,
         .inputs = "input_dataset: variant; cardinality: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The same elements; an error where they are not so many",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(assert_cpu)},
        {0}}};
