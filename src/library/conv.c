// conv.c — Convolutional layers.
#include "nodes.h"
#include "weights.h"
#include "weir/layer.h"

// A layer while it is built. Sizes are of the spatial dimensions, with every default filled in.
typedef struct conv_t {
  weir_scope_t* scope;  // of the layer, once it is begun
  const char* what;     // its kind
  weir_edge_t x;
  const weir_layer_conv_options_t* options;
  int rank;  // of the space: 1, 2 or 3
  int64_t kernel[3], strides[3], dilations[3];
  int64_t channels;
  int multiplier;  // filters a channel
  const char* padding;
} conv_t;

// {a} stands for {a, a, a}; nothing for |fallback|.
static bool fill_sizes(int rank, const int* given, int64_t fallback, int64_t* out_sizes) {
  for (int i = 0; i < rank; ++i) {
    out_sizes[i] = given[i] ? given[i] : given[0] ? given[0] : fallback;
    if (out_sizes[i] <= 0) return false;
  }
  return true;
}

// Checks the arguments, fills |c| in and enters a scope; false after an error, which sticks.
static bool begin(conv_t* c, int filters, int kernel_size) {
  if (!weir_lib_ready(c->scope, c->what, c->x)) return false;
  const weir_layer_conv_options_t* o = c->options;
  const char* name = weir_node_name(c->x.node);
  c->channels = weir_lib_dim(c->x, -1);
  c->multiplier = o->depth_multiplier ? o->depth_multiplier : 1;
  c->padding = weir_lib_padding(o->padding);
  if (weir_lib_rank(c->x) != c->rank + 2 || c->channels <= 0)
    weir_lib_fail(c->scope,
                  "%s layer on '%s': needs an input of rank %d with a known number of channels, "
                  "got rank %d with %lld",
                  c->what, name, c->rank + 2, weir_lib_rank(c->x), (long long)c->channels);
  else if (!fill_sizes(c->rank, o->kernel_sizes, kernel_size, c->kernel) ||
           !fill_sizes(c->rank, o->strides, 1, c->strides) ||
           !fill_sizes(c->rank, o->dilations, 1, c->dilations))
    weir_lib_fail(c->scope, "%s layer on '%s': sizes, strides and dilations must be positive",
                  c->what, name);
  else if (!c->padding)
    weir_lib_fail(c->scope, "%s layer on '%s': padding must be SAME or VALID, got '%s'", c->what,
                  name, o->padding);
  else if (filters <= 0 || c->multiplier <= 0)
    weir_lib_fail(c->scope, "%s layer on '%s': %s must be positive, got %d", c->what, name,
                  filters <= 0 ? "filters" : "depth_multiplier",
                  filters <= 0 ? filters : c->multiplier);
  if (weir_scope_status(c->scope)) return false;
  c->scope = weir_scope_in(c->scope, o->name ? o->name : c->what);
  return true;
}

// A kernel of a window, then of inputs and outputs in the order that the op wants them.
static weir_edge_t add_kernel(const conv_t* c, const char* name, weir_edge_t shared,
                              const int64_t* window, int64_t first, int64_t second) {
  int64_t dims[5];
  for (int i = 0; i < c->rank; ++i) dims[i] = window[i];
  dims[c->rank] = first;
  dims[c->rank + 1] = second;
  weir_edge_t kernel =
      weir_lib_weight(c->scope, name, shared, c->options->kernel_init, weir_init_glorot_uniform(0),
                      weir_edge_type(c->x), (weir_dims_t){dims, c->rank + 2, true});
  weir_lib_regularize(c->scope, kernel, c->options->kernel_l1, c->options->kernel_l2);
  return kernel;
}

static weir_edge_t finish(const conv_t* c, weir_edge_t y, int64_t units) {
  const weir_layer_conv_options_t* o = c->options;
  const weir_lib_finish_t how = {o->no_bias, o->bias, o->bias_init, o->activation};
  return weir_lib_finish(c->scope, y, units, &how);
}

// ---- plain ----

static weir_edge_t convolve1d(const conv_t* c, weir_edge_t kernel) {
  weir_scope_t* s = c->scope;
  weir_edge_t image = weir_expand_dims(s, c->x, weir_const_int(s, 1));
  weir_edge_t filter = weir_expand_dims(s, kernel, weir_const_int(s, 0));
  image = weir_conv2d(s, image, filter, WEIR_INTS(1, 1, c->strides[0], 1), c->padding,
                      .dilations = WEIR_INTS(1, 1, c->dilations[0], 1));
  return weir_squeeze(s, image, .squeeze_dims = WEIR_INTS(1));
}

static weir_edge_t convolve(const conv_t* c, weir_edge_t kernel) {
  const int64_t *t = c->strides, *d = c->dilations;
  if (c->rank == 1) return convolve1d(c, kernel);
  if (c->rank == 2)
    return weir_conv2d(c->scope, c->x, kernel, WEIR_INTS(1, t[0], t[1], 1), c->padding,
                       .dilations = WEIR_INTS(1, d[0], d[1], 1));
  return weir_conv3d(c->scope, c->x, kernel, WEIR_INTS(1, t[0], t[1], t[2], 1), c->padding,
                     .dilations = WEIR_INTS(1, d[0], d[1], d[2], 1));
}

static weir_edge_t build(conv_t* c, int filters, int kernel_size) {
  if (!begin(c, filters, kernel_size)) return WEIR_LIB_NONE;
  weir_edge_t kernel = add_kernel(c, "kernel", c->options->kernel, c->kernel, c->channels, filters);
  return finish(c, convolve(c, kernel), filters);
}

weir_edge_t weir_layer_conv1d_with(weir_scope_t* scope, weir_edge_t x, int filters, int kernel_size,
                                   const weir_layer_conv_options_t* options) {
  options = options ? options : &(const weir_layer_conv_options_t){0};
  conv_t c = {.scope = scope, .what = "conv1d", .rank = 1, .x = x, .options = options};
  return build(&c, filters, kernel_size);
}

weir_edge_t weir_layer_conv2d_with(weir_scope_t* scope, weir_edge_t x, int filters, int kernel_size,
                                   const weir_layer_conv_options_t* options) {
  options = options ? options : &(const weir_layer_conv_options_t){0};
  conv_t c = {.scope = scope, .what = "conv2d", .rank = 2, .x = x, .options = options};
  return build(&c, filters, kernel_size);
}

weir_edge_t weir_layer_conv3d_with(weir_scope_t* scope, weir_edge_t x, int filters, int kernel_size,
                                   const weir_layer_conv_options_t* options) {
  options = options ? options : &(const weir_layer_conv_options_t){0};
  conv_t c = {.scope = scope, .what = "conv3d", .rank = 3, .x = x, .options = options};
  return build(&c, filters, kernel_size);
}

// ---- transposed ----

// The size that a convolution of this kernel would have made |size| of.
static int64_t transposed_size(const conv_t* c, int64_t size, int i) {
  const int64_t beyond = c->kernel[i] - c->strides[i];
  return size * c->strides[i] + (c->padding[0] == 'V' && beyond > 0 ? beyond : 0);
}

static weir_edge_t transposed_shape(const conv_t* c, int filters) {
  weir_scope_t* s = c->scope;
  weir_edge_t shape = weir_shape(s, c->x), sizes[4];
  sizes[0] = weir_lib_element(s, shape, 0);
  for (int i = 0; i < 2; ++i) {
    const int64_t known = weir_lib_dim(c->x, i + 1);
    if (known >= 0) {
      sizes[i + 1] = weir_lib_number(s, WEIR_DTYPE_INT32, (double)transposed_size(c, known, i));
      continue;
    }
    weir_edge_t scaled =
        weir_mul(s, weir_lib_element(s, shape, i + 1), weir_const_int(s, (int)c->strides[i]));
    sizes[i + 1] = weir_add_v2(s, scaled, weir_const_int(s, (int)transposed_size(c, 0, i)));
  }
  sizes[3] = weir_const_int(s, filters);
  return weir_pack(s, sizes, 4);
}

weir_edge_t weir_layer_conv2d_transpose_with(weir_scope_t* scope, weir_edge_t x, int filters,
                                             int kernel_size,
                                             const weir_layer_conv_options_t* options) {
  options = options ? options : &(const weir_layer_conv_options_t){0};
  conv_t c = {.scope = scope, .what = "conv2d_transpose", .rank = 2, .x = x, .options = options};
  if (!begin(&c, filters, kernel_size)) return WEIR_LIB_NONE;
  if (c.dilations[0] != 1 || c.dilations[1] != 1) {
    weir_lib_fail(scope, "conv2d_transpose layer on '%s': dilations must be 1",
                  weir_node_name(x.node));
    return WEIR_LIB_NONE;
  }
  weir_edge_t kernel = add_kernel(&c, "kernel", options->kernel, c.kernel, filters, c.channels);
  weir_edge_t y =
      weir_conv2d_backprop_input(c.scope, transposed_shape(&c, filters), kernel, x,
                                 WEIR_INTS(1, c.strides[0], c.strides[1], 1), c.padding);
  return finish(&c, y, filters);
}

// ---- by channel ----

static weir_edge_t depthwise(const conv_t* c) {
  weir_edge_t kernel =
      add_kernel(c, "depthwise_kernel", c->options->kernel, c->kernel, c->channels, c->multiplier);
  return weir_depthwise_conv2d_native(
      c->scope, c->x, kernel, WEIR_INTS(1, c->strides[0], c->strides[1], 1), c->padding,
      .dilations = WEIR_INTS(1, c->dilations[0], c->dilations[1], 1));
}

weir_edge_t weir_layer_depthwise_conv2d_with(weir_scope_t* scope, weir_edge_t x, int kernel_size,
                                             const weir_layer_conv_options_t* options) {
  options = options ? options : &(const weir_layer_conv_options_t){0};
  conv_t c = {.scope = scope, .what = "depthwise_conv2d", .rank = 2, .x = x, .options = options};
  if (!begin(&c, 1, kernel_size)) return WEIR_LIB_NONE;
  return finish(&c, depthwise(&c), c.channels * c.multiplier);
}

weir_edge_t weir_layer_separable_conv2d_with(weir_scope_t* scope, weir_edge_t x, int filters,
                                             int kernel_size,
                                             const weir_layer_conv_options_t* options) {
  options = options ? options : &(const weir_layer_conv_options_t){0};
  conv_t c = {.scope = scope, .what = "separable_conv2d", .rank = 2, .x = x, .options = options};
  if (!begin(&c, filters, kernel_size)) return WEIR_LIB_NONE;
  weir_edge_t y = depthwise(&c);
  weir_edge_t mixture = add_kernel(&c, "pointwise_kernel", options->pointwise,
                                   (const int64_t[]){1, 1}, c.channels * c.multiplier, filters);
  y = weir_conv2d(c.scope, y, mixture, WEIR_INTS(1, 1, 1, 1), "VALID");
  return finish(&c, y, filters);
}
