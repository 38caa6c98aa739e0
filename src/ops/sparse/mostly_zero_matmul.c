// mostly_zero_matmul.c — SparseMatMul: the product of two dense matrices, of float or bfloat16,
// that are said to hold many zeros. Here it is an ordinary product.
#include "kernel/gemm/gemm.h"
#include "ops/math/common.h"
#include "tensor/cast.h"

static weir_status_t* matmul_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a = NULL;
  const weir_shape_t* b = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &a));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, &b));
  const int ta = weir_attrs_bool(weir_shape_attrs(ctx), "transpose_a");
  const int tb = weir_attrs_bool(weir_shape_attrs(ctx), "transpose_b");
  int64_t inner = -1;
  WEIR_TRY(weir_dim_join(ctx, weir_shape_dim(a, 1 - ta), weir_shape_dim(b, tb), &inner));
  return weir_shape_set_dims(ctx, 0, 2,
                             (const int64_t[]){weir_shape_dim(a, ta), weir_shape_dim(b, 1 - tb)});
}

// The elements of |t| as floats: its own, or in scratch memory.
static weir_status_t* floats_of(weir_kernel_ctx_t* ctx, const weir_tensor_t* t,
                                weir_tensor_t** scratch, const float** out) {
  *out = t->data;
  if (weir_tensor_type(t) == WEIR_DTYPE_FLOAT) return NULL;
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, t->count, scratch));
  *out = (*scratch)->data;
  return weir_cast_elements(WEIR_DTYPE_FLOAT, (*scratch)->data, weir_tensor_type(t), t->data,
                            t->count);
}

static weir_status_t* matmul_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const weir_tensor_t* b = weir_kernel_input(ctx, 1);
  if (a->rank != 2) return WEIR_STATUS(INVALID_ARGUMENT, "a is not a matrix");
  if (b->rank != 2) return WEIR_STATUS(INVALID_ARGUMENT, "b is not a matrix");
  const int ta = weir_attrs_bool(weir_kernel_attrs(ctx), "transpose_a");
  const int tb = weir_attrs_bool(weir_kernel_attrs(ctx), "transpose_b");
  const int64_t m = a->dims[ta], k = a->dims[1 - ta], n = b->dims[1 - tb];
  if (k != b->dims[tb]) {
    char x[WEIR_SHAPE_TEXT_SIZE], y[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Matrix size incompatible: a: %s, b: %s",
                       weir_tensor_shape_text(a, x), weir_tensor_shape_text(b, y));
  }
  weir_tensor_t* scratch[2] = {NULL, NULL};
  const float* x = NULL;
  const float* y = NULL;
  weir_tensor_t* c = NULL;
  weir_status_t* status = weir_kernel_output(ctx, 0, 2, (const int64_t[]){m, n}, &c);
  if (!status) status = floats_of(ctx, a, &scratch[0], &x);
  if (!status) status = floats_of(ctx, b, &scratch[1], &y);
  if (!status && k == 0 && c->count > 0) memset(c->data, 0, (size_t)c->count * sizeof(float));
  if (!status && k > 0 && c->count > 0) {
    weir_gemm(weir_kernel_pool(ctx), ta ? WEIR_TRANS : WEIR_NO_TRANS,
              tb ? WEIR_TRANS : WEIR_NO_TRANS, m, n, k, 1, x, ta ? m : k, y, tb ? k : n, 0, c->data,
              n);
  }
  weir_tensor_release(scratch[0]);
  weir_tensor_release(scratch[1]);
  return status;
}

// ---- gradient ----

typedef struct factor_t {
  weir_edge_t edge;
  bool transposed;
  bool sparse;
} factor_t;

// The product of the two, in the type of |like|, transposed by hand: where the gradient of a
// transposed factor would need a transposed result.
static weir_edge_t product(weir_grad_ctx_t* g, factor_t a, factor_t b, weir_edge_t like) {
  weir_edge_t c = weir_grad_node_with(
      g, "SparseMatMul", WEIR_EDGES(a.edge, b.edge),
      WEIR_ATTRS(weir_attr_bool("transpose_a", a.transposed),
                 weir_attr_bool("transpose_b", b.transposed),
                 weir_attr_bool("a_is_sparse", a.sparse), weir_attr_bool("b_is_sparse", b.sparse)));
  weir_dtype_t dtype = weir_grad_dtype(g, like);
  return dtype == WEIR_DTYPE_FLOAT ? c : cast_to(g, c, dtype);
}

static weir_status_t* matmul_grad(weir_grad_ctx_t* g) {
  const bool ta = weir_attrs_bool(weir_grad_attrs(g), "transpose_a");
  const bool tb = weir_attrs_bool(weir_grad_attrs(g), "transpose_b");
  const bool sa = weir_attrs_bool(weir_grad_attrs(g), "a_is_sparse");
  const bool sb = weir_attrs_bool(weir_grad_attrs(g), "b_is_sparse");
  weir_edge_t a = weir_grad_input(g, 0), b = weir_grad_input(g, 1), dy = weir_grad_dy(g, 0);
  weir_edge_t da = ta ? product(g, (factor_t){b, tb, sb}, (factor_t){dy, true, false}, a)
                      : product(g, (factor_t){dy, false, false}, (factor_t){b, !tb, sb}, a);
  weir_edge_t db = tb ? product(g, (factor_t){dy, true, false}, (factor_t){a, ta, sa}, b)
                      : product(g, (factor_t){a, !ta, sa}, (factor_t){dy, false, false}, b);
  WEIR_TRY(weir_grad_set(g, 0, da));
  return weir_grad_set(g, 1, db);
}

const weir_op_module_t weir_ops_sparse_mostly_zero_matmul = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "SparseMatMul",
         .attrs =
             "transpose_a: bool = false; transpose_b: bool = false; a_is_sparse: bool = false; "
             "b_is_sparse: bool = false; Ta: {float, bfloat16} = DT_FLOAT; "
             "Tb: {float, bfloat16} = DT_FLOAT",
         .inputs = "a: Ta; b: Tb",
         .outputs = "product: float",
         .summary = "The product of two dense matrices with many zeros.",
         .infer_shape = matmul_shape,
         .build_grad = matmul_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = matmul_cpu)},
        {0}}};
