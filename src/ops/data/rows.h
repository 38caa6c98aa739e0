// rows.h — Elements as rows of tensors, and tensors made of elements.
#ifndef WEIR_OPS_DATA_ROWS_H_
#define WEIR_OPS_DATA_ROWS_H_

#include "ops/data/dataset.h"

// Creates row |i| of |tensor|, without dimension 0.
WEIR_MUST_USE weir_status_t* weir_row_create(weir_tensor_t* tensor, int64_t i,
                                             weir_tensor_t** out_row);

// Stacks |count| > 0 elements of |width| components into one, which each must be of one shape.
// INVALID_ARGUMENT "Cannot batch tensors with different shapes in component 0. First element had
// shape [2] and element 1 had shape [3]."
WEIR_MUST_USE weir_status_t* weir_rows_stack(weir_tensor_t** const* elements, int64_t count,
                                             int width, weir_tensor_t** out);

// The same of elements that come one after another, each copied as it comes, while it is in the
// cache. Thread-compatible.
typedef struct weir_stack_t {
  int64_t rows;           // that there is room for, from the first element on
  int64_t count;          // that came
  int width;              // components
  weir_tensor_t** parts;  // owned
  weir_status_t* status;  // owned; the error of component |sound|
  int sound;              // so many components are without an error; |width|: all
} weir_stack_t;
WEIR_MUST_USE weir_status_t* weir_stack_init(weir_stack_t* stack, int64_t rows, int width);
void weir_stack_free(weir_stack_t* stack);
// |element| stays the caller's. An error shows in finish.
void weir_stack_add(weir_stack_t* stack, weir_tensor_t* const* element);
// Moves the batch out, of as many rows as came, at least one.
WEIR_MUST_USE weir_status_t* weir_stack_finish(weir_stack_t* stack, weir_tensor_t** out);

// The size of a batch's dimension 0 as far as known, before |shape|: component |i| of |self|.
WEIR_MUST_USE weir_status_t* weir_rows_set_shape(weir_data_t* self, int i, int64_t size,
                                                 const weir_shape_t* shape);

// Up to |limit| elements of input 0, in the order they came. |out_elements| is an array of |limit|
// places; weir_rows_free. With |takes_all|, |limit| elements are taken where some fail as well.
// *|out_is_end| is set where the input failed and ended at once.
typedef struct weir_rows_limit_t {
  int64_t count;
  bool takes_all;
  weir_stack_t* stack;  // they go there, and |out_elements| is NULL; NULL: they are listed
} weir_rows_limit_t;
WEIR_MUST_USE weir_status_t* weir_rows_pull(weir_iterator_t* self, weir_cancel_t* cancel,
                                            weir_rows_limit_t limit, weir_tensor_t**** out_elements,
                                            int64_t* out_count, bool* out_is_end);
void weir_rows_free(weir_tensor_t*** elements, int64_t count, int width);  // NULL-safe

// Which sizes batches of |n| elements make.
int64_t weir_rows_cardinality(int64_t n, int64_t batch_size, bool drops_remainder);

#endif  // WEIR_OPS_DATA_ROWS_H_
