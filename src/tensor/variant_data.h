// variant_data.h — Bytes and tensors as an element of a variant tensor: the state of an iterator,
// as it goes into checkpoints.
#ifndef WEIR_TENSOR_VARIANT_DATA_H_
#define WEIR_TENSOR_VARIANT_DATA_H_

#include "base/string.h"
#include "tensor/handle.h"

// Immutable once shared.
typedef struct weir_variant_data_t {
  weir_variant_object_t base;  // of weir_iterator_state_type
  weir_strbuf_t bytes;
  weir_tensor_t** tensors;  // owned references
  size_t count, capacity;
} weir_variant_data_t;

extern const weir_variant_type_t weir_iterator_state_type;

// Without bytes and tensors.
WEIR_MUST_USE weir_status_t* weir_variant_data_create(weir_variant_data_t** out_data);
void weir_variant_data_release(weir_variant_data_t* data);  // NULL-safe
// Consumes |take_tensor| also on failure.
WEIR_MUST_USE weir_status_t* weir_variant_data_add(weir_variant_data_t* data,
                                                   weir_tensor_t* take_tensor);

#endif  // WEIR_TENSOR_VARIANT_DATA_H_
