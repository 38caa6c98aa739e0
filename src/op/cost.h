// cost.h — What an op's cost function sees and says: how much a node computes, and how much memory
// it touches. Placement by cost turns that into time.
//
// Most ops have no such function: they compute one thing an element, and touch all they read and
// write.
#ifndef WEIR_OP_COST_H_
#define WEIR_OP_COST_H_

#include "op/op.h"

enum { WEIR_COST_UNKNOWN_DIM = 32 };  // what a dimension counts that nobody knows beforehand

struct weir_cost_t {
  double flops;
  double bytes;
};

struct weir_cost_ctx_t {
  const weir_node_def_t* node;
  const weir_shape_t* const* inputs;  // as far as they are known; never NULL
  const weir_shape_t* const* outputs;
};

// Dimension |i|, from the end where it is negative.
double weir_cost_dim(const weir_shape_t* shape, int i);
double weir_cost_count(const weir_shape_t* shape);                     // elements
double weir_cost_bytes(const weir_shape_t* shape, weir_dtype_t type);  // 0 for handles
// What the op says of the node, or, where it says nothing, one operation an element.
weir_cost_t weir_cost_of(const weir_cost_ctx_t* ctx);

// ---- cost functions that many ops share; |cost| holds what it would be without one ----

// Reads only as much as it writes: of the input there may be much more (Gather, Slice).
void weir_cost_fn_outputs(const weir_cost_ctx_t* ctx, weir_cost_t* cost);
// Writes into its first input only as much as the others hold (scatters, sparse updates).
void weir_cost_fn_updates(const weir_cost_ctx_t* ctx, weir_cost_t* cost);
// A function that takes a few dozen operations an element (Exp, random numbers).
void weir_cost_fn_many(const weir_cost_ctx_t* ctx, weir_cost_t* cost);
// Products of matrices, in any number of batches: 2 m n k.
void weir_cost_fn_matmul(const weir_cost_ctx_t* ctx, weir_cost_t* cost);

#endif  // WEIR_OP_COST_H_
