// member_staged.c — Members on devices with memory of their own, whose collectives go through the
// host: those of a cluster, of GPUs without NCCL, and of all other devices.
#include "ops/collective/there.h"

typedef struct staged_t {
  weir_kernel_ctx_t* ctx;
  weir_collective_t what;  // the dimensions of one that brings a tensor are its node's
  weir_member_finish_fn_t finish;
  weir_done_t done;
  weir_tensor_t* sent;  // in host memory; may be NULL
  weir_tensor_t *got, *output;
  weir_stream_span_t* span;  // of the node, in traced runs
} staged_t;

static void end(staged_t* staged, weir_status_t* take_status) {
  weir_done_t done = staged->done;
  weir_tensor_release(staged->sent);
  weir_tensor_release(staged->got);
  if (take_status) weir_tensor_release(staged->output);
  else if (staged->output) weir_kernel_set(staged->ctx, 0, staged->output);
  weir_free(staged);
  weir_done_call(done, take_status);
}

static void on_uploaded(void* arg, weir_status_t* take_status) { end(arg, take_status); }

static void on_met(void* arg, weir_status_t* take_status, weir_tensor_t* take_tensor) {
  staged_t* staged = arg;
  weir_device_t* device = staged->ctx->device;
  weir_status_t* status = take_status;
  staged->got = take_tensor;
  if (!status && staged->finish) status = staged->finish(staged->ctx, &staged->what);
  bool is_over = status || staged->finish || !take_tensor;
  if (!is_over)
    status = weir_tensor_create_in(weir_device_allocator(device, WEIR_MEMORY_DEVICE),
                                   weir_tensor_type(take_tensor), take_tensor->rank,
                                   take_tensor->dims, &staged->output);
  if (is_over || status) {
    end(staged, status);
    return;
  }
  weir_stream_span_t* outer = weir_span_set(staged->span);
  weir_device_copy(device, staged->got, staged->output, on_uploaded, staged);
  weir_span_set(outer);
}

static void on_downloaded(void* arg, weir_status_t* take_status) {
  staged_t* staged = arg;
  weir_step_t* step = staged->ctx->step;
  if (take_status) {
    end(staged, take_status);
    return;
  }
  weir_hub_caller_t caller = {
      .cancel = step->cancel, .pool = step->inter_pool, .done = on_met, .arg = staged};
  weir_hub_enter(step->hub, &staged->what, staged->sent, &caller);
}

void weir_member_start_staged(weir_kernel_ctx_t* ctx, const weir_collective_t* what,
                              weir_tensor_t* tensor, weir_member_finish_fn_t finish,
                              weir_done_t done) {
  staged_t* staged = weir_calloc(1, sizeof(*staged));
  if (!staged) {
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  *staged = (staged_t){
      .ctx = ctx, .what = *what, .finish = finish, .done = done, .span = weir_span_current()};
  if (!tensor || weir_tensor_is_host(tensor)) {
    staged->sent = weir_tensor_retain(tensor);
    on_downloaded(staged, NULL);
    return;
  }
  weir_status_t* status = weir_device_host_tensor(ctx->device, weir_tensor_type(tensor),
                                                  tensor->rank, tensor->dims, &staged->sent);
  if (status) end(staged, status);
  else weir_device_copy(ctx->device, tensor, staged->sent, on_downloaded, staged);
}
