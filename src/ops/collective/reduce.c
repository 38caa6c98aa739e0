// reduce.c — CollectiveReduce, CollectiveReduceV2, CollectiveReduceScatterV2: elements of all
// members merged, for every member or in parts. Merging is in the order of ranks.
#include "op/shape_ctx.h"
#include "ops/collective/member.h"

static weir_status_t* reduce_init(const weir_kernel_init_t* init, void* state) {
  return weir_member_init(init, WEIR_COLLECTIVE_REDUCE, state);
}

static weir_status_t* scatter_init(const weir_kernel_init_t* init, void* state) {
  return weir_member_init(init, WEIR_COLLECTIVE_REDUCE_SCATTER, state);
}

// As many rows as the group has parts: not known before.
static weir_status_t* scatter_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  int64_t dims[WEIR_MAX_RANK];
  WEIR_TRY(weir_shape_at_least(ctx, in, 1));
  if (in->rank < 0) return NULL;
  memcpy(dims, in->dims, sizeof(*dims) * (size_t)in->rank);
  dims[0] = -1;
  return weir_shape_set_dims(ctx, 0, in->rank, dims);
}

#define REDUCE_V2(op_name, shape_fn, init_fn, text)                                               \
  {                                                                                               \
    .name = (op_name),                                                                            \
    .attrs =                                                                                      \
        "T: {bfloat16, float, half, double, int32, int64}; merge_op: {'Min', 'Max', 'Mul', "      \
        "'Add'}; final_op: {'Id', 'Div'}; communication_hint: string = 'auto'; "                  \
        "timeout_seconds: float = 0; is_stateless: bool = false; Nordering_token: int >= 0 "      \
        "= 0; max_subdivs_per_device: int = -1",                                                  \
    .inputs =                                                                                     \
        "input: T; group_size: int32; group_key: int32; instance_key: int32; "                    \
        "ordering_token: Nordering_token * resource",                                             \
    .outputs = "data: T",                                                                         \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_ALLOW_DISTRIBUTED | WEIR_OP_UNBOUNDED, .summary = (text), \
    .infer_shape = (shape_fn),                                                                    \
    .kernels = WEIR_MEMBER_KERNELS(.compute_async = weir_member_keyed_cpu, .init = (init_fn),     \
                                   .host_inputs = WEIR_MEMBER_KEYS)                               \
  }

const weir_op_module_t weir_ops_collective_reduce = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CollectiveReduce",
         .attrs = "T: {bfloat16, float, half, double, int32, int64}; group_size: int; group_key: "
                  "int; instance_key: int; merge_op: {'Min', 'Max', 'Mul', 'Add'}; final_op: "
                  "{'Id', 'Div'}; subdiv_offsets: list(int); wait_for: list(int) = []; "
                  "communication_hint: string = 'auto'; timeout_seconds: float = 0",
         .inputs = "input: T",
         .outputs = "data: T",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_ALLOW_DISTRIBUTED | WEIR_OP_UNBOUNDED,
         .summary = "The elements of all members of a group, merged",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_MEMBER_KERNELS(.compute_async = weir_member_cpu, .init = reduce_init)},
        REDUCE_V2("CollectiveReduceV2", weir_shape_fn_unchanged, reduce_init,
                  "The elements of all members of a group, merged"),
        REDUCE_V2("CollectiveReduceScatterV2", scatter_shape, scatter_init,
                  "The member's part of the rows of all members of a group, merged"),
        {0}}};
