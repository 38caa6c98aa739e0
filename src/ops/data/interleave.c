// interleave.c — FlatMapDataset, InterleaveDataset: the elements of the datasets that a function
// makes of elements, one dataset after the other or several in turn.
#include "ops/data/ahead.h"
#include "ops/data/captured.h"

typedef struct interleave_t {
  weir_data_t base;
  weir_captured_t function;
  int64_t cycle_length;  // datasets in turn
  int64_t block_length;  // elements of one before it is the next one's turn
  bool is_parallel;      // each of them makes elements ahead
  bool keeps_failed;     // an element that gave no dataset has its turn all the same
  bool is_flat;          // FlatMapDataset: an input that fails at its end is asked again
} interleave_t;

typedef struct part_t {       // a dataset that the function made
  weir_iterator_t* iterator;  // NULL: none is open here
  weir_tensor_t** args;       // the element that it was made of
  bool has_failed;            // instead of being opened
  weir_ahead_t ahead;
} part_t;

typedef struct interleave_iterator_t {
  weir_iterator_t base;
  part_t* parts;  // cycle_length of them
  int64_t at;     // whose turn it is
  int64_t taken;  // of it, in this turn
  int64_t open_count;
  bool is_input_ended;
} interleave_iterator_t;

// ---- parts ----

static void part_close(part_t* part, int width) {
  weir_ahead_stop(&part->ahead);
  part->ahead = (weir_ahead_t){.input = NULL};
  weir_iterator_destroy(part->iterator);
  part->iterator = NULL;
  weir_element_free(part->args, width);
  part->args = NULL;
}

// Consumes |take_element|.
static weir_status_t* part_open(const interleave_iterator_t* self, weir_cancel_t* cancel,
                                weir_tensor_t** take_element, part_t* part) {
  const interleave_t* interleave = (const interleave_t*)self->base.dataset;
  const weir_data_t* dataset = &interleave->base;
  int width = dataset->inputs[0]->count;
  part->args = take_element;
  weir_status_t* status = weir_captured_walk(&interleave->function, self->base.walk, cancel,
                                             take_element, width, &part->iterator);
  if (status) {
    part_close(part, width);
    return weir_captured_blame(dataset, status);
  }
  const weir_data_t* made = part->iterator->dataset;
  status = weir_components_check_types(dataset->count, dataset->types, made->count, made->types);
  if (!status && interleave->is_parallel) {
    part->ahead.input = part->iterator;
    part->ahead.out_width = dataset->count;
    part->ahead.limit = interleave->block_length;
    status = weir_ahead_init(&part->ahead, self->base.walk);
  }
  if (status) part_close(part, width);
  return status;
}

static weir_status_t* part_next(part_t* part, weir_cancel_t* cancel, weir_tensor_t** out,
                                bool* out_is_end) {
  if (part->ahead.is_made) return weir_ahead_next(&part->ahead, cancel, out, out_is_end);
  return weir_iterator_next(part->iterator, cancel, out, out_is_end);
}

// Opens the place whose turn it is with the next element of the input, if there is one.
static weir_status_t* open_next(interleave_iterator_t* self, weir_cancel_t* cancel,
                                bool* out_is_end) {
  int width = self->base.dataset->inputs[0]->count;
  weir_tensor_t** element = weir_element_create(width);
  if (!element) return weir_out_of_memory();
  weir_status_t* status =
      weir_iterator_pull(&self->base, 0, cancel, element, &self->is_input_ended);
  if (!status && !self->is_input_ended) {
    status = part_open(self, cancel, element, &self->parts[self->at]);
    element = NULL;
    if (!status) ++self->open_count;
  }
  self->parts[self->at].has_failed =
      status && ((const interleave_t*)self->base.dataset)->keeps_failed;
  if (status && ((const interleave_t*)self->base.dataset)->is_flat) {
    *out_is_end = self->is_input_ended;  // who is above takes it for an error or for the end
    self->is_input_ended = false;
  }
  weir_element_free(element, width);
  return status;
}

// ---- turns ----

static void next_turn(interleave_iterator_t* self) {
  self->taken = 0;
  self->at = (self->at + 1) % ((const interleave_t*)self->base.dataset)->cycle_length;
}

static weir_status_t* interleave_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                      weir_tensor_t** out, bool* out_is_end) {
  interleave_iterator_t* self = (interleave_iterator_t*)iterator;
  int64_t block_length = ((const interleave_t*)iterator->dataset)->block_length;
  while (!self->is_input_ended || self->open_count > 0) {
    part_t* part = &self->parts[self->at];
    bool is_end = false;
    if (part->iterator) {
      WEIR_TRY(part_next(part, cancel, out, &is_end));
      if (!is_end) {
        if (++self->taken == block_length) next_turn(self);
        return NULL;
      }
      part_close(part, iterator->dataset->inputs[0]->count);
      --self->open_count;
      next_turn(self);
    } else if (part->has_failed) {
      part->has_failed = false;
      next_turn(self);
    } else if (!self->is_input_ended) {
      weir_status_t* status = open_next(self, cancel, out_is_end);
      if (part->has_failed && ++self->taken == block_length) next_turn(self);
      if (status) return status;
    } else {
      next_turn(self);
    }
  }
  *out_is_end = true;
  return NULL;
}

static weir_status_t* interleave_start(weir_iterator_t* iterator) {
  interleave_iterator_t* self = (interleave_iterator_t*)iterator;
  size_t count = (size_t)((const interleave_t*)iterator->dataset)->cycle_length;
  self->parts = weir_calloc(count, sizeof(*self->parts));
  return self->parts ? weir_iterator_open(iterator, 0) : weir_out_of_memory();
}

static void interleave_stop(weir_iterator_t* iterator) {
  interleave_iterator_t* self = (interleave_iterator_t*)iterator;
  int64_t count = ((const interleave_t*)iterator->dataset)->cycle_length;
  for (int64_t i = 0; i < count && self->parts; ++i)
    part_close(&self->parts[i], iterator->dataset->inputs[0]->count);
  weir_free(self->parts);
}

// ---- saving and restoring ----

// Calls the function again, on what it was called on.
static void part_reopen(interleave_iterator_t* self, weir_state_t* state, part_t* part) {
  weir_element_types_t components = weir_element_types_of(self->base.dataset->inputs[0]);
  weir_tensor_t** args = weir_element_create(components.count);
  if (!args) {
    weir_state_fail(state, weir_out_of_memory());
    return;
  }
  weir_state_element(state, "args", components, args);
  if (weir_state_is_good(state)) {
    weir_state_fail(state, part_open(self, state->cancel, args, part));
    if (part->iterator) ++self->open_count;
  } else {
    weir_element_free(args, components.count);
  }
}

static void part_state(interleave_iterator_t* self, weir_state_t* state, part_t* part) {
  bool is_open = part->iterator != NULL;
  weir_state_bool(state, "has_failed", &part->has_failed);
  weir_state_bool(state, "is_open", &is_open);
  if (!is_open) return;
  if (state->is_restoring) part_reopen(self, state, part);
  else
    weir_state_element(state, "args", weir_element_types_of(self->base.dataset->inputs[0]),
                       part->args);
  if (!weir_state_is_good(state)) return;
  if (part->ahead.is_made)
    weir_ahead_state(&part->ahead, state, weir_element_types_of(self->base.dataset));
  weir_state_iterator(part->iterator, state);
}

static void interleave_state(weir_iterator_t* iterator, weir_state_t* state) {
  interleave_iterator_t* self = (interleave_iterator_t*)iterator;
  const interleave_t* interleave = (const interleave_t*)iterator->dataset;
  weir_captured_state(&interleave->function, iterator, state);
  weir_state_int(state, "at", &self->at, 0, interleave->cycle_length - 1);
  weir_state_int(state, "taken", &self->taken, 0, interleave->block_length - 1);
  weir_state_bool(state, "is_input_ended", &self->is_input_ended);
  for (int64_t i = 0; i < interleave->cycle_length && weir_state_is_good(state); ++i)
    part_state(self, state, &self->parts[i]);
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t interleave_iterator = {.size = sizeof(interleave_iterator_t),
                                                           .start = interleave_start,
                                                           .next = interleave_next,
                                                           .stop = interleave_stop,
                                                           .state = interleave_state};

// ---- datasets ----

static weir_status_t* flat_map_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  interleave_t* self = (interleave_t*)dataset;
  self->cycle_length = self->block_length = 1;
  self->is_flat = true;
  WEIR_TRY(weir_dataset_init_declared(ctx, dataset));
  return weir_captured_init(ctx, "f", 1, weir_captured_count(ctx, "Targuments"), &self->function);
}

static weir_status_t* interleave_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  interleave_t* self = (interleave_t*)dataset;
  WEIR_TRY(flat_map_init(ctx, dataset));
  self->is_flat = false;
  int first = 1 + self->function.count;
  WEIR_TRY(weir_dataset_int(ctx, first, "cycle_length", &self->cycle_length));
  WEIR_TRY(weir_dataset_int(ctx, first + 1, "block_length", &self->block_length));
  if (self->cycle_length == -1) self->cycle_length = weir_pool_thread_count(weir_kernel_pool(ctx));
  if (self->cycle_length <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "cycle_length must be greater than zero.");
  if (self->block_length <= 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "block_length must be greater than zero.");
  return NULL;
}

static weir_status_t* parallel_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(interleave_init(ctx, dataset));
  ((interleave_t*)dataset)->is_parallel = true;
  ((interleave_t*)dataset)->keeps_failed = true;
  int64_t calls = 0;
  WEIR_TRY(weir_dataset_int(ctx, ctx->input_count - 1, "num_parallel_calls", &calls));
  if (calls <= 0 && calls != -1)
    return WEIR_STATUS(INVALID_ARGUMENT, "num_parallel_calls must be greater than zero.");
  int64_t cycle_length = ((const interleave_t*)dataset)->cycle_length;
  if (calls <= cycle_length) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "If `cycle_length` is set to a fixed value, `num_parallel_calls` must be "
                     "either `tf.data.AUTOTUNE` or a value less than or equal to `cycle_length`. "
                     "However, `num_parallel_calls` is %lld and `cycle_length` is %lld.",
                     (long long)calls, (long long)cycle_length);
}

static weir_status_t* legacy_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  WEIR_TRY(interleave_init(ctx, dataset));
  ((interleave_t*)dataset)->is_parallel = true;
  return NULL;
}

static void interleave_deinit(weir_data_t* dataset) {
  weir_captured_deinit(&((interleave_t*)dataset)->function);
}

#define DATASET(label, init_fn, size_fn)                                                       \
  {                                                                                            \
    .name = label, .size = sizeof(interleave_t), .init = init_fn, .deinit = interleave_deinit, \
    .cardinality = size_fn, .iterator = &interleave_iterator                                   \
  }
static const weir_dataset_vtable_t flat_map_dataset =
    DATASET("FlatMap", flat_map_init, weir_dataset_unknown_size);
static const weir_dataset_vtable_t interleave_dataset =
    DATASET("Interleave", interleave_init, weir_dataset_unknown_size);
static const weir_dataset_vtable_t parallel_dataset =
    DATASET("ParallelInterleave", parallel_init, weir_dataset_endless_size);
static const weir_dataset_vtable_t legacy_dataset =
    DATASET("ParallelInterleave", legacy_init, weir_dataset_unknown_size);

static weir_status_t* flat_map_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &flat_map_dataset);
}
static weir_status_t* interleave_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &interleave_dataset);
}
static weir_status_t* parallel_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &parallel_dataset);
}
static weir_status_t* legacy_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &legacy_dataset);
}

const weir_func_t* weir_interleave_function(const weir_data_t* dataset) {
  bool is_one = dataset->vtable->iterator == &interleave_iterator;
  return is_one ? &((const interleave_t*)dataset)->function.func : NULL;
}

#define INTERLEAVE(op, before, after, numbers, kernel)                                  \
  {                                                                                     \
    .name = op,                                                                         \
    .attrs = "f: func; " before "Targuments: list(type) >= 0; " WEIR_DATASET_SPEC after \
             "; metadata: string = ''",                                                 \
    .inputs =                                                                           \
        "input_dataset: variant; other_arguments: Targuments; cycle_length: int64; "    \
        "block_length: int64" numbers,                                                  \
    .outputs = "handle: variant", .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,     \
    .summary = "The elements of datasets that a function makes, several in turn",       \
    .infer_shape = weir_dataset_shape, .kernels = WEIR_DATASET_KERNEL(kernel)           \
  }
#define DETERMINISTIC "deterministic: string = 'default'; "
#define BUFFERS "; buffer_output_elements: int64; prefetch_input_elements: int64"
#define CALLS "; num_parallel_calls: int64"

const weir_op_module_t weir_ops_data_interleave = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "FlatMapDataset",
         .attrs = "f: func; Targuments: list(type) >= 0; " WEIR_DATASET_ATTRS,
         .inputs = "input_dataset: variant; other_arguments: Targuments",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "The elements of datasets that a function makes, one after the other",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(flat_map_cpu)},
        INTERLEAVE("InterleaveDataset", "", "", "", interleave_cpu),
        INTERLEAVE("ParallelInterleaveDataset", "", "", "; sloppy: bool" BUFFERS, legacy_cpu),
        INTERLEAVE("LegacyParallelInterleaveDatasetV2", DETERMINISTIC, "", BUFFERS, legacy_cpu),
        INTERLEAVE("ParallelInterleaveDatasetV2", "", "; sloppy: bool = false", CALLS,
                   parallel_cpu),
        INTERLEAVE("ParallelInterleaveDatasetV3", DETERMINISTIC, "", CALLS, parallel_cpu),
        INTERLEAVE("ParallelInterleaveDatasetV4", DETERMINISTIC, "", BUFFERS CALLS, parallel_cpu),
        {0}}};
