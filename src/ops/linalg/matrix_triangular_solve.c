// matrix_triangular_solve.c — MatrixTriangularSolve: systems with triangular matrices, in batches
// that broadcast.
#include "kernel/elementwise/elementwise.h"
#include "kernel/linalg/linalg.h"
#include "ops/linalg/common.h"

typedef struct solve_state_t {
  bool is_lower;
  bool is_adjoint;
} solve_state_t;

static weir_status_t* solve_init(const weir_kernel_init_t* init, void* state) {
  solve_state_t* s = state;
  s->is_lower = weir_attrs_bool(init->node->attrs, "lower");
  s->is_adjoint = weir_attrs_bool(init->node->attrs, "adjoint");
  return NULL;
}

typedef struct solve_job_t {
  const weir_broadcast_t* plan;
  const weir_tensor_t* a;
  const weir_tensor_t* b;
  weir_tensor_t* x;
  weir_triangle_t triangle;
  int64_t m;  // right-hand sides
} solve_job_t;

static void solve_range(void* arg, int64_t begin, int64_t end) {
  solve_job_t* job = arg;
  const size_t size = weir_dtype_size(weir_tensor_type(job->a));
  const int64_t n = job->triangle.n;
  for (int64_t i = begin; i < end; ++i) {
    int64_t a;
    int64_t b;
    weir_broadcast_at(job->plan, i, &a, &b);
    weir_triangle_t triangle = job->triangle;
    triangle.data = (const char*)job->a->data + (size_t)(a * n * n) * size;
    weir_triangular_solve(weir_tensor_type(job->a), &triangle, job->m,
                          (const char*)job->b->data + (size_t)(b * n * job->m) * size,
                          (char*)job->x->data + (size_t)(i * n * job->m) * size);
  }
}

static weir_status_t* mismatch(const char* what, const weir_tensor_t* a, const weir_tensor_t* b) {
  char one[WEIR_SHAPE_TEXT_SIZE], two[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "%s: %s vs. %s", what, weir_tensor_shape_text(a, one),
                     weir_tensor_shape_text(b, two));
}

static weir_status_t* check_shapes(const weir_tensor_t* a, const weir_tensor_t* b) {
  WEIR_TRY(check_operands(a, b));
  const int64_t rows = a->dims[a->rank - 2], columns = a->dims[a->rank - 1];
  if (rows == columns) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "In[0] matrices in the last dimensions must be square (%lld =/= %lld)",
                     (long long)columns, (long long)rows);
}

static weir_status_t* solve_cpu(weir_kernel_ctx_t* ctx) {
  const solve_state_t* s = ctx->state;
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const weir_tensor_t* b = weir_kernel_input(ctx, 1);
  WEIR_TRY(check_shapes(a, b));
  const int64_t n = a->dims[a->rank - 1], m = b->dims[b->rank - 1];
  weir_broadcast_t plan;
  if (!weir_broadcast_plan((weir_shape_view_t){a->rank - 2, a->dims},
                           (weir_shape_view_t){b->rank - 2, b->dims}, &plan)) {
    return mismatch("In[0] and In[1] must have compatible batch dimensions", a, b);
  }
  if (b->dims[b->rank - 2] != n) return mismatch("In[0] mismatch In[1] shape", a, b);
  if (plan.rank < 0) return mismatch("Batch dimensions alternate too often", a, b);
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, plan.out_dims, sizeof(int64_t) * (size_t)plan.out_rank);
  dims[plan.out_rank] = n;
  dims[plan.out_rank + 1] = m;
  solve_job_t job = {.plan = &plan,
                     .a = a,
                     .b = b,
                     .triangle = {.n = n, .is_lower = s->is_lower, .is_adjoint = s->is_adjoint},
                     .m = m};
  WEIR_TRY(weir_kernel_output(ctx, 0, plan.out_rank + 2, dims, &job.x));
  if (job.x->count == 0) return NULL;
  weir_pool_for(weir_kernel_pool(ctx), plan.count, 0.5 * (double)n * (double)n * (double)m + 50.0,
                solve_range, &job);
  return NULL;
}

static weir_status_t* solve_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = NULL;
  const weir_shape_t* b = weir_shape_input(ctx, 1);
  WEIR_TRY(square_shape(ctx, weir_shape_input(ctx, 0), &a));
  WEIR_TRY(weir_shape_at_least(ctx, b, 2));
  if (a->rank < 0 || b->rank < 0) return NULL;
  const weir_shape_t* a_batch = weir_shape_sub(ctx, a, 0, a->rank - 2);
  const weir_shape_t* b_batch = weir_shape_sub(ctx, b, 0, b->rank - 2);
  if (!a_batch || !b_batch) return weir_out_of_memory();
  const weir_shape_t* batch = NULL;
  WEIR_TRY(weir_shape_broadcast(ctx, a_batch, b_batch, &batch));
  if (batch->rank < 0) return NULL;
  int64_t dims[WEIR_MAX_RANK + 2];
  memcpy(dims, batch->dims, sizeof(int64_t) * (size_t)batch->rank);
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(a, -1), weir_shape_dim(b, -2), &dims[batch->rank]));
  dims[batch->rank + 1] = weir_shape_dim(b, -1);
  return weir_shape_set_dims(ctx, 0, batch->rank + 2, dims);
}

// ---- gradient ----

// db = op(a)^-H * dx; da = -db * x^H, or its adjoint, within the triangle.
static weir_status_t* solve_grad(weir_grad_ctx_t* g) {
  const bool is_lower = weir_attrs_bool(weir_grad_attrs(g), "lower");
  const bool is_adjoint = weir_attrs_bool(weir_grad_attrs(g), "adjoint");
  weir_edge_t a = weir_grad_input(g, 0), x = weir_grad_output(g, 0);
  weir_edge_t db = triangular_solve(g, a, weir_grad_dy(g, 0), is_lower, !is_adjoint);
  weir_edge_t da =
      is_adjoint ? matrix_product(g, x, false, db, true) : matrix_product(g, db, false, x, true);
  da = weir_grad_neg(g, da);
  da = is_lower ? band_part(g, da, -1, 0) : band_part(g, da, 0, -1);
  return set_batches(g, da, db);
}

const weir_op_module_t weir_ops_linalg_matrix_triangular_solve = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MatrixTriangularSolve",
         .attrs = "lower: bool = true; adjoint: bool = false; "
                  "T: {bfloat16, double, float, half, complex64, complex128}",
         .inputs = "matrix: T; rhs: T",
         .outputs = "output: T",
         .summary = "Solves systems with triangular matrices",
         .infer_shape = solve_shape,
         .build_grad = solve_grad,
         .kernels = WEIR_CPU_KERNEL(.types = "T: double, float, complex128, complex64",
                                    .compute = solve_cpu, .state_size = sizeof(solve_state_t),
                                    .init = solve_init)},
        {.name = "BatchMatrixTriangularSolve",
         .attrs = "lower: bool = true; adjoint: bool = false; T: {double, float}",
         .inputs = "matrix: T; rhs: T",
         .outputs = "output: T",
         .summary = "MatrixTriangularSolve of old graphs",
         .infer_shape = solve_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = solve_cpu, .state_size = sizeof(solve_state_t),
                                    .init = solve_init)},
        {0}}};
