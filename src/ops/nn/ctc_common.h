// ctc_common.h — What the CTC ops share: logits [time, batch, classes] and the lengths of
// sequences.
#ifndef WEIR_OPS_NN_CTC_COMMON_H_
#define WEIR_OPS_NN_CTC_COMMON_H_

#include "kernel/nn/ctc.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

// Ranks: three dimensions and a vector.
WEIR_INLINE weir_status_t* weir_ctc_check_ranks(const weir_tensor_t* logits,
                                                const weir_tensor_t* lengths) {
  if (logits->rank != 3) return WEIR_STATUS(INVALID_ARGUMENT, "inputs is not a 3-Tensor");
  if (lengths->rank != 1) return WEIR_STATUS(INVALID_ARGUMENT, "sequence_length is not a vector");
  if (logits->dims[2] > INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "num_classes cannot exceed max int");
  }
  return NULL;
}

WEIR_INLINE weir_ctc_input_t weir_ctc_input(const weir_tensor_t* logits,
                                            const weir_tensor_t* lengths) {
  return (weir_ctc_input_t){.logits = logits->data,
                            .lengths = lengths->data,
                            .time = logits->dims[0],
                            .batch = logits->dims[1],
                            .classes = logits->dims[2]};
}

// The shapes of the logits (input 0) and of the lengths (input |i|), and the size of the batch.
WEIR_INLINE weir_status_t* weir_ctc_shapes(weir_shape_ctx_t* ctx, int i,
                                           const weir_shape_t** out_logits, int64_t* out_batch) {
  const weir_shape_t* lengths = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 3, out_logits));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 1, &lengths));
  return weir_dim_join(ctx, weir_shape_dim(*out_logits, 1), weir_shape_dim(lengths, 0), out_batch);
}

#endif  // WEIR_OPS_NN_CTC_COMMON_H_
