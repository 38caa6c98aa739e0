// all_to_all.c — CollectiveAllToAllV2: row i of every member goes to the member of rank i.
#include "op/shape_ctx.h"
#include "ops/collective/member.h"

static weir_status_t* exchange_init(const weir_kernel_init_t* init, void* state) {
  return weir_member_init(init, WEIR_COLLECTIVE_ALL_TO_ALL, state);
}

const weir_op_module_t weir_ops_collective_all_to_all = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CollectiveAllToAllV2",
         .attrs = "T: {bfloat16, float, half, double, int32, int64}; communication_hint: string = "
                  "'auto'; timeout_seconds: float = 0; is_stateless: bool = false; "
                  "Nordering_token: int >= 0 = 0",
         .inputs = "input: T; group_size: int32; group_key: int32; instance_key: int32; "
                   "ordering_token: Nordering_token * resource",
         .outputs = "data: T",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_ALLOW_DISTRIBUTED | WEIR_OP_UNBOUNDED,
         .summary = "Row i of the member of each rank, where i is the member's own",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_MEMBER_KERNELS(.compute_async = weir_member_keyed_cpu,
                                        .init = exchange_init, .host_inputs = WEIR_MEMBER_KEYS)},
        {0}}};
