// matmul.c — MatMul: the product of two matrices, each possibly transposed.
#include <inttypes.h>

#include "kernel/gemm/cuda_gemm.h"
#include "ops/math/common.h"

typedef struct matmul_state_t {
  bool transpose_a;
  bool transpose_b;
} matmul_state_t;

static weir_status_t* matmul_init(const weir_kernel_init_t* init, void* state) {
  matmul_state_t* s = state;
  s->transpose_a = weir_attrs_bool(init->node->attrs, "transpose_a");
  s->transpose_b = weir_attrs_bool(init->node->attrs, "transpose_b");
  return NULL;
}

static weir_status_t* check_matrices(const weir_tensor_t* a, const weir_tensor_t* b) {
  char a_text[WEIR_SHAPE_TEXT_SIZE];
  char b_text[WEIR_SHAPE_TEXT_SIZE];
  weir_tensor_shape_text(a, a_text);
  weir_tensor_shape_text(b, b_text);
  if (a->rank != b->rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "In[0] and In[1] has different ndims: %s vs. %s", a_text,
                       b_text);
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "In[0] and In[1] ndims must be == 2: %d", a->rank);
}

static weir_status_t* matmul(weir_kernel_ctx_t* ctx) {
  const matmul_state_t* s = ctx->state;
  const weir_tensor_t* a = weir_kernel_input(ctx, 0);
  const weir_tensor_t* b = weir_kernel_input(ctx, 1);
  if (WEIR_UNLIKELY(a->rank != 2 || b->rank != 2)) return check_matrices(a, b);
  int64_t k = a->dims[s->transpose_a ? 0 : 1];
  if (WEIR_UNLIKELY(k != b->dims[s->transpose_b ? 1 : 0])) {
    char a_text[WEIR_SHAPE_TEXT_SIZE];
    char b_text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Matrix size-incompatible: In[0]: %s, In[1]: %s",
                       weir_tensor_shape_text(a, a_text), weir_tensor_shape_text(b, b_text));
  }
  const int64_t dims[] = {a->dims[s->transpose_a ? 1 : 0], b->dims[s->transpose_b ? 0 : 1]};
  weir_tensor_t* c = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, dims, &c));
  weir_dtype_t dtype = weir_tensor_type(a);
  weir_gemm_args_t args = {.dtype_a = dtype,
                           .dtype_b = dtype,
                           .dtype_c = dtype,
                           .trans_a = s->transpose_a ? WEIR_TRANS : WEIR_NO_TRANS,
                           .trans_b = s->transpose_b ? WEIR_TRANS : WEIR_NO_TRANS,
                           .m = dims[0],
                           .n = dims[1],
                           .k = k,
                           .a = a->data,
                           .b = b->data,
                           .c = c->data};
  return weir_kernel_gemm(ctx, &args);
}

static weir_status_t* matmul_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* a;
  const weir_shape_t* b;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 2, &a));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 2, &b));
  int ta = weir_attrs_bool(weir_shape_attrs(ctx), "transpose_a");
  int tb = weir_attrs_bool(weir_shape_attrs(ctx), "transpose_b");
  int64_t inner;
  WEIR_TRY(weir_dim_join(ctx, a->dims[1 - ta], b->dims[tb], &inner));
  return weir_shape_set_dims(ctx, 0, 2, (const int64_t[]){a->dims[ta], b->dims[1 - tb]});
}

static weir_edge_t product(weir_grad_ctx_t* g, weir_edge_t a, bool ta, weir_edge_t b, bool tb,
                           const char* marker) {
  return weir_grad_node_with(
      g, "MatMul", WEIR_EDGES(a, b),
      WEIR_ATTRS(weir_attr_bool("transpose_a", ta), weir_attr_bool("transpose_b", tb),
                 weir_attr_bool(marker, true)));
}

// One product each, without a transpose of its own.
static weir_status_t* matmul_grad(weir_grad_ctx_t* g) {
  bool ta = weir_attrs_bool(weir_grad_attrs(g), "transpose_a");
  bool tb = weir_attrs_bool(weir_grad_attrs(g), "transpose_b");
  weir_edge_t dc = weir_grad_dy(g, 0);
  weir_edge_t a = conj_input(g, 0);
  weir_edge_t b = conj_input(g, 1);
  weir_edge_t da =
      ta ? product(g, b, tb, dc, true, "grad_a") : product(g, dc, false, b, !tb, "grad_a");
  weir_edge_t db =
      tb ? product(g, dc, true, a, ta, "grad_b") : product(g, a, !ta, dc, false, "grad_b");
  WEIR_TRY(weir_grad_set(g, 0, da));
  return weir_grad_set(g, 1, db);
}

const weir_op_module_t weir_ops_math_matmul = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "MatMul",
         .mixed = WEIR_MIXED_ALLOW,
         .attrs = "transpose_a: bool = false; transpose_b: bool = false; T: "
                  "{bfloat16,half,float,double,int32,int64,uint8,"
                  "uint16,uint32,uint64,complex64,complex128}; grad_a: bool = false; grad_b: bool "
                  "= false",
         .inputs = "a: T; b: T",
         .outputs = "product: T",
         .summary = "The product of two matrices",
         .infer_shape = matmul_shape,
         .cost = weir_cost_fn_matmul,
         .build_grad = matmul_grad,
         .extended = {"_FusedMatMul", WEIR_EXTENDED_LIST},
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU,
                  .types = "T: bfloat16, half, float, double, int32, int64, complex64, complex128",
                  .compute = matmul, .init = matmul_init, .state_size = sizeof(matmul_state_t)},
                 {WEIR_DEVICE_GPU, .types = "T: bfloat16, half, float, double", .compute = matmul,
                  .init = matmul_init, .state_size = sizeof(matmul_state_t)},
                 {0}}},
        {0}}};
