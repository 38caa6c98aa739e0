// upload.c — Launches of upload.cu.
#include "kernel/move/upload.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(upload);

enum { WORDS = 960 };  // as upload.cu has them: arguments of a launch are 4,096 bytes at most

typedef struct words_t {
  int count;
  uint32_t at[WORDS];
} words_t;

weir_status_t* weir_upload_find(const weir_kernel_init_t* init,
                                weir_cuda_function_t* out_function) {
  weir_strbuf_t definitions = {0};
  return weir_cuda_build(init->device, &definitions, weir_cuda_source_upload, "upload",
                         out_function);
}

weir_status_t* weir_gpu_upload(const weir_kernel_ctx_t* ctx, weir_cuda_function_t function,
                               const void* src, size_t size, void* dst) {
  for (size_t at = 0; at < size; at += sizeof(uint32_t) * WORDS) {
    words_t words = {.count = (int)(WEIR_MIN(size - at, sizeof(words.at)) / sizeof(uint32_t))};
    memcpy(words.at, (const char*)src + at, (size_t)words.count * sizeof(uint32_t));
    void* to = (char*)dst + at;
    weir_cuda_size_t grid = weir_cuda_size_for(ctx->device, words.count);
    WEIR_TRY(weir_cuda_launch(ctx->device, function, &grid, WEIR_CUDA_ARGS(&to, &words)));
  }
  return NULL;
}

weir_status_t* weir_gpu_uploaded(weir_kernel_ctx_t* ctx, weir_cuda_function_t function,
                                 const weir_tensor_t* tensor, weir_tensor_t** out_copy) {
  WEIR_TRY(weir_kernel_scratch(ctx, weir_tensor_type(tensor), tensor->count, out_copy));
  weir_status_t* status = weir_gpu_upload(ctx, function, tensor->data,
                                          weir_tensor_byte_size(tensor), (*out_copy)->data);
  if (!status) return NULL;
  weir_tensor_release(*out_copy);
  *out_copy = NULL;
  return status;
}
