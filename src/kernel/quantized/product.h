// product.h — Products of matrices and convolutions of eight-bit numbers, each less an offset, in
// 32 bits that wrap. Thread-safe.
#ifndef WEIR_KERNEL_QUANTIZED_PRODUCT_H_
#define WEIR_KERNEL_QUANTIZED_PRODUCT_H_

#include "base/thread.h"
#include "weir/dtype.h"

// A matrix or filter of eight-bit numbers.
typedef struct weir_eight_bits_t {
  const void* data;
  bool is_signed;
  int32_t offset;  // that zero has
} weir_eight_bits_t;

// c = op(a) op(b), which are m x k and k x n. Both: RESOURCE_EXHAUSTED without memory for copies.
typedef struct weir_quantized_matmul_t {
  weir_eight_bits_t a, b;
  bool transpose_a, transpose_b;
  int64_t m, n, k;
} weir_quantized_matmul_t;
WEIR_MUST_USE weir_status_t* weir_quantized_matmul(weir_pool_t* pool,
                                                   const weir_quantized_matmul_t* args, int32_t* c);

// Images with channels last, a filter [height, width, in, out]. What is beyond an image is zero.
typedef struct weir_quantized_conv_t {
  weir_eight_bits_t input, filter;
  int64_t batch, in_h, in_w, in_depth;
  int64_t filter_h, filter_w, out_depth;
  int64_t out_h, out_w, stride, top, left;  // the first window begins at -top, -left
} weir_quantized_conv_t;
WEIR_MUST_USE weir_status_t* weir_quantized_conv(weir_pool_t* pool,
                                                 const weir_quantized_conv_t* args, int32_t* out);

#endif  // WEIR_KERNEL_QUANTIZED_PRODUCT_H_
