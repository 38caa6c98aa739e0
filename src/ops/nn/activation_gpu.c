// activation_gpu.c — Activations and their gradients on GPUs: the formulas of
// kernel/nn/activation.c, as CUDA.
#include "kernel/elementwise/cuda_elementwise.h"
#include "kernel/nn/activation_op.h"

// Of x, a here, and of the gradient and x (for Elu and Selu the activation's output), a and b.
typedef struct formulas_t {
  const char* forward;
  const char* backward;
} formulas_t;

static const formulas_t formulas[WEIR_ACTIVATION_COUNT] = {
    [WEIR_ACTIVATION_RELU] = {"a <= 0 ? (ACC)0 : a", "a * (ACC)(b > 0)"},
    [WEIR_ACTIVATION_RELU6] = {"a <= 0 ? (ACC)0 : a > 6 ? (ACC)6 : a", "a * (ACC)(b > 0 && b < 6)"},
    [WEIR_ACTIVATION_LEAKY_RELU] = {"a > 0 ? a : a * (ACC)", "b > 0 ? a : a * (ACC)"},  // alpha
    [WEIR_ACTIVATION_ELU] = {"a < 0 ? expm1(a) : a", "b < 0 ? (b + 1) * a : a"},
    [WEIR_ACTIVATION_SELU] = {"a < 0 ? (ACC)1.7580993408473768599 * expm1(a)"
                              " : (ACC)1.0507009873554804934 * a",
                              "b < 0 ? a * (b + (ACC)1.7580993408473768599)"
                              " : a * (ACC)1.0507009873554804934"},
    [WEIR_ACTIVATION_SOFTPLUS] = {"(a < 0 ? (ACC)0 : a) + log1p(exp(-fabs(a)))",
                                  "a / (exp(-b) + 1)"},
    [WEIR_ACTIVATION_SOFTSIGN] = {"a / (fabs(a) + 1)", "a / ((fabs(b) + 1) * (fabs(b) + 1))"},
};

static weir_status_t* find(const weir_kernel_init_t* init, weir_activation_t activation,
                           void* state) {
  weir_dtype_t dtype = weir_dtype_base(init->node->input_types[0]);
  bool is_forward = init->node->input_count == 1;
  weir_strbuf_t text = {0};
  weir_strbuf_puts(&text,
                   is_forward ? formulas[activation].forward : formulas[activation].backward);
  if (activation == WEIR_ACTIVATION_LEAKY_RELU)
    weir_strbuf_printf(&text, "%af", (double)weir_attrs_float(init->node->attrs, "alpha"));
  weir_status_t* status = weir_strbuf_finish(&text);
  if (!status)
    status = weir_cuda_formula_find(init->device, is_forward, text.data, dtype, dtype, state);
  weir_strbuf_free(&text);
  return status;
}

static weir_status_t* backward(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(weir_activation_op_check(ctx));
  return weir_cuda_binary_compute(ctx);
}

#define INIT(fn, ACTIVATION)                                              \
  static weir_status_t* fn(const weir_kernel_init_t* init, void* state) { \
    return find(init, WEIR_ACTIVATION_##ACTIVATION, state);               \
  }
INIT(relu, RELU)
INIT(relu6, RELU6)
INIT(leaky_relu, LEAKY_RELU)
INIT(elu, ELU)
INIT(selu, SELU)
INIT(softplus, SOFTPLUS)
INIT(softsign, SOFTSIGN)

#define ROW(Op, fn, compute_)                                                             \
  {                                                                                       \
    .name = Op, .kernels = (const weir_kernel_def_t[]) {                                  \
      {WEIR_DEVICE_GPU, .types = "T: bfloat16, half, float, double", .compute = compute_, \
       .init = fn, .state_size = sizeof(weir_cuda_elementwise_t)},                        \
      {                                                                                   \
        0                                                                                 \
      }                                                                                   \
    }                                                                                     \
  }
#define ROWS(Op, fn) ROW(Op, fn, weir_cuda_unary_compute), ROW(Op "Grad", fn, backward)

const weir_op_module_t weir_ops_nn_activation_gpu = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){ROWS("Relu", relu),
                                   ROWS("Relu6", relu6),
                                   ROWS("LeakyRelu", leaky_relu),
                                   ROWS("Elu", elu),
                                   ROWS("Selu", selu),
                                   ROWS("Softplus", softplus),
                                   ROWS("Softsign", softsign),
                                   {0}}};
