// isotonic_regression.c — IsotonicRegression: the falling sequence nearest to each row.
#include "base/alloc.h"
#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "tensor/cast.h"

typedef struct pool_of_t {
  double sum;
  int64_t count;
} pool_of_t;

// Neighbours of which the later mean is the larger are pooled, until there are none. Returns how
// many pools are left.
static int64_t pool_row(int64_t n, const double* x, pool_of_t* pools) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) {
    pools[count++] = (pool_of_t){x[i], 1};
    while (count > 1) {
      const pool_of_t *last = &pools[count - 1], *before = &pools[count - 2];
      if (!(before->sum / (double)before->count < last->sum / (double)last->count)) break;
      pools[count - 2].sum += last->sum;
      pools[count - 2].count += last->count;
      --count;
    }
  }
  return count;
}

// Reads and writes a row through |x|, all in double.
static weir_status_t* regress_row(const weir_tensor_t* in, int64_t row, int64_t n, double* x,
                                  pool_of_t* pools, weir_tensor_t* out, int32_t* segments) {
  const weir_dtype_t from = weir_tensor_type(in), to = weir_tensor_type(out);
  const char* source = (const char*)in->data + (size_t)(row * n) * weir_dtype_size(from);
  WEIR_TRY(weir_cast_elements(WEIR_DTYPE_DOUBLE, x, from, source, n));
  const int64_t count = pool_row(n, x, pools);
  for (int64_t p = 0, i = 0; p < count; ++p) {
    const double mean = pools[p].sum / (double)pools[p].count;
    for (int64_t k = 0; k < pools[p].count; ++k, ++i) {
      x[i] = mean;
      segments[row * n + i] = (int32_t)p;
    }
  }
  char* target = (char*)out->data + (size_t)(row * n) * weir_dtype_size(to);
  return weir_cast_elements(to, target, WEIR_DTYPE_DOUBLE, x, n);
}

static weir_status_t* regression_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* in = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  weir_tensor_t* segments = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, in->rank, in->dims, &out));
  WEIR_TRY(weir_kernel_output(ctx, 1, in->rank, in->dims, &segments));
  if (in->count == 0) return NULL;
  const int64_t n = in->rank == 0 ? 1 : in->dims[in->rank - 1];
  double* x = weir_alloc_array((size_t)n, sizeof(*x));
  pool_of_t* pools = weir_alloc_array((size_t)n, sizeof(*pools));
  weir_status_t* status = x && pools ? NULL : weir_out_of_memory();
  for (int64_t row = 0; !status && row < in->count / n; ++row) {
    status = regress_row(in, row, n, x, pools, out, WEIR_TENSOR_DATA(segments, int32_t));
  }
  weir_free(pools);
  weir_free(x);
  return status;
}

static weir_status_t* regression_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_set(ctx, 0, weir_shape_input(ctx, 0)));
  return weir_shape_set(ctx, 1, weir_shape_input(ctx, 0));
}

// The mean of dy over each pool: sums over pools of all rows, whose numbers are made distinct,
// given back to the members.
static weir_status_t* regression_grad(weir_grad_ctx_t* g) {
  if (!weir_dtype_is_floating(weir_grad_dtype(g, weir_grad_input(g, 0)))) {
    return weir_grad_set(g, 0, WEIR_NO_EDGE);
  }
  weir_edge_t dy = weir_grad_dy(g, 0), segments = weir_grad_output(g, 1);
  weir_edge_t flat = weir_build_int32s(g->builder, (const int32_t[]){-1}, 1);
  weir_edge_t zero = weir_build_int32(g->builder, 0), one = weir_build_int32(g->builder, 1);
  weir_edge_t shape = weir_grad_shape_of(g, dy);
  weir_edge_t size = weir_grad_node(g, "Size", WEIR_EDGES(dy));
  weir_edge_t ones = weir_build_int32s(g->builder, (const int32_t[]){1}, 1);
  weir_edge_t columns = weir_grad_node_with(
      g, "StridedSlice",
      WEIR_EDGES(shape, flat, weir_build_int32s(g->builder, (const int32_t[]){0}, 1), ones),
      WEIR_ATTRS(weir_attr_int("end_mask", 1), weir_attr_int("shrink_axis_mask", 1)));
  weir_edge_t places = weir_grad_node(g, "Range", WEIR_EDGES(zero, size, one));
  weir_edge_t column = weir_grad_node(g, "FloorMod", WEIR_EDGES(places, columns));
  weir_edge_t first = weir_grad_node(g, "Sub", WEIR_EDGES(places, column));
  weir_edge_t ids = weir_grad_node(
      g, "AddV2", WEIR_EDGES(first, weir_grad_node(g, "Reshape", WEIR_EDGES(segments, flat))));
  weir_edge_t values = weir_grad_node(g, "Reshape", WEIR_EDGES(dy, flat));
  weir_edge_t sums = weir_grad_node(g, "UnsortedSegmentSum", WEIR_EDGES(values, ids, size));
  weir_edge_t each = weir_grad_node(g, "OnesLike", WEIR_EDGES(values));
  weir_edge_t counts = weir_grad_node(g, "UnsortedSegmentSum", WEIR_EDGES(each, ids, size));
  weir_edge_t means = weir_grad_node(g, "DivNoNan", WEIR_EDGES(sums, counts));
  weir_edge_t back = weir_grad_node(g, "GatherV2", WEIR_EDGES(means, ids, zero));
  return weir_grad_set(g, 0, weir_grad_node(g, "Reshape", WEIR_EDGES(back, shape)));
}

#define REGRESSION_KERNEL(types_) \
  { WEIR_DEVICE_CPU, .types = types_, .compute = regression_cpu }

const weir_op_module_t weir_ops_nn_isotonic_regression = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "IsotonicRegression",
         .attrs = "T: realnumbertype; output_dtype: {half, bfloat16, float, double} = DT_FLOAT",
         .inputs = "input: T",
         .outputs = "output: output_dtype; segments: int32",
         .summary = "The falling sequence nearest to each row, and what is equal in it",
         .infer_shape = regression_shape,
         .build_grad = regression_grad,
         .kernels =
             (const weir_kernel_def_t[]){
                 REGRESSION_KERNEL("T: int32, int64, double; output_dtype: double"),
                 REGRESSION_KERNEL("T: int8, int16, float; output_dtype: float"),
                 REGRESSION_KERNEL("T: bfloat16; output_dtype: bfloat16"),
                 REGRESSION_KERNEL("T: half; output_dtype: half"),
                 {0}}},
        {0}}};
