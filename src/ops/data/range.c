// range.c — RangeDataset: numbers from start to stop, without it.
#include "ops/data/state.h"
#include "tensor/cast.h"

typedef struct range_t {
  weir_data_t base;
  int64_t start, stop, step;
} range_t;

typedef struct range_iterator_t {
  weir_iterator_t base;
  int64_t next;
} range_iterator_t;

static weir_status_t* range_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  range_t* self = (range_t*)dataset;
  WEIR_TRY(weir_dataset_set_attrs(ctx, "output_types", "output_shapes", dataset));
  WEIR_TRY(weir_dataset_set_shape(dataset, 0, 0, NULL));
  WEIR_TRY(weir_dataset_int(ctx, 0, "start", &self->start));
  WEIR_TRY(weir_dataset_int(ctx, 1, "stop", &self->stop));
  WEIR_TRY(weir_dataset_int(ctx, 2, "step", &self->step));
  if (self->step == 0) return WEIR_STATUS(INVALID_ARGUMENT, "step must be a non-zero integer.");
  if (weir_dtype_is_plain(dataset->types[0])) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported data type: %s",
                     weir_dtype_name(dataset->types[0]));
}

static bool is_past(const range_t* self, int64_t value) {
  return self->step > 0 ? value >= self->stop : value <= self->stop;
}

static int64_t range_cardinality(const weir_data_t* dataset) {
  const range_t* self = (const range_t*)dataset;
  if (is_past(self, self->start)) return 0;
  if (self->stop == (self->step > 0 ? INT64_MAX : INT64_MIN)) return WEIR_CARDINALITY_INFINITE;
  uint64_t way = self->step > 0 ? (uint64_t)self->stop - (uint64_t)self->start
                                : (uint64_t)self->start - (uint64_t)self->stop;
  uint64_t step = self->step > 0 ? (uint64_t)self->step : 0 - (uint64_t)self->step;
  return (int64_t)((way - 1) / step + 1);
}

static weir_status_t* make_number(const weir_data_t* dataset, int64_t value, weir_tensor_t** out) {
  WEIR_TRY(weir_tensor_create(dataset->types[0], 0, NULL, &out[0]));
  return weir_cast_elements(dataset->types[0], out[0]->data, WEIR_DTYPE_INT64, &value, 1);
}

static weir_status_t* range_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                                weir_tensor_t** out) {
  (void)walk;
  const range_t* self = (const range_t*)dataset;
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  return make_number(dataset, self->start + index * self->step, out);
}

static weir_status_t* range_start(weir_iterator_t* iterator) {
  ((range_iterator_t*)iterator)->next = ((const range_t*)iterator->dataset)->start;
  return NULL;
}

static weir_status_t* range_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                 weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  range_iterator_t* self = (range_iterator_t*)iterator;
  const range_t* range = (const range_t*)iterator->dataset;
  if (is_past(range, self->next)) {
    *out_is_end = true;
    return NULL;
  }
  int64_t value = self->next;
  // A step that leaves the range of numbers leaves the dataset's as well.
  if (__builtin_add_overflow(value, range->step, &self->next)) self->next = range->stop;
  return make_number(iterator->dataset, value, out);
}

static void range_state(weir_iterator_t* iterator, weir_state_t* state) {
  range_iterator_t* self = (range_iterator_t*)iterator;
  weir_state_int(state, "next", &self->next, INT64_MIN, INT64_MAX);
}

static const weir_iterator_vtable_t range_iterator = {.size = sizeof(range_iterator_t),
                                                      .start = range_start,
                                                      .next = range_next,
                                                      .state = range_state};
static const weir_dataset_vtable_t range_dataset = {.name = "Range",
                                                    .size = sizeof(range_t),
                                                    .init = range_init,
                                                    .cardinality = range_cardinality,
                                                    .get = range_get,
                                                    .iterator = &range_iterator};

static weir_status_t* range_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &range_dataset);
}

static weir_status_t* range_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL));
  return weir_dataset_shape_scalars(ctx);
}

const weir_op_module_t weir_ops_data_range = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RangeDataset",
         .attrs = WEIR_DATASET_ATTRS "; replicate_on_split: bool = false",
         .inputs = "start: int64; stop: int64; step: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "Numbers from start to stop, without it",
         .infer_shape = range_shape,
         .kernels = WEIR_DATASET_KERNEL(range_cpu)},
        {0}}};
