// timestamp.c — Timestamp: the time of day when the op runs.
#include "base/thread.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"

static weir_status_t* timestamp_cpu(weir_kernel_ctx_t* ctx) {
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 0, NULL, &out));
  WEIR_TENSOR_DATA(out, double)[0] = (double)weir_wall_clock_us() / 1e6;
  return NULL;
}

const weir_op_module_t weir_ops_state_timestamp = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "Timestamp",
                                    .outputs = "ts: double",
                                    .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP,
                                    .summary = "Returns the seconds since 1970.",
                                    .infer_shape = weir_shape_fn_scalar,
                                    .kernels = WEIR_CPU_KERNEL(.compute = timestamp_cpu)},
                                   {0}}};
