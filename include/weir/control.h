// control.h — Loops and conditionals, built from C functions that add the nodes of their bodies.
//
//   static weir_edge_t goes_on(weir_scope_t* s, const weir_edge_t* state, void* user) {
//     return weir_less(s, state[0], *(weir_edge_t*)user);
//   }
//   static void step(weir_scope_t* s, weir_edge_t* state, void* user) {
//     state[0] = weir_add_v2(s, state[0], weir_const_int(s, 1));
//     state[1] = weir_mat_mul(s, state[1], weights);   // an edge from outside: captured
//   }
//   weir_edge_t state[] = {weir_const_int(s, 0), x}, result[2];
//   weir_while_loop(s, state, 2, goes_on, step, &limit, result, .parallel_iterations = 1);
//
// The functions are called once each, while the graph is built. Nodes go where their scope says:
// those made on the scope a function is given are part of the loop or branch; edges from outside
// may be used there freely and are captured (as loop invariants, or switched into the branch). An
// edge from inside must not be used outside; only results leave. Loops and conditionals nest, and
// gradients go through both. Variables made inside are put outside, with what they start from.
// Constants are the same in and out.
//
// Nodes that nothing returned depends on do not run. What is to happen for its effect is made a
// condition of a result by weir_scope_after.
#ifndef WEIR_CONTROL_H_
#define WEIR_CONTROL_H_

#include "weir/attrs.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- loops ----

// Returns a bool scalar: whether the loop goes on with |state|.
typedef weir_edge_t (*weir_loop_cond_fn_t)(weir_scope_t* scope, const weir_edge_t* state,
                                           void* user);
// Replaces in |state| what changes from one iteration to the next. Types must stay, and shapes,
// too, unless the loop was given wider ones.
typedef void (*weir_loop_body_fn_t)(weir_scope_t* scope, weir_edge_t* state, void* user);

typedef struct weir_while_loop_options_t {
  int reserved;
  int64_t parallel_iterations;  // how many may be alive at once; default: 10
  int64_t maximum_iterations;   // the loop ends after so many at the latest; default: no limit
  const char* name;             // default: "while"
  // Shapes that hold in all iterations, one a state; those not set, or all that the list is too
  // short for, stay as they enter. Default: none.
  weir_shapes_t shapes;
} weir_while_loop_options_t;
// Runs |body| as long as |cond| says so. |state| is what |count| variables start with, |out_state|
// (may be the same array) what they end with. INVALID_ARGUMENT sticks in the scope when a type or
// shape changes between iterations, or when an edge is missing or from another loop.
WEIR_API void weir_while_loop_with(weir_scope_t* scope, const weir_edge_t* state, int count,
                                   weir_loop_cond_fn_t cond, weir_loop_body_fn_t body, void* user,
                                   weir_edge_t* out_state,
                                   const weir_while_loop_options_t* options);
#define weir_while_loop(scope, state, count, cond, body, user, out_state, ...)         \
  weir_while_loop_with((scope), (state), (count), (cond), (body), (user), (out_state), \
                       &(const weir_while_loop_options_t){0, __VA_ARGS__})

// ---- conditionals ----

// Sets every entry of |outs|, as many as the conditional was asked for.
typedef void (*weir_branch_fn_t)(weir_scope_t* scope, weir_edge_t* outs, void* user);

typedef struct weir_cond_options_t {
  int reserved;
  const char* name;  // default: "cond"
} weir_cond_options_t;
// The |count| results of |then_fn| if |pred|, a bool scalar, is true, else those of |else_fn|. Only
// one of the two runs. Both must give values of the same types.
WEIR_API void weir_cond_with(weir_scope_t* scope, weir_edge_t pred, weir_branch_fn_t then_fn,
                             weir_branch_fn_t else_fn, void* user, weir_edge_t* outs, int count,
                             const weir_cond_options_t* options);
#define weir_cond(scope, pred, then_fn, else_fn, user, outs, count, ...)         \
  weir_cond_with((scope), (pred), (then_fn), (else_fn), (user), (outs), (count), \
                 &(const weir_cond_options_t){0, __VA_ARGS__})

// The results of branches[index], and of the last one when |index|, an int32 scalar, is not below
// |branch_count| or is negative.
WEIR_API void weir_switch_case_with(weir_scope_t* scope, weir_edge_t index,
                                    const weir_branch_fn_t* branches, int branch_count, void* user,
                                    weir_edge_t* outs, int count,
                                    const weir_cond_options_t* options);
#define weir_switch_case(scope, index, branches, branch_count, user, outs, count, ...)         \
  weir_switch_case_with((scope), (index), (branches), (branch_count), (user), (outs), (count), \
                        &(const weir_cond_options_t){0, __VA_ARGS__})

#ifdef __cplusplus
}
#endif
#endif  // WEIR_CONTROL_H_
