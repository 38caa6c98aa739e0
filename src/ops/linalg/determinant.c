// determinant.c — MatrixDeterminant, LogMatrixDeterminant, BatchMatrixDeterminant.
#include <math.h>

#include "kernel/linalg/lu.h"
#include "ops/linalg/batch.h"
#include "tensor/numeric.h"

typedef struct determinant_t {
  weir_dtype_t dtype;
  int64_t n;
  bool is_log;  // the sign and the logarithm of the modulus are two outputs
} determinant_t;

static void write_log(weir_dtype_t dtype, double value, void* out) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: *(float*)out = (float)value; return;
    case WEIR_DTYPE_DOUBLE: *(double*)out = value; return;
    case WEIR_DTYPE_COMPLEX64: *(weir_complex64_t*)out = (float)value; return;
    default: *(weir_complex128_t*)out = value; return;
  }
}

// The determinant from what |out| has of it, its sign, and its modulus.
static void scale(weir_dtype_t dtype, double modulus, void* out) {
  switch (dtype) {
    case WEIR_DTYPE_FLOAT: *(float*)out = (float)(*(float*)out * modulus); return;
    case WEIR_DTYPE_DOUBLE: *(double*)out *= modulus; return;
    case WEIR_DTYPE_COMPLEX64:
      *(weir_complex64_t*)out = (weir_complex64_t)(*(weir_complex64_t*)out * modulus);
      return;
    default: *(weir_complex128_t*)out *= modulus; return;
  }
}

static bool determinant_of(const batch_item_t* item) {
  const determinant_t* job = item->arg;
  const size_t size = (size_t)(job->n * job->n) * weir_dtype_size(job->dtype);
  void* lu = item->scratch;
  int64_t* order = (int64_t*)(void*)(item->scratch + (size + 15) / 16 * 16);
  double logarithm = 0;
  if (size > 0) memcpy(lu, item->inputs[0], size);
  const int sign = weir_lu(job->dtype, item->pool, job->n, lu, order);
  weir_lu_determinant(job->dtype, job->n, lu, sign, item->outputs[0], &logarithm);
  if (job->is_log) {
    write_log(job->dtype, logarithm, item->outputs[1]);
  } else {
    scale(job->dtype, exp(logarithm), item->outputs[0]);
  }
  return true;
}

static weir_status_t* determinants(weir_kernel_ctx_t* ctx, bool is_log) {
  WEIR_TRY(check_square(ctx, 0));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const int64_t n = a->dims[a->rank - 1];
  const determinant_t job = {weir_tensor_type(a), n, is_log};
  batch_t batch = {.fn = determinant_of,
                   .arg = &job,
                   .count = matrix_count(a),
                   .ns = 0.3 * (double)n * (double)n * (double)n + 100.0,
                   .input_count = 1,
                   .scratch_size = (n * n * (int64_t)weir_dtype_size(job.dtype) + 15) / 16 * 16 +
                                   (n + 1) / 2 * 16};
  WEIR_TRY(weir_batch_output(ctx, &batch, 0, 0, NULL));
  if (is_log) WEIR_TRY(weir_batch_output(ctx, &batch, 1, 0, NULL));
  return weir_batch_run(ctx, &batch);
}

static weir_status_t* determinant_cpu(weir_kernel_ctx_t* ctx) { return determinants(ctx, false); }
static weir_status_t* log_determinant_cpu(weir_kernel_ctx_t* ctx) {
  return determinants(ctx, true);
}

static weir_status_t* determinant_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = NULL;
  WEIR_TRY(square_shape(ctx, weir_shape_input(ctx, 0), &a));
  if (a->rank < 0) return NULL;
  for (int i = 0; i < ctx->node->output_count; ++i) {
    WEIR_TRY(weir_shape_set(ctx, i, weir_shape_sub(ctx, a, 0, a->rank - 2)));
  }
  return NULL;
}

// |factor|, a number a matrix, times the adjoint of a's inverse.
static weir_status_t* set_scaled_inverse(weir_grad_ctx_t* g, weir_edge_t factor) {
  weir_edge_t inverse = weir_grad_node_with(g, "MatrixInverse", WEIR_EDGES(weir_grad_input(g, 0)),
                                            WEIR_ATTRS(weir_attr_bool("adjoint", true)));
  weir_edge_t last = weir_build_int32(g->builder, -1);
  for (int i = 0; i < 2; ++i) factor = weir_grad_node(g, "ExpandDims", WEIR_EDGES(factor, last));
  return weir_grad_set(g, 0, weir_grad_mul(g, factor, inverse));
}

static weir_status_t* determinant_grad(weir_grad_ctx_t* g) {
  return set_scaled_inverse(g, weir_grad_mul(g, weir_grad_dy(g, 0), weir_grad_output(g, 0)));
}
// None of the sign's, as in TensorFlow.
static weir_status_t* log_determinant_grad(weir_grad_ctx_t* g) {
  return set_scaled_inverse(g, weir_grad_dy(g, 1));
}

#define CPU_TYPES "T: float, double, complex64, complex128"

const weir_op_module_t weir_ops_linalg_determinant = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MatrixDeterminant",
         .attrs = "T: {half, float, double, complex64, complex128}",
         .inputs = "input: T",
         .outputs = "output: T",
         .summary = "Determinants of square matrices",
         .infer_shape = determinant_shape,
         .build_grad = determinant_grad,
         .kernels = WEIR_CPU_KERNEL(.types = CPU_TYPES, .compute = determinant_cpu)},
        {.name = "LogMatrixDeterminant",
         .attrs = "T: {half, float, double, complex64, complex128}",
         .inputs = "input: T",
         .outputs = "sign: T; log_abs_determinant: T",
         .summary = "Signs of determinants and logarithms of their moduli",
         .infer_shape = determinant_shape,
         .build_grad = log_determinant_grad,
         .kernels = WEIR_CPU_KERNEL(.types = CPU_TYPES, .compute = log_determinant_cpu)},
        {.name = "BatchMatrixDeterminant",
         .attrs = "T: {float, double, complex64, complex128}",
         .inputs = "input: T",
         .outputs = "output: T",
         .summary = "MatrixDeterminant of old graphs",
         .infer_shape = determinant_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = determinant_cpu)},
        {0}}};
