// block_rnn.c — Checks and staging of the many inputs of recurrent cells.
#include "ops/nn/block_rnn.h"

weir_status_t* weir_rnn_check_sizes(const weir_tensor_t* tensor, const char* name, int rank,
                                    const weir_rnn_dim_t* dims) {
  for (int i = 0; i < WEIR_MIN(rank, tensor->rank); ++i) {
    if (tensor->dims[i] == dims[i].size) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s.dim_size(%d) != %s: %lld vs. %lld", name, i,
                       dims[i].name, (long long)tensor->dims[i], (long long)dims[i].size);
  }
  return NULL;
}

weir_status_t* weir_rnn_check(const weir_tensor_t* tensor, const char* name, int rank,
                              const weir_rnn_dim_t* dims) {
  if (tensor->rank != rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s must be rank %d but is rank %d", name, rank,
                       tensor->rank);
  }
  return weir_rnn_check_sizes(tensor, name, rank, dims);
}

weir_status_t* weir_rnn_stage(weir_kernel_ctx_t* ctx, int first, int count, weir_rnn_io_t* io) {
  for (int i = 0; i < count; ++i) {
    WEIR_TRY(weir_stage_input(ctx, weir_kernel_input(ctx, first + i), false, &io->staged_in[i]));
    io->in[i] = io->staged_in[i].data;
  }
  for (int i = 0; i < io->output_count; ++i) {
    WEIR_TRY(weir_stage_output(ctx, io->outputs[i], false, &io->staged_out[i]));
    io->out[i] = io->staged_out[i].data;
  }
  return NULL;
}

weir_status_t* weir_rnn_finish(weir_kernel_ctx_t* ctx, weir_rnn_io_t* io, weir_status_t* status) {
  for (int i = 0; !status && i < io->output_count; ++i) {
    status = weir_stage_finish(ctx, io->outputs[i], false, &io->staged_out[i]);
  }
  for (int i = 0; i < WEIR_RNN_INPUTS; ++i) weir_staged_release(&io->staged_in[i]);
  for (int i = 0; i < WEIR_RNN_OUTPUTS; ++i) weir_staged_release(&io->staged_out[i]);
  return status;
}
