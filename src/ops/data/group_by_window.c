// group_by_window.c — GroupByWindowDataset: what a function makes of groups of elements with one
// key.
#include "ops/data/graph_out.h"
#include "ops/data/groups.h"

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
  weir_group_free_items(self->items, self->size, dataset->count);
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

static weir_status_t* members_write(weir_data_t* dataset, weir_graph_out_t* out,
                                    const char** out_name) {
  const members_t* self = (const members_t*)dataset;
  int width = dataset->count, count = (int)self->size * width;
  weir_tensor_t** items = weir_element_create(count + 1);  // borrowed
  if (!items) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) items[i] = self->items[i / width][i % width];
  weir_status_t* status = weir_graph_out_window(out, dataset, items, count, out_name);
  weir_free(items);
  return status;
}

static const weir_iterator_vtable_t members_iterator = {
    .size = sizeof(members_iterator_t), .next = members_next, .state = members_state};
static const weir_dataset_vtable_t members_dataset = {.name = "Window",
                                                      .size = sizeof(members_t),
                                                      .deinit = members_deinit,
                                                      .cardinality = members_cardinality,
                                                      .write = members_write,
                                                      .iterator = &members_iterator};

// The elements of |group|, which it loses, as elements of |like|'s kind.
static weir_status_t* create_members(weir_group_t* group, const weir_data_t* like,
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
  weir_groups_t groups;
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

static weir_status_t* find_window(const by_window_iterator_t* self, weir_cancel_t* cancel,
                                  weir_group_t* group) {
  const by_window_t* by = (const by_window_t*)self->base.dataset;
  weir_tensor_t* key = NULL;
  if (group->window > 0) return NULL;
  WEIR_TRY(weir_group_key(group->key, &key));
  weir_status_t* status = weir_group_number(&by->window_size, &self->base, cancel, &key, 1,
                                            "window_size_func", &group->window);
  weir_tensor_release(key);
  if (status || group->window > 0) return status;
  return WEIR_STATUS(INVALID_ARGUMENT, "Window size must be greater than zero, but got %lld.",
                     (long long)group->window);
}

// Walks over what reduce_func makes of a group.
static weir_status_t* flush(by_window_iterator_t* self, weir_cancel_t* cancel,
                            weir_group_t* group) {
  const by_window_t* by = (const by_window_t*)self->base.dataset;
  weir_status_t* status = weir_group_key(group->key, &self->args[0]);
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
  weir_group_t* group = NULL;
  weir_status_t* status =
      weir_group_number(&by->key, &self->base, cancel, take_element, width, "key_func", &key);
  if (!status) status = weir_groups_find(&self->groups, key, &group);
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
  weir_groups_free(&self->groups, iterator->dataset->inputs[0]->count, 0);
}

// The group that is walked over, made anew where it is restored.
static void current_state(by_window_iterator_t* self, weir_state_t* state) {
  weir_element_types_t components = weir_element_types_of(self->base.dataset->inputs[0]);
  bool is_open = self->current != NULL;
  weir_state_bool(state, "is_open", &is_open);
  if (!is_open) return;
  weir_group_t group = {.key = 0};
  if (!state->is_restoring) {
    const members_t* members =
        (const members_t*)WEIR_TENSOR_DATA(self->args[1], weir_variant_t)->object;
    group = (weir_group_t){.key = *WEIR_TENSOR_DATA(self->args[0], int64_t),
                           .items = members->items,
                           .count = members->size};
  }
  weir_group_state(&group, components, state);
  if (state->is_restoring) {
    if (weir_state_is_good(state)) weir_state_fail(state, flush(self, state->cancel, &group));
    weir_group_free_items(group.items, group.count, components.count);
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
  weir_groups_state(&self->groups, state, weir_element_types_of(by->base.inputs[0]), 0);
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
                                                        .cardinality = weir_dataset_endless_size,
                                                        .iterator = &by_window_iterator};

static weir_status_t* by_window_cpu(weir_kernel_ctx_t* ctx) {
  return weir_dataset_output(ctx, &by_window_dataset);
}

const weir_op_module_t weir_ops_data_group_by_window = {
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
         .kernels = WEIR_DATASET_KERNEL(by_window_cpu)},
        {0}}};
