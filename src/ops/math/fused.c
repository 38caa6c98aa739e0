// fused.c — _Fused: several elementwise nodes as one, as the pass of that name joins them
// (pass/fuse.c). What it computes is a program (kernel/fused/program.h). _FusedReduce: the same
// with a reduction, on devices that gain by it.
#include "kernel/fused/cuda_fused.h"
#include "kernel/fused/run.h"
#include "op/shape_ctx.h"

#define FUSED_ATTRS                                                 \
  "Tin: list(type) >= 1; Tout: list(type) >= 1; steps: list(int); " \
  "outputs: list(int); names: list(string); ops: list(string); "    \
  "shapes: list(shape) >= 0 = []" /* of the inputs, as far as they are known */
#define GPU_KERNEL                                                                             \
  {                                                                                            \
    WEIR_DEVICE_GPU, .compute = weir_cuda_fused_compute, .init = weir_cuda_fused_init,         \
                     .deinit = weir_cuda_fused_deinit, .state_size = sizeof(weir_cuda_fused_t) \
  }

const weir_op_module_t weir_ops_math_fused = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "_Fused",
         .summary = "Several elementwise ops, element by element",
         .attrs = FUSED_ATTRS,
         .inputs = "inputs: Tin",
         .outputs = "results: Tout",
         .flags = WEIR_OP_COMPOSITE,
         .infer_shape = weir_shape_fn_unknown,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .compute = weir_fused_compute, .init = weir_fused_init,
                  .deinit = weir_fused_deinit, .state_size = sizeof(weir_fused_code_t)},
                 GPU_KERNEL,
                 {0}}},
        {.name = "_FusedReduce",
         .summary = "Several elementwise ops, and a reduction of what they make",
         .attrs = FUSED_ATTRS,
         .inputs = "inputs: Tin",
         .outputs = "results: Tout",
         .flags = WEIR_OP_COMPOSITE,
         .infer_shape = weir_shape_fn_unknown,
         .kernels = (const weir_kernel_def_t[]){GPU_KERNEL, {0}}},
        {0}}};
