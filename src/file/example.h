// example.h — Example messages, the records of training data: features by name, each a list of
// strings, floats or integers. Views into the message; thread-confined.
#ifndef WEIR_FILE_EXAMPLE_H_
#define WEIR_FILE_EXAMPLE_H_

#include "weir/dtype.h"
#include "wire/wire.h"

// The values of a feature.
typedef struct weir_feature_t {
  weir_dtype_t dtype;  // STRING, FLOAT or INT64; INVALID: none are given
  weir_view_t list;    // BytesList, FloatList or Int64List
  int64_t count;
} weir_feature_t;

// Calls |visit| for each feature of an Example in order; a name may come more than once, the last
// one counts. INVALID_ARGUMENT when the message is malformed.
typedef void (*weir_feature_fn_t)(void* arg, weir_view_t name, const weir_feature_t* feature);
WEIR_MUST_USE weir_status_t* weir_example_parse(weir_view_t example, weir_feature_fn_t visit,
                                                void* arg);

// The same for a SequenceExample: features of its context, and lists of features, whose content
// weir_feature_list_next walks over.
typedef void (*weir_feature_list_fn_t)(void* arg, weir_view_t name, weir_view_t list);
WEIR_MUST_USE weir_status_t* weir_sequence_example_parse(weir_view_t example,
                                                         weir_feature_fn_t visit,
                                                         weir_feature_list_fn_t visit_list,
                                                         void* arg);
// Sets *|out_is_end| where there is no further feature. |reader| is weir_wire_reader(list) at
// first.
WEIR_MUST_USE weir_status_t* weir_feature_list_next(weir_wire_reader_t* reader,
                                                    weir_feature_t* out_feature, bool* out_is_end);

// Writes the values of |feature| to |out|, an array of |feature->count| floats or int64_t.
void weir_feature_read(const weir_feature_t* feature, void* out);
// Iterates over strings: false at the end. |reader| is weir_wire_reader(feature->list) at first.
bool weir_feature_next_string(weir_wire_reader_t* reader, weir_view_t* out_text);

#endif  // WEIR_FILE_EXAMPLE_H_
