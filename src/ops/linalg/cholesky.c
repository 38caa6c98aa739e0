// cholesky.c — Cholesky and CholeskyGrad: factors of positive definite matrices in batches.
#include "kernel/cuda/source.h"
#include "kernel/linalg/cuda_linalg.h"
#include "kernel/linalg/linalg.h"
#include "ops/linalg/batch.h"

typedef struct factor_job_t {
  const weir_tensor_t* a;  // or the factor, for the gradient
  const weir_tensor_t* dl;
  weir_tensor_t* out;
  weir_tensor_t* scratch;
  int64_t n;
} factor_job_t;

static size_t matrix_bytes(const factor_job_t* job) {
  return (size_t)(job->n * job->n) * weir_dtype_size(weir_tensor_type(job->a));
}

// Checks the input; makes the output.
static weir_status_t* prepare_factor(weir_kernel_ctx_t* ctx, factor_job_t* job) {
  WEIR_TRY(check_square(ctx, 0));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  *job = (factor_job_t){.a = a, .n = a->dims[a->rank - 1]};
  return weir_kernel_output(ctx, 0, a->rank, a->dims, &job->out);
}

static void factor_range(void* arg, int64_t begin, int64_t end) {
  factor_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    const size_t offset = (size_t)i * matrix_bytes(job);
    weir_cholesky(weir_tensor_type(job->a), job->n, (const char*)job->a->data + offset,
                  (char*)job->out->data + offset);
  }
}

static weir_status_t* cholesky_cpu(weir_kernel_ctx_t* ctx) {
  factor_job_t job;
  WEIR_TRY(prepare_factor(ctx, &job));
  if (job.out->count == 0) return NULL;
  const double n = (double)job.n;
  weir_pool_for(weir_kernel_pool(ctx), matrix_count(job.a), 0.2 * n * n * n + 50.0, factor_range,
                &job);
  return NULL;
}

static void grad_range(void* arg, int64_t begin, int64_t end) {
  factor_job_t* job = arg;
  for (int64_t i = begin; i < end; ++i) {
    const size_t offset = (size_t)i * matrix_bytes(job);
    weir_cholesky_grad(weir_tensor_type(job->a), job->n, (const char*)job->a->data + offset,
                       (const char*)job->dl->data + offset, (char*)job->out->data + offset,
                       (char*)job->scratch->data + offset);
  }
}

static weir_status_t* check_alike(const weir_tensor_t* l, const weir_tensor_t* dl) {
  if (l->rank != dl->rank)
    return WEIR_STATUS(INVALID_ARGUMENT, "All input tensors must have the same rank.");
  for (int i = 0; i < l->rank - 2; ++i) {
    if (l->dims[i] != dl->dims[i])
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "All input tensors must have the same outer dimensions.");
  }
  if (weir_tensor_same_shape(l, dl)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Inputs (L and grad) must have the same shape.");
}

// Checks the inputs of a gradient; makes what it computes in, unless there is nothing to compute.
static weir_status_t* prepare_grad(weir_kernel_ctx_t* ctx, factor_job_t* job) {
  const weir_tensor_t* l = weir_kernel_input(ctx, 0);
  const weir_tensor_t* dl = weir_kernel_input(ctx, 1);
  WEIR_TRY(check_matrices(ctx, 0));
  WEIR_TRY(check_alike(l, dl));
  WEIR_TRY(check_square(ctx, 0));
  *job = (factor_job_t){.a = l, .dl = dl, .n = l->dims[l->rank - 1]};
  WEIR_TRY(weir_kernel_output(ctx, 0, l->rank, l->dims, &job->out));
  if (job->out->count == 0) return NULL;
  return weir_kernel_scratch(ctx, weir_tensor_type(l), l->count, &job->scratch);
}

static weir_status_t* cholesky_grad_cpu(weir_kernel_ctx_t* ctx) {
  factor_job_t job;
  WEIR_TRY(prepare_grad(ctx, &job));
  if (!job.scratch) return NULL;
  const double n = (double)job.n;
  weir_pool_for(weir_kernel_pool(ctx), matrix_count(job.a), 3.0 * n * n * n + 50.0, grad_range,
                &job);
  weir_tensor_release(job.scratch);
  return NULL;
}

// ---- GPU ----

WEIR_CUDA_SOURCE(cholesky);

static weir_status_t* cholesky_gpu_init(const weir_kernel_init_t* init, void* state) {
  return weir_cuda_linalg_find(init, weir_cuda_source_cholesky, "cholesky", state);
}

static weir_status_t* cholesky_gpu(weir_kernel_ctx_t* ctx) {
  factor_job_t job;
  WEIR_TRY(prepare_factor(ctx, &job));
  if (job.out->count == 0) return NULL;
  int64_t count = matrix_count(job.a);
  weir_cuda_size_t size = weir_cuda_linalg_size(ctx->device, count);
  return weir_cuda_launch(ctx->device, *(const weir_cuda_function_t*)ctx->state, &size,
                          WEIR_CUDA_ARGS((void*)&job.a->data, &job.out->data, &count, &job.n));
}

static weir_status_t* cholesky_grad_gpu_init(const weir_kernel_init_t* init, void* state) {
  return weir_cuda_linalg_find(init, weir_cuda_source_cholesky, "cholesky_grad", state);
}

static weir_status_t* cholesky_grad_gpu(weir_kernel_ctx_t* ctx) {
  factor_job_t job;
  WEIR_TRY(prepare_grad(ctx, &job));
  if (!job.scratch) return NULL;
  int64_t count = matrix_count(job.a);
  weir_cuda_size_t size = weir_cuda_linalg_size(ctx->device, count);
  weir_status_t* status =
      weir_cuda_launch(ctx->device, *(const weir_cuda_function_t*)ctx->state, &size,
                       WEIR_CUDA_ARGS((void*)&job.a->data, (void*)&job.dl->data, &job.out->data,
                                      &job.scratch->data, &count, &job.n));
  weir_tensor_release(job.scratch);
  return status;
}

// da = (s + s^H) / 2 with s = l^-H * p * l^-1, where p is the lower triangle of l^H * dl with its
// diagonal halved.
static weir_status_t* cholesky_build_grad(weir_grad_ctx_t* g) {
  weir_edge_t l = weir_grad_output(g, 0);
  weir_edge_t half = weir_grad_scalar(g, l, 0.5);
  weir_edge_t ones =
      weir_grad_node(g, "OnesLike", WEIR_EDGES(weir_grad_node(g, "MatrixDiagPart", WEIR_EDGES(l))));
  weir_edge_t zeros = weir_grad_node(g, "ZerosLike", WEIR_EDGES(l));
  weir_edge_t eye = weir_grad_node(g, "MatrixSetDiag", WEIR_EDGES(zeros, ones));
  weir_edge_t inverse = triangular_solve(g, l, eye, true, false);
  weir_edge_t p = matrix_product(g, l, true, weir_grad_dy(g, 0), false);
  weir_edge_t diagonal = weir_grad_node(g, "MatrixDiagPart", WEIR_EDGES(p));
  p = weir_grad_node(g, "MatrixSetDiag", WEIR_EDGES(p, weir_grad_mul(g, half, diagonal)));
  p = band_part(g, p, -1, 0);
  weir_edge_t s =
      matrix_product(g, matrix_product(g, inverse, true, p, false), false, inverse, false);
  weir_edge_t sum = weir_grad_node(g, "AddV2", WEIR_EDGES(s, adjoint(g, s)));
  return weir_grad_set(g, 0, weir_grad_mul(g, sum, half));
}

#define CHOLESKY_KERNELS(types_, fn)                                                 \
  ((const weir_kernel_def_t[]){                                                      \
      {WEIR_DEVICE_CPU, .types = types_, .compute = fn##_cpu},                       \
      {WEIR_DEVICE_GPU, .types = types_, .compute = fn##_gpu, .init = fn##_gpu_init, \
       .state_size = sizeof(weir_cuda_function_t)},                                  \
      {0}})

const weir_op_module_t weir_ops_linalg_cholesky = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Cholesky",
         .attrs = "T: {double, float, half, complex64, complex128}",
         .inputs = "input: T",
         .outputs = "output: T",
         .summary = "Lower factors of positive definite matrices",
         .infer_shape = weir_shape_fn_square,
         .build_grad = cholesky_build_grad,
         .kernels = CHOLESKY_KERNELS("T: double, float, complex64, complex128", cholesky)},
        {.name = "CholeskyGrad",
         .attrs = "T: {half, float, double}",
         .inputs = "l: T; grad: T",
         .outputs = "output: T",
         .summary = "Reverse-mode gradient of Cholesky",
         .infer_shape = weir_shape_fn_square,
         .kernels = CHOLESKY_KERNELS("T: float, double", cholesky_grad)},
        {.name = "BatchCholesky",
         .attrs = "T: {double, float}",
         .inputs = "input: T",
         .outputs = "output: T",
         .summary = "Cholesky of old graphs",
         .infer_shape = weir_shape_fn_square,
         .kernels = WEIR_CPU_KERNEL(.compute = cholesky_cpu)},
        {.name = "BatchCholeskyGrad",
         .attrs = "T: {float, double}",
         .inputs = "l: T; grad: T",
         .outputs = "output: T",
         .summary = "CholeskyGrad of old graphs",
         .infer_shape = weir_shape_fn_square,
         .kernels = WEIR_CPU_KERNEL(.compute = cholesky_grad_cpu)},
        {0}}};
