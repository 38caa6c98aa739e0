// cudnn_run.c — Running a plan of cuDNN's, with what its way of asking needs before and after.
#include "kernel/conv/cudnn_internal.h"

static weir_status_t* scratch_of(const cudnn_task_t* task, weir_dtype_t dtype, int64_t count,
                                 weir_tensor_t** out) {
  return weir_tensor_create_in(weir_device_allocator(task->dnn->device, WEIR_MEMORY_DEVICE), dtype,
                               1, &count, out);
}

// ---- cuDNN's part ----

// In the order of cuDNN's tensors.
typedef struct pointers_t {
  const void *x, *w, *y, *bias;
} pointers_t;

static pointers_t pointers_of(const cudnn_task_t* task) {
  const weir_cudnn_operands_t* o = task->operands;
  switch (task->conv->kind) {
    case WEIR_CONV_BY_INPUT: return (pointers_t){.x = o->out, .w = o->a, .y = o->b};
    case WEIR_CONV_BY_FILTER: return (pointers_t){.x = o->a, .w = o->out, .y = o->b};
    default: return (pointers_t){.x = o->a, .w = o->b, .y = o->out, .bias = o->bias};
  }
}

static weir_status_t* run_plan(const cudnn_task_t* task, const plan_t* plan,
                               const pointers_t* pointers) {
  static const int64_t ids[] = {X_ID, W_ID, Y_ID, BIAS_ID};
  const cudnn_t* dnn = task->dnn;
  const void* const all[] = {pointers->x, pointers->w, pointers->y, pointers->bias};
  int64_t count = plan->way & WAY_TAIL ? 4 : 3;
  weir_tensor_t* workspace = NULL;
  void* memory = NULL;
  if (plan->workspace_size > 0) {
    WEIR_TRY(scratch_of(task, WEIR_DTYPE_UINT8, plan->workspace_size, &workspace));
    memory = workspace->data;
  }
  dnn_t pack = NULL;
  const dnn_functions_t* call = &dnn->call;
  int result = call->make(DNN_PACK, &pack);
  if (!result) result = call->set(pack, DNN_PACK_POINTERS, DNN_TYPE_POINTER, count, all);
  if (!result) result = call->set(pack, DNN_PACK_IDS, DNN_TYPE_INT64, count, ids);
  if (!result) result = call->set(pack, DNN_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, &memory);
  if (!result) result = call->finish(pack);
  if (!result) result = call->execute(dnn->handle, plan->plan, pack);
  weir_cudnn_drop(dnn, pack);
  weir_tensor_release(workspace);  // whoever gets it comes after, in the order of the stream
  if (!result) return NULL;
  return WEIR_STATUS(INTERNAL, "cuDNN: running a convolution: error %d", result);
}

// ---- wider channels ----

// Of an image or a filter, whose rows of channels |kernel| makes wider or narrower.
static weir_status_t* move_rows(const cudnn_task_t* task, weir_cuda_function_t kernel,
                                const void* from, void* to, int64_t rows) {
  weir_device_t* device = task->dnn->device;
  int few = (int)task->conv->conv.in_c, many = (int)weir_cudnn_wide_channels(device, task->conv);
  weir_cuda_size_t size = weir_cuda_size_for(device, rows * few);
  return weir_cuda_launch(device, kernel, &size, WEIR_CUDA_ARGS(&from, &to, &rows, &few, &many));
}

static int64_t volume(const int64_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }

static weir_status_t* run_wide_in(const cudnn_task_t* task, const plan_t* plan, void* image,
                                  void* filter) {
  const weir_conv_t* v = &task->conv->conv;
  const weir_conv_kernels_t* kernels = task->kernels;
  int64_t pixels = v->batch * volume(v->in), weights = v->out_c * volume(v->filter);
  bool is_forward = task->conv->kind == WEIR_CONV_FORWARD;
  pointers_t pointers = pointers_of(task);
  WEIR_TRY(move_rows(task, kernels->widen, pointers.x, image, pixels));
  if (is_forward) WEIR_TRY(move_rows(task, kernels->widen, pointers.w, filter, weights));
  pointers.x = image;
  pointers.w = filter;
  WEIR_TRY(run_plan(task, plan, &pointers));
  if (is_forward) return NULL;
  return move_rows(task, kernels->narrow, filter, task->operands->out, weights);
}

static weir_status_t* run_wide(const cudnn_task_t* task, const plan_t* plan) {
  const weir_cudnn_conv_t* c = task->conv;
  int64_t channels = weir_cudnn_wide_channels(task->dnn->device, c);
  weir_tensor_t *image = NULL, *filter = NULL;
  weir_status_t* status =
      scratch_of(task, c->dtype, c->conv.batch * volume(c->conv.in) * channels, &image);
  if (!status)
    status = scratch_of(task, c->dtype, c->conv.out_c * volume(c->conv.filter) * channels, &filter);
  if (!status) status = run_wide_in(task, plan, image->data, filter->data);
  weir_tensor_release(image);
  weir_tensor_release(filter);
  return status;
}

// ---- the whole ----

weir_status_t* weir_cudnn_execute(const cudnn_task_t* task, const plan_t* plan) {
  const weir_cudnn_conv_t* c = task->conv;
  pointers_t pointers = pointers_of(task);
  WEIR_TRY(plan->way & WAY_WIDE ? run_wide(task, plan) : run_plan(task, plan, &pointers));
  if (c->tail == WEIR_CONV_NO_TAIL || plan->way & WAY_TAIL) return NULL;
  weir_conv_tail_run_t run = {.tail = c->tail,
                              .dtype = c->dtype,
                              .conv = &c->conv,
                              .is_nchw = c->is_nchw,
                              .bias = task->operands->bias,
                              .y = task->operands->out};
  return weir_conv_kernels_tail(task->dnn->device, task->kernels, &run);
}
