// meeting_there.c — What members get whose tensors are in the memory of GPUs of this process: made
// by NCCL, in the order of their compute streams. Nobody waits for it.
#include "device/cuda/cuda_nccl.h"
#include "ops/collective/hub_internal.h"
#include "ops/collective/there.h"

static weir_nccl_kind_t kind_of(const weir_collective_t* what) {
  switch (what->kind) {
    case WEIR_COLLECTIVE_BROADCAST: return WEIR_NCCL_BROADCAST;
    case WEIR_COLLECTIVE_GATHER: return WEIR_NCCL_ALL_GATHER;
    case WEIR_COLLECTIVE_ALL_TO_ALL: return WEIR_NCCL_ALL_TO_ALL;
    case WEIR_COLLECTIVE_REDUCE_SCATTER: return WEIR_NCCL_REDUCE_SCATTER;
    default: return what->is_for_one ? WEIR_NCCL_REDUCE : WEIR_NCCL_ALL_REDUCE;
  }
}

weir_nccl_merge_t weir_collective_merge_there(const weir_collective_t* what) {
  switch (what->merge) {
    case WEIR_UPDATE_MUL: return WEIR_NCCL_PROD;
    case WEIR_UPDATE_MAX: return WEIR_NCCL_MAX;
    case WEIR_UPDATE_MIN: return WEIR_NCCL_MIN;
    default: return what->is_mean ? WEIR_NCCL_MEAN : WEIR_NCCL_SUM;
  }
}

bool weir_collective_can_there(const weir_collective_t* what) {
  if (what->kind == WEIR_COLLECTIVE_GROUP) return false;
  if (what->is_mean && what->merge != WEIR_UPDATE_ADD) return false;
  return weir_nccl_has(what->dtype, weir_collective_merge_there(what));
}

// The member that sends, or gets; of those that met by a name in TensorFlow's words. 0 where there
// is none.
static weir_status_t* find_root(member_t* const* members, int count, int* out_root) {
  const weir_collective_t* what = &members[0]->what;
  int root = -1;
  *out_root = 0;
  if (what->kind != WEIR_COLLECTIVE_BROADCAST && !what->is_for_one) return NULL;
  for (int i = 0; i < count; ++i) {
    if (!members[i]->what.is_source) continue;
    if (root >= 0)
      return WEIR_STATUS(INTERNAL,
                         "Inconsistent root rank %d and GPU id %d rank %d also marked as root.",
                         root, members[i]->name.index, i);
    root = i;
  }
  if (root < 0) return WEIR_STATUS(INTERNAL, "Root rank not indicated for collective");
  *out_root = root;
  return NULL;
}

// The shape of what |member| gets.
static weir_status_t* output_dims(const member_t* member, int* out_rank,
                                  int64_t dims[WEIR_MAX_RANK]) {
  const weir_collective_t* what = &member->what;
  const weir_tensor_t* tensor = member->tensor;
  const int64_t* from = tensor ? tensor->dims : member->dims;
  *out_rank = tensor ? tensor->rank : what->dim_count;
  if (*out_rank) memcpy(dims, from, sizeof(*dims) * (size_t)*out_rank);
  if (what->kind == WEIR_COLLECTIVE_REDUCE_SCATTER) dims[0] /= what->group_size;
  if (what->kind != WEIR_COLLECTIVE_GATHER) return NULL;
  if (dims[0] > INT64_MAX / what->group_size)
    return WEIR_STATUS(INVALID_ARGUMENT, "the result of a gather is too large");
  dims[0] *= what->group_size;
  return NULL;
}

// Who sends keeps what it has; of a reduction for one the others get nothing.
static weir_status_t* make_output(const member_t* member, weir_tensor_t** out_tensor) {
  const weir_collective_t* what = &member->what;
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  if (what->is_for_one && !what->is_source) return NULL;
  if (what->kind == WEIR_COLLECTIVE_BROADCAST && what->is_source) {
    *out_tensor = weir_tensor_retain(member->tensor);
    return NULL;
  }
  WEIR_TRY(output_dims(member, &rank, dims));
  return weir_tensor_create_in(weir_device_allocator(what->place, WEIR_MEMORY_DEVICE), what->dtype,
                               rank, dims, out_tensor);
}

static weir_status_t* run(member_t* const* members, weir_nccl_call_t* call, weir_nccl_rank_t* ranks,
                          weir_tensor_t** outputs) {
  for (int i = 0; i < call->rank_count; ++i) {
    WEIR_TRY(make_output(members[i], &outputs[i]));
    bool is_own = outputs[i] && outputs[i] == members[i]->tensor;
    ranks[i] = (weir_nccl_rank_t){.device = members[i]->what.place,
                                  .from = members[i]->tensor ? members[i]->tensor->data : NULL,
                                  .to = outputs[i] && !is_own ? outputs[i]->data : NULL,
                                  .span = members[i]->caller.span};
  }
  call->ranks = ranks;
  call->count = members[call->root]->tensor->count;
  return call->count ? weir_nccl_run(call) : NULL;
}

weir_status_t* weir_meeting_exchange_there(member_t* const* members, int count,
                                           weir_tensor_t** outputs) {
  const weir_collective_t* what = &members[0]->what;
  weir_nccl_call_t call = {.kind = kind_of(what),
                           .merge = weir_collective_merge_there(what),
                           .dtype = what->dtype,
                           .rank_count = count};
  WEIR_TRY(find_root(members, count, &call.root));
  weir_nccl_rank_t* ranks = weir_calloc((size_t)count, sizeof(*ranks));
  if (!ranks) return weir_out_of_memory();
  weir_status_t* status = run(members, &call, ranks, outputs);
  weir_free(ranks);
  return status;
}
