// data_options.h — The options of datasets, TensorFlow's message Options: what those below say,
// and what comes after them says otherwise. Nothing here acts by them; GetOptions tells them.
#ifndef WEIR_OPS_DATA_DATA_OPTIONS_H_
#define WEIR_OPS_DATA_DATA_OPTIONS_H_

#include "ops/data/dataset.h"

// Gives a dataset without options those of |serialized|. INVALID_ARGUMENT when that is no Options.
WEIR_MUST_USE weir_status_t* weir_data_options_parse(weir_view_t serialized, weir_data_t* dataset);
// Puts the options of a dataset's inputs before its own.
WEIR_MUST_USE weir_status_t* weir_data_options_inherit(weir_data_t* dataset);

#endif  // WEIR_OPS_DATA_DATA_OPTIONS_H_
