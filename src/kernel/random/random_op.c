// random_op.c — Random numbers where a kernel's output is.
#include "kernel/random/random_op.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(random);

weir_status_t* weir_random_find(const weir_kernel_init_t* init, weir_random_t kind,
                                weir_cuda_function_t* out_function) {
  weir_strbuf_t definitions = {0};
  if (!weir_device_is_cuda(init->device)) return NULL;
  weir_strbuf_printf(&definitions, "#define T %s\n#define KIND %d\n",
                     weir_cuda_type_name(init->node->output_types[0]), (int)kind);
  return weir_cuda_build(init->device, &definitions, weir_cuda_source_random, "fill", out_function);
}

weir_status_t* weir_kernel_random_fill(const weir_kernel_ctx_t* ctx,
                                       const weir_cuda_function_t* function,
                                       const weir_random_spec_t* spec, weir_philox_t philox,
                                       weir_tensor_t* out) {
  if (!weir_device_is_cuda(ctx->device)) {
    weir_random_fill(weir_kernel_pool(ctx), spec, philox, out->data, out->count);
    return NULL;
  }
  if (out->count == 0) return NULL;
  void* dst = out->data;
  int64_t count = out->count;
  uint64_t low = (uint64_t)spec->low, range = spec->range;
  int is_aligned = ((uintptr_t)dst & 15) == 0;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, count / 2 + 1);
  return weir_cuda_launch(ctx->device, *function, &size,
                          WEIR_CUDA_ARGS(&dst, &count, &philox, &low, &range, &is_aligned));
}
