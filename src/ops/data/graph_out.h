// graph_out.h — Datasets as graphs: the nodes that make them again, and the functions they need.
//
// Nodes are named as TensorFlow names them, "MapDataset/_4" the fifth of all. A dataset that
// several others have is written once. Thread-confined.
#ifndef WEIR_OPS_DATA_GRAPH_OUT_H_
#define WEIR_OPS_DATA_GRAPH_OUT_H_

#include "base/map.h"
#include "ops/data/state.h"

struct weir_graph_out_t {
  weir_kernel_ctx_t* ctx;        // whose resources handles lead to
  weir_functions_t* functions;   // of the dataset that is being written; may be NULL
  weir_state_policy_t policy;    // of functions with state
  bool strips_devices;           // functions shall not name tasks
  weir_arena_t arena;            // names of nodes
  int count;                     // of nodes
  weir_strbuf_t nodes;           // of the GraphDef, so far
  weir_map_t datasets;           // those that were written, by address → name of the node
  weir_map_t functions_by_name;  // likewise → the FunctionDef as it was found, a weir_strbuf_t
  weir_strbuf_t library;
};

// A node. Its inputs are nodes that were written before.
typedef struct weir_node_out_t {
  const char* op;
  const char* name;  // NULL: the op's, with a number
  const char* const* inputs;
  int input_count;
  const char* control;  // a node that it waits for, or NULL
  weir_attrs_t attrs;
} weir_node_out_t;

// Each adds nodes and gives the name of the last, which lives as long as |out|.
WEIR_MUST_USE weir_status_t* weir_graph_out_node(weir_graph_out_t* out, const weir_node_out_t* node,
                                                 const char** out_name);
WEIR_MUST_USE weir_status_t* weir_graph_out_dataset(weir_graph_out_t* out, weir_data_t* dataset,
                                                    const char** out_name);
// A tensor: a constant, unless it holds datasets, or the handle of what can be made again.
WEIR_MUST_USE weir_status_t* weir_graph_out_tensor(weir_graph_out_t* out, weir_tensor_t* tensor,
                                                   const char** out_name);
// The resource behind a handle, as nodes that make it again: variables, tables. *|out_name| stays
// NULL where it is another (graph_out_resource.c).
WEIR_MUST_USE weir_status_t* weir_graph_out_resource(weir_graph_out_t* out, weir_tensor_t* handle,
                                                     const char** out_name);
// For datasets that iterators make of |count| tensors, |width| of them an element: a WindowOp.
WEIR_MUST_USE weir_status_t* weir_graph_out_window(weir_graph_out_t* out, const weir_data_t* self,
                                                   weir_tensor_t* const* items, int count,
                                                   const char** out_name);
// Adds a function and all that it needs (graph_out_function.c).
WEIR_MUST_USE weir_status_t* weir_graph_out_function(weir_graph_out_t* out, weir_view_t name);

// Ends it: appends the GraphDef whose result is |dataset|, to be freed by the caller in any case.
WEIR_MUST_USE weir_status_t* weir_graph_out_finish(weir_graph_out_t* out, const char* dataset,
                                                   weir_strbuf_t* graph_def);
void weir_graph_out_free(weir_graph_out_t* out);

#endif  // WEIR_OPS_DATA_GRAPH_OUT_H_
