// fused_pad_conv2d.c — FusedPadConv2D and FusedResizeAndPadConv2D: a convolution of an image with a
// mirrored border, which may be resized before.
#include "kernel/conv/resize_pad.h"
#include "kernel/conv/window.h"
#include "kernel/move/staging.h"

typedef struct state_t {
  weir_window_t window;
  bool has_resize, is_align_corners;
  int64_t offset;  // of REFLECT 1, of SYMMETRIC 0
} state_t;

// ---- attributes ----

static weir_status_t* read_window(weir_attrs_t attrs, weir_window_t* out) {
  const weir_attr_t* strides = weir_attrs_list(attrs, "strides");
  *out = (weir_window_t){.axes = 2,
                         .dilation = {1, 1},
                         .padding = weir_view_is(weir_attrs_string(attrs, "padding"), "SAME")
                                        ? WEIR_PADDING_SAME
                                        : WEIR_PADDING_VALID};
  if (strides->count != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Sliding window strides field must specify 4 dimensions");
  }
  for (int axis = 0; axis < 2; ++axis) {
    out->stride[axis] = strides->u.ints[axis + 1];
    if (out->stride[axis] > 0 && out->stride[axis] <= INT32_MAX) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Stride must be > 0, but got %lld",
                       (long long)out->stride[axis]);
  }
  return NULL;
}

// ---- shapes ----

// The shape of |in| with the borders that input |i| says.
static weir_status_t* padded_dims(weir_shape_ctx_t* ctx, int i, int64_t dims[4]) {
  const weir_shape_t* paddings;
  const weir_tensor_t* value = weir_shape_value(ctx, i);
  int64_t joined;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 2, &paddings));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(paddings, 0), 4, &joined));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(paddings, 1), 2, &joined));
  for (int d = 0; d < 4; ++d) {
    if (!value) {
      dims[d] = d == 0 || d == 3 ? dims[d] : -1;  // no others have one
      continue;
    }
    int64_t before = weir_tensor_int_at(value, 2 * d), after = weir_tensor_int_at(value, 2 * d + 1);
    if (before < 0 || after < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Paddings must be non-negative");
    }
    if (dims[d] >= 0) dims[d] += before + after;
  }
  return NULL;
}

static weir_status_t* resized_dims(weir_shape_ctx_t* ctx, int64_t dims[4]) {
  const weir_shape_t* size;
  const weir_tensor_t* value = weir_shape_value(ctx, 1);
  int64_t joined;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 1, &size));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(size, 0), 2, &joined));
  for (int axis = 0; axis < 2; ++axis) {
    dims[axis + 1] = value && value->count == 2 ? weir_tensor_int_at(value, axis) : -1;
    if (dims[axis + 1] < -1) dims[axis + 1] = -1;  // the kernel refuses it
  }
  return NULL;
}

static weir_status_t* conv_shape(weir_shape_ctx_t* ctx, bool has_resize) {
  const int paddings = has_resize ? 2 : 1;
  const weir_shape_t *in, *filter;
  weir_window_t w;
  int64_t dims[4], joined;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 4, &in));
  for (int d = 0; d < 4; ++d) dims[d] = weir_shape_dim(in, d);
  if (has_resize) WEIR_TRY(resized_dims(ctx, dims));
  WEIR_TRY(padded_dims(ctx, paddings, dims));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, paddings + 1), 4, &filter));
  const size_t strides = weir_attrs_list(weir_shape_attrs(ctx), "strides")->count;
  if (strides != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Operation requires the stride attribute to contain 4 values, but got: %zu",
                       strides);
  }
  WEIR_TRY(read_window(weir_shape_attrs(ctx), &w));
  WEIR_TRY(weir_dim_join(ctx, dims[3], weir_shape_dim(filter, 2), &joined));
  for (int axis = 0; axis < 2; ++axis) {
    WEIR_TRY(weir_window_output_shape(&w, axis, dims[axis + 1], weir_shape_dim(filter, axis),
                                      &dims[axis + 1]));
  }
  dims[3] = weir_shape_dim(filter, 3);
  return weir_shape_set_dims(ctx, 0, 4, dims);
}
static weir_status_t* pad_shape(weir_shape_ctx_t* ctx) { return conv_shape(ctx, false); }
static weir_status_t* resize_shape(weir_shape_ctx_t* ctx) { return conv_shape(ctx, true); }

// ---- kernels ----

static weir_status_t* conv_init(const weir_kernel_init_t* init, state_t* s) {
  weir_attrs_t attrs = init->node->attrs;
  const weir_attr_t* strides = weir_attrs_list(attrs, "strides");
  WEIR_TRY(read_window(attrs, &s->window));
  if (strides->u.ints[0] != 1 || strides->u.ints[3] != 1) {
    return WEIR_STATUS(
        INVALID_ARGUMENT,
        "Current implementation does not yet support strides in the batch and depth dimensions.");
  }
  s->offset = weir_view_is(weir_attrs_string(attrs, "mode"), "REFLECT");
  return NULL;
}
static weir_status_t* pad_init(const weir_kernel_init_t* init, void* state) {
  return conv_init(init, state);
}
static weir_status_t* resize_init(const weir_kernel_init_t* init, void* state) {
  state_t* s = state;
  s->has_resize = true;
  s->is_align_corners = weir_attrs_bool(init->node->attrs, "resize_align_corners");
  return conv_init(init, s);
}

static weir_status_t* read_input(const weir_kernel_ctx_t* ctx, weir_resize_pad_t* p) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (in->count == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Input tensor can't be empty");
  if (in->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be 4-dimensional%s",
                       weir_tensor_shape_text(in, text));
  }
  *p = (weir_resize_pad_t){.batch = in->dims[0],
                           .channels = in->dims[3],
                           .in = {in->dims[1], in->dims[2]},
                           .resized = {in->dims[1], in->dims[2]}};
  return NULL;
}

static weir_status_t* read_size(const weir_kernel_ctx_t* ctx, weir_resize_pad_t* p) {
  const weir_tensor_t* size = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (size->rank != 1 || size->count != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "shape_t must %s%s",
                       size->rank == 1 ? "have two elements" : "be 1-dimensional",
                       weir_tensor_shape_text(size, text));
  }
  for (int axis = 0; axis < 2; ++axis) {
    p->resized[axis] = weir_tensor_int_at(size, axis);
    if (p->resized[axis] > 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "output dimensions must be positive");
  }
  return NULL;
}

// The border of dimension |d|, of |size| elements.
static weir_status_t* check_border(const state_t* s, int d, int64_t size, int64_t before,
                                   int64_t after) {
  if (before < 0 || after < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "paddings must be non-negative: %lld %lld",
                       (long long)before, (long long)after);
  }
  if (before > size - s->offset || after > size - s->offset) {
    return WEIR_STATUS(INVALID_ARGUMENT, "paddings must be %s than the dimension size: %lld, %lld",
                       s->offset ? "less" : "no greater", (long long)before, (long long)after);
  }
  if ((before == 0 && after == 0) || d == 1 || d == 2) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Fused mirror padding only support spatial padding, not %s",
                     d == 0 ? "batches" : "channels");
}

static weir_status_t* read_paddings(const weir_kernel_ctx_t* ctx, int i, weir_resize_pad_t* p) {
  const state_t* s = ctx->state;
  const weir_tensor_t* paddings = weir_kernel_input(ctx, i);
  const int64_t sizes[] = {p->batch, p->resized[0], p->resized[1], p->channels};
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (paddings->rank != 2 || paddings->dims[1] != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "paddings must be a matrix with 2 columns: %s",
                       weir_tensor_shape_text(paddings, text));
  }
  if (paddings->dims[0] != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The first dimension of paddings must be the rank of inputs: 4 %s",
                       weir_tensor_shape_text(paddings, text));
  }
  p->offset = s->offset;
  for (int d = 0; d < 4; ++d) {
    int64_t before = weir_tensor_int_at(paddings, 2 * d);
    int64_t after = weir_tensor_int_at(paddings, 2 * d + 1);
    WEIR_TRY(check_border(s, d, sizes[d], before, after));
    if (d != 1 && d != 2) continue;
    p->before[d - 1] = before;
    p->out[d - 1] = sizes[d] + before + after;
  }
  return NULL;
}

static weir_status_t* check_filter(const weir_tensor_t* filter, int64_t channels) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (filter->rank != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "filter must be 4-dimensional: %s",
                       weir_tensor_shape_text(filter, text));
  }
  if (filter->dims[2] != channels) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input and filter must have the same depth: %lld vs %lld",
                       (long long)channels, (long long)filter->dims[2]);
  }
  if (filter->count > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Output tensor can't be empty");
}

// Resizes and pads into memory of its own, and convolves that.
static weir_status_t* run(weir_kernel_ctx_t* ctx, const weir_resize_pad_t* p,
                          const weir_conv_t* conv, const weir_tensor_t* filter,
                          weir_tensor_t* out) {
  const weir_dtype_t dtype = weir_compute_type(weir_tensor_type(out));
  const int64_t dims[] = {p->batch, p->out[0], p->out[1], p->channels};
  weir_staged_t x = {0}, f = {0}, y = {0};
  weir_tensor_t* padded = NULL;
  int64_t count;
  WEIR_TRY(weir_shape_count(dtype, 4, dims, &count));
  weir_status_t* status = weir_kernel_scratch(ctx, dtype, count, &padded);
  if (!status) status = weir_stage_input(ctx, weir_kernel_input(ctx, 0), false, &x);
  if (!status) status = weir_stage_input(ctx, filter, false, &f);
  if (!status) status = weir_stage_output(ctx, out, false, &y);
  if (!status) status = weir_resize_pad(weir_kernel_pool(ctx), dtype, p, x.data, padded->data);
  if (!status)
    status = weir_conv_forward(weir_kernel_pool(ctx), dtype, conv, padded->data, f.data, y.data);
  if (!status) status = weir_stage_finish(ctx, out, false, &y);
  weir_tensor_release(padded);
  weir_staged_release(&x);
  weir_staged_release(&f);
  weir_staged_release(&y);
  return status;
}

static weir_status_t* conv_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* s = ctx->state;
  const int paddings = s->has_resize ? 2 : 1;
  const weir_tensor_t* filter = weir_kernel_input(ctx, paddings + 1);
  weir_resize_pad_t p;
  weir_tensor_t* out;
  weir_conv_t conv;
  WEIR_TRY(read_input(ctx, &p));
  p.is_align_corners = s->is_align_corners;
  if (s->has_resize) WEIR_TRY(read_size(ctx, &p));
  WEIR_TRY(read_paddings(ctx, paddings, &p));
  WEIR_TRY(check_filter(filter, p.channels));
  const int64_t dims[] = {p.batch, p.out[0], p.out[1], p.channels};
  WEIR_TRY(weir_window_conv(&s->window, ctx->node->op_name, dims, filter->dims, false, &conv));
  const int64_t out_dims[] = {p.batch, conv.out[1], conv.out[2], conv.out_c};
  if (conv.out[1] == 0 || conv.out[2] == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Output tensor can't be empty");
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, 4, out_dims, &out));
  return run(ctx, &p, &conv, filter, out);
}

#define CONV_ATTRS "mode: {'REFLECT','SYMMETRIC'}; strides: list(int); padding: {'SAME','VALID'}"

const weir_op_module_t weir_ops_nn_fused_pad_conv2d = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "FusedPadConv2D",
         .mixed = WEIR_MIXED_ALLOW,
         .summary = "Convolves images with a mirrored border",
         .attrs = "T: {half, bfloat16, float, double}; " CONV_ATTRS,
         .inputs = "input: T; paddings: int32; filter: T",
         .outputs = "output: T",
         .infer_shape = pad_shape,
         .kernels =
             WEIR_CPU_KERNEL(.compute = conv_cpu, .init = pad_init, .state_size = sizeof(state_t))},
        {.name = "FusedResizeAndPadConv2D",
         .summary = "Convolves resized images with a mirrored border",
         .attrs = "T: {half, float, double}; resize_align_corners: bool = false; " CONV_ATTRS,
         .inputs = "input: T; size: int32; paddings: int32; filter: T",
         .outputs = "output: T",
         .infer_shape = resize_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = conv_cpu, .init = resize_init,
                                    .state_size = sizeof(state_t))},
        {0}}};
