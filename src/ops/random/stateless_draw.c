// stateless_draw.c — StatelessRandomPoisson, StatelessRandomGammaV2, StatelessRandomGammaV3: draws
// for parameters, the same for the same seed.
#include "kernel/random/random_draw.h"
#include "op/grad_ctx.h"
#include "op/shape_ctx.h"
#include "ops/random/generators.h"

typedef void (*fill_fn_t)(weir_pool_t* pool, const weir_draw_t* draw);

// The output's shape, which ends with that of the parameters.
static weir_status_t* draw_output(weir_kernel_ctx_t* ctx, const weir_tensor_t* parameters,
                                  weir_tensor_t** out) {
  const weir_tensor_t* shape = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  if (shape->rank != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "shape must be a vector of {int32,int64}, got shape: %s",
                       weir_tensor_shape_text(shape, text));
  }
  WEIR_TRY(weir_kernel_ints(ctx, 0, dims, WEIR_MAX_RANK, &rank));
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, out));
  const int first = rank - parameters->rank;
  for (int i = 0; i < parameters->rank; ++i) {
    if (first >= 0 && dims[first + i] == parameters->dims[i]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape passed in must end with broadcasted shape.");
  }
  return NULL;
}

static weir_status_t* draw_with(weir_kernel_ctx_t* ctx, int input, weir_philox_t philox,
                                fill_fn_t fill) {
  const weir_tensor_t* parameters = weir_kernel_input(ctx, input);
  weir_tensor_t* out = NULL;
  WEIR_TRY(draw_output(ctx, parameters, &out));
  if (out->count == 0) return NULL;
  weir_draw_t draw = {.philox = philox,
                      .parameter_type = weir_tensor_type(parameters),
                      .dtype = weir_tensor_type(out),
                      .parameters = parameters->data,
                      .count = parameters->count,
                      .samples = out->count / parameters->count,
                      .out = out->data};
  fill(weir_kernel_pool(ctx), &draw);
  return NULL;
}

static weir_status_t* poisson_cpu(weir_kernel_ctx_t* ctx) {
  weir_philox_t philox;
  WEIR_TRY(weir_philox_of_seed(ctx, 1, &philox));
  return draw_with(ctx, 2, philox, weir_random_poisson);
}

static weir_status_t* gamma_v2_cpu(weir_kernel_ctx_t* ctx) {
  weir_philox_t philox;
  WEIR_TRY(weir_philox_of_seed(ctx, 1, &philox));
  return draw_with(ctx, 2, philox, weir_random_gamma);
}

static weir_status_t* gamma_v3_cpu(weir_kernel_ctx_t* ctx) {
  weir_philox_t philox;
  WEIR_TRY(weir_philox_of_key(ctx, &philox));
  return draw_with(ctx, 4, philox, weir_random_gamma);
}

// ---- shapes ----

static weir_status_t* check_vector(weir_shape_ctx_t* ctx, int input, int64_t size) {
  const weir_shape_t* shape = NULL;
  int64_t dim = 0;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, input), 1, &shape));
  return weir_dim_join(ctx, weir_shape_dim(shape, 0), size, &dim);
}

static weir_status_t* output_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  return weir_shape_set(ctx, 0, shape);
}

static weir_status_t* seed_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_vector(ctx, 1, 2));
  return output_shape(ctx);
}

static weir_status_t* key_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_vector(ctx, 1, 1));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 0, NULL));
  return output_shape(ctx);
}

// ---- the gradient by the shape parameter: summed over the dimensions before its own ----

static weir_status_t* gamma_grad(weir_grad_ctx_t* g, int alpha) {
  weir_edge_t parameter = weir_grad_input(g, alpha);
  weir_edge_t slope =
      weir_grad_node(g, "RandomGammaGrad", WEIR_EDGES(parameter, weir_grad_output(g, 0)));
  weir_edge_t rank = weir_grad_node(g, "Size", WEIR_EDGES(weir_grad_input(g, 0)));
  weir_edge_t own = weir_grad_node(g, "Rank", WEIR_EDGES(parameter));
  weir_edge_t first = weir_grad_node(g, "Sub", WEIR_EDGES(rank, own));
  weir_edge_t axes = weir_grad_node(
      g, "Range",
      WEIR_EDGES(weir_build_int32(g->builder, 0), first, weir_build_int32(g->builder, 1)));
  weir_edge_t product = weir_grad_mul(g, weir_grad_dy(g, 0), slope);
  return weir_grad_set(g, alpha, weir_grad_node(g, "Sum", WEIR_EDGES(product, axes)));
}
static weir_status_t* gamma_v2_grad(weir_grad_ctx_t* g) { return gamma_grad(g, 2); }
static weir_status_t* gamma_v3_grad(weir_grad_ctx_t* g) { return gamma_grad(g, 4); }

const weir_op_module_t weir_ops_random_stateless_draw = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StatelessRandomPoisson",
         .attrs = "Rtype: {half, float, double, int32, int64}; dtype: {half, float, double, int32, "
                  "int64}; T: {int32, int64}; Tseed: {int32, int64} = DT_INT64",
         .inputs = "shape: T; seed: Tseed; lam: Rtype",
         .outputs = "output: dtype",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Draws from Poisson distributions, by a seed",
         .infer_shape = seed_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = poisson_cpu, .host_inputs = "shape, seed")},
        {.name = "StatelessRandomGammaV2",
         .attrs = "dtype: {half, float, double}; T: {int32, int64}; Tseed: {int32, int64} = "
                  "DT_INT64",
         .inputs = "shape: T; seed: Tseed; alpha: dtype",
         .outputs = "output: dtype",
         .summary = "Draws from gamma distributions of scale 1, by a seed",
         .infer_shape = seed_shape,
         .build_grad = gamma_v2_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = gamma_v2_cpu, .host_inputs = "shape, seed")},
        {.name = "StatelessRandomGammaV3",
         .attrs = "dtype: {half, float, double}; shape_dtype: {int32, int64} = DT_INT32",
         .inputs = "shape: shape_dtype; key: uint64; counter: uint64; alg: int32; alpha: dtype",
         .outputs = "output: dtype",
         .summary = "Draws from gamma distributions of scale 1, by a key and a counter",
         .infer_shape = key_shape,
         .build_grad = gamma_v3_grad,
         .kernels =
             WEIR_CPU_KERNEL(.compute = gamma_v3_cpu, .host_inputs = "shape, key, counter, alg")},
        {0}}};
