// random_draw.c — RandomGamma, RandomGammaGrad, RandomPoisson, RandomPoissonV2: draws for each of a
// tensor of parameters.
#include "kernel/random/random_draw.h"

#include "kernel/elementwise/cwise.h"
#include "kernel/elementwise/special.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

static weir_status_t* draw_init(const weir_kernel_init_t* init, void* state) {
  weir_random_state_init(state, weir_attrs_int(init->node->attrs, "seed"),
                         weir_attrs_int(init->node->attrs, "seed2"));
  return NULL;
}

static void draw_deinit(void* state) { weir_random_state_deinit(state); }

// The shape that input 0 spells, then that of the parameters.
static weir_status_t* draw_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  return weir_shape_set(ctx, 0, weir_shape_concat(ctx, shape, weir_shape_input(ctx, 1)));
}

static weir_status_t* draw_output(weir_kernel_ctx_t* ctx, int64_t* out_samples,
                                  weir_tensor_t** out) {
  const weir_tensor_t* shape = weir_kernel_input(ctx, 0);
  const weir_tensor_t* parameters = weir_kernel_input(ctx, 1);
  if (shape->rank != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "shape must be a vector of {int32,int64}, got shape: %s",
                       weir_tensor_shape_text(shape, text));
  }
  int64_t dims[2 * WEIR_MAX_RANK];
  int rank = 0;
  WEIR_TRY(weir_kernel_ints(ctx, 0, dims, WEIR_MAX_RANK, &rank));
  if (rank + parameters->rank > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT, "The output would have %d dimensions, more than %d",
                       rank + parameters->rank, WEIR_MAX_RANK);
  }
  if (parameters->rank > 0) {
    memcpy(dims + rank, parameters->dims, sizeof(int64_t) * (size_t)parameters->rank);
  }
  bool is_shape = true;  // what is negative is said below
  for (int i = 0; i < rank; ++i) is_shape = is_shape && dims[i] >= 0;
  if (is_shape) WEIR_TRY(weir_shape_check_sizes(rank + parameters->rank, dims));
  WEIR_TRY(weir_shape_count(WEIR_DTYPE_DOUBLE, rank, dims, out_samples));
  return weir_kernel_output(ctx, 0, rank + parameters->rank, dims, out);
}

static weir_status_t* draw_with(weir_kernel_ctx_t* ctx,
                                void (*fill)(weir_pool_t* pool, const weir_draw_t* draw)) {
  const weir_tensor_t* parameters = weir_kernel_input(ctx, 1);
  weir_tensor_t* out = NULL;
  int64_t samples = 0;
  WEIR_TRY(draw_output(ctx, &samples, &out));
  if (out->count == 0) return NULL;
  weir_draw_t draw = {.philox = weir_random_reserve(
                          ctx->state, (uint64_t)out->count * WEIR_RANDOM_GROUPS_PER_OUTPUT),
                      .parameter_type = weir_tensor_type(parameters),
                      .dtype = weir_tensor_type(out),
                      .parameters = parameters->data,
                      .count = parameters->count,
                      .samples = samples,
                      .out = out->data};
  fill(weir_kernel_pool(ctx), &draw);
  return NULL;
}

static weir_status_t* gamma_cpu(weir_kernel_ctx_t* ctx) {
  return draw_with(ctx, weir_random_gamma);
}
static weir_status_t* poisson_cpu(weir_kernel_ctx_t* ctx) {
  return draw_with(ctx, weir_random_poisson);
}

// ---- the gradient of gamma draws by their shape parameter ----

typedef struct slope_job_t {
  const weir_broadcast_t* plan;
  const weir_tensor_t* alpha;
  const weir_tensor_t* sample;
  weir_tensor_t* out;
} slope_job_t;

static void slope_range(void* arg, int64_t begin, int64_t end) {
  const slope_job_t* job = arg;
  const bool is_float = job->out->dtype == WEIR_DTYPE_FLOAT;
  for (int64_t i = begin; i < end; ++i) {
    int64_t a;
    int64_t s;
    weir_broadcast_at(job->plan, i, &a, &s);
    if (is_float) {
      WEIR_TENSOR_DATA(job->out, float)
      [i] = (float)weir_gamma_sample_derivative((double)WEIR_TENSOR_DATA(job->alpha, float)[a],
                                                (double)WEIR_TENSOR_DATA(job->sample, float)[s],
                                                true);
    } else {
      WEIR_TENSOR_DATA(job->out, double)
      [i] = weir_gamma_sample_derivative(WEIR_TENSOR_DATA(job->alpha, double)[a],
                                         WEIR_TENSOR_DATA(job->sample, double)[s], false);
    }
  }
}

static weir_status_t* gamma_slope_cpu(weir_kernel_ctx_t* ctx) {
  weir_broadcast_t plan;
  WEIR_TRY(weir_kernel_broadcast(ctx, 0, 1, &plan));
  slope_job_t job = {
      .plan = &plan, .alpha = weir_kernel_input(ctx, 0), .sample = weir_kernel_input(ctx, 1)};
  WEIR_TRY(weir_kernel_output(ctx, 0, plan.out_rank, plan.out_dims, &job.out));
  weir_pool_for(weir_kernel_pool(ctx), job.out->count, 400.0, slope_range, &job);
  return NULL;
}

// Summed over the dimensions that input 0 spells; trailing ones broadcast by themselves.
static weir_status_t* gamma_grad(weir_grad_ctx_t* g) {
  weir_edge_t slope = weir_grad_node(g, "RandomGammaGrad",
                                     WEIR_EDGES(weir_grad_input(g, 1), weir_grad_output(g, 0)));
  weir_edge_t rank = weir_grad_node(g, "Size", WEIR_EDGES(weir_grad_input(g, 0)));
  weir_edge_t axes = weir_grad_node(
      g, "Range",
      WEIR_EDGES(weir_build_int32(g->builder, 0), rank, weir_build_int32(g->builder, 1)));
  weir_edge_t product = weir_grad_mul(g, weir_grad_dy(g, 0), slope);
  return weir_grad_set(g, 1, weir_grad_node(g, "Sum", WEIR_EDGES(product, axes)));
}

#define DRAW_KERNELS(fn)                                                                       \
  WEIR_CPU_KERNEL(.compute = fn, .state_size = sizeof(weir_random_state_t), .init = draw_init, \
                  .deinit = draw_deinit, .host_inputs = "shape")

const weir_op_module_t weir_ops_random_random_draw = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RandomGamma",
         .attrs = "seed: int = 0; seed2: int = 0; S: {int32, int64}; T: {half, float, double}",
         .inputs = "shape: S; alpha: T",
         .outputs = "output: T",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Draws from gamma distributions of scale 1",
         .infer_shape = draw_shape,
         .build_grad = gamma_grad,
         .kernels = DRAW_KERNELS(gamma_cpu)},
        {.name = "RandomGammaGrad",
         .attrs = "T: {float, double}",
         .inputs = "alpha: T; sample: T",
         .outputs = "output: T",
         .summary = "The derivative of a gamma draw by its shape parameter",
         .infer_shape = weir_shape_fn_broadcast,
         .kernels = WEIR_CPU_KERNEL(.compute = gamma_slope_cpu)},
        {.name = "RandomPoisson",
         .attrs = "seed: int = 0; seed2: int = 0; S: {int32, int64}; dtype: {half, float, double}",
         .inputs = "shape: S; rate: dtype",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Draws from Poisson distributions, in the type of their rates",
         .infer_shape = draw_shape,
         .kernels = DRAW_KERNELS(poisson_cpu)},
        {.name = "RandomPoissonV2",
         .attrs = "seed: int = 0; seed2: int = 0; S: {int32, int64}; "
                  "R: {half, float, double, int32, int64} = DT_DOUBLE; "
                  "dtype: {half, float, double, int32, int64} = DT_INT64",
         .inputs = "shape: S; rate: R",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .summary = "Draws from Poisson distributions",
         .infer_shape = draw_shape,
         .kernels = DRAW_KERNELS(poisson_cpu)},
        {0}}};
