// bundle.h — Objects in variant tensors that are some tensors and nothing else: a tensor in a
// variant, a row of a ragged tensor, a sparse matrix. What the tensors mean is the type's business.
#ifndef WEIR_TENSOR_BUNDLE_H_
#define WEIR_TENSOR_BUNDLE_H_

#include "tensor/handle.h"
#include "tensor/tensor.h"

// Immutable once shared.
typedef struct weir_bundle_t {
  weir_variant_object_t base;
  int count;
  weir_tensor_t* items[];  // |count| references, set by who made it
} weir_bundle_t;

// The functions of a type of bundles.
void weir_bundle_destroy(void* object);
weir_status_t* weir_bundle_map(const void* object, weir_tensor_map_t map, void** out_object);
// A tensor alone, "tensorflow::Tensor".
extern const weir_variant_type_t weir_tensor_variant_type;

// Creates a bundle whose items are not set yet.
WEIR_MUST_USE weir_status_t* weir_bundle_create(const weir_variant_type_t* type, int count,
                                                weir_bundle_t** out_bundle);
// The bundle of |type| that element |i| of a variant tensor is; NULL: it is something else.
const weir_bundle_t* weir_bundle_at(const weir_tensor_t* variants, int64_t i,
                                    const weir_variant_type_t* type);
// Makes |take_bundle| element |i| of a variant tensor, which was empty there.
WEIR_INLINE void weir_bundle_put(weir_tensor_t* variants, int64_t i, weir_bundle_t* take_bundle) {
  ((weir_variant_t*)variants->data)[i].object = &take_bundle->base;
}
// The type's name of element |i|, for messages.
const char* weir_variant_name_at(const weir_tensor_t* variants, int64_t i);

#endif  // WEIR_TENSOR_BUNDLE_H_
