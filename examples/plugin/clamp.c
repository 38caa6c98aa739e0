// clamp.c — A plug-in: the op Clamp, which limits numbers, and its gradient.
#include <weir/plugin.h>

typedef struct clamp_t {
  const float* x;
  float* y;
  float limit;
} clamp_t;

static void clamp_range(void* arg, int64_t begin, int64_t end) {
  const clamp_t* c = arg;
  for (int64_t i = begin; i < end; ++i) {
    const float x = c->x[i];
    c->y[i] = x > c->limit ? c->limit : x < -c->limit ? -c->limit : x;
  }
}

static weir_status_t* clamp_compute(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_plugin_input(ctx, 0);
  weir_tensor_t* y = NULL;
  float limit = 0;
  WEIR_TRY(weir_plugin_attr_float(weir_plugin_kernel_attrs(ctx), "limit", &limit));
  if (limit < 0) return WEIR_STATUS(INVALID_ARGUMENT, "Clamp: the limit %g is negative", limit);
  WEIR_TRY(weir_plugin_output(ctx, 0, weir_tensor_rank(x), weir_tensor_dims(x), &y));
  clamp_t c = {weir_tensor_data(x), weir_tensor_data(y), limit};
  weir_plugin_parallel_for(ctx, weir_tensor_count(x), 1, clamp_range, &c);
  return NULL;
}

// dx = dy where nothing was cut off, that is where y equals x.
static weir_status_t* clamp_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_plugin_grad_dy(g, 0);
  weir_edge_t pair[] = {weir_plugin_grad_input(g, 0), weir_plugin_grad_output(g, 0)};
  weir_edge_t is_kept = weir_plugin_grad_node(g, "Equal", pair, 2, NULL, 0);
  weir_edge_t zeros = weir_plugin_grad_node(g, "ZerosLike", &dy, 1, NULL, 0);
  weir_edge_t choice[] = {is_kept, dy, zeros};
  return weir_plugin_grad_set(g, 0, weir_plugin_grad_node(g, "SelectV2", choice, 3, NULL, 0));
}

static const weir_plugin_kernel_t kernels[] = {{.device = "CPU", .compute = clamp_compute}, {0}};
static const weir_plugin_op_t ops[] = {{.name = "Clamp",
                                        .attrs = "limit: float = 1.0",
                                        .inputs = "x: float",
                                        .outputs = "y: float",
                                        .summary = "Limits numbers to [-limit, limit]",
                                        .infer_shape = weir_plugin_shape_unchanged,
                                        .build_grad = clamp_grad,
                                        .kernels = kernels},
                                       {0}};

const weir_plugin_t* weir_plugin_modules(void) {
  static const weir_plugin_t plugin = {.abi = WEIR_PLUGIN_ABI, .name = "clamp", .ops = ops};
  return &plugin;
}
