// groups.c — Groups by key.
#include "ops/data/groups.h"

weir_status_t* weir_groups_find(weir_groups_t* groups, int64_t key, weir_group_t** out_group) {
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
    groups->items[low] = (weir_group_t){.key = key};
    ++groups->count;
  }
  *out_group = &groups->items[low];
  return NULL;
}

void weir_group_free_items(weir_tensor_t*** items, int64_t count, int width) {
  for (int64_t i = 0; i < count; ++i) weir_element_free(items[i], width);
  weir_free(items);
}

void weir_groups_free(weir_groups_t* groups, int width, int state_count) {
  for (size_t i = 0; i < groups->count; ++i) {
    weir_group_free_items(groups->items[i].items, groups->items[i].count, width);
    weir_element_free(groups->items[i].state, state_count);
  }
  weir_free(groups->items);
}

void weir_group_state(weir_group_t* group, weir_element_types_t components, weir_state_t* state) {
  size_t count = (size_t)group->count;
  weir_state_int(state, "key", &group->key, INT64_MIN, INT64_MAX);
  weir_state_int(state, "window", &group->window, INT64_MIN, INT64_MAX);
  weir_state_elements(state, "items", components, &group->items, &count, &group->capacity);
  group->count = (int64_t)count;
}

static void reduced_state(weir_group_t* group, int count, weir_state_t* state) {
  bool is_there = group->state != NULL;
  weir_state_bool(state, "is_begun", &is_there);
  if (!is_there || !weir_state_is_good(state)) return;
  if (!group->state) group->state = weir_element_create(count + 1);
  if (!group->state) weir_state_fail(state, weir_out_of_memory());
  else weir_state_element(state, "state", (weir_element_types_t){.count = count}, group->state);
}

void weir_groups_state(weir_groups_t* groups, weir_state_t* state, weir_element_types_t components,
                       int state_count) {
  size_t count = groups->count;
  weir_state_count(state, "groups", &count);
  for (size_t i = 0; i < count && weir_state_is_good(state); ++i) {
    if (state->is_restoring) {
      if (!WEIR_GROW(groups->items, groups->capacity, i + 1)) {
        weir_state_fail(state, weir_out_of_memory());
        return;
      }
      groups->items[groups->count++] = (weir_group_t){.key = 0};
    }
    weir_group_state(&groups->items[i], components, state);
    weir_state_require(state, i == 0 || groups->items[i - 1].key < groups->items[i].key);
    reduced_state(&groups->items[i], state_count, state);
  }
}

// Calls a function that gives a number.
weir_status_t* weir_group_number(const weir_captured_t* function, const weir_iterator_t* iterator,
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

weir_status_t* weir_group_key(int64_t key, weir_tensor_t** out_tensor) {
  return weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &key, out_tensor);
}
