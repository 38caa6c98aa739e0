// solve.c — MatrixInverse, MatrixSolve, Lu and their legacy names: elimination with pivots.
#include "kernel/linalg/lu.h"
#include "ops/linalg/batch.h"
#include "tensor/numeric.h"

typedef struct solve_state_t {
  bool is_adjoint;
} solve_state_t;

static weir_status_t* solve_init(const weir_kernel_init_t* init, void* state) {
  ((solve_state_t*)state)->is_adjoint = weir_attrs_bool(init->node->attrs, "adjoint");
  return NULL;
}

// Systems of n equations with m right-hand sides.
typedef struct job_t {
  weir_dtype_t dtype;  // of the arithmetic
  bool is_half, is_adjoint, has_long_order;
  int64_t n, m;
  size_t size;         // bytes of one n x n matrix
  size_t order_bytes;  // of its permutation
} job_t;

static job_t make_job(const weir_kernel_ctx_t* ctx, int64_t m) {
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const bool is_half = weir_tensor_type(a) == WEIR_DTYPE_HALF;
  const weir_dtype_t dtype = is_half ? WEIR_DTYPE_FLOAT : weir_tensor_type(a);
  const int64_t n = a->dims[a->rank - 1];
  const size_t bytes = (size_t)(n * n) * weir_dtype_size(dtype);
  return (job_t){.dtype = dtype,
                 .is_half = is_half,
                 .n = n,
                 .m = m,
                 .size = (bytes + 15) / 16 * 16,
                 .order_bytes = (size_t)(n + 1) / 2 * 16};
}

// The item's first |size| bytes of scratch become the factors of its matrix, the next its order.
static bool factor(const batch_item_t* item, const void* a) {
  const job_t* job = item->arg;
  void* lu = item->scratch;
  if (job->is_adjoint) {
    weir_adjoint(job->dtype, job->n, job->n, a, lu);
  } else if (job->n > 0) {
    memcpy(lu, a, (size_t)(job->n * job->n) * weir_dtype_size(job->dtype));
  }
  weir_lu(job->dtype, item->pool, job->n, lu, (int64_t*)(void*)(item->scratch + job->size));
  return weir_lu_is_regular(job->dtype, job->n, lu);
}

static void solve(const batch_item_t* item, const void* b, void* x) {
  const job_t* job = item->arg;
  weir_lu_solve(job->dtype, item->pool, job->n, item->scratch,
                (const int64_t*)(const void*)(item->scratch + job->size), job->m, b, x);
}

// ---- MatrixInverse ----

static void write_identity(weir_dtype_t dtype, int64_t n, char* out) {
  memset(out, 0, (size_t)(n * n) * weir_dtype_size(dtype));
  for (int64_t i = 0; i < n * n; i += n + 1) {
    char* at = out + (size_t)i * weir_dtype_size(dtype);
    const bool is_wide = dtype == WEIR_DTYPE_DOUBLE || dtype == WEIR_DTYPE_COMPLEX128;
    if (is_wide) {
      *(double*)(void*)at = 1;
    } else {
      *(float*)(void*)at = 1;
    }
  }
}

static bool inverse_of(const batch_item_t* item) {
  const job_t* job = item->arg;
  char* identity = item->scratch + job->size + job->order_bytes;
  const void* a = item->inputs[0];
  void* x = item->outputs[0];
  if (job->is_half) {
    float* wide = (float*)(void*)identity;
    for (int64_t i = 0; i < job->n * job->n; ++i) {
      wide[i] = weir_half_to_float(((const weir_half_t*)a)[i]);
    }
    a = wide;
    x = identity + job->size;
  }
  if (!factor(item, a)) return false;
  write_identity(job->dtype, job->n, identity);
  solve(item, identity, x);
  for (int64_t i = 0; job->is_half && i < job->n * job->n; ++i) {
    ((weir_half_t*)item->outputs[0])[i] = weir_half_from_float(((const float*)x)[i]);
  }
  return true;
}

static weir_status_t* inverse_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_square(ctx, 0));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const int64_t n = a->dims[a->rank - 1];
  job_t job = make_job(ctx, n);
  job.is_adjoint = ((const solve_state_t*)ctx->state)->is_adjoint;
  batch_t batch = {.fn = inverse_of,
                   .failure = "Input is not invertible.",
                   .arg = &job,
                   .count = a->count == 0 ? 0 : matrix_count(a),
                   .ns = (double)n * (double)n * (double)n + 200.0,
                   .input_count = 1,
                   .scratch_size = (int64_t)(3 * job.size + job.order_bytes)};
  WEIR_TRY(weir_batch_output(ctx, &batch, 0, 2, (const int64_t[]){n, n}));
  return weir_batch_run(ctx, &batch);
}

// With the inverse y: -y^H dy y^H; of the adjoint's inverse the adjoint of that.
static weir_status_t* inverse_grad(weir_grad_ctx_t* g) {
  const bool is_adjoint = weir_attrs_bool(weir_grad_attrs(g), "adjoint");
  weir_edge_t y = weir_grad_output(g, 0);
  weir_edge_t right = matrix_product(g, weir_grad_dy(g, 0), is_adjoint, y, !is_adjoint);
  return weir_grad_set(g, 0, weir_grad_neg(g, matrix_product(g, y, !is_adjoint, right, false)));
}

// ---- MatrixSolve ----

static bool solution_of(const batch_item_t* item) {
  if (!factor(item, item->inputs[0])) return false;
  solve(item, item->inputs[1], item->outputs[0]);
  return true;
}

static weir_status_t* solve_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(weir_batch_check(ctx, 2));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const weir_tensor_t* b = weir_kernel_input(ctx, 1);
  const int64_t n = a->dims[a->rank - 1], m = b->dims[b->rank - 1];
  if (a->dims[a->rank - 2] != n) {
    return WEIR_STATUS(INVALID_ARGUMENT, "First input (lhs) must be a square matrix.");
  }
  if (b->dims[b->rank - 2] != n) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input matrix and rhs are incompatible.");
  }
  job_t job = make_job(ctx, m);
  job.is_adjoint = ((const solve_state_t*)ctx->state)->is_adjoint;
  batch_t batch = {.fn = solution_of,
                   .failure = "Input matrix is not invertible.",
                   .arg = &job,
                   .count = a->count == 0 || b->count == 0 ? 0 : matrix_count(a),
                   .ns = 0.5 * (double)n * (double)n * (double)(n + 2 * m) + 200.0,
                   .input_count = 2,
                   .scratch_size = (int64_t)(job.size + job.order_bytes)};
  WEIR_TRY(weir_batch_output(ctx, &batch, 0, 2, (const int64_t[]){n, m}));
  return weir_batch_run(ctx, &batch);
}

static weir_status_t* solve_shape(weir_shape_ctx_t* ctx) { return weir_shape_solution(ctx, true); }

// db = op(a)^-H dx; da = -db x^H, or its adjoint.
static weir_status_t* solve_grad(weir_grad_ctx_t* g) {
  const bool is_adjoint = weir_attrs_bool(weir_grad_attrs(g), "adjoint");
  weir_edge_t x = weir_grad_output(g, 0);
  weir_edge_t db =
      weir_grad_node_with(g, "MatrixSolve", WEIR_EDGES(weir_grad_input(g, 0), weir_grad_dy(g, 0)),
                          WEIR_ATTRS(weir_attr_bool("adjoint", !is_adjoint)));
  weir_edge_t da =
      is_adjoint ? matrix_product(g, x, false, db, true) : matrix_product(g, db, false, x, true);
  WEIR_TRY(weir_grad_set(g, 0, weir_grad_neg(g, da)));
  return weir_grad_set(g, 1, db);
}

// ---- Lu ----

static bool factors_of(const batch_item_t* item) {
  const job_t* job = item->arg;
  int64_t* order = (int64_t*)(void*)item->scratch;
  memcpy(item->outputs[0], item->inputs[0],
         (size_t)(job->n * job->n) * weir_dtype_size(job->dtype));
  weir_lu(job->dtype, item->pool, job->n, item->outputs[0], order);
  for (int64_t i = 0; i < job->n; ++i) {
    if (job->has_long_order) {
      ((int64_t*)item->outputs[1])[i] = order[i];
    } else {
      ((int32_t*)item->outputs[1])[i] = (int32_t)order[i];
    }
  }
  return weir_lu_is_regular(job->dtype, job->n, item->outputs[0]);
}

static weir_status_t* lu_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(check_square(ctx, 0));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const int64_t n = a->dims[a->rank - 1];
  job_t job = make_job(ctx, 0);
  batch_t batch = {.fn = factors_of,
                   .failure = "Input is not invertible.",
                   .arg = &job,
                   .count = a->count == 0 ? 0 : matrix_count(a),
                   .ns = 0.3 * (double)n * (double)n * (double)n + 100.0,
                   .input_count = 1,
                   .scratch_size = (int64_t)job.order_bytes};
  WEIR_TRY(weir_batch_output(ctx, &batch, 0, 2, (const int64_t[]){n, n}));
  WEIR_TRY(weir_batch_output(ctx, &batch, 1, 1, &n));
  job.has_long_order = weir_tensor_type(batch.outputs[1]) == WEIR_DTYPE_INT64;
  return weir_batch_run(ctx, &batch);
}

static weir_status_t* lu_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = NULL;
  WEIR_TRY(square_shape(ctx, weir_shape_input(ctx, 0), &a));
  if (a->rank < 0) return NULL;
  WEIR_TRY(weir_shape_set(ctx, 0, a));
  return weir_shape_set(ctx, 1, weir_shape_sub(ctx, a, 0, a->rank - 1));
}

#define SOLVE_KERNEL(compute_fn, types_)                                                       \
  WEIR_CPU_KERNEL(.types = types_, .compute = compute_fn, .state_size = sizeof(solve_state_t), \
                  .init = solve_init)
#define FACTOR_TYPES "T: double, float, complex64, complex128"

const weir_op_module_t weir_ops_linalg_solve = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MatrixInverse",
         .attrs = "adjoint: bool = false; T: {double, float, half, complex64, complex128}",
         .inputs = "input: T",
         .outputs = "output: T",
         .summary = "Inverses of square matrices, or of their adjoints",
         .infer_shape = weir_shape_fn_square,
         .build_grad = inverse_grad,
         .kernels = SOLVE_KERNEL(inverse_cpu, NULL)},
        {.name = "BatchMatrixInverse",
         .attrs = "adjoint: bool = false; T: {double, float}",
         .inputs = "input: T",
         .outputs = "output: T",
         .summary = "MatrixInverse of old graphs",
         .infer_shape = weir_shape_fn_square,
         .kernels = SOLVE_KERNEL(inverse_cpu, NULL)},
        {.name = "MatrixSolve",
         .attrs = "adjoint: bool = false; T: {double, float, half, complex64, complex128}",
         .inputs = "matrix: T; rhs: T",
         .outputs = "output: T",
         .summary = "Solves systems of linear equations",
         .infer_shape = solve_shape,
         .build_grad = solve_grad,
         .kernels = SOLVE_KERNEL(solve_cpu, FACTOR_TYPES)},
        {.name = "BatchMatrixSolve",
         .attrs = "adjoint: bool = false; T: {double, float}",
         .inputs = "matrix: T; rhs: T",
         .outputs = "output: T",
         .summary = "MatrixSolve of old graphs",
         .infer_shape = solve_shape,
         .kernels = SOLVE_KERNEL(solve_cpu, NULL)},
        {.name = "Lu",
         .attrs = "T: {double, float, half, complex64, complex128}; "
                  "output_idx_type: {int32, int64} = DT_INT32",
         .inputs = "input: T",
         .outputs = "lu: T; p: output_idx_type",
         .summary = "Triangular factors of square matrices whose rows are permuted",
         .infer_shape = lu_shape,
         .kernels = WEIR_CPU_KERNEL(.types = FACTOR_TYPES, .compute = lu_cpu)},
        {0}}};
