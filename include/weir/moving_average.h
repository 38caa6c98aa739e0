// moving_average.h — Exponential moving averages of variables and of other values, as
// tf.train.ExponentialMovingAverage keeps them.
//
//   weir_node_t* step = weir_train_adam(s, loss, 0.001f);
//   weir_moving_average_t average = weir_moving_average(weir_scope_after(s, &step, 1), 0.999f);
//   … run average.update each step (it runs |step| first) …
//   … run weir_moving_average_swap(s, &average) before and after an evaluation …
//
// The average of variable "w" is the variable "w/ExponentialMovingAverage".
#ifndef WEIR_MOVING_AVERAGE_H_
#define WEIR_MOVING_AVERAGE_H_

#include "weir/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_moving_average_options_t {
  int reserved;
  // Values of variables, or other floating-point edges (whose averages start at zero); default: all
  // trainable variables. Borrowed for the call.
  const weir_edge_t* values;
  int value_count;
  // A count of updates n: the decay is then at most (1 + n) / (10 + n), so that averages move fast
  // at first. Default: none.
  weir_edge_t num_updates;
  // Averages of what is no variable are divided by 1 - decay ^ updates, which undoes their start at
  // zero.
  bool zero_debias;
  const char* name;  // default: "ExponentialMovingAverage"
} weir_moving_average_options_t;

// Arrays live as long as the root scope.
typedef struct weir_moving_average_t {
  int count;
  const weir_edge_t* values;              // what is averaged
  const weir_variable_info_t* averages;   // the variables that hold the averages
  const weir_variable_info_t* variables;  // of |values|; handle without a node: no variable
  weir_node_t* update;                    // average -= (1 - decay) * (average - value), each run
} weir_moving_average_t;

// |decay| is a number or an edge. Variables are read on |scope|: after its control inputs.
WEIR_API weir_moving_average_t weir_moving_average_with(
    weir_scope_t* scope, weir_rate_t decay, const weir_moving_average_options_t* options);
#define weir_moving_average(scope, decay, ...)      \
  weir_moving_average_with(scope, WEIR_RATE(decay), \
                           &(const weir_moving_average_options_t){0, __VA_ARGS__})

// The average of |value|; an edge without a node when it is not averaged.
WEIR_API weir_edge_t weir_moving_average_of(const weir_moving_average_t* average,
                                            weir_edge_t value);
// A node that exchanges every averaged variable with its average. Run twice, all is as before.
WEIR_API weir_node_t* weir_moving_average_swap(weir_scope_t* scope,
                                               const weir_moving_average_t* average);
// A node that restores averages from the checkpoint |prefix| (a string scalar) into the variables
// themselves: "w" from "w/ExponentialMovingAverage".
WEIR_API weir_node_t* weir_moving_average_restore(weir_scope_t* scope,
                                                  const weir_moving_average_t* average,
                                                  weir_edge_t prefix);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_MOVING_AVERAGE_H_
