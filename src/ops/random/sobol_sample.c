// sobol_sample.c — SobolSample: points of Sobol's sequence.
#include "kernel/random/sobol.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

enum { MAX_DIMENSIONS = 21200 };  // in TensorFlow

static weir_status_t* sobol_shape(weir_shape_ctx_t* ctx) {
  int64_t dims[2] = {-1, -1};
  for (int i = 0; i < 3; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  for (int i = 0; i < 2; ++i) {
    const weir_tensor_t* value = weir_shape_value(ctx, 1 - i);
    if (value) dims[i] = weir_tensor_int_at(value, 0);
    if (dims[i] < -1)
      return WEIR_STATUS(INVALID_ARGUMENT, "Dimension %lld must be >= 0", (long long)dims[i]);
  }
  return weir_shape_set_dims(ctx, 0, 2, dims);
}

static weir_status_t* read_scalar(weir_kernel_ctx_t* ctx, int i, const char* name,
                                  int64_t* out_value) {
  const weir_tensor_t* input = weir_kernel_input(ctx, i);
  if (input->rank != 0) return WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar", name);
  *out_value = weir_tensor_int_at(input, 0);
  return NULL;
}

static weir_status_t* check_numbers(int64_t dimensions, int64_t count, int64_t skip) {
  if (dimensions < 1) return WEIR_STATUS(INVALID_ARGUMENT, "dim must be at least one");
  if (dimensions > MAX_DIMENSIONS)
    return WEIR_STATUS(INVALID_ARGUMENT, "dim must be at most %d", (int)MAX_DIMENSIONS);
  if (count < 1) return WEIR_STATUS(INVALID_ARGUMENT, "num_results must be at least one");
  if (skip < 0) return WEIR_STATUS(INVALID_ARGUMENT, "skip must be non-negative");
  if (skip >= INT32_MAX - count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "num_results+skip must be less than %d", INT32_MAX);
  }
  if (dimensions <= WEIR_SOBOL_DIMENSIONS) return NULL;
  return WEIR_STATUS(UNIMPLEMENTED,
                     "dim is %lld: Sobol's sequence is here of at most %d dimensions",
                     (long long)dimensions, (int)WEIR_SOBOL_DIMENSIONS);
}

typedef struct job_t {
  const uint32_t* directions;  // of all dimensions, one after the other
  int64_t dimensions;
  int64_t skip;
  weir_tensor_t* out;
} job_t;

static void put(const job_t* job, int64_t at, uint32_t value) {
  if (weir_tensor_type(job->out) == WEIR_DTYPE_FLOAT)
    WEIR_TENSOR_DATA(job->out, float)[at] = (float)value * 0x1p-31f;
  else WEIR_TENSOR_DATA(job->out, double)[at] = (double)value * 0x1p-31;
}

// From one point to the next, one direction number changes a coordinate: that of the lowest bit
// that the number of the new one has set.
static void sample_points(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  for (int64_t d = 0; d < job->dimensions; ++d) {
    const uint32_t* directions = job->directions + d * WEIR_SOBOL_BITS;
    uint32_t index = (uint32_t)(begin + job->skip + 1);
    uint32_t value = weir_sobol_at(directions, index);
    for (int64_t i = begin; i < end; ++i) {
      put(job, i * job->dimensions + d, value);
      value ^= directions[__builtin_ctz(++index)];
    }
  }
}

static weir_status_t* sobol_cpu(weir_kernel_ctx_t* ctx) {
  int64_t dimensions = 0, count = 0, skip = 0;
  weir_tensor_t *out = NULL, *directions = NULL;
  WEIR_TRY(read_scalar(ctx, 0, "dim", &dimensions));
  WEIR_TRY(read_scalar(ctx, 1, "num_results", &count));
  WEIR_TRY(read_scalar(ctx, 2, "skip", &skip));
  WEIR_TRY(check_numbers(dimensions, count, skip));
  const int64_t dims[2] = {count, dimensions};
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, dims, &out));
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_UINT32, dimensions * WEIR_SOBOL_BITS, &directions));
  job_t job = {.directions = WEIR_TENSOR_DATA(directions, uint32_t),
               .dimensions = dimensions,
               .skip = skip,
               .out = out};
  for (int64_t d = 0; d < dimensions; ++d)
    weir_sobol_directions(d, WEIR_TENSOR_DATA(directions, uint32_t) + d * WEIR_SOBOL_BITS);
  weir_pool_for(weir_kernel_pool(ctx), count, 3.0 * (double)dimensions, sample_points, &job);
  weir_tensor_release(directions);
  return NULL;
}

const weir_op_module_t weir_ops_random_sobol_sample = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SobolSample",
         .attrs = "dtype: {float, double} = DT_FLOAT",
         .inputs = "dim: int32; num_results: int32; skip: int32",
         .outputs = "samples: dtype",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Points of Sobol's sequence, which fills the unit cube evenly",
         .infer_shape = sobol_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = sobol_cpu, .host_inputs = "dim, num_results, skip")},
        {0}}};
