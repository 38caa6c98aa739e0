// tensor_list.h — TensorLists: the value in a variant tensor that is a list of tensors.
//
// A list is immutable once shared. A kernel that changes one gets it by weir_list_forward
// (ops/list/), which hands out the input itself when nobody else holds it, else a copy of the
// pointers; the tensors within are never copied.
#ifndef WEIR_TENSOR_TENSOR_LIST_H_
#define WEIR_TENSOR_TENSOR_LIST_H_

#include "tensor/handle.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

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

#endif  // WEIR_TENSOR_TENSOR_LIST_H_
