// cuda_fused_tail.c — fused_tail.cu for the activation at hand, and its launch.
#include "kernel/nn/cuda_fused_tail.h"

#include "kernel/cuda/source.h"
#include "kernel/elementwise/cuda_formula.h"
#include "kernel/nn/cuda_activation.h"

WEIR_CUDA_SOURCE(fused_tail);

static void put_formula(const weir_fused_tail_t* tail, weir_dtype_t dtype, weir_strbuf_t* out) {
  static const weir_activation_t activations[] = {
      [WEIR_TAIL_RELU] = WEIR_ACTIVATION_RELU,
      [WEIR_TAIL_RELU6] = WEIR_ACTIVATION_RELU6,
      [WEIR_TAIL_ELU] = WEIR_ACTIVATION_ELU,
      [WEIR_TAIL_LEAKY_RELU] = WEIR_ACTIVATION_LEAKY_RELU};
  switch (tail->function) {
    case WEIR_TAIL_NONE: weir_strbuf_puts(out, "a"); return;
    case WEIR_TAIL_TANH:
      weir_strbuf_puts(out, weir_cuda_unary_formula(WEIR_UNARY_TANH, dtype));
      return;
    case WEIR_TAIL_SIGMOID:
      weir_strbuf_puts(out, weir_cuda_unary_formula(WEIR_UNARY_SIGMOID, dtype));
      return;
    case WEIR_TAIL_GELU_APPROXIMATE:
      weir_strbuf_puts(out,
                       "(ACC)0.5 * a * ((ACC)1 + tanh((ACC)0.79788456080286535588 * (a + "
                       "(ACC)0.044715 * a * a * a)))");
      return;
    case WEIR_TAIL_GELU_EXACT:
      weir_strbuf_puts(out, "(ACC)0.5 * a * ((ACC)1 + erf(a * (ACC)0.70710678118654752440))");
      return;
    default: weir_cuda_activation_formula(activations[tail->function], false, tail->alpha, out);
  }
}

weir_status_t* weir_cuda_tail_find(weir_device_t* device, const weir_fused_tail_t* tail,
                                   weir_dtype_t dtype, weir_cuda_function_t* out_function) {
  weir_strbuf_t text = {0};
  if (tail->is_batch_norm)
    return WEIR_STATUS(UNIMPLEMENTED, "No GPU kernel has a batch normalisation behind a product");
  weir_strbuf_printf(&text, "#define T %s\n#define R T\ntypedef element_t<T>::acc_t ACC;\n",
                     weir_cuda_type_name(dtype));
  weir_cuda_put_words(&text);
  weir_strbuf_puts(&text, "#define RESULT(a) (");
  put_formula(tail, dtype, &text);
  weir_strbuf_puts(&text, ")\n");
  return weir_cuda_build(device, &text, weir_cuda_source_fused_tail, "fused_tail", out_function);
}

weir_status_t* weir_cuda_tail_apply(weir_device_t* device, weir_cuda_function_t function,
                                    const weir_cuda_tail_t* run) {
  weir_cuda_tail_t r = *run;
  int64_t n = r.rows * r.channels;
  if (n == 0) return NULL;
  weir_cuda_size_t size = weir_cuda_size_for(device, n);
  return weir_cuda_launch(device, function, &size,
                          WEIR_CUDA_ARGS(&r.y, &r.bias, &r.side, &n, &r.channels));
}
