// repeat.c — RepeatDataset: a dataset several times, or for ever.
#include "ops/data/seeds.h"
#include "ops/data/state.h"

typedef struct repeat_t {
  weir_data_t base;
  int64_t times;  // negative: for ever
} repeat_t;

typedef struct repeat_iterator_t {
  weir_iterator_t base;
  int64_t done;   // walks over the input that are through
  bool is_fresh;  // this one has given nothing yet
  bool is_fused;  // with a shuffled input, which repeats
} repeat_iterator_t;

static weir_status_t* repeat_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(weir_dataset_init_like_input(ctx, dataset));
  return weir_dataset_int(ctx, 1, "count", &((repeat_t*)dataset)->times);
}

static int64_t repeat_cardinality(const weir_data_t* dataset) {
  int64_t times = ((const repeat_t*)dataset)->times;
  int64_t n = weir_dataset_cardinality(dataset->inputs[0]);
  if (times < 0) return n == 0 ? 0 : WEIR_CARDINALITY_INFINITE;
  if (times == 0) return 0;
  return n < 0 ? n : n * times;
}

// TensorFlow makes one dataset of this and a shuffled input, of which it has no right element.
static weir_status_t* repeat_get(weir_data_t* dataset, const weir_walk_t* walk, int64_t index,
                                 weir_tensor_t** out) {
  weir_data_t* input = dataset->inputs[0];
  WEIR_TRY(weir_dataset_check_index(dataset, index));
  if (weir_shuffle_is_plain(input))
    return WEIR_STATUS(UNIMPLEMENTED,
                       "Random access is not implemented for dataset ShuffleAndRepeatDataset");
  return weir_dataset_get(input, walk, index % weir_dataset_cardinality(input), out);
}

// Goes on with the next walk; |out_is_end| when there is none.
static weir_status_t* begin_again(repeat_iterator_t* self, bool* out_is_end) {
  int64_t times = ((const repeat_t*)self->base.dataset)->times;
  *out_is_end = times >= 0 && self->done >= times;
  if (*out_is_end) return NULL;
  self->is_fresh = true;
  return weir_iterator_open(&self->base, 0);
}

// TensorFlow begins a walk more than it needs, which takes seeds that others do not get.
static weir_status_t* finish(weir_iterator_t* self) {
  if (((const repeat_t*)self->dataset)->times <= 0) return NULL;
  WEIR_TRY(weir_iterator_open(self, 0));
  weir_iterator_close(self, 0);
  return NULL;
}

// One walk over a shuffled input that repeats by itself, as TensorFlow makes it: it reads what is
// below again before it has given out all.
static weir_status_t* start_fused(repeat_iterator_t* self) {
  WEIR_TRY(weir_iterator_open(&self->base, 0));
  weir_shuffle_set_times(self->base.inputs[0], ((const repeat_t*)self->base.dataset)->times);
  self->is_fused = true;
  return NULL;
}

static weir_status_t* repeat_start(weir_iterator_t* iterator) {
  int64_t times = ((const repeat_t*)iterator->dataset)->times;
  bool is_empty = false;
  if (iterator->place && (times > 0 || times == -1) &&
      weir_shuffle_is_plain(iterator->dataset->inputs[0]))
    return start_fused((repeat_iterator_t*)iterator);
  return begin_again((repeat_iterator_t*)iterator, &is_empty);
}

static weir_status_t* repeat_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                  weir_tensor_t** out, bool* out_is_end) {
  repeat_iterator_t* self = (repeat_iterator_t*)iterator;
  bool is_endless = ((const repeat_t*)iterator->dataset)->times < 0;
  if (self->is_fused) return weir_iterator_pull(iterator, 0, cancel, out, out_is_end);
  for (;;) {
    bool is_over = false;
    if (!iterator->inputs[0]) {
      WEIR_TRY(begin_again(self, out_is_end));
      if (*out_is_end) return finish(iterator);
    }
    weir_status_t* status = weir_iterator_pull(iterator, 0, cancel, out, &is_over);
    if (status) {
      *out_is_end = is_over;  // an input that fails at its end: who is above may take it for one
      return status;
    }
    if (!is_over) {
      self->is_fresh = false;
      return NULL;
    }
    weir_iterator_close(iterator, 0);
    ++self->done;
    *out_is_end = is_endless && self->is_fresh;  // an empty dataset for ever is empty
    if (*out_is_end) return NULL;
  }
}

static void repeat_state(weir_iterator_t* iterator, weir_state_t* state) {
  repeat_iterator_t* self = (repeat_iterator_t*)iterator;
  weir_state_int(state, "done", &self->done, 0, INT64_MAX);
  weir_state_bool(state, "is_fresh", &self->is_fresh);
  weir_state_input(iterator, state, 0);
}

static const weir_iterator_vtable_t repeat_iterator = {.size = sizeof(repeat_iterator_t),
                                                       .start = repeat_start,
                                                       .next = repeat_next,
                                                       .state = repeat_state};
static const weir_dataset_vtable_t repeat_dataset = {.name = "Repeat",
                                                     .size = sizeof(repeat_t),
                                                     .init = repeat_init,
                                                     .cardinality = repeat_cardinality,
                                                     .get = repeat_get,
                                                     .iterator = &repeat_iterator};

static weir_status_t* repeat_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &repeat_dataset);
}

const weir_op_module_t weir_ops_data_repeat = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RepeatDataset",
         .attrs = WEIR_DATASET_ATTRS,
         .inputs = "input_dataset: variant; count: int64",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "A dataset count times, for ever where that is negative",
         .infer_shape = weir_dataset_shape_scalars,
         .kernels = WEIR_DATASET_KERNEL(repeat_cpu)},
        {0}}};
