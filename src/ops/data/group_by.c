// group_by.c — GroupByWindowDataset, GroupByReducerDataset: elements by the key that a function
// gives them.
#include "ops/data/captured.h"

// ---- keys, the smallest first ----

typedef struct group_t {
  int64_t key;
  int64_t window;          // GroupByWindow: elements of a whole group
  weir_tensor_t*** items;  // GroupByWindow: what came so far
  int64_t count;
  size_t capacity;
  weir_tensor_t** state;  // GroupByReducer
} group_t;

typedef struct groups_t {
  group_t* items;
  size_t count;
  size_t capacity;
} groups_t;

// The group of |key|, new ones zeroed.
static weir_status_t* find_group(groups_t* groups, int64_t key, group_t** out_group) {
  size_t low = 0, high = groups->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (groups->items[middle].key < key) low = middle + 1;
    else high = middle;
  }
  if (low == groups->count || groups->items[low].key != key) {
    if (!WEIR_GROW(groups->items, groups->capacity, groups->count + 1)) return weir_out_of_memory();
    memmove(groups->items + low + 1, groups->items + low,
            (groups->count - low) * sizeof(*groups->items));
    groups->items[low] = (group_t){.key = key};
    ++groups->count;
  }
  *out_group = &groups->items[low];
  return NULL;
}

static void free_elements(weir_tensor_t*** items, int64_t count, int width) {
  for (int64_t i = 0; i < count; ++i) weir_element_free(items[i], width);
  weir_free(items);
}

static void free_groups(groups_t* groups, int width, int state_count) {
  for (size_t i = 0; i < groups->count; ++i) {
    free_elements(groups->items[i].items, groups->items[i].count, width);
    weir_element_free(groups->items[i].state, state_count);
  }
  weir_free(groups->items);
}

// What a group gathered.
static void group_state(group_t* group, weir_components_t components, weir_state_t* state) {
  size_t count = (size_t)group->count;
  weir_state_int(state, "key", &group->key, INT64_MIN, INT64_MAX);
  weir_state_int(state, "window", &group->window, INT64_MIN, INT64_MAX);
  weir_state_elements(state, "items", components, &group->items, &count, &group->capacity);
  group->count = (int64_t)count;
}

static void reduced_state(group_t* group, int count, weir_state_t* state) {
  bool is_there = group->state != NULL;
  weir_state_bool(state, "is_begun", &is_there);
  if (!is_there || !weir_state_is_good(state)) return;
  if (!group->state) group->state = weir_element_create(count + 1);
  if (!group->state) weir_state_fail(state, weir_out_of_memory());
  else weir_state_element(state, "state", (weir_components_t){.count = count}, group->state);
}

// All groups, each with a state of |state_count| tensors.
static void groups_state(groups_t* groups, weir_state_t* state, weir_components_t components,
                         int state_count) {
  size_t count = groups->count;
  weir_state_count(state, "groups", &count);
  for (size_t i = 0; i < count && weir_state_is_good(state); ++i) {
    if (state->is_restoring) {
      if (!WEIR_GROW(groups->items, groups->capacity, i + 1)) {
        weir_state_fail(state, weir_out_of_memory());
        return;
      }
      groups->items[groups->count++] = (group_t){.key = 0};
    }
    group_state(&groups->items[i], components, state);
    weir_state_require(state, i == 0 || groups->items[i - 1].key < groups->items[i].key);
    reduced_state(&groups->items[i], state_count, state);
  }
}

// Calls a function that gives a number.
static weir_status_t* call_number(const weir_captured_t* function, const weir_iterator_t* iterator,
                                  weir_cancel_t* cancel, weir_tensor_t* const* args, int count,
                                  const char* name, int64_t* out_number) {
  weir_tensor_t* number = NULL;
  weir_results_t results = {.count = 1, .items = &number};
  WEIR_TRY(weir_captured_call(function, iterator->walk, cancel, args, count, &results));
  bool is_number = weir_tensor_type(number) == WEIR_DTYPE_INT64 && number->count == 1;
  if (is_number) *out_number = *WEIR_TENSOR_DATA(number, int64_t);
  weir_tensor_release(number);
  return is_number ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "`%s` must return a scalar int64.", name);
}

static weir_status_t* create_key(int64_t key, weir_tensor_t** out_tensor) {
  return weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &key, out_tensor);
}

// ---- a group as a dataset ----

typedef struct members_t {
  weir_data_t base;
  weir_tensor_t*** items;
  int64_t size;
} members_t;

typedef struct members_iterator_t {
  weir_iterator_t base;
  int64_t next;
} members_iterator_t;

static void members_deinit(weir_data_t* dataset) {
  members_t* self = (members_t*)dataset;
  free_elements(self->items, self->size, dataset->count);
}

static int64_t members_cardinality(const weir_data_t* dataset) {
  return ((const members_t*)dataset)->size;
}

static weir_status_t* members_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                   weir_tensor_t** out, bool* out_is_end) {
  (void)cancel;
  members_iterator_t* self = (members_iterator_t*)iterator;
  const members_t* members = (const members_t*)iterator->dataset;
  *out_is_end = self->next >= members->size;
  if (!*out_is_end) weir_element_share(members->items[self->next++], out, iterator->dataset->count);
  return NULL;
}

static void members_state(weir_iterator_t* iterator, weir_state_t* state) {
  members_iterator_t* self = (members_iterator_t*)iterator;
  weir_state_int(state, "next", &self->next, 0, INT64_MAX);
}

static const weir_iterator_vtable_t members_iterator = {
    .size = sizeof(members_iterator_t), .next = members_next, .state = members_state};
static const weir_dataset_vtable_t members_dataset = {.name = "Window",
                                                      .size = sizeof(members_t),
                                                      .deinit = members_deinit,
                                                      .cardinality = members_cardinality,
                                                      .iterator = &members_iterator};

// The elements of |group|, which it loses, as elements of |like|'s kind.
static weir_status_t* create_members(group_t* group, const weir_data_t* like,
                                     weir_tensor_t** out_tensor) {
  weir_data_t* dataset = NULL;
  WEIR_TRY(weir_dataset_create(&members_dataset, &dataset));
  weir_status_t* status = weir_dataset_set_like(like, dataset);
  if (status) {
    weir_dataset_release(dataset);
    return status;
  }
  members_t* members = (members_t*)dataset;
  members->items = group->items;
  members->size = group->count;
  group->items = NULL;
  group->count = 0;
  group->capacity = 0;
  return weir_tensor_create_variant(&dataset->base, out_tensor);
}

// ---- GroupByWindowDataset ----

typedef struct by_window_t {
  weir_data_t base;
  weir_captured_t key, reduce, window_size;
} by_window_t;

typedef struct by_window_iterator_t {
  weir_iterator_t base;
  groups_t groups;
  weir_iterator_t* current;  // over what was made of a group
  weir_tensor_t* args[2];    // what it was made of: key and members
  bool is_input_ended;
} by_window_iterator_t;

static weir_status_t* by_window_init(weir_kernel_ctx_t* ctx, weir_data_t* dataset) {
  by_window_t* self = (by_window_t*)dataset;
  int keys = weir_captured_count(ctx, "Tkey_func_other_arguments");
  int reduces = weir_captured_count(ctx, "Treduce_func_other_arguments");
  int windows = weir_captured_count(ctx, "Twindow_size_func_other_arguments");
  WEIR_TRY(weir_dataset_init_declared(ctx, dataset));
  WEIR_TRY(weir_captured_init(ctx, "key_func", 1, keys, &self->key));
  WEIR_TRY(weir_captured_init(ctx, "reduce_func", 1 + keys, reduces, &self->reduce));
  return weir_captured_init(ctx, "window_size_func", 1 + keys + reduces, windows,
                            &self->window_size);
}

static void by_window_deinit(weir_data_t* dataset) {
  by_window_t* self = (by_window_t*)dataset;
  weir_captured_deinit(&self->key);
  weir_captured_deinit(&self->reduce);
  weir_captured_deinit(&self->window_size);
}

static int64_t unknown_cardinality(const weir_data_t* dataset) {
  (void)dataset;
  return WEIR_CARDINALITY_UNKNOWN;
}

static weir_status_t* find_window(const by_window_iterator_t* self, weir_cancel_t* cancel,
                                  group_t* group) {
  const by_window_t* by = (const by_window_t*)self->base.dataset;
  weir_tensor_t* key = NULL;
  if (group->window > 0) return NULL;
  WEIR_TRY(create_key(group->key, &key));
  weir_status_t* status = call_number(&by->window_size, &self->base, cancel, &key, 1,
                                      "window_size_func", &group->window);
  weir_tensor_release(key);
  if (status || group->window > 0) return status;
  return WEIR_STATUS(INVALID_ARGUMENT, "Window size must be greater than zero, but got %lld.",
                     (long long)group->window);
}

// Walks over what reduce_func makes of a group.
static weir_status_t* flush(by_window_iterator_t* self, weir_cancel_t* cancel, group_t* group) {
  const by_window_t* by = (const by_window_t*)self->base.dataset;
  weir_status_t* status = create_key(group->key, &self->args[0]);
  if (!status) status = create_members(group, by->base.inputs[0], &self->args[1]);
  if (!status)
    status =
        weir_captured_walk(&by->reduce, self->base.walk, cancel, self->args, 2, &self->current);
  if (status) weir_element_clear(self->args, 2);
  return status;
}

static void leave(by_window_iterator_t* self) {
  weir_iterator_destroy(self->current);
  self->current = NULL;
  weir_element_clear(self->args, 2);
}

// Puts an element into its group, and flushes that when it is whole. Consumes |take_element|.
static weir_status_t* put(by_window_iterator_t* self, weir_cancel_t* cancel,
                          weir_tensor_t** take_element) {
  const by_window_t* by = (const by_window_t*)self->base.dataset;
  int width = by->base.inputs[0]->count;
  int64_t key = 0;
  group_t* group = NULL;
  weir_status_t* status =
      call_number(&by->key, &self->base, cancel, take_element, width, "key_func", &key);
  if (!status) status = find_group(&self->groups, key, &group);
  if (!status) status = find_window(self, cancel, group);
  if (!status && !WEIR_GROW(group->items, group->capacity, (size_t)group->count + 1))
    status = weir_out_of_memory();
  if (status) {
    weir_element_free(take_element, width);
    return status;
  }
  group->items[group->count++] = take_element;
  return group->count == group->window ? flush(self, cancel, group) : NULL;
}

// Pulls elements until a group is whole or there are no more.
static weir_status_t* gather(by_window_iterator_t* self, weir_cancel_t* cancel) {
  int width = self->base.dataset->inputs[0]->count;
  while (!self->is_input_ended && !self->current) {
    weir_tensor_t** element = weir_element_create(width);
    weir_status_t* status =
        element ? weir_iterator_pull(&self->base, 0, cancel, element, &self->is_input_ended)
                : weir_out_of_memory();
    if (status || self->is_input_ended) weir_element_free(element, width);
    else status = put(self, cancel, element);
    if (status) return status;
  }
  for (size_t i = 0; i < self->groups.count && self->is_input_ended && !self->current; ++i) {
    if (self->groups.items[i].count > 0) WEIR_TRY(flush(self, cancel, &self->groups.items[i]));
  }
  return NULL;
}

static weir_status_t* by_window_next(weir_iterator_t* iterator, weir_cancel_t* cancel,
                                     weir_tensor_t** out, bool* out_is_end) {
  by_window_iterator_t* self = (by_window_iterator_t*)iterator;
  do {
    bool is_end = false;
    if (self->current) {
      WEIR_TRY(weir_iterator_next(self->current, cancel, out, &is_end));
      if (!is_end) return NULL;
      leave(self);
    }
    WEIR_TRY(gather(self, cancel));
  } while (self->current || !self->is_input_ended);
  *out_is_end = true;
  return NULL;
}

static void by_window_stop(weir_iterator_t* iterator) {
  by_window_iterator_t* self = (by_window_iterator_t*)iterator;
  leave(self);
  free_groups(&self->groups, iterator->dataset->inputs[0]->count, 0);
}

// The group that is walked over, made anew where it is restored.
static void current_state(by_window_iterator_t* self, weir_state_t* state) {
  weir_components_t components = weir_components_of(self->base.dataset->inputs[0]);
  bool is_open = self->current != NULL;
  weir_state_bool(state, "is_open", &is_open);
  if (!is_open) return;
  group_t group = {.key = 0};
  if (!state->is_restoring) {
    const members_t* members =
        (const members_t*)WEIR_TENSOR_DATA(self->args[1], weir_variant_t)->object;
    group = (group_t){.key = *WEIR_TENSOR_DATA(self->args[0], int64_t),
                      .items = members->items,
                      .count = members->size};
  }
  group_state(&group, components, state);
  if (state->is_restoring) {
    if (weir_state_is_good(state)) weir_state_fail(state, flush(self, state->cancel, &group));
    free_elements(group.items, group.count, components.count);
  }
  if (weir_state_is_good(state)) weir_state_iterator(self->current, state);
}

static void by_window_state(weir_iterator_t* iterator, weir_state_t* state) {
  by_window_iterator_t* self = (by_window_iterator_t*)iterator;
  const by_window_t* by = (const by_window_t*)iterator->dataset;
  weir_captured_state(&by->key, iterator, state);
  weir_captured_state(&by->reduce, iterator, state);
  weir_captured_state(&by->window_size, iterator, state);
  weir_state_bool(state, "is_input_ended", &self->is_input_ended);
  groups_state(&self->groups, state, weir_components_of(by->base.inputs[0]), 0);
  current_state(self, state);
  weir_state_inputs(iterator, state);
}

static const weir_iterator_vtable_t by_window_iterator = {.size = sizeof(by_window_iterator_t),
                                                          .start = weir_iterator_start_input,
                                                          .next = by_window_next,
                                                          .stop = by_window_stop,
                                                          .state = by_window_state};
static const weir_dataset_vtable_t by_window_dataset = {.name = "GroupByWindow",
                                                        .size = sizeof(by_window_t),
                                                        .init = by_window_init,
                                                        .deinit = by_window_deinit,
                                                        .cardinality = unknown_cardinality,
                                                        .iterator = &by_window_iterator};

static weir_status_t* by_window_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &by_window_dataset);
}

// ---- GroupByReducerDataset ----

typedef struct by_reducer_t {
  weir_data_t base;
  weir_captured_t key, init, reduce, finalize;
} by_reducer_t;

typedef struct by_reducer_iterator_t {
  weir_iterator_t base;
  groups_t groups;
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
                                  group_t* group) {
  const by_reducer_t* by = (const by_reducer_t*)self->base.dataset;
  weir_tensor_t* key = NULL;
  if (group->state) return NULL;
  WEIR_TRY(weir_captured_result_count(&by->init, self->base.walk, &self->state_count));
  WEIR_TRY(create_key(group->key, &key));
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
static weir_status_t* fold_in(by_reducer_iterator_t* self, weir_cancel_t* cancel, group_t* group,
                              weir_tensor_t* const* element) {
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
    group_t* group = NULL;
    WEIR_TRY(weir_iterator_pull(&self->base, 0, cancel, element, &is_end));
    if (is_end) return NULL;
    WEIR_TRY(call_number(&by->key, &self->base, cancel, element, width, "key_func", &key));
    WEIR_TRY(find_group(&self->groups, key, &group));
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
  const group_t* group = &self->groups.items[self->next++];
  weir_results_t results = {.count = by->base.count, .types = by->base.types, .items = out};
  return weir_captured_call(&by->finalize, iterator->walk, cancel, group->state, self->state_count,
                            &results);
}

static void by_reducer_stop(weir_iterator_t* iterator) {
  by_reducer_iterator_t* self = (by_reducer_iterator_t*)iterator;
  free_groups(&self->groups, 0, self->state_count);
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
  groups_state(&self->groups, state, (weir_components_t){.count = 0}, self->state_count);
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
                                                         .cardinality = unknown_cardinality,
                                                         .iterator = &by_reducer_iterator};

static weir_status_t* by_reducer_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &by_reducer_dataset);
}

#define BY_REDUCER(op)                                                                       \
  {                                                                                          \
    .name = op,                                                                              \
    .attrs =                                                                                 \
        "key_func: func; init_func: func; reduce_func: func; finalize_func: func; "          \
        "Tkey_func_other_arguments: list(type) >= 0; "                                       \
        "Tinit_func_other_arguments: list(type) >= 0; "                                      \
        "Treduce_func_other_arguments: list(type) >= 0; "                                    \
        "Tfinalize_func_other_arguments: list(type) >= 0; " WEIR_DATASET_SPEC,               \
    .inputs =                                                                                \
        "input_dataset: variant; "                                                           \
        "key_func_other_arguments: Tkey_func_other_arguments; "                              \
        "init_func_other_arguments: Tinit_func_other_arguments; "                            \
        "reduce_func_other_arguments: Treduce_func_other_arguments; "                        \
        "finalize_func_other_arguments: Tfinalize_func_other_arguments",                     \
    .outputs = "handle: variant",                                                            \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,                     \
    .summary = "A state for each key, which a function makes of the elements with it",       \
    .infer_shape = weir_dataset_shape, .kernels = WEIR_CPU_KERNEL(.compute = by_reducer_cpu) \
  }

const weir_op_module_t weir_ops_data_group_by = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "GroupByWindowDataset",
         .attrs = "key_func: func; reduce_func: func; window_size_func: func; "
                  "Tkey_func_other_arguments: list(type) >= 0; "
                  "Treduce_func_other_arguments: list(type) >= 0; "
                  "Twindow_size_func_other_arguments: list(type) >= 0; " WEIR_DATASET_ATTRS,
         .inputs = "input_dataset: variant; "
                   "key_func_other_arguments: Tkey_func_other_arguments; "
                   "reduce_func_other_arguments: Treduce_func_other_arguments; "
                   "window_size_func_other_arguments: Twindow_size_func_other_arguments",
         .outputs = "handle: variant",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY,
         .summary = "What a function makes of groups of elements with one key",
         .infer_shape = weir_dataset_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = by_window_cpu)},
        BY_REDUCER("GroupByReducerDataset"),
        BY_REDUCER("ExperimentalGroupByReducerDataset"),
        {0}}};
