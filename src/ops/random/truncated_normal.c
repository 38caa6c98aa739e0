// truncated_normal.c — ParameterizedTruncatedNormal: normal draws within bounds, with parameters a
// row of the output.
#include <math.h>

#include "kernel/cuda/source.h"
#include "kernel/random/random_draw.h"
#include "kernel/random/random_op.h"
#include "op/cost.h"
#include "op/shape_ctx.h"
#include "tensor/cast.h"

#define ROWS_OF_EQUALS 100  // when all rows share their parameters, rows of this size are drawn

typedef struct truncated_t {
  weir_random_state_t generator;
  weir_cuda_function_t function;  // of a GPU
} truncated_t;

WEIR_CUDA_SOURCE(philox);
WEIR_CUDA_SOURCE(truncated);

static weir_status_t* truncated_init(const weir_kernel_init_t* init, void* state) {
  truncated_t* s = state;
  weir_strbuf_t text = {0};
  weir_random_state_init(&s->generator, weir_attrs_int(init->node->attrs, "seed"),
                         weir_attrs_int(init->node->attrs, "seed2"));
  if (!weir_device_is_cuda(init->device)) return NULL;
  weir_strbuf_printf(&text, "#define T %s\n#define MAX_ROUNDS %d\n%s",
                     weir_cuda_type_name(init->node->output_types[0]), WEIR_TRUNCATED_MAX_ROUNDS,
                     weir_cuda_source_philox);
  return weir_cuda_build(init->device, &text, weir_cuda_source_truncated, "truncated",
                         &s->function);
}

static void truncated_deinit(void* state) {
  weir_random_state_deinit(&((truncated_t*)state)->generator);
}

static weir_status_t* truncated_shape(weir_shape_ctx_t* ctx) {
  for (int i = 1; i <= 4; ++i) WEIR_TRY(weir_shape_at_most(ctx, weir_shape_input(ctx, i), 1));
  const weir_shape_t* shape = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  return weir_shape_set(ctx, 0, shape);
}

static const char* const parameter_names[] = {"means", "stddevs", "minvals", "maxvals"};

static weir_status_t* bad_parameter(const weir_kernel_ctx_t* ctx, int i, const char* rule) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "Input %s should %s, got shape: %s", parameter_names[i],
                     rule, weir_tensor_shape_text(weir_kernel_input(ctx, i + 1), text));
}

// Sets whether all rows have the same parameters; as in TensorFlow bounds have that as scalars
// alone.
static weir_status_t* check_parameters(const weir_kernel_ctx_t* ctx, int64_t rows,
                                       bool* out_are_equal) {
  *out_are_equal = true;
  for (int i = 0; i < 4; ++i) {
    const weir_tensor_t* p = weir_kernel_input(ctx, i + 1);
    if (p->rank > 1) return bad_parameter(ctx, i, "be a scalar or vector");
    if (p->rank == 1 && (p->dims[0] != 1 || i >= 2)) *out_are_equal = false;
  }
  for (int i = 0; i < 4 && !*out_are_equal; ++i) {
    const weir_tensor_t* p = weir_kernel_input(ctx, i + 1);
    if (p->rank == 1 && p->dims[0] != 1 && p->dims[0] != rows) {
      return bad_parameter(ctx, i, "have length 1 or shape[0]");
    }
  }
  return NULL;
}

static double parameter_at(const weir_kernel_ctx_t* ctx, int i, int64_t row) {
  const weir_tensor_t* p = weir_kernel_input(ctx, i + 1);
  const size_t size = weir_dtype_size(weir_tensor_type(p));
  double value = 0;
  weir_element_to_double(weir_tensor_type(p),
                         (const char*)p->data + (p->count == 1 ? 0 : (size_t)row * size), &value);
  return value;
}

// Rows share one generator, one after the other, as in TensorFlow on one thread.
static weir_status_t* fill_rows(weir_kernel_ctx_t* ctx, weir_philox_t philox, int64_t rows,
                                int64_t row_size, weir_tensor_t* out) {
  for (int64_t row = 0; row < rows; ++row) {
    weir_truncated_t p = {.mean = parameter_at(ctx, 0, row),
                          .deviation = parameter_at(ctx, 1, row),
                          .low = parameter_at(ctx, 2, row),
                          .high = parameter_at(ctx, 3, row)};
    if (!(p.deviation > 0 && p.low < p.high && (isfinite(p.low) || isfinite(p.high)))) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Invalid parameters: stddev %g, minval %g, maxval %g in row %lld",
                         p.deviation, p.low, p.high, (long long)row);
    }
    WEIR_TRY(weir_random_truncated(&philox, weir_tensor_type(out), &p, out->data, row * row_size,
                                   WEIR_MIN((row + 1) * row_size, out->count)));
  }
  return NULL;
}

// As the kernel has it.
typedef struct parameters_t {
  const void* at[4];
  int64_t steps[4];
} parameters_t;

static weir_status_t* fill_on_gpu(weir_kernel_ctx_t* ctx, weir_philox_t philox, void* anew,
                                  int64_t row_size, weir_tensor_t* out) {
  const weir_cuda_size_t warp = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
  parameters_t from;
  for (int i = 0; i < 4; ++i) {
    const weir_tensor_t* p = weir_kernel_input(ctx, i + 1);
    from.at[i] = p->data;
    from.steps[i] = p->count != 1;
  }
  return weir_cuda_launch(
      ctx->device, ((const truncated_t*)ctx->state)->function, &warp,
      WEIR_CUDA_ARGS(&out->data, &out->count, &row_size, &from, &philox, &anew));
}

static weir_status_t* truncated(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* shape = weir_kernel_input(ctx, 0);
  if (shape->rank != 1 || shape->count == 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Input shape should be a %svector, got shape: %s",
                       shape->rank == 1 ? "non-empty " : "", weir_tensor_shape_text(shape, text));
  }
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_ints(ctx, 0, dims, WEIR_MAX_RANK, &rank));
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  bool are_equal = false;
  WEIR_TRY(check_parameters(ctx, dims[0], &are_equal));
  if (out->count == 0) return NULL;
  int64_t rows = dims[0], row_size = out->count / dims[0];
  if (are_equal) {
    rows = (out->count + ROWS_OF_EQUALS - 1) / ROWS_OF_EQUALS;
    row_size = ROWS_OF_EQUALS;
  }
  const uint64_t groups =
      (uint64_t)rows * 2 * WEIR_TRUNCATED_MAX_ROUNDS * (uint64_t)(row_size + 3) / 4;
  weir_philox_t philox = {{0}, {0}};
  void* anew = NULL;
  WEIR_TRY(weir_kernel_random_reserve(ctx, &((truncated_t*)ctx->state)->generator, groups, &philox,
                                      &anew));
  if (weir_device_is_cuda(ctx->device)) return fill_on_gpu(ctx, philox, anew, row_size, out);
  return fill_rows(ctx, philox, rows, row_size, out);
}

#define TRUNCATED_ROW(device)                                                                     \
  {                                                                                               \
    device, .types = "dtype: half, float, double", .compute = truncated, .init = truncated_init,  \
            .deinit = truncated_deinit, .state_size = sizeof(truncated_t), .host_inputs = "shape" \
  }

const weir_op_module_t weir_ops_random_truncated_normal = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ParameterizedTruncatedNormal",
         .attrs = "seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; "
                  "T: {int32, int64}",
         .inputs = "shape: T; means: dtype; stdevs: dtype; minvals: dtype; maxvals: dtype",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .summary = "Normal draws within bounds, with parameters for each row",
         .infer_shape = truncated_shape,
         .cost = weir_cost_fn_many,
         .kernels =
             (const weir_kernel_def_t[]){
                 TRUNCATED_ROW(WEIR_DEVICE_CPU), TRUNCATED_ROW(WEIR_DEVICE_GPU), {0}}},
        {0}}};
