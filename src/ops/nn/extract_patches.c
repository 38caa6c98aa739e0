// extract_patches.c — ExtractImagePatches and ExtractVolumePatches: windows of an image or volume,
// written out as channels.
#include "kernel/conv/window.h"
#include "kernel/move/patches.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"

// What the attributes say. An image has one axis less: its size is [1, kh, kw].
typedef struct state_t {
  weir_window_t window;
  int64_t size[3];
} state_t;

// ---- attributes ----

static const int64_t* list_of(weir_attrs_t attrs, const char* name) {
  return weir_attrs_list(attrs, name)->u.ints;
}

static weir_status_t* check_lists(weir_attrs_t attrs, const char* op, int axes) {
  static const char* const names[] = {"ksizes", "strides", "rates"};
  for (int i = 0; i < (axes == 2 ? 3 : 2); ++i) {  // volumes have no rates
    const weir_attr_t* list = weir_attrs_list(attrs, names[i]);
    size_t count = list->count;
    for (size_t k = 0; k < count; ++k) {
      if (list->u.ints[k] == (int32_t)list->u.ints[k]) continue;
      return WEIR_STATUS(INVALID_ARGUMENT, "Attr %s has value %lld out of range for an int32",
                         names[i], (long long)list->u.ints[k]);
    }
    if (count == (size_t)axes + 2) continue;
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "%s requires the %s attribute to contain %d values, but got: %zu", op,
                       names[i], axes + 2, count);
  }
  return NULL;
}

static void read_window(weir_attrs_t attrs, int axes, state_t* out) {
  *out = (state_t){.window = {.axes = axes,
                              .padding = weir_view_is(weir_attrs_string(attrs, "padding"), "SAME")
                                             ? WEIR_PADDING_SAME
                                             : WEIR_PADDING_VALID}};
  for (int axis = 0; axis < axes; ++axis) {
    out->size[axis] = list_of(attrs, "ksizes")[axis + 1];
    out->window.stride[axis] = list_of(attrs, "strides")[axis + 1];
    out->window.dilation[axis] = axes == 2 ? list_of(attrs, "rates")[axis + 1] : 1;
  }
}

static weir_status_t* depth_of(const state_t* s, int64_t channels, int64_t* out) {
  *out = channels;
  for (int axis = 0; axis < s->window.axes && channels >= 0; ++axis) {
    if (!__builtin_mul_overflow(*out, s->size[axis], out)) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "a window of that size over %lld channels is too large",
                       (long long)channels);
  }
  return NULL;
}

// ---- shapes ----

static weir_status_t* patches_shape(weir_shape_ctx_t* ctx, int axes) {
  const weir_shape_t* in;
  int64_t dims[5];
  state_t s;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), axes + 2, &in));
  WEIR_TRY(check_lists(weir_shape_attrs(ctx), ctx->node->op_name, axes));
  read_window(weir_shape_attrs(ctx), axes, &s);
  dims[0] = weir_shape_dim(in, 0);
  WEIR_TRY(depth_of(&s, weir_shape_dim(in, axes + 1), &dims[axes + 1]));
  const int64_t channels = weir_shape_dim(in, axes + 1);
  if (channels > 1 && dims[axes + 1] < 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Negative dimension size caused by overflow when multiplying %lld and %lld",
                       (long long)channels, (long long)(dims[axes + 1] / channels));
  }
  if (dims[axes + 1] < 0) dims[axes + 1] = -1;  // the kernel refuses such a window
  for (int axis = 0; axis < axes; ++axis) {
    WEIR_TRY(weir_window_output_if_known(&s.window, axis, weir_shape_dim(in, axis + 1),
                                         s.size[axis], &dims[axis + 1]));
  }
  return weir_shape_set_dims(ctx, 0, axes + 2, dims);
}
static weir_status_t* image_shape(weir_shape_ctx_t* ctx) { return patches_shape(ctx, 2); }
static weir_status_t* volume_shape(weir_shape_ctx_t* ctx) { return patches_shape(ctx, 3); }

// ---- gradient ----

static weir_edge_t swap_first(weir_grad_ctx_t* g, weir_edge_t a) {  // of three dimensions
  weir_edge_t order = weir_build_int32s(g->builder, (const int32_t[]){1, 0, 2}, 3);
  return weir_grad_node(g, "Transpose", WEIR_EDGES(a, order));
}

static weir_edge_t pack(weir_grad_ctx_t* g, weir_edges_t scalars) {
  return weir_grad_node(g, "Pack", scalars);
}

// The number of each pixel, from 1 on, under each tap: 0 is the border.
static weir_edge_t pixels_under_taps(weir_grad_ctx_t* g, weir_edge_t pixels, weir_edge_t shape,
                                     int axes, const char* const* names) {
  weir_edge_t one = weir_build_int32(g->builder, 1);
  weir_edge_t end = weir_grad_node(g, "AddV2", WEIR_EDGES(pixels, one));
  weir_edge_t numbers = weir_grad_node(g, "Range", WEIR_EDGES(one, end, one));
  weir_edge_t dims[5] = {one, one, one, one, one};
  for (int axis = 0; axis < axes; ++axis) dims[axis + 1] = weir_build_output(shape, axis + 1);
  weir_edges_t all = {.items = dims, .count = axes + 2};
  weir_edge_t image = weir_grad_node(g, "Reshape", WEIR_EDGES(numbers, pack(g, all)));
  weir_edge_t patches = weir_grad_node_like(g, g->node->op_name, WEIR_EDGES(image), names);
  weir_edge_t flat = weir_build_int32s(g->builder, (const int32_t[]){-1}, 1);
  return weir_grad_node(g, "Reshape", WEIR_EDGES(patches, flat));
}

// Each pixel gets the sum of what came back from all taps it was under.
static weir_status_t* patches_grad(weir_grad_ctx_t* g, int axes, const char* const* names) {
  weir_edge_t shape = weir_grad_shape_of(g, weir_grad_input(g, 0));
  weir_edge_t dims = weir_grad_node_with(g, "Unpack", WEIR_EDGES(shape),
                                         WEIR_ATTRS(weir_attr_int("num", axes + 2)));
  weir_edge_t pixels = weir_build_output(dims, 1);
  for (int axis = 1; axis < axes; ++axis)
    pixels = weir_grad_mul(g, pixels, weir_build_output(dims, axis + 1));
  weir_edge_t numbers = pixels_under_taps(g, pixels, dims, axes, names);
  weir_edge_t taps = weir_grad_node(g, "Size", WEIR_EDGES(numbers));
  weir_edge_t rows = pack(g, WEIR_EDGES(dims, taps, weir_build_output(dims, axes + 1)));
  weir_edge_t dy = weir_grad_node(g, "Reshape", WEIR_EDGES(weir_grad_dy(g, 0), rows));
  weir_edge_t count =
      weir_grad_node(g, "AddV2", WEIR_EDGES(pixels, weir_build_int32(g->builder, 1)));
  weir_edge_t sums =
      weir_grad_node(g, "UnsortedSegmentSum", WEIR_EDGES(swap_first(g, dy), numbers, count));
  weir_edge_t begin = weir_build_int32s(g->builder, (const int32_t[]){1, 0, 0}, 3);
  weir_edge_t all = weir_build_int32s(g->builder, (const int32_t[]){-1, -1, -1}, 3);
  weir_edge_t inside = weir_grad_node(g, "Slice", WEIR_EDGES(sums, begin, all));
  return weir_grad_set(g, 0,
                       weir_grad_node(g, "Reshape", WEIR_EDGES(swap_first(g, inside), shape)));
}
static weir_status_t* image_grad(weir_grad_ctx_t* g) {
  return patches_grad(g, 2, WEIR_NAMES("ksizes", "strides", "rates", "padding"));
}
static weir_status_t* volume_grad(weir_grad_ctx_t* g) {
  return patches_grad(g, 3, WEIR_NAMES("ksizes", "strides", "padding"));
}

// ---- kernels ----

static weir_status_t* check_values(weir_attrs_t attrs, const char* name, int axes) {
  const int64_t* values = list_of(attrs, name);
  if (values[0] != 1 || values[axes + 1] != 1) {
    return WEIR_STATUS(UNIMPLEMENTED, "Only support %s across space.", name);
  }
  for (int axis = 0; axis < axes; ++axis) {
    if (values[axis + 1] < 1) return WEIR_STATUS(OUT_OF_RANGE, "%s is out of range.", name);
  }
  return NULL;
}

static weir_status_t* patches_init(const weir_kernel_init_t* init, state_t* state, int axes) {
  weir_attrs_t attrs = init->node->attrs;
  WEIR_TRY(check_lists(attrs, init->node->op_name, axes));
  WEIR_TRY(check_values(attrs, "ksizes", axes));
  WEIR_TRY(check_values(attrs, "strides", axes));
  if (axes == 2) WEIR_TRY(check_values(attrs, "rates", axes));
  read_window(attrs, axes, state);
  return NULL;
}
static weir_status_t* image_init(const weir_kernel_init_t* init, void* state) {
  return patches_init(init, state, 2);
}
static weir_status_t* volume_init(const weir_kernel_init_t* init, void* state) {
  return patches_init(init, state, 3);
}

static weir_status_t* patches_cpu(weir_kernel_ctx_t* ctx) {
  const state_t* s = ctx->state;
  const int axes = s->window.axes;
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  char text[WEIR_SHAPE_TEXT_SIZE];
  weir_tensor_t* out;
  int64_t dims[5];
  if (in->rank != axes + 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "input must be %d-dimensional%s", axes + 2,
                       weir_tensor_shape_text(in, text));
  }
  weir_patches_t p = {.batch = in->dims[0],
                      .channels = in->dims[axes + 1],
                      .in = {1, 1, 1},
                      .out = {1, 1, 1},
                      .window = {1, 1, 1},
                      .stride = {1, 1, 1},
                      .rate = {1, 1, 1}};
  dims[0] = p.batch;
  for (int axis = 0; axis < axes; ++axis) {
    int to = 3 - axes + axis;
    p.in[to] = in->dims[axis + 1];
    p.window[to] = s->size[axis];
    p.stride[to] = s->window.stride[axis];
    p.rate[to] = s->window.dilation[axis];
    WEIR_TRY(weir_window_output(&s->window, axis, p.in[to], p.window[to], &p.out[to], &p.pad[to]));
    dims[axis + 1] = p.out[to];
    // Of volumes TensorFlow takes the middle of what windows shorter than strides leave over.
    int64_t more = (p.out[to] - 1) * p.stride[to] + p.window[to] - p.in[to];
    if (axes == 3 && s->window.padding == WEIR_PADDING_SAME && more < 0 && p.in[to] > 0)
      p.pad[to] = more / 2;
  }
  WEIR_TRY(depth_of(s, p.channels, &dims[axes + 1]));
  WEIR_TRY(weir_kernel_output(ctx, 0, axes + 2, dims, &out));
  if (out->count == 0) return NULL;
  weir_extract_patches(weir_kernel_pool(ctx), weir_dtype_size(weir_tensor_type(in)), &p, in->data,
                       out->data);
  return NULL;
}

const weir_op_module_t weir_ops_nn_extract_patches = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "ExtractImagePatches",
         .summary = "Windows of images, as channels",
         .attrs = "ksizes: list(int) >= 4; strides: list(int) >= 4; rates: list(int) >= 4; "
                  "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, "
                  "uint32, uint64, complex64, complex128, bool}; padding: {'SAME','VALID'}",
         .inputs = "images: T",
         .outputs = "patches: T",
         .infer_shape = image_shape,
         .build_grad = image_grad,
         .kernels =
             WEIR_CPU_KERNEL(.types = "T: bfloat16, half, float, double, int8, int16, int32, "
                                      "int64, uint8, uint16, uint32, uint64, complex64, complex128",
                             .compute = patches_cpu, .init = image_init,
                             .state_size = sizeof(state_t))},
        {.name = "ExtractVolumePatches",
         .summary = "Windows of volumes, as channels",
         .attrs = "ksizes: list(int) >= 5; strides: list(int) >= 5; T: {float, double, int32, "
                  "uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}; "
                  "padding: {'SAME','VALID'}",
         .inputs = "input: T",
         .outputs = "patches: T",
         .infer_shape = volume_shape,
         .build_grad = volume_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = patches_cpu, .init = volume_init,
                                    .state_size = sizeof(state_t))},
        {0}}};
