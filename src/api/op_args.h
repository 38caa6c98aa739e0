// op_args.h — The arguments of a generated op function, put together one by one, and its node.
//
// The functions are many and all alike: what they share is here, so that each is a few jumps.
#ifndef WEIR_API_OP_ARGS_H_
#define WEIR_API_OP_ARGS_H_

#include "api/scope.h"

typedef struct weir_op_args_t {
  weir_scope_t* scope;
  const char* op;
  weir_edge_t* inputs;  // lists flattened; in the scope's arena, as are shapes and string views
  int input_count, input_capacity;
  int attr_count;
  weir_named_attr_t attrs[24];  // no op has more
} weir_op_args_t;

// No initialiser: it would clear what is going to be written.
void weir_op_args_begin(weir_op_args_t* args, weir_scope_t* scope, const char* op);
weir_node_t* weir_op_args_add_node(weir_op_args_t* args);  // NULL after an error, which sticks
// Output |index| of the op, the first of them where it is a list.
weir_edge_t weir_op_args_output(weir_node_t* node, int index);

void weir_op_args_input(weir_op_args_t* args, weir_edge_t edge);
void weir_op_args_inputs(weir_op_args_t* args, const weir_edge_t* edges, int count);

void weir_op_args_int(weir_op_args_t* args, const char* name, int64_t value);
void weir_op_args_float(weir_op_args_t* args, const char* name, float value);
void weir_op_args_bool(weir_op_args_t* args, const char* name, bool value);
void weir_op_args_type(weir_op_args_t* args, const char* name, weir_dtype_t value);
void weir_op_args_tensor(weir_op_args_t* args, const char* name, weir_tensor_t* value);
void weir_op_args_string(weir_op_args_t* args, const char* name, const char* value);  // or NULL
void weir_op_args_func(weir_op_args_t* args, const char* name, const char* value);
void weir_op_args_shape(weir_op_args_t* args, const char* name, weir_dims_t value);
void weir_op_args_ints(weir_op_args_t* args, const char* name, weir_ints_t value);
void weir_op_args_floats(weir_op_args_t* args, const char* name, weir_floats_t value);
void weir_op_args_types(weir_op_args_t* args, const char* name, weir_types_t value);
void weir_op_args_strings(weir_op_args_t* args, const char* name, weir_strings_t value);
void weir_op_args_shapes(weir_op_args_t* args, const char* name, weir_shapes_t value);
// The types of |edges|; left out where one is none, which the graph refuses.
void weir_op_args_types_of(weir_op_args_t* args, const char* name, const weir_edge_t* edges,
                           int count);

#endif  // WEIR_API_OP_ARGS_H_
