// scan.c — ScanDataset: a function of a state and an element, which makes both anew.
#include "ops/data/map.h"

typedef struct scan_t {
  weir_map_dataset_t map;  // first: the function and what its OUT_OF_RANGE means
  weir_tensor_t** initial;
  weir_dtype_t* state_types;
  int state_count;
} scan_t;

typedef struct scan_iterator_t {
  weir_iterator_t base;
  weir_tensor_t** state;
} scan_iterator_t;

static weir_status_t* scan_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  scan_t* self = (scan_t*)dataset;
  const weir_attr_t* types = weir_attrs_list(weir_kernel_attrs(ctx), "Tstate");
  int count = (int)types->count;
  WEIR_TRY(weir_dataset_init_declared(ctx, dataset));
  self->map.keeps_cardinality = weir_attrs_bool(weir_kernel_attrs(ctx), "preserve_cardinality");
  self->initial = weir_element_create(count);
  self->state_types = weir_alloc_array(types->count, sizeof(*self->state_types));
  if (!self->initial || !self->state_types) return weir_out_of_memory();
  self->state_count = count;
  for (int i = 0; i < count; ++i) {
    self->initial[i] = weir_tensor_retain(ctx->inputs[1 + i].tensor);
    self->state_types[i] = types->u.types[i];
  }
  return weir_captured_init(ctx, "f", 1 + count, weir_captured_count(ctx, "Targuments"),
                            &self->map.function);
}

static void scan_deinit(weir_data_t* dataset) {
  scan_t* self = (scan_t*)dataset;
  weir_element_free(self->initial, self->state_count);
  weir_free(self->state_types);
  weir_map_deinit(dataset);
}

static weir_status_t* scan_start(weir_iterator_t* iterator) {
  scan_iterator_t* self = (scan_iterator_t*)iterator;
  const scan_t* scan = (const scan_t*)iterator->dataset;
  self->state = weir_element_create(scan->state_count);
  if (!self->state) return weir_out_of_memory();
  weir_element_share(scan->initial, self->state, scan->state_count);
  return weir_iterator_open(iterator, 0);
}

static void scan_stop(weir_iterator_t* iterator) {
  weir_element_free(((scan_iterator_t*)iterator)->state,
                    ((const scan_t*)iterator->dataset)->state_count);
}

static weir_status_t* check_state(const scan_t* scan, weir_tensor_t* const* made) {
  for (int i = 0; i < scan->state_count; ++i) {
    weir_dtype_t got = weir_tensor_type(made[i]);
    if (got != scan->state_types[i])
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Got wrong type for scan_func return value %d (expected %s, got %s).", i,
                         weir_dtype_name(scan->state_types[i]), weir_dtype_name(got));
  }
  return NULL;
}

// |args|: the state and an element; |made|: a new state and what comes out.
static weir_status_t* step(scan_iterator_t* self, weir_cancel_t* cancel, weir_tensor_t** args,
                           weir_tensor_t** made, weir_tensor_t** out, bool* out_is_end) {
  const weir_data_t* dataset = self->base.dataset;
  const scan_t* scan = (const scan_t*)dataset;
  int states = scan->state_count, width = dataset->inputs[0]->count;
  WEIR_TRY(weir_iterator_pull(&self->base, 0, cancel, args + states, out_is_end));
  if (*out_is_end) return NULL;
  weir_element_share(self->state, args, states);
  weir_results_t results = {.count = states + dataset->count, .items = made};
  weir_status_t* status = weir_captured_call(&scan->map.function, self->base.walk, cancel, args,
                                             states + width, &results);
  if (status) return weir_map_finish(dataset, status, out_is_end);
  WEIR_TRY(check_state(scan, made));
  weir_element_clear(self->state, states);
  weir_element_move(made, self->state, states);
  weir_element_move(made + states, out, dataset->count);
  return NULL;
}

static weir_status_t* scan_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                weir_tensor_t** out, bool* out_is_end) {
  int states = ((const scan_t*)iterator->dataset)->state_count;
  int arg_count = states + iterator->dataset->inputs[0]->count;
  int made_count = states + iterator->dataset->count;
  weir_tensor_t** args = weir_element_create(arg_count);
  weir_tensor_t** made = weir_element_create(made_count);
  weir_status_t* status =
      args && made ? step((scan_iterator_t*)iterator, cancel, args, made, out, out_is_end)
                   : weir_out_of_memory();
  weir_element_free(args, arg_count);
  weir_element_free(made, made_count);
  return status;
}

static void scan_state(weir_iterator_t* iterator, weir_state_t* state) {
  const scan_t* scan = (const scan_t*)iterator->dataset;
  weir_element_types_t components = {.count = scan->state_count, .types = scan->state_types};
  weir_captured_state(&scan->map.function, iterator, state);
  weir_state_element(state, "state", components, ((scan_iterator_t*)iterator)->state);
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t scan_iterator = {.size = sizeof(scan_iterator_t),
                                                     .start = scan_start,
                                                     .next = scan_next,
                                                     .stop = scan_stop,
                                                     .state = scan_state,
                                                     .may_resume = true};
static const weir_dataset_vtable_t scan_dataset = {.name = "Scan",
                                                   .size = sizeof(scan_t),
                                                   .init = scan_init,
                                                   .deinit = scan_deinit,
                                                   .cardinality = weir_map_cardinality,
                                                   .iterator = &scan_iterator};

static weir_status_t* scan_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &scan_dataset);
}

const weir_op_module_t weir_ops_data_scan = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ScanDataset",
         .attrs =
             "f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; " WEIR_DATASET_SPEC
             "; preserve_cardinality: bool = false; use_default_device: bool = true; "
             "metadata: string = ''",
         .inputs = "input_dataset: variant; initial_state: Tstate; other_arguments: Targuments",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "What a function makes of each element and of a state, which it renews",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_DATASET_KERNEL(scan_cpu)},
        {0}}};
