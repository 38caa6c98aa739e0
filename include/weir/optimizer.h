// optimizer.h — Training: optimizers as values, and the nodes that take their steps.
//
//   weir_optimizer_t adam = weir_adam(0.001f, .beta1 = WEIR_SET(0.8f));
//   weir_node_t* step = weir_minimize(s, &adam, loss, .global_step = weir_global_step(s));
//
// A learning rate is a number or an edge: a schedule (weir/schedule.h), a placeholder.
// Hyperparameters, their defaults and the names of what is kept beside a variable ("w/Momentum",
// "w/Adam", "w/Adam_1", "beta1_power") are those of tf.compat.v1.train, so that checkpoints are
// interchangeable. Sparse gradients stay sparse: repeated rows are summed, then only the rows that
// occur are updated, by the same rules as in TensorFlow. Every call that makes a step makes its own
// slots: build the step once.
//
// All of this is user-level code over public headers. An optimizer of your own is a
// weir_update_rule_t. Threading: as scopes, thread-confined; optimizers are plain values.
#ifndef WEIR_OPTIMIZER_H_
#define WEIR_OPTIMIZER_H_

#include "weir/attrs.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- learning rates ----
typedef struct weir_rate_t {
  float value;
  weir_edge_t edge;  // a floating-point scalar; no node: |value|
} weir_rate_t;
WEIR_API weir_rate_t weir_rate_float(float value);
WEIR_API weir_rate_t weir_rate_edge(weir_edge_t edge);
WEIR_API weir_rate_t weir_rate_same(weir_rate_t rate);
// A number, an edge or a weir_rate_t as a weir_rate_t.
#define WEIR_RATE(rate)                  \
  _Generic((rate), weir_edge_t           \
           : weir_rate_edge, weir_rate_t \
           : weir_rate_same, default     \
           : weir_rate_float)(rate)
// The rate as a scalar of type |dtype|.
WEIR_API weir_edge_t weir_rate_value(weir_scope_t* scope, weir_rate_t rate, weir_dtype_t dtype);

// ---- optimizers ----
typedef struct weir_update_rule_t weir_update_rule_t;

// What is optimized how. A plain value; fields that a rule does not know are ignored by it.
typedef struct weir_optimizer_t {
  const weir_update_rule_t* rule;  // borrowed
  const char* name;                // of slots and nodes; NULL: the rule's. Borrowed
  weir_rate_t learning_rate;
  float momentum;
  float beta1, beta2;  // decay of the first and second moment
  float rho;           // decay of averages of squares
  float epsilon;
  float initial_accumulator;
  float l1, l2, l2_shrinkage;  // strengths of regularisation
  float rate_power;            // how the learning rate depends on the accumulator
  float beta;                  // FTRL's
  bool is_nesterov, is_centered, is_amsgrad;
  const void* data;  // for rules of your own; borrowed
} weir_optimizer_t;

// w -= rate * g
WEIR_API weir_optimizer_t weir_sgd_with(weir_rate_t rate);
#define weir_sgd(rate) weir_sgd_with(WEIR_RATE(rate))

typedef struct weir_momentum_options_t {
  int reserved;
  bool nesterov;
} weir_momentum_options_t;
// m = momentum * m + g;  w -= rate * m
WEIR_API weir_optimizer_t weir_momentum_with(weir_rate_t rate, float momentum,
                                             const weir_momentum_options_t* options);
#define weir_momentum(rate, momentum, ...) \
  weir_momentum_with(WEIR_RATE(rate), momentum, &(const weir_momentum_options_t){0, __VA_ARGS__})

typedef struct weir_adagrad_options_t {
  int reserved;
  weir_opt_float_t initial_accumulator;  // positive; default: 0.1
} weir_adagrad_options_t;
// a += g²;  w -= rate * g / sqrt(a)
WEIR_API weir_optimizer_t weir_adagrad_with(weir_rate_t rate,
                                            const weir_adagrad_options_t* options);
#define weir_adagrad(rate, ...) \
  weir_adagrad_with(WEIR_RATE(rate), &(const weir_adagrad_options_t){0, __VA_ARGS__})

typedef struct weir_adadelta_options_t {
  int reserved;
  weir_opt_float_t rho;      // default: 0.95
  weir_opt_float_t epsilon;  // default: 1e-8
} weir_adadelta_options_t;
// Steps scaled by the ratio of two running averages: of squared steps, of squared gradients.
WEIR_API weir_optimizer_t weir_adadelta_with(weir_rate_t rate,
                                             const weir_adadelta_options_t* options);
#define weir_adadelta(rate, ...) \
  weir_adadelta_with(WEIR_RATE(rate), &(const weir_adadelta_options_t){0, __VA_ARGS__})

typedef struct weir_rmsprop_options_t {
  int reserved;
  weir_opt_float_t decay;    // default: 0.9
  float momentum;            // default: 0
  weir_opt_float_t epsilon;  // default: 1e-10
  bool centered;             // divides by the variance instead of the mean square
} weir_rmsprop_options_t;
// Steps divided by the root of a running mean of squared gradients.
WEIR_API weir_optimizer_t weir_rmsprop_with(weir_rate_t rate,
                                            const weir_rmsprop_options_t* options);
#define weir_rmsprop(rate, ...) \
  weir_rmsprop_with(WEIR_RATE(rate), &(const weir_rmsprop_options_t){0, __VA_ARGS__})

typedef struct weir_adam_options_t {
  int reserved;
  weir_opt_float_t beta1;    // default: 0.9
  weir_opt_float_t beta2;    // default: 0.999
  weir_opt_float_t epsilon;  // default: 1e-8
  bool amsgrad;              // divides by the largest second moment so far (a third slot)
} weir_adam_options_t;
// Kingma and Ba's. Sparse gradients: moments of all rows decay, and all rows move, as if the
// gradient were dense.
WEIR_API weir_optimizer_t weir_adam_with(weir_rate_t rate, const weir_adam_options_t* options);
#define weir_adam(rate, ...) \
  weir_adam_with(WEIR_RATE(rate), &(const weir_adam_options_t){0, __VA_ARGS__})

typedef struct weir_adamax_options_t {
  int reserved;
  weir_opt_float_t beta1;    // default: 0.9
  weir_opt_float_t beta2;    // default: 0.999
  weir_opt_float_t epsilon;  // default: 1e-7, as in Keras
} weir_adamax_options_t;
// Adam with the infinity norm. Sparse gradients: only the rows that occur decay and move.
WEIR_API weir_optimizer_t weir_adamax_with(weir_rate_t rate, const weir_adamax_options_t* options);
#define weir_adamax(rate, ...) \
  weir_adamax_with(WEIR_RATE(rate), &(const weir_adamax_options_t){0, __VA_ARGS__})

typedef struct weir_ftrl_options_t {
  int reserved;
  weir_opt_float_t rate_power;           // not positive; default: -0.5
  weir_opt_float_t initial_accumulator;  // not negative; default: 0.1
  float l1, l2, l2_shrinkage;            // not negative; default: 0
  float beta;                            // default: 0
} weir_ftrl_options_t;
// Follow the regularised leader (McMahan et al., 2013).
WEIR_API weir_optimizer_t weir_ftrl_with(weir_rate_t rate, const weir_ftrl_options_t* options);
#define weir_ftrl(rate, ...) \
  weir_ftrl_with(WEIR_RATE(rate), &(const weir_ftrl_options_t){0, __VA_ARGS__})

typedef struct weir_proximal_options_t {
  int reserved;
  float l1, l2;                          // default: 0
  weir_opt_float_t initial_accumulator;  // of proximal Adagrad, positive; default: 0.1
} weir_proximal_options_t;
// SGD and Adagrad with a proximal step for l1 and l2 (Duchi et al.).
WEIR_API weir_optimizer_t weir_proximal_sgd_with(weir_rate_t rate,
                                                 const weir_proximal_options_t* options);
WEIR_API weir_optimizer_t weir_proximal_adagrad_with(weir_rate_t rate,
                                                     const weir_proximal_options_t* options);
#define weir_proximal_sgd(rate, ...) \
  weir_proximal_sgd_with(WEIR_RATE(rate), &(const weir_proximal_options_t){0, __VA_ARGS__})
#define weir_proximal_adagrad(rate, ...) \
  weir_proximal_adagrad_with(WEIR_RATE(rate), &(const weir_proximal_options_t){0, __VA_ARGS__})

// ---- steps ----
// A variable and the gradient of the loss for it. No gradient (values without a node): left alone.
typedef struct weir_variable_gradient_t {
  weir_variable_info_t variable;
  weir_gradient_t gradient;
} weir_variable_gradient_t;

typedef struct weir_minimize_options_t {
  int reserved;
  // Of computing gradients:
  const weir_edge_t* variables;  // values or handles, of variables of this root scope; default:
  int variable_count;            // all trainable ones
  weir_edge_t loss_gradient;     // what the gradient of the loss starts with; default: ones
  // Of applying them:
  weir_edge_t global_step;  // value of a variable that each step increments; default: none
  // Scales all gradients together so that their global norm is at most this; 0: does not.
  float clip_global_norm;
  // Gradient accumulation: each run of the step adds the gradients of a micro-batch to accumulators
  // ("w/GradientAccumulator", as large as the variables); every |accumulate|-th run applies their
  // mean, clears them, and only it increments |global_step|. Sparse gradients are summed into the
  // dense accumulator and applied as dense ones. 0 or 1: every run applies its own.
  int accumulate;
  // Of both: loss scaling, for gradients in half precision
  // (weir_session_options_t.mixed_precision). The loss counts so many times as much when gradients
  // are computed, 32768 say, and they are divided by it: small ones are not lost. A step whose
  // gradients are not finite changes nothing but the scale, which it halves; |loss_scale_period|
  // steps in a row that are double it. The scale is the variable "current_loss_scale". 0: none.
  float loss_scale;
  int loss_scale_period;  // 0: 2000
} weir_minimize_options_t;

// A node that takes one step against |loss|: the two halves below. What layers have collected under
// WEIR_UPDATES by now is run with it. An error when the loss depends on none of the variables.
// Errors stick in |scope|; NULL after one.
WEIR_API weir_node_t* weir_minimize_with(weir_scope_t* scope, const weir_optimizer_t* optimizer,
                                         weir_edge_t loss, const weir_minimize_options_t* options);
#define weir_minimize(scope, optimizer, loss, ...) \
  weir_minimize_with(scope, optimizer, loss, &(const weir_minimize_options_t){0, __VA_ARGS__})

// The gradients of |loss|, one entry a variable; returns how many (0 after an error). The array
// lives as long as the root scope and may be changed: clipped, scaled, some taken out.
WEIR_API int weir_compute_gradients_with(weir_scope_t* scope, weir_edge_t loss,
                                         weir_variable_gradient_t** out_gradients,
                                         const weir_minimize_options_t* options);
#define weir_compute_gradients(scope, loss, out_gradients, ...) \
  weir_compute_gradients_with(scope, loss, out_gradients,       \
                              &(const weir_minimize_options_t){0, __VA_ARGS__})
// A node that applies |gradients| by |optimizer|.
WEIR_API weir_node_t* weir_apply_gradients_with(weir_scope_t* scope,
                                                const weir_optimizer_t* optimizer,
                                                const weir_variable_gradient_t* gradients,
                                                int count, const weir_minimize_options_t* options);
#define weir_apply_gradients(scope, optimizer, gradients, count, ...) \
  weir_apply_gradients_with(scope, optimizer, gradients, count,       \
                            &(const weir_minimize_options_t){0, __VA_ARGS__})

// The value of the int64 variable "global_step", made on first use.
WEIR_API weir_edge_t weir_global_step(weir_scope_t* scope);
// |gradient| with repeated rows summed, so that each index occurs once. Dense ones are returned as
// they are.
WEIR_API weir_gradient_t weir_gradient_unique(weir_scope_t* scope, weir_gradient_t gradient);

// Steps over all trainable variables, in one call: weir_minimize with the optimizer's defaults.
WEIR_API weir_node_t* weir_train_sgd(weir_scope_t* scope, weir_edge_t loss, float learning_rate);
WEIR_API weir_node_t* weir_train_momentum(weir_scope_t* scope, weir_edge_t loss,
                                          float learning_rate, float momentum);
WEIR_API weir_node_t* weir_train_adam(weir_scope_t* scope, weir_edge_t loss, float learning_rate);
// The same with a learning rate that is computed or fed.
WEIR_API weir_node_t* weir_train_sgd_with(weir_scope_t* scope, weir_edge_t loss,
                                          weir_edge_t learning_rate);
WEIR_API weir_node_t* weir_train_momentum_with(weir_scope_t* scope, weir_edge_t loss,
                                               weir_edge_t learning_rate, float momentum);
WEIR_API weir_node_t* weir_train_adam_with(weir_scope_t* scope, weir_edge_t loss,
                                           weir_edge_t learning_rate);

// ---- for those who write optimizers ----
#define WEIR_MAX_SLOTS 4

// What a rule sees: one variable, its gradient, and what is kept beside it.
typedef struct weir_update_t {
  weir_scope_t* scope;  // where to add nodes
  const weir_optimizer_t* optimizer;
  weir_variable_info_t variable;
  weir_dtype_t dtype;                  // of the variable; all values below have it
  weir_edge_t rate;                    // the learning rate
  weir_edge_t gradient;                // as large as the variable, or the rows |indices| of it
  weir_edge_t indices;                 // no node: dense
  weir_edge_t slots[WEIR_MAX_SLOTS];   // handles
  weir_edge_t powers[WEIR_MAX_SLOTS];  // values before this step
} weir_update_t;

// A scalar variable of the optimizer that every step multiplies by what it starts with: Adam's
// "beta1_power".
typedef struct weir_power_t {
  const char* name;
  float base;
} weir_power_t;

// How an optimizer updates. Immutable; lives as long as optimizers that use it.
struct weir_update_rule_t {
  const char* name;  // required; "Adam"
  // Optional, default: everything is fine. An error for hyperparameters out of range.
  weir_status_t* (*check)(const weir_optimizer_t* optimizer);
  // Optional, default: none. Fills what the slots start with, and returns how many there are: at
  // most WEIR_MAX_SLOTS.
  int (*slots)(const weir_optimizer_t* optimizer, float* initial);
  // Optional, default: none. The same for powers.
  int (*powers)(const weir_optimizer_t* optimizer, weir_power_t* powers);
  // Whether |apply| can have the same row twice in |indices|; if not, they are summed before.
  bool takes_repeated_rows;
  // Required. Adds the nodes that update one variable; returns the last. Errors stick in the scope.
  weir_node_t* (*apply)(const weir_update_t* update);
};
// |value| as a scalar of the variable's type.
WEIR_API weir_edge_t weir_update_const(const weir_update_t* update, float value);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_OPTIMIZER_H_
