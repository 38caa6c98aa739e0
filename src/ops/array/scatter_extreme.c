// scatter_extreme.c — TensorScatterMin, TensorScatterMax, ScatterNdNonAliasingAdd: slices of a
// tensor joined with updates by rows of indices.
#include "ops/array/nd_scatter.h"

static weir_status_t* scatter(weir_kernel_ctx_t* ctx, nd_scatter_t mode) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* indices = weir_kernel_input(ctx, 1);
  const weir_tensor_t* updates = weir_kernel_input(ctx, 2);
  WEIR_TRY(nd_scatter_check(indices, updates, x, mode == ND_SCATTER_ADD));
  // TensorFlow reads a vector of indices both as a row and as a column here: nothing fits both.
  if (mode != ND_SCATTER_ADD && indices->rank == 1 && x->count > 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Inner dimensions of output shape must match inner dimensions of updates "
                       "shape: indices must be a matrix at least");
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(nd_scatter_output(ctx, &out));
  if (indices->count == 0 && updates->count == 0) return NULL;
  return nd_scatter(ctx, indices, updates, mode, out);
}

static weir_status_t* add(weir_kernel_ctx_t* ctx) { return scatter(ctx, ND_SCATTER_ADD); }
static weir_status_t* min(weir_kernel_ctx_t* ctx) { return scatter(ctx, ND_SCATTER_MIN); }
static weir_status_t* max(weir_kernel_ctx_t* ctx) { return scatter(ctx, ND_SCATTER_MAX); }

WEIR_SCATTER_INIT(add_gpu, ADD)
WEIR_SCATTER_INIT(min_gpu, MIN)
WEIR_SCATTER_INIT(max_gpu, MAX)

// ---- gradients ----

static weir_edge_t gathered(weir_grad_ctx_t* g, weir_edge_t from) {
  weir_view_t policy = weir_attrs_string(weir_grad_attrs(g), "bad_indices_policy");
  return weir_grad_node_with(g, "GatherNd", WEIR_EDGES(from, weir_grad_input(g, 1)),
                             WEIR_ATTRS(weir_attr_view("bad_indices_policy", policy)));
}

static weir_status_t* add_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 0, dy));
  return weir_grad_set(g, 2, gathered(g, dy));
}

// One where |a| equals |b|, else zero.
static weir_edge_t indicator(weir_grad_ctx_t* g, weir_edge_t a, weir_edge_t b, weir_dtype_t dtype) {
  return weir_grad_node_with(g, "Cast", WEIR_EDGES(weir_grad_node(g, "Equal", WEIR_EDGES(a, b))),
                             WEIR_ATTRS(weir_attr_type("DstT", dtype)));
}

// dy goes to whoever has the extreme element, in equal parts where several have.
static weir_status_t* extreme_grad(weir_grad_ctx_t* g) {
  weir_view_t policy = weir_attrs_string(weir_grad_attrs(g), "bad_indices_policy");
  weir_edge_t x = weir_grad_input(g, 0), indices = weir_grad_input(g, 1);
  weir_edge_t dy = weir_grad_dy(g, 0), out = weir_grad_output(g, 0);
  weir_dtype_t dtype = weir_grad_dtype(g, dy);
  weir_edge_t is_x = indicator(g, x, out, dtype);
  weir_edge_t is_update = indicator(g, weir_grad_input(g, 2), gathered(g, out), dtype);
  weir_edge_t shape = array_grad_shape(g, x, weir_grad_dtype(g, indices));
  weir_edge_t updates =
      weir_grad_node_with(g, "ScatterNd", WEIR_EDGES(indices, is_update, shape),
                          WEIR_ATTRS(weir_attr_view("bad_indices_policy", policy)));
  weir_edge_t count = weir_grad_node(g, "AddV2", WEIR_EDGES(is_x, updates));
  weir_edge_t share = weir_grad_node(g, "RealDiv", WEIR_EDGES(dy, count));
  WEIR_TRY(weir_grad_set(g, 0, weir_grad_mul(g, share, is_x)));
  return weir_grad_set(g, 2, weir_grad_mul(g, gathered(g, share), is_update));
}

#define ORDERED                                                                          \
  "T: double, float, bfloat16, half, int32, int8, uint8, int16, uint16, uint32, int64, " \
  "uint64"

#define KERNELS(cpu_types, fn)                                                       \
  ((const weir_kernel_def_t[]){                                                      \
      {WEIR_DEVICE_CPU, .types = cpu_types, .compute = fn},                          \
      ND_SCATTER_GPU_ROW("int32, " WEIR_SCATTERED_NUMBERS, fn, .host_inputs = NULL), \
      {0}})

const weir_op_module_t weir_ops_array_scatter_extreme = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "TensorScatterMin",
         .attrs = "T: type; Tindices: {int32, int64}; bad_indices_policy: string = ''",
         .inputs = "tensor: T; indices: Tindices; updates: T",
         .outputs = "output: T",
         .summary = "Keeps the smaller elements in slices of a tensor by rows of indices.",
         .infer_shape = nd_scatter_shape,
         .build_grad = extreme_grad,
         .kernels = KERNELS(ORDERED, min)},
        {.name = "TensorScatterMax",
         .attrs = "T: type; Tindices: {int32, int64}; bad_indices_policy: string = ''",
         .inputs = "tensor: T; indices: Tindices; updates: T",
         .outputs = "output: T",
         .summary = "Keeps the larger elements in slices of a tensor by rows of indices.",
         .infer_shape = nd_scatter_shape,
         .build_grad = extreme_grad,
         .kernels = KERNELS(ORDERED, max)},
        {.name = "ScatterNdNonAliasingAdd",
         .attrs = "T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
                  "qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, "
                  "bool}; Tindices: {int32, int64}; bad_indices_policy: string = ''",
         .inputs = "input: T; indices: Tindices; updates: T",
         .outputs = "output: T",
         .summary = "Adds to slices of a tensor by rows of indices.",
         .infer_shape = nd_scatter_shape,
         .build_grad = add_grad,
         .kernels = KERNELS("T: bool, complex128, complex64, double, float, bfloat16, half, int32, "
                            "int8, uint8, int16, uint16, uint32, int64, uint64",
                            add)},
        {0}}};
