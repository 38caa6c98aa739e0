// take.c — TakeDataset, SkipDataset: the first elements, or all but those.
#include "ops/data/state.h"

typedef struct take_t {
  weir_data_t base;
  int64_t limit;  // negative: all
} take_t;

typedef struct take_iterator_t {
  weir_iterator_t base;
  int64_t taken;
} take_iterator_t;

static weir_status_t* take_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  return weir_dataset_int(ctx, 1, "count", &((take_t*)dataset)->limit);
}

static void take_state(weir_iterator_t* iterator, weir_state_t* state) {
  weir_state_int(state, "taken", &((take_iterator_t*)iterator)->taken, 0, INT64_MAX);
  weir_state_inputs(iterator, state);
}

// ---- TakeDataset ----

static int64_t take_cardinality(const weir_data_t* dataset) {
  int64_t limit = ((const take_t*)dataset)->limit;
  int64_t n = weir_dataset_cardinality(dataset->inputs[0]);
  if (n == WEIR_CARDINALITY_UNKNOWN) return n;
  if (n == WEIR_CARDINALITY_INFINITE) return limit;
  return limit == -1 ? n : WEIR_MIN(n, limit);
}

static weir_status_t* take_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                               weir_tensor_t** out) {
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  return weir_dataset_get(dataset->inputs[0], walk, index, out);
}

static weir_status_t* take_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                weir_tensor_t** out, bool* out_is_end) {
  take_iterator_t* self = (take_iterator_t*)iterator;
  int64_t limit = ((const take_t*)iterator->dataset)->limit;
  *out_is_end = limit >= 0 && self->taken >= limit;
  if (*out_is_end) return NULL;
  WEIR_TRY(weir_iterator_pull(iterator, 0, cancel, out, out_is_end));
  ++self->taken;
  return NULL;
}

static const weir_iterator_vtable_t take_iterator = {.size = sizeof(take_iterator_t),
                                                     .start = weir_iterator_start_input,
                                                     .next = take_next,
                                                     .state = take_state};
static const weir_dataset_vtable_t take_dataset = {.name = "Take",
                                                   .size = sizeof(take_t),
                                                   .init = take_init,
                                                   .cardinality = take_cardinality,
                                                   .get = take_get,
                                                   .iterator = &take_iterator};

static weir_status_t* take_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &take_dataset);
}

// ---- SkipDataset ----

static int64_t skip_cardinality(const weir_data_t* dataset) {
  int64_t count = ((const take_t*)dataset)->limit;
  int64_t n = weir_dataset_cardinality(dataset->inputs[0]);
  if (n < 0) return n;
  return count < 0 ? 0 : WEIR_MAX(0, n - count);
}

static weir_status_t* skip_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                               weir_tensor_t** out) {
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  return weir_dataset_get(dataset->inputs[0], walk, index + ((const take_t*)dataset)->limit, out);
}

static weir_status_t* skip_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                weir_tensor_t** out, bool* out_is_end) {
  take_iterator_t* self = (take_iterator_t*)iterator;
  int64_t count = ((const take_t*)iterator->dataset)->limit;
  *out_is_end = count < 0;
  for (; self->taken < count && !*out_is_end; ++self->taken) {
    WEIR_TRY(weir_iterator_pull(iterator, 0, cancel, out, out_is_end));
    if (!*out_is_end) weir_element_clear(out, weir_iterator_width(iterator));
  }
  return *out_is_end ? NULL : weir_iterator_pull(iterator, 0, cancel, out, out_is_end);
}

static const weir_iterator_vtable_t skip_iterator = {.size = sizeof(take_iterator_t),
                                                     .start = weir_iterator_start_input,
                                                     .next = skip_next,
                                                     .state = take_state};
static const weir_dataset_vtable_t skip_dataset = {.name = "Skip",
                                                   .size = sizeof(take_t),
                                                   .init = take_init,
                                                   .cardinality = skip_cardinality,
                                                   .get = skip_get,
                                                   .iterator = &skip_iterator};

static weir_status_t* skip_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &skip_dataset);
}

const weir_op_module_t weir_ops_data_take = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "TakeDataset",
                                    .attrs = WEIR_DATASET_ATTRS,
                                    .inputs = "input_dataset: variant; count: int64",
                                    .outputs = "handle: variant",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "At most count elements",
                                    .infer_shape = weir_dataset_shape_scalars,
                                    .kernels = WEIR_DATASET_KERNEL(take_cpu)},
                                   {.name = "SkipDataset",
                                    .attrs = WEIR_DATASET_ATTRS,
                                    .inputs = "input_dataset: variant; count: int64",
                                    .outputs = "handle: variant",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "All but the first count elements",
                                    .infer_shape = weir_dataset_shape_scalars,
                                    .kernels = WEIR_DATASET_KERNEL(skip_cpu)},
                                   {0}}};
