// there.h — Collectives of members on GPUs of one process: which of them NCCL does.
#ifndef WEIR_OPS_COLLECTIVE_THERE_H_
#define WEIR_OPS_COLLECTIVE_THERE_H_

#include "device/cuda/cuda_nccl.h"
#include "ops/collective/member.h"

// NCCL's word for how elements are merged; a mean is one of sums.
weir_nccl_merge_t weir_collective_merge_there(const weir_collective_t* what);
// Whether NCCL, if it is there, knows the type and how it is merged.
bool weir_collective_can_there(const weir_collective_t* what);

// A member on a device whose memory the host cannot read, whose collective goes through the host:
// what it brings is copied there, and what it gets back. |finish| as of weir_member_start, whose
// course this is.
void weir_member_start_staged(weir_kernel_ctx_t* ctx, const weir_collective_t* what,
                              weir_tensor_t* tensor, weir_member_finish_fn_t finish,
                              weir_done_t done);

#endif  // WEIR_OPS_COLLECTIVE_THERE_H_
