// variant_proto.h — Variant tensors to and from TensorProto, as TensorFlow's tasks send them.
#ifndef WEIR_TENSOR_VARIANT_PROTO_H_
#define WEIR_TENSOR_VARIANT_PROTO_H_

#include "base/string.h"
#include "tensor/handle.h"

// Whether the type in |proto| is variant; nothing else of it is checked.
bool weir_variant_is_proto(weir_view_t proto);
// Reads a TensorProto; if its type is variant, one whose elements are TensorLists, composite or
// ragged tensors, maps, tensors alone, numbers, states of iterators or empty. INVALID_ARGUMENT on a
// malformed one, UNIMPLEMENTED for elements of other kinds.
WEIR_MUST_USE weir_status_t* weir_variant_parse(weir_view_t proto, weir_tensor_t** out_tensor);
// Appends the fields of a TensorProto. UNIMPLEMENTED for elements of other kinds.
WEIR_MUST_USE weir_status_t* weir_variant_write(const weir_tensor_t* tensor, weir_strbuf_t* out);
// The same for one element, as a VariantTensorDataProto; |object| is NULL for an empty one.
WEIR_MUST_USE weir_status_t* weir_variant_element_parse(weir_view_t proto,
                                                        weir_variant_object_t** out_object);
WEIR_MUST_USE weir_status_t* weir_variant_element_write(const weir_variant_object_t* object,
                                                        weir_strbuf_t* out);

#endif  // WEIR_TENSOR_VARIANT_PROTO_H_
