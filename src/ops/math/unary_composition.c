// unary_composition.c — _UnaryOpsComposition: elementwise functions one after another, as
// TensorFlow's graph optimizer joins chains of them.
#include "kernel/nn/activation.h"
#include "ops/math/common.h"

enum { MAX_STEPS = 64 };

// One function of the chain: by elementwise.h or by activation.h.
typedef struct step_t {
  weir_unary_fn_t unary;
  weir_activation_loop_fn_t activation;
} step_t;

typedef struct chain_t {
  int count;
  size_t size;  // of an element
  double cost;
  step_t steps[MAX_STEPS];
} chain_t;

static const struct {
  const char* name;
  weir_unary_op_t op;
} unaries[] = {{"Abs", WEIR_UNARY_ABS},     {"Acos", WEIR_UNARY_ACOS},
               {"Acosh", WEIR_UNARY_ACOSH}, {"Asin", WEIR_UNARY_ASIN},
               {"Asinh", WEIR_UNARY_ASINH}, {"Atan", WEIR_UNARY_ATAN},
               {"Atanh", WEIR_UNARY_ATANH}, {"Ceil", WEIR_UNARY_CEIL},
               {"Cos", WEIR_UNARY_COS},     {"Cosh", WEIR_UNARY_COSH},
               {"Expm1", WEIR_UNARY_EXPM1}, {"Exp", WEIR_UNARY_EXP},
               {"Floor", WEIR_UNARY_FLOOR}, {"Inv", WEIR_UNARY_RECIPROCAL},
               {"Log", WEIR_UNARY_LOG},     {"Log1p", WEIR_UNARY_LOG1P},
               {"Neg", WEIR_UNARY_NEG},     {"Reciprocal", WEIR_UNARY_RECIPROCAL},
               {"Rint", WEIR_UNARY_RINT},   {"Round", WEIR_UNARY_ROUND},
               {"Rsqrt", WEIR_UNARY_RSQRT}, {"Sigmoid", WEIR_UNARY_SIGMOID},
               {"Sin", WEIR_UNARY_SIN},     {"Sinh", WEIR_UNARY_SINH},
               {"Sqrt", WEIR_UNARY_SQRT},   {"Square", WEIR_UNARY_SQUARE},
               {"Tan", WEIR_UNARY_TAN},     {"Tanh", WEIR_UNARY_TANH}};

static const struct {
  const char* name;
  weir_activation_t op;
} activations[] = {{"Elu", WEIR_ACTIVATION_ELU},
                   {"Relu", WEIR_ACTIVATION_RELU},
                   {"Relu6", WEIR_ACTIVATION_RELU6},
                   {"Selu", WEIR_ACTIVATION_SELU}};

static bool find_step(weir_view_t name, weir_dtype_t dtype, step_t* out_step, double* cost) {
  for (size_t i = 0; i < WEIR_COUNT_OF(unaries); ++i) {
    if (!weir_view_equal(name, weir_view_of(unaries[i].name))) continue;
    out_step->unary = weir_unary_find(unaries[i].op, dtype);
    *cost += weir_unary_cost(unaries[i].op);
  }
  for (size_t i = 0; i < WEIR_COUNT_OF(activations); ++i) {
    if (!weir_view_equal(name, weir_view_of(activations[i].name))) continue;
    out_step->activation = weir_activation_find(activations[i].op, dtype);
    *cost += weir_activation_cost(activations[i].op);
  }
  return out_step->unary || out_step->activation;
}

static weir_status_t* chain_init(const weir_kernel_init_t* init, void* state) {
  chain_t* chain = state;
  const weir_attr_t* names = weir_attrs_list(init->node->attrs, "op_names");
  weir_dtype_t dtype = weir_attrs_type(init->node->attrs, "T");
  if (names->count == 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Unary op composition must have at least one op");
  if (names->count > MAX_STEPS) {
    return WEIR_STATUS(UNIMPLEMENTED, "A composition of %zu unary ops; at most %d are possible",
                       names->count, MAX_STEPS);
  }
  *chain = (chain_t){.count = (int)names->count, .size = weir_dtype_size(dtype)};
  for (int i = 0; i < chain->count; ++i) {
    if (find_step(names->u.strings[i], dtype, &chain->steps[i], &chain->cost)) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Do not have a compute function registered for op: %.*s of type %s",
                       WEIR_VIEW_ARG(names->u.strings[i]), weir_dtype_name(dtype));
  }
  return NULL;
}

typedef struct job_t {
  const chain_t* chain;
  const char* x;
  char* y;
} job_t;

// Block by block, so that what one function writes is still in the cache for the next.
static void run_range(void* arg, int64_t begin, int64_t end) {
  const job_t* job = arg;
  enum { BLOCK = 1024 };
  for (int64_t at = begin; at < end; at += BLOCK) {
    int64_t n = WEIR_MIN((int64_t)BLOCK, end - at);
    const char* x = job->x + (size_t)at * job->chain->size;
    char* y = job->y + (size_t)at * job->chain->size;
    for (int i = 0; i < job->chain->count; ++i, x = y) {
      const step_t* step = &job->chain->steps[i];
      if (step->unary) step->unary(x, y, n);
      else step->activation(x, y, n, 0);
    }
  }
}

static weir_status_t* chain_cpu(weir_kernel_ctx_t* ctx) {
  const chain_t* chain = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  job_t job = {.chain = chain, .x = x->data};
  int64_t count = x->count;
  weir_tensor_t* y;
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &y));
  job.y = y->data;
  if (count > 0) weir_pool_for(weir_kernel_pool(ctx), count, chain->cost, run_range, &job);
  return NULL;
}

const weir_op_module_t weir_ops_math_unary_composition = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "_UnaryOpsComposition",
         .summary = "Elementwise functions, one after another",
         .attrs = "T: {float, half, double}; op_names: list(string)",
         .inputs = "x: T",
         .outputs = "y: T",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = chain_cpu, .init = chain_init,
                                    .state_size = sizeof(chain_t))},
        {0}}};
