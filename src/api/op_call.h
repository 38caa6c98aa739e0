// op_call.h — A call of a generated op function, put together argument by argument.
//
// The functions are many and all alike: what they share is here, so that each is a few jumps.
#ifndef WEIR_API_OP_CALL_H_
#define WEIR_API_OP_CALL_H_

#include "api/scope.h"

typedef struct weir_op_call_t {
  weir_scope_t* scope;
  const char* op;
  weir_edge_t* inputs;  // lists flattened; in the scope's arena, as are shapes and string views
  int input_count, input_capacity;
  int attr_count;
  weir_named_attr_t attrs[24];  // no op has more
} weir_op_call_t;

// No initialiser: it would clear what is going to be written.
void weir_op_call_begin(weir_op_call_t* call, weir_scope_t* scope, const char* op);
weir_node_t* weir_op_call_end(weir_op_call_t* call);  // NULL after an error, which sticks
// Output |index| of the op, the first of them where it is a list.
weir_edge_t weir_op_call_output(weir_node_t* node, int index);

void weir_op_call_input(weir_op_call_t* call, weir_edge_t edge);
void weir_op_call_inputs(weir_op_call_t* call, const weir_edge_t* edges, int count);

void weir_op_call_int(weir_op_call_t* call, const char* name, int64_t value);
void weir_op_call_float(weir_op_call_t* call, const char* name, float value);
void weir_op_call_bool(weir_op_call_t* call, const char* name, bool value);
void weir_op_call_type(weir_op_call_t* call, const char* name, weir_dtype_t value);
void weir_op_call_tensor(weir_op_call_t* call, const char* name, weir_tensor_t* value);
void weir_op_call_string(weir_op_call_t* call, const char* name, const char* value);  // or NULL
void weir_op_call_func(weir_op_call_t* call, const char* name, const char* value);
void weir_op_call_shape(weir_op_call_t* call, const char* name, weir_dims_t value);
void weir_op_call_ints(weir_op_call_t* call, const char* name, weir_ints_t value);
void weir_op_call_floats(weir_op_call_t* call, const char* name, weir_floats_t value);
void weir_op_call_types(weir_op_call_t* call, const char* name, weir_types_t value);
void weir_op_call_strings(weir_op_call_t* call, const char* name, weir_strings_t value);
void weir_op_call_shapes(weir_op_call_t* call, const char* name, weir_shapes_t value);
// The types of |edges|; left out where one is none, which the graph refuses.
void weir_op_call_types_of(weir_op_call_t* call, const char* name, const weir_edge_t* edges,
                           int count);

#endif  // WEIR_API_OP_CALL_H_
