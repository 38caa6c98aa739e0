// normalize.c — Batch normalisation with moving averages, and layer normalisation.
#include "nodes.h"
#include "weights.h"
#include "weir/layer.h"

typedef weir_layer_batch_norm_options_t options_t;

// A batch normalisation while it is built.
typedef struct norm_t {
  weir_scope_t* scope;
  const options_t* options;
  weir_edge_t x;
  weir_dtype_t dtype;  // of the variables: float for halves
  float epsilon;
  weir_edge_t gamma, beta;                   // constants where there is no variable
  weir_edge_t moving_mean, moving_variance;  // values of the variables
} norm_t;

static weir_edge_t parameter(const norm_t* n, const char* name, bool is_left_out, weir_init_t init,
                             double start, int64_t size) {
  weir_init_t constant = weir_init_constant(start);
  if (is_left_out) return weir_init_edge(n->scope, constant, n->dtype, WEIR_SHAPE(size));
  return weir_lib_weight(n->scope, name, WEIR_LIB_NONE, init, constant, n->dtype, WEIR_SHAPE(size));
}

static weir_edge_t average(const norm_t* n, const char* name, weir_init_t init, double start,
                           int64_t size) {
  weir_init_t used = weir_lib_init(init, weir_init_constant(start));
  weir_edge_t initial = weir_init_edge(weir_scope_lift(n->scope), used, n->dtype, WEIR_SHAPE(size));
  return weir_state_variable(n->scope, name, initial);
}

// moving += (now - moving) * (1 - momentum), collected for the training step.
static void update_average(const norm_t* n, weir_edge_t moving, weir_edge_t now) {
  if (weir_scope_status(n->scope)) return;
  const weir_opt_float_t momentum = n->options->momentum;
  const double rate = momentum.is_set ? 1 - (double)momentum.value : 0.01;
  weir_edge_t step = weir_mul(n->scope, weir_sub(n->scope, moving, now),
                              weir_lib_number(n->scope, n->dtype, rate));
  weir_node_t* update = weir_assign_sub_variable_op(n->scope, weir_variable_handle(moving), step);
  weir_scope_collect(n->scope, WEIR_UPDATES, (weir_edge_t){update, 0});
}

static void update_averages(const norm_t* n, weir_edge_t mean, weir_edge_t variance) {
  update_average(n, n->moving_mean, mean);
  update_average(n, n->moving_variance, variance);
}

// ---- images: the fused op ----

static weir_fused_batch_norm_v3_result_t fused_training(const norm_t* n, weir_edge_t x,
                                                        weir_edge_t gamma, weir_edge_t beta) {
  weir_edge_t none = weir_const_floats(n->scope, WEIR_DIMS(0), NULL);
  return weir_fused_batch_norm_v3(n->scope, x, gamma, beta, none, none,
                                  .epsilon = WEIR_SET(n->epsilon));
}

static weir_edge_t fused_inference(const norm_t* n, weir_edge_t x, weir_edge_t gamma,
                                   weir_edge_t beta) {
  return weir_fused_batch_norm_v3(n->scope, x, gamma, beta, n->moving_mean, n->moving_variance,
                                  .epsilon = WEIR_SET(n->epsilon), .is_training = WEIR_SET(false))
      .y;
}

// Both, of which a step runs one. When it does not train, the averages move towards themselves.
static weir_edge_t fused_choice(const norm_t* n) {
  weir_scope_t* s = n->scope;
  weir_edge_t training = n->options->training;
  weir_switch_result_t x = weir_switch(s, n->x, training);
  weir_switch_result_t gamma = weir_switch(s, n->gamma, training);
  weir_switch_result_t beta = weir_switch(s, n->beta, training);
  weir_switch_result_t mean = weir_switch(s, n->moving_mean, training);
  weir_switch_result_t variance = weir_switch(s, n->moving_variance, training);
  weir_fused_batch_norm_v3_result_t now =
      fused_training(n, x.output_true, gamma.output_true, beta.output_true);
  weir_edge_t then = fused_inference(n, x.output_false, gamma.output_false, beta.output_false);
  update_averages(n, weir_lib_merge(s, mean.output_false, now.batch_mean),
                  weir_lib_merge(s, variance.output_false, now.batch_variance));
  return weir_lib_merge(s, then, now.y);
}

static weir_edge_t fused(const norm_t* n) {
  if (n->options->training.node) return fused_choice(n);
  if (!n->options->is_training) return fused_inference(n, n->x, n->gamma, n->beta);
  weir_fused_batch_norm_v3_result_t now = fused_training(n, n->x, n->gamma, n->beta);
  update_averages(n, now.batch_mean, now.batch_variance);
  return now.y;
}

// ---- anything else ----

typedef struct moments_t {
  weir_edge_t mean, variance;
} moments_t;

static moments_t moments(weir_scope_t* s, weir_edge_t x, weir_edge_t axes, bool keep_dims) {
  weir_edge_t mean = weir_mean(s, x, axes, .keep_dims = true);
  weir_edge_t square = weir_squared_difference(s, x, weir_stop_gradient(s, mean));
  weir_edge_t variance = weir_mean(s, square, axes, .keep_dims = keep_dims);
  return (moments_t){keep_dims ? mean : weir_mean(s, x, axes), variance};
}

// (x - mean) / sqrt(variance + epsilon) * gamma + beta, the products by channel taken first.
static weir_edge_t scale(weir_scope_t* s, weir_edge_t x, moments_t m, float epsilon,
                         weir_edge_t gamma, weir_edge_t beta) {
  if (weir_scope_status(s)) return WEIR_LIB_NONE;
  weir_edge_t shifted =
      weir_add_v2(s, m.variance, weir_lib_number(s, weir_edge_type(x), (double)epsilon));
  weir_edge_t factor = weir_mul(s, weir_rsqrt(s, shifted), gamma);
  weir_edge_t offset = weir_sub(s, beta, weir_mul(s, m.mean, factor));
  return weir_add_v2(s, weir_mul(s, x, factor), offset);
}

static weir_edge_t by_moments(const norm_t* n) {
  weir_scope_t* s = n->scope;
  const options_t* o = n->options;
  moments_t used = {n->moving_mean, n->moving_variance};
  weir_edge_t x = weir_lib_cast(s, n->x, n->dtype);
  if (o->training.node || o->is_training) {
    moments_t now = moments(s, x, weir_lib_axes(s, x, 1), false);
    if (o->training.node) {
      now.mean = weir_select_v2(s, o->training, now.mean, used.mean);
      now.variance = weir_select_v2(s, o->training, now.variance, used.variance);
    }
    update_averages(n, now.mean, now.variance);
    used = now;
  }
  weir_edge_t y = scale(s, x, used, n->epsilon, n->gamma, n->beta);
  return weir_lib_cast(s, y, weir_edge_type(n->x));
}

// ---- the layers ----

static weir_dtype_t parameter_type(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_HALF || dtype == WEIR_DTYPE_BFLOAT16 ? WEIR_DTYPE_FLOAT : dtype;
}

// The last dimension; -1 and an error when it is not known or the input no batch.
static int64_t read_size(weir_scope_t* scope, const char* what, weir_edge_t x) {
  const int64_t size = weir_lib_dim(x, -1);
  if (weir_lib_rank(x) >= 2 && size > 0) return size;
  weir_lib_fail(scope,
                "%s layer on '%s': needs an input of rank 2 or more whose last dimension is known, "
                "got rank %d and size %lld",
                what, weir_node_name(x.node), weir_lib_rank(x), (long long)size);
  return -1;
}

static float read_epsilon(weir_opt_float_t epsilon) {
  return epsilon.is_set ? epsilon.value : 1e-3f;
}

weir_edge_t weir_layer_batch_norm_with(weir_scope_t* scope, weir_edge_t x,
                                       const weir_layer_batch_norm_options_t* options) {
  options = options ? options : &(const weir_layer_batch_norm_options_t){0};
  const char* what = "batch_normalization";
  if (!weir_lib_ready(scope, what, x)) return WEIR_LIB_NONE;
  const int64_t size = read_size(scope, what, x);
  if (size < 0) return WEIR_LIB_NONE;
  norm_t n = {.scope = weir_scope_in(scope, options->name ? options->name : what),
              .options = options,
              .x = x,
              .dtype = parameter_type(weir_edge_type(x)),
              .epsilon = read_epsilon(options->epsilon)};
  n.gamma = parameter(&n, "gamma", options->no_scale, options->gamma_init, 1, size);
  n.beta = parameter(&n, "beta", options->no_center, options->beta_init, 0, size);
  n.moving_mean = average(&n, "moving_mean", options->moving_mean_init, 0, size);
  n.moving_variance = average(&n, "moving_variance", options->moving_variance_init, 1, size);
  if (weir_scope_status(scope)) return WEIR_LIB_NONE;
  // The fused op computes in float.
  const bool is_fused = weir_lib_rank(x) == 4 && n.dtype == WEIR_DTYPE_FLOAT;
  return is_fused ? fused(&n) : by_moments(&n);
}

weir_edge_t weir_layer_norm_with(weir_scope_t* scope, weir_edge_t x,
                                 const weir_layer_norm_options_t* options) {
  options = options ? options : &(const weir_layer_norm_options_t){0};
  const char* what = "layer_normalization";
  if (!weir_lib_ready(scope, what, x)) return WEIR_LIB_NONE;
  const int64_t size = read_size(scope, what, x);
  if (size < 0) return WEIR_LIB_NONE;
  weir_scope_t* s = weir_scope_in(scope, options->name ? options->name : what);
  norm_t n = {.scope = s, .dtype = parameter_type(weir_edge_type(x))};
  weir_edge_t gamma = parameter(&n, "gamma", options->no_scale, options->gamma_init, 1, size);
  weir_edge_t beta = parameter(&n, "beta", options->no_center, options->beta_init, 0, size);
  weir_edge_t wide = weir_lib_cast(s, x, n.dtype);
  moments_t m = moments(s, wide, weir_lib_vector(s, -1), true);
  weir_edge_t y = scale(s, wide, m, read_epsilon(options->epsilon), gamma, beta);
  return weir_lib_cast(s, y, weir_edge_type(x));
}
