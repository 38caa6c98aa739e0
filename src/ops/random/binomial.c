// binomial.c — StatelessRandomBinomial, StatefulRandomBinomial: how many of so many trials succeed.
#include "kernel/elementwise/cwise.h"
#include "kernel/random/random_draw.h"
#include "op/shape_ctx.h"
#include "ops/random/generators.h"
#include "tensor/cast.h"
#include "tensor/numeric.h"

typedef struct job_t {
  const weir_broadcast_t* plan;  // of counts and probabilities
  const weir_tensor_t* counts;
  const weir_tensor_t* probs;
  weir_philox_t philox;
  int64_t pairs;    // of a count and a probability
  int64_t samples;  // for each
  weir_tensor_t* out;
} job_t;

static double element(const weir_tensor_t* t, int64_t i) {
  double value = 0;
  const size_t size = weir_dtype_size(weir_tensor_type(t));
  weir_element_to_double(weir_tensor_type(t), (const char*)t->data + (size_t)i * size, &value);
  return value;
}

// Integers saturate; NaN is 0 of them.
static void store(weir_tensor_t* out, int64_t at, double value) {
  switch (weir_tensor_type(out)) {
    case WEIR_DTYPE_DOUBLE: WEIR_TENSOR_DATA(out, double)[at] = value; return;
    case WEIR_DTYPE_FLOAT: WEIR_TENSOR_DATA(out, float)[at] = (float)value; return;
    case WEIR_DTYPE_HALF:
      WEIR_TENSOR_DATA(out, weir_half_t)[at] = weir_half_from_float((float)value);
      return;
    case WEIR_DTYPE_INT32:
      WEIR_TENSOR_DATA(out, int32_t)
      [at] = isnan(value) ? 0 : value >= 0x1p31 ? INT32_MAX : (int32_t)value;
      return;
    default:
      WEIR_TENSOR_DATA(out, int64_t)
      [at] = isnan(value) ? 0 : value >= 0x1p63 ? INT64_MAX : (int64_t)value;
      return;
  }
}

static void draw_range(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t pair = i / job->samples, sample = i % job->samples;
    int64_t count, prob;
    weir_broadcast_at(job->plan, pair, &count, &prob);
    store(job->out, sample * job->pairs + pair,
          weir_random_binomial(job->philox, (uint64_t)i, weir_tensor_type(job->counts),
                               element(job->counts, count), element(job->probs, prob)));
  }
}

// The output's shape, input |input|, which ends with that of counts and probabilities together.
static weir_status_t* make_output(weir_kernel_ctx_t* ctx, int input, const weir_broadcast_t* plan,
                                  weir_tensor_t** out) {
  const weir_tensor_t* shape = weir_kernel_input(ctx, input);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  if (shape->rank != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Input shape should be a vector, got shape: %s",
                       weir_tensor_shape_text(shape, text));
  }
  WEIR_TRY(weir_kernel_ints(ctx, input, dims, WEIR_MAX_RANK, &rank));
  const int first = rank - plan->out_rank;
  for (int i = 0; i < plan->out_rank; ++i) {
    if (first >= 0 && dims[first + i] == plan->out_dims[i]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Shape passed in must end with broadcasted shape.");
  }
  return weir_kernel_output(ctx, 0, rank, dims, out);
}

static weir_status_t* plan_pairs(weir_kernel_ctx_t* ctx, job_t* job, int first,
                                 weir_broadcast_t* plan) {
  job->counts = weir_kernel_input(ctx, first);
  job->probs = weir_kernel_input(ctx, first + 1);
  job->plan = plan;
  if (!weir_broadcast_plan(weir_shape_view_of(job->counts), weir_shape_view_of(job->probs), plan)) {
    char a[WEIR_SHAPE_TEXT_SIZE], b[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(
        INVALID_ARGUMENT, "counts and probs must have compatible batch dimensions: %s vs. %s",
        weir_tensor_shape_text(job->counts, a), weir_tensor_shape_text(job->probs, b));
  }
  job->pairs = 1;
  for (int i = 0; i < plan->out_rank; ++i) job->pairs *= plan->out_dims[i];
  WEIR_TRY(make_output(ctx, first == 2 ? 0 : 2, plan, &job->out));
  job->samples = job->pairs == 0 ? 0 : job->out->count / job->pairs;
  return NULL;
}

static weir_status_t* draw_all(weir_kernel_ctx_t* ctx, job_t* job) {
  if (job->out->count == 0) return NULL;
  weir_pool_for(weir_kernel_pool(ctx), job->out->count, 300.0, draw_range, job);
  return NULL;
}

static weir_status_t* stateless_cpu(weir_kernel_ctx_t* ctx) {
  weir_broadcast_t plan;
  job_t job = {0};
  WEIR_TRY(weir_philox_of_seed(ctx, 1, &job.philox));
  WEIR_TRY(plan_pairs(ctx, &job, 2, &plan));
  return draw_all(ctx, &job);
}

static weir_status_t* stateful_cpu(weir_kernel_ctx_t* ctx) {
  weir_broadcast_t plan;
  job_t job = {0};
  const weir_tensor_t* algorithm = weir_kernel_input(ctx, 1);
  if (algorithm->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "algorithm must be of shape [], not %s",
                       weir_tensor_shape_text(algorithm, text));
  }
  if (weir_tensor_int_at(algorithm, 0) != ALG_PHILOX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported algorithm id: %lld",
                       (long long)weir_tensor_int_at(algorithm, 0));
  }
  WEIR_TRY(plan_pairs(ctx, &job, 3, &plan));
  // As far as TensorFlow's, where no one else holds the variable's memory: then its does not move.
  const uint64_t taken = (uint64_t)job.pairs * 200 * ((uint64_t)job.samples + 3) / 4;
  WEIR_TRY(weir_philox_of_variable(ctx, 0, taken, &job.philox));
  return draw_all(ctx, &job);
}

// ---- shapes ----

static weir_status_t* output_shape(weir_shape_ctx_t* ctx, int input) {
  const weir_shape_t* shape = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, input), 1, NULL));
  WEIR_TRY(weir_shape_from_value(ctx, input, &shape));
  return weir_shape_set(ctx, 0, shape);
}

static weir_status_t* stateless_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* seed = NULL;
  int64_t two = 2;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &seed));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(seed, 0), two, &two));
  return output_shape(ctx, 0);
}

static weir_status_t* stateful_shape(weir_shape_ctx_t* ctx) { return output_shape(ctx, 2); }

#define BINOMIAL_TYPES                                                                       \
  "T: {half, float, double, int32, int64} = DT_DOUBLE; dtype: {half, float, double, int32, " \
  "int64} = DT_INT64"

const weir_op_module_t weir_ops_random_binomial = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "StatelessRandomBinomial",
         .attrs = "S: {int32, int64}; Tseed: {int32, int64} = DT_INT64; " BINOMIAL_TYPES,
         .inputs = "shape: S; seed: Tseed; counts: T; probs: T",
         .outputs = "output: dtype",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "How many trials succeed, by a seed",
         .infer_shape = stateless_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "T: half, float, double", .compute = stateless_cpu,
                                    .host_inputs = "shape, seed")},
        {.name = "StatefulRandomBinomial",
         .attrs = "S: {int32, int64}; " BINOMIAL_TYPES,
         .inputs = "resource: resource; algorithm: int64; shape: S; counts: T; probs: T",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .summary = "How many trials succeed, by a generator",
         .infer_shape = stateful_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "T: half, float, double", .compute = stateful_cpu,
                                    .host_inputs = "algorithm, shape")},
        {0}}};
