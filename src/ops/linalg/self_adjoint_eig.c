// self_adjoint_eig.c — SelfAdjointEigV2, SelfAdjointEig and their Batch names: eigenvalues and
// vectors of self-adjoint matrices, of which the lower triangle is read.
#include "kernel/linalg/spectral.h"
#include "ops/linalg/batch.h"

typedef struct eigh_state_t {
  bool has_vectors;
} eigh_state_t;

static weir_status_t* eigh_init(const weir_kernel_init_t* init, void* state) {
  ((eigh_state_t*)state)->has_vectors = weir_attrs_bool(init->node->attrs, "compute_v");
  return NULL;
}

typedef struct eigh_job_t {
  weir_dtype_t dtype;
  int64_t n;
  bool has_vectors;
  bool is_stacked;  // one output, the values as a row above the vectors
} eigh_job_t;

static bool values_of(const batch_item_t* item) {
  const eigh_job_t* job = item->arg;
  char* e = item->outputs[0];
  void* v = job->has_vectors ? item->outputs[1] : NULL;
  if (job->is_stacked) v = e + (size_t)job->n * weir_dtype_size(job->dtype);
  return weir_eigh(job->dtype, job->n, item->inputs[0], e, v, item->scratch);
}

static batch_t make_batch(const weir_tensor_t* a, const eigh_job_t* job) {
  const double n = (double)job->n;
  return (batch_t){
      .fn = values_of,
      .failure =
          "Self-adjoint eigen decomposition was not successful. The input might not be valid.",
      .arg = job,
      .count = a->count == 0 ? 0 : matrix_count(a),
      .ns = 5.0 * n * n * n + 300.0,
      .input_count = 1,
      .scratch_size = weir_eigh_scratch_count(job->n) * (int64_t)weir_dtype_size(job->dtype)};
}

static weir_status_t* eigh_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_square(ctx, 0));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const eigh_job_t job = {.dtype = weir_tensor_type(a),
                          .n = a->dims[a->rank - 1],
                          .has_vectors = ((const eigh_state_t*)ctx->state)->has_vectors};
  batch_t batch = make_batch(a, &job);
  WEIR_TRY(weir_batch_output(ctx, &batch, 0, 1, &job.n));
  if (job.has_vectors) {
    WEIR_TRY(weir_batch_output(ctx, &batch, 1, 2, (const int64_t[]){job.n, job.n}));
  } else {
    weir_tensor_t* none = NULL;
    WEIR_TRY(weir_kernel_output(ctx, 1, 0, NULL, &none));
    memset(none->data, 0, weir_dtype_size(job.dtype));
  }
  return weir_batch_run(ctx, &batch);
}

static weir_status_t* stacked_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_square(ctx, 0));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const eigh_job_t job = {
      .dtype = weir_tensor_type(a), .n = a->dims[a->rank - 1], .is_stacked = true};
  batch_t batch = make_batch(a, &job);
  WEIR_TRY(weir_batch_output(ctx, &batch, 0, 2, (const int64_t[]){job.n + 1, job.n}));
  return weir_batch_run(ctx, &batch);
}

static weir_status_t* eigh_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = NULL;
  WEIR_TRY(square_shape(ctx, weir_shape_input(ctx, 0), &a));
  const bool has_vectors = weir_attrs_bool(weir_shape_attrs(ctx), "compute_v");
  // TensorFlow infers a vector of no elements, but gives a scalar.
  if (!has_vectors) WEIR_TRY(weir_shape_set_scalar(ctx, 1));
  if (a->rank < 0) return NULL;
  if (has_vectors) WEIR_TRY(weir_shape_set(ctx, 1, a));
  return weir_shape_set(ctx, 0, weir_shape_sub(ctx, a, 0, a->rank - 1));
}

static weir_status_t* stacked_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = NULL;
  WEIR_TRY(square_shape(ctx, weir_shape_input(ctx, 0), &a));
  if (a->rank < 0) return NULL;
  const int64_t n = weir_shape_dim(a, -1);
  return weir_batch_shape(ctx, 0, weir_shape_sub(ctx, a, 0, a->rank - 2), 2,
                          (const int64_t[]){n < 0 ? -1 : n + 1, n});
}

// v (de + f o v^H dv) v^H, whose two triangles are summed into the lower one.
static weir_status_t* eigh_grad(weir_grad_ctx_t* g) {
  weir_edge_t middle = diagonal_matrix(g, weir_grad_dy(g, 0));
  weir_edge_t v = weir_grad_output(g, 1);
  if (weir_attrs_bool(weir_grad_attrs(g), "compute_v")) {
    weir_edge_t product = matrix_product(g, v, true, weir_grad_dy(g, 1), false);
    weir_edge_t f = inverse_differences(g, weir_grad_output(g, 0));
    middle = plus(g, middle, weir_grad_mul(g, f, product));
  } else {
    v = weir_build_output(weir_grad_node(g, "SelfAdjointEigV2", WEIR_EDGES(weir_grad_input(g, 0))),
                          1);
  }
  weir_edge_t da = matrix_product(g, v, false, matrix_product(g, middle, false, v, true), false);
  da = band_part(g, plus(g, da, adjoint(g, da)), -1, 0);
  weir_edge_t part = weir_grad_node(g, "MatrixDiagPart", WEIR_EDGES(da));
  part = weir_grad_mul(g, weir_grad_scalar(g, da, 0.5), part);
  return weir_grad_set(g, 0, weir_grad_node(g, "MatrixSetDiag", WEIR_EDGES(da, part)));
}

#define EIGH_OP(op_name, types_, cpu_types, text, grad)                                      \
  {                                                                                          \
    .name = op_name, .attrs = "compute_v: bool = true; T: " types_, .inputs = "input: T",    \
    .outputs = "e: T; v: T", .summary = text, .infer_shape = eigh_shape, .build_grad = grad, \
    .kernels = WEIR_CPU_KERNEL(.types = cpu_types, .compute = eigh_cpu,                      \
                               .state_size = sizeof(eigh_state_t), .init = eigh_init)        \
  }
#define STACKED_OP(op_name, types_, text)                                                 \
  {                                                                                       \
    .name = op_name, .attrs = "T: " types_, .inputs = "input: T", .outputs = "output: T", \
    .summary = text, .infer_shape = stacked_shape,                                        \
    .kernels = WEIR_CPU_KERNEL(.types = "T: float, double", .compute = stacked_cpu)       \
  }

const weir_op_module_t weir_ops_linalg_self_adjoint_eig = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        EIGH_OP("SelfAdjointEigV2", "{double, float, half, complex64, complex128}",
                "T: float, double, complex64, complex128",
                "Eigenvalues and vectors of self-adjoint matrices", eigh_grad),
        EIGH_OP("BatchSelfAdjointEigV2", "{double, float}", NULL, "SelfAdjointEigV2 of old graphs",
                NULL),
        STACKED_OP("SelfAdjointEig", "{double, float, half}",
                   "Eigenvalues of self-adjoint matrices, as a row above the vectors"),
        STACKED_OP("BatchSelfAdjointEig", "{double, float}", "SelfAdjointEig of old graphs"),
        {0}}};
