// gather.c — CollectiveGather, CollectiveGatherV2: the rows of all members in the order of ranks.
#include "op/shape_ctx.h"
#include "ops/collective/member.h"

static weir_status_t* gather_init(const weir_kernel_init_t* init, void* state) {
  return weir_member_init(init, WEIR_COLLECTIVE_GATHER, state);
}

// The input's shape, with |factor| times the rows; negative: nobody knows.
static weir_status_t* set_rows(weir_shape_ctx_t* ctx, int64_t factor) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(weir_shape_at_least(ctx, in, 1));
  if (in->rank < 0) return NULL;
  memcpy(dims, in->dims, sizeof(*dims) * (size_t)in->rank);
  bool is_known = factor > 0 && dims[0] >= 0 && dims[0] <= INT64_MAX / factor;
  dims[0] = is_known ? dims[0] * factor : -1;
  return weir_shape_set_dims(ctx, 0, in->rank, dims);
}

// The attribute shape, which should say the same, is not looked at, as in TensorFlow.
static weir_status_t* gather_shape(weir_shape_ctx_t* ctx) {
  return set_rows(ctx, weir_attrs_int(weir_shape_attrs(ctx), "group_size"));
}

static weir_status_t* keyed_shape(weir_shape_ctx_t* ctx) { return set_rows(ctx, -1); }

const weir_op_module_t weir_ops_collective_gather = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CollectiveGather",
         .attrs = "T: {float, half, double, int32, int64}; group_size: int; group_key: int; "
                  "instance_key: int; shape: shape; communication_hint: string = 'auto'; "
                  "timeout_seconds: float = 0",
         .inputs = "input: T",
         .outputs = "data: T",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_ALLOW_DISTRIBUTED | WEIR_OP_UNBOUNDED,
         .summary = "The rows of all members of a group",
         .infer_shape = gather_shape,
         .kernels = WEIR_MEMBER_KERNELS(.compute_async = weir_member_cpu, .init = gather_init)},
        {.name = "CollectiveGatherV2",
         .attrs = "T: {float, half, double, int32, int64}; communication_hint: string = 'auto'; "
                  "timeout_seconds: float = 0; is_stateless: bool = false; Nordering_token: int "
                  ">= 0 = 0",
         .inputs = "input: T; group_size: int32; group_key: int32; instance_key: int32; "
                   "ordering_token: Nordering_token * resource",
         .outputs = "data: T",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_ALLOW_DISTRIBUTED | WEIR_OP_UNBOUNDED,
         .summary = "The rows of all members of a group",
         .infer_shape = keyed_shape,
         .kernels = WEIR_MEMBER_KERNELS(.compute_async = weir_member_keyed_cpu, .init = gather_init,
                                        .host_inputs = WEIR_MEMBER_KEYS)},
        {0}}};
