// least_squares.c — MatrixSolveLs, BatchMatrixSolveLs: systems with more or fewer equations than
// unknowns.
#include "kernel/linalg/least_squares.h"

#include "ops/linalg/batch.h"

typedef struct ls_state_t {
  bool is_fast;
} ls_state_t;

static weir_status_t* ls_init(const weir_kernel_init_t* init, void* state) {
  ((ls_state_t*)state)->is_fast = weir_attrs_bool(init->node->attrs, "fast");
  return NULL;
}

typedef struct ls_job_t {
  weir_dtype_t dtype;
  weir_least_squares_t shape;
} ls_job_t;

static bool solution_of(const batch_item_t* item) {
  const ls_job_t* job = item->arg;
  weir_least_squares_t one = job->shape;
  one.a = item->inputs[0];
  one.b = item->inputs[1];
  one.x = item->outputs[0];
  one.scratch = item->scratch;
  one.pool = item->pool;
  return weir_least_squares(job->dtype, &one);
}

static weir_status_t* check_regularizer(const weir_kernel_ctx_t* ctx, double* out_value) {
  const weir_tensor_t* l2 = weir_kernel_input(ctx, 2);
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (l2->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "l2_regularizer must be scalar, got shape %s",
                       weir_tensor_shape_text(l2, text));
  }
  *out_value = *WEIR_TENSOR_DATA(l2, double);
  if (!(*out_value >= 0)) return WEIR_STATUS(INVALID_ARGUMENT, "l2_regularizer must be >= 0.");
  return NULL;
}

static weir_status_t* ls_cpu(weir_kernel_ctx_t* ctx) {
  WEIR_TRY(weir_batch_check(ctx, 2));
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const weir_tensor_t* b = weir_kernel_input(ctx, 1);
  const int64_t m = a->dims[a->rank - 2], n = a->dims[a->rank - 1], k = b->dims[b->rank - 1];
  ls_job_t job = {
      .dtype = weir_tensor_type(a),
      .shape = {.m = m, .n = n, .k = k, .is_fast = ((const ls_state_t*)ctx->state)->is_fast}};
  WEIR_TRY(check_regularizer(ctx, &job.shape.regularizer));
  if (b->dims[b->rank - 2] != m) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input matrix and rhs are incompatible.");
  }
  const double p = (double)WEIR_MIN(m, n);
  batch_t batch = {
      .fn = solution_of,
      .failure =
          "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or "
          "provide a larger l2_regularizer > 0.",
      .arg = &job,
      .count = a->count == 0 || b->count == 0 ? 0 : matrix_count(a),
      .ns = (job.shape.is_fast ? 1.0 : 20.0) * p * p * (double)(m + n + k) + 300.0,
      .input_count = 2,
      .scratch_size =
          weir_least_squares_scratch_count(&job.shape) * (int64_t)weir_dtype_size(job.dtype)};
  WEIR_TRY(weir_batch_output(ctx, &batch, 0, 2, (const int64_t[]){n, k}));
  weir_tensor_t* x = batch.outputs[0];
  if (batch.count == 0 && x->count > 0) {
    memset(x->data, 0, (size_t)x->count * weir_dtype_size(job.dtype));
  }
  return weir_batch_run(ctx, &batch);
}

static weir_status_t* ls_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 2), 0, NULL));
  return weir_shape_solution(ctx, false);
}

// ---- gradient ----

typedef struct system_t {
  weir_edge_t a, b, x, dx;
  weir_edge_t l2;  // of their type
} system_t;

// (a^H a + l2)^-1 c, or (a a^H + l2)^-1 c, by the Cholesky factor |l|.
static weir_edge_t gram_factor(weir_grad_ctx_t* g, const system_t* s, bool is_tall) {
  weir_edge_t gram = matrix_product(g, s->a, is_tall, s->a, !is_tall);
  weir_edge_t diagonal = weir_grad_node(g, "MatrixDiagPart", WEIR_EDGES(gram));
  gram = weir_grad_node(g, "MatrixSetDiag", WEIR_EDGES(gram, plus(g, diagonal, s->l2)));
  return weir_grad_node(g, "Cholesky", WEIR_EDGES(gram));
}
static weir_edge_t factor_solve(weir_grad_ctx_t* g, weir_edge_t l, weir_edge_t c) {
  return triangular_solve(g, l, triangular_solve(g, l, c, true, false), true, true);
}

static void tall_grad(weir_grad_ctx_t* g, const system_t* s, weir_edge_t* out_da,
                      weir_edge_t* out_db) {
  weir_edge_t z = factor_solve(g, gram_factor(g, s, true), s->dx);
  weir_edge_t xz = matrix_product(g, s->x, false, z, true);
  // Transposed, not conjugated, as in TensorFlow.
  weir_edge_t sum = plus(g, xz, weir_grad_node(g, "Transpose", WEIR_EDGES(xz, swap_of(g, xz))));
  *out_da =
      minus(g, matrix_product(g, s->b, false, z, true), matrix_product(g, s->a, false, sum, false));
  *out_db = matrix_product(g, s->a, false, z, false);
}

static void wide_grad(weir_grad_ctx_t* g, const system_t* s, weir_edge_t* out_da,
                      weir_edge_t* out_db) {
  weir_edge_t l = gram_factor(g, s, false);
  weir_edge_t db = factor_solve(g, l, matrix_product(g, s->a, false, s->dx, false));
  weir_edge_t y = factor_solve(g, l, s->b);
  weir_edge_t within = matrix_product(g, db, false, matrix_product(g, y, true, s->a, false), false);
  weir_edge_t rest = minus(g, s->dx, matrix_product(g, s->a, true, db, false));
  *out_da = minus(g, matrix_product(g, y, false, rest, true), within);
  *out_db = db;
}

// Where only a step knows which of the two it is: each input goes to one of them, and the result of
// that one on.
static void either_grad(weir_grad_ctx_t* g, const system_t* s, weir_edge_t* out_da,
                        weir_edge_t* out_db) {
  weir_edge_t shape = weir_grad_shape_of(g, s->a), size[2];
  weir_edge_t one = weir_build_int32s(g->builder, (const int32_t[]){1}, 1);
  for (int i = 0; i < 2; ++i) {
    size[i] = weir_grad_node_with(
        g, "StridedSlice",
        WEIR_EDGES(shape, weir_build_int32s(g->builder, (const int32_t[]){i - 2}, 1),
                   weir_build_int32s(g->builder, (const int32_t[]){i - 1}, 1), one),
        WEIR_ATTRS(weir_attr_int("shrink_axis_mask", 1), weir_attr_int("end_mask", i)));
  }
  weir_edge_t is_tall = weir_grad_node(g, "GreaterEqual", WEIR_EDGES(size[0], size[1]));
  const weir_edge_t all[] = {s->a, s->b, s->x, s->dx, s->l2};
  weir_edge_t parts[2][5], da[2], db[2];
  for (int i = 0; i < 5; ++i) {
    parts[0][i] = weir_grad_node(g, "Switch", WEIR_EDGES(all[i], is_tall));
    parts[1][i] = weir_build_output(parts[0][i], 1);
  }
  for (int i = 0; i < 2; ++i) {
    const weir_edge_t* p = parts[i];
    const system_t part = {p[0], p[1], p[2], p[3], p[4]};
    (i == 1 ? tall_grad : wide_grad)(g, &part, &da[i], &db[i]);
  }
  *out_da = weir_grad_node(g, "Merge", WEIR_EDGES(da[0], da[1]));
  *out_db = weir_grad_node(g, "Merge", WEIR_EDGES(db[0], db[1]));
}

static weir_status_t* ls_grad(weir_grad_ctx_t* g) {
  if (!weir_attrs_bool(weir_grad_attrs(g), "fast")) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Gradient not defined for fast=False");
  }
  system_t s = {.a = weir_grad_input(g, 0),
                .b = weir_grad_input(g, 1),
                .x = weir_grad_output(g, 0),
                .dx = weir_grad_dy(g, 0)};
  s.l2 = weir_grad_node_with(g, "Cast", WEIR_EDGES(weir_grad_input(g, 2)),
                             WEIR_ATTRS(weir_attr_type("DstT", weir_grad_dtype(g, s.a))));
  const weir_shape_t* shape = weir_grad_shape(g, s.a);
  const int64_t m = shape->rank < 0 ? -1 : weir_shape_dim(shape, -2);
  const int64_t n = shape->rank < 0 ? -1 : weir_shape_dim(shape, -1);
  weir_edge_t da, db;
  (m < 0 || n < 0 ? either_grad : m >= n ? tall_grad : wide_grad)(g, &s, &da, &db);
  WEIR_TRY(weir_grad_set(g, 0, da));
  return weir_grad_set(g, 1, db);
}

#define LS_OP(op_name, types_, cpu_types, text, grad)                                            \
  {                                                                                              \
    .name = op_name, .attrs = "T: " types_ "; fast: bool = true",                                \
    .inputs = "matrix: T; rhs: T; l2_regularizer: double", .outputs = "output: T",               \
    .summary = text, .infer_shape = ls_shape, .build_grad = grad,                                \
    .kernels =                                                                                   \
        WEIR_CPU_KERNEL(.types = cpu_types, .compute = ls_cpu, .state_size = sizeof(ls_state_t), \
                        .init = ls_init, .host_inputs = "l2_regularizer")                        \
  }

const weir_op_module_t weir_ops_linalg_least_squares = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        LS_OP("MatrixSolveLs", "{double, float, half, complex64, complex128}",
              "T: float, double, complex64, complex128", "Solves systems by least squares",
              ls_grad),
        LS_OP("BatchMatrixSolveLs", "{double, float}", NULL, "MatrixSolveLs of old graphs", NULL),
        {0}}};
