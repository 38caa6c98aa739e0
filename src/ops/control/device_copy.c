// device_copy.c — _CopyToHost and _CopyToDevice: what the runtime puts on edges between memories.
#include "op/kernel.h"
#include "op/shape_ctx.h"

static void on_copied(void* arg, weir_status_t* take_status) {
  weir_done_t* done = arg;
  weir_done_t copy = *done;
  weir_free(done);
  weir_done_call(copy, take_status);
}

// In which memory the output goes, the kernel's row says.
static void copy(weir_kernel_ctx_t* ctx, weir_done_t done) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_tensor_t* y = NULL;
  weir_done_t* kept = weir_malloc(sizeof(*kept));
  weir_status_t* status = kept ? NULL : weir_out_of_memory();
  if (!status) status = weir_kernel_output(ctx, 0, x->rank, x->dims, &y);
  if (status) {
    weir_free(kept);
    weir_done_call(done, status);
    return;
  }
  *kept = done;
  weir_device_copy(ctx->device, x, y, on_copied, kept);
}

const weir_op_module_t weir_ops_control_device_copy = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "_CopyToHost",
         .attrs = "T: type",
         .inputs = "x: T",
         .outputs = "y: T",
         .summary = "Copies from the memory of its device to the host's.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute_async = copy, .host_outputs = "y")},
        {.name = "_CopyToDevice",
         .attrs = "T: type",
         .inputs = "x: T",
         .outputs = "y: T",
         .summary = "Copies from the host's memory to that of its device.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute_async = copy, .host_inputs = "x")},
        {0}}};
