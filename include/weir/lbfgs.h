// lbfgs.h — L-BFGS: minimises a loss over all of its data at once, by whole steps of a session.
//
//   weir_lbfgs_t* lbfgs = weir_lbfgs_create(s, loss);
//   weir_lbfgs_result_t result;
//   check(weir_lbfgs_minimize(lbfgs, session, NULL, 0, &result));
//
// For losses that are the same whenever they are computed: no random batches, no dropout. It needs
// tens of evaluations where gradient descent needs thousands of steps, and no learning rate. What
// it remembers of the curvature is kept by this process, in double precision; the variables and the
// loss may be of any floating type, and anywhere. Threading: thread-compatible.
#ifndef WEIR_LBFGS_H_
#define WEIR_LBFGS_H_

#include "weir/optimizer.h"
#include "weir/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_lbfgs_t weir_lbfgs_t;

// Every zero is the default.
typedef struct weir_lbfgs_options_t {
  int reserved;
  const weir_edge_t* variables;  // as of weir_minimize: default: all trainable ones
  int variable_count;
  int memory;                 // so many of the last steps are remembered (10)
  int max_iterations;         // (200)
  int max_evaluations;        // of loss and gradient (10 an iteration)
  double gradient_tolerance;  // it ends when no element of the gradient is larger (1e-5)
  double loss_tolerance;      // or when an iteration gains less, relative to the loss (1e-10)
} weir_lbfgs_options_t;

// Why it ended.
typedef enum weir_lbfgs_end_t {
  WEIR_LBFGS_GRADIENT = 0,    // within gradient_tolerance
  WEIR_LBFGS_LOSS = 1,        // within loss_tolerance
  WEIR_LBFGS_ITERATIONS = 2,  // so many were allowed
  WEIR_LBFGS_EVALUATIONS = 3,
  WEIR_LBFGS_STUCK = 4,  // no smaller loss was found downhill: it is as small as its type can tell,
                         // or its gradient is not that of the loss
} weir_lbfgs_end_t;
typedef struct weir_lbfgs_result_t {
  double loss;          // where the variables are now
  double max_gradient;  // the largest element of the gradient there, without its sign
  int iterations;
  int evaluations;
  weir_lbfgs_end_t end;
} weir_lbfgs_result_t;

// Adds the nodes that compute gradients and set the variables. The caller owns what comes out,
// which is of use as long as the graph. NULL after an error, which sticks in the scope: the loss
// depends on none of the variables, or one has no known shape.
WEIR_API weir_lbfgs_t* weir_lbfgs_create_with(weir_scope_t* scope, weir_edge_t loss,
                                              const weir_lbfgs_options_t* options);
#define weir_lbfgs_create(scope, loss, ...) \
  weir_lbfgs_create_with(scope, loss, &(const weir_lbfgs_options_t){0, __VA_ARGS__})
WEIR_API void weir_lbfgs_destroy(weir_lbfgs_t* lbfgs);

// Goes downhill from where the variables are, with |feeds| at each evaluation. They are at the best
// that was found afterwards; also when this fails, unless the session itself does.
// INVALID_ARGUMENT: the loss is no finite number at the start. |out_result| may be NULL.
WEIR_API WEIR_MUST_USE weir_status_t* weir_lbfgs_minimize(weir_lbfgs_t* lbfgs,
                                                          weir_session_t* session,
                                                          const weir_feed_t* feeds, int feed_count,
                                                          weir_lbfgs_result_t* out_result);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_LBFGS_H_
