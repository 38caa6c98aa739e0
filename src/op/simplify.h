// simplify.h — Algebraic rewriting of one node, written beside the op and driven by the arithmetic
// pass. Thread-confined.
#ifndef WEIR_OP_SIMPLIFY_H_
#define WEIR_OP_SIMPLIFY_H_

#include "op/builder.h"

struct weir_simplify_ctx_t {
  weir_builder_t* builder;
  const weir_node_def_t* node;
  weir_edge_t self;  // output 0 of the node
  const weir_edge_t* inputs;
  weir_edge_t replacement;  // result for output 0: an existing or a new edge; WEIR_NO_EDGE leaves
                            // the node alone
};

// True when input |i| is a constant all of whose elements equal |value|.
bool weir_simplify_is_all(const weir_simplify_ctx_t* ctx, int i, double value);
// Replaces output 0 by input |i| if the shapes and types of both are known to agree, else leaves
// the node alone.
weir_status_t* weir_simplify_to_input(weir_simplify_ctx_t* ctx, int i);

#endif  // WEIR_OP_SIMPLIFY_H_
