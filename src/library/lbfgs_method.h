// lbfgs_method.h — L-BFGS over vectors of doubles, whatever computes the function. Thread-confined.
#ifndef WEIR_LIBRARY_LBFGS_METHOD_H_
#define WEIR_LIBRARY_LBFGS_METHOD_H_

#include "weir/lbfgs.h"

// The function at |x|, and its gradient there. A value that is not finite is one to stay away from.
typedef weir_status_t* (*lbfgs_fn_t)(void* arg, const double* x, double* out_value,
                                     double* out_gradient);

typedef struct lbfgs_limits_t {
  size_t size;  // of the vectors
  int memory, max_iterations, max_evaluations;
  double gradient_tolerance, value_tolerance;
} lbfgs_limits_t;

// Moves |x| downhill. It is the best that was found, also when |fn| fails.
WEIR_MUST_USE weir_status_t* weir_library_lbfgs(lbfgs_fn_t fn, void* arg,
                                                const lbfgs_limits_t* limits, double* x,
                                                weir_lbfgs_result_t* out_result);

#endif  // WEIR_LIBRARY_LBFGS_METHOD_H_
