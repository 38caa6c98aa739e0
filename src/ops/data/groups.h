// groups.h — Elements by the key that a function gives them: what GroupByWindowDataset and
// GroupByReducerDataset share. Thread-confined.
#ifndef WEIR_OPS_DATA_GROUPS_H_
#define WEIR_OPS_DATA_GROUPS_H_

#include "ops/data/captured.h"

typedef struct weir_group_t {
  int64_t key;
  int64_t window;          // GroupByWindow: elements of a whole group
  weir_tensor_t*** items;  // GroupByWindow: what came so far
  int64_t count;
  size_t capacity;
  weir_tensor_t** state;  // GroupByReducer; NULL: not begun
} weir_group_t;

typedef struct weir_groups_t {  // the smallest key first
  weir_group_t* items;
  size_t count;
  size_t capacity;
} weir_groups_t;

// The group of |key|, new ones zeroed; borrowed until the next call.
WEIR_MUST_USE weir_status_t* weir_groups_find(weir_groups_t* groups, int64_t key,
                                              weir_group_t** out_group);
void weir_group_free_items(weir_tensor_t*** items, int64_t count, int width);
void weir_groups_free(weir_groups_t* groups, int width, int state_count);

// Hands over what a group gathered, elements of |components|.
void weir_group_state(weir_group_t* group, weir_element_types_t components, weir_state_t* state);
// All groups, each with a state of |state_count| tensors.
void weir_groups_state(weir_groups_t* groups, weir_state_t* state, weir_element_types_t components,
                       int state_count);

// Calls a function that gives a number. INVALID_ARGUMENT "`|name|` must return a scalar int64."
WEIR_MUST_USE weir_status_t* weir_group_number(const weir_captured_t* function,
                                               const weir_iterator_t* iterator,
                                               weir_cancel_t* cancel, weir_tensor_t* const* args,
                                               int count, const char* name, int64_t* out_number);
WEIR_MUST_USE weir_status_t* weir_group_key(int64_t key, weir_tensor_t** out_tensor);

#endif  // WEIR_OPS_DATA_GROUPS_H_
