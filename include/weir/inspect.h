// inspect.h — What a file is and what is in it, found out by looking at its bytes; and tensors as
// JSON.
#ifndef WEIR_INSPECT_H_
#define WEIR_INSPECT_H_

#include "weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

// Describes the file, directory or checkpoint prefix |path|: SavedModels, MetaGraphDefs, GraphDefs,
// checkpoints, TFRecords, event files, .npy, .npz and safetensors by their content, others by what
// they are and what can be done with them. As text for people or, with |json|, as one object, whose
// "kind" is "saved_model", "meta_graph", "graph", "checkpoint", "tfrecord", "events", "npy", "npz",
// "safetensors", or another word. |out_text| is the caller's: weir_buffer_free it. NOT_FOUND when
// there is no such file; DATA_LOSS or INVALID_ARGUMENT, saying where, when it is damaged or of no
// kind that is known.
WEIR_API WEIR_MUST_USE weir_status_t* weir_inspect_file(const char* path, bool json,
                                                        char** out_text);

// |tensor| as {"dtype": "float", "shape": [2, 2], "values": [1, 2, 3, 4]}, values flat in row-major
// order. Always valid JSON: what is no number is "NaN", "Infinity" or "-Infinity", complex numbers
// are [real, imaginary], strings that are not UTF-8 {"b64": "…"}. weir_buffer_free it.
// UNIMPLEMENTED for resources and variants.
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_to_json(const weir_tensor_t* tensor,
                                                          char** out_text);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_INSPECT_H_
