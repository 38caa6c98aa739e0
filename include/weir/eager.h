// eager.h — Define by run: ops that execute at once, gradients of what has run.
//
//   weir_eager_t* eager = NULL;
//   weir_status_t* status = weir_eager_create(NULL, &eager);
//   weir_scope_t* s = weir_eager_scope(eager);
//   weir_edge_t y = weir_mat_mul(s, weir_const(s, x), weir_const(s, w));   // computed here
//   weir_tensor_t* value = NULL;
//   status = weir_eager_value(s, y, &value);
//   status = weir_scope_finish(s);                                         // y is gone, value
//   stays
//
// All functions on scopes work on an eager one: ops of weir/ops.h, layers, losses, gradients,
// optimizers. What they add runs before they return, on the values that it is given, so that the
// shape of a model may depend on what was computed before, by if and for of C. A scope keeps all
// that was computed on it until it is finished: a scope per training step (weir_eager_step). It is
// the tape, too: weir_gradients on it differentiates what has run, as often as wanted, gradients
// included.
//
// - Variables belong to the context and are known by their names: weir_variable finds one that is
//   there, or makes it. So a function that builds a model on a scope trains the same variables when
//   it is called again on the next scope. The edge that it returns stands for what the variable
//   holds when the edge is used, and gradients with respect to it are of all its uses on the scope.
//   All else that has a name (tables, queues, iterators) ends with the scope.
// - Edges of one scope may be used on others of the same context as long as they live: with their
//   values, through which no gradients flow, variables excepted.
// - weir_minimize takes its step when it is called. weir_cond takes one branch, weir_while_loop
//   turns as often as it says.
// - An error sticks in the scope, as ever. weir_eager_recover takes it out.
// - weir_define_function turns a C function into a graph once; weir_eager_call runs that:
// optimised,
//   and differentiable as a whole.
//
// Threading: a context is thread-safe, scopes are thread-confined.
#ifndef WEIR_EAGER_H_
#define WEIR_EAGER_H_

#include "weir/function.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_eager_t weir_eager_t;

// Zero-initialise; every zero is the default.
typedef struct weir_eager_options_t {
  int threads;          // in all, the caller included; 0: one a CPU; 1: no thread is ever started
  const char* devices;  // as weir_session_options_t has it; NULL: one CPU
  // Passes that are not run over functions: names separated by commas, "all"; NULL: every pass
  // runs.
  const char* disabled_passes;
  bool allow_soft_placement;  // what the device asked for cannot run goes where it can
} weir_eager_options_t;

// |options| may be NULL.
WEIR_API WEIR_MUST_USE weir_status_t* weir_eager_create(const weir_eager_options_t* options,
                                                        weir_eager_t** out_eager);
// Scopes that are still there keep what they need.
WEIR_API void weir_eager_destroy(weir_eager_t* eager);  // NULL-safe
// Drops the variables and all other state of the context.
WEIR_API void weir_eager_reset(weir_eager_t* eager);

// A root scope on which ops run at once; NULL when memory is exhausted. Finish it with
// weir_scope_finish: its values go.
WEIR_API weir_scope_t* weir_eager_scope(weir_eager_t* eager);
// The same, of the context of |model|, for one step: variables made on |model| are those of the new
// scope, too, for optimizers and all else that asks which there are. |model| is to live as long,
// and is not added to meanwhile.
WEIR_API weir_scope_t* weir_eager_step(weir_scope_t* model);
WEIR_API bool weir_scope_is_eager(const weir_scope_t* scope);
// The value of |edge|, in memory of the host: the caller's to release, and as long as he likes.
// FAILED_PRECONDITION on a scope that is not eager.
WEIR_API WEIR_MUST_USE weir_status_t* weir_eager_value(weir_scope_t* scope, weir_edge_t edge,
                                                       weir_tensor_t** out_tensor);
// The same of one float. INVALID_ARGUMENT for another type or number of elements.
WEIR_API WEIR_MUST_USE weir_status_t* weir_eager_float(weir_scope_t* scope, weir_edge_t edge,
                                                       float* out_value);
// The error that sticks in the scope, NULL while there is none: the caller's. What comes after is
// run again.
WEIR_API WEIR_MUST_USE weir_status_t* weir_eager_recover(weir_scope_t* scope);
// Ends what is running on the scope; nothing else runs on it: CANCELLED. From any thread.
WEIR_API void weir_eager_cancel(weir_scope_t* scope);

// Calls |function|, defined on an eager scope that is not finished, with |args|: as many as it was
// declared with. What it captured is added. Sets |results|, as many as it has.
WEIR_API void weir_eager_call(weir_scope_t* scope, const weir_defined_t* function,
                              const weir_edge_t* args, int arg_count, weir_edge_t* results);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_EAGER_H_
