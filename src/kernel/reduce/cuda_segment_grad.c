// cuda_segment_grad.c — Launches of segment_grad.cu.
#include "kernel/reduce/cuda_segment_grad.h"

#include "kernel/cuda/source.h"

WEIR_CUDA_SOURCE(segment_grad);

weir_status_t* weir_cuda_segment_grad_find(const weir_kernel_init_t* init,
                                           weir_cuda_segment_grad_t* out) {
  const char* const names[] = {"count_ids", "spread_rows"};
  weir_cuda_function_t* const found[] = {&out->count_ids, &out->spread_rows};
  const weir_dtype_t* types = init->node->input_types;
  for (int i = 0; i < 2; ++i) {
    weir_strbuf_t text = {0};
    weir_strbuf_printf(&text, "#define T %s\n#define ID %s\n", weir_cuda_type_name(types[0]),
                       weir_cuda_type_name(types[2]));
    WEIR_TRY(
        weir_cuda_build(init->device, &text, weir_cuda_source_segment_grad, names[i], found[i]));
  }
  return weir_scatter_find(init, WEIR_SCATTER_ADD, 0, 1, &out->scatter);
}

// Rows of each segment, where a sum was divided by their number.
static weir_status_t* count_ids(weir_kernel_ctx_t* ctx, const weir_cuda_segment_grad_t* f,
                                const void* ids, int64_t count, weir_tensor_t* counts) {
  int64_t segments = counts->count;
  void* to = counts->data;
  WEIR_TRY(weir_cuda_zero(ctx->device, to, weir_tensor_byte_size(counts)));
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, count);
  return weir_cuda_launch(ctx->device, f->count_ids, &size,
                          WEIR_CUDA_ARGS(&ids, &count, &segments, &to));
}

static weir_status_t* spread_rows(weir_kernel_ctx_t* ctx, const weir_cuda_segment_grad_t* f,
                                  weir_segment_norm_t norm, const void* ids, int64_t count,
                                  weir_tensor_t* out_rows) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const void* from = x->data;
  void* to = out_rows->data;
  int64_t segments = x->dims[0], inner = out_rows->count / count;
  int divided = (int)norm;
  weir_tensor_t* counts = NULL;
  weir_status_t* status = NULL;
  if (norm != WEIR_SEGMENT_SUM && segments > 0) {
    WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_UINT32, segments, &counts));
    status = count_ids(ctx, f, ids, count, counts);
  }
  const void* sizes = counts ? counts->data : NULL;
  weir_cuda_size_t size = weir_cuda_size_for(ctx->device, out_rows->count);
  if (!status)
    status = weir_cuda_launch(
        ctx->device, f->spread_rows, &size,
        WEIR_CUDA_ARGS(&from, &ids, &sizes, &to, &count, &segments, &inner, &divided));
  weir_tensor_release(counts);
  return status;
}

weir_status_t* weir_cuda_segment_grad(weir_kernel_ctx_t* ctx,
                                      const weir_cuda_segment_grad_t* functions,
                                      weir_segment_norm_t norm, const weir_tensor_t* indices,
                                      const void* ids, weir_tensor_t* y) {
  if (y->count == 0) return NULL;
  WEIR_TRY(weir_cuda_zero(ctx->device, y->data, weir_tensor_byte_size(y)));
  if (indices->count == 0) return NULL;
  weir_move_places_t places = {.indices = indices,
                               .count = indices->count,
                               .depth = 1,
                               .dims = y->dims,
                               .inner = y->count / y->dims[0]};
  weir_tensor_t* rows = NULL;
  WEIR_TRY(weir_kernel_scratch(ctx, weir_tensor_type(y), indices->count * places.inner, &rows));
  weir_status_t* status = spread_rows(ctx, functions, norm, ids, indices->count, rows);
  if (!status) status = weir_gpu_scatter(ctx, &functions->scatter, &places, rows, false, y);
  weir_tensor_release(rows);
  return status;
}
