// node.h — Nodes of any op, by its name: for bindings of other languages and ops of plug-ins.
//
//   weir_node_builder_t* b = weir_node_begin(scope, "MatMul");
//   weir_node_inputs(b, (weir_edge_t[]){x, w}, 2);
//   weir_node_set_bool(b, "transpose_b", true);
//   weir_node_t* product = weir_node_end(b);
//
// C programs have weir/ops.h, one typed function an op. What is given here is checked when the node
// is added: an unknown op or attribute, a wrong type, an input too few stick in the scope as
// INVALID_ARGUMENT or NOT_FOUND. Lists, strings and tensors are borrowed until weir_node_end.
// Threading: as the scope's.
#ifndef WEIR_NODE_H_
#define WEIR_NODE_H_

#include "weir/attrs.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_node_builder_t weir_node_builder_t;

// A builder in the memory of the root scope. |op| is borrowed until the end. NULL after an error,
// which sticks; all functions below take NULL, and do nothing.
WEIR_API weir_node_builder_t* weir_node_begin(weir_scope_t* scope, const char* op);
// Adds inputs behind those that there are. An argument that is a list takes its edges one by one.
WEIR_API void weir_node_inputs(weir_node_builder_t* builder, const weir_edge_t* edges, int count);

// Attributes. Those that the inputs' types and number tell may be left out, unless the op has
// several lists of inputs, and so may those with a default.
WEIR_API void weir_node_set_int(weir_node_builder_t* builder, const char* name, int64_t value);
WEIR_API void weir_node_set_float(weir_node_builder_t* builder, const char* name, float value);
WEIR_API void weir_node_set_bool(weir_node_builder_t* builder, const char* name, bool value);
WEIR_API void weir_node_set_type(weir_node_builder_t* builder, const char* name,
                                 weir_dtype_t value);
WEIR_API void weir_node_set_string(weir_node_builder_t* builder, const char* name, const void* data,
                                   size_t size);
WEIR_API void weir_node_set_shape(weir_node_builder_t* builder, const char* name,
                                  weir_dims_t value);
WEIR_API void weir_node_set_tensor(weir_node_builder_t* builder, const char* name,
                                   weir_tensor_t* value);
// A function of the graph's library, by name.
WEIR_API void weir_node_set_func(weir_node_builder_t* builder, const char* name, const char* value);
WEIR_API void weir_node_set_ints(weir_node_builder_t* builder, const char* name, weir_ints_t value);
WEIR_API void weir_node_set_floats(weir_node_builder_t* builder, const char* name,
                                   weir_floats_t value);
WEIR_API void weir_node_set_bools(weir_node_builder_t* builder, const char* name,
                                  const bool* values, int count);
WEIR_API void weir_node_set_types(weir_node_builder_t* builder, const char* name,
                                  weir_types_t value);
WEIR_API void weir_node_set_strings(weir_node_builder_t* builder, const char* name,
                                    weir_strings_t value);
WEIR_API void weir_node_set_shapes(weir_node_builder_t* builder, const char* name,
                                   weir_shapes_t value);
WEIR_API void weir_node_set_funcs(weir_node_builder_t* builder, const char* name,
                                  weir_strings_t value);

// Adds the node and ends the builder. NULL after an error.
WEIR_API weir_node_t* weir_node_end(weir_node_builder_t* take_builder);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_NODE_H_
