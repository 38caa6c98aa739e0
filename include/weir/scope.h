// scope.h — Scopes: where new nodes go and what they are called. Errors stick, so a model reads
// like mathematics.
//
//   weir_scope_t* s = weir_scope_create(graph);
//   weir_edge_t y = weir_add_v2(s, weir_mat_mul(s, x, w), b);
//   if (weir_status_report(weir_scope_finish(s))) return 1;
//
// After the first error every function on the scope returns an edge without a node and does
// nothing. weir/ops.h has one function an op. Threading: thread-confined.
#ifndef WEIR_SCOPE_H_
#define WEIR_SCOPE_H_

#include "weir/argument.h"
#include "weir/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_scope_t weir_scope_t;

// A root scope; NULL when memory is exhausted. |graph| is retained.
WEIR_API weir_scope_t* weir_scope_create(weir_graph_t* graph);
// Returns the first error of the scope and of all made from it, and destroys them all.
// RESOURCE_EXHAUSTED for NULL; FAILED_PRECONDITION when it was finished before.
WEIR_API WEIR_MUST_USE weir_status_t* weir_scope_finish(weir_scope_t* take_root);
WEIR_API const weir_status_t* weir_scope_status(
    const weir_scope_t* scope);  // borrowed; NULL while all is well
WEIR_API weir_graph_t* weir_scope_graph(const weir_scope_t* scope);  // borrowed
// What the names of nodes on the scope begin with: "" or "a/b". Borrowed, as long as the root
// scope.
WEIR_API const char* weir_scope_prefix(const weir_scope_t* scope);
// Takes the scope's error, if any, to the caller; the scope goes on as before it. For bindings of
// languages with exceptions. What the failed call had added stays in the graph.
WEIR_API WEIR_MUST_USE weir_status_t* weir_scope_take_error(weir_scope_t* scope);

// Scopes made from another: owned by the root. Names are made unique: "dense", "dense_1".
WEIR_API weir_scope_t* weir_scope_in(weir_scope_t* scope, const char* name);
WEIR_API weir_scope_t* weir_scope_on(weir_scope_t* scope, const char* device);
WEIR_API weir_scope_t* weir_scope_after(weir_scope_t* scope, weir_node_t* const* nodes, int count);
// The device of a variable that starts with |initial|, whose type and shape may be looked at. The
// string is borrowed for the call.
typedef const char* (*weir_variable_device_fn_t)(void* arg, weir_edge_t initial);
// The same scope, but its variables go where |fn| says, other nodes on the scope's device as
// before. weir_scope_on ends that: what is on a given device is there with its variables.
// |arg| must live as long as the root scope.
WEIR_API weir_scope_t* weir_scope_variables_on(weir_scope_t* scope, weir_variable_device_fn_t fn,
                                               void* arg);
// The next node made on the returned scope is called |name| exactly (within the scope), instead of
// after its op.
WEIR_API weir_scope_t* weir_scope_name(weir_scope_t* scope, const char* name);

// A scope whose names begin with |prefix| itself, counted from the graph's root: for what belongs
// beside an existing node, such as an optimizer's slots beside their variable.
WEIR_API weir_scope_t* weir_scope_at(weir_scope_t* scope, const char* prefix);
// The same scope without its control inputs, outside of loops and branches: for what variables
// start with, which must not wait for a step.
WEIR_API weir_scope_t* weir_scope_lift(weir_scope_t* scope);

// Makes runs repeatable: what layers and other library functions on any scope of this root draw at
// random from now on, and were not given a seed for, is seeded by |seed| and the number of nodes
// made so far, as after tf.compat.v1.set_random_seed. 0 (the default): by the machine.
WEIR_API void weir_scope_seed(weir_scope_t* scope, int64_t seed);
WEIR_API int64_t weir_scope_get_seed(const weir_scope_t* scope);

// ---- for those who write layers and optimizers ----
// Makes |take_status| the scope's error, unless it has one already.
WEIR_API void weir_scope_fail(weir_scope_t* scope, weir_status_t* take_status);
// Whether |argument| is there; if not, INVALID_ARGUMENT that names |function| and |name| sticks in
// the scope.
WEIR_API bool weir_scope_has_argument(weir_scope_t* scope, const void* argument,
                                      const char* function, const char* name);
#define WEIR_HAS_ARG(scope, argument) weir_scope_has_argument(scope, argument, __func__, #argument)
// |count| * |size| zeroed bytes that live as long as the root scope; NULL sticks as an error.
WEIR_API void* weir_scope_alloc(weir_scope_t* scope, size_t count, size_t size);
// Remembers |edge| on the root scope under |key|, and gives back all edges of a key, in order.
// Layers put what each step must run beside the gradients under WEIR_UPDATES (edges of index 0 of
// the nodes to run), summaries their outputs under WEIR_SUMMARIES, regularisers under WEIR_LOSSES.
WEIR_API void weir_scope_collect(weir_scope_t* scope, const char* key, weir_edge_t edge);
WEIR_API int weir_scope_collected(
    const weir_scope_t* scope, const char* key,
    const weir_edge_t** out_edges);  // borrowed until the next collect
#define WEIR_UPDATES "updates"
#define WEIR_SUMMARIES "summaries"
#define WEIR_LOSSES "losses"

// ---- constants ----
WEIR_API weir_edge_t weir_const(weir_scope_t* scope,
                                weir_tensor_t* tensor);  // |tensor| is retained
WEIR_API weir_edge_t weir_const_float(weir_scope_t* scope, float value);
WEIR_API weir_edge_t weir_const_int(weir_scope_t* scope, int value);  // int32 scalar
WEIR_API weir_edge_t weir_const_ints(weir_scope_t* scope, const int* values,
                                     int count);  // int32 vector
WEIR_API weir_edge_t weir_const_floats(weir_scope_t* scope, int rank, const int64_t* dims,
                                       const float* values);
WEIR_API weir_edge_t weir_const_bool(weir_scope_t* scope, bool value);
WEIR_API weir_edge_t weir_const_string(weir_scope_t* scope, const char* value);
WEIR_API weir_edge_t weir_const_strings(weir_scope_t* scope, const char* const* values,
                                        int count);  // string vector
#define WEIR_DIMS(...) \
  (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

// ---- variables: a resource handle, how it starts, and its value ----
// Returns the value (a read). |initial| gives type and shape. The root scope remembers every
// variable.
WEIR_API weir_edge_t weir_variable(weir_scope_t* scope, const char* name, weir_edge_t initial);
// The same, but optimizers leave it alone.
WEIR_API weir_edge_t weir_state_variable(weir_scope_t* scope, const char* name,
                                         weir_edge_t initial);
// The handle behind a value returned by weir_variable.
WEIR_API weir_edge_t weir_variable_handle(weir_edge_t value);
// What the root scope remembers of a variable.
typedef struct weir_variable_info_t {
  weir_edge_t handle;        // of its VarHandleOp
  weir_edge_t value;         // what weir_variable returned
  weir_edge_t initial;       // what it starts with
  weir_node_t* initializer;  // assigns |initial|
  bool is_trainable;
} weir_variable_info_t;
WEIR_API int weir_scope_variable_count(const weir_scope_t* scope);
WEIR_API weir_variable_info_t weir_scope_variable_at(const weir_scope_t* scope, int index);
// A node that initialises every variable made so far on the root scope.
WEIR_API weir_node_t* weir_initializer(weir_scope_t* scope);
// A node that runs all of |nodes|.
WEIR_API weir_node_t* weir_group(weir_scope_t* scope, const char* name, weir_node_t* const* nodes,
                                 int count);

// ---- gradients (weir/optimizer.h trains with them) ----
// Adds nodes that compute the gradients of the sum of |ys| with respect to |xs|. |grad_ys| may be
// NULL (ones). An |x| that the ys do not depend on gets an edge without a node. Sparse gradients
// are returned dense.
WEIR_API WEIR_MUST_USE weir_status_t* weir_gradients(weir_scope_t* scope, const weir_edge_t* ys,
                                                     int y_count, const weir_edge_t* xs,
                                                     int x_count, const weir_edge_t* grad_ys,
                                                     weir_edge_t* out_grads);
// As weir_gradients, but sparse ones stay sparse: rows |indices| of |values|.
typedef struct weir_gradient_t {
  weir_edge_t values;
  weir_edge_t indices;  // no node: dense
  weir_edge_t dense_shape;
} weir_gradient_t;
WEIR_API WEIR_MUST_USE weir_status_t* weir_gradients_sparse(weir_scope_t* scope,
                                                            const weir_edge_t* ys, int y_count,
                                                            const weir_edge_t* xs, int x_count,
                                                            const weir_edge_t* grad_ys,
                                                            weir_gradient_t* out_grads);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_SCOPE_H_
