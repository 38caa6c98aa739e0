// onnx.h — ONNX models as graphs: nodes become ours, weights become constants.
//
//   weir_onnx_t* model = NULL;
//   check(weir_onnx_import("resnet.onnx", &model));
//   check(weir_session_create(weir_onnx_graph(model), NULL, &session));
//   weir_feed_t feed = {weir_onnx_input_at(model, 0).edge, image};
//
// weir_model_load (weir/model.h) does that, and runs models by the names of inputs and outputs.
// docs/import.md lists the ops. Threading: an import is immutable.
#ifndef WEIR_ONNX_H_
#define WEIR_ONNX_H_

#include "weir/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_onnx_t weir_onnx_t;

// Imports a model with the weights that lie beside it; no path leaves the model's folder, and no
// file of it may be shortened while the graph lives. UNIMPLEMENTED lists all ops that Weir cannot
// import, with the names of nodes; INVALID_ARGUMENT or DATA_LOSS says what is damaged, and where.
WEIR_API WEIR_MUST_USE weir_status_t* weir_onnx_import(const char* path, weir_onnx_t** out_model);
// The same of a model in memory, which has no files beside it. |data| is borrowed for the call.
WEIR_API WEIR_MUST_USE weir_status_t* weir_onnx_import_bytes(const void* data, size_t size,
                                                             weir_onnx_t** out_model);
WEIR_API void weir_onnx_destroy(weir_onnx_t* model);  // NULL is fine; the graph lives as long as it
                                                      // is retained

WEIR_API weir_graph_t* weir_onnx_graph(const weir_onnx_t* model);  // borrowed

// Inputs (without weights) and outputs, in the model's order. Names are borrowed.
typedef struct weir_onnx_port_t {
  const char* name;  // in the model; NULL: there is no such port
  weir_edge_t edge;  // inputs: to be fed; outputs: to be fetched
} weir_onnx_port_t;
WEIR_API int weir_onnx_input_count(const weir_onnx_t* model);
WEIR_API weir_onnx_port_t weir_onnx_input_at(const weir_onnx_t* model, int index);
WEIR_API int weir_onnx_output_count(const weir_onnx_t* model);
WEIR_API weir_onnx_port_t weir_onnx_output_at(const weir_onnx_t* model, int index);

// The ops that can be imported.
typedef struct weir_onnx_op_t {
  const char* domain;  // "": ONNX's own
  const char* name;    // NULL behind the last
  int since;           // the version of the opset from which on
} weir_onnx_op_t;
WEIR_API weir_onnx_op_t weir_onnx_op_at(int index);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_ONNX_H_
