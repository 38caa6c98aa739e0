// svd.c — Svd, BatchSvd: singular values and vectors of matrices in batches.
#include "kernel/linalg/spectral.h"
#include "ops/linalg/batch.h"

typedef struct svd_state_t {
  bool has_vectors;
  bool is_full;
} svd_state_t;

static weir_status_t* svd_init(const weir_kernel_init_t* init, void* state) {
  svd_state_t* s = state;
  s->has_vectors = weir_attrs_bool(init->node->attrs, "compute_uv");
  s->is_full = weir_attrs_bool(init->node->attrs, "full_matrices");
  return NULL;
}

typedef struct svd_job_t {
  weir_dtype_t dtype;
  weir_svd_t shape;
  bool has_vectors;
} svd_job_t;

static bool values_of(const batch_item_t* item) {
  const svd_job_t* job = item->arg;
  weir_svd_t one = job->shape;
  one.a = item->inputs[0];
  one.s = item->outputs[0];
  one.u = job->has_vectors ? item->outputs[1] : NULL;
  one.v = job->has_vectors ? item->outputs[2] : NULL;
  one.scratch = item->scratch;
  weir_svd(job->dtype, &one);
  return true;
}

// Of a matrix without elements: no values, and vectors along the axes.
static void write_axes(const weir_tensor_t* v) {
  const weir_dtype_t dtype = weir_tensor_type(v);
  const int64_t n = v->dims[v->rank - 1];
  if (v->count == 0) return;
  memset(v->data, 0, (size_t)v->count * weir_dtype_size(dtype));
  for (int64_t i = 0; i < v->count; i += i % (n * n) == n * n - 1 ? 1 : n + 1) {
    char* at = (char*)v->data + (size_t)i * weir_dtype_size(dtype);
    if (dtype == WEIR_DTYPE_DOUBLE || dtype == WEIR_DTYPE_COMPLEX128) {
      *(double*)(void*)at = 1;
    } else {
      *(float*)(void*)at = 1;
    }
  }
}

static weir_status_t* no_vectors(weir_kernel_ctx_t* ctx) {
  for (int i = 1; i < 3; ++i) {
    weir_tensor_t* none = NULL;
    WEIR_TRY(weir_kernel_output(ctx, i, 0, NULL, &none));
    memset(none->data, 0, weir_dtype_size(weir_tensor_type(none)));
  }
  return NULL;
}

static weir_status_t* svd_cpu(weir_kernel_ctx_t* ctx) {
  const svd_state_t* s = ctx->state;
  WEIR_TRY(check_matrices(ctx, 0));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1], p = WEIR_MIN(m, n);
  const svd_job_t job = {.dtype = weir_tensor_type(a),
                         .shape = {.m = m, .n = n, .is_full = s->is_full},
                         .has_vectors = s->has_vectors};
  batch_t batch = {.fn = values_of,
                   .arg = &job,
                   .count = a->count == 0 ? 0 : matrix_count(a),
                   .ns = 20.0 * (double)p * (double)p * (double)(m + n) + 500.0,
                   .input_count = 1,
                   .scratch_size = weir_svd_scratch_count(m, n, s->is_full) *
                                   (int64_t)weir_dtype_size(job.dtype)};
  WEIR_TRY(weir_batch_output(ctx, &batch, 0, 1, &p));
  if (s->has_vectors) {
    WEIR_TRY(weir_batch_output(ctx, &batch, 1, 2, (const int64_t[]){m, s->is_full ? m : p}));
    WEIR_TRY(weir_batch_output(ctx, &batch, 2, 2, (const int64_t[]){n, s->is_full ? n : p}));
    for (int i = 1; a->count == 0 && i < 3; ++i) write_axes(batch.outputs[i]);
  } else {
    WEIR_TRY(no_vectors(ctx));
  }
  return weir_batch_run(ctx, &batch);
}

static weir_status_t* svd_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_at_least(ctx, a, 2));
  const bool has_vectors = weir_attrs_bool(weir_shape_attrs(ctx), "compute_uv");
  // TensorFlow infers vectors of no elements, but gives scalars.
  for (int i = 1; !has_vectors && i < 3; ++i) WEIR_TRY(weir_shape_set_scalar(ctx, i));
  if (a->rank < 0) return NULL;
  const bool is_full = weir_attrs_bool(weir_shape_attrs(ctx), "full_matrices");
  const int64_t m = weir_shape_dim(a, -2), n = weir_shape_dim(a, -1);
  int64_t p = m < 0 || n < 0 ? -1 : WEIR_MIN(m, n);
  if (m == 0 || n == 0) p = 0;
  const weir_shape_t* outer = weir_shape_sub(ctx, a, 0, a->rank - 2);
  WEIR_TRY(weir_batch_shape(ctx, 0, outer, 1, &p));
  if (!has_vectors) return NULL;
  WEIR_TRY(weir_batch_shape(ctx, 1, outer, 2, (const int64_t[]){m, is_full ? m : p}));
  return weir_batch_shape(ctx, 2, outer, 2, (const int64_t[]){n, is_full ? n : p});
}

// ---- gradient: with m <= n; of other matrices that of the adjoint ----

typedef struct factors_t {
  weir_edge_t u, s, v;     // s of the type of the matrices
  weir_edge_t du, ds, dv;  // ds as diagonal matrices
  bool is_full, is_square;
  int64_t m;
} factors_t;

// f o (x^H dx), and its adjoint added.
static weir_edge_t rotation(weir_grad_ctx_t* g, weir_edge_t f, weir_edge_t product) {
  weir_edge_t scaled = weir_grad_mul(g, f, product);
  return plus(g, scaled, adjoint(g, scaled));
}

// What v's part outside of the rows of the matrix gives.
static weir_edge_t outside(weir_grad_ctx_t* g, const factors_t* f, weir_edge_t v, weir_edge_t dv) {
  weir_edge_t dvt = adjoint(g, dv);
  weir_edge_t rest =
      minus(g, dvt, matrix_product(g, matrix_product(g, dvt, false, v, false), false, v, true));
  if (f->is_full) {
    weir_edge_t others = columns(g, f->v, f->m, -1);
    weir_edge_t product = matrix_product(g, v, true, columns(g, f->dv, f->m, -1), false);
    rest = minus(g, rest, matrix_product(g, product, false, others, true));
  }
  weir_edge_t inverse = diagonal_matrix(g, safe_reciprocal(g, f->s));
  return matrix_product(g, matrix_product(g, f->u, false, inverse, false), false, rest, false);
}

// The phases of complex vectors, which v's alone hold.
static weir_edge_t phases(weir_grad_ctx_t* g, const factors_t* f, weir_edge_t v, weir_edge_t vdv) {
  weir_edge_t part = weir_grad_node(g, "MatrixDiagPart", WEIR_EDGES(vdv));
  weir_edge_t turn = minus(g, weir_grad_conj(g, part), part);
  turn = weir_grad_mul(g, safe_reciprocal(g, f->s), turn);
  turn = weir_grad_mul(g, turn, weir_grad_scalar(g, f->u, 0.5));
  weir_edge_t right = matrix_product(g, diagonal_matrix(g, turn), false, v, true);
  return matrix_product(g, f->u, false, right, false);
}

static weir_edge_t wide_grad(weir_grad_ctx_t* g, const factors_t* f) {
  weir_edge_t s = diagonal_matrix(g, f->s);
  weir_edge_t differences = inverse_differences(g, weir_grad_mul(g, f->s, f->s));
  weir_edge_t v = columns(g, f->v, 0, f->m), dv = columns(g, f->dv, 0, f->m);
  weir_edge_t udu = matrix_product(g, f->u, true, f->du, false);
  weir_edge_t vdv = matrix_product(g, v, true, dv, false);
  weir_edge_t middle =
      plus(g, f->ds, matrix_product(g, rotation(g, differences, udu), false, s, false));
  middle = plus(g, middle, matrix_product(g, s, false, rotation(g, differences, vdv), false));
  weir_edge_t da = matrix_product(g, f->u, false, matrix_product(g, middle, false, v, true), false);
  if (!f->is_square) da = plus(g, da, outside(g, f, v, dv));
  if (!weir_dtype_is_complex(weir_grad_dtype(g, f->u))) return da;
  return plus(g, da, phases(g, f, v, vdv));
}

static weir_status_t* svd_grad(weir_grad_ctx_t* g) {
  weir_edge_t a = weir_grad_input(g, 0), ds = diagonal_matrix(g, weir_grad_dy(g, 0));
  const bool is_full = weir_attrs_bool(weir_grad_attrs(g), "full_matrices");
  if (!weir_attrs_bool(weir_grad_attrs(g), "compute_uv")) {
    weir_edge_t s = weir_grad_node(g, "Svd", WEIR_EDGES(a));
    weir_edge_t right = matrix_product(g, ds, false, weir_build_output(s, 2), true);
    return weir_grad_set(g, 0, matrix_product(g, weir_build_output(s, 1), false, right, false));
  }
  const weir_shape_t* shape = weir_grad_shape(g, a);
  const int64_t m = shape->rank < 0 ? -1 : weir_shape_dim(shape, -2);
  const int64_t n = shape->rank < 0 ? -1 : weir_shape_dim(shape, -1);
  if (m < 0 || n < 0) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "SVD gradient has not been implemented for input with unknown "
                       "inner matrix shape.");
  }
  if (is_full && (m - n > 1 || n - m > 1)) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "svd gradient is not implemented for abs(m - n) > 1 when "
                       "full_matrices is True");
  }
  const int u = m > n ? 2 : 1, v = 3 - u;
  const factors_t factors = {.u = weir_grad_output(g, u),
                             .s = weir_grad_output(g, 0),
                             .v = weir_grad_output(g, v),
                             .du = weir_grad_dy(g, u),
                             .ds = ds,
                             .dv = weir_grad_dy(g, v),
                             .is_full = is_full,
                             .is_square = m == n,
                             .m = WEIR_MIN(m, n)};
  weir_edge_t da = wide_grad(g, &factors);
  return weir_grad_set(g, 0, m > n ? adjoint(g, da) : da);
}

#define SVD_OP(op_name, types_, cpu_types, text, grad)                                            \
  {                                                                                               \
    .name = op_name, .attrs = "compute_uv: bool = true; full_matrices: bool = false; T: " types_, \
    .inputs = "input: T", .outputs = "s: T; u: T; v: T", .summary = text,                         \
    .infer_shape = svd_shape, .build_grad = grad,                                                 \
    .kernels = WEIR_CPU_KERNEL(.types = cpu_types, .compute = svd_cpu,                            \
                               .state_size = sizeof(svd_state_t), .init = svd_init)               \
  }

const weir_op_module_t weir_ops_linalg_svd = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        SVD_OP("Svd", "{double, float, half, complex64, complex128}",
               "T: float, double, complex64, complex128", "Singular values and vectors", svd_grad),
        SVD_OP("BatchSvd", "{double, float, complex64, complex128}", NULL, "Svd of old graphs",
               NULL),
        {0}}};
