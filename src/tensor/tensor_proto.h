// tensor_proto.h — Tensors to and from TensorProto.
#ifndef WEIR_TENSOR_TENSOR_PROTO_H_
#define WEIR_TENSOR_TENSOR_PROTO_H_

#include "base/string.h"
#include "tensor/handle.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

// Reads a TensorProto: tensor_content or the typed value lists, the last value repeated to fill the
// shape, as TensorFlow does. INVALID_ARGUMENT on a bad type, an incomplete shape, or sizes that
// disagree. Resources and variants: handles by name; variants UNIMPLEMENTED.
WEIR_MUST_USE weir_status_t* weir_tensor_parse(weir_view_t proto, weir_tensor_t** out_tensor);

// RESOURCE_EXHAUSTED for a shape that the machine has no memory for: a few bytes may declare any.
WEIR_MUST_USE weir_status_t* weir_tensor_proto_check_memory(weir_dtype_t dtype,
                                                            const weir_shape_t* shape);

// Appends the message's fields: dtype, shape, and tensor_content for plain types (typed lists for
// strings and handles).
WEIR_MUST_USE weir_status_t* weir_tensor_write(const weir_tensor_t* tensor, weir_strbuf_t* out);

// ResourceHandleProto: the message's fields, without an outer tag.
WEIR_MUST_USE weir_status_t* weir_handle_parse(weir_view_t proto, weir_handle_t** out_handle);
void weir_handle_write(const weir_handle_t* handle, weir_strbuf_t* out);

#endif  // WEIR_TENSOR_TENSOR_PROTO_H_
