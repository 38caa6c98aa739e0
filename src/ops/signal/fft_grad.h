// fft_grad.h — Gradients of the Fourier transforms of fft.c.
#ifndef WEIR_OPS_SIGNAL_FFT_GRAD_H_
#define WEIR_OPS_SIGNAL_FFT_GRAD_H_

#include "ops/math/common.h"

// shape[begin:end] of a vector; |end| 0: to its end. |is_scalar|: the element at |begin|.
static inline weir_edge_t fft_slice(weir_grad_ctx_t* g, weir_edge_t shape, int32_t begin,
                                    int32_t end, bool is_scalar) {
  weir_edge_t one = weir_build_int32s(g->builder, (const int32_t[]){1}, 1);
  return weir_grad_node_with(g, "StridedSlice",
                             WEIR_EDGES(shape, weir_build_int32s(g->builder, &begin, 1),
                                        weir_build_int32s(g->builder, &end, 1), one),
                             WEIR_ATTRS(weir_attr_int("end_mask", end == 0),
                                        weir_attr_int("shrink_axis_mask", is_scalar)));
}

// The number of elements of |x| in its last |axes| dimensions.
static inline weir_edge_t fft_size(weir_grad_ctx_t* g, weir_edge_t x, int axes) {
  weir_edge_t last = fft_slice(g, weir_grad_shape_of(g, x), -axes, 0, false);
  return node2(g, "Prod", last, weir_build_int32(g->builder, 0));
}

// x[..., begin:end].
static inline weir_edge_t fft_columns(weir_grad_ctx_t* g, weir_edge_t x, int64_t begin,
                                      int64_t end) {
  return weir_grad_node_with(
      g, "StridedSlice",
      WEIR_EDGES(x, weir_build_int64s(g->builder, (const int64_t[]){0, begin}, 2),
                 weir_build_int64s(g->builder, (const int64_t[]){0, end}, 2),
                 weir_build_int64s(g->builder, (const int64_t[]){1, 1}, 2)),
      WEIR_ATTRS(weir_attr_int("ellipsis_mask", 1), weir_attr_int("end_mask", end == 0 ? 2 : 0)));
}

static inline weir_dtype_t fft_real_type(weir_dtype_t dtype) {
  return dtype == WEIR_DTYPE_COMPLEX64 ? WEIR_DTYPE_FLOAT : WEIR_DTYPE_DOUBLE;
}

static inline weir_edge_t fft_ints(weir_grad_ctx_t* g, weir_edge_t count) {
  return node3(g, "Range", weir_build_int32(g->builder, 0), count, weir_build_int32(g->builder, 1));
}

// ---- complex ones: the other transform, without or with the scale ----

static inline weir_status_t* fft_grad(weir_grad_ctx_t* g, const char* inverse, int axes) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t size = cast_to(g, fft_size(g, dy, axes), weir_grad_dtype(g, dy));
  return weir_grad_set(g, 0, weir_grad_mul(g, node1(g, inverse, dy), size));
}
static inline weir_status_t* ifft_grad(weir_grad_ctx_t* g, const char* forward, int axes) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  const weir_dtype_t dtype = weir_grad_dtype(g, dy);
  weir_edge_t size = cast_to(g, fft_size(g, dy, axes), fft_real_type(dtype));
  weir_edge_t part = cast_to(g, node1(g, "Reciprocal", size), dtype);
  return weir_grad_set(g, 0, weir_grad_mul(g, node1(g, forward, dy), part));
}
static weir_status_t* fft1_grad(weir_grad_ctx_t* g) { return fft_grad(g, "IFFT", 1); }
static weir_status_t* fft2_grad(weir_grad_ctx_t* g) { return fft_grad(g, "IFFT2D", 2); }
static weir_status_t* fft3_grad(weir_grad_ctx_t* g) { return fft_grad(g, "IFFT3D", 3); }
static weir_status_t* ifft1_grad(weir_grad_ctx_t* g) { return ifft_grad(g, "FFT", 1); }
static weir_status_t* ifft2_grad(weir_grad_ctx_t* g) { return ifft_grad(g, "FFT2D", 2); }
static weir_status_t* ifft3_grad(weir_grad_ctx_t* g) { return ifft_grad(g, "FFT3D", 3); }

// ---- from real numbers ----

// 1, -1, 1, ... as numbers of |dtype|.
static inline weir_edge_t fft_signs(weir_grad_ctx_t* g, weir_edge_t count, weir_dtype_t dtype) {
  weir_edge_t two = weir_build_int32(g->builder, 2);
  weir_edge_t odd = node2(g, "FloorMod", fft_ints(g, count), two);
  weir_edge_t sign = node2(g, "Sub", weir_build_int32(g->builder, 1), weir_grad_mul(g, two, odd));
  return cast_to(g, sign, dtype);
}

// The matrix of the transform of |n| numbers.
static inline weir_edge_t fft_matrix(weir_grad_ctx_t* g, weir_edge_t n, weir_dtype_t dtype) {
  weir_edge_t ints = fft_ints(g, n);
  weir_edge_t products =
      weir_grad_mul(g, node2(g, "ExpandDims", ints, weir_build_int32(g->builder, 1)),
                    node2(g, "ExpandDims", ints, weir_build_int32(g->builder, 0)));
  const weir_dtype_t part = fft_real_type(dtype);
  weir_edge_t turn =
      weir_grad_node_with(g, "Complex",
                          WEIR_EDGES(weir_build_scalar(g->builder, part, 0),
                                     weir_build_scalar(g->builder, part, -6.28318530717958647692)),
                          WEIR_ATTRS(weir_attr_type("Tout", dtype)));
  weir_edge_t angle = weir_grad_mul(g, turn, cast_to(g, products, dtype));
  return node1(g, "Exp", node2(g, "RealDiv", angle, cast_to(g, n, dtype)));
}

// The inverse transform counts elements twice that are there once: the first column's, and, of an
// even length, the last one's. |axes| is 1 or 2.
static inline weir_status_t* rfft_grad(weir_grad_ctx_t* g, const char* inverse, int axes) {
  weir_edge_t x = weir_grad_input(g, 0), length = weir_grad_input(g, 1), dy = weir_grad_dy(g, 0);
  const weir_dtype_t dtype = weir_grad_dtype(g, dy), part = fft_real_type(dtype);
  weir_edge_t shape = weir_grad_shape_of(g, x), two = weir_build_int32(g->builder, 2);
  weir_edge_t odd = node2(g, "FloorMod", fft_slice(g, length, -1, 0, true), two);
  weir_edge_t is_even = cast_to(g, node2(g, "Sub", weir_build_int32(g->builder, 1), odd), dtype);
  weir_edge_t first = fft_columns(g, dy, 0, 1), last = fft_columns(g, dy, -1, 0);
  if (axes == 2) {
    weir_edge_t matrix = fft_matrix(g, fft_slice(g, shape, -2, -1, true), dtype);
    first = node2(g, "BatchMatMulV2", matrix, weir_grad_conj(g, first));
    last = node2(g, "BatchMatMulV2", matrix, weir_grad_conj(g, last));
  }
  weir_edge_t signs = fft_signs(g, fft_slice(g, shape, -1, 0, true), dtype);
  weir_edge_t once =
      node2(g, "AddV2", first, weir_grad_mul(g, is_even, weir_grad_mul(g, last, signs)));
  once = weir_grad_node_with(g, "Real", WEIR_EDGES(once), WEIR_ATTRS(weir_attr_type("Tout", part)));
  weir_edge_t twice = weir_grad_node_with(
      g, inverse, WEIR_EDGES(dy, length),
      WEIR_ATTRS(weir_attr_type("Treal", part), weir_attr_type("Tcomplex", dtype)));
  twice = weir_grad_mul(g, twice, cast_to(g, fft_size(g, x, axes), part));
  weir_edge_t sum = node2(g, "AddV2", twice, once);
  return weir_grad_set(g, 0, weir_grad_mul(g, weir_grad_scalar(g, sum, 0.5), sum));
}
static weir_status_t* rfft1_grad(weir_grad_ctx_t* g) { return rfft_grad(g, "IRFFT", 1); }
static weir_status_t* rfft2_grad(weir_grad_ctx_t* g) { return rfft_grad(g, "IRFFT2D", 2); }

// ---- to real numbers ----

static inline weir_edge_t fft_fill(weir_grad_ctx_t* g, weir_edge_t count, weir_dtype_t dtype,
                                   double value) {
  weir_edge_t dims = node2(g, "ExpandDims", count, weir_build_int32(g->builder, 0));
  return node2(g, "Fill", dims, weir_build_scalar(g->builder, dtype, value));
}

static inline weir_status_t* irfft_grad(weir_grad_ctx_t* g, const char* forward, int axes) {
  weir_edge_t length = weir_grad_input(g, 1), dy = weir_grad_dy(g, 0);
  const weir_dtype_t part = weir_grad_dtype(g, dy);
  const weir_dtype_t dtype = weir_attrs_type(weir_grad_attrs(g), "Tcomplex");
  weir_edge_t one = weir_build_int32(g->builder, 1), two = weir_build_int32(g->builder, 2);
  weir_edge_t odd = node2(g, "FloorMod", fft_slice(g, length, -1, 0, true), two);
  weir_edge_t columns = fft_slice(g, weir_grad_shape_of(g, weir_grad_input(g, 0)), -1, 0, true);
  weir_edge_t inner = node2(g, "AddV2", node2(g, "Sub", columns, two), odd);
  weir_edge_t parts[] = {fft_fill(g, one, part, 1), fft_fill(g, inner, part, 2),
                         fft_fill(g, node2(g, "Sub", one, odd), part, 1)};
  weir_edge_t mask = weir_grad_node_with(
      g, "ConcatV2", WEIR_EDGES(parts[0], parts[1], parts[2], weir_build_int32(g->builder, 0)),
      WEIR_ATTRS(weir_attr_int("N", 3)));
  weir_edge_t size = cast_to(g, fft_size(g, dy, axes), part);
  weir_edge_t scale = weir_grad_mul(g, node1(g, "Reciprocal", size), mask);
  weir_edge_t dx = weir_grad_node_with(
      g, forward, WEIR_EDGES(dy, length),
      WEIR_ATTRS(weir_attr_type("Treal", part), weir_attr_type("Tcomplex", dtype)));
  return weir_grad_set(g, 0, weir_grad_mul(g, dx, cast_to(g, scale, dtype)));
}
static weir_status_t* irfft1_grad(weir_grad_ctx_t* g) { return irfft_grad(g, "RFFT", 1); }
static weir_status_t* irfft2_grad(weir_grad_ctx_t* g) { return irfft_grad(g, "RFFT2D", 2); }

#endif  // WEIR_OPS_SIGNAL_FFT_GRAD_H_
