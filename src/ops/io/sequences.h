// sequences.h — SequenceExample messages as tensors: what ParseSequenceExample and its kin share.
// Thread-confined.
#ifndef WEIR_OPS_IO_SEQUENCES_H_
#define WEIR_OPS_IO_SEQUENCES_H_

#include "op/kernel.h"

// Features to read: of the context, or lists of them. Borrowed.
typedef struct weir_feature_set_t {
  int64_t sparse_count, dense_count, ragged_count;
  const weir_view_t* keys;  // of the sparse ones, then of the dense, then of the ragged
  const weir_dtype_t *sparse_types, *dense_types, *ragged_types;
  const weir_dtype_t* split_types;          // of the ragged ones: INT32 or INT64
  const weir_shape_t* const* dense_shapes;  // of one feature; all known
} weir_feature_set_t;

typedef struct weir_sequences_plan_t {
  weir_feature_set_t context, lists;
  weir_tensor_t* const* defaults;  // one a dense feature of the context; empty: it must be there
  const bool* may_miss;            // one a dense list
  // ParseSingleSequenceExample: a dense feature must have a type, a key may be read in several
  // ways, and there are no lengths.
  bool is_single;
} weir_sequences_plan_t;

int64_t weir_sequences_output_count(const weir_sequences_plan_t* plan);
// INVALID_ARGUMENT where a default is not of its feature's shape.
WEIR_MUST_USE weir_status_t* weir_sequences_check_defaults(const weir_sequences_plan_t* plan);
// Reads the messages in |serialized|, a scalar or a vector. |names| of them, for messages, are as
// many or none. |out|: owned references, all NULL on failure: of the context indices, values and
// shapes of the sparse, the dense, values and splits of the ragged; then of the lists the same,
// where lengths follow the dense ones, and splits are outer ones and then inner ones.
WEIR_MUST_USE weir_status_t* weir_sequences_parse(const weir_sequences_plan_t* plan,
                                                  const weir_tensor_t* serialized,
                                                  const weir_tensor_t* names, weir_tensor_t** out);

#endif  // WEIR_OPS_IO_SEQUENCES_H_
