// answer.c — Asking the GPU, and going on when it has answered.
#include "kernel/cuda/answer.h"

static void finish(weir_answer_t* answer, weir_status_t* take_status) {
  weir_done_t done = answer->done;
  weir_tensor_release(answer->numbers);
  weir_tensor_release(answer->told);
  for (int i = 0; i < WEIR_ANSWER_SCRATCH; ++i) weir_tensor_release(answer->scratch[i]);
  weir_free(answer);
  weir_done_call(done, take_status);
}

static weir_status_t* go_on(weir_answer_t* answer) {
  weir_device_t* device = answer->ctx->device;
  if (weir_cancel_is_cancelled(answer->ctx->step->cancel))
    return WEIR_STATUS(CANCELLED, "Step was cancelled");
  weir_stream_span_t* outer = weir_span_set(answer->span);
  weir_status_t* status = answer->after(answer, answer->told->data);
  weir_span_extend(device, WEIR_STREAM_COMPUTE);
  weir_span_set(outer);
  return status;
}

static void on_told(void* arg, weir_status_t* take_status) {
  weir_answer_t* answer = arg;
  finish(answer, take_status ? take_status : go_on(answer));
}

void weir_answer_run(weir_kernel_ctx_t* ctx, const weir_answer_fns_t* fns, weir_done_t done) {
  weir_answer_t* answer = weir_calloc(1, fns->size);
  if (!answer) {
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  answer->ctx = ctx;
  answer->after = fns->after;
  answer->span = weir_span_current();
  answer->done = done;
  weir_status_t* status = fns->before(answer);
  weir_span_extend(ctx->device, WEIR_STREAM_COMPUTE);
  const weir_tensor_t* numbers = answer->numbers;
  if (!status && numbers)
    status = weir_device_host_tensor(ctx->device, WEIR_DTYPE_INT64, numbers->rank, numbers->dims,
                                     &answer->told);
  if (status || !numbers) finish(answer, status);
  else weir_device_copy(ctx->device, numbers, answer->told, on_told, answer);
}

weir_status_t* weir_answer_scratch(weir_answer_t* answer, int i, weir_dtype_t dtype, int64_t count,
                                   int byte, void** out_data) {
  weir_kernel_ctx_t* ctx = answer->ctx;
  WEIR_TRY(weir_kernel_scratch(ctx, dtype, count, &answer->scratch[i]));
  *out_data = answer->scratch[i]->data;
  size_t size = weir_tensor_byte_size(answer->scratch[i]);
  if (size == 0 || byte == WEIR_ANSWER_ANY) return NULL;
  return weir_cuda_set(ctx->device, *out_data, byte, size);
}

weir_status_t* weir_answer_numbers(weir_answer_t* answer, int64_t count, int64_t** out_numbers) {
  weir_kernel_ctx_t* ctx = answer->ctx;
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_INT64, count, &answer->numbers));
  *out_numbers = answer->numbers->data;
  return weir_cuda_zero(ctx->device, *out_numbers, weir_tensor_byte_size(answer->numbers));
}
