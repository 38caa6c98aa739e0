// cuda_activation.c — The formulas of activation.c, as CUDA.
#include "kernel/nn/cuda_activation.h"

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

void weir_cuda_activation_formula(weir_activation_t activation, bool is_gradient, float alpha,
                                  weir_strbuf_t* out) {
  const formulas_t* both = &formulas[activation];
  weir_strbuf_puts(out, is_gradient ? both->backward : both->forward);
  if (activation == WEIR_ACTIVATION_LEAKY_RELU) weir_strbuf_printf(out, "%af", (double)alpha);
}
