// rebatch.c — RebatchDatasetV2: rows of batches in batches of other sizes.
#include "ops/data/rows.h"
#include "ops/data/state.h"

typedef struct rebatch_t {
  weir_data_t base;
  int64_t* sizes;  // of one batch after the other, over and over
  int64_t count;
  bool drops_remainder;
} rebatch_t;

typedef struct rebatch_iterator_t {
  weir_iterator_t base;
  weir_tensor_t** element;  // of the input
  int64_t row;              // of it
  int64_t row_count;
  int64_t next;  // of sizes
} rebatch_iterator_t;

static weir_status_t* rebatch_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  rebatch_t* self = (rebatch_t*)dataset;
  const weir_tensor_t* sizes = weir_kernel_input(ctx, 1);
  WEIR_TRY(weir_dataset_init_declared(ctx, dataset));
  WEIR_TRY(weir_dataset_bool(ctx, 2, "drop_remainder", &self->drops_remainder));
  if (sizes->rank > 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "`batch_sizes` must be a scalar or a vector.");
  self->sizes = weir_calloc((size_t)sizes->count + 1, sizeof(*self->sizes));
  if (!self->sizes) return weir_out_of_memory();
  self->count = sizes->count;
  int64_t total = 0;
  for (int64_t i = 0; i < sizes->count; ++i) {
    self->sizes[i] = weir_tensor_int_at(sizes, i);
    if (self->sizes[i] < 0) return WEIR_STATUS(INVALID_ARGUMENT, "`batch_sizes` must be >= 0.");
    total += self->sizes[i];
  }
  return total > 0 ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "`batch_sizes` must not all be 0.");
}

static void rebatch_deinit(weir_data_t* dataset) { weir_free(((rebatch_t*)dataset)->sizes); }

static weir_status_t* rebatch_start(weir_iterator_t* iterator) {
  rebatch_iterator_t* self = (rebatch_iterator_t*)iterator;
  self->element = weir_element_create(iterator->dataset->count);
  return self->element ? weir_iterator_open(iterator, 0) : weir_out_of_memory();
}

static void rebatch_stop(weir_iterator_t* iterator) {
  weir_element_free(((rebatch_iterator_t*)iterator)->element, iterator->dataset->count);
}

static weir_status_t* check_element(const rebatch_iterator_t* self) {
  for (int i = 0; i < self->base.dataset->count; ++i) {
    const weir_tensor_t* item = self->element[i];
    if (item->rank == 0)
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input element must have a non-scalar value in each component.");
    if (item->dims[0] != self->element[0]->dims[0])
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Input element must have the same batch size in each component. Component "
                         "0 had size %lld but component %d had size, %lld.",
                         (long long)self->element[0]->dims[0], i, (long long)item->dims[0]);
  }
  return NULL;
}

// Makes rows to take; *|out_is_end| when there are none.
static weir_status_t* refill(rebatch_iterator_t* self, weir_cancel_t* cancel, bool* out_is_end) {
  while (self->row >= self->row_count) {
    weir_element_clear(self->element, self->base.dataset->count);
    self->row = self->row_count = 0;
    WEIR_TRY(weir_iterator_pull(&self->base, 0, cancel, self->element, out_is_end));
    if (*out_is_end) return NULL;
    WEIR_TRY(check_element(self));
    self->row_count = self->element[0]->dims[0];
  }
  return NULL;
}

// Takes single rows: what is stacked is checked for its shape where that is done.
static weir_status_t* take_rows(rebatch_iterator_t* self, weir_cancel_t* cancel, int64_t wanted,
                                weir_tensor_t*** rows, int64_t* out_count, bool* out_is_end) {
  int width = self->base.dataset->count;
  while (*out_count < wanted) {
    WEIR_TRY(refill(self, cancel, out_is_end));
    if (*out_is_end) return NULL;
    weir_tensor_t** row = rows[*out_count] = weir_element_create(width);
    if (!row) return weir_out_of_memory();
    ++*out_count;
    for (int i = 0; i < width; ++i) WEIR_TRY(weir_row_create(self->element[i], self->row, &row[i]));
    ++self->row;
  }
  return NULL;
}

// An element of no rows, like the last one.
static weir_status_t* create_empty(rebatch_iterator_t* self, weir_cancel_t* cancel,
                                   weir_tensor_t** out, bool* out_is_end) {
  WEIR_TRY(refill(self, cancel, out_is_end));
  for (int i = 0; i < self->base.dataset->count && !*out_is_end; ++i)
    WEIR_TRY(weir_tensor_slice(self->element[i], 0, 0, &out[i]));
  return NULL;
}

static weir_status_t* rebatch_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                   weir_tensor_t** out, bool* out_is_end) {
  rebatch_iterator_t* self = (rebatch_iterator_t*)iterator;
  const rebatch_t* rebatch = (const rebatch_t*)iterator->dataset;
  int64_t wanted = rebatch->sizes[self->next], count = 0;
  self->next = (self->next + 1) % rebatch->count;
  if (wanted == 0) return create_empty(self, cancel, out, out_is_end);
  weir_tensor_t*** rows = weir_calloc((size_t)wanted, sizeof(*rows));
  if (!rows) return weir_out_of_memory();
  bool is_over = false;
  weir_status_t* status = take_rows(self, cancel, wanted, rows, &count, &is_over);
  *out_is_end = is_over && (count == 0 || rebatch->drops_remainder);
  if (!status && !*out_is_end) status = weir_rows_stack(rows, count, iterator->dataset->count, out);
  weir_rows_free(rows, count, iterator->dataset->count);
  return status;
}

static void rebatch_state(weir_iterator_t* iterator, weir_state_t* state) {
  rebatch_iterator_t* self = (rebatch_iterator_t*)iterator;
  if (self->row >= self->row_count) weir_element_clear(self->element, iterator->dataset->count);
  weir_state_maybe_element(state, "element", weir_element_types_of(iterator->dataset->inputs[0]),
                           self->element);
  weir_state_int(state, "row", &self->row, 0, INT64_MAX);
  weir_state_int(state, "next", &self->next, 0, ((const rebatch_t*)iterator->dataset)->count - 1);
  if (weir_state_is_good(state) && state->is_restoring && self->element[0]) {
    weir_state_fail(state, check_element(self));
    if (weir_state_is_good(state)) self->row_count = self->element[0]->dims[0];
  }
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t rebatch_iterator = {.size = sizeof(rebatch_iterator_t),
                                                        .start = rebatch_start,
                                                        .next = rebatch_next,
                                                        .stop = rebatch_stop,
                                                        .state = rebatch_state};
static const weir_dataset_vtable_t rebatch_dataset = {.name = "Rebatch",
                                                      .size = sizeof(rebatch_t),
                                                      .init = rebatch_init,
                                                      .deinit = rebatch_deinit,
                                                      .cardinality = weir_dataset_unknown_size,
                                                      .iterator = &rebatch_iterator};

static weir_status_t* rebatch_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &rebatch_dataset);
}

const weir_op_module_t weir_ops_data_rebatch = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RebatchDatasetV2",
         .attrs = WEIR_DATASET_SPEC,
         .inputs = "input_dataset: variant; batch_sizes: int64; drop_remainder: bool",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The rows of batches in batches of other sizes",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(rebatch_cpu)},
        {0}}};
