// composite.h — A composite tensor in a variant: its tensors, and a message that says what it is.
#ifndef WEIR_TENSOR_COMPOSITE_H_
#define WEIR_TENSOR_COMPOSITE_H_

#include "tensor/parcel.h"

// A parcel of the components and, last, of a string with the metadata.
extern const weir_variant_type_t weir_composite_variant_type;

// Creates a parcel for |count| components, which are not set yet.
WEIR_MUST_USE weir_status_t* weir_composite_create(int count, weir_view_t metadata,
                                                   weir_parcel_t** out_parcel);
weir_view_t weir_composite_metadata(const weir_parcel_t* parcel);

#endif  // WEIR_TENSOR_COMPOSITE_H_
