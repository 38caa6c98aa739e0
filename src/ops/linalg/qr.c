// qr.c — Qr: orthogonal and upper triangular factors of matrices in batches.
#include "kernel/cuda/source.h"
#include "kernel/linalg/cuda_linalg.h"
#include "kernel/linalg/linalg.h"
#include "ops/linalg/common.h"

typedef struct qr_state_t {
  bool is_full;
  weir_cuda_function_t function;  // of a GPU
} qr_state_t;

WEIR_CUDA_SOURCE(qr);

static weir_status_t* qr_init(const weir_kernel_init_t* init, void* state) {
  qr_state_t* s = state;
  s->is_full = weir_attrs_bool(init->node->attrs, "full_matrices");
  if (!weir_device_is_cuda(init->device)) return NULL;
  return weir_cuda_linalg_find(init, weir_cuda_source_qr, "qr", &s->function);
}

typedef struct qr_job_t {
  weir_dtype_t dtype;
  weir_qr_t first;  // the first matrix of each
  size_t a_bytes;
  size_t q_bytes;
  size_t r_bytes;
  size_t scratch_bytes;
} qr_job_t;

static void qr_range(void* arg, int64_t begin, int64_t end) {
  const qr_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    weir_qr_t one = job->first;
    one.a = (const char*)one.a + (size_t)i * job->a_bytes;
    one.q = (char*)one.q + (size_t)i * job->q_bytes;
    one.r = (char*)one.r + (size_t)i * job->r_bytes;
    one.scratch = (char*)one.scratch + (size_t)i * job->scratch_bytes;
    weir_qr(job->dtype, &one);
  }
}

static weir_status_t* factor(weir_kernel_ctx_t* ctx, const weir_tensor_t* a, weir_tensor_t* q,
                             weir_tensor_t* r) {
  const weir_dtype_t dtype = weir_tensor_type(a);
  const weir_dtype_t work = dtype == WEIR_DTYPE_HALF ? WEIR_DTYPE_FLOAT : dtype;
  const int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1], count = matrix_count(a);
  const int64_t each = weir_qr_scratch_count(m, n);
  if (count == 0) return NULL;
  weir_tensor_t* scratch = NULL;
  WEIR_TRY(weir_kernel_scratch(ctx, work, each * count, &scratch));
  qr_job_t job = {.dtype = dtype,
                  .first = {.m = m,
                            .n = n,
                            .is_full = ((const qr_state_t*)ctx->state)->is_full,
                            .a = a->data,
                            .q = q->data,
                            .r = r->data,
                            .scratch = scratch->data},
                  .a_bytes = (size_t)(m * n) * weir_dtype_size(dtype),
                  .q_bytes = (size_t)(q->count / count) * weir_dtype_size(dtype),
                  .r_bytes = (size_t)(r->count / count) * weir_dtype_size(dtype),
                  .scratch_bytes = (size_t)each * weir_dtype_size(work)};
  const double cost = 2.0 * (double)m * (double)n * (double)WEIR_MAX(m, n) + 100.0;
  weir_pool_for(weir_kernel_pool(ctx), count, cost, qr_range, &job);
  weir_tensor_release(scratch);
  return NULL;
}

static weir_status_t* factor_on_gpu(weir_kernel_ctx_t* ctx, const weir_tensor_t* a,
                                    weir_tensor_t* q, weir_tensor_t* r) {
  const qr_state_t* s = ctx->state;
  int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1], count = matrix_count(a);
  int is_full = s->is_full;
  if (q->count == 0 && r->count == 0) return NULL;
  weir_tensor_t* work = NULL;
  WEIR_TRY(weir_kernel_scratch(ctx, weir_tensor_type(a), count * (m * n + WEIR_MIN(m, n)), &work));
  weir_cuda_size_t size = weir_cuda_linalg_size(ctx->device, count);
  weir_status_t* status = weir_cuda_launch(
      ctx->device, s->function, &size,
      WEIR_CUDA_ARGS((void*)&a->data, &q->data, &r->data, &work->data, &count, &m, &n, &is_full));
  weir_tensor_release(work);
  return status;
}

static weir_status_t* qr(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_matrices(ctx, 0));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1];
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, a->dims, sizeof(int64_t) * (size_t)a->rank);
  const int64_t inner = ((const qr_state_t*)ctx->state)->is_full ? m : WEIR_MIN(m, n);
  weir_tensor_t* q = NULL;
  weir_tensor_t* r = NULL;
  dims[a->rank - 1] = inner;
  WEIR_TRY(weir_kernel_output(ctx, 0, a->rank, dims, &q));
  dims[a->rank - 2] = inner;
  dims[a->rank - 1] = n;
  WEIR_TRY(weir_kernel_output(ctx, 1, a->rank, dims, &r));
  return weir_device_is_cuda(ctx->device) ? factor_on_gpu(ctx, a, q, r) : factor(ctx, a, q, r);
}

static weir_status_t* qr_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_least(ctx, a, 2));
  if (a->rank < 0) return NULL;
  const int64_t m = weir_shape_dim(a, -2), n = weir_shape_dim(a, -1);
  int64_t inner = m < 0 || n < 0 ? -1 : WEIR_MIN(m, n);
  if (m == 0 || n == 0) inner = 0;
  if (weir_attrs_bool(weir_shape_attrs(ctx), "full_matrices")) inner = m;
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, a->dims, sizeof(int64_t) * (size_t)a->rank);
  dims[a->rank - 1] = inner;
  WEIR_TRY(weir_shape_set_dims(ctx, 0, a->rank, dims));
  dims[a->rank - 2] = inner;
  dims[a->rank - 1] = n;
  return weir_shape_set_dims(ctx, 1, a->rank, dims);
}

// ---- gradient ----

// x * r^-H for an upper triangular r.
static weir_edge_t over_adjoint(weir_grad_ctx_t* g, weir_edge_t x, weir_edge_t r) {
  return adjoint(g, triangular_solve(g, r, adjoint(g, x), false, false));
}

// What complex types need beside: the imaginary diagonal of |m|, through q and r.
static weir_edge_t correction(weir_grad_ctx_t* g, weir_edge_t q, weir_edge_t r, weir_edge_t m) {
  weir_edge_t zeros = weir_grad_node(g, "ZerosLike", WEIR_EDGES(m));
  weir_edge_t part = weir_grad_node(g, "MatrixDiagPart", WEIR_EDGES(m));
  weir_edge_t diagonal = weir_grad_node(g, "MatrixSetDiag", WEIR_EDGES(zeros, part));
  const weir_dtype_t dtype = weir_grad_dtype(g, q);
  const weir_dtype_t real_type =
      dtype == WEIR_DTYPE_COMPLEX64 ? WEIR_DTYPE_FLOAT : WEIR_DTYPE_DOUBLE;
  weir_edge_t real = weir_grad_node_with(g, "Real", WEIR_EDGES(diagonal),
                                         WEIR_ATTRS(weir_attr_type("Tout", real_type)));
  real =
      weir_grad_node_with(g, "Cast", WEIR_EDGES(real), WEIR_ATTRS(weir_attr_type("DstT", dtype)));
  weir_edge_t imaginary = minus(g, diagonal, real);
  return over_adjoint(g, matrix_product(g, q, false, imaginary, true), r);
}

// For at least as many rows as columns, and the reduced factors.
static weir_edge_t deep_grad(weir_grad_ctx_t* g, weir_edge_t q, weir_edge_t r, weir_edge_t dq,
                             weir_edge_t dr) {
  weir_edge_t qdq = matrix_product(g, q, true, dq, false);
  weir_edge_t rdr = matrix_product(g, r, false, dr, true);
  weir_edge_t skew = plus(g, minus(g, qdq, adjoint(g, qdq)), minus(g, rdr, adjoint(g, rdr)));
  weir_edge_t triangle = band_part(g, skew, -1, 0);
  weir_edge_t within =
      matrix_product(g, q, false, plus(g, dr, over_adjoint(g, triangle, r)), false);
  weir_edge_t beside = over_adjoint(g, minus(g, dq, matrix_product(g, q, false, qdq, false)), r);
  weir_edge_t sum = plus(g, within, beside);
  if (!weir_dtype_is_complex(weir_grad_dtype(g, q))) return sum;
  return plus(g, sum, correction(g, q, r, minus(g, rdr, adjoint(g, qdq))));
}

static weir_status_t* qr_grad(weir_grad_ctx_t* g) {
  weir_edge_t q = weir_grad_output(g, 0), r = weir_grad_output(g, 1);
  weir_edge_t dq = weir_grad_dy(g, 0), dr = weir_grad_dy(g, 1);
  const weir_shape_t* q_shape = weir_grad_shape(g, q);
  const weir_shape_t* r_shape = weir_grad_shape(g, r);
  const int64_t rows = weir_shape_dim(r_shape, -2), cols = weir_shape_dim(r_shape, -1);
  if (r_shape->rank < 0 || rows < 0 || cols < 0) {
    return WEIR_STATUS(UNIMPLEMENTED, "QrGrad not implemented with dynamic shapes");
  }
  const int64_t m = weir_shape_dim(q_shape, -2);
  if (rows > cols && m == weir_shape_dim(q_shape, -1)) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "QrGrad not implemented when nrows > ncols and full_matrices is true");
  }
  if (m >= cols) return weir_grad_set(g, 0, deep_grad(g, q, r, dq, dr));
  // a = [x, y], r = [u, v]: x is square.
  weir_edge_t y = columns(g, weir_grad_input(g, 0), m, -1);
  weir_edge_t u = columns(g, r, 0, m);
  weir_edge_t dv = columns(g, dr, m, -1);
  weir_edge_t du = columns(g, dr, 0, m);
  weir_edge_t dy = matrix_product(g, q, false, dv, false);
  weir_edge_t dx = deep_grad(g, q, u, plus(g, dq, matrix_product(g, y, false, dv, true)), du);
  return weir_grad_set(
      g, 0,
      weir_grad_node_with(g, "ConcatV2", WEIR_EDGES(dx, dy, weir_build_int32(g->builder, -1)),
                          WEIR_ATTRS(weir_attr_int("N", 2))));
}

#define QR_ROW(device, types_) \
  { device, .types = types_, .compute = qr, .init = qr_init, .state_size = sizeof(qr_state_t) }

const weir_op_module_t weir_ops_linalg_qr = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Qr",
         .attrs = "full_matrices: bool = false; T: {double, float, half, complex64, complex128}",
         .inputs = "input: T",
         .outputs = "q: T; r: T",
         .summary = "Orthogonal and upper triangular factors",
         .infer_shape = qr_shape,
         .build_grad = qr_grad,
         .kernels = (const weir_kernel_def_t[]){QR_ROW(WEIR_DEVICE_CPU, NULL),
                                                QR_ROW(WEIR_DEVICE_GPU,
                                                       "T: double, float, complex64, complex128"),
                                                {0}}},
        {0}}};
