// tensor_list.h — TensorLists: the value in a variant tensor that is a list of tensors.
//
// A list is immutable once shared. A kernel that changes one gets it by weir_list_forward, which
// hands out the input itself when nobody else holds it, else a copy of the pointers; the tensors
// within are never copied.
#ifndef WEIR_OP_TENSOR_LIST_H_
#define WEIR_OP_TENSOR_LIST_H_

#include "op/kernel.h"

typedef struct weir_list_t {
  weir_variant_object_t base;
  weir_dtype_t dtype;     // of the elements
  weir_shape_t* shape;    // of the elements, as far as known; owned, never NULL
  int64_t max_count;      // -1: no limit
  weir_tensor_t** items;  // one reference each; NULL: not set yet
  size_t count;
  size_t capacity;
} weir_list_t;
extern const weir_variant_type_t weir_list_type;

// Creates a list of |count| elements that are not set.
WEIR_MUST_USE weir_status_t* weir_list_create(weir_dtype_t dtype, const weir_shape_t* shape,
                                              size_t count, weir_list_t** out_list);
WEIR_MUST_USE weir_status_t* weir_list_copy(const weir_list_t* list, weir_list_t** out_copy);
void weir_list_release(weir_list_t* list);
// For a list the caller holds alone. New elements are not set.
WEIR_MUST_USE weir_status_t* weir_list_resize(weir_list_t* list, size_t count);
// Consumes |take_item| in every case.
WEIR_MUST_USE weir_status_t* weir_list_push(weir_list_t* list, weir_tensor_t* take_item);

// ---- for kernels ----
// The list in input |i|; borrowed. INVALID_ARGUMENT when it is not a scalar that holds one.
WEIR_MUST_USE weir_status_t* weir_list_input(weir_kernel_ctx_t* ctx, int i,
                                             const weir_list_t** out_list);
// As input, checking that its elements are of the node's element_dtype.
WEIR_MUST_USE weir_status_t* weir_list_input_typed(weir_kernel_ctx_t* ctx, int i,
                                                   weir_dtype_t dtype,
                                                   const weir_list_t** out_list);
// Makes output |to| the list of input |from|, in a form that may be changed; borrowed from the
// output.
WEIR_MUST_USE weir_status_t* weir_list_forward(weir_kernel_ctx_t* ctx, int from, int to,
                                               weir_list_t** out_list);
// Makes |take_list| output |i|; consumes it in every case.
WEIR_MUST_USE weir_status_t* weir_list_output(weir_kernel_ctx_t* ctx, int i,
                                              weir_list_t* take_list);

#endif  // WEIR_OP_TENSOR_LIST_H_
