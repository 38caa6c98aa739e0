// cuda_conv.c — Filters turned to have their output channels first, and images padded by hand where
// the padding is not the same before and after.
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

// ---- filters ----

// From [sizes…, in, out] to [out, sizes…, in], or [out, in, sizes…] where images have channels
// first; or back.
static weir_status_t* turn_filter(const call_t* call, const void* from, void* to, bool is_back) {
  weir_device_t* device = call->ctx->device;
  const weir_conv_t* v = call->conv;
  int64_t sizes = v->filter[0] * v->filter[1] * v->filter[2], in = v->group_in, out = v->out_c;
  if (call->is_nchw) {
    weir_cuda_size_t size = weir_cuda_size_for(device, sizes * in * out);
    int64_t *first = is_back ? &out : &sizes, *last = is_back ? &sizes : &out;
    return weir_cuda_launch(device, call->kernels->turn, &size,
                            WEIR_CUDA_ARGS(&from, &to, first, &in, last));
  }
  int64_t rows = is_back ? out : sizes * in, columns = is_back ? sizes * in : out;
  int64_t tiles = ((rows + 31) / 32) * ((columns + 31) / 32);
  weir_cuda_size_t size = {.grid = {(unsigned)WEIR_MIN(tiles, 65535), 1, 1}, .block = {32, 8, 1}};
  return weir_cuda_launch(device, call->kernels->transpose, &size,
                          WEIR_CUDA_ARGS(&from, &to, &rows, &columns));
}

// ---- padding ----

// As the kernels have it.
typedef struct frame_t {
  int64_t batch, lines, pixels, channels;
  int64_t large_lines, large_pixels, line, pixel;
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
                   .lines = v->in[1],
                   .pixels = v->in[2],
                   .channels = call->is_nchw ? 1 : v->in_c,
                   .large_lines = even->in[1],
                   .large_pixels = even->in[2],
                   .line = begin[1],
                   .pixel = begin[2]};
  int64_t count = v->batch * v->in_c * even->in[1] * even->in[2];
  weir_cuda_size_t size = weir_cuda_size_for(call->ctx->device, count);
  return weir_cuda_launch(call->ctx->device, function, &size, WEIR_CUDA_ARGS(&from, &to, &frame));
}

// ---- the whole ----

typedef struct scratch_t {
  weir_tensor_t* image;
  weir_tensor_t* filter;
} scratch_t;

static weir_status_t* scratch_for(const call_t* call, int64_t count, weir_tensor_t** out) {
  return weir_kernel_scratch(call->ctx, call->dtype, count, out);
}

// The convolution as cuDNN is asked for it.
static weir_status_t* run_even(const call_t* call, const weir_conv_t* even, const void* a,
                               const void* b, void* out) {
  weir_cudnn_conv_t passed;
  weir_cudnn_operands_t operands = {.a = a, .b = b, .bias = call->of->bias, .out = out};
  memset(&passed, 0, sizeof(passed));  // all of its bytes are compared
  passed.conv = *even;
  passed.dtype = call->dtype;
  passed.kind = call->of->kind;
  passed.tail = call->of->tail;
  passed.is_nchw = call->is_nchw;
  passed.is_unaligned =
      (((uintptr_t)a | (uintptr_t)b | (uintptr_t)operands.bias | (uintptr_t)out) & 15) != 0;
  return weir_cudnn_run(call->ctx->device, &passed, call->kernels, &operands);
}

static weir_status_t* run(const call_t* call, const void* a, const void* b, void* out,
                          scratch_t* s) {
  weir_conv_t even;
  int64_t begin[3];
  const weir_conv_t* v = call->conv;
  const weir_conv_kernels_t* kernels = call->kernels;
  weir_conv_kind_t kind = call->of->kind;
  bool is_uneven = make_even(v, &even, begin);
  if (is_uneven && even.in[0] != v->in[0])
    return WEIR_STATUS(UNIMPLEMENTED, "uneven padding of volumes has no GPU kernel");
  int64_t image = even.batch * even.in_c * even.in[0] * even.in[1] * even.in[2];
  int64_t filter = v->filter[0] * v->filter[1] * v->filter[2] * v->group_in * v->out_c;
  WEIR_TRY(scratch_for(call, filter, &s->filter));
  if (is_uneven) WEIR_TRY(scratch_for(call, image, &s->image));
  if (is_uneven && kind != WEIR_CONV_BY_INPUT)
    WEIR_TRY(move_image(call, kernels->pad, &even, begin, a, s->image->data));
  if (kind != WEIR_CONV_BY_FILTER)
    WEIR_TRY(turn_filter(call, kind == WEIR_CONV_FORWARD ? b : a, s->filter->data, false));
  const void* x = is_uneven ? s->image->data : a;
  void* w = s->filter->data;
  if (kind == WEIR_CONV_FORWARD) return run_even(call, &even, x, w, out);
  if (kind == WEIR_CONV_BY_FILTER) {
    WEIR_TRY(run_even(call, &even, x, b, w));
    return turn_filter(call, w, out, true);
  }
  WEIR_TRY(run_even(call, &even, w, b, is_uneven ? s->image->data : out));
  return is_uneven ? move_image(call, kernels->crop, &even, begin, s->image->data, out) : NULL;
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
  scratch_t scratch = {NULL};
  int64_t outputs = v->batch * v->out[0] * v->out[1] * v->out[2] * v->out_c;
  if (out->count == 0) return NULL;
  WEIR_TRY(weir_conv_kernels_find(ctx->device, dtype, &call.kernels));
  if (outputs == 0 || v->batch * v->in_c * v->in[0] * v->in[1] * v->in[2] == 0)
    return run_empty(&call, out);
  weir_status_t* status = run(&call, a, b, out->data, &scratch);
  weir_tensor_release(scratch.image);
  weir_tensor_release(scratch.filter);
  return status;
}
