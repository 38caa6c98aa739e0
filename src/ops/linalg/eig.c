// eig.c — Eig: eigenvalues and vectors of square matrices in batches, computed in complex128.
#include "kernel/linalg/schur.h"
#include "ops/linalg/batch.h"

typedef struct eig_state_t {
  bool has_vectors;
} eig_state_t;

static weir_status_t* eig_init(const weir_kernel_init_t* init, void* state) {
  const weir_attrs_t attrs = init->node->attrs;
  const weir_dtype_t dtype = weir_attrs_type(attrs, "T"), out = weir_attrs_type(attrs, "Tout");
  const bool is_wide = dtype == WEIR_DTYPE_DOUBLE || dtype == WEIR_DTYPE_COMPLEX128;
  const weir_dtype_t expected = is_wide ? WEIR_DTYPE_COMPLEX128 : WEIR_DTYPE_COMPLEX64;
  if (out != expected) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid output dtype %d vs %d", (int)out, (int)expected);
  }
  ((eig_state_t*)state)->has_vectors = weir_attrs_bool(attrs, "compute_v");
  return NULL;
}

typedef struct eig_job_t {
  weir_dtype_t dtype;
  weir_dtype_t out_type;
  int64_t n;
  bool has_vectors;
} eig_job_t;

static bool values_of(const batch_item_t* item) {
  const eig_job_t* job = item->arg;
  const int64_t n = job->n;
  weir_complex128_t* a = (weir_complex128_t*)(void*)item->scratch;
  weir_complex128_t* v = a + n * n;
  weir_complex128_t* e = v + 2 * n * n;
  weir_widen(job->dtype, n * n, item->inputs[0], a);
  if (!weir_eig(n, a, e, job->has_vectors ? v : NULL, v + n * n)) return false;
  weir_narrow(job->out_type, n, e, item->outputs[0]);
  if (job->has_vectors) weir_narrow(job->out_type, n * n, v, item->outputs[1]);
  return true;
}

static weir_status_t* eig_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_square(ctx, 0));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const int64_t n = a->dims[a->rank - 1];
  eig_job_t job = {.dtype = weir_tensor_type(a),
                   .out_type = weir_attrs_type(weir_kernel_attrs(ctx), "Tout"),
                   .n = n,
                   .has_vectors = ((const eig_state_t*)ctx->state)->has_vectors};
  batch_t batch = {
      .fn = values_of,
      .failure = "Eigen decomposition was not successful. The input might not be valid.",
      .arg = &job,
      .count = a->count == 0 ? 0 : matrix_count(a),
      .ns = 50.0 * (double)n * (double)n * (double)n + 500.0,
      .input_count = 1,
      .scratch_size = (3 * n * n + n) * (int64_t)sizeof(weir_complex128_t)};
  WEIR_TRY(weir_batch_output(ctx, &batch, 0, 1, &n));
  if (job.has_vectors) {
    WEIR_TRY(weir_batch_output(ctx, &batch, 1, 2, (const int64_t[]){n, n}));
  } else {
    weir_tensor_t* none = NULL;
    WEIR_TRY(weir_kernel_output(ctx, 1, 0, NULL, &none));
    memset(none->data, 0, weir_dtype_size(job.out_type));
  }
  return weir_batch_run(ctx, &batch);
}

static weir_status_t* eig_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = NULL;
  WEIR_TRY(square_shape(ctx, weir_shape_input(ctx, 0), &a));
  const bool has_vectors = weir_attrs_bool(weir_shape_attrs(ctx), "compute_v");
  // TensorFlow infers a vector of no elements, but gives a scalar.
  if (!has_vectors) WEIR_TRY(weir_shape_set_scalar(ctx, 1));
  if (a->rank < 0) return NULL;
  if (has_vectors) WEIR_TRY(weir_shape_set(ctx, 1, a));
  return weir_shape_set(ctx, 0, weir_shape_sub(ctx, a, 0, a->rank - 1));
}

// The real parts of |x|, as numbers of its type.
static weir_edge_t real_part(weir_grad_ctx_t* g, weir_edge_t x) {
  const weir_dtype_t dtype = weir_grad_dtype(g, x);
  const weir_dtype_t part = dtype == WEIR_DTYPE_COMPLEX64 ? WEIR_DTYPE_FLOAT : WEIR_DTYPE_DOUBLE;
  weir_edge_t real =
      weir_grad_node_with(g, "Real", WEIR_EDGES(x), WEIR_ATTRS(weir_attr_type("Tout", part)));
  return weir_grad_node_with(g, "Cast", WEIR_EDGES(real),
                             WEIR_ATTRS(weir_attr_type("DstT", dtype)));
}

// v^-H (de + f o (v^H dv - v^H v diag(re(v^H dv)))) v^H: vectors keep the length 1.
static weir_status_t* eig_grad(weir_grad_ctx_t* g) {
  weir_edge_t a = weir_grad_input(g, 0), v = weir_grad_output(g, 1);
  weir_edge_t middle = diagonal_matrix(g, weir_grad_dy(g, 0));
  if (weir_attrs_bool(weir_grad_attrs(g), "compute_v")) {
    weir_edge_t product = matrix_product(g, v, true, weir_grad_dy(g, 1), false);
    weir_edge_t part = weir_grad_node(g, "MatrixDiagPart", WEIR_EDGES(real_part(g, product)));
    weir_edge_t along = matrix_product(g, matrix_product(g, v, true, v, false), false,
                                       diagonal_matrix(g, part), false);
    weir_edge_t f = weir_grad_conj(g, inverse_differences(g, weir_grad_output(g, 0)));
    middle = plus(g, middle, weir_grad_mul(g, f, minus(g, product, along)));
  } else {
    weir_edge_t e = weir_grad_node_with(
        g, "Eig", WEIR_EDGES(a),
        WEIR_ATTRS(weir_attr_type("Tout", weir_attrs_type(weir_grad_attrs(g), "Tout"))));
    v = weir_build_output(e, 1);
  }
  weir_edge_t da = weir_grad_node(
      g, "MatrixSolve", WEIR_EDGES(adjoint(g, v), matrix_product(g, middle, false, v, true)));
  const weir_dtype_t dtype = weir_grad_dtype(g, a);
  if (!weir_dtype_is_complex(dtype)) {
    da = weir_grad_node_with(g, "Cast", WEIR_EDGES(da), WEIR_ATTRS(weir_attr_type("DstT", dtype)));
  }
  return weir_grad_set(g, 0, da);
}

const weir_op_module_t weir_ops_linalg_eig = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Eig",
         .attrs = "compute_v: bool = true; T: {float, double, complex64, complex128}; "
                  "Tout: {complex64, complex128}",
         .inputs = "input: T",
         .outputs = "e: Tout; v: Tout",
         .summary = "Eigenvalues and vectors of square matrices",
         .infer_shape = eig_shape,
         .build_grad = eig_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = eig_cpu, .state_size = sizeof(eig_state_t),
                                    .init = eig_init)},
        {0}}};
