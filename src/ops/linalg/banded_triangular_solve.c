// banded_triangular_solve.c — BandedTriangularSolve: systems with triangular matrices of few
// diagonals, in batches that broadcast.
#include <stdatomic.h>

#include "kernel/elementwise/elementwise.h"
#include "kernel/linalg/least_squares.h"
#include "ops/linalg/common.h"

typedef struct banded_state_t {
  bool is_lower;
  bool is_adjoint;
} banded_state_t;

static weir_status_t* banded_init(const weir_kernel_init_t* init, void* state) {
  banded_state_t* s = state;
  s->is_lower = weir_attrs_bool(init->node->attrs, "lower");
  s->is_adjoint = weir_attrs_bool(init->node->attrs, "adjoint");
  return NULL;
}

typedef struct banded_job_t {
  weir_dtype_t dtype;
  const weir_broadcast_t* plan;
  weir_banded_t first;  // the first matrix of each
  atomic_bool is_singular;
} banded_job_t;

static void banded_range(void* arg, int64_t begin, int64_t end) {
  banded_job_t* job = arg;
  const size_t size = weir_dtype_size(job->dtype);
  for (int64_t i = begin; i < end; ++i) {
    weir_banded_t one = job->first;
    int64_t a;
    int64_t b;
    weir_broadcast_at(job->plan, i, &a, &b);
    one.a = (const char*)one.a + (size_t)(a * one.bands * one.n) * size;
    one.b = (const char*)one.b + (size_t)(b * one.n * one.k) * size;
    one.x = (char*)one.x + (size_t)(i * one.n * one.k) * size;
    // Nobody reads it before all are through, which orders it.
    if (!weir_banded_solve(job->dtype, &one)) {
      atomic_store_explicit(&job->is_singular, true, memory_order_relaxed);
    }
  }
}

static weir_status_t* check_shapes(const weir_tensor_t* a, const weir_tensor_t* b,
                                   weir_broadcast_t* plan) {
  char one[WEIR_SHAPE_TEXT_SIZE], two[WEIR_SHAPE_TEXT_SIZE];
  const weir_tensor_t* both[] = {a, b};
  WEIR_TRY(check_operands(a, b));
  if (!weir_broadcast_plan((weir_shape_view_t){a->rank - 2, a->dims},
                           (weir_shape_view_t){b->rank - 2, b->dims}, plan)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "In[0] and In[1] must have compatible batch dimensions: %s vs. %s",
                       weir_tensor_shape_text(a, one), weir_tensor_shape_text(b, two));
  }
  if (plan->rank < 0) return WEIR_STATUS(INVALID_ARGUMENT, "Batch dimensions alternate too often");
  for (int i = 0; i < 2; ++i) {
    if (both[i]->count > 0) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "In[%d] must not be an empty tensor: %s", i,
                       weir_tensor_shape_text(both[i], one));
  }
  const int64_t n = a->dims[a->rank - 1], rows = b->dims[b->rank - 2];
  if (n == rows) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "In[0] mismatch In[1] shape: %lld vs. %lld: %s %s",
                     (long long)n, (long long)rows, weir_tensor_shape_text(a, one),
                     weir_tensor_shape_text(b, two));
}

static weir_status_t* banded_cpu(weir_kernel_ctx_t* ctx) {
  const banded_state_t* s = ctx->state;
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const weir_tensor_t* b = weir_kernel_input(ctx, 1);
  weir_broadcast_t plan;
  WEIR_TRY(check_shapes(a, b, &plan));
  int64_t dims[WEIR_MAX_RANK];
  memcpy(dims, plan.out_dims, sizeof(int64_t) * (size_t)plan.out_rank);
  const int64_t n = dims[plan.out_rank] = b->dims[b->rank - 2];
  const int64_t k = dims[plan.out_rank + 1] = b->dims[b->rank - 1];
  weir_tensor_t* x = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, plan.out_rank + 2, dims, &x));
  if (x->count == 0) return NULL;
  banded_job_t job = {.dtype = weir_tensor_type(a),
                      .plan = &plan,
                      .first = {.n = n,
                                .k = k,
                                .bands = a->dims[a->rank - 2],
                                .is_lower = s->is_lower,
                                .is_adjoint = s->is_adjoint,
                                .a = a->data,
                                .b = b->data,
                                .x = x->data}};
  const double ns = (double)job.first.bands * (double)n * (double)k + 50.0;
  weir_pool_for(weir_kernel_pool(ctx), plan.count, ns, banded_range, &job);
  if (!atomic_load(&job.is_singular)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Input matrix is not invertible.");
}

static weir_status_t* banded_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = weir_shape_input(ctx, 0);
  const weir_shape_t* b = weir_shape_input(ctx, 1);
  WEIR_TRY(weir_shape_at_least(ctx, a, 2));
  WEIR_TRY(weir_shape_at_least(ctx, b, 2));
  if (a->rank < 0 || b->rank < 0) return NULL;
  const weir_shape_t* outer[] = {weir_shape_sub(ctx, a, 0, a->rank - 2),
                                 weir_shape_sub(ctx, b, 0, b->rank - 2)};
  if (!outer[0] || !outer[1]) return weir_out_of_memory();
  const weir_shape_t* batch = NULL;
  WEIR_TRY(weir_shape_broadcast(ctx, outer[0], outer[1], &batch));
  const int64_t bands = weir_shape_dim(a, -2), n = weir_shape_dim(a, -1);
  if (bands == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Number of bands must be positive, but is 0");
  }
  if (bands >= 0 && n >= 0 && bands > n) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of bands %lld cannot exceed the size of the matrix %lld",
                       (long long)bands, (long long)n);
  }
  int64_t dims[WEIR_MAX_RANK + 2], rows = -1;
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(a, -1), weir_shape_dim(b, -2), &rows));
  if (batch->rank < 0) return NULL;
  memcpy(dims, batch->dims, sizeof(int64_t) * (size_t)batch->rank);
  dims[batch->rank] = rows;
  dims[batch->rank + 1] = weir_shape_dim(b, -1);
  return weir_shape_set_dims(ctx, 0, batch->rank + 2, dims);
}

// ---- gradient ----

// The diagonals of |da| that the matrices have.
static weir_edge_t pack_bands(weir_grad_ctx_t* g, weir_edge_t da, bool is_lower) {
  weir_edge_t shape = weir_grad_shape_of(g, weir_grad_input(g, 0));
  weir_edge_t one = weir_build_int32s(g->builder, (const int32_t[]){1}, 1);
  weir_edge_t bands =
      weir_grad_node(g, "StridedSlice",
                     WEIR_EDGES(shape, weir_build_int32s(g->builder, (const int32_t[]){-2}, 1),
                                weir_build_int32s(g->builder, (const int32_t[]){-1}, 1), one));
  weir_edge_t zero = weir_build_int32s(g->builder, (const int32_t[]){0}, 1);
  weir_edge_t last = minus(g, is_lower ? one : bands, is_lower ? bands : one);
  weir_edge_t axis = weir_build_int32(g->builder, 0);
  weir_edge_t k = weir_grad_node_with(
      g, "ConcatV2", WEIR_EDGES(is_lower ? last : zero, is_lower ? zero : last, axis),
      WEIR_ATTRS(weir_attr_int("N", 2)));
  return weir_grad_node_with(g, "MatrixDiagPartV3", WEIR_EDGES(da, k, weir_grad_scalar(g, da, 0)),
                             WEIR_ATTRS(weir_attr_string("align", "LEFT_RIGHT")));
}

// db = op(a)^-H * dx; da = -db * x^H, or its adjoint, within the bands.
static weir_status_t* banded_grad(weir_grad_ctx_t* g) {
  const bool is_lower = weir_attrs_bool(weir_grad_attrs(g), "lower");
  const bool is_adjoint = weir_attrs_bool(weir_grad_attrs(g), "adjoint");
  weir_edge_t x = weir_grad_output(g, 0);
  weir_edge_t db = weir_grad_node_with(
      g, "BandedTriangularSolve", WEIR_EDGES(weir_grad_input(g, 0), weir_grad_dy(g, 0)),
      WEIR_ATTRS(weir_attr_bool("lower", is_lower), weir_attr_bool("adjoint", !is_adjoint)));
  weir_edge_t da =
      is_adjoint ? matrix_product(g, x, false, db, true) : matrix_product(g, db, false, x, true);
  return set_batches(g, pack_bands(g, weir_grad_neg(g, da), is_lower), db);
}

const weir_op_module_t weir_ops_linalg_banded_triangular_solve = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "BandedTriangularSolve",
         .attrs = "lower: bool = true; adjoint: bool = false; "
                  "T: {double, float, half, complex64, complex128}",
         .inputs = "matrix: T; rhs: T",
         .outputs = "output: T",
         .summary = "Solves systems with triangular matrices given by their diagonals",
         .infer_shape = banded_shape,
         .build_grad = banded_grad,
         .kernels = WEIR_CPU_KERNEL(.types = "T: float, double, complex64, complex128",
                                    .compute = banded_cpu, .state_size = sizeof(banded_state_t),
                                    .init = banded_init)},
        {0}}};
