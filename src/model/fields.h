// fields.h — What readers of model files share: damage told of as such, entries of maps.
#ifndef WEIR_MODEL_FIELDS_H_
#define WEIR_MODEL_FIELDS_H_

#include "wire/wire.h"

// DATA_LOSS "malformed |what|: …" when the reader stopped on an error, else NULL.
WEIR_MUST_USE weir_status_t* weir_model_check(const weir_wire_reader_t* reader, const char* what);
// Key and value of an entry of a map; what it lacks is empty.
WEIR_MUST_USE weir_status_t* weir_model_map_entry(weir_view_t entry, const char* what,
                                                  weir_view_t* out_key, weir_view_t* out_value);

#endif  // WEIR_MODEL_FIELDS_H_
