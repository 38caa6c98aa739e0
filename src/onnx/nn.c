// nn.c — Activations, normalizations and losses of ONNX.
#include "onnx/import.h"

// ---- activations: formulas of x ----

static weir_edge_t choose(onnx_call_t* call, weir_edge_t cond, weir_edge_t a, weir_edge_t b) {
  return ADD(call, "SelectV2", cond, a, b);
}
static weir_edge_t times(onnx_call_t* call, weir_edge_t x, double factor) {
  return ADD(call, "Mul", x, onnx_like(call, x, factor));
}
static weir_edge_t plus(onnx_call_t* call, weir_edge_t x, double term) {
  return ADD(call, "AddV2", x, onnx_like(call, x, term));
}
static double number(onnx_call_t* call, const char* name, float otherwise) {
  return (double)onnx_attr_float(call, name, otherwise);
}

static void relu(onnx_call_t* call) { onnx_out(call, 0, ADD(call, "Relu", onnx_in(call, 0))); }
static void unary(onnx_call_t* call) {
  onnx_out(call, 0, ADD(call, call->row->with, onnx_in(call, 0)));
}

static void leaky_relu(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), zero = onnx_like(call, x, 0);
  weir_edge_t low = times(call, x, number(call, "alpha", 0.01f));
  onnx_out(call, 0, choose(call, ADD(call, "Less", x, zero), low, x));
}

static void p_relu(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), zero = onnx_like(call, x, 0);
  weir_edge_t low = ADD(call, "Mul", x, onnx_in(call, 1));
  onnx_out(call, 0, choose(call, ADD(call, "Less", x, zero), low, x));
}

// |scale| * (alpha * (exp(x) - 1)) below zero.
static void exponential(onnx_call_t* call, double alpha, double scale) {
  weir_edge_t x = onnx_in(call, 0), zero = onnx_like(call, x, 0);
  weir_edge_t low = times(call, ADD(call, "Expm1", x), alpha);
  weir_edge_t y = choose(call, ADD(call, "Less", x, zero), low, x);
  onnx_out(call, 0, scale == 1 ? y : times(call, y, scale));
}
static void elu(onnx_call_t* call) { exponential(call, number(call, "alpha", 1), 1); }
static void selu(onnx_call_t* call) {
  exponential(call, number(call, "alpha", 1.67326319217681884765625f),
              number(call, "gamma", 1.05070102214813232421875f));
}
static void celu(onnx_call_t* call) {
  double alpha = number(call, "alpha", 1);
  weir_edge_t x = onnx_in(call, 0), zero = onnx_like(call, x, 0);
  weir_edge_t low = times(call, ADD(call, "Expm1", times(call, x, 1 / alpha)), alpha);
  onnx_out(call, 0, choose(call, ADD(call, "Less", x, zero), low, x));
}

static void thresholded_relu(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  weir_edge_t above = ADD(call, "Greater", x, onnx_like(call, x, number(call, "alpha", 1)));
  onnx_out(call, 0, choose(call, above, x, onnx_like(call, x, 0)));
}

static weir_edge_t hard_sigmoid_of(onnx_call_t* call, weir_edge_t x, double alpha, double beta) {
  weir_edge_t line = plus(call, times(call, x, alpha), beta);
  line = ADD(call, "Maximum", line, onnx_like(call, x, 0));
  return ADD(call, "Minimum", line, onnx_like(call, x, 1));
}
static void hard_sigmoid(onnx_call_t* call) {
  onnx_out(call, 0,
           hard_sigmoid_of(call, onnx_in(call, 0), number(call, "alpha", 0.2f),
                           number(call, "beta", 0.5f)));
}
static void hard_swish(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  onnx_out(call, 0, ADD(call, "Mul", x, hard_sigmoid_of(call, x, 1.0 / 6, 0.5)));
}

static void mish(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  onnx_out(call, 0, ADD(call, "Mul", x, ADD(call, "Tanh", ADD(call, "Softplus", x))));
}
static void swish(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  weir_edge_t gate = ADD(call, "Sigmoid", times(call, x, number(call, "alpha", 1)));
  onnx_out(call, 0, ADD(call, "Mul", x, gate));
}

static void gelu(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), inner;
  if (weir_view_is(onnx_attr_string(call, "approximate", "none"), "tanh")) {
    weir_edge_t cube = ADD(call, "Mul", x, ADD(call, "Mul", x, x));
    inner = ADD(call, "AddV2", x, times(call, cube, 0.044715));
    inner = ADD(call, "Tanh", times(call, inner, 0.7978845608028654));  // the root of 2 / pi
  } else {
    inner = ADD(call, "Erf", times(call, x, 0.7071067811865476));  // the root of 1 / 2
  }
  onnx_out(call, 0, ADD(call, "Mul", times(call, x, 0.5), plus(call, inner, 1)));
}

static void shrink(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), zero = onnx_like(call, x, 0);
  double lambda = number(call, "lambd", 0.5f), bias = number(call, "bias", 0);
  weir_edge_t below = ADD(call, "Less", x, onnx_like(call, x, -lambda));
  weir_edge_t above = ADD(call, "Greater", x, onnx_like(call, x, lambda));
  weir_edge_t high = choose(call, above, plus(call, x, -bias), zero);
  onnx_out(call, 0, choose(call, below, plus(call, x, bias), high));
}

// ---- softmax and its kin ----

// Up to opset 12 all axes from the given one on are one; since, it is that axis alone.
static weir_edge_t along_axis(onnx_call_t* call,
                              weir_edge_t (*fn)(onnx_call_t* call, weir_edge_t x)) {
  weir_edge_t x = onnx_in(call, 0);
  int rank = onnx_need_rank(call, x);
  int64_t axis = onnx_attr_int(call, "axis", call->version < 13 ? 1 : -1);
  if (axis < 0) axis += rank;
  if (onnx_failed(call) || axis < 0 || axis > rank || (axis == rank && call->version >= 13)) {
    onnx_fail(call, "has axis %lld of a value of rank %d", (long long)axis, rank);
    return x;
  }
  if (call->version < 13) {
    weir_edge_t shape = onnx_shape(call, x);
    weir_edge_t rows =
        onnx_reduce(call, "Prod", onnx_part(call, shape, 0, axis), INTS(call, 0), true);
    weir_edge_t flat = onnx_reshape(call, x, JOIN(call, rows, INTS(call, -1)));
    return onnx_reshape(call, fn(call, flat), shape);
  }
  if (axis == rank - 1) return fn(call, x);
  int64_t perm[WEIR_MAX_RANK];
  for (int i = 0; i < rank; ++i) perm[i] = i;
  perm[axis] = rank - 1;
  perm[rank - 1] = axis;
  return onnx_transpose(call, fn(call, onnx_transpose(call, x, perm, rank)), perm, rank);
}

static weir_edge_t with_op(onnx_call_t* call, weir_edge_t x) {
  return ADD(call, call->row->with, x);
}
static void soft_max(onnx_call_t* call) { onnx_out(call, 0, along_axis(call, with_op)); }

static weir_edge_t hard_max_of(onnx_call_t* call, weir_edge_t x) {
  weir_edge_t best = ADD(call, "ArgMax", x, onnx_int(call, -1));
  weir_edge_t depth = onnx_part(call, onnx_shape(call, x), -1, INT64_MAX);
  depth = onnx_cast(call, onnx_squeeze(call, depth, 0), WEIR_DTYPE_INT32);
  return ADD(call, "OneHot", best, depth, onnx_like(call, x, 1), onnx_like(call, x, 0));
}
static void hard_max(onnx_call_t* call) { onnx_out(call, 0, along_axis(call, hard_max_of)); }

// ---- normalizations ----

// A vector of channels as it stands beside |x|, whose channels are dimension 1.
static weir_edge_t channels(onnx_call_t* call, weir_edge_t vector, int rank) {
  int64_t shape[WEIR_MAX_RANK];
  for (int i = 0; i < rank - 1; ++i) shape[i] = i == 0 ? -1 : 1;
  return rank < 2 ? vector : onnx_reshape(call, vector, onnx_ints(call, shape, rank - 1));
}

static weir_edge_t mean_of(onnx_call_t* call, weir_edge_t x, weir_edge_t axes) {
  return onnx_reduce(call, "Mean", x, axes, true);
}
static weir_edge_t variance_of(onnx_call_t* call, weir_edge_t x, weir_edge_t mean,
                               weir_edge_t axes) {
  weir_edge_t off = ADD(call, "Sub", x, mean);
  return onnx_reduce(call, "Mean", ADD(call, "Mul", off, off), axes, true);
}
// (x - mean) / sqrt(variance + epsilon)
static weir_edge_t standard(onnx_call_t* call, weir_edge_t x, weir_edge_t mean,
                            weir_edge_t variance, double epsilon) {
  weir_edge_t scale = ADD(call, "Rsqrt", plus(call, variance, epsilon));
  return ADD(call, "Mul", ADD(call, "Sub", x, mean), scale);
}

// The numbers [begin, end) of axes.
static weir_edge_t axes_from(onnx_call_t* call, int begin, int end) {
  int64_t axes[WEIR_MAX_RANK];
  for (int i = begin; i < end; ++i) axes[i - begin] = i;
  return onnx_ints(call, axes, WEIR_MAX(end - begin, 0));
}

static weir_edge_t blend(onnx_call_t* call, weir_edge_t old, weir_edge_t new, double momentum) {
  return ADD(call, "AddV2", times(call, old, momentum), times(call, new, 1 - momentum));
}

static void batch_normalization(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), mean = onnx_in(call, 3), variance = onnx_in(call, 4);
  weir_dtype_t dtype = onnx_dtype_of(x);
  int rank = onnx_need_rank(call, x);
  weir_edge_t m = channels(call, mean, rank), v = channels(call, variance, rank);
  if (onnx_attr_int(call, "training_mode", 0)) {
    weir_edge_t axes = JOIN(call, INTS(call, 0), axes_from(call, 2, rank));
    double momentum = number(call, "momentum", 0.9f);
    weir_edge_t flat = INTS(call, -1);
    m = mean_of(call, x, axes);
    v = variance_of(call, x, m, axes);
    onnx_out(call, 1, blend(call, mean, onnx_reshape(call, m, flat), momentum));
    onnx_out(call, 2, blend(call, variance, onnx_reshape(call, v, flat), momentum));
  }
  weir_edge_t y = standard(call, x, onnx_cast(call, m, dtype), onnx_cast(call, v, dtype),
                           number(call, "epsilon", 1e-5f));
  y = ADD(call, "Mul", y, onnx_cast(call, channels(call, onnx_in(call, 1), rank), dtype));
  onnx_out(call, 0,
           ADD(call, "AddV2", y, onnx_cast(call, channels(call, onnx_in(call, 2), rank), dtype)));
}

static void instance_normalization(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  int rank = onnx_need_rank(call, x);
  weir_edge_t axes = axes_from(call, 2, rank), mean = mean_of(call, x, axes);
  weir_edge_t y =
      standard(call, x, mean, variance_of(call, x, mean, axes), number(call, "epsilon", 1e-5f));
  y = ADD(call, "Mul", y, channels(call, onnx_in(call, 1), rank));
  onnx_out(call, 0, ADD(call, "AddV2", y, channels(call, onnx_in(call, 2), rank)));
}

static void group_normalization(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), scale = onnx_in(call, 1), bias = onnx_in(call, 2);
  int rank = onnx_need_rank(call, x);
  int64_t groups = onnx_attr_int(call, "num_groups", 1);
  weir_edge_t shape = onnx_shape(call, x);
  weir_edge_t batch = onnx_part(call, shape, 0, 1);
  weir_edge_t grouped = onnx_reshape(call, x, JOIN(call, batch, INTS(call, groups, -1)));
  weir_edge_t axes = INTS(call, 2), mean = mean_of(call, grouped, axes);
  weir_edge_t y = standard(call, grouped, mean, variance_of(call, grouped, mean, axes),
                           number(call, "epsilon", 1e-5f));
  if (call->version < 21) {  // a number for each group; since, for each channel
    y = ADD(call, "Mul", y, onnx_expand(call, scale, -1));
    y = ADD(call, "AddV2", y, onnx_expand(call, bias, -1));
    onnx_out(call, 0, onnx_reshape(call, y, shape));
    return;
  }
  y = ADD(call, "Mul", onnx_reshape(call, y, shape), channels(call, scale, rank));
  onnx_out(call, 0, ADD(call, "AddV2", y, channels(call, bias, rank)));
}

// Both compute in float and give results of the input's type.
static void layer_normalization(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  weir_dtype_t dtype = onnx_dtype_of(x);
  bool is_double = dtype == WEIR_DTYPE_DOUBLE;
  int rank = onnx_need_rank(call, x);
  int64_t axis = onnx_attr_int(call, "axis", -1);
  weir_edge_t axes = axes_from(call, (int)(axis < 0 ? axis + rank : axis), rank);
  weir_edge_t wide = onnx_cast(call, x, is_double ? dtype : WEIR_DTYPE_FLOAT);
  weir_edge_t mean = mean_of(call, wide, axes);
  weir_edge_t variance = variance_of(call, wide, mean, axes);
  weir_edge_t scale = ADD(call, "Rsqrt", plus(call, variance, number(call, "epsilon", 1e-5f)));
  weir_edge_t y = ADD(call, "Mul", ADD(call, "Sub", wide, mean), scale);
  y = ADD(call, "Mul", onnx_cast(call, y, dtype), onnx_in(call, 1));
  if (onnx_has_in(call, 2)) y = ADD(call, "AddV2", y, onnx_in(call, 2));
  onnx_out(call, 0, y);
  onnx_out(call, 1, mean);
  onnx_out(call, 2, scale);
}
static void rms_normalization(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  weir_dtype_t dtype = onnx_dtype_of(x);
  int rank = onnx_need_rank(call, x);
  int64_t axis = onnx_attr_int(call, "axis", -1);
  weir_edge_t axes = axes_from(call, (int)(axis < 0 ? axis + rank : axis), rank);
  weir_edge_t wide = onnx_cast(call, x, dtype == WEIR_DTYPE_DOUBLE ? dtype : WEIR_DTYPE_FLOAT);
  weir_edge_t square = mean_of(call, ADD(call, "Mul", wide, wide), axes);
  weir_edge_t scale = ADD(call, "Rsqrt", plus(call, square, number(call, "epsilon", 1e-5f)));
  weir_edge_t y = onnx_cast(call, ADD(call, "Mul", wide, scale), dtype);
  onnx_out(call, 0, ADD(call, "Mul", y, onnx_in(call, 1)));
}

static void mean_variance_normalization(onnx_call_t* call) {
  static const int64_t kAxes[] = {0, 2, 3};
  weir_edge_t x = onnx_in(call, 0);
  int count = 0;
  const int64_t* given = onnx_attr_ints(call, "axes", &count);
  weir_edge_t axes = given ? onnx_ints(call, given, count) : onnx_ints(call, kAxes, 3);
  weir_edge_t mean = mean_of(call, x, axes);
  weir_edge_t deviation = ADD(call, "Sqrt", variance_of(call, x, mean, axes));
  onnx_out(call, 0, ADD(call, "RealDiv", ADD(call, "Sub", x, mean), plus(call, deviation, 1e-9)));
}

static void lp_normalization(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), axis = INTS(call, onnx_attr_int(call, "axis", -1));
  bool is_1 = onnx_attr_int(call, "p", 2) == 1;
  weir_edge_t norm = is_1 ? ADD(call, "Abs", x) : ADD(call, "Mul", x, x);
  norm = onnx_reduce(call, "Sum", norm, axis, true);
  if (!is_1) norm = ADD(call, "Sqrt", norm);
  onnx_out(call, 0, ADD(call, "DivNoNan", x, norm));
}

// Ours sums over the last dimension, ONNX's over dimension 1.
static void lrn(onnx_call_t* call) {
  static const int64_t kLast[] = {0, 2, 3, 1}, kFirst[] = {0, 3, 1, 2};
  weir_edge_t x = onnx_in(call, 0);
  int64_t size = onnx_attr_int(call, "size", 1);
  if (onnx_need_rank(call, x) != 4 || size % 2 == 0) {
    // A window that is not symmetric: squares, padded, summed by a pool of their own.
    if (onnx_rank(x) != 4) onnx_refuse(call, "of a value of rank %d", onnx_rank(x));
    else onnx_refuse(call, "with the even size %lld", (long long)size);
    return;
  }
  double alpha = number(call, "alpha", 1e-4f) / (double)size;
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_int("depth_radius", size / 2),
                                  weir_attr_float("bias", onnx_attr_float(call, "bias", 1)),
                                  weir_attr_float("alpha", (float)alpha),
                                  weir_attr_float("beta", onnx_attr_float(call, "beta", 0.75f)));
  weir_edge_t y = ADD_WITH(call, "LRN", attrs, onnx_transpose(call, x, kLast, 4));
  onnx_out(call, 0, onnx_transpose(call, y, kFirst, 4));
}

// ---- dropout and losses ----

// Nothing is dropped unless a model trains, which imported ones do not.
static void dropout(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0);
  const weir_tensor_t* mode = onnx_constant(onnx_in(call, 2));
  const weir_tensor_t* ratio = onnx_constant(onnx_in(call, 1));
  bool trains = onnx_has_in(call, 2) && !(mode && mode->count == 1 && !*(const bool*)mode->data);
  bool drops_none = ratio && ratio->count == 1 && ratio->dtype == WEIR_DTYPE_FLOAT &&
                    *(const float*)ratio->data == 0;
  if (trains && !drops_none) {
    onnx_refuse(call, "in training");
    return;
  }
  onnx_out(call, 0, ADD(call, "Identity", x));
  onnx_out(call, 1,
           ADD(call, "OnesLike",
               ADD_WITH(call, "Cast", WEIR_ATTRS(weir_attr_type("DstT", WEIR_DTYPE_BOOL)), x)));
}

// The losses of all targets, |logs| having the classes in dimension 1: what the reduction makes of
// them.
static weir_edge_t loss_of(onnx_call_t* call, weir_edge_t logs, weir_edge_t target,
                           weir_edge_t weight) {
  int rank = onnx_need_rank(call, logs);
  weir_view_t reduction = onnx_attr_string(call, "reduction", "mean");
  const onnx_attr_t* ignored = onnx_attr(call, "ignore_index");
  weir_dtype_t dtype = onnx_dtype_of(logs);
  int64_t perm[WEIR_MAX_RANK] = {0};
  for (int i = 1; i < rank; ++i) perm[i] = i + 1 < rank ? i + 1 : 1;
  weir_edge_t used = WEIR_NO_EDGE;
  if (ignored) {
    used = ADD(call, "NotEqual", target, onnx_like(call, target, (double)ignored->i));
    target = choose(call, used, target, onnx_like(call, target, 0));
    used = onnx_cast(call, used, dtype);
  }
  weir_edge_t last = onnx_transpose(call, logs, perm, rank);
  weir_edge_t picked = ADD_WITH(call, "GatherV2", WEIR_ATTRS(weir_attr_int("batch_dims", rank - 1)),
                                last, onnx_expand(call, target, -1), onnx_int(call, rank - 1));
  weir_edge_t loss = ADD(call, "Neg", onnx_squeeze(call, picked, -1));
  weir_edge_t weights = ADD(call, "OnesLike", loss);
  if (weight.node) weights = ADD(call, "GatherV2", weight, target, onnx_int(call, 0));
  if (ignored) weights = ADD(call, "Mul", weights, used);
  loss = ADD(call, "Mul", loss, weights);
  if (weir_view_is(reduction, "none")) return loss;
  weir_edge_t axes = axes_from(call, 0, rank - 1);
  weir_edge_t sum = onnx_reduce(call, "Sum", loss, axes, false);
  if (weir_view_is(reduction, "sum")) return sum;
  return ADD(call, "RealDiv", sum, onnx_reduce(call, "Sum", weights, axes, false));
}
static void negative_log_likelihood(onnx_call_t* call) {
  onnx_out(call, 0, loss_of(call, onnx_in(call, 0), onnx_in(call, 1), onnx_in(call, 2)));
}
static void soft_max_cross_entropy(onnx_call_t* call) {
  weir_edge_t x = onnx_in(call, 0), axis = INTS(call, 1);
  weir_edge_t off = ADD(call, "Sub", x, onnx_reduce(call, "Max", x, axis, true));
  weir_edge_t sum = onnx_reduce(call, "Sum", ADD(call, "Exp", off), axis, true);
  weir_edge_t logs = ADD(call, "Sub", off, ADD(call, "Log", sum));
  onnx_out(call, 0, loss_of(call, logs, onnx_in(call, 1), onnx_in(call, 2)));
  onnx_out(call, 1, logs);
}

const onnx_row_t onnx_nn_rows[] = {
    ONNX_OP("BatchNormalization", 9, batch_normalization),
    ONNX_OP("Celu", 12, celu),
    ONNX_OP("Dropout", 7, dropout),
    ONNX_OP("Elu", 6, elu),
    ONNX_OP("Gelu", 20, gelu),
    ONNX_OP("GroupNormalization", 18, group_normalization),
    ONNX_OP("HardSigmoid", 6, hard_sigmoid),
    ONNX_OP("HardSwish", 14, hard_swish),
    ONNX_OP("Hardmax", 1, hard_max),
    ONNX_OP("InstanceNormalization", 6, instance_normalization),
    ONNX_OP("LRN", 1, lrn),
    ONNX_OP("LayerNormalization", 17, layer_normalization),
    ONNX_OP("LeakyRelu", 6, leaky_relu),
    ONNX_OP_WITH("LogSoftmax", 1, soft_max, "LogSoftmax"),
    ONNX_OP("LpNormalization", 1, lp_normalization),
    ONNX_OP("MeanVarianceNormalization", 9, mean_variance_normalization),
    ONNX_OP("Mish", 18, mish),
    ONNX_OP("NegativeLogLikelihoodLoss", 12, negative_log_likelihood),
    ONNX_OP("PRelu", 7, p_relu),
    ONNX_OP("RMSNormalization", 23, rms_normalization),
    ONNX_OP("Relu", 6, relu),
    ONNX_OP("Selu", 6, selu),
    ONNX_OP("Shrink", 9, shrink),
    ONNX_OP_WITH("Softmax", 1, soft_max, "Softmax"),
    ONNX_OP("SoftmaxCrossEntropyLoss", 12, soft_max_cross_entropy),
    ONNX_OP_WITH("Softplus", 1, unary, "Softplus"),
    ONNX_OP_WITH("Softsign", 1, unary, "Softsign"),
    ONNX_OP("Swish", 24, swish),
    ONNX_OP("ThresholdedRelu", 10, thresholded_relu),
    {.op = NULL}};
