// group_by_reducer.c — GroupByReducerDataset: a state for each key, which a function makes of the
// elements with it.
#include "ops/data/groups.h"

typedef struct by_reducer_t {
  weir_data_t base;
  weir_captured_t key, init, reduce, finalize;
} by_reducer_t;

typedef struct by_reducer_iterator_t {
  weir_iterator_t base;
  weir_groups_t groups;
  int state_count;
  bool is_gathered;
  size_t next;
} by_reducer_iterator_t;

static weir_status_t* by_reducer_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  by_reducer_t* self = (by_reducer_t*)dataset;
  int keys = weir_captured_count(ctx, "Tkey_func_other_arguments");
  int inits = weir_captured_count(ctx, "Tinit_func_other_arguments");
  int reduces = weir_captured_count(ctx, "Treduce_func_other_arguments");
  int ends = weir_captured_count(ctx, "Tfinalize_func_other_arguments");
  WEIR_TRY(weir_dataset_init_declared(ctx, dataset));
  WEIR_TRY(weir_captured_init(ctx, "key_func", 1, keys, &self->key));
  WEIR_TRY(weir_captured_init(ctx, "init_func", 1 + keys, inits, &self->init));
  WEIR_TRY(weir_captured_init(ctx, "reduce_func", 1 + keys + inits, reduces, &self->reduce));
  return weir_captured_init(ctx, "finalize_func", 1 + keys + inits + reduces, ends,
                            &self->finalize);
}

static void by_reducer_deinit(weir_data_t* dataset) {
  by_reducer_t* self = (by_reducer_t*)dataset;
  weir_captured_deinit(&self->key);
  weir_captured_deinit(&self->init);
  weir_captured_deinit(&self->reduce);
  weir_captured_deinit(&self->finalize);
}

static weir_status_t* begin_state(by_reducer_iterator_t* self, weir_cancel_t* cancel,
                                  weir_group_t* group) {
  const by_reducer_t* by = (const by_reducer_t*)self->base.dataset;
  weir_tensor_t* key = NULL;
  if (group->state) return NULL;
  WEIR_TRY(weir_captured_result_count(&by->init, self->base.walk, &self->state_count));
  WEIR_TRY(weir_group_key(group->key, &key));
  weir_tensor_t** state = weir_element_create(self->state_count);
  weir_results_t results = {.count = self->state_count, .items = state};
  weir_status_t* status =
      state ? weir_captured_call(&by->init, self->base.walk, cancel, &key, 1, &results)
            : weir_out_of_memory();
  weir_tensor_release(key);
  if (status) weir_element_free(state, self->state_count);
  else group->state = state;
  return status;
}

// Replaces a group's state by reduce(state, element).
static weir_status_t* fold_in(by_reducer_iterator_t* self, weir_cancel_t* cancel,
                              weir_group_t* group, weir_tensor_t* const* element) {
  const by_reducer_t* by = (const by_reducer_t*)self->base.dataset;
  int states = self->state_count, width = by->base.inputs[0]->count;
  weir_tensor_t** args = weir_element_create(states + width);
  weir_tensor_t** made = weir_element_create(states);
  weir_status_t* status = args && made ? NULL : weir_out_of_memory();
  if (!status) {
    for (int i = 0; i < states; ++i) args[i] = group->state[i];
    for (int i = 0; i < width; ++i) args[states + i] = element[i];
    weir_results_t results = {.count = states, .items = made};
    status =
        weir_captured_call(&by->reduce, self->base.walk, cancel, args, states + width, &results);
  }
  if (!status) weir_element_clear(group->state, states);
  if (!status) weir_element_move(made, group->state, states);
  weir_free(args);  // borrowed
  weir_element_free(made, states);
  return status;
}

static weir_status_t* gather_all(by_reducer_iterator_t* self, weir_cancel_t* cancel,
                                 weir_tensor_t** element) {
  const by_reducer_t* by = (const by_reducer_t*)self->base.dataset;
  int width = by->base.inputs[0]->count;
  for (bool is_end = false;; weir_element_clear(element, width)) {
    int64_t key = 0;
    weir_group_t* group = NULL;
    WEIR_TRY(weir_iterator_pull(&self->base, 0, cancel, element, &is_end));
    if (is_end) return NULL;
    WEIR_TRY(weir_group_number(&by->key, &self->base, cancel, element, width, "key_func", &key));
    WEIR_TRY(weir_groups_find(&self->groups, key, &group));
    WEIR_TRY(begin_state(self, cancel, group));
    WEIR_TRY(fold_in(self, cancel, group, element));
  }
}

static weir_status_t* by_reducer_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                      weir_tensor_t** out, bool* out_is_end) {
  by_reducer_iterator_t* self = (by_reducer_iterator_t*)iterator;
  const by_reducer_t* by = (const by_reducer_t*)iterator->dataset;
  if (!self->is_gathered) {
    int width = iterator->dataset->inputs[0]->count;
    weir_tensor_t** element = weir_element_create(width);
    weir_status_t* status = element ? gather_all(self, cancel, element) : weir_out_of_memory();
    weir_element_free(element, width);
    if (status) return status;
    self->is_gathered = true;
  }
  while (self->next < self->groups.count && !self->groups.items[self->next].state)
    ++self->next;  // init_func failed for its key
  *out_is_end = self->next >= self->groups.count;
  if (*out_is_end) return NULL;
  const weir_group_t* group = &self->groups.items[self->next++];
  weir_results_t results = {.count = by->base.count, .types = by->base.types, .items = out};
  return weir_captured_call(&by->finalize, iterator->walk, cancel, group->state, self->state_count,
                            &results);
}

static void by_reducer_stop(weir_iterator_t* iterator) {
  by_reducer_iterator_t* self = (by_reducer_iterator_t*)iterator;
  weir_groups_free(&self->groups, 0, self->state_count);
}

static void by_reducer_state(weir_iterator_t* iterator, weir_state_t* state) {
  by_reducer_iterator_t* self = (by_reducer_iterator_t*)iterator;
  const by_reducer_t* by = (const by_reducer_t*)iterator->dataset;
  const weir_captured_t* functions[] = {&by->key, &by->init, &by->reduce, &by->finalize};
  for (int i = 0; i < 4; ++i) weir_captured_state(functions[i], iterator, state);
  if (state->is_restoring)
    weir_state_fail(state,
                    weir_captured_result_count(&by->init, iterator->walk, &self->state_count));
  weir_state_bool(state, "is_gathered", &self->is_gathered);
  weir_state_size(state, "next", &self->next, SIZE_MAX);
  weir_groups_state(&self->groups, state, (weir_element_types_t){.count = 0}, self->state_count);
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t by_reducer_iterator = {.size = sizeof(by_reducer_iterator_t),
                                                           .start = weir_iterator_start_input,
                                                           .next = by_reducer_next,
                                                           .stop = by_reducer_stop,
                                                           .state = by_reducer_state};
static const weir_dataset_vtable_t by_reducer_dataset = {.name = "GroupByReducer",
                                                         .size = sizeof(by_reducer_t),
                                                         .init = by_reducer_init,
                                                         .deinit = by_reducer_deinit,
                                                         .cardinality = weir_dataset_unknown_size,
                                                         .iterator = &by_reducer_iterator};

static weir_status_t* by_reducer_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &by_reducer_dataset);
}

#define BY_REDUCER(op)                                                                 \
  {                                                                                    \
    .name = op,                                                                        \
    .attrs =                                                                           \
        "key_func: func; init_func: func; reduce_func: func; finalize_func: func; "    \
        "Tkey_func_other_arguments: list(type) >= 0; "                                 \
        "Tinit_func_other_arguments: list(type) >= 0; "                                \
        "Treduce_func_other_arguments: list(type) >= 0; "                              \
        "Tfinalize_func_other_arguments: list(type) >= 0; " WEIR_DATASET_SPEC,         \
    .inputs =                                                                          \
        "input_dataset: variant; "                                                     \
        "key_func_other_arguments: Tkey_func_other_arguments; "                        \
        "init_func_other_arguments: Tinit_func_other_arguments; "                      \
        "reduce_func_other_arguments: Treduce_func_other_arguments; "                  \
        "finalize_func_other_arguments: Tfinalize_func_other_arguments",               \
    .outputs = "handle: variant",                                                      \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,               \
    .summary = "A state for each key, which a function makes of the elements with it", \
    .infer_shape = weir_dataset_shape, .kernels = WEIR_DATASET_KERNEL(by_reducer_cpu)  \
  }

const weir_op_module_t weir_ops_data_group_by_reducer = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        BY_REDUCER("GroupByReducerDataset"), BY_REDUCER("ExperimentalGroupByReducerDataset"), {0}}};
