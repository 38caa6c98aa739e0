// parcel.h — Objects in variant tensors that are some tensors and nothing else: a tensor in a
// variant, a row of a ragged tensor, a sparse matrix. What the tensors mean is the type's business.
#ifndef WEIR_TENSOR_PARCEL_H_
#define WEIR_TENSOR_PARCEL_H_

#include "tensor/handle.h"
#include "tensor/tensor.h"

// Immutable once shared.
typedef struct weir_parcel_t {
  weir_variant_object_t base;
  int count;
  weir_tensor_t* items[];  // |count| references, set by who made it
} weir_parcel_t;

// The functions of a type of parcels.
void weir_parcel_destroy(void* object);
weir_status_t* weir_parcel_map(const void* object, weir_tensor_map_t map, void** out_object);
// A tensor alone, "tensorflow::Tensor".
extern const weir_variant_type_t weir_tensor_variant_type;

// Creates a parcel whose items are not set yet.
WEIR_MUST_USE weir_status_t* weir_parcel_create(const weir_variant_type_t* type, int count,
                                                weir_parcel_t** out_parcel);
// The parcel of |type| that element |i| of a variant tensor is; NULL: it is something else.
const weir_parcel_t* weir_parcel_at(const weir_tensor_t* variants, int64_t i,
                                    const weir_variant_type_t* type);
// Makes |take_parcel| element |i| of a variant tensor, which was empty there.
WEIR_INLINE void weir_parcel_put(weir_tensor_t* variants, int64_t i, weir_parcel_t* take_parcel) {
  ((weir_variant_t*)variants->data)[i].object = &take_parcel->base;
}
// The type's name of element |i|, for messages.
const char* weir_variant_name_at(const weir_tensor_t* variants, int64_t i);

#endif  // WEIR_TENSOR_PARCEL_H_
