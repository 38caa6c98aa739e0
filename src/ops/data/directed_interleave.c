// directed_interleave.c — DirectedInterleaveDataset: elements of several datasets, as another says
// whose.
#include "ops/data/state.h"

typedef struct directed_t {
  weir_data_t base;  // input 0 is the selector
  bool stops_at_empty;
} directed_t;

typedef struct directed_iterator_t {
  weir_iterator_t base;
  int open_count;  // of the datasets behind the selector
} directed_iterator_t;

static weir_status_t* set_common_shape(weir_data_t* self, int i, const weir_shape_t* other) {
  int64_t dims[WEIR_MAX_RANK];
  const weir_shape_t* shape = self->shapes[i];
  if (shape->rank < 0 || shape->rank != other->rank)
    return weir_dataset_set_shape(self, i, -1, NULL);
  for (int k = 0; k < shape->rank; ++k)
    dims[k] = shape->dims[k] == other->dims[k] ? shape->dims[k] : -1;
  return weir_dataset_set_shape(self, i, shape->rank, dims);
}

static weir_status_t* directed_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(weir_dataset_set_inputs(ctx, 0, ctx->input_count, dataset));
  const weir_data_t* selector = dataset->inputs[0];
  const weir_data_t* first = dataset->inputs[1];
  ((directed_t*)dataset)->stops_at_empty =
      weir_attrs_bool(weir_kernel_attrs(ctx), "stop_on_empty_dataset");
  if (selector->count != 1 || selector->types[0] != WEIR_DTYPE_INT64 ||
      selector->shapes[0]->rank > 0)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The selector dataset must have a single scalar int64 component.");
  WEIR_TRY(weir_dataset_set_like(first, dataset));
  for (int k = 2; k < dataset->input_count; ++k) {
    const weir_data_t* other = dataset->inputs[k];
    bool is_same = other->count == first->count;
    for (int i = 0; i < first->count && is_same; ++i) is_same = other->types[i] == first->types[i];
    if (!is_same)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "All data inputs must have the same type. Input %d differs from input 0.",
                         k - 1);
    for (int i = 0; i < dataset->count; ++i)
      WEIR_TRY(set_common_shape(dataset, i, other->shapes[i]));
  }
  return NULL;
}

static int64_t directed_cardinality(const weir_data_t* dataset) {
  for (int k = 1; k < dataset->input_count; ++k) {
    if (weir_dataset_cardinality(dataset->inputs[k]) == WEIR_CARDINALITY_INFINITE)
      return WEIR_CARDINALITY_INFINITE;
  }
  return WEIR_CARDINALITY_UNKNOWN;
}

static weir_status_t* directed_start(weir_iterator_t* iterator) {
  for (int i = 0; i < iterator->dataset->input_count; ++i)
    WEIR_TRY(weir_iterator_open(iterator, i));
  ((directed_iterator_t*)iterator)->open_count = iterator->dataset->input_count - 1;
  return NULL;
}

// Which input is next.
static weir_status_t* select_input(weir_iterator_t* iterator, weir_cancel_t* cancel, int* out_input,
                                   bool* out_is_end) {
  weir_tensor_t* index = NULL;
  WEIR_TRY(weir_iterator_pull(iterator, 0, cancel, &index, out_is_end));
  if (*out_is_end) return NULL;
  int count = iterator->dataset->input_count - 1;
  int64_t value = index->count > 0 ? *WEIR_TENSOR_DATA(index, int64_t) : -1;
  weir_tensor_release(index);
  if (value < 0 || value >= count)
    return WEIR_STATUS(INVALID_ARGUMENT, "Selector index out of range: %lld >= %d",
                       (long long)value, count);
  *out_input = (int)value + 1;
  return NULL;
}

static weir_status_t* directed_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                    weir_tensor_t** out, bool* out_is_end) {
  directed_iterator_t* self = (directed_iterator_t*)iterator;
  bool stops = ((const directed_t*)iterator->dataset)->stops_at_empty;
  while (self->open_count > 0) {
    int input = 0;
    bool is_end = false;
    WEIR_TRY(select_input(iterator, cancel, &input, out_is_end));
    if (*out_is_end) return NULL;
    if (!iterator->inputs[input]) continue;
    WEIR_TRY(weir_iterator_pull(iterator, input, cancel, out, &is_end));
    if (!is_end) return NULL;
    weir_iterator_close(iterator, input);
    self->open_count = stops ? 0 : self->open_count - 1;
  }
  *out_is_end = true;
  return NULL;
}

static void directed_state(weir_iterator_t* iterator, weir_state_t* state) {
  directed_iterator_t* self = (directed_iterator_t*)iterator;
  int64_t count = self->open_count;
  weir_state_int(state, "open_count", &count, 0, iterator->dataset->input_count - 1);
  self->open_count = (int)count;
  for (int i = 0; i < iterator->dataset->input_count; ++i) weir_state_input(iterator, state, i);
  weir_state_require(state, iterator->inputs[0] != NULL);
}

static const weir_iterator_vtable_t directed_iterator = {.size = sizeof(directed_iterator_t),
                                                         .start = directed_start,
                                                         .next = directed_next,
                                                         .state = directed_state};
static const weir_dataset_vtable_t directed_dataset = {.name = "DirectedInterleave",
                                                       .size = sizeof(directed_t),
                                                       .init = directed_init,
                                                       .cardinality = directed_cardinality,
                                                       .iterator = &directed_iterator};

static weir_status_t* directed_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &directed_dataset);
}

const weir_op_module_t weir_ops_data_directed_interleave = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "DirectedInterleaveDataset",
         .attrs = WEIR_DATASET_SPEC "; N: int >= 1; stop_on_empty_dataset: bool = false",
         .inputs = "selector_input_dataset: variant; data_input_datasets: N * variant",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Elements of several datasets, as another says whose",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(directed_cpu)},
        {0}}};
