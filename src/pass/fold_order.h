// fold_order.h — What a shape told about order, too. Part of constant folding.
#ifndef WEIR_PASS_FOLD_ORDER_H_
#define WEIR_PASS_FOLD_ORDER_H_

#include "pass/rewrite.h"

// A constant that took the place of a node whose inputs are not constants, or was made from one.
typedef struct weir_cut_t {
  weir_node_t* constant;
  weir_node_t* node;
  struct weir_cut_t* next;
  const struct weir_cut_t* same;  // another of the same constant; for keep_order
} weir_cut_t;

// Who reads the shape of a value comes after all that made the value; a constant in its place comes
// after nothing. Where one of those before and one of those after use the same state, and nothing
// else orders them, the constant waits for the node it replaced.
WEIR_MUST_USE weir_status_t* weir_fold_keep_order(const weir_pass_ctx_t* ctx,
                                                  weir_rewrite_t* rewrite, weir_cut_t* cuts);

#endif  // WEIR_PASS_FOLD_ORDER_H_
