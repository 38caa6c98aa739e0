// fused_tail.c — Bias or normalisation, addend and activation over blocks of rows, in place.
#include "kernel/nn/fused_tail.h"

#include <math.h>

#include "kernel/move/staging.h"
#include "kernel/nn/bias.h"

enum { MAX_ARGS = 5, GELU_BLOCK = 256 };

// ---- attributes ----

static const struct {
  const char* name;
  weir_tail_function_t function;
} functions[] = {{"Relu", WEIR_TAIL_RELU},
                 {"Relu6", WEIR_TAIL_RELU6},
                 {"Elu", WEIR_TAIL_ELU},
                 {"LeakyRelu", WEIR_TAIL_LEAKY_RELU},
                 {"Tanh", WEIR_TAIL_TANH},
                 {"Sigmoid", WEIR_TAIL_SIGMOID},
                 {"GeluApproximate", WEIR_TAIL_GELU_APPROXIMATE},
                 {"GeluExact", WEIR_TAIL_GELU_EXACT}};

static weir_tail_function_t find_function(weir_view_t name) {
  for (size_t i = 0; i < WEIR_COUNT_OF(functions); ++i) {
    if (weir_view_equal(name, weir_view_of(functions[i].name))) return functions[i].function;
  }
  return WEIR_TAIL_NONE;
}

static weir_status_t* unknown_fusion(const weir_attr_t* ops) {
  weir_strbuf_t text = {0};
  for (size_t i = 0; i < ops->count; ++i)
    weir_strbuf_printf(&text, "%s%.*s", i ? "," : "", WEIR_VIEW_ARG(ops->u.strings[i]));
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status) status = WEIR_STATUS(UNIMPLEMENTED, "Fusion is not implemented: [%s]", text.data);
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* check_args(const weir_kernel_init_t* init, const weir_fused_tail_t* tail,
                                 int arg_count) {
  int expected = (tail->is_batch_norm ? 4 : 1) + tail->has_add;
  if (arg_count == expected) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Fused %s with %s must have %d extra arguments, not %d",
                     init->node->op_name, tail->is_batch_norm ? "FusedBatchNorm" : "BiasAdd",
                     expected, arg_count);
}

weir_status_t* weir_fused_tail_init(const weir_kernel_init_t* init, int arg_count,
                                    weir_fused_tail_t* out_tail) {
  weir_attrs_t attrs = init->node->attrs;
  const weir_attr_t* ops = weir_attrs_list(attrs, "fused_ops");
  *out_tail = (weir_fused_tail_t){.alpha = weir_attrs_float(attrs, "leakyrelu_alpha"),
                                  .epsilon = weir_attrs_float(attrs, "epsilon")};
  if (ops->count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Fused %s must have at least one fused op.",
                       init->node->op_name);
  }
  out_tail->is_batch_norm = weir_view_equal(ops->u.strings[0], weir_view_of("FusedBatchNorm"));
  if (!out_tail->is_batch_norm && !weir_view_equal(ops->u.strings[0], weir_view_of("BiasAdd")))
    return unknown_fusion(ops);
  size_t next = 1;
  out_tail->has_add = next < ops->count && !out_tail->is_batch_norm &&
                      weir_view_equal(ops->u.strings[next], weir_view_of("Add"));
  next += out_tail->has_add;
  if (next < ops->count) {
    out_tail->function = find_function(ops->u.strings[next++]);
    if (out_tail->function == WEIR_TAIL_NONE || next < ops->count) return unknown_fusion(ops);
  }
  return check_args(init, out_tail, arg_count);
}

bool weir_fused_tail_is_on_gpu(const weir_fused_tail_t* tail) {
  return !tail->is_batch_norm && !tail->has_add &&
         (tail->function == WEIR_TAIL_NONE || tail->function == WEIR_TAIL_RELU);
}

bool weir_fused_ops_are_on_gpu(const weir_view_t* names, size_t count) {
  return (count == 1 || count == 2) && weir_view_equal(names[0], weir_view_of("BiasAdd")) &&
         (count == 1 || find_function(names[1]) == WEIR_TAIL_RELU);
}

// ---- a block of rows ----

typedef struct job_t {
  const weir_fused_tail_t* tail;
  const weir_tail_run_t* run;
  weir_staged_t args[MAX_ARGS];
  weir_unary_fn_t unary;           // TANH, SIGMOID, and what GELU is made of
  weir_activation_loop_fn_t rest;  // all others
} job_t;

// y = (y - mean) * scale / sqrt(variance + epsilon) + offset
#define DEFINE_NORMALISE(TYPE)                                                                 \
  static void normalise_##TYPE(const job_t* job, TYPE* y, int64_t rows) {                      \
    const TYPE *scale = job->args[0].data, *offset = job->args[1].data;                        \
    const TYPE *mean = job->args[2].data, *variance = job->args[3].data;                       \
    for (int64_t c = 0; c < job->run->channels; ++c) {                                         \
      TYPE factor = (TYPE)(scale[c] / sqrt((double)(variance[c] + (TYPE)job->tail->epsilon))); \
      for (int64_t r = 0; r < rows; ++r) {                                                     \
        TYPE* at = &y[r * job->run->channels + c];                                             \
        *at = (*at - mean[c]) * factor + offset[c];                                            \
      }                                                                                        \
    }                                                                                          \
  }
DEFINE_NORMALISE(float)
DEFINE_NORMALISE(double)

// y = y / 2 * (1 + f(inner)), where f is erf or tanh.
#define DEFINE_GELU(TYPE)                                                                \
  static void gelu_##TYPE(const job_t* job, TYPE* y, int64_t n) {                        \
    TYPE block[GELU_BLOCK];                                                              \
    bool is_exact = job->tail->function == WEIR_TAIL_GELU_EXACT;                         \
    for (int64_t at = 0; at < n; at += GELU_BLOCK, y += GELU_BLOCK) {                    \
      int64_t size = WEIR_MIN((int64_t)GELU_BLOCK, n - at);                              \
      for (int64_t i = 0; i < size; ++i) {                                               \
        block[i] = is_exact ? y[i] * (TYPE)0.70710678118654752440                        \
                            : (TYPE)0.79788456080286535588 *                             \
                                  (y[i] + (TYPE)0.044715 * y[i] * y[i] * y[i]);          \
      }                                                                                  \
      job->unary(block, block, size);                                                    \
      for (int64_t i = 0; i < size; ++i) y[i] = (TYPE)0.5 * y[i] * ((TYPE)1 + block[i]); \
    }                                                                                    \
  }
DEFINE_GELU(float)
DEFINE_GELU(double)

static void run_activation(const job_t* job, char* y, int64_t n) {
  bool is_float = job->run->dtype == WEIR_DTYPE_FLOAT;
  switch (job->tail->function) {
    case WEIR_TAIL_NONE: return;
    case WEIR_TAIL_TANH:
    case WEIR_TAIL_SIGMOID: job->unary(y, y, n); return;
    case WEIR_TAIL_GELU_APPROXIMATE:
    case WEIR_TAIL_GELU_EXACT:
      if (is_float) gelu_float(job, (float*)(void*)y, n);
      else gelu_double(job, (double*)(void*)y, n);
      return;
    default: job->rest(y, y, n, job->tail->alpha); return;
  }
}

static void run_rows(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  const weir_tail_run_t* run = job->run;
  size_t size = weir_dtype_size(run->dtype);
  size_t at = (size_t)(begin * run->channels) * size;
  int64_t rows = end - begin, n = rows * run->channels;
  char* y = (char*)run->y + at;
  weir_bias_t shape = {.outer = rows, .channels = run->channels, .inner = 1};
  if (!job->tail->is_batch_norm) weir_bias_add(NULL, run->dtype, &shape, y, job->args[0].data, y);
  else if (run->dtype == WEIR_DTYPE_FLOAT) normalise_float(job, (float*)(void*)y, rows);
  else normalise_double(job, (double*)(void*)y, rows);
  if (job->tail->has_add) {
    weir_binary_fn_t add = weir_binary_find(WEIR_BINARY_ADD, run->dtype);
    add(y, (char*)job->args[1].data + at, y, n, WEIR_SPAN_BOTH);
  }
  run_activation(job, y, n);
}

// ---- the whole ----

static void find_code(job_t* job) {
  static const weir_activation_t rests[] = {[WEIR_TAIL_RELU] = WEIR_ACTIVATION_RELU,
                                            [WEIR_TAIL_RELU6] = WEIR_ACTIVATION_RELU6,
                                            [WEIR_TAIL_ELU] = WEIR_ACTIVATION_ELU,
                                            [WEIR_TAIL_LEAKY_RELU] = WEIR_ACTIVATION_LEAKY_RELU};
  weir_dtype_t dtype = job->run->dtype;
  switch (job->tail->function) {
    case WEIR_TAIL_NONE: return;
    case WEIR_TAIL_TANH:
    case WEIR_TAIL_GELU_APPROXIMATE: job->unary = weir_unary_find(WEIR_UNARY_TANH, dtype); return;
    case WEIR_TAIL_SIGMOID: job->unary = weir_unary_find(WEIR_UNARY_SIGMOID, dtype); return;
    case WEIR_TAIL_GELU_EXACT: job->unary = weir_unary_find(WEIR_UNARY_ERF, dtype); return;
    default: job->rest = weir_activation_find(rests[job->tail->function], dtype); return;
  }
}

static int vector_count(const weir_fused_tail_t* tail) { return tail->is_batch_norm ? 4 : 1; }

weir_status_t* weir_fused_tail_check(weir_kernel_ctx_t* ctx, const weir_fused_tail_t* tail,
                                     int first_arg, int64_t channels) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  for (int i = 0; i < vector_count(tail); ++i) {
    const weir_tensor_t* arg = weir_kernel_input(ctx, first_arg + i);
    if (arg->rank == 1 && arg->count == channels) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "fused argument %d must be a vector of the %lld channels of the output, "
                       "but has shape %s",
                       i, (long long)channels, weir_tensor_shape_text(arg, text));
  }
  return NULL;
}

static weir_status_t* stage_args(weir_kernel_ctx_t* ctx, job_t* job) {
  const weir_tail_run_t* run = job->run;
  int vectors = vector_count(job->tail);
  char text[WEIR_SHAPE_TEXT_SIZE];
  WEIR_TRY(weir_fused_tail_check(ctx, job->tail, run->first_arg, run->channels));
  for (int i = 0; i < vectors + job->tail->has_add; ++i) {
    const weir_tensor_t* arg = weir_kernel_input(ctx, run->first_arg + i);
    if (i >= vectors && arg->count != run->rows * run->channels) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "the fused addend of shape %s is not of the output's shape",
                         weir_tensor_shape_text(arg, text));
    }
    WEIR_TRY(weir_stage_input(ctx, arg, i >= vectors && run->is_nchw, &job->args[i]));
  }
  return NULL;
}

weir_status_t* weir_fused_tail_apply(weir_kernel_ctx_t* ctx, const weir_fused_tail_t* tail,
                                     const weir_tail_run_t* run) {
  job_t job = {.tail = tail, .run = run};
  weir_status_t* status = stage_args(ctx, &job);
  find_code(&job);
  if (!status && run->rows > 0 && run->channels > 0)
    weir_pool_for(weir_kernel_pool(ctx), run->rows, (double)run->channels * 2, run_rows, &job);
  for (int i = 0; i < MAX_ARGS; ++i) weir_staged_release(&job.args[i]);
  return status;
}
