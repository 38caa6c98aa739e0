// initializer.h — What variables start with: small descriptions, passed by value to layers.
//
//   weir_layer_dense(s, x, 512, .kernel_init = weir_init_he_normal(1));
//
// The numbers are those of tf.compat.v1.initializers for the same seed. A seed of 0 takes one from
// the machine, so that every run starts differently. Threading: values, no state.
#ifndef WEIR_INITIALIZER_H_
#define WEIR_INITIALIZER_H_

#include "weir/attrs.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_init_kind_t {
  WEIR_INIT_DEFAULT = 0,  // what the layer uses by itself
  WEIR_INIT_CONSTANT,
  WEIR_INIT_UNIFORM,
  WEIR_INIT_NORMAL,
  WEIR_INIT_TRUNCATED_NORMAL,
  WEIR_INIT_VARIANCE_SCALING,
  WEIR_INIT_IDENTITY,
  WEIR_INIT_VALUE,
  WEIR_INIT_ORTHOGONAL,
} weir_init_kind_t;

// By what variance scaling divides.
typedef enum weir_fan_t { WEIR_FAN_IN = 0, WEIR_FAN_OUT, WEIR_FAN_AVERAGE } weir_fan_t;

typedef enum weir_distribution_t {
  WEIR_DISTRIBUTION_TRUNCATED_NORMAL = 0,
  WEIR_DISTRIBUTION_NORMAL,
  WEIR_DISTRIBUTION_UNIFORM,
} weir_distribution_t;

// Zero is WEIR_INIT_DEFAULT. Made by the functions below.
typedef struct weir_init_t {
  weir_init_kind_t kind;
  double first;   // the constant, the least value, the mean, the scale or the gain
  double second;  // the upper bound or the deviation
  weir_fan_t fan;
  weir_distribution_t distribution;
  int64_t seed;        // of the op; 0: none
  int64_t graph_seed;  // 0: TensorFlow's own when |seed| is given
  weir_edge_t value;   // WEIR_INIT_VALUE
} weir_init_t;

WEIR_API weir_init_t weir_init_zeros(void);
WEIR_API weir_init_t weir_init_ones(void);
WEIR_API weir_init_t weir_init_constant(double value);
WEIR_API weir_init_t weir_init_uniform(double low, double high, int64_t seed);
WEIR_API weir_init_t weir_init_normal(double mean, double deviation, int64_t seed);
// Numbers further than two deviations from the mean are drawn again.
WEIR_API weir_init_t weir_init_truncated_normal(double mean, double deviation, int64_t seed);
// Variance |scale| / fan, where fan counts a weight's inputs, outputs, or the mean of both.
WEIR_API weir_init_t weir_init_variance_scaling(double scale, weir_fan_t fan,
                                                weir_distribution_t distribution, int64_t seed);
WEIR_API weir_init_t weir_init_glorot_uniform(int64_t seed);  // also known as Xavier
WEIR_API weir_init_t weir_init_glorot_normal(int64_t seed);
WEIR_API weir_init_t weir_init_he_uniform(int64_t seed);
WEIR_API weir_init_t weir_init_he_normal(int64_t seed);
WEIR_API weir_init_t weir_init_lecun_uniform(int64_t seed);
WEIR_API weir_init_t weir_init_lecun_normal(int64_t seed);
WEIR_API weir_init_t weir_init_identity(double gain);  // matrices only
// Columns, or rows where those are fewer, of length |gain| that stand at right angles to each
// other; of all dimensions but the last as one. Keeps gradients of recurrent cells from fading.
WEIR_API weir_init_t weir_init_orthogonal(double gain, int64_t seed);
// |value| itself, which must have the type and shape of the variable.
WEIR_API weir_init_t weir_init_value(weir_edge_t value);

// The initial value that |init| describes, for weir_variable. INVALID_ARGUMENT sticks for a shape
// that is not fully known or does not suit |init|. WEIR_INIT_DEFAULT is Glorot's uniform.
WEIR_API weir_edge_t weir_init_edge(weir_scope_t* scope, weir_init_t init, weir_dtype_t dtype,
                                    weir_dims_t shape);
// A float variable of |shape| that starts as |init| says; returns its value, as weir_variable does.
WEIR_API weir_edge_t weir_weight(weir_scope_t* scope, const char* name, weir_init_t init,
                                 weir_dims_t shape);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_INITIALIZER_H_
