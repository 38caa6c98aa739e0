// random.c — RandomUniform, RandomStandardNormal, TruncatedNormal, RandomUniformInt: generators
// with state, seeded by attributes.
#include "kernel/random/random_op.h"
#include "op/cost.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/random/generators.h"

typedef struct random_t {
  weir_random_state_t generator;
  weir_cuda_function_t function;  // of a GPU
} random_t;

static weir_status_t* random_init(const weir_kernel_init_t* init, weir_random_t kind,
                                  random_t* state) {
  weir_random_state_init(&state->generator, weir_attrs_int(init->node->attrs, "seed"),
                         weir_attrs_int(init->node->attrs, "seed2"));
  return weir_random_find(init, kind, &state->function);
}

static weir_status_t* uniform_init(const weir_kernel_init_t* init, void* state) {
  return random_init(init, WEIR_RANDOM_UNIFORM, state);
}
static weir_status_t* normal_init(const weir_kernel_init_t* init, void* state) {
  return random_init(init, WEIR_RANDOM_NORMAL, state);
}
static weir_status_t* truncated_init(const weir_kernel_init_t* init, void* state) {
  return random_init(init, WEIR_RANDOM_TRUNCATED_NORMAL, state);
}
static weir_status_t* uniform_int_init(const weir_kernel_init_t* init, void* state) {
  return random_init(init, WEIR_RANDOM_UNIFORM_INT, state);
}

static void random_deinit(void* state) { weir_random_state_deinit(&((random_t*)state)->generator); }

static weir_status_t* random_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape = NULL;
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  return weir_shape_set(ctx, 0, shape);
}

static weir_status_t* uniform_int_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_random_check_bounds(ctx, 1));
  return random_shape(ctx);
}

// Allocates the output of the shape that input 0 spells.
static weir_status_t* random_output(weir_kernel_ctx_t* ctx, weir_tensor_t** out) {
  const weir_tensor_t* shape = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  if (shape->rank != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "shape must be a vector of {int32,int64}, got shape %s",
                       weir_tensor_shape_text(shape, text));
  }
  WEIR_TRY(weir_kernel_ints(ctx, 0, dims, WEIR_MAX_RANK, &rank));
  return weir_kernel_output(ctx, 0, rank, dims, out);
}

static weir_status_t* fill(weir_kernel_ctx_t* ctx, const weir_random_spec_t* spec,
                           weir_tensor_t* out) {
  random_t* s = ctx->state;
  return weir_kernel_random_draw(ctx, &s->function, spec, &s->generator, out);
}

static weir_status_t* random_float(weir_kernel_ctx_t* ctx, weir_random_t kind) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(random_output(ctx, &out));
  return fill(ctx, &(weir_random_spec_t){.kind = kind, .dtype = weir_tensor_type(out)}, out);
}

static weir_status_t* uniform(weir_kernel_ctx_t* ctx) {
  return random_float(ctx, WEIR_RANDOM_UNIFORM);
}
static weir_status_t* normal(weir_kernel_ctx_t* ctx) {
  return random_float(ctx, WEIR_RANDOM_NORMAL);
}
static weir_status_t* truncated(weir_kernel_ctx_t* ctx) {
  return random_float(ctx, WEIR_RANDOM_TRUNCATED_NORMAL);
}

static weir_status_t* uniform_int(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* bounds[2] = {weir_kernel_input(ctx, 1), weir_kernel_input(ctx, 2)};
  for (int i = 0; i < 2; ++i) {
    if (bounds[i]->rank == 0) continue;
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be 0-D, got shape %s", i ? "maxval" : "minval",
                       weir_tensor_shape_text(bounds[i], text));
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(random_output(ctx, &out));
  if (out->count == 0) return NULL;  // bounds that contain nothing are fine for no numbers
  int64_t low = weir_tensor_int_at(bounds[0], 0), high = weir_tensor_int_at(bounds[1], 0);
  if (low >= high) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Need minval < maxval, got %lld >= %lld", (long long)low,
                       (long long)high);
  }
  return fill(ctx,
              &(weir_random_spec_t){.kind = WEIR_RANDOM_UNIFORM_INT,
                                    .dtype = weir_tensor_type(out),
                                    .low = low,
                                    .range = (uint64_t)high - (uint64_t)low},
              out);
}

#define RANDOM_ROW(device_, fn, host, ...)                                     \
  {                                                                            \
    device_, .compute = fn, .state_size = sizeof(random_t), .init = fn##_init, \
             .deinit = random_deinit, .host_inputs = host, __VA_ARGS__         \
  }
#define RANDOM_KERNELS(fn, host)                                                             \
  ((const weir_kernel_def_t[]){RANDOM_ROW(WEIR_DEVICE_CPU, fn, host),                        \
                               RANDOM_ROW(WEIR_DEVICE_GPU, fn, host, .is_recordable = true), \
                               {0}})
#define FLOAT_ATTRS \
  "seed: int = 0; seed2: int = 0; dtype: {half, bfloat16, float, double}; T: {int32, int64}"

const weir_op_module_t weir_ops_random_random = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "RandomUniform",
         .attrs = FLOAT_ATTRS,
         .inputs = "shape: T",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .summary = "Uniform numbers in [0, 1)",
         .infer_shape = random_shape,
         .cost = weir_cost_fn_many,
         .kernels = RANDOM_KERNELS(uniform, "shape")},
        {.name = "RandomStandardNormal",
         .attrs = FLOAT_ATTRS,
         .inputs = "shape: T",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .summary = "Normal numbers of mean 0 and deviation 1",
         .infer_shape = random_shape,
         .cost = weir_cost_fn_many,
         .kernels = RANDOM_KERNELS(normal, "shape")},
        {.name = "TruncatedNormal",
         .attrs = FLOAT_ATTRS,
         .inputs = "shape: T",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .summary = "Normal numbers within two deviations",
         .infer_shape = random_shape,
         .cost = weir_cost_fn_many,
         .kernels = RANDOM_KERNELS(truncated, "shape")},
        {.name = "RandomUniformInt",
         .attrs = "seed: int = 0; seed2: int = 0; Tout: {int32, int64}; T: {int32, int64}",
         .inputs = "shape: T; minval: Tout; maxval: Tout",
         .outputs = "output: Tout",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT,
         .summary = "Uniform integers in [minval, maxval)",
         .infer_shape = uniform_int_shape,
         .cost = weir_cost_fn_many,
         .kernels = RANDOM_KERNELS(uniform_int, "shape, minval, maxval")},
        {0}}};
