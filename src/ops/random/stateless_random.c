// stateless_random.c — StatelessRandom*, with a seed (V1) or a key and a counter (V2), and the ops
// that make keys of seeds.
#include "kernel/random/random_op.h"
#include "op/shape_ctx.h"
#include "ops/random/generators.h"

// ---- generators ----
weir_status_t* weir_philox_of_seed(weir_kernel_ctx_t* ctx, int input, weir_philox_t* out_philox) {
  const weir_tensor_t* seed = weir_kernel_input(ctx, input);
  if (seed->rank != 1 || seed->dims[0] != 2) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "seed must have shape [2], not %s",
                       weir_tensor_shape_text(seed, text));
  }
  uint64_t parts[2];
  for (int i = 0; i < 2; ++i) {
    parts[i] = seed->dtype == WEIR_DTYPE_UINT32 ? WEIR_TENSOR_DATA(seed, const uint32_t)[i]
                                                : (uint64_t)weir_tensor_int_at(seed, i);
  }
  *out_philox = weir_random_scramble(parts[0], parts[1]);
  return NULL;
}

// The algorithm is not looked at: see check_algorithm().
static weir_status_t* read_key(weir_kernel_ctx_t* ctx, weir_philox_t* out_philox) {
  const weir_tensor_t* key = weir_kernel_input(ctx, 1);
  const weir_tensor_t* counter = weir_kernel_input(ctx, 2);
  const weir_tensor_t* alg = weir_kernel_input(ctx, 3);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (alg->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input 3 (0-based) must have shape [], not %s",
                       weir_tensor_shape_text(alg, text));
  }
  int64_t id = weir_tensor_int_at(alg, 0);
  if (key->rank != 1 || key->dims[0] != 1) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "key must have shape [1], not %s. (Note that batched keys are not supported yet.)",
        weir_tensor_shape_text(key, text));
  }
  // TensorFlow asks for as many elements as the number of an algorithm that it does not know.
  const int64_t needed = id == ALG_PHILOX || id == ALG_AUTO ? 2 : id;
  if (counter->rank != 1 || counter->dims[0] < needed) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "counter must be a vector with length at least %lld; got shape: %s. (Note that "
        "batched counters are not supported yet.)",
        (long long)id, weir_tensor_shape_text(counter, text));
  }
  const uint64_t k = WEIR_TENSOR_DATA(key, const uint64_t)[0];
  const uint64_t low = counter->count > 0 ? WEIR_TENSOR_DATA(counter, const uint64_t)[0] : 0;
  const uint64_t high = counter->count > 1 ? WEIR_TENSOR_DATA(counter, const uint64_t)[1] : 0;
  *out_philox = (weir_philox_t){
      .counter = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32)},
      .key = {(uint32_t)k, (uint32_t)(k >> 32)}};
  return NULL;
}

static weir_status_t* check_algorithm(const weir_kernel_ctx_t* ctx) {
  const int64_t id = weir_tensor_int_at(weir_kernel_input(ctx, 3), 0);
  if (id == ALG_PHILOX || id == ALG_AUTO) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Unsupported algorithm id: %lld", (long long)id);
}

weir_status_t* weir_philox_of_key(weir_kernel_ctx_t* ctx, weir_philox_t* out_philox) {
  WEIR_TRY(read_key(ctx, out_philox));
  return check_algorithm(ctx);
}

// ---- kernels. V1 takes (shape, seed, ...), V2 (shape, key, counter, alg, ...) ----
static weir_status_t* random_output(weir_kernel_ctx_t* ctx, weir_tensor_t** out) {
  const weir_tensor_t* shape = weir_kernel_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  if (shape->rank != 1) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Shape must be rank 1 but is rank %d: shape must be a vector, got shape %s",
                       shape->rank, weir_tensor_shape_text(shape, text));
  }
  WEIR_TRY(weir_kernel_ints(ctx, 0, dims, WEIR_MAX_RANK, &rank));
  return weir_kernel_output(ctx, 0, rank, dims, out);
}

static weir_status_t* int_bounds(weir_kernel_ctx_t* ctx, int first, weir_random_spec_t* spec) {
  for (int i = 0; i < 2; ++i) {
    const weir_tensor_t* bound = weir_kernel_input(ctx, first + i);
    if (bound->rank == 0) continue;
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be 0-D, got shape %s", i ? "maxval" : "minval",
                       weir_tensor_shape_text(bound, text));
  }
  int64_t low = weir_tensor_int_at(weir_kernel_input(ctx, first), 0);
  int64_t high = weir_tensor_int_at(weir_kernel_input(ctx, first + 1), 0);
  if (low >= high) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Need minval < maxval, got %lld >= %lld", (long long)low,
                       (long long)high);
  }
  spec->low = low;
  spec->range = (uint64_t)high - (uint64_t)low;
  return NULL;
}

static weir_status_t* stateless(weir_kernel_ctx_t* ctx, weir_random_t kind, bool is_v2) {
  weir_philox_t philox;
  weir_tensor_t* out = NULL;
  WEIR_TRY(is_v2 ? read_key(ctx, &philox) : weir_philox_of_seed(ctx, 1, &philox));
  WEIR_TRY(random_output(ctx, &out));
  if (out->count == 0) return NULL;
  if (is_v2) WEIR_TRY(check_algorithm(ctx));
  weir_random_spec_t spec = {.kind = kind, .dtype = weir_tensor_type(out)};
  if (kind == WEIR_RANDOM_UNIFORM_INT) WEIR_TRY(int_bounds(ctx, is_v2 ? 4 : 2, &spec));
  return weir_kernel_random_fill(ctx, ctx->state, &spec, philox, out);
}

static weir_status_t* uniform_v1(weir_kernel_ctx_t* ctx) {
  return stateless(ctx, WEIR_RANDOM_UNIFORM, false);
}
static weir_status_t* uniform_v2(weir_kernel_ctx_t* ctx) {
  return stateless(ctx, WEIR_RANDOM_UNIFORM, true);
}
static weir_status_t* normal_v1(weir_kernel_ctx_t* ctx) {
  return stateless(ctx, WEIR_RANDOM_NORMAL, false);
}
static weir_status_t* normal_v2(weir_kernel_ctx_t* ctx) {
  return stateless(ctx, WEIR_RANDOM_NORMAL, true);
}
static weir_status_t* truncated_v1(weir_kernel_ctx_t* ctx) {
  return stateless(ctx, WEIR_RANDOM_TRUNCATED_NORMAL, false);
}
static weir_status_t* truncated_v2(weir_kernel_ctx_t* ctx) {
  return stateless(ctx, WEIR_RANDOM_TRUNCATED_NORMAL, true);
}
static weir_status_t* int_v1(weir_kernel_ctx_t* ctx) {
  return stateless(ctx, WEIR_RANDOM_UNIFORM_INT, false);
}
static weir_status_t* int_v2(weir_kernel_ctx_t* ctx) {
  return stateless(ctx, WEIR_RANDOM_UNIFORM_INT, true);
}
static weir_status_t* full_v1(weir_kernel_ctx_t* ctx) {
  return stateless(ctx, WEIR_RANDOM_FULL_INT, false);
}
static weir_status_t* full_v2(weir_kernel_ctx_t* ctx) {
  return stateless(ctx, WEIR_RANDOM_FULL_INT, true);
}

#define GPU_INIT(fn, KIND)                                                      \
  static weir_status_t* fn##_gpu(const weir_kernel_init_t* init, void* state) { \
    return weir_random_find(init, WEIR_RANDOM_##KIND, state);                   \
  }
GPU_INIT(uniform, UNIFORM)
GPU_INIT(normal, NORMAL)
GPU_INIT(truncated, TRUNCATED_NORMAL)
GPU_INIT(int, UNIFORM_INT)
GPU_INIT(full, FULL_INT)

static weir_status_t* get_key_counter_cpu(weir_kernel_ctx_t* ctx) {
  weir_philox_t p;
  weir_tensor_t* key = NULL;
  weir_tensor_t* counter = NULL;
  WEIR_TRY(weir_philox_of_seed(ctx, 0, &p));
  WEIR_TRY(weir_kernel_output(ctx, 0, 1, (const int64_t[]){1}, &key));
  WEIR_TRY(weir_kernel_output(ctx, 1, 1, (const int64_t[]){2}, &counter));
  WEIR_TENSOR_DATA(key, uint64_t)[0] = p.key[0] | (uint64_t)p.key[1] << 32;
  WEIR_TENSOR_DATA(counter, uint64_t)[0] = p.counter[0] | (uint64_t)p.counter[1] << 32;
  WEIR_TENSOR_DATA(counter, uint64_t)[1] = p.counter[2] | (uint64_t)p.counter[3] << 32;
  return ctx->output_count > 2 ? weir_kernel_output_int(ctx, 2, ALG_PHILOX) : NULL;
}

static weir_status_t* get_alg_cpu(weir_kernel_ctx_t* ctx) {
  return weir_kernel_output_int(ctx, 0, ALG_PHILOX);
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
  WEIR_TRY(weir_shape_from_value(ctx, 0, &shape));
  return weir_shape_set(ctx, 0, shape);
}

weir_status_t* weir_random_check_bounds(weir_shape_ctx_t* ctx, int first) {
  for (int i = 0; i < 2; ++i) {
    const weir_shape_t* shape = weir_shape_input(ctx, first + i);
    if (shape->rank <= 0) continue;
    weir_strbuf_t text = {0};
    weir_shape_append(shape, &text);
    weir_status_t* status =
        WEIR_STATUS(INVALID_ARGUMENT, "%s must be a scalar; got a tensor of shape %s",
                    i ? "maxval" : "minval", text.data ? text.data : "");
    weir_strbuf_free(&text);
    return status;
  }
  return NULL;
}

static weir_status_t* v1_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_vector(ctx, 1, 2));
  if (ctx->node->input_count == 4) WEIR_TRY(weir_random_check_bounds(ctx, 2));
  return output_shape(ctx);
}

static weir_status_t* v2_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_vector(ctx, 1, 1));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 3), 0, NULL));
  if (ctx->node->input_count == 6) WEIR_TRY(weir_random_check_bounds(ctx, 4));
  return output_shape(ctx);
}

static weir_status_t* get_key_counter_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(check_vector(ctx, 0, 2));
  WEIR_TRY(weir_shape_set_vector(ctx, 0, 1));
  WEIR_TRY(weir_shape_set_vector(ctx, 1, 2));
  return ctx->node->output_count > 2 ? weir_shape_set_scalar(ctx, 2) : NULL;
}

#define FLOATS "{half, bfloat16, float, double} = DT_FLOAT"
#define FULL_INTS "{int32, int64, uint32, uint64} = DT_UINT64"
#define SEED "Tseed: {int32, int64} = DT_INT64"
#define STATELESS(op, text, specs, ins, host, shape_fn, row_types, fn, version)              \
  {                                                                                          \
    .name = op, .summary = text, .attrs = specs, .inputs = ins, .outputs = "output: dtype",  \
    .flags = WEIR_OP_NO_GRADIENT, .infer_shape = shape_fn,                                   \
    .kernels = (const weir_kernel_def_t[]) {                                                 \
      {WEIR_DEVICE_CPU, .types = row_types, .compute = fn##_##version, .host_inputs = host}, \
          {WEIR_DEVICE_GPU,                                                                  \
           .types = row_types,                                                               \
           .compute = fn##_##version,                                                        \
           .init = fn##_gpu,                                                                 \
           .state_size = sizeof(weir_cuda_function_t),                                       \
           .host_inputs = host},                                                             \
      {                                                                                      \
        0                                                                                    \
      }                                                                                      \
    }                                                                                        \
  }
// What generators are made of is small, and read by the host.
#define V1_HOST "shape, seed"
#define V2_HOST "shape, key, counter, alg"
#define V1_IN "shape: T; seed: Tseed"
#define V2_IN "shape: Tshape; key: uint64; counter: uint64; alg: int32"
#define V1_FLOAT(op, text, fn)                                                                  \
  STATELESS(op, text, "dtype: " FLOATS "; T: {int32, int64} = DT_INT32; " SEED, V1_IN, V1_HOST, \
            v1_shape, NULL, fn, v1)
#define V2_FLOAT(op, text, fn)                                                                \
  STATELESS(op, text, "dtype: " FLOATS "; Tshape: {int32, int64} = DT_INT32", V2_IN, V2_HOST, \
            v2_shape, NULL, fn, v2)

const weir_op_module_t weir_ops_random_stateless_random = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        V1_FLOAT("StatelessRandomUniform", "Uniform numbers from 0 up to 1, as a seed says",
                 uniform),
        V1_FLOAT("StatelessRandomNormal", "Normal numbers, as a seed says", normal),
        V1_FLOAT("StatelessTruncatedNormal", "Normal numbers within two deviations, as a seed says",
                 truncated),
        V2_FLOAT("StatelessRandomUniformV2",
                 "Uniform numbers from 0 up to 1, as a key and a counter say", uniform),
        V2_FLOAT("StatelessRandomNormalV2", "Normal numbers, as a key and a counter say", normal),
        V2_FLOAT("StatelessTruncatedNormalV2",
                 "Normal numbers within two deviations, as a key and a counter say", truncated),
        STATELESS("StatelessRandomUniformInt",
                  "Uniform integers from minval up to maxval, as a seed says",
                  "dtype: {int32, int64}; T: {int32, int64}; " SEED,
                  V1_IN "; minval: dtype; maxval: dtype", V1_HOST ", minval, maxval", v1_shape,
                  NULL, int, v1),
        STATELESS("StatelessRandomUniformIntV2",
                  "Uniform integers from minval up to maxval, as a key and a counter say",
                  "dtype: {int32, int64, uint32, uint64}; Tshape: {int32, int64} = DT_INT32",
                  V2_IN "; minval: dtype; maxval: dtype", V2_HOST ", minval, maxval", v2_shape,
                  "dtype: int32, int64", int, v2),
        STATELESS(
            "StatelessRandomUniformFullInt", "Random bits, as a seed says",
            "dtype: " FULL_INTS
            "; T: {int32, int64} = DT_INT32; Tseed: {int32, int64, uint32, uint64} = DT_INT64",
            V1_IN, V1_HOST, v1_shape, NULL, full, v1),
        STATELESS("StatelessRandomUniformFullIntV2", "Random bits, as a key and a counter say",
                  "dtype: " FULL_INTS "; Tshape: {int32, int64} = DT_INT32", V2_IN, V2_HOST,
                  v2_shape, NULL, full, v2),
        {.name = "StatelessRandomGetKeyCounter",
         .summary = "The key and the counter that a seed stands for",
         .attrs = SEED,
         .inputs = "seed: Tseed",
         .outputs = "key: uint64; counter: uint64",
         .flags = WEIR_OP_CHEAP | WEIR_OP_NO_GRADIENT,
         .infer_shape = get_key_counter_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = get_key_counter_cpu, .host_inputs = "seed",
                                         .host_outputs = "key, counter")},
        {.name = "StatelessRandomGetKeyCounterAlg",
         .summary = "The key, the counter and the algorithm that a seed stands for",
         .attrs = SEED,
         .inputs = "seed: Tseed",
         .outputs = "key: uint64; counter: uint64; alg: int32",
         .flags = WEIR_OP_CHEAP | WEIR_OP_NO_GRADIENT,
         .infer_shape = get_key_counter_shape,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = get_key_counter_cpu, .host_inputs = "seed",
                                         .host_outputs = "key, counter, alg")},
        {.name = "StatelessRandomGetAlg",
         .summary = "The number of the algorithm that V2 generators use here",
         .outputs = "alg: int32",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP | WEIR_OP_NO_GRADIENT,
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_PORTABLE_KERNEL(.compute = get_alg_cpu, .host_outputs = "alg")},
        {0}}};
