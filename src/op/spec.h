// spec.h — Reading the spec strings of an op's definition, and checking values against the result.
// Used within op/ only.
#ifndef WEIR_OP_SPEC_H_
#define WEIR_OP_SPEC_H_

#include "op/op.h"

// Parses the attrs, inputs and outputs of |def| into *|out_op|, in |arena|; default tensors go to
// |tensors|. INVALID_ARGUMENT "<file>: op <name>: <spec> '<piece>': what is wrong".
WEIR_MUST_USE weir_status_t* weir_spec_parse(const char* file, const weir_op_def_t* def,
                                             weir_arena_t* arena, weir_tensor_list_t* tensors,
                                             weir_op_t* out_op);

// One constraint of a kernel row, "T: float, double" of "T: float, double; Tidx: int32": the mask
// for |attr|; 0 when the row does not name it. INVALID_ARGUMENT on a type nobody knows.
WEIR_MUST_USE weir_status_t* weir_spec_kernel_types(const char* types, const char* attr,
                                                    uint64_t* out_mask);

// Checks kind, allowed values and minimum, in TensorFlow's words and without naming the node.
WEIR_MUST_USE weir_status_t* weir_attr_check(const weir_attr_def_t* def, const weir_attr_t* value);

// "int", "list(type)": TensorFlow's name of an attribute type; static.
const char* weir_attr_kind_name(weir_attr_kind_t kind, bool is_list);

#endif  // WEIR_OP_SPEC_H_
