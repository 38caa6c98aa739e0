// clip.h — Clipping of gradients, dense and sparse, by the rules of tf.clip_by_*.
//
// Sparse gradients are clipped by the rows they hold, repeated ones counted as they are; pass them
// through weir_gradient_unique before to clip their sums. A gradient without a node stays one.
// Limits are numbers or edges (WEIR_RATE). Errors stick in the scope.
#ifndef WEIR_CLIP_H_
#define WEIR_CLIP_H_

#include "weir/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

// Each element into [low, high]; NaN stays NaN.
WEIR_API weir_gradient_t weir_clip_gradient_by_value(weir_scope_t* scope, weir_gradient_t gradient,
                                                     float low, float high);
// Scaled so that its norm is at most |norm|; negative: 0.
WEIR_API weir_gradient_t weir_clip_gradient_by_norm_with(weir_scope_t* scope,
                                                         weir_gradient_t gradient,
                                                         weir_rate_t norm);
#define weir_clip_gradient_by_norm(scope, gradient, norm) \
  weir_clip_gradient_by_norm_with(scope, gradient, WEIR_RATE(norm))
// Scaled so that its norm divided by its number of elements is at most |norm|.
WEIR_API weir_gradient_t weir_clip_gradient_by_average_norm_with(weir_scope_t* scope,
                                                                 weir_gradient_t gradient,
                                                                 weir_rate_t norm);
#define weir_clip_gradient_by_average_norm(scope, gradient, norm) \
  weir_clip_gradient_by_average_norm_with(scope, gradient, WEIR_RATE(norm))

// The norm of all gradients together. An error when there is none.
WEIR_API weir_edge_t weir_global_norm(weir_scope_t* scope, const weir_gradient_t* gradients,
                                      int count);
// Scales all |gradients|, in place, so that their global norm is at most |norm|; all become NaN
// when it is not finite. Returns the global norm before.
WEIR_API weir_edge_t weir_clip_by_global_norm_with(weir_scope_t* scope, weir_gradient_t* gradients,
                                                   int count, weir_rate_t norm);
#define weir_clip_by_global_norm(scope, gradients, count, norm) \
  weir_clip_by_global_norm_with(scope, gradients, count, WEIR_RATE(norm))

#ifdef __cplusplus
}
#endif
#endif  // WEIR_CLIP_H_
