// pool.c — Pooling layers.
#include "nodes.h"
#include "weir/layer.h"

typedef weir_edge_t (*pool_fn_t)(weir_scope_t* s, weir_edge_t x, weir_ints_t window,
                                 weir_ints_t strides, const char* padding);

static weir_edge_t pool_max(weir_scope_t* s, weir_edge_t x, weir_ints_t window, weir_ints_t strides,
                            const char* padding) {
  return weir_max_pool(s, x, window, strides, padding);
}

static weir_edge_t pool_average(weir_scope_t* s, weir_edge_t x, weir_ints_t window,
                                weir_ints_t strides, const char* padding) {
  return weir_avg_pool(s, x, window, strides, padding);
}

// A layer while it is built. Sizes are of the spatial dimensions, with every default filled in.
typedef struct pooling_t {
  weir_scope_t* scope;  // of the layer, once it is begun
  const char* what;
  pool_fn_t pool;
  weir_edge_t x;
  int64_t window[2], strides[2];
  const char* padding;
} pooling_t;

// Checks the arguments, fills |p| in and enters a scope; false after an error, which sticks.
static bool begin(pooling_t* p, int rank, int size, const weir_layer_pool_options_t* options) {
  if (!weir_lib_ready(p->scope, p->what, p->x)) return false;
  const char* name = weir_node_name(p->x.node);
  const int *sizes = options->pool_sizes, *steps = options->strides;
  if (weir_lib_rank(p->x) >= 0 && weir_lib_rank(p->x) != rank + 2)
    weir_lib_fail(p->scope, "%s layer on '%s': needs an input of rank %d, got %d", p->what, name,
                  rank + 2, weir_lib_rank(p->x));
  for (int i = 0; i < rank; ++i) {
    p->window[i] = sizes[i] ? sizes[i] : sizes[0] ? sizes[0] : size;
    p->strides[i] = steps[i] ? steps[i] : steps[0] ? steps[0] : p->window[i];
    if (p->window[i] <= 0 || p->strides[i] <= 0)
      weir_lib_fail(p->scope,
                    "%s layer on '%s': sizes and strides must be positive, got %lld and %lld",
                    p->what, name, (long long)p->window[i], (long long)p->strides[i]);
  }
  p->padding = weir_lib_padding(options->padding);
  if (!p->padding)
    weir_lib_fail(p->scope, "%s layer on '%s': padding must be SAME or VALID, got '%s'", p->what,
                  name, options->padding);
  if (weir_scope_status(p->scope)) return false;
  p->scope = weir_scope_in(p->scope, p->what);
  return true;
}

static weir_edge_t pool2d(pooling_t* p, int size, const weir_layer_pool_options_t* options) {
  if (!begin(p, 2, size, options)) return WEIR_LIB_NONE;
  return p->pool(p->scope, p->x, WEIR_INTS(1, p->window[0], p->window[1], 1),
                 WEIR_INTS(1, p->strides[0], p->strides[1], 1), p->padding);
}

static weir_edge_t pool1d(pooling_t* p, int size, const weir_layer_pool_options_t* options) {
  if (!begin(p, 1, size, options)) return WEIR_LIB_NONE;
  weir_scope_t* s = p->scope;
  weir_edge_t image = weir_expand_dims(s, p->x, weir_const_int(s, 2));
  image = p->pool(s, image, WEIR_INTS(1, p->window[0], 1, 1), WEIR_INTS(1, p->strides[0], 1, 1),
                  p->padding);
  return weir_squeeze(s, image, .squeeze_dims = WEIR_INTS(2));
}

weir_edge_t weir_layer_max_pool2d_with(weir_scope_t* scope, weir_edge_t x, int pool_size,
                                       const weir_layer_pool_options_t* options) {
  options = options ? options : &(const weir_layer_pool_options_t){0};
  pooling_t p = {.scope = scope, .what = "max_pooling2d", .pool = pool_max, .x = x};
  return pool2d(&p, pool_size, options);
}
weir_edge_t weir_layer_average_pool2d_with(weir_scope_t* scope, weir_edge_t x, int pool_size,
                                           const weir_layer_pool_options_t* options) {
  options = options ? options : &(const weir_layer_pool_options_t){0};
  pooling_t p = {.scope = scope, .what = "average_pooling2d", .pool = pool_average, .x = x};
  return pool2d(&p, pool_size, options);
}
weir_edge_t weir_layer_max_pool1d_with(weir_scope_t* scope, weir_edge_t x, int pool_size,
                                       const weir_layer_pool_options_t* options) {
  options = options ? options : &(const weir_layer_pool_options_t){0};
  pooling_t p = {.scope = scope, .what = "max_pooling1d", .pool = pool_max, .x = x};
  return pool1d(&p, pool_size, options);
}
weir_edge_t weir_layer_average_pool1d_with(weir_scope_t* scope, weir_edge_t x, int pool_size,
                                           const weir_layer_pool_options_t* options) {
  options = options ? options : &(const weir_layer_pool_options_t){0};
  pooling_t p = {.scope = scope, .what = "average_pooling1d", .pool = pool_average, .x = x};
  return pool1d(&p, pool_size, options);
}

// ---- over everything ----

// The dimensions between the first and the last; an edge without a node on error.
static weir_edge_t inner_axes(weir_scope_t* scope, const char* what, weir_edge_t x) {
  if (!weir_lib_ready(scope, what, x)) return WEIR_LIB_NONE;
  const int rank = weir_lib_rank(x);
  if (rank < 3) {
    weir_lib_fail(scope, "%s layer on '%s': needs an input of known rank 3 or more, got %d", what,
                  weir_node_name(x.node), rank);
    return WEIR_LIB_NONE;
  }
  int64_t axes[WEIR_MAX_RANK];
  for (int i = 1; i < rank - 1; ++i) axes[i - 1] = i;
  return weir_lib_ints(scope, axes, rank - 2);
}

weir_edge_t weir_layer_global_average_pool(weir_scope_t* scope, weir_edge_t x) {
  weir_edge_t axes = inner_axes(scope, "global_average_pooling", x);
  return weir_scope_status(scope) ? WEIR_LIB_NONE : weir_mean(scope, x, axes);
}

weir_edge_t weir_layer_global_max_pool(weir_scope_t* scope, weir_edge_t x) {
  weir_edge_t axes = inner_axes(scope, "global_max_pooling", x);
  return weir_scope_status(scope) ? WEIR_LIB_NONE : weir_max(scope, x, axes);
}
