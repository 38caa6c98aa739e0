// captured.h — Functions that datasets call on their elements, with the values they captured.
#ifndef WEIR_OPS_DATA_CAPTURED_H_
#define WEIR_OPS_DATA_CAPTURED_H_

#include "ops/data/state.h"

// A function as a dataset holds it. Part of the dataset's struct; immutable after init.
typedef struct weir_captured_t {
  weir_func_t func;            // in |arena|
  weir_arena_t arena;          // name and attributes
  weir_tensor_list_t tensors;  // of the attributes
  weir_tensor_t** values;      // appended to the arguments of every call; retained
  int count;
} weir_captured_t;

// Takes the function from attribute |attr|, and as captured values the |count| kernel inputs from
// |first| on. |captured| is zeroed; deinit also after a failure.
WEIR_MUST_USE weir_status_t* weir_captured_init(weir_kernel_ctx_t* ctx, const char* attr, int first,
                                                int count, weir_captured_t* captured);
void weir_captured_deinit(weir_captured_t* captured);
// The number of values that list attribute |attr| of the node has types for.
int weir_captured_count(const weir_kernel_ctx_t* ctx, const char* attr);

// What it makes. |types| may be NULL: they are not checked.
typedef struct weir_results_t {
  int count;
  const weir_dtype_t* types;
  weir_tensor_t** items;  // owned references on success, NULL otherwise
} weir_results_t;

// Calls it on |args| as a step of its own, which |cancel| ends, and waits. Arguments stay the
// caller's.
WEIR_MUST_USE weir_status_t* weir_captured_call(const weir_captured_t* captured,
                                                const weir_walk_t* walk, weir_cancel_t* cancel,
                                                weir_tensor_t* const* args, int arg_count,
                                                const weir_results_t* results);
// How many results it has.
WEIR_MUST_USE weir_status_t* weir_captured_result_count(const weir_captured_t* captured,
                                                        const weir_walk_t* walk, int* out_count);
// Calls it on an element, and the one result is whether to keep it: a scalar boolean.
WEIR_MUST_USE weir_status_t* weir_captured_test(const weir_captured_t* captured,
                                                const weir_iterator_t* iterator,
                                                weir_cancel_t* cancel, weir_tensor_t* const* args,
                                                bool* out_is_true);
// The same, and the one result is a dataset, which is walked over.
WEIR_MUST_USE weir_status_t* weir_captured_walk(const weir_captured_t* captured,
                                                const weir_walk_t* walk, weir_cancel_t* cancel,
                                                weir_tensor_t* const* args, int arg_count,
                                                weir_iterator_t** out_iterator);

// The function of a dataset that makes datasets of elements (interleave.c); NULL: it is another.
const weir_func_t* weir_interleave_function(const weir_data_t* dataset);

// For |state| of an iterator: whether what the function makes depends on more than its arguments,
// and what the state's policy says to that. FAILED_PRECONDITION "RandomUniform is stateful."
void weir_captured_state(const weir_captured_t* captured, const weir_iterator_t* iterator,
                         weir_state_t* state);

// Says in a message which dataset's function failed. Consumes |take_status|.
WEIR_MUST_USE weir_status_t* weir_captured_blame(const weir_data_t* dataset,
                                                 weir_status_t* take_status);

#endif  // WEIR_OPS_DATA_CAPTURED_H_
