// schedule.h — Learning rates that depend on the step, as graphs: equal to
// tf.compat.v1.train.*_decay.
//
//   weir_edge_t step = weir_global_step(s);
//   weir_edge_t rate = weir_exponential_decay(s, 0.1f, step, 1000, 0.96f, .staircase = true);
//   weir_optimizer_t sgd = weir_sgd(rate);
//   weir_node_t* train = weir_minimize(s, &sgd, loss, .global_step = step);
//
// |rate| is a number or an edge, |step| a scalar of any numeric type. The result has the type of
// |rate|: float for a number. Errors stick in the scope.
#ifndef WEIR_SCHEDULE_H_
#define WEIR_SCHEDULE_H_

#include "weir/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_decay_options_t {
  int reserved;
  bool staircase;  // step / decay_steps is rounded down
} weir_decay_options_t;
// rate * decay_rate ^ (step / decay_steps)
WEIR_API weir_edge_t weir_exponential_decay_with(weir_scope_t* scope, weir_rate_t rate,
                                                 weir_edge_t step, float decay_steps,
                                                 float decay_rate,
                                                 const weir_decay_options_t* options);
#define weir_exponential_decay(scope, rate, step, decay_steps, decay_rate, ...)      \
  weir_exponential_decay_with(scope, WEIR_RATE(rate), step, decay_steps, decay_rate, \
                              &(const weir_decay_options_t){0, __VA_ARGS__})
// rate * exp(-decay_rate * step / decay_steps)
WEIR_API weir_edge_t weir_natural_exp_decay_with(weir_scope_t* scope, weir_rate_t rate,
                                                 weir_edge_t step, float decay_steps,
                                                 float decay_rate,
                                                 const weir_decay_options_t* options);
#define weir_natural_exp_decay(scope, rate, step, decay_steps, decay_rate, ...)      \
  weir_natural_exp_decay_with(scope, WEIR_RATE(rate), step, decay_steps, decay_rate, \
                              &(const weir_decay_options_t){0, __VA_ARGS__})
// rate / (1 + decay_rate * step / decay_steps)
WEIR_API weir_edge_t weir_inverse_time_decay_with(weir_scope_t* scope, weir_rate_t rate,
                                                  weir_edge_t step, float decay_steps,
                                                  float decay_rate,
                                                  const weir_decay_options_t* options);
#define weir_inverse_time_decay(scope, rate, step, decay_steps, decay_rate, ...)      \
  weir_inverse_time_decay_with(scope, WEIR_RATE(rate), step, decay_steps, decay_rate, \
                               &(const weir_decay_options_t){0, __VA_ARGS__})

typedef struct weir_polynomial_decay_options_t {
  int reserved;
  weir_opt_float_t end_rate;  // default: 0.0001
  weir_opt_float_t power;     // default: 1
  bool cycle;  // past decay_steps, starts again with the next multiple of it as its length
} weir_polynomial_decay_options_t;
// From rate to end_rate over decay_steps: (rate - end_rate) * (1 - step / decay_steps) ^ power +
// end_rate
WEIR_API weir_edge_t weir_polynomial_decay_with(weir_scope_t* scope, weir_rate_t rate,
                                                weir_edge_t step, float decay_steps,
                                                const weir_polynomial_decay_options_t* options);
#define weir_polynomial_decay(scope, rate, step, decay_steps, ...)      \
  weir_polynomial_decay_with(scope, WEIR_RATE(rate), step, decay_steps, \
                             &(const weir_polynomial_decay_options_t){0, __VA_ARGS__})

// values[0] up to and with step boundaries[0], values[1] up to boundaries[1] … and the last value
// after all: one value more than boundaries, which do not descend.
WEIR_API weir_edge_t weir_piecewise_constant(weir_scope_t* scope, weir_edge_t step,
                                             weir_ints_t boundaries, weir_floats_t values);

typedef struct weir_cosine_decay_options_t {
  int reserved;
  float alpha;  // the least rate, as a fraction of |rate|; default: 0
} weir_cosine_decay_options_t;
// Half a cosine from rate to alpha * rate over decay_steps
WEIR_API weir_edge_t weir_cosine_decay_with(weir_scope_t* scope, weir_rate_t rate, weir_edge_t step,
                                            float decay_steps,
                                            const weir_cosine_decay_options_t* options);
#define weir_cosine_decay(scope, rate, step, decay_steps, ...)      \
  weir_cosine_decay_with(scope, WEIR_RATE(rate), step, decay_steps, \
                         &(const weir_cosine_decay_options_t){0, __VA_ARGS__})

typedef struct weir_cosine_restarts_options_t {
  int reserved;
  weir_opt_float_t t_mul;  // how much longer each period is than the one before; default: 2
  weir_opt_float_t m_mul;  // and how much higher it starts; default: 1
  float alpha;             // as for weir_cosine_decay
} weir_cosine_restarts_options_t;
// Cosines one after another; the first lasts |first_steps|.
WEIR_API weir_edge_t weir_cosine_decay_restarts_with(weir_scope_t* scope, weir_rate_t rate,
                                                     weir_edge_t step, float first_steps,
                                                     const weir_cosine_restarts_options_t* options);
#define weir_cosine_decay_restarts(scope, rate, step, first_steps, ...)      \
  weir_cosine_decay_restarts_with(scope, WEIR_RATE(rate), step, first_steps, \
                                  &(const weir_cosine_restarts_options_t){0, __VA_ARGS__})

typedef struct weir_linear_cosine_options_t {
  int reserved;
  weir_opt_float_t num_periods;  // default: 0.5
  float alpha;                   // default: 0
  weir_opt_float_t beta;         // default: 0.001
} weir_linear_cosine_options_t;
// rate * ((alpha + linear) * cosine + beta), both falling over decay_steps
WEIR_API weir_edge_t weir_linear_cosine_decay_with(weir_scope_t* scope, weir_rate_t rate,
                                                   weir_edge_t step, float decay_steps,
                                                   const weir_linear_cosine_options_t* options);
#define weir_linear_cosine_decay(scope, rate, step, decay_steps, ...)      \
  weir_linear_cosine_decay_with(scope, WEIR_RATE(rate), step, decay_steps, \
                                &(const weir_linear_cosine_options_t){0, __VA_ARGS__})

typedef struct weir_linear_warmup_options_t {
  int reserved;
  float start;  // the fraction of |rate| at step 0; default: 0
} weir_linear_warmup_options_t;
// |rate| (often another schedule) times a factor that rises linearly from |start| to 1 over
// |warmup_steps|, and stays 1.
WEIR_API weir_edge_t weir_linear_warmup_with(weir_scope_t* scope, weir_rate_t rate,
                                             weir_edge_t step, float warmup_steps,
                                             const weir_linear_warmup_options_t* options);
#define weir_linear_warmup(scope, rate, step, warmup_steps, ...)      \
  weir_linear_warmup_with(scope, WEIR_RATE(rate), step, warmup_steps, \
                          &(const weir_linear_warmup_options_t){0, __VA_ARGS__})

#ifdef __cplusplus
}
#endif
#endif  // WEIR_SCHEDULE_H_
