// fold.h — Variables become constants: the heart of freezing.
#ifndef WEIR_MODEL_FOLD_H_
#define WEIR_MODEL_FOLD_H_

#include "graph/graph.h"

typedef struct weir_fold_t {
  weir_node_t* const* variables;  // nodes of one graph that calls no functions with variables
  weir_tensor_t* const* values;
  int count;
  const bool* is_needed;  // by node: what else happens to a variable does not matter
  bool quantize_int8;     // large floats are kept in 8 bits
} weir_fold_t;

// Every variable becomes a constant, every read of it the value. FAILED_PRECONDITION names a node
// that is needed and does something else with one.
WEIR_MUST_USE weir_status_t* weir_model_fold(weir_graph_t* graph, const weir_fold_t* fold);

// Whether |node| gives out its inputs, handles too, as they are.
bool weir_model_hands_on(const weir_node_t* node);

// Makes |node| the value of |value|, kept in 8 bits with a scale a column (quantize.c).
WEIR_MUST_USE weir_status_t* weir_model_quantize(weir_node_t* node, const weir_tensor_t* value);
// Whether that is worth it.
bool weir_model_is_large(const weir_tensor_t* value);

#endif  // WEIR_MODEL_FOLD_H_
