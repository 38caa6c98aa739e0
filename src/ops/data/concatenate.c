// concatenate.c — ConcatenateDataset: one dataset after another.
#include "ops/data/state.h"

typedef struct concatenate_iterator_t {
  weir_iterator_t base;
  int at;  // the input that is walked over
} concatenate_iterator_t;

// What both shapes are.
static weir_status_t* set_common_shape(weir_data_t* dataset, int i, const weir_shape_t* a,
                                       const weir_shape_t* b) {
  int64_t dims[WEIR_MAX_RANK];
  if (a->rank < 0 || a->rank != b->rank) return weir_dataset_set_shape(dataset, i, -1, NULL);
  for (int k = 0; k < a->rank; ++k) dims[k] = a->dims[k] == b->dims[k] ? a->dims[k] : -1;
  return weir_dataset_set_shape(dataset, i, a->rank, dims);
}

static void append_types(const weir_data_t* dataset, weir_strbuf_t* out) {
  for (int i = 0; i < dataset->count; ++i)
    weir_strbuf_printf(out, "%s%s", i ? ", " : "", weir_dtype_name(dataset->types[i]));
}

static weir_status_t* check_types(const weir_data_t* a, const weir_data_t* b) {
  bool is_same = a->count == b->count;
  for (int i = 0; i < a->count && is_same; ++i) is_same = a->types[i] == b->types[i];
  if (is_same) return NULL;
  weir_strbuf_t left = {0}, right = {0};
  append_types(a, &left);
  append_types(b, &right);
  weir_status_t* status =
      WEIR_STATUS(INVALID_ARGUMENT,
                  "input dataset and dataset to concatenate have different output_types %s and %s",
                  left.data, right.data);
  weir_strbuf_free(&left);
  weir_strbuf_free(&right);
  return status;
}

static weir_status_t* concatenate_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(weir_dataset_set_inputs(ctx, 0, 2, dataset));
  const weir_data_t *a = dataset->inputs[0], *b = dataset->inputs[1];
  WEIR_TRY(check_types(a, b));
  WEIR_TRY(weir_dataset_set_like(a, dataset));
  for (int i = 0; i < dataset->count; ++i)
    WEIR_TRY(set_common_shape(dataset, i, a->shapes[i], b->shapes[i]));
  return NULL;
}

static int64_t concatenate_cardinality(const weir_data_t* dataset) {
  int64_t a = weir_dataset_cardinality(dataset->inputs[0]);
  int64_t b = weir_dataset_cardinality(dataset->inputs[1]);
  if (a == WEIR_CARDINALITY_INFINITE || b == WEIR_CARDINALITY_INFINITE)
    return WEIR_CARDINALITY_INFINITE;
  return a < 0 || b < 0 ? WEIR_CARDINALITY_UNKNOWN : a + b;
}

static weir_status_t* concatenate_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                                      weir_tensor_t** out) {
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  int64_t first = weir_dataset_cardinality(dataset->inputs[0]);
  if (index < first) return weir_dataset_get(dataset->inputs[0], walk, index, out);
  return weir_dataset_get(dataset->inputs[1], walk, index - first, out);
}

static weir_status_t* concatenate_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                       weir_tensor_t** out, bool* out_is_end) {
  concatenate_iterator_t* self = (concatenate_iterator_t*)iterator;
  for (;; ++self->at) {
    WEIR_TRY(weir_iterator_pull(iterator, self->at, cancel, out, out_is_end));
    if (!*out_is_end || self->at == iterator->dataset->input_count - 1) return NULL;
    weir_iterator_close(iterator, self->at);
    WEIR_TRY(weir_iterator_open(iterator, self->at + 1));
    *out_is_end = false;
  }
}

static void concatenate_state(weir_iterator_t* iterator, weir_state_t* state) {
  concatenate_iterator_t* self = (concatenate_iterator_t*)iterator;
  int64_t at = self->at;
  weir_state_int(state, "at", &at, 0, iterator->dataset->input_count - 1);
  self->at = (int)at;
  for (int i = 0; i < iterator->dataset->input_count; ++i) weir_state_input(iterator, state, i);
  weir_state_require(state, iterator->inputs[self->at] != NULL);
}

static const weir_iterator_vtable_t concatenate_iterator = {.size = sizeof(concatenate_iterator_t),
                                                            .start = weir_iterator_start_input,
                                                            .next = concatenate_next,
                                                            .state = concatenate_state};
static const weir_dataset_vtable_t concatenate_dataset = {.name = "Concatenate",
                                                          .size = sizeof(weir_data_t),
                                                          .init = concatenate_init,
                                                          .cardinality = concatenate_cardinality,
                                                          .get = concatenate_get,
                                                          .iterator = &concatenate_iterator};

static weir_status_t* concatenate_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &concatenate_dataset);
}

const weir_op_module_t weir_ops_data_concatenate = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "ConcatenateDataset",
                                    .attrs = WEIR_DATASET_ATTRS,
                                    .inputs = "input_dataset: variant; another_dataset: variant",
                                    .outputs = "handle: variant",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "One dataset after another",
                                    .infer_shape = weir_dataset_shape,
                                    .kernels = WEIR_DATASET_KERNEL(concatenate_cpu)},
                                   {0}}};
