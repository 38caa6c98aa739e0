// conv_grad.c — What gradients of convolutions are given, and what they refuse, in TensorFlow's
// words: those of images, of volumes and of single channels differ.
#include "kernel/conv/conv_grad.h"

static weir_status_t* refuse_rank(const weir_conv_grad_t* g, const char* name) {
  if (g->window->axes == 3)
    return WEIR_STATUS(INVALID_ARGUMENT, "%s tensor must have 5 dimensions",
                       strcmp(name, "filter") == 0 ? "filter_sizes" : name);
  return WEIR_STATUS(INVALID_ARGUMENT, "%s: %s must be 4-dimensional", g->label, name);
}

weir_status_t* weir_conv_grad_rank(const weir_conv_grad_t* g, const weir_tensor_t* t,
                                   const char* name) {
  return t->rank == g->window->axes + 2 ? NULL : refuse_rank(g, name);
}

// ---- sizes ----

static weir_status_t* check_sizes(const weir_conv_grad_t* g, const char* name, int count,
                                  const int64_t* sizes) {
  int64_t elements;
  for (int i = 0; g->family->is_depthwise && i < count; ++i) {
    if (sizes[i] >= 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Dimension %d of %s_sizes must be >= 0", i, name);
  }
  return weir_shape_count(WEIR_DTYPE_FLOAT, count, sizes, &elements);
}

weir_status_t* weir_conv_grad_sizes(const weir_kernel_ctx_t* ctx, const weir_conv_grad_t* g, int i,
                                    int64_t sizes[WEIR_CONV_MAX_RANK], int* out_count) {
  const weir_tensor_t* t = weir_kernel_input(ctx, i);
  const char* name = i == 0 ? "input" : "filter";
  const int rank = g->window->axes + 2;
  const bool has_short = i == 0 && g->family->has_short_sizes;
  if (g->family->takes_tensors) {
    WEIR_TRY(weir_conv_grad_rank(g, t, name));
    memcpy(sizes, t->dims, (size_t)rank * sizeof(*sizes));
    *out_count = rank;
    return NULL;
  }
  if (t->rank != 1 && g->window->axes == 3) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    if (i == 0)
      return WEIR_STATUS(INVALID_ARGUMENT, "shape must be a vector of {int32,int64}, got shape %s",
                         weir_tensor_shape_text(t, text));
    return WEIR_STATUS(INVALID_ARGUMENT, "filter_sizes shape must be rank 1 but is rank %d",
                       t->rank);
  }
  if (t->rank != 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: %s_sizes input must be 1-dim, not %d", g->label, name,
                       t->rank);
  }
  if (t->count != rank && !(has_short && t->count == rank - 2)) {
    if (!has_short) return refuse_rank(g, name);
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Conv2DBackpropInput requires input_sizes to contain 4 values or 2 values, "
                       "but got: %lld",
                       (long long)t->count);
  }
  WEIR_TRY(weir_kernel_ints(ctx, i, sizes, rank, out_count));
  return check_sizes(g, name, *out_count, sizes);
}

// ---- agreement ----

// TensorFlow's gradients of volumes take no groups; those that there can be are taken here.
static weir_status_t* check_volume(const weir_conv_grad_t* g, int64_t depth, int64_t out_depth) {
  const int64_t* filter = g->filter + g->window->axes;
  const bool fits =
      filter[0] > 0 && depth > 0 && depth % filter[0] == 0 && filter[1] % (depth / filter[0]) == 0;
  if (!fits && depth != filter[0]) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "input and filter_sizes must have the same number of channels. Got %lld for "
                       "input and %lld for filter_sizes",
                       (long long)depth, (long long)filter[0]);
  }
  if (out_depth == filter[1]) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "out_backprop and filter_sizes must have the same number of channels. Got "
                     "%lld for out_backprop and %lld for filter_sizes",
                     (long long)out_depth, (long long)filter[1]);
}

static weir_status_t* check_batch(const weir_conv_grad_t* g) {
  const int64_t in = g->in[0], dy = g->dy->dims[0];
  if (in == dy) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "%s: input and out_backprop must have the same batch size. Input batch: %lld, "
                     "outbackprop batch: %lld, batch_dim: 0",
                     g->label, (long long)in, (long long)dy);
}

static weir_status_t* check_depth(const weir_conv_grad_t* g, int64_t depth, int64_t out_depth) {
  const int64_t* filter = g->filter + g->window->axes;
  if (g->family->is_depthwise) {
    if (depth == filter[0]) return NULL;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: input and filter must have the same in_depth",
                       g->label);
  }
  if (filter[0] <= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: filter depth must be strictly greated than zero",
                       g->label);
  }
  if (depth % filter[0] != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: input depth must be evenly divisible by filter depth",
                       g->label);
  }
  if (out_depth == filter[1]) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s: filter and out_backprop must have the same out_depth",
                     g->label);
}

static weir_status_t* check_axis(const weir_conv_grad_t* g, const weir_conv_t* conv, int axis) {
  static const char* const names[] = {"rows", "cols"};
  const int at = weir_window_axis(g->window, axis), to = 3 - g->window->axes + axis;
  const int64_t actual = g->dy->dims[at];
  if (actual == conv->out[to]) return NULL;
  if (g->family->is_depthwise) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s: Number of %s of out_backprop doesn't match computed: actual = %lld, "
                       "computed = %lld",
                       g->label, names[axis], (long long)actual, (long long)conv->out[to]);
  }
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "%s: Size of out_backprop doesn't match computed: actual = %lld, computed = "
                     "%lld spatial_dim: %d input: %lld filter: %lld output: %lld stride: %lld "
                     "dilation: %lld",
                     g->label, (long long)actual, (long long)conv->out[to], at,
                     (long long)conv->in[to], (long long)conv->filter[to], (long long)actual,
                     (long long)conv->stride[to], (long long)conv->dilation[to]);
}

weir_status_t* weir_conv_grad_conv(const weir_conv_grad_t* g, weir_conv_t* out_conv) {
  const int channels = weir_window_channels(g->window);
  const int64_t depth = g->in[channels], out_depth = g->dy->dims[channels];
  if (g->window->axes == 3) WEIR_TRY(check_volume(g, depth, out_depth));
  WEIR_TRY(check_batch(g));
  WEIR_TRY(check_depth(g, depth, out_depth));
  WEIR_TRY(
      weir_window_conv(g->window, g->label, g->in, g->filter, g->family->is_depthwise, out_conv));
  for (int axis = 0; axis < g->window->axes; ++axis) WEIR_TRY(check_axis(g, out_conv, axis));
  if (out_depth == out_conv->out_c) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s: depth_multiplier * in_depth not equal to out_depth",
                     g->label);
}
