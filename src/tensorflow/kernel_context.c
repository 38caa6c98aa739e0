// kernel_context.c — kernels.h: what kernels of programs see of a step, and what they make in it.
#include <stdlib.h>

#include "tensorflow/kernel.h"
#include "weir/plugin.h"

struct TF_AsyncOpKernelDoneCallback {
  TF_OpKernelContext context;
  weir_done_t done;
};

// ---- computing ----

// How the computation has ended.
static weir_status_t* outcome(const TF_OpKernelContext* context) {
  return context->failure ? context->failure : weir_kernel_check_outputs(context->ctx);
}

weir_status_t* tf_kernel_compute(weir_kernel_ctx_t* ctx) {
  const tf_instance_t* state = ctx->state;
  TF_OpKernelContext context = {.ctx = ctx};
  state->kernel->compute(state->instance, &context);
  return outcome(&context);
}

void tf_kernel_compute_async(weir_kernel_ctx_t* ctx, weir_done_t done) {
  const tf_instance_t* state = ctx->state;
  TF_AsyncOpKernelDoneCallback* callback = weir_malloc(sizeof(*callback));
  if (!callback) {
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  *callback = (TF_AsyncOpKernelDoneCallback){.context = {.ctx = ctx}, .done = done};
  state->kernel->compute_async(state->instance, &callback->context, callback);
}

void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* callback) {
  const weir_done_t done = callback->done;
  weir_status_t* status = outcome(&callback->context);
  weir_free(callback);
  weir_done_call(done, status);
}

void TF_OpKernelContext_Failure(TF_OpKernelContext* ctx, TF_Status* status) {
  if (!ctx->failure) ctx->failure = tf_status_to_weir(status);
}

// ---- inputs ----

int TF_NumInputs(TF_OpKernelContext* ctx) { return ctx->ctx->input_count; }
int TF_NumOutputs(TF_OpKernelContext* ctx) { return ctx->ctx->output_count; }

static weir_status_t* check_index(const char* what, int index, int count) {
  if (index >= 0 && index < count) return NULL;
  return WEIR_STATUS(OUT_OF_RANGE, "%s index %d is out of range: the op has %d", what, index,
                     count);
}
static weir_status_t* check_input(const TF_OpKernelContext* ctx, int i) {
  return check_index("input", i, ctx->ctx->input_count);
}
static weir_status_t* check_output(const TF_OpKernelContext* ctx, int i) {
  return check_index("output", i, ctx->ctx->output_count);
}

// A new handle on |tensor|; a reference is taken.
static weir_status_t* wrap(weir_tensor_t* tensor, TF_Tensor** out_handle) {
  *out_handle = tf_tensor_wrap(weir_tensor_retain(tensor));
  return *out_handle ? NULL : weir_out_of_memory();
}

static weir_status_t* get_input(TF_OpKernelContext* ctx, int i, TF_Tensor** out_tensor) {
  WEIR_TRY(check_input(ctx, i));
  weir_tensor_t* tensor = ctx->ctx->inputs[i].tensor;
  if (!tensor)
    return WEIR_STATUS(FAILED_PRECONDITION, "input %d is a reference, or was forwarded", i);
  return wrap(tensor, out_tensor);
}

void TF_GetInput(TF_OpKernelContext* ctx, int i, TF_Tensor** tensor, TF_Status* status) {
  TF_Tensor* handle = NULL;
  if (tf_status_take(status, get_input(ctx, i, &handle))) *tensor = handle;
}

void TF_InputRange(TF_OpKernelContext* ctx, const char* name, TF_InputRange_Args* args) {
  int count = 0;
  weir_status_t* status =
      weir_plugin_input_range(weir_plugin_kernel_attrs(ctx->ctx), name, &args->start, &count);
  args->stop = args->start + count;
  tf_status_take(args->status, status);
}

TF_DataType TF_InputDatatype(TF_OpKernelContext* ctx, int index) {
  WEIR_CHECK(index >= 0 && index < ctx->ctx->input_count);
  return (TF_DataType)weir_dtype_base(ctx->ctx->node->input_types[index]);
}

TF_DataType TF_ExpectedOutputDataType(TF_OpKernelContext* ctx, int i) {
  WEIR_CHECK(i >= 0 && i < ctx->ctx->output_count);
  return (TF_DataType)weir_dtype_base(ctx->ctx->node->output_types[i]);
}

bool TF_IsHostMemoryInput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  if (!tf_status_take(status, check_input(ctx, i))) return false;
  return weir_device_is_host(ctx->ctx->device) ||
         weir_kernel_is_host_input(ctx->ctx->node, ctx->ctx->kernel, i);
}

bool TF_IsHostMemoryOutput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  if (!tf_status_take(status, check_output(ctx, i))) return false;
  return weir_device_is_host(ctx->ctx->device) || weir_kernel_is_host_output(ctx->ctx, i);
}

// ---- outputs ----

static weir_status_t* set_output(TF_OpKernelContext* ctx, int i, const TF_Tensor* handle) {
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(check_output(ctx, i));
  WEIR_TRY(tf_tensor_in(handle, &tensor));
  weir_status_t* status = weir_plugin_set(ctx->ctx, i, tensor);
  weir_tensor_release(tensor);
  return status;
}

void TF_SetOutput(TF_OpKernelContext* ctx, int i, const TF_Tensor* tensor, TF_Status* status) {
  tf_status_take(status, set_output(ctx, i, tensor));
}

TF_Tensor* TF_GetMutableOutput(TF_OpKernelContext* ctx, int i, TF_Status* status) {
  TF_Tensor* handle = NULL;
  weir_status_t* failure = check_output(ctx, i);
  if (!failure && ctx->ctx->outputs[i].tensor) failure = wrap(ctx->ctx->outputs[i].tensor, &handle);
  tf_status_take(status, failure);
  return handle;
}

static weir_status_t* allocate_output(TF_OpKernelContext* ctx, int i, TF_DataType dtype,
                                      const int64_t* dims, int rank, TF_Tensor** out_handle) {
  WEIR_TRY(check_output(ctx, i));
  const weir_dtype_t expected = weir_dtype_base(ctx->ctx->node->output_types[i]);
  if ((weir_dtype_t)dtype != expected)
    return WEIR_STATUS(INVALID_ARGUMENT, "output %d of %s is %s, not type %d", i,
                       ctx->ctx->node->op_name, weir_dtype_name(expected), (int)dtype);
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_kernel_output(ctx->ctx, i, rank, dims, &tensor));
  return wrap(tensor, out_handle);
}

TF_Tensor* TF_AllocateOutput(TF_OpKernelContext* context, int index, TF_DataType dtype,
                             const int64_t* dims, int num_dims, size_t len, TF_Status* status) {
  (void)len;  // follows from type and shape
  TF_Tensor* handle = NULL;
  tf_status_take(status, allocate_output(context, index, dtype, dims, num_dims, &handle));
  return handle;
}

// Whether the memory of input |from| can be that of output |i|, of |count| elements.
static bool can_forward(const weir_kernel_ctx_t* ctx, int from, int i, int64_t count) {
  weir_tensor_t* t = ctx->inputs[from].tensor;
  return t && weir_tensor_is_sole(t) && t->count == count &&
         t->dtype == weir_dtype_base(ctx->node->output_types[i]);
}

static weir_status_t* forward_or_allocate(TF_OpKernelContext* context, const int* candidates,
                                          int candidate_count, int i, const weir_dims_t* shape,
                                          TF_Tensor** out_handle, int* out_from) {
  weir_kernel_ctx_t* ctx = context->ctx;
  int64_t count = 0;
  weir_tensor_t* tensor = NULL;
  *out_from = -1;
  WEIR_TRY(check_output(context, i));
  const weir_dtype_t dtype = weir_dtype_base(ctx->node->output_types[i]);
  WEIR_TRY(weir_shape_count(dtype, shape->rank, shape->dims, &count));
  for (int k = 0; k < candidate_count && !tensor; ++k) {
    const int from = candidates[k];
    WEIR_TRY(check_input(context, from));
    if (!can_forward(ctx, from, i, count)) continue;
    const void* memory = ctx->inputs[from].tensor->data;
    WEIR_TRY(weir_kernel_forward(ctx, from, i, shape->rank, shape->dims, &tensor));
    if (tensor->data == memory) *out_from = from;
  }
  if (!tensor) WEIR_TRY(weir_kernel_output(ctx, i, shape->rank, shape->dims, &tensor));
  return wrap(tensor, out_handle);
}

TF_Tensor* TF_ForwardInputOrAllocateOutput(TF_OpKernelContext* context,
                                           const int* candidate_input_indices,
                                           int num_candidate_input_indices, int output_index,
                                           const int64_t* output_dims, int output_num_dims,
                                           int* forwarded_input, TF_Status* status) {
  TF_Tensor* handle = NULL;
  int from = -1;
  const weir_dims_t shape = {.dims = output_dims, .rank = output_num_dims, .is_set = true};
  tf_status_take(status,
                 forward_or_allocate(context, candidate_input_indices, num_candidate_input_indices,
                                     output_index, &shape, &handle, &from));
  if (forwarded_input) *forwarded_input = from;
  return handle;
}

TF_Tensor* TF_AllocateTemp(TF_OpKernelContext* context, TF_DataType dtype, const int64_t* dims,
                           int num_dims, TF_AllocatorAttributes* alloc_attrs, TF_Status* status) {
  const bool is_host =
      (alloc_attrs && alloc_attrs->on_host) || !weir_dtype_is_plain((weir_dtype_t)dtype);
  weir_allocator_t* allocator =
      weir_device_allocator(context->ctx->device, is_host ? WEIR_MEMORY_HOST : WEIR_MEMORY_DEVICE);
  weir_tensor_t* tensor = NULL;
  weir_status_t* failure =
      weir_tensor_create_in(allocator, (weir_dtype_t)dtype, num_dims, dims, &tensor);
  TF_Tensor* handle = failure ? NULL : tf_tensor_wrap(tensor);
  if (!failure && !handle) failure = weir_out_of_memory();
  tf_status_take(status, failure);
  return handle;
}

// ---- where and when ----

SP_Stream TF_GetStream(TF_OpKernelContext* ctx, TF_Status* status) {
  tf_status_take(status,
                 WEIR_STATUS(FAILED_PRECONDITION, "%s has no stream of TensorFlow's StreamExecutor",
                             ctx->ctx->device->name));
  return NULL;
}

int64_t TF_StepId(TF_OpKernelContext* ctx) { return ctx->ctx->step->id; }
int64_t TF_GetStepId(TF_OpKernelContext* ctx) { return ctx->ctx->step->id; }
uint64_t TF_GetFrameId(TF_OpKernelContext* ctx) { return (uint64_t)ctx->ctx->frame_id; }
int64_t TF_GetIterId(TF_OpKernelContext* ctx) { return ctx->ctx->iteration; }

int TF_GetDeviceId(TF_OpKernelContext* ctx) {
  const char* colon = strrchr(ctx->ctx->device->name, ':');
  return colon ? (int)strtol(colon + 1, NULL, 10) : 0;
}

static TF_StringView string_view(const char* text) {
  return (TF_StringView){.data = text, .len = strlen(text)};
}

TF_StringView TF_GetDeviceName(TF_OpKernelContext* ctx) {
  return string_view(ctx->ctx->device->name);
}
TF_StringView TF_GetOpKernelName(TF_OpKernelContext* ctx) {
  return string_view(ctx->ctx->node->name);
}
TF_StringView TF_GetResourceMgrDefaultContainerName(TF_OpKernelContext* ctx) {
  (void)ctx;
  return string_view("localhost");
}
