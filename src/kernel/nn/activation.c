// activation.c — Activation functions: branch-free loops that the compiler makes vectors of.
#include "kernel/nn/activation.h"

#include "kernel/elementwise/vmath.h"

enum { CHUNK = 256 };  // elements widened at a time

#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_SCALE_ALPHA 1.7580993408473768599402175208123

// NaN fails every comparison, so it stays itself; -0 becomes 0; the gradient of an infinite dy is
// NaN where x is negative.
#define FORWARD(x) weir_vm_select_((x) <= 0, 0, x)
#define BACKWARD(dy, x) ((dy) * ((x) > 0 ? 1 : 0))
#define FN relu
#define T float
#include "kernel/nn/activation_loop.inc"
#undef FORWARD
#define FORWARD(x) ((x) <= 0 ? 0 : (x))
#define T double
#include "kernel/nn/activation_loop.inc"
#define T int8_t
#include "kernel/nn/activation_loop.inc"
#define T int16_t
#include "kernel/nn/activation_loop.inc"
#define T int32_t
#include "kernel/nn/activation_loop.inc"
#define T int64_t
#include "kernel/nn/activation_loop.inc"
#undef FORWARD
#define FORWARD(x) (x)
#define T uint8_t
#include "kernel/nn/activation_loop.inc"
#define T uint16_t
#include "kernel/nn/activation_loop.inc"
#define T uint32_t
#include "kernel/nn/activation_loop.inc"
#define T uint64_t
#include "kernel/nn/activation_loop.inc"
#undef FN
#undef FORWARD
#undef BACKWARD

#define FORWARD(x) weir_vm_select_((x) <= 0, 0, weir_vm_select_((x) > 6, 6, x))
#define BACKWARD(dy, x) ((dy) * ((x) > 0 && (x) < 6 ? 1 : 0))
#define FN relu6
#define T float
#include "kernel/nn/activation_loop.inc"
#undef FORWARD
#define FORWARD(x) ((x) <= 0 ? 0 : (x) > 6 ? 6 : (x))
#define T double
#include "kernel/nn/activation_loop.inc"
#define T int8_t
#include "kernel/nn/activation_loop.inc"
#define T int16_t
#include "kernel/nn/activation_loop.inc"
#define T int32_t
#include "kernel/nn/activation_loop.inc"
#define T int64_t
#include "kernel/nn/activation_loop.inc"
#undef FORWARD
#define FORWARD(x) ((x) > 6 ? 6 : (x))
#define T uint8_t
#include "kernel/nn/activation_loop.inc"
#define T uint16_t
#include "kernel/nn/activation_loop.inc"
#define T uint32_t
#include "kernel/nn/activation_loop.inc"
#define T uint64_t
#include "kernel/nn/activation_loop.inc"
#undef FN
#undef FORWARD
#undef BACKWARD

#define FN leaky_relu
#define FORWARD(x) ((x) > 0 ? (x) : (x)*alpha)
#define BACKWARD(dy, x) ((x) > 0 ? (dy) : (dy)*alpha)
#define T float
#include "kernel/nn/activation_loop.inc"
#define T double
#include "kernel/nn/activation_loop.inc"
#undef FN
#undef FORWARD
#undef BACKWARD

#define FN elu
#define FORWARD(x) ((x) < 0 ? weir_vm_expm1(x) : (x))
#define BACKWARD(dy, y) ((y) < 0 ? ((y) + 1) * (dy) : (dy))
#define T float
#include "kernel/nn/activation_loop.inc"
#undef FORWARD
#define FORWARD(x) ((x) < 0 ? expm1(x) : (x))
#define T double
#include "kernel/nn/activation_loop.inc"
#undef FN
#undef FORWARD
#undef BACKWARD

#define FN selu
#define FORWARD(x) ((x) < 0 ? (float)SELU_SCALE_ALPHA * weir_vm_expm1(x) : (float)SELU_SCALE * (x))
#define BACKWARD(dy, y) \
  ((y) < 0 ? (dy) * ((y) + (float)SELU_SCALE_ALPHA) : (dy) * (float)SELU_SCALE)
#define T float
#include "kernel/nn/activation_loop.inc"
#undef FORWARD
#undef BACKWARD
#define FORWARD(x) ((x) < 0 ? SELU_SCALE_ALPHA * expm1(x) : SELU_SCALE * (x))
#define BACKWARD(dy, y) ((y) < 0 ? (dy) * ((y) + SELU_SCALE_ALPHA) : (dy)*SELU_SCALE)
#define T double
#include "kernel/nn/activation_loop.inc"
#undef FN
#undef FORWARD
#undef BACKWARD

// log(1 + exp(x)) without overflow; adding x < 0 ? 0 : x keeps a NaN.
#define FN softplus
#define FORWARD(x) (((x) < 0 ? 0 : (x)) + weir_vm_log1p(weir_vm_exp(-fabsf(x))))
#define BACKWARD(dy, x) ((dy) / (weir_vm_exp(-(x)) + 1))
#define T float
#include "kernel/nn/activation_loop.inc"
#undef FORWARD
#undef BACKWARD
#define FORWARD(x) (((x) < 0 ? 0 : (x)) + log1p(exp(-fabs(x))))
#define BACKWARD(dy, x) ((dy) / (exp(-(x)) + 1))
#define T double
#include "kernel/nn/activation_loop.inc"
#undef FN
#undef FORWARD
#undef BACKWARD

#define FN softsign
#define FORWARD(x) ((x) / (fabsf(x) + 1))
#define BACKWARD(dy, x) ((dy) / ((fabsf(x) + 1) * (fabsf(x) + 1)))
#define T float
#include "kernel/nn/activation_loop.inc"
#undef FORWARD
#undef BACKWARD
#define FORWARD(x) ((x) / (fabs(x) + 1))
#define BACKWARD(dy, x) ((dy) / ((fabs(x) + 1) * (fabs(x) + 1)))
#define T double
#include "kernel/nn/activation_loop.inc"
#undef FN
#undef FORWARD
#undef BACKWARD

// ---- half and bfloat16: widened a chunk at a time ----
typedef void (*float_fn_t)(const void* x, void* y, int64_t n, float alpha);
typedef void (*float_grad_fn_t)(const void* dy, const void* x, void* dx, int64_t n, float alpha);

static void widen(bool is_half, const uint16_t* from, float* to, int64_t n) {
  if (is_half) {
    for (int64_t i = 0; i < n; ++i) to[i] = weir_half_to_float((weir_half_t){from[i]});
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = weir_bfloat16_to_float((weir_bfloat16_t){from[i]});
  }
}

static void narrow(bool is_half, const float* from, uint16_t* to, int64_t n) {
  if (is_half) {
    for (int64_t i = 0; i < n; ++i) to[i] = weir_half_from_float(from[i]).bits;
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = weir_bfloat16_from_float(from[i]).bits;
  }
}

float weir_activation_alpha(weir_dtype_t dtype, float alpha) {
  if (dtype == WEIR_DTYPE_HALF) return weir_half_to_float(weir_half_from_float(alpha));
  if (dtype == WEIR_DTYPE_BFLOAT16) return weir_bfloat16_to_float(weir_bfloat16_from_float(alpha));
  return alpha;
}

static void apply_narrow(float_fn_t fn, bool is_half, const void* x, void* y, int64_t n,
                         float alpha) {
  float chunk[CHUNK];
  alpha = weir_activation_alpha(is_half ? WEIR_DTYPE_HALF : WEIR_DTYPE_BFLOAT16, alpha);
  for (int64_t i = 0; i < n; i += CHUNK) {
    int64_t count = WEIR_MIN(CHUNK, n - i);
    widen(is_half, (const uint16_t*)x + i, chunk, count);
    fn(chunk, chunk, count, alpha);
    narrow(is_half, chunk, (uint16_t*)y + i, count);
  }
}

static void apply_narrow_grad(float_grad_fn_t fn, bool is_half, const void* dy, const void* x,
                              void* dx, int64_t n, float alpha) {
  float a[CHUNK], b[CHUNK];
  alpha = weir_activation_alpha(is_half ? WEIR_DTYPE_HALF : WEIR_DTYPE_BFLOAT16, alpha);
  for (int64_t i = 0; i < n; i += CHUNK) {
    int64_t count = WEIR_MIN(CHUNK, n - i);
    widen(is_half, (const uint16_t*)dy + i, a, count);
    widen(is_half, (const uint16_t*)x + i, b, count);
    fn(a, b, a, count, alpha);
    narrow(is_half, a, (uint16_t*)dx + i, count);
  }
}

#define FLOATING_LIST(X) X(relu) X(relu6) X(leaky_relu) X(elu) X(selu) X(softplus) X(softsign)
#define ARGS const void *x, void *y, int64_t n, float alpha
#define GRAD_ARGS const void *dy, const void *x, void *dx, int64_t n, float alpha
#define X(fn)                                                                          \
  static void fn##_half(ARGS) { apply_narrow(fn##_float, true, x, y, n, alpha); }      \
  static void fn##_bfloat16(ARGS) { apply_narrow(fn##_float, false, x, y, n, alpha); } \
  static void fn##_grad_half(GRAD_ARGS) {                                              \
    apply_narrow_grad(fn##_grad_float, true, dy, x, dx, n, alpha);                     \
  }                                                                                    \
  static void fn##_grad_bfloat16(GRAD_ARGS) {                                          \
    apply_narrow_grad(fn##_grad_float, false, dy, x, dx, n, alpha);                    \
  }
FLOATING_LIST(X)
#undef X

typedef struct row_t {
  weir_activation_loop_fn_t forward;
  weir_activation_grad_fn_t backward;
} row_t;

#define ROW(DTYPE, fn, t) [WEIR_DTYPE_##DTYPE] = {fn##_##t, fn##_grad_##t}
#define FLOATING(fn) \
  ROW(FLOAT, fn, float), ROW(DOUBLE, fn, double), ROW(HALF, fn, half), ROW(BFLOAT16, fn, bfloat16)
#define INTEGER(fn)                                                                \
  ROW(INT8, fn, int8_t), ROW(INT16, fn, int16_t), ROW(INT32, fn, int32_t),         \
      ROW(INT64, fn, int64_t), ROW(UINT8, fn, uint8_t), ROW(UINT16, fn, uint16_t), \
      ROW(UINT32, fn, uint32_t), ROW(UINT64, fn, uint64_t)
static const row_t rows[WEIR_ACTIVATION_COUNT][WEIR_DTYPE_COUNT] = {
    [WEIR_ACTIVATION_RELU] = {FLOATING(relu), INTEGER(relu)},
    [WEIR_ACTIVATION_RELU6] = {FLOATING(relu6), INTEGER(relu6)},
    [WEIR_ACTIVATION_LEAKY_RELU] = {FLOATING(leaky_relu)},
    [WEIR_ACTIVATION_ELU] = {FLOATING(elu)},
    [WEIR_ACTIVATION_SELU] = {FLOATING(selu)},
    [WEIR_ACTIVATION_SOFTPLUS] = {FLOATING(softplus)},
    [WEIR_ACTIVATION_SOFTSIGN] = {FLOATING(softsign)},
};

weir_activation_loop_fn_t weir_activation_find(weir_activation_t activation, weir_dtype_t dtype) {
  return dtype < WEIR_DTYPE_COUNT ? rows[activation][dtype].forward : NULL;
}

weir_activation_grad_fn_t weir_activation_grad_find(weir_activation_t activation,
                                                    weir_dtype_t dtype) {
  return dtype < WEIR_DTYPE_COUNT ? rows[activation][dtype].backward : NULL;
}

double weir_activation_cost(weir_activation_t activation) {
  static const double costs[WEIR_ACTIVATION_COUNT] = {
      [WEIR_ACTIVATION_RELU] = 0.3,       [WEIR_ACTIVATION_RELU6] = 0.3,
      [WEIR_ACTIVATION_LEAKY_RELU] = 0.3, [WEIR_ACTIVATION_ELU] = 2,
      [WEIR_ACTIVATION_SELU] = 2,         [WEIR_ACTIVATION_SOFTPLUS] = 4,
      [WEIR_ACTIVATION_SOFTSIGN] = 1};
  return costs[activation];
}
