// layer.h — Layers: functions that add variables and nodes to a scope and return their output.
//
//   x = weir_layer_conv2d(s, images, 32, 5, .activation = weir_op_relu);
//   x = weir_layer_flatten(s, weir_layer_max_pool2d(s, x, 2));
//   weir_edge_t logits = weir_layer_dense(s, x, 10);
//
// Options are designated initialisers; what is left out has its default, which is zero unless said.
// Every layer works in a scope of its own, called after |name| or its kind ("dense", "dense_1"),
// and names its variables as tf.compat.v1.layers and Keras do ("dense/kernel"), so that checkpoints
// can be exchanged. Images are NHWC. Variables have the type of the input. Errors stick in the
// scope. Threading: as the scope's.
#ifndef WEIR_LAYER_H_
#define WEIR_LAYER_H_

#include "weir/attrs.h"
#include "weir/initializer.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- what layers share ----

// Any function of a scope and an edge: weir_op_relu, weir_op_tanh, weir_op_softmax, weir_gelu …
typedef weir_edge_t (*weir_activation_fn_t)(weir_scope_t* scope, weir_edge_t x);
WEIR_API weir_edge_t weir_gelu(weir_scope_t* scope, weir_edge_t x);  // x times the normal CDF of x
WEIR_API weir_edge_t weir_silu(weir_scope_t* scope, weir_edge_t x);  // x * sigmoid(x)

// ---- dense ----

typedef struct weir_layer_dense_options_t {
  int reserved;
  const char* name;                 // default: "dense"
  weir_activation_fn_t activation;  // NULL: none
  bool no_bias;
  weir_init_t kernel_init;     // default: weir_init_glorot_uniform(0)
  weir_init_t bias_init;       // default: zeros
  float kernel_l1, kernel_l2;  // weights of |w| and w² under WEIR_LOSSES; 0: none
  weir_edge_t kernel, bias;    // shared weights instead of new variables
} weir_layer_dense_options_t;
// activation(x * kernel + bias) over the last dimension of |x|, whose size must be known.
WEIR_API weir_edge_t weir_layer_dense_with(weir_scope_t* scope, weir_edge_t x, int units,
                                           const weir_layer_dense_options_t* options);
#define weir_layer_dense(scope, x, units, ...) \
  weir_layer_dense_with(scope, x, units, &(const weir_layer_dense_options_t){0, __VA_ARGS__})

// [batch, …] → [batch, product of the rest].
WEIR_API weir_edge_t weir_layer_flatten(weir_scope_t* scope, weir_edge_t x);

// ---- convolutions ----

// Sizes by dimension: {a} holds for all dimensions, {a, b} for each its own; all zero: 1.
typedef struct weir_layer_conv_options_t {
  int reserved;
  const char* name;     // default: "conv2d", "conv1d", "conv2d_transpose" …
  int kernel_sizes[3];  // instead of |kernel_size|, when the kernel is not square
  int strides[3];
  int dilations[3];
  const char* padding;              // "VALID" (default) or "SAME"
  weir_activation_fn_t activation;  // NULL: none
  bool no_bias;
  int depth_multiplier;        // depthwise and separable: filters a channel; 0: 1
  weir_init_t kernel_init;     // default: weir_init_glorot_uniform(0); separable: of both kernels
  weir_init_t bias_init;       // default: zeros
  float kernel_l1, kernel_l2;  // weights of |w| and w² under WEIR_LOSSES; 0: none
  weir_edge_t kernel, bias;    // shared weights instead of new variables
  weir_edge_t pointwise;       // separable: the same for the second kernel
} weir_layer_conv_options_t;
#define WEIR_LAYER_CONV_OPTIONS_(...) (&(const weir_layer_conv_options_t){0, __VA_ARGS__})

// The number of channels (the last dimension of |x|) must be known.
WEIR_API weir_edge_t weir_layer_conv1d_with(weir_scope_t* scope, weir_edge_t x, int filters,
                                            int kernel_size,
                                            const weir_layer_conv_options_t* options);
WEIR_API weir_edge_t weir_layer_conv2d_with(weir_scope_t* scope, weir_edge_t x, int filters,
                                            int kernel_size,
                                            const weir_layer_conv_options_t* options);
WEIR_API weir_edge_t weir_layer_conv3d_with(weir_scope_t* scope, weir_edge_t x, int filters,
                                            int kernel_size,
                                            const weir_layer_conv_options_t* options);
// The gradient of a convolution by its input: makes images larger. No dilation.
WEIR_API weir_edge_t weir_layer_conv2d_transpose_with(weir_scope_t* scope, weir_edge_t x,
                                                      int filters, int kernel_size,
                                                      const weir_layer_conv_options_t* options);
// Each channel by |depth_multiplier| filters of its own.
WEIR_API weir_edge_t weir_layer_depthwise_conv2d_with(weir_scope_t* scope, weir_edge_t x,
                                                      int kernel_size,
                                                      const weir_layer_conv_options_t* options);
// A depthwise convolution, then a mixture of its channels to |filters|.
WEIR_API weir_edge_t weir_layer_separable_conv2d_with(weir_scope_t* scope, weir_edge_t x,
                                                      int filters, int kernel_size,
                                                      const weir_layer_conv_options_t* options);
#define weir_layer_conv1d(scope, x, filters, kernel_size, ...) \
  weir_layer_conv1d_with(scope, x, filters, kernel_size, WEIR_LAYER_CONV_OPTIONS_(__VA_ARGS__))
#define weir_layer_conv2d(scope, x, filters, kernel_size, ...) \
  weir_layer_conv2d_with(scope, x, filters, kernel_size, WEIR_LAYER_CONV_OPTIONS_(__VA_ARGS__))
#define weir_layer_conv3d(scope, x, filters, kernel_size, ...) \
  weir_layer_conv3d_with(scope, x, filters, kernel_size, WEIR_LAYER_CONV_OPTIONS_(__VA_ARGS__))
#define weir_layer_conv2d_transpose(scope, x, filters, kernel_size, ...) \
  weir_layer_conv2d_transpose_with(scope, x, filters, kernel_size,       \
                                   WEIR_LAYER_CONV_OPTIONS_(__VA_ARGS__))
#define weir_layer_depthwise_conv2d(scope, x, kernel_size, ...) \
  weir_layer_depthwise_conv2d_with(scope, x, kernel_size, WEIR_LAYER_CONV_OPTIONS_(__VA_ARGS__))
#define weir_layer_separable_conv2d(scope, x, filters, kernel_size, ...) \
  weir_layer_separable_conv2d_with(scope, x, filters, kernel_size,       \
                                   WEIR_LAYER_CONV_OPTIONS_(__VA_ARGS__))

// ---- pooling ----

typedef struct weir_layer_pool_options_t {
  int reserved;
  int pool_sizes[2];    // instead of |pool_size|, when the window is not square
  int strides[2];       // default: the window's size
  const char* padding;  // "VALID" (default) or "SAME"
} weir_layer_pool_options_t;
#define WEIR_LAYER_POOL_OPTIONS_(...) (&(const weir_layer_pool_options_t){0, __VA_ARGS__})
WEIR_API weir_edge_t weir_layer_max_pool2d_with(weir_scope_t* scope, weir_edge_t x, int pool_size,
                                                const weir_layer_pool_options_t* options);
WEIR_API weir_edge_t weir_layer_average_pool2d_with(weir_scope_t* scope, weir_edge_t x,
                                                    int pool_size,
                                                    const weir_layer_pool_options_t* options);
WEIR_API weir_edge_t weir_layer_max_pool1d_with(weir_scope_t* scope, weir_edge_t x, int pool_size,
                                                const weir_layer_pool_options_t* options);
WEIR_API weir_edge_t weir_layer_average_pool1d_with(weir_scope_t* scope, weir_edge_t x,
                                                    int pool_size,
                                                    const weir_layer_pool_options_t* options);
#define weir_layer_max_pool2d(scope, x, pool_size, ...) \
  weir_layer_max_pool2d_with(scope, x, pool_size, WEIR_LAYER_POOL_OPTIONS_(__VA_ARGS__))
#define weir_layer_average_pool2d(scope, x, pool_size, ...) \
  weir_layer_average_pool2d_with(scope, x, pool_size, WEIR_LAYER_POOL_OPTIONS_(__VA_ARGS__))
#define weir_layer_max_pool1d(scope, x, pool_size, ...) \
  weir_layer_max_pool1d_with(scope, x, pool_size, WEIR_LAYER_POOL_OPTIONS_(__VA_ARGS__))
#define weir_layer_average_pool1d(scope, x, pool_size, ...) \
  weir_layer_average_pool1d_with(scope, x, pool_size, WEIR_LAYER_POOL_OPTIONS_(__VA_ARGS__))
// The mean (the largest) over all dimensions but the first and the last; the rank must be known.
WEIR_API weir_edge_t weir_layer_global_average_pool(weir_scope_t* scope, weir_edge_t x);
WEIR_API weir_edge_t weir_layer_global_max_pool(weir_scope_t* scope, weir_edge_t x);

// ---- normalisation ----

// Whether a step trains: |training|, a bool scalar, decides at every step; without it
// |is_training| holds for the graph.
typedef struct weir_layer_batch_norm_options_t {
  int reserved;
  const char* name;  // default: "batch_normalization"
  weir_edge_t training;
  bool is_training;
  weir_opt_float_t momentum;  // of the moving averages; default: 0.99
  weir_opt_float_t epsilon;   // default: 0.001
  bool no_scale, no_center;   // without gamma, without beta
  weir_init_t gamma_init, beta_init;
  weir_init_t moving_mean_init, moving_variance_init;
} weir_layer_batch_norm_options_t;
// Normalises over all dimensions but the last. Images (rank 4) go through FusedBatchNormV3. The
// updates of the moving averages are collected under WEIR_UPDATES: run them with each training
// step.
WEIR_API weir_edge_t weir_layer_batch_norm_with(weir_scope_t* scope, weir_edge_t x,
                                                const weir_layer_batch_norm_options_t* options);
#define weir_layer_batch_norm(scope, x, ...) \
  weir_layer_batch_norm_with(scope, x, &(const weir_layer_batch_norm_options_t){0, __VA_ARGS__})

typedef struct weir_layer_norm_options_t {
  int reserved;
  const char* name;          // default: "layer_normalization"
  weir_opt_float_t epsilon;  // default: 0.001
  bool no_scale, no_center;
  weir_init_t gamma_init, beta_init;
} weir_layer_norm_options_t;
// Normalises over the last dimension, whose size must be known.
WEIR_API weir_edge_t weir_layer_norm_with(weir_scope_t* scope, weir_edge_t x,
                                          const weir_layer_norm_options_t* options);
#define weir_layer_norm(scope, x, ...) \
  weir_layer_norm_with(scope, x, &(const weir_layer_norm_options_t){0, __VA_ARGS__})

typedef struct weir_layer_dropout_options_t {
  int reserved;
  weir_edge_t training;  // as in weir_layer_batch_norm_options_t
  bool is_training;
  int64_t seed;        // of the op; 0: from the machine
  int64_t graph_seed;  // 0: TensorFlow's own when |seed| is given
} weir_layer_dropout_options_t;
// In training, sets each element to 0 with probability |rate| in [0, 1) and scales up the rest.
WEIR_API weir_edge_t weir_layer_dropout_with(weir_scope_t* scope, weir_edge_t x, float rate,
                                             const weir_layer_dropout_options_t* options);
#define weir_layer_dropout(scope, x, rate, ...) \
  weir_layer_dropout_with(scope, x, rate, &(const weir_layer_dropout_options_t){0, __VA_ARGS__})

#ifdef __cplusplus
}
#endif
#endif  // WEIR_LAYER_H_
