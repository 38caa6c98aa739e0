// clip.c — Clipping of gradients, with TensorFlow's formulas: NaN and infinity are never hidden.
#include "weir/clip.h"

#include "nodes.h"
#include "weir/ops.h"

static weir_edge_t number(weir_scope_t* s, float value, weir_edge_t like) {
  return weir_rate_value(s, weir_rate_float(value), weir_edge_type(like));
}

// All dimensions of |x|, as an axis input.
static weir_edge_t all_axes(weir_scope_t* s, weir_edge_t x) {
  weir_edge_t zero = weir_const_int(s, 0), one = weir_const_int(s, 1);
  return weir_range(s, zero, weir_rank(s, x), one);
}

static bool is_nothing(weir_scope_t* scope, weir_gradient_t gradient) {
  return !gradient.values.node || !weir_lib_ready(scope, "clip", gradient.values);
}

weir_gradient_t weir_clip_gradient_by_value(weir_scope_t* scope, weir_gradient_t gradient,
                                            float low, float high) {
  if (is_nothing(scope, gradient)) return gradient;
  weir_scope_t* s = weir_scope_in(scope, "clip_by_value");
  weir_edge_t x = gradient.values;
  weir_edge_t below = weir_minimum(s, x, number(s, high, x));
  gradient.values = weir_maximum(s, below, number(s, low, x));
  return gradient;
}

weir_gradient_t weir_clip_gradient_by_norm_with(weir_scope_t* scope, weir_gradient_t gradient,
                                                weir_rate_t norm) {
  if (is_nothing(scope, gradient)) return gradient;
  weir_scope_t* s = weir_scope_in(scope, "clip_by_norm");
  weir_edge_t x = gradient.values;
  weir_edge_t limit = weir_rate_value(s, norm, weir_edge_type(x));
  limit = weir_maximum(s, limit, number(s, 0, x));
  weir_edge_t squares = weir_sum(s, weir_mul(s, x, x), all_axes(s, x), .keep_dims = true);
  // The square root of zero has no gradient: zero is led around it.
  weir_edge_t is_positive = weir_greater(s, squares, number(s, 0, x));
  weir_edge_t safe = weir_select_v2(s, is_positive, squares, weir_ones_like(s, squares));
  weir_edge_t own = weir_select_v2(s, is_positive, weir_sqrt(s, safe), squares);
  gradient.values = weir_real_div(s, weir_mul(s, x, limit), weir_maximum(s, own, limit));
  return gradient;
}

weir_gradient_t weir_clip_gradient_by_average_norm_with(weir_scope_t* scope,
                                                        weir_gradient_t gradient,
                                                        weir_rate_t norm) {
  if (is_nothing(scope, gradient)) return gradient;
  weir_scope_t* s = weir_scope_in(scope, "clip_by_average_norm");
  weir_edge_t x = gradient.values;
  weir_dtype_t dtype = weir_edge_type(x);
  weir_edge_t limit = weir_rate_value(s, norm, dtype);
  weir_edge_t count = weir_cast(s, weir_size(s, x), dtype);
  weir_edge_t inverse = weir_rsqrt(s, weir_sum(s, weir_mul(s, x, x), all_axes(s, x)));
  weir_edge_t factor =
      weir_minimum(s, weir_mul(s, inverse, count), weir_real_div(s, number(s, 1, x), limit));
  gradient.values = weir_mul(s, weir_mul(s, x, limit), factor);
  return gradient;
}

weir_edge_t weir_global_norm(weir_scope_t* scope, const weir_gradient_t* gradients, int count) {
  if (count > 0 && !WEIR_HAS_ARG(scope, gradients)) return (weir_edge_t){0};
  weir_edge_t none = {0};
  if (weir_scope_status(scope)) return none;
  weir_scope_t* s = weir_scope_in(scope, "global_norm");
  weir_edge_t* halves = weir_scope_alloc(s, (size_t)count, sizeof(*halves));
  if (!halves) return none;
  int used = 0;
  weir_dtype_t dtype = WEIR_DTYPE_FLOAT;
  for (int i = 0; i < count && !weir_scope_status(s); ++i) {
    if (!gradients[i].values.node) continue;
    weir_edge_t half = weir_l2_loss(s, gradients[i].values);
    if (weir_scope_status(s)) return none;
    if (!used) dtype = weir_edge_type(half);
    halves[used++] = weir_edge_type(half) == dtype ? half : weir_cast(s, half, dtype);
  }
  if (!used) {
    weir_scope_fail(s, WEIR_STATUS(INVALID_ARGUMENT, "global norm of no gradients"));
    return none;
  }
  weir_edge_t half = weir_sum(s, weir_pack(s, halves, used), weir_const_int(s, 0));
  if (weir_scope_status(s)) return none;
  return weir_sqrt(s, weir_mul(s, half, number(s, 2, half)));
}

weir_edge_t weir_clip_by_global_norm_with(weir_scope_t* scope, weir_gradient_t* gradients,
                                          int count, weir_rate_t limit) {
  weir_edge_t norm = weir_global_norm(scope, gradients, count);
  if (weir_scope_status(scope)) return norm;
  weir_scope_t* s = weir_scope_in(scope, "clip_by_global_norm");
  weir_edge_t most = weir_rate_value(s, limit, weir_edge_type(norm));
  weir_edge_t one = number(s, 1, norm);
  weir_edge_t scale =
      weir_mul(s, most, weir_minimum(s, weir_real_div(s, one, norm), weir_real_div(s, one, most)));
  // Nothing for a finite norm; NaN for any other.
  scale = weir_add_v2(s, scale, weir_sub(s, norm, norm));
  for (int i = 0; i < count && !weir_scope_status(s); ++i) {
    weir_edge_t x = gradients[i].values;
    if (!x.node) continue;
    weir_dtype_t dtype = weir_edge_type(x);
    weir_edge_t own = dtype == weir_edge_type(norm) ? scale : weir_cast(s, scale, dtype);
    gradients[i].values = weir_mul(s, x, own);
  }
  return norm;
}
