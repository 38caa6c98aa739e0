// node_def.h — NodeDef messages: parsed into arena memory, before any name is looked up, and
// written.
#ifndef WEIR_GRAPH_NODE_DEF_H_
#define WEIR_GRAPH_NODE_DEF_H_

#include "graph/graph.h"

typedef struct weir_parsed_node_t {
  weir_view_t name;
  weir_view_t op;
  weir_view_t device;
  const weir_view_t* inputs;  // data inputs first, as protobuf holds them; "^x" is a control input
  int input_count;
  weir_attrs_t attrs;
  weir_view_t unknown_fields;  // all others, raw
} weir_parsed_node_t;

// |message| must outlive the result: names and attribute strings point into it.
WEIR_MUST_USE weir_status_t* weir_node_def_parse(weir_view_t message, weir_arena_t* arena,
                                                 weir_tensor_list_t* tensors,
                                                 weir_parsed_node_t* out_node);
// Appends the fields of |node| as a NodeDef message.
WEIR_MUST_USE weir_status_t* weir_node_def_write(const weir_node_t* node, weir_strbuf_t* out);
// The same of a node within a FunctionDef, where outputs have other names (function_def.c).
WEIR_MUST_USE weir_status_t* weir_function_node_write(const weir_node_t* node, weir_strbuf_t* out);
void weir_function_write_value(weir_edge_t edge, weir_strbuf_t* out);

#endif  // WEIR_GRAPH_NODE_DEF_H_
