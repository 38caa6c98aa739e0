// stateless_truncated.c — StatelessParameterizedTruncatedNormal: normal draws within bounds, whose
// parameters broadcast, by a seed.
#include <float.h>
#include <math.h>

#include "kernel/random/random_draw.h"
#include "op/cost.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"
#include "ops/random/generators.h"
#include "tensor/cast.h"

enum { FIRST = 2, PARAMETERS = 4 };  // inputs: means, stddevs, minvals, maxvals

// The shape that all parameters broadcast to.
typedef struct batch_t {
  int rank;
  int64_t dims[WEIR_MAX_RANK];
  int64_t count;
} batch_t;

static weir_status_t* not_compatible(weir_kernel_ctx_t* ctx) {
  char text[PARAMETERS][WEIR_SHAPE_TEXT_SIZE];
  for (int i = 0; i < PARAMETERS; ++i) {
    weir_tensor_shape_text(weir_kernel_input(ctx, FIRST + i), text[i]);
  }
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "means, stddevs, minvals, maxvals must have compatible batch dimensions: %s "
                     "vs. %s vs. %s vs. %s",
                     text[0], text[1], text[2], text[3]);
}

// Dimension |i| counted from the last one.
static int64_t dim_from_last(const weir_tensor_t* t, int i) {
  return i < t->rank ? t->dims[t->rank - 1 - i] : 1;
}

static weir_status_t* join_shapes(weir_kernel_ctx_t* ctx, batch_t* batch) {
  batch->rank = 0;
  batch->count = 1;
  for (int p = 0; p < PARAMETERS; ++p) {
    batch->rank = WEIR_MAX(batch->rank, weir_kernel_input(ctx, FIRST + p)->rank);
  }
  for (int i = 0; i < batch->rank; ++i) {
    int64_t dim = 1;
    for (int p = 0; p < PARAMETERS; ++p) {
      const int64_t own = dim_from_last(weir_kernel_input(ctx, FIRST + p), i);
      if (own != 1 && dim != 1 && own != dim) return not_compatible(ctx);
      if (own != 1) dim = own;
    }
    batch->dims[batch->rank - 1 - i] = dim;
    if (dim > 0 && batch->count > INT64_MAX / dim) return not_compatible(ctx);
    batch->count *= dim;
  }
  return NULL;
}

static double parameter_at(weir_kernel_ctx_t* ctx, const batch_t* batch, int p, int64_t index) {
  const weir_tensor_t* t = weir_kernel_input(ctx, FIRST + p);
  int64_t place = 0, stride = 1;
  for (int i = 0; i < batch->rank; ++i) {
    const int64_t dim = batch->dims[batch->rank - 1 - i], own = dim_from_last(t, i);
    if (own != 1) place += index % dim * stride;
    index /= dim;
    stride *= own;
  }
  double value = 0;
  const size_t size = weir_dtype_size(weir_tensor_type(t));
  weir_element_to_double(weir_tensor_type(t), (const char*)t->data + (size_t)place * size, &value);
  return value;
}

// Parameters share one generator, one after the other, as in TensorFlow on one thread.
static weir_status_t* fill(weir_kernel_ctx_t* ctx, const batch_t* batch, weir_philox_t philox,
                           weir_tensor_t* row, weir_tensor_t* out) {
  const size_t size = weir_dtype_size(weir_tensor_type(out));
  for (int64_t i = 0; i < batch->count; ++i) {
    const weir_truncated_t p = {.mean = parameter_at(ctx, batch, 0, i),
                                .deviation = parameter_at(ctx, batch, 1, i),
                                .low = parameter_at(ctx, batch, 2, i),
                                .high = parameter_at(ctx, batch, 3, i)};
    if (!(p.deviation > 0 && p.low < p.high && (isfinite(p.low) || isfinite(p.high)))) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Invalid parameters");
    }
    WEIR_TRY(weir_random_truncated(&philox, weir_tensor_type(out), &p, row->data, 0, row->count));
    for (int64_t j = 0; j < row->count; ++j) {
      memcpy((char*)out->data + (size_t)(j * batch->count + i) * size,
             (const char*)row->data + (size_t)j * size, size);
    }
  }
  return NULL;
}

static weir_status_t* make_output(weir_kernel_ctx_t* ctx, const batch_t* batch,
                                  weir_tensor_t** out) {
  const weir_tensor_t* shape = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  if (shape->rank != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Input shape should be a vector, got shape: %s",
                       weir_tensor_shape_text(shape, text));
  }
  WEIR_TRY(weir_kernel_ints(ctx, 0, dims, WEIR_MAX_RANK, &rank));
  const int first = rank - batch->rank;
  for (int i = 0; i < batch->rank; ++i) {
    if (first >= 0 && dims[first + i] == batch->dims[i]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape passed in must end with broadcasted shape.");
  }
  return weir_kernel_output(ctx, 0, rank, dims, out);
}

static weir_status_t* truncated_cpu(weir_kernel_ctx_t* ctx) {
  batch_t batch;
  weir_philox_t philox;
  weir_tensor_t *out = NULL, *row = NULL;
  WEIR_TRY(weir_philox_of_seed(ctx, 1, &philox));
  WEIR_TRY(join_shapes(ctx, &batch));
  WEIR_TRY(make_output(ctx, &batch, &out));
  if (out->count == 0) return NULL;
  WEIR_TRY(weir_kernel_scratch(ctx, weir_tensor_type(out), out->count / batch.count, &row));
  weir_status_t* status = fill(ctx, &batch, philox, row, out);
  weir_tensor_release(row);
  return status;
}

static weir_status_t* truncated_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *seed = NULL, *shape = NULL, *batch = weir_shape_input(ctx, FIRST);
  int64_t two = 2;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &seed));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(seed, 0), two, &two));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  for (int i = 1; i < PARAMETERS; ++i) {
    WEIR_TRY(weir_shape_broadcast(ctx, batch, weir_shape_input(ctx, FIRST + i), &batch));
  }
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  return weir_shape_set(ctx, 0, shape);
}

// ---- the gradient, by implicit differentiation: a draw keeps its rank when parameters move ----

static weir_edge_t two(weir_grad_ctx_t* g, const char* op, weir_edge_t a, weir_edge_t b) {
  return weir_grad_node(g, op, WEIR_EDGES(a, b));
}
static weir_edge_t one(weir_grad_ctx_t* g, const char* op, weir_edge_t a) {
  return weir_grad_node(g, op, WEIR_EDGES(a));
}

// The normal distribution function.
static weir_edge_t normal_cdf(weir_grad_ctx_t* g, weir_edge_t x) {
  weir_edge_t half_root = weir_grad_scalar(g, x, 0.5 * sqrt(2.0));
  weir_edge_t w = weir_grad_mul(g, x, half_root), z = one(g, "Abs", w);
  weir_edge_t tail = one(g, "Erfc", z);
  weir_edge_t near = two(g, "AddV2", weir_grad_scalar(g, x, 1), one(g, "Erf", w));
  weir_edge_t far =
      weir_grad_node(g, "SelectV2",
                     WEIR_EDGES(two(g, "Greater", w, weir_grad_scalar(g, x, 0)),
                                two(g, "Sub", weir_grad_scalar(g, x, 2), tail), tail));
  weir_edge_t y =
      weir_grad_node(g, "SelectV2", WEIR_EDGES(two(g, "Less", z, half_root), near, far));
  return weir_grad_mul(g, weir_grad_scalar(g, x, 0.5), y);
}

// The share of the distribution between the bounds that is below the draw, neither 0 nor 1.
static weir_edge_t share_below(weir_grad_ctx_t* g, weir_edge_t draw, weir_edge_t low,
                               weir_edge_t high) {
  const weir_dtype_t dtype = weir_grad_dtype(g, draw);
  const double tiny = dtype == WEIR_DTYPE_DOUBLE  ? DBL_MIN
                      : dtype == WEIR_DTYPE_FLOAT ? (double)FLT_MIN
                                                  : 0x1p-14;
  const double epsilon = dtype == WEIR_DTYPE_DOUBLE  ? DBL_EPSILON
                         : dtype == WEIR_DTYPE_FLOAT ? (double)FLT_EPSILON
                                                     : 0x1p-10;
  weir_edge_t bottom = normal_cdf(g, low);
  weir_edge_t share = two(g, "RealDiv", two(g, "Sub", normal_cdf(g, draw), bottom),
                          two(g, "Sub", normal_cdf(g, high), bottom));
  share = two(g, "Minimum", share, weir_grad_scalar(g, draw, 1 - epsilon));
  return two(g, "Maximum", share, weir_grad_scalar(g, draw, tiny));
}

// exp((draw^2 - bound^2) / 2 + log_share)
static weir_edge_t bound_slope(weir_grad_ctx_t* g, weir_edge_t draw, weir_edge_t bound,
                               weir_edge_t log_share) {
  weir_edge_t squares = two(g, "Sub", one(g, "Square", draw), one(g, "Square", bound));
  weir_edge_t half = weir_grad_mul(g, weir_grad_scalar(g, draw, 0.5), squares);
  return one(g, "Exp", two(g, "AddV2", half, log_share));
}

// Summed over the dimensions that parameters do not have, and over those that this one lacks.
static weir_status_t* set_summed(weir_grad_ctx_t* g, int input, weir_edge_t slope,
                                 weir_edge_t batch) {
  weir_edge_t zero = weir_build_int32(g->builder, 0), unit = weir_build_int32(g->builder, 1);
  weir_edge_t extra = two(g, "Sub", one(g, "Size", weir_grad_input(g, 0)), one(g, "Size", batch));
  weir_edge_t axes = weir_grad_node(g, "Range", WEIR_EDGES(zero, extra, unit));
  weir_edge_t sum = two(g, "Sum", weir_grad_mul(g, weir_grad_dy(g, 0), slope), axes);
  weir_edge_t own = weir_grad_shape_of(g, weir_grad_input(g, input));
  weir_edge_t lacking = weir_build_output(two(g, "BroadcastGradientArgs", batch, own), 1);
  sum = weir_grad_node_with(g, "Sum", WEIR_EDGES(sum, lacking),
                            WEIR_ATTRS(weir_attr_bool("keep_dims", true)));
  return weir_grad_set(g, input, two(g, "Reshape", sum, own));
}

static weir_status_t* truncated_grad(weir_grad_ctx_t* g) {
  weir_edge_t normed[3];  // the draw and the bounds, in deviations from the mean
  weir_edge_t raw[] = {weir_grad_output(g, 0), weir_grad_input(g, 4), weir_grad_input(g, 5)};
  for (int i = 0; i < 3; ++i) {
    normed[i] =
        two(g, "RealDiv", two(g, "Sub", raw[i], weir_grad_input(g, 2)), weir_grad_input(g, 3));
  }
  weir_edge_t batch = weir_grad_shape_of(g, weir_grad_input(g, FIRST));
  for (int i = 1; i < PARAMETERS; ++i) {
    batch = two(g, "BroadcastArgs", batch, weir_grad_shape_of(g, weir_grad_input(g, FIRST + i)));
  }
  weir_edge_t share = share_below(g, normed[0], normed[1], normed[2]);
  weir_edge_t above = one(g, "Log1p", weir_grad_neg(g, share));
  WEIR_TRY(set_summed(g, 2, one(g, "OnesLike", normed[0]), batch));
  WEIR_TRY(set_summed(g, 3, normed[0], batch));
  WEIR_TRY(set_summed(g, 4, bound_slope(g, normed[0], normed[1], above), batch));
  return set_summed(g, 5, bound_slope(g, normed[0], normed[2], one(g, "Log", share)), batch);
}

const weir_op_module_t weir_ops_random_stateless_truncated = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StatelessParameterizedTruncatedNormal",
         .attrs = "S: {int32, int64}; Tseed: {int32, int64} = DT_INT64; dtype: {half, float, "
                  "double}",
         .inputs = "shape: S; seed: Tseed; means: dtype; stddevs: dtype; minvals: dtype; maxvals: "
                   "dtype",
         .outputs = "output: dtype",
         .summary = "Normal draws within bounds, by a seed",
         .infer_shape = truncated_shape,
         .build_grad = truncated_grad,
         .cost = weir_cost_fn_many,
         .kernels = WEIR_CPU_KERNEL(.compute = truncated_cpu, .host_inputs = "shape, seed")},
        {0}}};
