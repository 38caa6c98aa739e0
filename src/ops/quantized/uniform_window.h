// uniform_window.h — The geometry of convolutions over any number of axes, from attributes.
#ifndef WEIR_OPS_QUANTIZED_UNIFORM_WINDOW_H_
#define WEIR_OPS_QUANTIZED_UNIFORM_WINDOW_H_

#include "op/attr.h"

typedef struct uniform_window_t {
  int axes;
  int64_t stride[WEIR_MAX_RANK], lhs_dilation[WEIR_MAX_RANK], rhs_dilation[WEIR_MAX_RANK];
  int64_t before[WEIR_MAX_RANK], after[WEIR_MAX_RANK];
  int64_t feature_groups, batch_groups;
  // Dimensions: batch and feature (of the filter: output and input feature), then the axes.
  int lhs[WEIR_MAX_RANK], rhs[WEIR_MAX_RANK], out[WEIR_MAX_RANK];
} uniform_window_t;

// What can be said without shapes. INVALID_ARGUMENT in TensorFlow's words; so do the others.
WEIR_MUST_USE weir_status_t* uniform_window_read(weir_attrs_t attrs, uniform_window_t* out);
// Completes |w| for operands of these shapes, and finds the result's.
WEIR_MUST_USE weir_status_t* uniform_window_fit(weir_attrs_t attrs, uniform_window_t* w,
                                                int lhs_rank, const int64_t* lhs, int rhs_rank,
                                                const int64_t* rhs, int64_t* out_dims);

#endif  // WEIR_OPS_QUANTIZED_UNIFORM_WINDOW_H_
