// parcel_kinds.h — Parcels that go to other tasks as they are: rows of ragged tensors, maps, and
// tensors alone.
#ifndef WEIR_TENSOR_PARCEL_KINDS_H_
#define WEIR_TENSOR_PARCEL_KINDS_H_

#include "tensor/parcel.h"

// Splits of all levels, then the values.
extern const weir_variant_type_t weir_ragged_variant_type;
// Keys and values in turn.
extern const weir_variant_type_t weir_map_variant_type;

// The type of one of these by its name; NULL: it is none.
const weir_variant_type_t* weir_parcel_kind(weir_view_t type_name);
// Whether a parcel of such a type that somebody sent is what its kind has to be.
bool weir_parcel_is_valid(const weir_parcel_t* parcel);

#endif  // WEIR_TENSOR_PARCEL_KINDS_H_
