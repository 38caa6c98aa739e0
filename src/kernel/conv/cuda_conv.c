// cuda_conv.c — Images and volumes padded by hand where the padding is not the same before and
// after.
#include "kernel/conv/cuda_conv.h"

#include <string.h>

typedef struct call_t {
  weir_kernel_ctx_t* ctx;
  const weir_cuda_conv_t* of;
  const weir_conv_t* conv;
  bool is_nchw;
  weir_dtype_t dtype;
  const weir_conv_kernels_t* kernels;
} call_t;

// ---- padding ----

// As the kernels have it.
typedef struct frame_t {
  int64_t batch, sizes[3], channels;
  int64_t large[3], begin[3];
} frame_t;

// Padding after the last element of |axis| that the output needs.
static int64_t pad_after(const weir_conv_t* v, int axis) {
  int64_t extent = (v->filter[axis] - 1) * v->dilation[axis] + 1;
  return (v->out[axis] - 1) * v->stride[axis] + extent - v->in[axis] - v->pad[axis];
}

// Whether an output of the right size comes out with as much padding after as before.
static bool is_even(const weir_conv_t* v, int axis) {
  int64_t extent = (v->filter[axis] - 1) * v->dilation[axis] + 1;
  return (v->in[axis] + 2 * v->pad[axis] - extent) / v->stride[axis] + 1 == v->out[axis];
}

// |out_even| is the same convolution of an image in a larger one, where it begins at |out_begin|.
// False: it is even as it is.
static bool make_even(const weir_conv_t* v, weir_conv_t* out_even, int64_t out_begin[3]) {
  bool has_changed = false;
  *out_even = *v;
  for (int axis = 0; axis < 3; ++axis) {
    int64_t before = v->pad[axis], after = WEIR_MAX(pad_after(v, axis), 0);
    out_begin[axis] = 0;
    if (is_even(v, axis)) continue;
    has_changed = true;
    out_begin[axis] = WEIR_MAX(before - after, 0);
    out_even->in[axis] += before > after ? before - after : after - before;
    out_even->pad[axis] = WEIR_MIN(before, after);
  }
  return has_changed;
}

static weir_status_t* move_image(const call_t* call, weir_cuda_function_t function,
                                 const weir_conv_t* even, const int64_t* begin, const void* from,
                                 void* to) {
  const weir_conv_t* v = call->conv;
  frame_t frame = {.batch = call->is_nchw ? v->batch * v->in_c : v->batch,
                   .channels = call->is_nchw ? 1 : v->in_c};
  int64_t count = v->batch * v->in_c;
  for (int axis = 0; axis < 3; ++axis) {
    frame.sizes[axis] = v->in[axis];
    frame.large[axis] = even->in[axis];
    frame.begin[axis] = begin[axis];
    count *= even->in[axis];
  }
  weir_cuda_size_t size = weir_cuda_size_for(call->ctx->device, count);
  return weir_cuda_launch(call->ctx->device, function, &size, WEIR_CUDA_ARGS(&from, &to, &frame));
}

// ---- the whole ----

// The convolution, which is even.
static weir_status_t* run_even(const call_t* call, const weir_conv_t* even, const void* a,
                               const void* b, void* out) {
  weir_cudnn_conv_t passed;
  weir_conv_kind_t kind = call->of->kind;
  weir_cudnn_operands_t operands = {.a = a, .b = b, .bias = call->of->bias, .out = out};
  memset(&passed, 0, sizeof(passed));  // all of its bytes are compared
  passed.conv = *even;
  passed.dtype = call->dtype;
  passed.kind = kind;
  passed.tail = call->of->tail;
  passed.is_nchw = call->is_nchw;
  uintptr_t x = (uintptr_t)(kind == WEIR_CONV_BY_INPUT ? out : a);
  uintptr_t y = (uintptr_t)(kind == WEIR_CONV_FORWARD ? out : b);
  passed.is_unaligned = ((x | y | (uintptr_t)operands.bias) & 15) != 0;
  return weir_cudnn_run(call->ctx->device, &passed, call->kernels, &operands);
}

// |image| has room for the larger image.
static weir_status_t* run_uneven(const call_t* call, const weir_conv_t* even, const int64_t* begin,
                                 const void* a, const void* b, void* out, void* image) {
  const weir_conv_kernels_t* kernels = call->kernels;
  if (call->of->kind != WEIR_CONV_BY_INPUT) {
    WEIR_TRY(move_image(call, kernels->pad, even, begin, a, image));
    return run_even(call, even, image, b, out);
  }
  WEIR_TRY(run_even(call, even, a, b, image));
  return move_image(call, kernels->crop, even, begin, image, out);
}

static weir_status_t* run(const call_t* call, const void* a, const void* b, void* out) {
  weir_conv_t even;
  int64_t begin[3];
  const weir_conv_t* v = call->conv;
  if (!make_even(v, &even, begin)) return run_even(call, v, a, b, out);
  weir_tensor_t* image = NULL;
  int64_t count = even.batch * even.in_c * even.in[0] * even.in[1] * even.in[2];
  WEIR_TRY(weir_kernel_scratch(call->ctx, call->dtype, count, &image));
  weir_status_t* status = run_uneven(call, &even, begin, a, b, out, image->data);
  weir_tensor_release(image);
  return status;
}

// Where there is nothing to multiply, all sums are 0.
static weir_status_t* run_empty(const call_t* call, weir_tensor_t* out) {
  weir_device_t* device = call->ctx->device;
  WEIR_TRY(weir_cuda_zero(device, out->data, weir_tensor_byte_size(out)));
  if (call->of->tail == WEIR_CONV_NO_TAIL) return NULL;
  weir_conv_tail_run_t tail = {.tail = call->of->tail,
                               .dtype = call->dtype,
                               .conv = call->conv,
                               .is_nchw = call->is_nchw,
                               .bias = call->of->bias,
                               .y = out->data};
  return weir_conv_kernels_tail(device, call->kernels, &tail);
}

weir_status_t* weir_cuda_conv(weir_kernel_ctx_t* ctx, const weir_cuda_conv_t* conv, const void* a,
                              const void* b, weir_tensor_t* out) {
  const weir_conv_t* v = conv->conv;
  weir_dtype_t dtype = weir_tensor_type(out);
  call_t call = {.ctx = ctx, .of = conv, .conv = v, .is_nchw = conv->is_nchw, .dtype = dtype};
  int64_t outputs = v->batch * v->out[0] * v->out[1] * v->out[2] * v->out_c;
  if (out->count == 0) return NULL;
  WEIR_TRY(weir_conv_kernels_find(ctx->device, dtype, &call.kernels));
  if (outputs == 0 || v->batch * v->in_c * v->in[0] * v->in[1] * v->in[2] == 0)
    return run_empty(&call, out);
  return run(&call, a, b, out->data);
}
