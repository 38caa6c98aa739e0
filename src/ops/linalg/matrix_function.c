// matrix_function.c — MatrixSquareRoot, MatrixLogarithm, MatrixExponential: functions of square
// matrices in batches, computed in complex128.
#include <float.h>

#include "kernel/linalg/schur.h"
#include "ops/linalg/batch.h"

typedef struct function_t {
  weir_dtype_t dtype;
  int64_t n;
} function_t;

static weir_complex128_t* read_matrix(const batch_item_t* item) {
  const function_t* job = item->arg;
  weir_complex128_t* a = (weir_complex128_t*)(void*)item->scratch;
  weir_widen(job->dtype, job->n * job->n, item->inputs[0], a);
  return a;
}

static bool write_matrix(const batch_item_t* item, const weir_complex128_t* a) {
  const function_t* job = item->arg;
  weir_narrow(job->dtype, job->n * job->n, a, item->outputs[0]);
  return true;
}

static bool root_of(const batch_item_t* item) {
  const function_t* job = item->arg;
  weir_complex128_t* a = read_matrix(item);
  const double epsilon = job->dtype == WEIR_DTYPE_FLOAT    ? (double)FLT_EPSILON
                         : job->dtype == WEIR_DTYPE_DOUBLE ? DBL_EPSILON
                                                           : 0;
  weir_matrix_sqrt(job->n, epsilon, a, a + job->n * job->n);
  return write_matrix(item, a);
}

static bool logarithm_of(const batch_item_t* item) {
  const function_t* job = item->arg;
  weir_complex128_t* a = read_matrix(item);
  weir_matrix_log(job->n, a, a + job->n * job->n);
  return write_matrix(item, a);
}

static bool exponential_of(const batch_item_t* item) {
  const function_t* job = item->arg;
  const int64_t count = job->n * job->n;
  weir_complex128_t* a = read_matrix(item);
  weir_matrix_exp(job->n, a, a + count, (int64_t*)(void*)(a + 7 * count));
  return write_matrix(item, a);
}

static weir_status_t* map(weir_kernel_ctx_t* ctx, bool (*fn)(const batch_item_t* item)) {
  WEIR_TRY(check_square(ctx, 0));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const int64_t n = a->dims[a->rank - 1];
  const function_t job = {weir_tensor_type(a), n};
  batch_t batch = {.fn = fn,
                   .arg = &job,
                   .count = a->count == 0 ? 0 : matrix_count(a),
                   .ns = 60.0 * (double)n * (double)n * (double)n + 500.0,
                   .input_count = 1,
                   .scratch_size = (7 * n * n + n) * (int64_t)sizeof(weir_complex128_t)};
  WEIR_TRY(weir_batch_output(ctx, &batch, 0, 2, (const int64_t[]){n, n}));
  return weir_batch_run(ctx, &batch);
}

static weir_status_t* root_cpu(weir_kernel_ctx_t* ctx) { return map(ctx, root_of); }
static weir_status_t* logarithm_cpu(weir_kernel_ctx_t* ctx) { return map(ctx, logarithm_of); }
static weir_status_t* exponential_cpu(weir_kernel_ctx_t* ctx) { return map(ctx, exponential_of); }

// ---- gradient of the square root: y^T x + x y^T = dy for x, as one system of n^2 equations ----

static weir_edge_t reshape(weir_grad_ctx_t* g, weir_edge_t a, weir_edge_t shape) {
  return weir_grad_node(g, "Reshape", WEIR_EDGES(a, shape));
}

// |batch| and then |b| to |e|, vectors all of them.
static weir_edge_t shape_of_parts(weir_grad_ctx_t* g, weir_edge_t batch, const weir_edge_t* parts,
                                  int count) {
  weir_edge_t all[6] = {batch};
  for (int i = 0; i < count; ++i) all[i + 1] = parts[i];
  all[count + 1] = weir_build_int32(g->builder, 0);
  return weir_grad_node_with(g, "ConcatV2", (weir_edges_t){all, count + 2},
                             WEIR_ATTRS(weir_attr_int("N", count + 1)));
}

// The matrices with a[i][k] * b[j][l] in row (i, j) and column (k, l).
static weir_edge_t kronecker(weir_grad_ctx_t* g, weir_edge_t a, weir_edge_t b, weir_edge_t batch,
                             weir_edge_t n) {
  weir_edge_t one = weir_build_int32s(g->builder, (const int32_t[]){1}, 1);
  weir_edge_t square = weir_grad_mul(g, n, n);
  weir_edge_t wide =
      reshape(g, a, shape_of_parts(g, batch, (const weir_edge_t[]){n, one, n, one}, 4));
  weir_edge_t tall =
      reshape(g, b, shape_of_parts(g, batch, (const weir_edge_t[]){one, n, one, n}, 4));
  return reshape(g, weir_grad_mul(g, wide, tall),
                 shape_of_parts(g, batch, (const weir_edge_t[]){square, square}, 2));
}

static weir_edge_t transposed(weir_grad_ctx_t* g, weir_edge_t a) {
  return weir_grad_node(g, "Transpose", WEIR_EDGES(a, swap_of(g, a)));
}

static weir_status_t* root_grad(weir_grad_ctx_t* g) {
  weir_edge_t y = weir_grad_output(g, 0), shape = weir_grad_shape_of(g, y);
  weir_edge_t batch = weir_grad_batch_shape(g, shape);
  weir_edge_t last = weir_build_int32s(g->builder, (const int32_t[]){-1}, 1);
  weir_edge_t one = weir_build_int32s(g->builder, (const int32_t[]){1}, 1);
  weir_edge_t n = weir_grad_node_with(
      g, "StridedSlice",
      WEIR_EDGES(shape, last, weir_build_int32s(g->builder, (const int32_t[]){0}, 1), one),
      WEIR_ATTRS(weir_attr_int("end_mask", 1)));
  weir_edge_t ones =
      weir_grad_node(g, "OnesLike", WEIR_EDGES(weir_grad_node(g, "MatrixDiagPart", WEIR_EDGES(y))));
  weir_edge_t eye = diagonal_matrix(g, ones);
  weir_edge_t sum =
      plus(g, kronecker(g, eye, transposed(g, y), batch, n), kronecker(g, y, eye, batch, n));
  weir_edge_t square = weir_grad_mul(g, n, n);
  weir_edge_t dy = reshape(g, transposed(g, weir_grad_dy(g, 0)),
                           shape_of_parts(g, batch, (const weir_edge_t[]){square, one}, 2));
  weir_edge_t x = weir_grad_node(g, "MatrixSolve", WEIR_EDGES(sum, dy));
  return weir_grad_set(g, 0, transposed(g, reshape(g, x, shape)));
}

#define FUNCTION_OP(op_name, types_, cpu_types, text, grad, fn)                           \
  {                                                                                       \
    .name = op_name, .attrs = "T: " types_, .inputs = "input: T", .outputs = "output: T", \
    .summary = text, .infer_shape = weir_shape_fn_square, .build_grad = grad,             \
    .kernels = WEIR_CPU_KERNEL(.types = cpu_types, .compute = fn)                         \
  }
#define ALL_TYPES "{double, float, half, complex64, complex128}"
#define CPU_TYPES "T: float, double, complex64, complex128"

const weir_op_module_t weir_ops_linalg_matrix_function = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        FUNCTION_OP("MatrixSquareRoot", ALL_TYPES, CPU_TYPES, "Principal square roots of matrices",
                    root_grad, root_cpu),
        FUNCTION_OP("MatrixLogarithm", "{complex64, complex128}", NULL,
                    "Principal logarithms of matrices", NULL, logarithm_cpu),
        FUNCTION_OP("MatrixExponential", ALL_TYPES, CPU_TYPES, "Exponentials of matrices", NULL,
                    exponential_cpu),
        {0}}};
