// state.h — The state of a walk, to be saved and to go on from.
//
// Each iterator has one function, |state| in its table, that hands over what it holds, piece by
// piece, each under a name. The same function saves and restores: which of the two is the state's
// business, not the iterator's. A piece that is restored is taken only where the name is the one
// that is asked for, so a state of another dataset is refused; numbers have bounds and tensors
// types, since states come from files. Errors stick: after the first nothing is written or changed,
// and an iterator that could not be restored is only good for being destroyed.
//
//   static void take_state(weir_iterator_t* iterator, weir_state_t* state) {
//     weir_state_int(state, "taken", &((take_iterator_t*)iterator)->taken, 0, INT64_MAX);
//     weir_state_inputs(iterator, state);
//   }
//
// Thread-confined.
#ifndef WEIR_OPS_DATA_STATE_H_
#define WEIR_OPS_DATA_STATE_H_

#include "ops/data/dataset.h"
#include "tensor/variant_data.h"
#include "wire/wire.h"

// What to do where elements depend on what no state holds: a variable, a random op of a function.
typedef enum weir_state_policy_t {
  WEIR_STATE_WARN = 0,
  WEIR_STATE_IGNORE = 1,
  WEIR_STATE_FAIL = 2,
} weir_state_policy_t;

struct weir_state_t {
  bool is_restoring;
  weir_state_policy_t policy;
  weir_cancel_t* cancel;             // of functions and waits on the way
  weir_variant_data_t* data;         // borrowed: what is written, or read
  weir_wire_reader_t reader;         // restoring: of the pieces to come
  size_t tensor;                     // restoring: the next
  weir_status_t* status;             // the first error; owned
  struct weir_deferred_t* deferred;  // to be called at the end, the last first
};

// Begins to write to |data|, or to read it.
weir_state_t weir_state_save(weir_variant_data_t* data, weir_state_policy_t policy,
                             weir_cancel_t* cancel);
weir_state_t weir_state_restore(weir_variant_data_t* data, weir_cancel_t* cancel);
// Ends it. The first error, which becomes the caller's.
WEIR_MUST_USE weir_status_t* weir_state_finish(weir_state_t* state);
// Lets |fn| be called at the end; at once where there is no memory to remember it, and an error.
void weir_state_defer(weir_state_t* state, void (*fn)(void* arg), void* arg);
// Makes an error the first, if there was none; NULL-safe. Consumes it.
void weir_state_fail(weir_state_t* state, weir_status_t* take_status);
// INVALID_ARGUMENT unless |is_right|: what is restored must fit together.
void weir_state_require(weir_state_t* state, bool is_right);
WEIR_INLINE bool weir_state_is_good(const weir_state_t* state) { return !state->status; }

// ---- pieces ----

void weir_state_int(weir_state_t* state, const char* key, int64_t* value, int64_t min, int64_t max);
void weir_state_size(weir_state_t* state, const char* key, size_t* value, size_t max);
void weir_state_bool(weir_state_t* state, const char* key, bool* value);
void weir_state_words(weir_state_t* state, const char* key, uint32_t* words, int count);
// How many pieces follow, at least one for each.
void weir_state_count(weir_state_t* state, const char* key, size_t* count);
// Restoring: borrowed from the state.
void weir_state_bytes(weir_state_t* state, const char* key, weir_view_t* bytes);
// Tensors. What was there before is released. The second form: or none of them.
typedef struct weir_element_types_t {
  int count;
  const weir_dtype_t* types;  // NULL: any
} weir_element_types_t;
void weir_state_element(weir_state_t* state, const char* key, weir_element_types_t components,
                        weir_tensor_t** element);
void weir_state_maybe_element(weir_state_t* state, const char* key, weir_element_types_t components,
                              weir_tensor_t** element);
// |count| elements in an array of its own each. Restoring: the array of pointers, which is NULL
// before, is made.
void weir_state_elements(weir_state_t* state, const char* key, weir_element_types_t components,
                         weir_tensor_t**** elements, size_t* count, size_t* capacity);
// An error that is kept for later; may be NULL.
void weir_state_status(weir_state_t* state, const char* key, weir_status_t** status);
WEIR_INLINE weir_element_types_t weir_element_types_of(const weir_data_t* dataset) {
  return (weir_element_types_t){.count = dataset->count, .types = dataset->types};
}

// ---- iterators ----

// What |iterator| holds. UNIMPLEMENTED "XDataset does not support checkpointing." for one without
// such a function.
void weir_state_iterator(weir_iterator_t* iterator, weir_state_t* state);
// The iterators over the datasets below, all of which are open from the start. Also the whole of
// |state| for an iterator that holds nothing else.
void weir_state_inputs(weir_iterator_t* self, weir_state_t* state);
// The one over input |i|, which may be open or not.
void weir_state_input(weir_iterator_t* self, weir_state_t* state, int i);

#endif  // WEIR_OPS_DATA_STATE_H_
