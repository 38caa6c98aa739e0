// block_rnn.h — What the ops of whole recurrent cells share: checks of many inputs, and all of them
// in float.
#ifndef WEIR_OPS_NN_BLOCK_RNN_H_
#define WEIR_OPS_NN_BLOCK_RNN_H_

#include "kernel/move/staging.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

// A dimension that an input must have, and what it is called in messages.
typedef struct weir_rnn_dim_t {
  const char* name;
  int64_t size;
} weir_rnn_dim_t;

// INVALID_ARGUMENT "cs_prev.dim_size(0) != batch_size: 3 vs. 2"; dimensions that are not there fit.
WEIR_MUST_USE weir_status_t* weir_rnn_check_sizes(const weir_tensor_t* tensor, const char* name,
                                                  int rank, const weir_rnn_dim_t* dims);
// That, or before it "cs_prev must be rank 2 but is rank 1".
WEIR_MUST_USE weir_status_t* weir_rnn_check(const weir_tensor_t* tensor, const char* name, int rank,
                                            const weir_rnn_dim_t* dims);

enum { WEIR_RNN_INPUTS = 17, WEIR_RNN_OUTPUTS = 8 };
typedef struct weir_rnn_io_t {
  const float* in[WEIR_RNN_INPUTS];
  float* out[WEIR_RNN_OUTPUTS];
  weir_tensor_t* outputs[WEIR_RNN_OUTPUTS];  // the first |output_count| are set before
  int output_count;
  weir_staged_t staged_in[WEIR_RNN_INPUTS];
  weir_staged_t staged_out[WEIR_RNN_OUTPUTS];
} weir_rnn_io_t;
// Inputs from |first| on.
WEIR_MUST_USE weir_status_t* weir_rnn_stage(weir_kernel_ctx_t* ctx, int first, int count,
                                            weir_rnn_io_t* io);
// Brings what was written into the outputs, unless |status| is an error, and frees what was staged.
WEIR_MUST_USE weir_status_t* weir_rnn_finish(weir_kernel_ctx_t* ctx, weir_rnn_io_t* io,
                                             weir_status_t* status);

#endif  // WEIR_OPS_NN_BLOCK_RNN_H_
