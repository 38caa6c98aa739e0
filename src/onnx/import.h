// import.h — Translating nodes of ONNX models: the tables of ops, and what their functions work
// with.
//
// A family of ops is a file with a table of rows. A row names an op, the first version of the opset
// that its function understands, and the function, which adds our nodes for one of ONNX's and sets
// its outputs. Errors stick in the scope, so functions read like formulas.
//
// Threading: thread-confined, as scopes are.
#ifndef WEIR_ONNX_IMPORT_H_
#define WEIR_ONNX_IMPORT_H_

#include "api/scope.h"
#include "onnx/proto.h"
#include "onnx/tensor.h"
#include "op/builder.h"

// Values by name: of a graph, and of those around it.
typedef struct onnx_values_t onnx_values_t;
struct onnx_values_t {
  weir_map_t edges;  // name → weir_edge_t in the importer's arena
  const onnx_values_t* outer;
};

typedef struct onnx_call_t onnx_call_t;
typedef void (*onnx_translate_fn_t)(onnx_call_t* call);
typedef struct onnx_row_t {
  const char* op;
  int since;  // the first version of the opset whose definition |translate| understands
  onnx_translate_fn_t translate;
  const char* with;    // for functions that serve several ops: usually the op of ours
  const char* domain;  // NULL: the default one
} onnx_row_t;
#define ONNX_OP(name, version, function) \
  { .op = (name), .since = (version), .translate = (function) }
#define ONNX_OP_WITH(name, version, function, argument) \
  { .op = (name), .since = (version), .translate = (function), .with = (argument) }

// What an import is made with.
typedef struct onnx_importer_t {
  weir_arena_t arena;
  onnx_model_t model;
  onnx_files_t files;
  weir_map_t functions;  // "domain:name" → onnx_function_t
  int depth;             // of functions and graphs that are being translated
  int64_t node_count;    // translated so far
} onnx_importer_t;

// A node that is being translated.
struct onnx_call_t {
  onnx_importer_t* importer;
  weir_scope_t* scope;
  const onnx_node_t* node;
  const onnx_row_t* row;
  const onnx_values_t* values;  // what its subgraphs see
  const onnx_call_t* caller;    // of the function that the node is in; NULL: it is in none
  const onnx_function_t* function;
  onnx_opsets_t opsets;
  int version;               // of the opset of the node's domain
  const onnx_attr_t* attrs;  // those of the node, with those of the function around it put in
  int attr_count;
  const weir_edge_t* inputs;  // no node: left out
  int input_count;
  weir_edge_t* outputs;
  int output_count;
};

// ---- nodes ----

// The first output of a new node.
weir_edge_t onnx_add(onnx_call_t* call, const char* op, weir_edges_t inputs, weir_attrs_t attrs);
#define ADD(call, op, ...) onnx_add((call), (op), WEIR_EDGES(__VA_ARGS__), WEIR_NO_ATTRS)
#define ADD_WITH(call, op, attrs, ...) onnx_add((call), (op), WEIR_EDGES(__VA_ARGS__), (attrs))
WEIR_INLINE weir_edge_t onnx_output(weir_edge_t first, int index) {
  return (weir_edge_t){.node = first.node, .index = index};
}

weir_edge_t onnx_const(onnx_call_t* call, weir_tensor_t* take_tensor);
// A vector or a scalar of int64.
weir_edge_t onnx_ints(onnx_call_t* call, const int64_t* values, int count);
#define INTS(call, ...)                             \
  onnx_ints((call), (const int64_t[]){__VA_ARGS__}, \
            (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
weir_edge_t onnx_int(onnx_call_t* call, int64_t value);
weir_edge_t onnx_bool(onnx_call_t* call, bool value);
// A scalar of any number type; of the type of |x|.
weir_edge_t onnx_number(onnx_call_t* call, weir_dtype_t dtype, double value);
weir_edge_t onnx_like(onnx_call_t* call, weir_edge_t x, double value);
// |x| itself when it is of the type already.
weir_edge_t onnx_cast(onnx_call_t* call, weir_edge_t x, weir_dtype_t dtype);

// ---- what is known of values ----

weir_dtype_t onnx_dtype_of(weir_edge_t x);   // INVALID for none
int onnx_rank(weir_edge_t x);                // -1: not known
int64_t onnx_dim(weir_edge_t x, int index);  // counted from the end when negative; -1: not known
// The rank; UNIMPLEMENTED sticks, and 0 is returned, when it is not known.
int onnx_need_rank(onnx_call_t* call, weir_edge_t x);
// The tensor of a constant; NULL when |x| is none. Borrowed, as long as the graph.
const weir_tensor_t* onnx_constant(weir_edge_t x);
// The whole numbers of a constant, in the scope's arena; false when |x| is none.
bool onnx_constant_ints(onnx_call_t* call, weir_edge_t x, const int64_t** out_values,
                        int* out_count);

// ---- inputs, outputs, attributes ----

weir_edge_t onnx_in(const onnx_call_t* call, int index);  // no node: left out
bool onnx_has_in(const onnx_call_t* call, int index);
void onnx_out(onnx_call_t* call, int index, weir_edge_t edge);  // nothing when nobody asked for it
bool onnx_wants_out(const onnx_call_t* call, int index);

const onnx_attr_t* onnx_attr(const onnx_call_t* call, const char* name);  // NULL when absent
int64_t onnx_attr_int(const onnx_call_t* call, const char* name, int64_t otherwise);
float onnx_attr_float(const onnx_call_t* call, const char* name, float otherwise);
weir_view_t onnx_attr_string(const onnx_call_t* call, const char* name, const char* otherwise);
// |*out_count| 0 when absent.
const int64_t* onnx_attr_ints(const onnx_call_t* call, const char* name, int* out_count);

// UNIMPLEMENTED and INVALID_ARGUMENT naming the node. Both stick in the scope.
void onnx_refuse(onnx_call_t* call, const char* format, ...) WEIR_PRINTF(2, 3);
void onnx_fail(onnx_call_t* call, const char* format, ...) WEIR_PRINTF(2, 3);
bool onnx_failed(const onnx_call_t* call);  // nothing more is to be done

// ---- shapes ----

weir_edge_t onnx_shape(onnx_call_t* call, weir_edge_t x);  // int64
// A part [begin, end) of a vector; |end| INT64_MAX: all that follow.
weir_edge_t onnx_part(onnx_call_t* call, weir_edge_t vector, int64_t begin, int64_t end);
weir_edge_t onnx_join(onnx_call_t* call, const weir_edge_t* parts, int count, int64_t axis);
#define JOIN(call, ...)                                 \
  onnx_join((call), (const weir_edge_t[]){__VA_ARGS__}, \
            (int)(sizeof((const weir_edge_t[]){__VA_ARGS__}) / sizeof(weir_edge_t)), 0)
weir_edge_t onnx_reshape(onnx_call_t* call, weir_edge_t x, weir_edge_t shape);
weir_edge_t onnx_transpose(onnx_call_t* call, weir_edge_t x, const int64_t* perm, int rank);
// Puts dimensions of size 1 in or takes them out.
weir_edge_t onnx_expand(onnx_call_t* call, weir_edge_t x, int64_t axis);
weir_edge_t onnx_squeeze(onnx_call_t* call, weir_edge_t x, int64_t axis);
// Numbers 0 … |count| - 1 as they stand for the axes of a vector.
weir_edge_t onnx_reduce(onnx_call_t* call, const char* op, weir_edge_t x, weir_edge_t axes,
                        bool keeps);

// ---- graphs within nodes (import.c) ----

// Translates |graph| on |scope|, with |args| for its inputs; |results| has room for its outputs.
void onnx_translate_graph(onnx_call_t* call, weir_scope_t* scope, const onnx_graph_t* graph,
                          const weir_edge_t* args, int arg_count, weir_edge_t* results);

// ---- the tables: of each family, ended by a row without an op ----
#define ONNX_FAMILIES(X) \
  X(control) X(index) X(math) X(nn) X(pool) X(quantize) X(reduce) X(resize) X(rnn) X(shape) X(text)
#define X(family) extern const onnx_row_t onnx_##family##_rows[];
ONNX_FAMILIES(X)
#undef X
// The row |index| of all tables; NULL behind the last.
const onnx_row_t* onnx_row_at(int index);
// NULL when there is none.
const onnx_row_t* onnx_row_find(weir_view_t domain, weir_view_t op);

#endif  // WEIR_ONNX_IMPORT_H_
