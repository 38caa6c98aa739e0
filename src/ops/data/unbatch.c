// unbatch.c — UnbatchDataset: the rows of elements.
#include "ops/data/rows.h"
#include "ops/data/state.h"

typedef struct unbatch_t {
  weir_data_t base;
  int64_t size;  // of all elements, where shapes tell; -1: they do not
} unbatch_t;

typedef struct unbatch_iterator_t {
  weir_iterator_t base;
  weir_tensor_t** element;
  int64_t row;
  int64_t row_count;
} unbatch_iterator_t;

static weir_status_t* unbatch_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  unbatch_t* self = (unbatch_t*)dataset;
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  self->size = -1;
  for (int i = 0; i < dataset->count; ++i) {
    const weir_shape_t* shape = dataset->inputs[0]->shapes[i];
    WEIR_TRY(weir_dataset_set_shape(dataset, i, -1, NULL));
    if (shape->rank < 0) continue;
    if (shape->rank == 0) continue;  // an error when there is an element
    if (self->size < 0 && shape->dims[0] >= 0) self->size = shape->dims[0];
    WEIR_TRY(weir_dataset_set_shape(dataset, i, shape->rank - 1, shape->dims + 1));
  }
  return NULL;
}

static int64_t unbatch_cardinality(const weir_data_t* dataset) {
  int64_t size = ((const unbatch_t*)dataset)->size;
  int64_t n = weir_dataset_cardinality(dataset->inputs[0]);
  if (n < 0) return n;
  return size > 0 ? n * size : WEIR_CARDINALITY_UNKNOWN;
}

static weir_status_t* unbatch_start(weir_iterator_t* iterator) {
  unbatch_iterator_t* self = (unbatch_iterator_t*)iterator;
  self->element = weir_element_create(iterator->dataset->count);
  return self->element ? weir_iterator_open(iterator, 0) : weir_out_of_memory();
}

static void unbatch_stop(weir_iterator_t* iterator) {
  weir_element_free(((unbatch_iterator_t*)iterator)->element, iterator->dataset->count);
}

static weir_status_t* check_element(weir_tensor_t* const* element, int count) {
  for (int i = 0; i < count; ++i) {
    const weir_tensor_t* item = element[i];
    if (item->rank == 0)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input element must have a non-scalar value in each component.");
    if (item->dims[0] != element[0]->dims[0])
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input element must have the same batch size in each component. Component "
                         "0 had size %lld but component %d had size, %lld.",
                         (long long)element[0]->dims[0], i, (long long)item->dims[0]);
  }
  return NULL;
}

static weir_status_t* get_row(weir_tensor_t** element, int count, int64_t row,
                              weir_tensor_t** out) {
  WEIR_TRY(check_element(element, count));
  if (row >= element[0]->dims[0])
    return WEIR_STATUS(INVALID_ARGUMENT, "an element has %lld rows, fewer than its shape said",
                       (long long)element[0]->dims[0]);
  for (int i = 0; i < count; ++i) WEIR_TRY(weir_row_create(element[i], row, &out[i]));
  return NULL;
}

static weir_status_t* unbatch_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                                  weir_tensor_t** out) {
  int64_t size = ((const unbatch_t*)dataset)->size;
  WEIR_TRY(weir_dataset_check_index(dataset, index));  // |size| is known then
  weir_tensor_t** element = weir_element_create(dataset->count);
  if (!element) return weir_out_of_memory();
  weir_status_t* status = weir_dataset_get(dataset->inputs[0], walk, index / size, element);
  if (!status) status = get_row(element, dataset->count, index % size, out);
  weir_element_free(element, dataset->count);
  return status;
}

static weir_status_t* unbatch_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                   weir_tensor_t** out, bool* out_is_end) {
  unbatch_iterator_t* self = (unbatch_iterator_t*)iterator;
  int width = iterator->dataset->count;
  while (self->row >= self->row_count) {
    weir_element_clear(self->element, width);
    self->row = self->row_count = 0;
    WEIR_TRY(weir_iterator_pull(iterator, 0, cancel, self->element, out_is_end));
    if (*out_is_end) return NULL;
    WEIR_TRY(check_element(self->element, width));
    self->row_count = self->element[0]->dims[0];
  }
  for (int i = 0; i < width; ++i) WEIR_TRY(weir_row_create(self->element[i], self->row, &out[i]));
  ++self->row;
  return NULL;
}

static void unbatch_state(weir_iterator_t* iterator, weir_state_t* state) {
  unbatch_iterator_t* self = (unbatch_iterator_t*)iterator;
  if (self->row >= self->row_count) weir_element_clear(self->element, iterator->dataset->count);
  weir_state_maybe_element(state, "element", weir_element_types_of(iterator->dataset->inputs[0]),
                           self->element);
  weir_state_int(state, "row", &self->row, 0, INT64_MAX);
  if (weir_state_is_good(state) && state->is_restoring && self->element[0]) {
    weir_state_fail(state, check_element(self->element, iterator->dataset->count));
    if (weir_state_is_good(state)) self->row_count = self->element[0]->dims[0];
  }
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t unbatch_iterator = {.size = sizeof(unbatch_iterator_t),
                                                        .start = unbatch_start,
                                                        .next = unbatch_next,
                                                        .stop = unbatch_stop,
                                                        .state = unbatch_state};
static const weir_dataset_vtable_t unbatch_dataset = {.name = "Unbatch",
                                                      .size = sizeof(unbatch_t),
                                                      .init = unbatch_init,
                                                      .cardinality = unbatch_cardinality,
                                                      .get = unbatch_get,
                                                      .iterator = &unbatch_iterator};

static weir_status_t* unbatch_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &unbatch_dataset);
}

const weir_op_module_t weir_ops_data_unbatch = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "UnbatchDataset",
                                    .attrs = WEIR_DATASET_ATTRS,
                                    .inputs = "input_dataset: variant",
                                    .outputs = "handle: variant",
                                    .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
                                    .summary = "The rows of elements",
                                    .infer_shape = weir_dataset_shape,
                                    .kernels = WEIR_DATASET_KERNEL(unbatch_cpu)},
                                   {0}}};
