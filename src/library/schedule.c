// schedule.c — Learning rates as functions of the step, with TensorFlow's formulas in its order.
#include "weir/schedule.h"

#include "nodes.h"
#include "weir/ops.h"

// A schedule under construction: all its values have one type, the rate's.
typedef struct schedule_t {
  weir_scope_t* scope;
  weir_dtype_t dtype;
  weir_edge_t rate, step;
} schedule_t;

static schedule_t begin(weir_scope_t* scope, const char* name, weir_rate_t rate, weir_edge_t step) {
  schedule_t s = {.scope = weir_scope_in(scope, name), .dtype = WEIR_DTYPE_FLOAT};
  if (!weir_lib_ready(scope, name, step)) return s;
  if (rate.edge.node && !weir_lib_ready(scope, name, rate.edge)) return s;
  if (rate.edge.node) s.dtype = weir_edge_type(rate.edge);
  s.rate = weir_rate_value(s.scope, rate, s.dtype);
  s.step = weir_edge_type(step) == s.dtype ? step : weir_cast(s.scope, step, s.dtype);
  return s;
}

static weir_edge_t number(const schedule_t* s, float value) {
  return weir_rate_value(s->scope, weir_rate_float(value), s->dtype);
}

static float or_else(weir_opt_float_t option, float value) {
  return option.is_set ? option.value : value;
}

// The short names keep the formulas readable.
static weir_edge_t add(const schedule_t* s, weir_edge_t x, weir_edge_t y) {
  return weir_add_v2(s->scope, x, y);
}
static weir_edge_t sub(const schedule_t* s, weir_edge_t x, weir_edge_t y) {
  return weir_sub(s->scope, x, y);
}
static weir_edge_t mul(const schedule_t* s, weir_edge_t x, weir_edge_t y) {
  return weir_mul(s->scope, x, y);
}
static weir_edge_t quotient(const schedule_t* s, weir_edge_t x, weir_edge_t y) {
  return weir_real_div(s->scope, x, y);
}

static weir_edge_t progress(const schedule_t* s, float steps, bool staircase) {
  weir_edge_t p = quotient(s, s->step, number(s, steps));
  return staircase ? weir_floor(s->scope, p) : p;
}

// ---- exponential and rational ----

weir_edge_t weir_exponential_decay_with(weir_scope_t* scope, weir_rate_t rate, weir_edge_t step,
                                        float decay_steps, float decay_rate,
                                        const weir_decay_options_t* options) {
  options = options ? options : &(const weir_decay_options_t){0};
  schedule_t s = begin(scope, "ExponentialDecay", rate, step);
  weir_edge_t p = progress(&s, decay_steps, options->staircase);
  return mul(&s, s.rate, weir_pow(s.scope, number(&s, decay_rate), p));
}

weir_edge_t weir_natural_exp_decay_with(weir_scope_t* scope, weir_rate_t rate, weir_edge_t step,
                                        float decay_steps, float decay_rate,
                                        const weir_decay_options_t* options) {
  options = options ? options : &(const weir_decay_options_t){0};
  schedule_t s = begin(scope, "NaturalExpDecay", rate, step);
  weir_edge_t p = progress(&s, decay_steps, options->staircase);
  weir_edge_t base = weir_exp(s.scope, weir_neg(s.scope, number(&s, decay_rate)));
  return mul(&s, s.rate, weir_pow(s.scope, base, p));
}

weir_edge_t weir_inverse_time_decay_with(weir_scope_t* scope, weir_rate_t rate, weir_edge_t step,
                                         float decay_steps, float decay_rate,
                                         const weir_decay_options_t* options) {
  options = options ? options : &(const weir_decay_options_t){0};
  schedule_t s = begin(scope, "InverseTimeDecay", rate, step);
  weir_edge_t p = progress(&s, decay_steps, options->staircase);
  weir_edge_t divisor = add(&s, number(&s, 1), mul(&s, number(&s, decay_rate), p));
  return quotient(&s, s.rate, divisor);
}

// ---- polynomial and piecewise ----

weir_edge_t weir_polynomial_decay_with(weir_scope_t* scope, weir_rate_t rate, weir_edge_t step,
                                       float decay_steps,
                                       const weir_polynomial_decay_options_t* options) {
  options = options ? options : &(const weir_polynomial_decay_options_t){0};
  schedule_t s = begin(scope, "PolynomialDecay", rate, step);
  weir_edge_t end = number(&s, or_else(options->end_rate, 0.0001f));
  weir_edge_t power = number(&s, or_else(options->power, 1));
  weir_edge_t steps = number(&s, decay_steps), now = s.step;
  if (options->cycle) {
    weir_edge_t turns = weir_ceil(s.scope, quotient(&s, now, steps));
    weir_edge_t is_first = weir_equal(s.scope, now, number(&s, 0));
    steps = mul(&s, steps, weir_select_v2(s.scope, is_first, number(&s, 1), turns));
  } else {
    now = weir_minimum(s.scope, now, steps);
  }
  weir_edge_t left = sub(&s, number(&s, 1), quotient(&s, now, steps));
  weir_edge_t above = mul(&s, sub(&s, s.rate, end), weir_pow(s.scope, left, power));
  return add(&s, above, end);
}

static weir_edge_t boundary(weir_scope_t* scope, int64_t value, weir_dtype_t dtype) {
  weir_tensor_t* tensor = NULL;
  weir_status_t* status = weir_tensor_create_from(WEIR_DTYPE_INT64, 0, NULL, &value, &tensor);
  if (status) weir_scope_fail(scope, status);
  if (!tensor) return (weir_edge_t){0};
  weir_edge_t edge = weir_const(scope, tensor);
  weir_tensor_release(tensor);
  return dtype == WEIR_DTYPE_INT64 ? edge : weir_cast(scope, edge, dtype);
}

static weir_status_t* check_pieces(weir_ints_t boundaries, weir_floats_t values) {
  if (boundaries.count < 1 || boundaries.count != values.count - 1)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "PiecewiseConstant: the length of boundaries (%d) should be 1 less than the "
                       "length of values (%d)",
                       boundaries.count, values.count);
  for (int i = 1; i < boundaries.count; ++i) {
    if (boundaries.items[i] < boundaries.items[i - 1])
      return WEIR_STATUS(INVALID_ARGUMENT, "PiecewiseConstant: boundary %d descends to %lld", i,
                         (long long)boundaries.items[i]);
  }
  return NULL;
}

weir_edge_t weir_piecewise_constant(weir_scope_t* scope, weir_edge_t step, weir_ints_t boundaries,
                                    weir_floats_t values) {
  if (!weir_lib_ready(scope, "PiecewiseConstant", step)) return (weir_edge_t){0};
  weir_status_t* status = check_pieces(boundaries, values);
  if (status) {
    weir_scope_fail(scope, status);
    return (weir_edge_t){0};
  }
  weir_scope_t* s = weir_scope_in(scope, "PiecewiseConstant");
  weir_edge_t rate = weir_const_float(s, values.items[0]);
  for (int i = 0; i < boundaries.count; ++i) {
    weir_edge_t limit = boundary(s, boundaries.items[i], weir_edge_type(step));
    weir_edge_t is_past = weir_greater(s, step, limit);
    rate = weir_select_v2(s, is_past, weir_const_float(s, values.items[i + 1]), rate);
  }
  return rate;
}

// ---- cosines ----

// 0.5 * height * (1 + cos(pi * x)), with the multiplications in TensorFlow's order.
static weir_edge_t cosine(const schedule_t* s, weir_edge_t height, weir_edge_t x) {
  weir_edge_t turned = weir_cos(s->scope, mul(s, number(s, 3.14159265358979f), x));
  return mul(s, height, add(s, number(s, 1), turned));
}

static weir_edge_t between(const schedule_t* s, float alpha, weir_edge_t x) {
  weir_edge_t scaled = mul(s, sub(s, number(s, 1), number(s, alpha)), x);
  return mul(s, s->rate, add(s, scaled, number(s, alpha)));
}

weir_edge_t weir_cosine_decay_with(weir_scope_t* scope, weir_rate_t rate, weir_edge_t step,
                                   float decay_steps, const weir_cosine_decay_options_t* options) {
  options = options ? options : &(const weir_cosine_decay_options_t){0};
  schedule_t s = begin(scope, "CosineDecay", rate, step);
  weir_edge_t steps = number(&s, decay_steps);
  weir_edge_t done = quotient(&s, weir_minimum(s.scope, s.step, steps), steps);
  return between(&s, options->alpha, cosine(&s, number(&s, 0.5f), done));
}

weir_edge_t weir_cosine_decay_restarts_with(weir_scope_t* scope, weir_rate_t rate, weir_edge_t step,
                                            float first_steps,
                                            const weir_cosine_restarts_options_t* options) {
  options = options ? options : &(const weir_cosine_restarts_options_t){0};
  schedule_t s = begin(scope, "SGDRDecay", rate, step);
  float t_mul = or_else(options->t_mul, 2);
  weir_edge_t done = progress(&s, first_steps, false), period;
  if (t_mul == 1) {
    period = weir_floor(s.scope, done);
    done = sub(&s, done, period);
  } else {  // periods are a geometric series: which one, and how far in it
    weir_edge_t one = number(&s, 1), t = number(&s, t_mul), one_less = sub(&s, one, t);
    weir_edge_t lengths = weir_log(s.scope, sub(&s, one, mul(&s, done, one_less)));
    period = weir_floor(s.scope, quotient(&s, lengths, weir_log(s.scope, t)));
    weir_edge_t length = weir_pow(s.scope, t, period);
    weir_edge_t before = quotient(&s, sub(&s, one, length), one_less);
    done = quotient(&s, sub(&s, done, before), length);
  }
  weir_edge_t height = weir_pow(s.scope, number(&s, or_else(options->m_mul, 1)), period);
  return between(&s, options->alpha, cosine(&s, mul(&s, number(&s, 0.5f), height), done));
}

weir_edge_t weir_linear_cosine_decay_with(weir_scope_t* scope, weir_rate_t rate, weir_edge_t step,
                                          float decay_steps,
                                          const weir_linear_cosine_options_t* options) {
  options = options ? options : &(const weir_linear_cosine_options_t){0};
  schedule_t s = begin(scope, "LinearCosineDecay", rate, step);
  weir_edge_t steps = number(&s, decay_steps);
  weir_edge_t now = weir_minimum(s.scope, s.step, steps);
  weir_edge_t linear = quotient(&s, sub(&s, steps, now), steps);
  weir_edge_t periods = mul(&s, number(&s, 2), number(&s, or_else(options->num_periods, 0.5f)));
  weir_edge_t curve = cosine(&s, number(&s, 0.5f), mul(&s, periods, quotient(&s, now, steps)));
  weir_edge_t product = mul(&s, add(&s, number(&s, options->alpha), linear), curve);
  return mul(&s, s.rate, add(&s, product, number(&s, or_else(options->beta, 0.001f))));
}

// ---- warm-up ----

weir_edge_t weir_linear_warmup_with(weir_scope_t* scope, weir_rate_t rate, weir_edge_t step,
                                    float warmup_steps,
                                    const weir_linear_warmup_options_t* options) {
  options = options ? options : &(const weir_linear_warmup_options_t){0};
  schedule_t s = begin(scope, "LinearWarmup", rate, step);
  weir_edge_t steps = number(&s, warmup_steps), start = number(&s, options->start);
  weir_edge_t done = quotient(&s, weir_minimum(s.scope, s.step, steps), steps);
  weir_edge_t rise = mul(&s, sub(&s, number(&s, 1), start), done);
  return mul(&s, s.rate, add(&s, start, rise));
}
