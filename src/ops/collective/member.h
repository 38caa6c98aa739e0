// member.h — A kernel that takes part in a collective: what its node says, and its way to the hub.
#ifndef WEIR_OPS_COLLECTIVE_MEMBER_H_
#define WEIR_OPS_COLLECTIVE_MEMBER_H_

#include "device/cuda/cuda.h"
#include "op/kernel.h"
#include "ops/collective/hub.h"

// Inputs of kernels with keys that are inputs: in host memory.
#define WEIR_MEMBER_KEYS "group_size, group_key, instance_key"
// The same kernel on CPUs and GPUs: where its collective is computed, weir_member_start finds out.
#define WEIR_MEMBER_KERNELS(...)                                               \
  ((const weir_kernel_def_t[]){                                                \
      {WEIR_DEVICE_CPU, .state_size = sizeof(weir_collective_t), __VA_ARGS__}, \
      {WEIR_DEVICE_GPU, .state_size = sizeof(weir_collective_t), __VA_ARGS__}, \
      {0}})

// Reads the attributes that a node has: T, merge_op, final_op, communication_hint, timeout_seconds,
// and the keys where they are attributes.
WEIR_MUST_USE weir_status_t* weir_member_init(const weir_kernel_init_t* init,
                                              weir_collective_kind_t kind, weir_collective_t* what);
// Reads the scalar int32 input |i|. INVALID_ARGUMENT names it |name|.
WEIR_MUST_USE weir_status_t* weir_member_scalar(const weir_kernel_ctx_t* ctx, int i,
                                                const char* name, int* out_value);
// Reads the keys from the inputs group_size, group_key and instance_key, of which |first| is the
// first.
WEIR_MUST_USE weir_status_t* weir_member_keys(const weir_kernel_ctx_t* ctx, int first,
                                              weir_collective_t* what);
// Called when all have met, in place of setting output 0 to |tensor|.
typedef weir_status_t* (*weir_member_finish_fn_t)(weir_kernel_ctx_t* ctx,
                                                  const weir_collective_t* what);
// An asynchronous kernel's whole course from there. |tensor|, what it brings, may be NULL; |finish|
// likewise. |what| gets the device, step and loop of |ctx|. On GPUs of one process NCCL computes
// where it can, unless the node asks for another way; what is elsewhere in devices' memory goes
// through the host. UNAVAILABLE where a node asks for NCCL and there is none.
void weir_member_start(weir_kernel_ctx_t* ctx, weir_collective_t* what, weir_tensor_t* tensor,
                       weir_member_finish_fn_t finish, weir_done_t done);

// Kernels whose state is a weir_collective_t and who bring input 0: with keys that are attributes,
// and with keys that are the inputs after it.
void weir_member_cpu(weir_kernel_ctx_t* ctx, weir_done_t done);
void weir_member_keyed_cpu(weir_kernel_ctx_t* ctx, weir_done_t done);

#endif  // WEIR_OPS_COLLECTIVE_MEMBER_H_
