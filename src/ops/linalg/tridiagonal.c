// tridiagonal.c — TridiagonalSolve, TridiagonalMatMul: matrices given by three diagonals.
#include "kernel/linalg/least_squares.h"
#include "ops/linalg/batch.h"

// ---- TridiagonalSolve ----

typedef struct tridiagonal_state_t {
  bool pivots;
  bool perturbs;
} tridiagonal_state_t;

static weir_status_t* solve_init(const weir_kernel_init_t* init, void* state) {
  tridiagonal_state_t* s = state;
  s->pivots = weir_attrs_bool(init->node->attrs, "partial_pivoting");
  s->perturbs = weir_attrs_bool(init->node->attrs, "perturb_singular");
  if (s->pivots || !s->perturbs) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Setting perturb_singular requires also setting partial_pivoting.");
}

typedef struct tridiagonal_job_t {
  weir_dtype_t dtype;
  weir_tridiagonal_t shape;
} tridiagonal_job_t;

static bool solution_of(const batch_item_t* item) {
  const tridiagonal_job_t* job = item->arg;
  weir_tridiagonal_t one = job->shape;
  one.diagonals = item->inputs[0];
  one.b = item->inputs[1];
  one.x = item->outputs[0];
  one.scratch = item->scratch;
  weir_tridiagonal_solve(job->dtype, &one);
  return true;
}

static weir_status_t* solve_cpu(weir_kernel_ctx_t* ctx) {
  const tridiagonal_state_t* s = ctx->state;
  WEIR_TRY(weir_batch_check(ctx, 2));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const weir_tensor_t* b = weir_kernel_input(ctx, 1);
  const int64_t n = a->dims[a->rank - 1], k = b->dims[b->rank - 1], rows = b->dims[b->rank - 2];
  if (a->dims[a->rank - 2] != 3) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected diagonals to be provided as a matrix with 3 rows, got %lld rows.",
                       (long long)a->dims[a->rank - 2]);
  }
  if (rows != n) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected the same number of left-hand sides and right-hand sides, got %lld "
                       "and %lld.",
                       (long long)n, (long long)rows);
  }
  const tridiagonal_job_t job = {
      .dtype = weir_tensor_type(a),
      .shape = {.n = n, .k = k, .pivots = s->pivots, .perturbs = s->perturbs}};
  batch_t batch = {.fn = solution_of,
                   .arg = &job,
                   .count = b->count == 0 ? 0 : matrix_count(a),
                   .ns = 10.0 * (double)n * (double)(k + 1) + 50.0,
                   .input_count = 2,
                   .scratch_size = 4 * n * (int64_t)weir_dtype_size(job.dtype)};
  WEIR_TRY(weir_batch_output(ctx, &batch, 0, 2, (const int64_t[]){n, k}));
  return weir_batch_run(ctx, &batch);
}

static weir_status_t* check_outer(weir_shape_ctx_t* ctx, const weir_shape_t* a,
                                  const weir_shape_t* b) {
  if (a->rank < 0 || b->rank < 0) return NULL;
  const weir_shape_t* joined = NULL;
  return weir_shape_join(ctx, weir_shape_sub(ctx, a, 0, a->rank - 2),
                         weir_shape_sub(ctx, b, 0, b->rank - 2), &joined);
}

static weir_status_t* solve_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = weir_shape_input(ctx, 0);
  const weir_shape_t* b = weir_shape_input(ctx, 1);
  int64_t joined = -1;
  WEIR_TRY(weir_shape_at_least(ctx, a, 2));
  WEIR_TRY(weir_shape_at_least(ctx, b, 2));
  WEIR_TRY(check_outer(ctx, a, b));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(a, -2), 3, &joined));
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(a, -1), weir_shape_dim(b, -2), &joined));
  return weir_shape_set(ctx, 0, b);
}

// ---- TridiagonalMatMul ----

typedef struct product_job_t {
  weir_dtype_t dtype;
  int64_t n;
  int64_t k;
} product_job_t;

static bool product_of(const batch_item_t* item) {
  const product_job_t* job = item->arg;
  const weir_tridiagonal_product_t one = {job->n,          job->k,          item->inputs[0],
                                          item->inputs[1], item->inputs[2], item->inputs[3],
                                          item->outputs[0]};
  weir_tridiagonal_product(job->dtype, &one);
  return true;
}

static weir_status_t* product_cpu(weir_kernel_ctx_t* ctx) {
  static const char* const names[] = {"superdiagonal", "main diagonal", "subdiagonal"};
  WEIR_TRY(weir_batch_check(ctx, 4));
  const weir_tensor_t* x = weir_kernel_input(ctx, 3);
  const int64_t n = x->dims[x->rank - 2], k = x->dims[x->rank - 1];
  for (int i = 0; i < 3; ++i) {
    const weir_tensor_t* d = weir_kernel_input(ctx, i);
    if (d->dims[d->rank - 2] == 1 && d->dims[d->rank - 1] == n) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid %s shape.", names[i]);
  }
  const product_job_t job = {weir_tensor_type(x), n, k};
  batch_t batch = {.fn = product_of,
                   .arg = &job,
                   .count = x->count == 0 ? 0 : matrix_count(x),
                   .ns = 3.0 * (double)n * (double)k + 30.0,
                   .input_count = 4};
  WEIR_TRY(weir_batch_output(ctx, &batch, 0, 2, (const int64_t[]){n, k}));
  return weir_batch_run(ctx, &batch);
}

static weir_status_t* product_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* x = weir_shape_input(ctx, 3);
  const weir_shape_t* diagonal = &weir_shape_unknown;
  int64_t joined = -1;
  for (int i = 0; i < 4; ++i) WEIR_TRY(weir_shape_at_least(ctx, weir_shape_input(ctx, i), 2));
  for (int i = 0; i < 3; ++i) {
    if (i == 2) WEIR_TRY(check_outer(ctx, weir_shape_input(ctx, i), diagonal));
    WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, i), diagonal, &diagonal));
  }
  WEIR_TRY(check_outer(ctx, diagonal, x));
  if (diagonal->rank >= 0) {
    WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(diagonal, -2), 1, &joined));
    if (x->rank >= 0) {
      WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(diagonal, -1), weir_shape_dim(x, -2), &joined));
    }
  }
  return weir_shape_set(ctx, 0, x);
}

// ---- gradients ----

// x[..., begin:end] of the dimension before the last (|is_row|) or of the last; |end| 0: to the
// end.
static weir_edge_t slice(weir_grad_ctx_t* g, weir_edge_t x, bool is_row, int64_t begin,
                         int64_t end) {
  const int count = is_row ? 3 : 2;
  weir_edge_t from = weir_build_int64s(g->builder, (const int64_t[]){0, begin, 0}, count);
  weir_edge_t to = weir_build_int64s(g->builder, (const int64_t[]){0, end, 0}, count);
  weir_edge_t step = weir_build_int64s(g->builder, (const int64_t[]){1, 1, 1}, count);
  return weir_grad_node_with(
      g, "StridedSlice", WEIR_EDGES(x, from, to, step),
      WEIR_ATTRS(weir_attr_int("ellipsis_mask", 1), weir_attr_int("begin_mask", is_row ? 4 : 0),
                 weir_attr_int("end_mask", (is_row ? 4 : 0) + (end == 0 ? 2 : 0))));
}

// What is after (|is_left|) or before each element, and zeros where there is nothing.
static weir_edge_t shifted(weir_grad_ctx_t* g, weir_edge_t x, bool is_row, bool is_left) {
  weir_edge_t zeros = weir_grad_node(g, "ZerosLike", WEIR_EDGES(slice(g, x, is_row, 0, 1)));
  weir_edge_t rest = is_left ? slice(g, x, is_row, 1, 0) : slice(g, x, is_row, 0, -1);
  weir_edge_t axis = weir_build_int32(g->builder, is_row ? -2 : -1);
  return weir_grad_node_with(g, "ConcatV2",
                             WEIR_EDGES(is_left ? rest : zeros, is_left ? zeros : rest, axis),
                             WEIR_ATTRS(weir_attr_int("N", 2)));
}

// Row |i| of the matrices, as vectors.
static weir_edge_t row(weir_grad_ctx_t* g, weir_edge_t x, int64_t i) {
  weir_edge_t from = weir_build_int64s(g->builder, (const int64_t[]){0, i, 0}, 3);
  weir_edge_t to = weir_build_int64s(g->builder, (const int64_t[]){0, i + 1, 0}, 3);
  weir_edge_t step = weir_build_int64s(g->builder, (const int64_t[]){1, 1, 1}, 3);
  return weir_grad_node_with(
      g, "StridedSlice", WEIR_EDGES(x, from, to, step),
      WEIR_ATTRS(weir_attr_int("ellipsis_mask", 1), weir_attr_int("begin_mask", 4),
                 weir_attr_int("end_mask", 4), weir_attr_int("shrink_axis_mask", 2)));
}

static weir_edge_t stack(weir_grad_ctx_t* g, weir_edge_t a, weir_edge_t b, weir_edge_t c) {
  return weir_grad_node_with(g, "Pack", WEIR_EDGES(a, b, c),
                             WEIR_ATTRS(weir_attr_int("N", 3), weir_attr_int("axis", -2)));
}

static weir_edge_t row_sums(weir_grad_ctx_t* g, weir_edge_t a, weir_edge_t b) {
  return weir_grad_node(g, "Sum",
                        WEIR_EDGES(weir_grad_mul(g, a, b), weir_build_int32(g->builder, -1)));
}

// With the transpose (not conjugated, as in TensorFlow): db = a^-T dx, da = the diagonals of -db
// x^T.
static weir_status_t* solve_grad(weir_grad_ctx_t* g) {
  weir_edge_t a = weir_grad_input(g, 0), x = weir_grad_output(g, 0);
  weir_edge_t turned = stack(g, shifted(g, row(g, a, 2), false, true), row(g, a, 1),
                             shifted(g, row(g, a, 0), false, false));
  weir_edge_t db =
      weir_grad_node_like(g, "TridiagonalSolve", WEIR_EDGES(turned, weir_grad_dy(g, 0)),
                          WEIR_NAMES("partial_pivoting", "perturb_singular"));
  weir_edge_t da = stack(g, row_sums(g, db, shifted(g, x, true, true)), row_sums(g, db, x),
                         row_sums(g, db, shifted(g, x, true, false)));
  WEIR_TRY(weir_grad_set(g, 0, weir_grad_neg(g, da)));
  return weir_grad_set(g, 1, db);
}

static weir_status_t* product_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_conj(g, weir_grad_input(g, 3)), dy = weir_grad_dy(g, 0);
  weir_edge_t beside[] = {shifted(g, x, true, true), x, shifted(g, x, true, false)};
  weir_edge_t last = weir_build_int32(g->builder, -2), scaled[3];
  for (int i = 0; i < 3; ++i) {
    weir_edge_t sums = row_sums(g, beside[i], dy);
    WEIR_TRY(weir_grad_set(g, i, weir_grad_node(g, "ExpandDims", WEIR_EDGES(sums, last))));
    scaled[i] = weir_grad_mul(g, adjoint(g, weir_grad_input(g, i)), dy);
  }
  weir_edge_t dx = plus(g, shifted(g, scaled[0], true, false), scaled[1]);
  return weir_grad_set(g, 3, plus(g, dx, shifted(g, scaled[2], true, true)));
}

const weir_op_module_t weir_ops_linalg_tridiagonal = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "TridiagonalSolve",
         .attrs = "partial_pivoting: bool = true; perturb_singular: bool = false; "
                  "T: {double, float, complex64, complex128}",
         .inputs = "diagonals: T; rhs: T",
         .outputs = "output: T",
         .summary = "Solves systems with tridiagonal matrices",
         .infer_shape = solve_shape,
         .build_grad = solve_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = solve_cpu, .state_size = sizeof(tridiagonal_state_t),
                                    .init = solve_init)},
        {.name = "TridiagonalMatMul",
         .attrs = "T: {double, float, complex64, complex128}",
         .inputs = "superdiag: T; maindiag: T; subdiag: T; rhs: T",
         .outputs = "output: T",
         .summary = "Products of tridiagonal matrices with others",
         .infer_shape = product_shape,
         .build_grad = product_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = product_cpu)},
        {0}}};
