// add.c — AddV2, Add, Sub: sums and differences with broadcasting; Add joins strings too.
#include "ops/math/common.h"

static weir_status_t* add_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  return set_broadcast(g, dy, dy);
}

static weir_status_t* sub_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  WEIR_TRY(weir_grad_set(g, 0, weir_grad_unbroadcast(g, dy, 0, 1)));
  return weir_grad_set(g, 1, weir_grad_neg(g, weir_grad_unbroadcast(g, dy, 1, 0)));
}

// x + 0 = x. Adding 0 to -0 gives 0, which nothing but its sign tells from -0; TensorFlow does the
// same.
static weir_status_t* add_simplify(weir_simplify_ctx_t* ctx) {
  if (weir_simplify_is_all(ctx, 1, 0)) return weir_simplify_to_input(ctx, 0);
  if (weir_simplify_is_all(ctx, 0, 0)) return weir_simplify_to_input(ctx, 1);
  return NULL;
}

static weir_status_t* sub_simplify(weir_simplify_ctx_t* ctx) {
  return weir_simplify_is_all(ctx, 1, 0) ? weir_simplify_to_input(ctx, 0) : NULL;
}

static weir_status_t* join_strings(const weir_string_t* x, const weir_string_t* y,
                                   weir_string_t* z) {
  weir_view_t a = weir_string_view(x);
  weir_view_t b = weir_string_view(y);
  char* data = weir_string_resize(z, a.size + b.size);
  if (!data) return weir_out_of_memory();
  if (a.size) memcpy(data, a.data, a.size);
  if (b.size) memcpy(data + a.size, b.data, b.size);
  return NULL;
}

static weir_status_t* add_strings_cpu(weir_kernel_ctx_t* ctx) {
  weir_broadcast_t plan;
  WEIR_TRY(weir_kernel_broadcast(ctx, 0, 1, &plan));
  const weir_string_t* x = weir_kernel_input(ctx, 0)->data;
  const weir_string_t* y = weir_kernel_input(ctx, 1)->data;
  weir_tensor_t* z = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, plan.out_rank, plan.out_dims, &z));
  for (int64_t i = 0; i < plan.count; ++i) {
    int64_t at_x;
    int64_t at_y;
    weir_broadcast_at(&plan, i, &at_x, &at_y);
    WEIR_TRY(join_strings(x + at_x, y + at_y, WEIR_TENSOR_DATA(z, weir_string_t) + i));
  }
  return NULL;
}

WEIR_BINARY_INIT(add_init, ADD)
WEIR_BINARY_INIT(sub_init, SUB)

const weir_op_module_t weir_ops_math_add = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "AddV2",
         .mixed = WEIR_MIXED_INFER,
         .attrs = "T: "
                  "{bfloat16,half,float,double,uint8,uint16,uint32,uint64,int8,int16,int32,int64,"
                  "complex64,complex128}",
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_COMMUTATIVE | WEIR_OP_AGGREGATE | WEIR_OP_POINTWISE,
         .summary = "x + y, element by element",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = add_grad,
         .simplify = add_simplify,
         .kernels = WEIR_BINARY_KERNELS(add_init, NULL)},
        {.name = "Add",
         .mixed = WEIR_MIXED_INFER,
         .attrs = "T: "
                  "{bfloat16,half,float,double,uint8,int8,int16,int32,int64,complex64,complex128,"
                  "string}",
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_BINARY, WEIR_BINARY_ADD},
         .summary = "x + y, element by element; strings are joined",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = add_grad,
         .simplify = add_simplify,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .types = "T: string", .compute = add_strings_cpu},
                 {WEIR_DEVICE_CPU,
                  .types = "T: bfloat16, half, float, double, uint8, int8, int16, int32, int64, "
                           "complex64, complex128",
                  .compute = weir_binary_compute, .init = add_init,
                  .state_size = sizeof(weir_binary_state_t)},
                 {0}}},
        {.name = "Sub",
         .mixed = WEIR_MIXED_INFER,
         .attrs = "T: "
                  "{bfloat16,half,float,double,uint8,int8,uint16,int16,int32,int64,complex64,"
                  "complex128,uint32,uint64}",
         .inputs = "x: T; y: T",
         .outputs = "z: T",
         .flags = WEIR_OP_POINTWISE,
         .summary = "x - y, element by element",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = sub_grad,
         .simplify = sub_simplify,
         .kernels = WEIR_BINARY_KERNELS(sub_init, NULL)},
        {0}}};
