// optimizer.h — What the parts of the optimizers share: an application of gradients under way, and
// small graphs that all of them need.
#ifndef WEIR_LIBRARY_OPTIMIZER_H_
#define WEIR_LIBRARY_OPTIMIZER_H_

#include "weir/optimizer.h"

// One call of weir_apply_gradients.
typedef struct application_t {
  weir_scope_t* scope;  // where the steps' nodes go
  weir_scope_t* state;  // where variables go: no control inputs
  const weir_optimizer_t* optimizer;
  const weir_variable_gradient_t* gradients;
  int count;
  const weir_minimize_options_t* options;
} application_t;

// Adds the nodes that apply the gradients; NULL after an error.
weir_node_t* weir_library_apply(const application_t* application);
// The same, but only once in |options->accumulate| runs.
weir_node_t* weir_library_apply_accumulated(const application_t* application);

// ---- loss scaling, where |options->loss_scale| asks for it (loss_scale.c) ----
// What the gradient of |loss| starts with: |options->loss_gradient| times the scale. No node: ones.
weir_edge_t weir_library_scale_loss(weir_scope_t* scope, weir_edge_t loss,
                                    const weir_minimize_options_t* options);
// Takes the scale out of gradients that started so.
void weir_library_unscale(weir_scope_t* scope, weir_variable_gradient_t* gradients, int count,
                          const weir_minimize_options_t* options);
// Applies the gradients, once in |options->accumulate| runs, where all of them are finite, and sets
// the next scale.
weir_node_t* weir_library_apply_scaled(const application_t* application);

// ---- small graphs ----

// |value| as a scalar of type |dtype|.
weir_edge_t weir_library_scalar(weir_scope_t* scope, float value, weir_dtype_t dtype);
// |edge| as |dtype|; itself when it is that.
weir_edge_t weir_library_cast(weir_scope_t* scope, weir_edge_t edge, weir_dtype_t dtype);
// A state variable "<variable>/<name>" as large as |variable|, filled with |value|. Returns its
// value.
weir_edge_t weir_library_slot(weir_scope_t* state, const weir_variable_info_t* variable,
                              const char* name, float value);
// The variable of the root scope whose value or handle |edge| is; false when it is none.
bool weir_library_find_variable(const weir_scope_t* scope, weir_edge_t edge,
                                weir_variable_info_t* out_variable);
// The same, by the variable's name.
bool weir_library_find_named(const weir_scope_t* scope, const char* name,
                             weir_variable_info_t* out_variable);
// A node that adds one to the variable with the value |step|.
weir_node_t* weir_library_increment(weir_scope_t* scope, weir_edge_t step);

#endif  // WEIR_LIBRARY_OPTIMIZER_H_
