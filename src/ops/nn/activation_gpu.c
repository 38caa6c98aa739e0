// activation_gpu.c — Activations and their gradients on GPUs.
#include "kernel/elementwise/cuda_elementwise.h"
#include "kernel/nn/activation_op.h"
#include "kernel/nn/cuda_activation.h"

static weir_status_t* find(const weir_kernel_init_t* init, weir_activation_t activation,
                           void* state) {
  weir_dtype_t dtype = weir_dtype_base(init->node->input_types[0]);
  bool is_forward = init->node->input_count == 1;
  weir_strbuf_t text = {0};
  float alpha =
      activation == WEIR_ACTIVATION_LEAKY_RELU ? weir_attrs_float(init->node->attrs, "alpha") : 0;
  weir_cuda_activation_formula(activation, !is_forward, weir_activation_alpha(dtype, alpha), &text);
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
