// submit.c — Kernels on devices with memory and an order of work of their own.
#include "op/promise.h"

// ---- where arguments live ----

static bool is_host_type(const weir_kernel_def_t* kernel, weir_dtype_t type) {
  weir_dtype_t base = weir_dtype_base(type);
  return !weir_dtype_is_plain(base) || (kernel && kernel->keeps_int32 && base == WEIR_DTYPE_INT32);
}

uint64_t weir_kernel_host_args(const weir_node_def_t* node, const weir_kernel_def_t* kernel,
                               bool outputs) {
  uint64_t args = !kernel ? 0 : outputs ? kernel->host_output_args : kernel->host_input_args;
  const weir_dtype_t* types = outputs ? node->output_types : node->input_types;
  int count = outputs ? node->output_count : node->input_count;
  uint64_t mask = 0;
  for (int i = 0; i < WEIR_MIN(count, 64); ++i) {
    if (is_host_type(kernel, types[i])) mask |= UINT64_C(1) << i;
  }
  for (int arg = 0; arg < 64 && args >> arg; ++arg) {
    int first = 0, size = 0;
    if (!(args >> arg & 1)) continue;
    if (outputs) weir_node_output_range(node, arg, &first, &size);
    else weir_node_input_range(node, arg, &first, &size);
    for (int i = first; i < WEIR_MIN(first + size, 64); ++i) mask |= UINT64_C(1) << i;
  }
  return mask;
}

bool weir_kernel_is_host_arg(const weir_node_def_t* node, const weir_kernel_def_t* kernel,
                             bool outputs, int i) {
  uint64_t args = !kernel ? 0 : outputs ? kernel->host_output_args : kernel->host_input_args;
  const weir_dtype_t* types = outputs ? node->output_types : node->input_types;
  if (is_host_type(kernel, types[i])) return true;
  for (int arg = 0; arg < 64 && args >> arg; ++arg) {
    int first = 0, size = 0;
    if (!(args >> arg & 1)) continue;
    if (outputs) weir_node_output_range(node, arg, &first, &size);
    else weir_node_input_range(node, arg, &first, &size);
    if (i >= first && i < first + size) return true;
  }
  return false;
}

// ---- running ----

typedef struct submitted_t {
  weir_work_t work;  // first
  weir_kernel_ctx_t* ctx;
  const weir_value_t* promised;  // may be NULL
  weir_submit_trace_t* trace;    // may be NULL
  weir_status_t* status;
  weir_done_t done;
} submitted_t;

// Puts an output where readers expect it: a kernel that was written for the CPU may hand on what it
// got, or make a tensor by itself.
static weir_status_t* put_in_place(const weir_kernel_ctx_t* ctx, int i) {
  weir_tensor_t* tensor = ctx->outputs[i].tensor;
  if (!tensor || !weir_dtype_is_plain(weir_tensor_type(tensor))) return NULL;
  bool is_host = weir_kernel_is_host_output(ctx, i);
  weir_memory_t memory = is_host ? WEIR_MEMORY_HOST : WEIR_MEMORY_DEVICE;
  weir_allocator_t* allocator = weir_device_allocator(ctx->device, memory);
  if (weir_tensor_space(tensor) == allocator->space) return NULL;
  weir_tensor_t* moved = NULL;
  WEIR_TRY(weir_tensor_create_in(allocator, weir_tensor_type(tensor), tensor->rank, tensor->dims,
                                 &moved));
  if (tensor->count) memcpy(moved->data, tensor->data, weir_tensor_byte_size(tensor));
  weir_tensor_release(tensor);
  ctx->outputs[i].tensor = moved;
  return NULL;
}

// A kernel that was written for the CPU would read an input that is in the wrong memory, too, where
// a GPU's could not: so that tests notice.
static void check_places(const weir_kernel_ctx_t* ctx) {
  const void* space = weir_device_allocator(ctx->device, WEIR_MEMORY_DEVICE)->space;
  for (int i = 0; i < ctx->input_count; ++i) {
    const weir_tensor_t* tensor = ctx->inputs[i].tensor;
    if (!tensor || !weir_dtype_is_plain(weir_tensor_type(tensor)) || tensor->count == 0) continue;
    bool is_ref = weir_dtype_is_ref(ctx->node->input_types[i]);  // as the variable was made
    if (is_ref || weir_kernel_is_host_input(ctx->node, ctx->kernel, i)) continue;
    WEIR_CHECK(weir_tensor_space(tensor) == space);
  }
}

// What was submitted after a kernel that failed does not run: its inputs are not what they were
// promised to be.
static weir_status_t* compute(weir_kernel_ctx_t* ctx, const weir_value_t* promised) {
  if (weir_cancel_is_cancelled(ctx->step->cancel))
    return WEIR_STATUS(CANCELLED, "Step was cancelled");
  check_places(ctx);
  WEIR_TRY(ctx->kernel->compute(ctx));
  for (int i = 0; i < ctx->output_count; ++i) WEIR_TRY(put_in_place(ctx, i));
  return promised ? weir_promise_keep(ctx, promised) : NULL;
}

static void run(weir_work_t* work) {
  submitted_t* self = (submitted_t*)work;
  weir_submit_trace_t* trace = self->trace;
  if (trace) {
    trace->start_ns = weir_clock_ns();
    weir_alloc_meter_resume(&trace->memory);
  }
  self->status = compute(self->ctx, self->promised);
  if (trace) weir_alloc_meter_end(&trace->memory);
}

static void finish(weir_work_t* work) {
  submitted_t self = *(submitted_t*)work;
  weir_free(work);
  weir_done_call(self.done, self.status);
}

void weir_kernel_submit(weir_kernel_ctx_t* ctx, const weir_value_t* promised,
                        weir_submit_trace_t* trace, weir_done_t done) {
  submitted_t* self = weir_calloc(1, sizeof(*self));
  if (!self) {
    weir_done_call(done, weir_out_of_memory());
    return;
  }
  *self = (submitted_t){.work = {.run = run, .done = finish},
                        .ctx = ctx,
                        .promised = promised,
                        .trace = trace,
                        .done = done};
  ctx->promised = promised;
  ctx->device->vtable->submit(ctx->device, WEIR_STREAM_COMPUTE, &self->work);
}
