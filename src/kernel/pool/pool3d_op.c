// pool3d_op.c — Attributes, sizes and shapes of three-dimensional pooling.
#include "kernel/pool/pool3d_op.h"

static void read_lists(weir_attrs_t attrs, weir_pool3d_window_t* out) {
  weir_window_t* w = &out->window;
  *out = (weir_pool3d_window_t){
      .window = {.axes = 3,
                 .is_nchw = weir_view_is(weir_attrs_string(attrs, "data_format"), "NCDHW"),
                 .padding = weir_view_is(weir_attrs_string(attrs, "padding"), "SAME")
                                ? WEIR_PADDING_SAME
                                : WEIR_PADDING_VALID,
                 .dilation = {1, 1, 1}}};
  for (int axis = 0; axis < 3; ++axis) {
    int d = weir_window_axis(w, axis);
    out->size[axis] = weir_attrs_list(attrs, "ksize")->u.ints[d];
    w->stride[axis] = weir_attrs_list(attrs, "strides")->u.ints[d];
  }
}

// TensorFlow keeps them as such.
static weir_status_t* check_int32(weir_attrs_t attrs, const char* name) {
  const weir_attr_t* list = weir_attrs_list(attrs, name);
  for (size_t i = 0; i < list->count; ++i) {
    if (list->u.ints[i] == (int32_t)list->u.ints[i]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Attr %s has value %lld out of range for an int32", name,
                       (long long)list->u.ints[i]);
  }
  return NULL;
}

static weir_status_t* check_lengths(weir_attrs_t attrs) {
  if (weir_attrs_list(attrs, "ksize")->count != 5) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Sliding window ksize field must specify 5 dimensions");
  }
  if (weir_attrs_list(attrs, "strides")->count != 5) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Sliding window stride field must specify 5 dimensions");
  }
  return NULL;
}

static weir_status_t* check_strides(const weir_window_t* w) {
  for (int axis = 0; axis < 3; ++axis) {
    if (w->stride[axis] > 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Stride must be > 0, but got %lld",
                       (long long)w->stride[axis]);
  }
  return NULL;
}

static weir_status_t* check_sizes(const weir_attr_t* size) {
  for (size_t i = 0; i < size->count; ++i) {
    if (size->u.ints[i] > 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Sliding window ksize field must have non-negative dimensions");
  }
  return NULL;
}

weir_status_t* weir_pool3d_check_window(const weir_pool3d_window_t* w) {
  for (int axis = 0; axis < 3; ++axis) {
    if (w->size[axis] > 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Sliding window ksize field must have non-negative dimensions");
  }
  return NULL;
}

weir_status_t* weir_pool3d_read(weir_attrs_t attrs, const char* what,
                                weir_pool3d_window_t* out_window) {
  WEIR_TRY(check_int32(attrs, "ksize"));
  WEIR_TRY(check_lengths(attrs));
  WEIR_TRY(check_sizes(weir_attrs_list(attrs, "ksize")));
  return weir_pool3d_read_grad(attrs, what, out_window);
}

weir_status_t* weir_pool3d_read_grad(weir_attrs_t attrs, const char* what,
                                     weir_pool3d_window_t* out_window) {
  const weir_attr_t *size = weir_attrs_list(attrs, "ksize"),
                    *stride = weir_attrs_list(attrs, "strides");
  WEIR_TRY(check_int32(attrs, "ksize"));
  WEIR_TRY(check_int32(attrs, "strides"));
  WEIR_TRY(check_lengths(attrs));
  read_lists(attrs, out_window);
  if (size->u.ints[0] != 1 || stride->u.ints[0] != 1) {
    return WEIR_STATUS(UNIMPLEMENTED, "Pooling is not yet supported on the batch dimension.");
  }
  int c = weir_window_channels(&out_window->window);
  if (size->u.ints[c] != 1 || stride->u.ints[c] != 1) {
    return WEIR_STATUS(UNIMPLEMENTED, "%s is not yet supported on the depth dimension.", what);
  }
  return check_strides(&out_window->window);
}

weir_status_t* weir_pool3d_sizes(const weir_pool3d_window_t* w, const int64_t dims[5],
                                 weir_pool3d_t* out_pool, int64_t out_dims[5]) {
  weir_pool3d_t p = {.batch = dims[0], .channels = dims[weir_window_channels(&w->window)]};
  for (int axis = 0; axis < 3; ++axis) {
    p.in[axis] = dims[weir_window_axis(&w->window, axis)];
    p.window[axis] = w->size[axis];
    p.stride[axis] = w->window.stride[axis];
    WEIR_TRY(weir_window_output(&w->window, axis, p.in[axis], p.window[axis], &p.out[axis],
                                &p.pad[axis]));
  }
  weir_window_dims(&w->window, p.batch, p.out, p.channels, out_dims);
  *out_pool = p;
  return NULL;
}

void weir_pool3d_skip(const weir_pool3d_window_t* w, weir_pool3d_t* p) {
  if (w->window.padding != WEIR_PADDING_SAME) return;
  for (int axis = 0; axis < 3; ++axis) {
    int64_t more = (p->out[axis] - 1) * p->stride[axis] + p->window[axis] - p->in[axis];
    if (more < 0 && p->in[axis] > 0) p->pad[axis] = more / 2;
  }
}

weir_status_t* weir_pool3d_shape(weir_shape_ctx_t* ctx, bool is_grad, int64_t out_dims[5]) {
  weir_attrs_t attrs = weir_shape_attrs(ctx);
  size_t sizes = weir_attrs_list(attrs, "ksize")->count;
  size_t strides = weir_attrs_list(attrs, "strides")->count;
  weir_pool3d_window_t w;
  const weir_shape_t* in;
  int64_t out[3];
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 5, &in));
  WEIR_TRY(check_int32(attrs, "ksize"));
  WEIR_TRY(check_int32(attrs, "strides"));
  if (strides != 5) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Pool3D ops require the stride attribute to contain 5 values, but got: %zu",
                       strides);
  }
  if (sizes != 5) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Pool3D requires the ksize attribute to contain 5 values, but got: %zu",
                       sizes);
  }
  read_lists(attrs, &w);
  WEIR_TRY(check_strides(&w.window));
  if (!is_grad) WEIR_TRY(check_sizes(weir_attrs_list(attrs, "ksize")));
  for (int axis = 0; axis < 3; ++axis) {
    int64_t size = weir_shape_dim(in, weir_window_axis(&w.window, axis));
    WEIR_TRY(weir_window_output_shape(&w.window, axis, size, w.size[axis], &out[axis]));
  }
  weir_window_dims(&w.window, weir_shape_dim(in, 0), out,
                   weir_shape_dim(in, weir_window_channels(&w.window)), out_dims);
  return NULL;
}
