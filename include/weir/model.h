// model.h — Models from files: SavedModels, MetaGraphDefs and frozen graphs, run by the names of
// their signatures, saved, and frozen.
//
//   weir_model_t* model = NULL;
//   check(weir_model_load("exported/1", NULL, &model));
//   weir_named_tensor_t input = {"x", image}, output = {"probabilities"};
//   check(weir_model_run(model, NULL, &input, 1, &output, 1, NULL));
//
// Threading: a loaded model is thread-safe; runs may overlap.
#ifndef WEIR_MODEL_H_
#define WEIR_MODEL_H_

#include "weir/scope.h"
#include "weir/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_model_t weir_model_t;

// Every zero is the default.
typedef struct weir_model_options_t {
  const char* tags;  // which graph of a SavedModel: "serve,gpu", in any order; NULL: "serve"
  weir_session_options_t session;
  // MetaGraphDefs (.meta) and frozen graphs: the checkpoint that holds their variables; NULL: none.
  const char* checkpoint;
} weir_model_options_t;

// Loads a SavedModel's directory, a MetaGraphDef (".meta"), a GraphDef (".pb", ".pbtxt") or an ONNX
// model (".onnx"), restores its variables and runs its initialisers. |options| may be NULL.
// NOT_FOUND names the tags that there are; UNIMPLEMENTED lists all ops that this build lacks;
// DATA_LOSS says what is damaged.
WEIR_API WEIR_MUST_USE weir_status_t* weir_model_load(const char* path,
                                                      const weir_model_options_t* options,
                                                      weir_model_t** out_model);
// Waits for runs to end. NULL-safe.
WEIR_API void weir_model_destroy(weir_model_t* model);
WEIR_API weir_graph_t* weir_model_graph(const weir_model_t* model);      // borrowed
WEIR_API weir_session_t* weir_model_session(const weir_model_t* model);  // borrowed

// ---- signatures: named groups of inputs and outputs. Borrowed, as long as the model ----
typedef struct weir_model_port_t {
  const char* name;    // in the signature
  const char* tensor;  // in the graph, "node:0"
  weir_edge_t edge;
  weir_dtype_t dtype;
  int rank;             // -1: unknown
  const int64_t* dims;  // -1: unknown
} weir_model_port_t;
typedef struct weir_signature_t {
  const char* name;    // "serving_default"
  const char* method;  // "tensorflow/serving/predict"
  const weir_model_port_t* inputs;
  int input_count;
  const weir_model_port_t* outputs;
  int output_count;
} weir_signature_t;
// A graph without signatures has one, "serving_default", of its placeholders and of the outputs
// that nothing reads.
WEIR_API int weir_model_signature_count(const weir_model_t* model);
WEIR_API const weir_signature_t* weir_model_signature_at(const weir_model_t* model, int index);
// |name| NULL: "serving_default", or the only one. NULL when there is none of that name.
WEIR_API const weir_signature_t* weir_model_find_signature(const weir_model_t* model,
                                                           const char* name);

// ---- running ----
typedef struct weir_named_tensor_t {
  const char* name;
  weir_tensor_t* tensor;
} weir_named_tensor_t;
// Runs the signature |name| (as for find). Inputs in any order, tensors borrowed. |outputs| say by
// name what to compute, in any order; their tensors are set, the caller's to release, none on
// failure. |options| may be NULL. INVALID_ARGUMENT names an input that is missing, unknown, or of
// another type or shape, and those that there are.
WEIR_API WEIR_MUST_USE weir_status_t* weir_model_run(weir_model_t* model, const char* name,
                                                     const weir_named_tensor_t* inputs,
                                                     int input_count, weir_named_tensor_t* outputs,
                                                     int output_count,
                                                     const weir_run_options_t* options);

// ---- saving ----
typedef struct weir_named_edge_t {
  const char* name;
  weir_edge_t edge;
} weir_named_edge_t;
typedef struct weir_signature_spec_t {
  const char* name;    // NULL: "serving_default"
  const char* method;  // NULL: "tensorflow/serving/predict"
  const weir_named_edge_t* inputs;
  int input_count;
  const weir_named_edge_t* outputs;
  int output_count;
} weir_signature_spec_t;
// A file that goes with the model: |path| is copied, and the constant |tensor|, a scalar string, is
// fed with where the copy is when the model is initialised.
typedef struct weir_asset_t {
  weir_edge_t tensor;
  const char* path;
} weir_asset_t;
// Every zero is the default. All is borrowed for the call.
typedef struct weir_model_save_options_t {
  int reserved;
  const weir_model_t* from;  // its signatures, initializer and assets, where none are given here
  const weir_signature_spec_t* signatures;  // at least one
  int signature_count;
  const char* tags;          // "serve,gpu"; NULL: "serve"
  weir_node_t* initializer;  // what runs after loading, such as those of tables; NULL: nothing
  const weir_asset_t* assets;
  int asset_count;
  // All nodes of the graph and all variables, so that training can go on; else what the signatures
  // and the initializer need.
  bool whole_graph;
} weir_model_save_options_t;
// Writes a SavedModel that TensorFlow's loaders read: the graph of |session| with its variables and
// the entries of its tables as they are. The folder appears when it is whole. ALREADY_EXISTS when
// there is something at |directory|; FAILED_PRECONDITION names a variable that is not initialised.
WEIR_API WEIR_MUST_USE weir_status_t* weir_model_save(weir_session_t* session,
                                                      const char* directory,
                                                      const weir_model_save_options_t* options);

// ---- freezing ----
typedef struct weir_freeze_options_t {
  const char* signature;  // as for find
  // Floats of at least 1024 elements and two dimensions are kept as numbers of 8 bits, with a scale
  // for each index of the last dimension: a weight is off by at most half a 127th of the largest of
  // its column.
  bool quantize_int8;
} weir_freeze_options_t;
// What a signature computes, as one GraphDef without variables: functions are inlined, variables
// are constants, tables have their entries, what only trains is gone. Placeholders and outputs are
// called as in the signature, so that weir_model_load gives the same one. FAILED_PRECONDITION names
// a node that changes a variable or a table. |options| may be NULL. weir_buffer_free what comes
// out.
WEIR_API WEIR_MUST_USE weir_status_t* weir_model_freeze(weir_model_t* model,
                                                        const weir_freeze_options_t* options,
                                                        char** out_graph_def, size_t* out_size);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_MODEL_H_
