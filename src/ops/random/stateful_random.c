// stateful_random.c — Stateful*, RngSkip, RngReadAndSkip: random numbers of a generator whose state
// is a variable, which moves on; NonDeterministicInts: bits of the system's own.
#include "kernel/random/random_op.h"
#include "op/shape_ctx.h"
#include "ops/random/generators.h"

enum { STATE_SIZE = 3 };  // two words of the counter, one of the key

// ---- the state ----

static weir_status_t* check_scalar(const weir_tensor_t* t, int input) {
  if (t->rank == 0) return NULL;
  char text[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "input %d (0-based) must have shape [], not %s", input,
                     weir_tensor_shape_text(t, text));
}

static weir_status_t* check_algorithm(int64_t id) {
  if (id == ALG_PHILOX || id == ALG_AUTO) return NULL;
  if (id == ALG_THREEFRY) {
    return WEIR_STATUS(UNIMPLEMENTED, "Non-XLA devices don't support the ThreeFry algorithm.");
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported algorithm id: %lld", (long long)id);
}

static weir_status_t* check_state(const weir_tensor_t* state, int first) {
  if (state->dtype != WEIR_DTYPE_INT64) {
    return WEIR_STATUS(INVALID_ARGUMENT, "dtype of RNG state variable must be int64, not %s",
                       weir_dtype_name(weir_tensor_type(state)));
  }
  if (state->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "RNG state must have one and only one dimension, not %d",
                       state->rank);
  }
  if (state->count >= STATE_SIZE + first) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "For the Philox algorithm, the size of state must be at least %d; got %lld",
                     STATE_SIZE + first, (long long)state->count);
}

static weir_philox_t read_philox(const int64_t* state) {
  const uint64_t low = (uint64_t)state[0], high = (uint64_t)state[1], key = (uint64_t)state[2];
  return (weir_philox_t){
      .counter = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)},
      .key = {(uint32_t)key, (uint32_t)(key >> 32)}};
}

static void write_counter(const weir_philox_t* philox, int64_t* state) {
  state[0] = (int64_t)(philox->counter[0] | (uint64_t)philox->counter[1] << 32);
  state[1] = (int64_t)(philox->counter[2] | (uint64_t)philox->counter[3] << 32);
}

static weir_status_t* advance_locked(weir_variable_t* variable, int first, uint64_t count,
                                     weir_philox_t* out_philox) {
  if (!variable->tensor) {
    return WEIR_STATUS(FAILED_PRECONDITION, "The state of the generator is not initialized");
  }
  WEIR_TRY(check_state(variable->tensor, first));
  // The algorithm was not an input at first, but the first number of the state.
  if (first > 0) WEIR_TRY(check_algorithm(WEIR_TENSOR_DATA(variable->tensor, int64_t)[0]));
  WEIR_TRY(weir_variable_make_sole_locked(variable, "generator"));
  int64_t* state = WEIR_TENSOR_DATA(variable->tensor, int64_t) + first;
  *out_philox = read_philox(state);
  weir_philox_t next = *out_philox;
  weir_philox_skip(&next, count * WEIR_RANDOM_GROUPS_PER_OUTPUT);
  write_counter(&next, state);
  return NULL;
}

weir_status_t* weir_philox_of_variable(weir_kernel_ctx_t* ctx, int first, uint64_t count,
                                       weir_philox_t* out_philox) {
  weir_variable_t* variable = NULL;
  WEIR_TRY(weir_kernel_live_variable(ctx, 0, &variable));
  weir_mutex_lock(&variable->mu);
  weir_status_t* status = advance_locked(variable, first, count, out_philox);
  weir_mutex_unlock(&variable->mu);
  weir_resource_release(&variable->base);
  return status;
}

// ---- distributions: (resource, algorithm, shape, …) ----

static weir_status_t* random_output(weir_kernel_ctx_t* ctx, int input, weir_tensor_t** out) {
  const weir_tensor_t* shape = weir_kernel_input(ctx, input);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  if (shape->dtype != WEIR_DTYPE_INT32 && shape->dtype != WEIR_DTYPE_INT64) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape must be a vector of {int32,int64}");
  }
  if (shape->rank != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "shape must be a vector of {int32,int64}, got shape %s",
                       weir_tensor_shape_text(shape, text));
  }
  WEIR_TRY(weir_kernel_ints(ctx, input, dims, WEIR_MAX_RANK, &rank));
  return weir_kernel_output(ctx, 0, rank, dims, out);
}

static weir_status_t* int_bounds(weir_kernel_ctx_t* ctx, weir_random_spec_t* spec) {
  for (int i = 0; i < 2; ++i) {
    const weir_tensor_t* bound = weir_kernel_input(ctx, 3 + i);
    if (bound->rank == 0) continue;
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be 0-D, got shape %s", i ? "maxval" : "minval",
                       weir_tensor_shape_text(bound, text));
  }
  const int64_t low = weir_tensor_int_at(weir_kernel_input(ctx, 3), 0);
  const int64_t high = weir_tensor_int_at(weir_kernel_input(ctx, 4), 0);
  if (low >= high) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Need minval < maxval, got %lld >= %lld", (long long)low,
                       (long long)high);
  }
  spec->low = low;
  spec->range = (uint64_t)high - (uint64_t)low;
  return NULL;
}

static weir_status_t* stateful(weir_kernel_ctx_t* ctx, weir_random_t kind, bool is_old) {
  weir_random_spec_t spec = {.kind = kind, .dtype = ctx->node->output_types[0]};
  weir_tensor_t* out = NULL;
  weir_philox_t philox;
  if (!is_old) {
    WEIR_TRY(check_scalar(weir_kernel_input(ctx, 1), 1));
    if (kind == WEIR_RANDOM_UNIFORM_INT) WEIR_TRY(int_bounds(ctx, &spec));
    WEIR_TRY(check_algorithm(weir_tensor_int_at(weir_kernel_input(ctx, 1), 0)));
  }
  WEIR_TRY(random_output(ctx, is_old ? 1 : 2, &out));
  WEIR_TRY(weir_philox_of_variable(ctx, is_old ? 1 : 0, (uint64_t)out->count, &philox));
  if (out->count > 0) {
    weir_random_fill(weir_kernel_pool(ctx), &spec, philox, out->data, out->count);
  }
  return NULL;
}

static weir_status_t* uniform_cpu(weir_kernel_ctx_t* ctx) {
  return stateful(ctx, WEIR_RANDOM_UNIFORM, false);
}
static weir_status_t* int_cpu(weir_kernel_ctx_t* ctx) {
  return stateful(ctx, WEIR_RANDOM_UNIFORM_INT, false);
}
static weir_status_t* full_int_cpu(weir_kernel_ctx_t* ctx) {
  return stateful(ctx, WEIR_RANDOM_FULL_INT, false);
}
static weir_status_t* normal_cpu(weir_kernel_ctx_t* ctx) {
  return stateful(ctx, WEIR_RANDOM_NORMAL, false);
}
static weir_status_t* old_normal_cpu(weir_kernel_ctx_t* ctx) {
  return stateful(ctx, WEIR_RANDOM_NORMAL, true);
}
static weir_status_t* truncated_cpu(weir_kernel_ctx_t* ctx) {
  return stateful(ctx, WEIR_RANDOM_TRUNCATED_NORMAL, false);
}

// ---- skipping ----

static weir_status_t* skip(weir_kernel_ctx_t* ctx, weir_philox_t* out_philox) {
  const weir_tensor_t* algorithm = weir_kernel_input(ctx, 1);
  const weir_tensor_t* delta = weir_kernel_input(ctx, 2);
  WEIR_TRY(check_scalar(algorithm, 1));
  WEIR_TRY(check_scalar(delta, 2));
  WEIR_TRY(check_algorithm(weir_tensor_int_at(algorithm, 0)));
  return weir_philox_of_variable(ctx, 0, WEIR_TENSOR_DATA(delta, uint64_t)[0], out_philox);
}

static weir_status_t* skip_cpu(weir_kernel_ctx_t* ctx) {
  weir_philox_t philox;
  return skip(ctx, &philox);
}

static weir_status_t* read_and_skip_cpu(weir_kernel_ctx_t* ctx) {
  weir_philox_t philox;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, (const int64_t[]){STATE_SIZE}, &out));
  WEIR_TRY(skip(ctx, &philox));
  int64_t* state = out->data;
  write_counter(&philox, state);
  state[2] = (int64_t)(philox.key[0] | (uint64_t)philox.key[1] << 32);
  return NULL;
}

static weir_status_t* non_deterministic_cpu(weir_kernel_ctx_t* ctx) {
  const weir_random_spec_t spec = {.kind = WEIR_RANDOM_FULL_INT,
                                   .dtype = ctx->node->output_types[0]};
  weir_tensor_t* out = NULL;
  WEIR_TRY(random_output(ctx, 0, &out));
  if (out->count == 0) return NULL;
  const weir_philox_t philox = weir_philox_seed(weir_random_entropy(), weir_random_entropy());
  weir_random_fill(weir_kernel_pool(ctx), &spec, philox, out->data, out->count);
  return NULL;
}

// ---- shapes ----

static weir_status_t* scalars_but(weir_shape_ctx_t* ctx, int shape_input) {
  for (int i = 0; i < ctx->node->input_count; ++i) {
    if (i == shape_input) continue;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  }
  return NULL;
}

static weir_status_t* output_shape(weir_shape_ctx_t* ctx, int input) {
  const weir_shape_t* shape = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, input), 1, NULL));
  WEIR_TRY(weir_shape_from_value(ctx, input, &shape));
  return weir_shape_set(ctx, 0, shape);
}

static weir_status_t* stateful_shape(weir_shape_ctx_t* ctx) {
  if (ctx->node->input_count == 5) WEIR_TRY(weir_random_check_bounds(ctx, 3));
  WEIR_TRY(scalars_but(ctx, 2));
  return output_shape(ctx, 2);
}
static weir_status_t* old_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(scalars_but(ctx, 1));
  return output_shape(ctx, 1);
}
static weir_status_t* skip_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(scalars_but(ctx, -1));
  return ctx->node->output_count ? weir_shape_set_vector(ctx, 0, STATE_SIZE) : NULL;
}
static weir_status_t* bits_shape(weir_shape_ctx_t* ctx) { return output_shape(ctx, 0); }

#define FLOATS "dtype: bfloat16, double, float, half"
#define INTS "dtype: int32, int64"
#define BITS "dtype: int32, int64, uint32, uint64"

#define STATEFUL_OP(op, default_type, more, text, row_types, fn)                                 \
  {                                                                                              \
    .name = op, .attrs = "dtype: type = " default_type "; shape_dtype: type = DT_INT64",         \
    .inputs = "resource: resource; algorithm: int64; shape: shape_dtype" more,                   \
    .outputs = "output: dtype", .flags = WEIR_OP_STATEFUL, .summary = text,                      \
    .infer_shape = stateful_shape, .kernels = WEIR_CPU_KERNEL(.compute = fn, .types = row_types) \
  }

const weir_op_module_t weir_ops_random_stateful_random = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        STATEFUL_OP("StatefulUniform", "DT_FLOAT", "", "Uniform numbers of a generator", FLOATS,
                    uniform_cpu),
        STATEFUL_OP("StatefulUniformInt", "DT_INT64", "; minval: dtype; maxval: dtype",
                    "Uniform integers of a generator", INTS, int_cpu),
        STATEFUL_OP("StatefulUniformFullInt", "DT_UINT64", "", "Random bits of a generator", BITS,
                    full_int_cpu),
        STATEFUL_OP("StatefulStandardNormalV2", "DT_FLOAT", "", "Normal numbers of a generator",
                    FLOATS, normal_cpu),
        STATEFUL_OP("StatefulTruncatedNormal", "DT_FLOAT", "",
                    "Normal numbers of a generator, within two deviations", FLOATS, truncated_cpu),
        {.name = "StatefulStandardNormal",
         .attrs = "dtype: type = DT_FLOAT; shape_dtype: type = DT_INT64",
         .inputs = "resource: resource; shape: shape_dtype",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Normal numbers of a generator that says its algorithm itself",
         .infer_shape = old_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = old_normal_cpu, .types = FLOATS)},
        {.name = "RngSkip",
         .inputs = "resource: resource; algorithm: int64; delta: int64",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Moves a generator on",
         .infer_shape = skip_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = skip_cpu)},
        {.name = "RngReadAndSkip",
         .inputs = "resource: resource; alg: int32; delta: uint64",
         .outputs = "value: int64",
         .flags = WEIR_OP_STATEFUL,
         .summary = "The state of a generator, which is moved on",
         .infer_shape = skip_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = read_and_skip_cpu)},
        {.name = "NonDeterministicInts",
         .attrs = "dtype: type = DT_INT64; shape_dtype: type = DT_INT64",
         .inputs = "shape: shape_dtype",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Bits that nobody can know beforehand",
         .infer_shape = bits_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = non_deterministic_cpu, .types = BITS)},
        {0}}};
