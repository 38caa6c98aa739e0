// extreme.c — SparseSparseMaximum, SparseSparseMinimum: the larger and the smaller of two sparse
// tensors, element by element; what is not there is 0.
#include "ops/math/common.h"
#include "ops/sparse/union.h"

typedef struct extreme_state_t {
  weir_binary_fn_t fn;
} extreme_state_t;

static weir_status_t* maximum_init(const weir_kernel_init_t* init, void* state) {
  ((extreme_state_t*)state)->fn =
      weir_binary_find(WEIR_BINARY_MAXIMUM, weir_attrs_type(init->node->attrs, "T"));
  return NULL;
}

static weir_status_t* minimum_init(const weir_kernel_init_t* init, void* state) {
  ((extreme_state_t*)state)->fn =
      weir_binary_find(WEIR_BINARY_MINIMUM, weir_attrs_type(init->node->attrs, "T"));
  return NULL;
}

static weir_status_t* extreme_shape(weir_shape_ctx_t* ctx) {
  WEIR_TRY(weir_sparse_shape_check(ctx, 0));
  WEIR_TRY(weir_sparse_shape_check(ctx, 3));
  WEIR_TRY(weir_shape_set_dims(ctx, 0, 2, (const int64_t[]){-1, -1}));
  return weir_shape_set_vector(ctx, 1, -1);
}

static weir_status_t* extreme_cpu(weir_kernel_ctx_t* ctx) {
  static const char zero[16] = {0};
  const extreme_state_t* state = ctx->state;
  weir_sparse_t a, b;
  weir_tensor_t* values = NULL;
  WEIR_TRY(weir_sparse_read(ctx, 0, &a));
  WEIR_TRY(weir_sparse_check_bounds(&a));
  WEIR_TRY(weir_sparse_read(ctx, 3, &b));
  WEIR_TRY(weir_sparse_check_bounds(&b));
  WEIR_TRY(weir_sparse_check_same_shape(&a, &b));
  weir_sparse_pair_t* pairs = weir_alloc_array((size_t)a.count + (size_t)b.count, sizeof(*pairs));
  if (!pairs) return weir_out_of_memory();
  int64_t count = weir_sparse_union(&a, &b, pairs);
  weir_status_t* status = weir_sparse_write_union(ctx, &a, &b, pairs, count);
  if (!status) status = weir_kernel_output(ctx, 1, 1, &count, &values);
  for (int64_t i = 0; i < count && !status; ++i) {
    const void* x = pairs[i].a < 0 ? zero : weir_sparse_at(a.values, pairs[i].a);
    const void* y = pairs[i].b < 0 ? zero : weir_sparse_at(b.values, pairs[i].b);
    state->fn(x, y, weir_sparse_at(values, i), 1, WEIR_SPAN_BOTH);
  }
  weir_free(pairs);
  return status;
}

static weir_status_t* no_maximum_grad(weir_grad_ctx_t* g) {
  (void)g;
  return WEIR_STATUS(UNIMPLEMENTED, "Gradient for SparseSparseMaximum is not implemented.");
}

static weir_status_t* no_minimum_grad(weir_grad_ctx_t* g) {
  (void)g;
  return WEIR_STATUS(UNIMPLEMENTED, "Gradient for SparseSparseMinimum is not implemented.");
}

#define EXTREME_OP(op_name, types_, text, grad, init_fn)                                      \
  {                                                                                           \
    .name = op_name, .attrs = "T: " types_,                                                   \
    .inputs =                                                                                 \
        "a_indices: int64; a_values: T; a_shape: int64; b_indices: int64; b_values: T; "      \
        "b_shape: int64",                                                                     \
    .outputs = "output_indices: int64; output_values: T", .summary = text,                    \
    .infer_shape = extreme_shape, .build_grad = grad,                                         \
    .kernels = WEIR_CPU_KERNEL(.types = SPARSE_REAL, .compute = extreme_cpu, .init = init_fn, \
                               .state_size = sizeof(extreme_state_t))                         \
  }

const weir_op_module_t weir_ops_sparse_extreme = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        EXTREME_OP("SparseSparseMaximum", "realnumbertype",
                   "The larger elements of two sparse tensors", no_maximum_grad, maximum_init),
        EXTREME_OP("SparseSparseMinimum", "numbertype",
                   "The smaller elements of two sparse tensors", no_minimum_grad, minimum_init),
        {0}}};
