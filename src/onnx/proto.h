// proto.h — What an ONNX model says, read from its protobuf messages: nodes, attributes, graphs,
// functions. Nothing is translated here.
//
// Threading: immutable after onnx_model_parse. Ownership: the arena's; names and bytes point into
// the message, which must outlive it.
#ifndef WEIR_ONNX_PROTO_H_
#define WEIR_ONNX_PROTO_H_

#include "base/alloc.h"
#include "base/string.h"
#include "weir/dtype.h"

typedef struct onnx_graph_t onnx_graph_t;

typedef struct onnx_names_t {
  const weir_view_t* items;
  int count;
} onnx_names_t;

// AttributeProto.AttributeType.
typedef enum onnx_attr_type_t {
  ONNX_ATTR_NONE = 0,
  ONNX_ATTR_FLOAT = 1,
  ONNX_ATTR_INT = 2,
  ONNX_ATTR_STRING = 3,
  ONNX_ATTR_TENSOR = 4,
  ONNX_ATTR_GRAPH = 5,
  ONNX_ATTR_FLOATS = 6,
  ONNX_ATTR_INTS = 7,
  ONNX_ATTR_STRINGS = 8,
} onnx_attr_type_t;

typedef struct onnx_attr_t {
  weir_view_t name;
  onnx_attr_type_t type;
  float f;
  int64_t i;
  weir_view_t s;
  weir_view_t tensor;         // TENSOR: a TensorProto
  const onnx_graph_t* graph;  // GRAPH
  const float* floats;
  const int64_t* ints;
  onnx_names_t strings;
  int count;  // of floats or ints
  weir_view_t
      source;  // within functions: the function's attribute that gives the value; else empty
} onnx_attr_t;

typedef struct onnx_node_t {
  weir_view_t op, domain, name;
  onnx_names_t inputs, outputs;  // empty names: left out
  const onnx_attr_t* attrs;
  int attr_count;
} onnx_node_t;

// An input or output of a graph.
typedef struct onnx_port_t {
  weir_view_t name;
  bool is_tensor;      // not a sequence, a map or an optional
  weir_dtype_t dtype;  // INVALID: not said, or a type that Weir lacks
  int type;            // as ONNX numbers it
  int rank;            // -1: not said
  const int64_t* dims;
} onnx_port_t;

typedef struct onnx_initializer_t {
  weir_view_t name;
  weir_view_t tensor;  // a TensorProto
} onnx_initializer_t;

typedef struct onnx_opset_t {
  weir_view_t domain;
  int64_t version;
} onnx_opset_t;
typedef struct onnx_opsets_t {
  const onnx_opset_t* items;
  int count;
} onnx_opsets_t;

struct onnx_graph_t {
  weir_view_t name;
  const onnx_node_t* nodes;
  int node_count;
  const onnx_initializer_t* initializers;
  int initializer_count;
  bool has_sparse_initializers;
  const onnx_port_t* inputs;
  int input_count;
  const onnx_port_t* outputs;
  int output_count;
};

typedef struct onnx_function_t {
  weir_view_t name, domain;
  onnx_names_t inputs, outputs;
  const onnx_attr_t* defaults;  // of attributes
  int default_count;
  const onnx_node_t* nodes;
  int node_count;
  onnx_opsets_t opsets;
} onnx_function_t;

typedef struct onnx_model_t {
  int64_t ir_version;
  onnx_opsets_t opsets;
  const onnx_graph_t* graph;
  const onnx_function_t* functions;
  int function_count;
} onnx_model_t;

// INVALID_ARGUMENT for what is no model: a malformed message, no graph, subgraphs too deep.
WEIR_MUST_USE weir_status_t* onnx_model_parse(weir_view_t bytes, weir_arena_t* arena,
                                              onnx_model_t* out_model);

// The version of |domain| ("" and "ai.onnx" are one); 0: not imported.
int64_t onnx_opset_version(onnx_opsets_t opsets, weir_view_t domain);
bool onnx_domain_is_default(weir_view_t domain);

// Types by ONNX's numbers.
weir_dtype_t onnx_dtype(int64_t type);     // INVALID: Weir has none
const char* onnx_type_name(int64_t type);  // for messages
int onnx_type_of(weir_dtype_t dtype);      // 0: ONNX has none

#endif  // WEIR_ONNX_PROTO_H_
