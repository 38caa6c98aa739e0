// variant_number.h — Single numbers as elements of variant tensors: TensorFlow's int, float, double
// and bool, which constants in a GraphDef may hold.
#ifndef WEIR_TENSOR_VARIANT_NUMBER_H_
#define WEIR_TENSOR_VARIANT_NUMBER_H_

#include "base/string.h"
#include "tensor/handle.h"

// The kind of number called |type_name|; NULL when there is none.
const weir_variant_type_t* weir_variant_number_type(weir_view_t type_name);
bool weir_variant_is_number(const weir_variant_object_t* object);
// Reads the number's bytes. INVALID_ARGUMENT when they are not as many as |type| has.
WEIR_MUST_USE weir_status_t* weir_variant_number_create(const weir_variant_type_t* type,
                                                        weir_view_t bytes,
                                                        weir_variant_object_t** out_object);
// The bytes of a number; borrowed.
weir_view_t weir_variant_number_bytes(const weir_variant_object_t* object);

#endif  // WEIR_TENSOR_VARIANT_NUMBER_H_
