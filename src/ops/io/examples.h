// examples.h — Example messages as dense, sparse and ragged tensors: what ParseExample, its kin and
// ParseExampleDataset share. Thread-confined.
#ifndef WEIR_OPS_IO_EXAMPLES_H_
#define WEIR_OPS_IO_EXAMPLES_H_

#include "op/kernel.h"

// What to read. Borrowed.
typedef struct weir_examples_plan_t {
  int64_t sparse_count, dense_count, ragged_count;
  const weir_view_t* keys;  // of the sparse ones, then of the dense, then of the ragged
  const weir_dtype_t *sparse_types, *dense_types, *ragged_types;
  const weir_dtype_t* split_types;          // of the ragged ones: INT32 or INT64
  const weir_shape_t* const* dense_shapes;  // the first dimension may be unknown, no other
  weir_tensor_t* const* defaults;           // one a dense key; empty: it must be there
} weir_examples_plan_t;

// The number of tensors that come out: indices, values and shapes of the sparse ones, then the
// dense, then values and splits of the ragged.
WEIR_INLINE int64_t weir_examples_output_count(const weir_examples_plan_t* plan) {
  return 3 * plan->sparse_count + plan->dense_count + 2 * plan->ragged_count;
}
// INVALID_ARGUMENT where more than the first dimension is unknown.
WEIR_MUST_USE weir_status_t* weir_examples_check_shapes(size_t count,
                                                        const weir_shape_t* const* shapes);
// INVALID_ARGUMENT where a default does not fit its shape.
WEIR_MUST_USE weir_status_t* weir_examples_check_defaults(const weir_examples_plan_t* plan);
// Reads the messages in |serialized|, a scalar or a vector; |names| of them are for messages, empty
// or NULL: they have none. |out|: owned references, all NULL on failure.
WEIR_MUST_USE weir_status_t* weir_examples_parse(const weir_examples_plan_t* plan,
                                                 const weir_tensor_t* serialized,
                                                 const weir_tensor_t* names, weir_tensor_t** out);

struct weir_feature_t;
// Writes the values of a feature to |out| from element |at| on.
WEIR_MUST_USE weir_status_t* weir_feature_put(const struct weir_feature_t* feature,
                                              weir_tensor_t* out, int64_t at);

#endif  // WEIR_OPS_IO_EXAMPLES_H_
