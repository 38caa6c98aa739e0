// import_api.h — What an import gives, put together by import.c and shown by onnx_api.c.
#ifndef WEIR_ONNX_IMPORT_API_H_
#define WEIR_ONNX_IMPORT_API_H_

#include "base/base.h"
#include "weir/onnx.h"

typedef struct onnx_ports_t {
  weir_onnx_port_t* items;  // names are owned
  size_t count, capacity;
} onnx_ports_t;
typedef struct onnx_import_t {
  weir_graph_t* graph;
  onnx_ports_t inputs, outputs;
  weir_status_t* status;  // of adding; NULL while all is well
} onnx_import_t;

void onnx_import_add(onnx_import_t* import, bool is_input, weir_view_t name, weir_edge_t edge);
// Adds the nodes of a model to |graph|. |folder|: where external data are; NULL: there are none.
WEIR_MUST_USE weir_status_t* onnx_import_model(weir_view_t bytes, const char* folder,
                                               weir_graph_t* graph, onnx_import_t* import);

#endif  // WEIR_ONNX_IMPORT_API_H_
