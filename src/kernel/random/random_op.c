// random_op.c — Random numbers where a kernel's output is.
#include "kernel/random/random_op.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(philox);
WEIR_CUDA_SOURCE(random);

weir_status_t* weir_random_find(const weir_kernel_init_t* init, weir_random_t kind,
                                weir_cuda_function_t* out_function) {
  weir_strbuf_t definitions = {0};
  if (!weir_device_is_cuda(init->device)) return NULL;
  weir_strbuf_printf(&definitions, "#define T %s\n#define KIND %d\n%s",
                     weir_cuda_type_name(init->node->output_types[0]), (int)kind,
                     weir_cuda_source_philox);
  return weir_cuda_build(init->device, &definitions, weir_cuda_source_random, "fill", out_function);
}

// |anew|, in the device's memory, goes before |philox|; NULL: it does not.
static weir_status_t* launch(const weir_kernel_ctx_t* ctx, const weir_cuda_function_t* function,
                             const weir_random_spec_t* spec, weir_philox_t philox, void* anew,
                             weir_tensor_t* out) {
  void* dst = out->data;
  int64_t count = out->count;
  uint64_t low = (uint64_t)spec->low, range = spec->range;
  int is_aligned = ((uintptr_t)dst & 15) == 0;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, count / 2 + 1);
  return weir_cuda_launch(ctx->device, *function, &size,
                          WEIR_CUDA_ARGS(&dst, &count, &philox, &anew, &low, &range, &is_aligned));
}

weir_status_t* weir_kernel_random_fill(const weir_kernel_ctx_t* ctx,
                                       const weir_cuda_function_t* function,
                                       const weir_random_spec_t* spec, weir_philox_t philox,
                                       weir_tensor_t* out) {
  if (!weir_device_is_cuda(ctx->device)) {
    weir_random_fill(weir_kernel_pool(ctx), spec, philox, out->data, out->count);
    return NULL;
  }
  return out->count ? launch(ctx, function, spec, philox, NULL, out) : NULL;
}

// ---- generators ----

typedef struct draw_t {
  weir_random_state_t* generator;
  uint64_t groups;
} draw_t;

static void draw(const void* arg, void* bytes) {
  const draw_t* self = arg;
  weir_philox_t philox = weir_random_reserve(self->generator, self->groups);
  memcpy(bytes, &philox, sizeof(philox));
}

weir_status_t* weir_kernel_random_reserve(const weir_kernel_ctx_t* ctx,
                                          weir_random_state_t* generator, uint64_t groups,
                                          weir_philox_t* out_philox, void** out_anew) {
  draw_t self = {.generator = generator, .groups = groups};
  *out_anew = NULL;
  if (weir_device_is_cuda(ctx->device) && weir_cuda_is_recording(ctx->device))
    return weir_cuda_anew(ctx->device, draw, &self, sizeof(self), out_anew);
  draw(&self, out_philox);
  return NULL;
}

weir_status_t* weir_kernel_random_draw(const weir_kernel_ctx_t* ctx,
                                       const weir_cuda_function_t* function,
                                       const weir_random_spec_t* spec,
                                       weir_random_state_t* generator, weir_tensor_t* out) {
  uint64_t groups = (uint64_t)out->count * WEIR_RANDOM_GROUPS_PER_OUTPUT;
  weir_philox_t philox = {{0}, {0}};
  void* anew = NULL;
  if (out->count == 0) return NULL;
  WEIR_TRY(weir_kernel_random_reserve(ctx, generator, groups, &philox, &anew));
  return anew ? launch(ctx, function, spec, philox, anew, out)
              : weir_kernel_random_fill(ctx, function, spec, philox, out);
}
