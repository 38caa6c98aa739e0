// compare.c — Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual, ApproximateEqual.
#include <math.h>

#include "device/cuda/cuda.h"
#include "ops/math/common.h"

WEIR_BINARY_INIT(less_init, LESS)
WEIR_BINARY_INIT(less_equal_init, LESS_EQUAL)
WEIR_BINARY_INIT(greater_init, GREATER)
WEIR_BINARY_INIT(greater_equal_init, GREATER_EQUAL)

// ---- Equal, NotEqual: any type, and shapes that need not agree ----

typedef struct equal_state_t {
  weir_binary_state_t base;  // first: weir_binary_compute reads it
  bool is_not;
  bool allows_mismatch;
} equal_state_t;

static weir_status_t* equality_init(const weir_kernel_init_t* init, equal_state_t* s, bool is_not) {
  s->is_not = is_not;
  s->allows_mismatch = !weir_attrs_bool(init->node->attrs, "incompatible_shape_error");
  if (weir_dtype_base(init->node->input_types[0]) == WEIR_DTYPE_STRING) return NULL;
  return weir_binary_init(init, &s->base, is_not ? WEIR_BINARY_NOT_EQUAL : WEIR_BINARY_EQUAL);
}
static weir_status_t* equal_init(const weir_kernel_init_t* init, void* state) {
  return equality_init(init, state, false);
}
static weir_status_t* not_equal_init(const weir_kernel_init_t* init, void* state) {
  return equality_init(init, state, true);
}

static weir_status_t* compare_strings(weir_kernel_ctx_t* ctx) {
  const equal_state_t* s = ctx->state;
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
    bool is_equal = weir_view_equal(weir_string_view(x + at_x), weir_string_view(y + at_y));
    WEIR_TENSOR_DATA(z, bool)[i] = is_equal != s->is_not;
  }
  return NULL;
}

static weir_status_t* equality_cpu(weir_kernel_ctx_t* ctx) {
  const equal_state_t* s = ctx->state;
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* y = weir_kernel_input(ctx, 1);
  if (s->allows_mismatch && !weir_tensor_same_shape(x, y)) {
    weir_broadcast_t plan;
    if (!weir_broadcast_plan(weir_shape_view_of(x), weir_shape_view_of(y), &plan))
      return weir_kernel_output_bool(ctx, 0, s->is_not);
  }
  return x->dtype == WEIR_DTYPE_STRING ? compare_strings(ctx) : weir_binary_compute(ctx);
}

// Where shapes may disagree, nothing is known before both are: a mismatch gives a scalar.
static weir_status_t* equality_shape(weir_shape_ctx_t* ctx) {
  if (weir_attrs_bool(weir_shape_attrs(ctx), "incompatible_shape_error"))
    return weir_shape_fn_broadcast(ctx);
  const weir_shape_t* x = weir_shape_input(ctx, 0);
  const weir_shape_t* y = weir_shape_input(ctx, 1);
  if (!weir_shape_is_full(x) || !weir_shape_is_full(y))
    return weir_shape_set(ctx, 0, &weir_shape_unknown);
  weir_status_t* status = weir_shape_fn_broadcast(ctx);
  if (weir_status_code(status) != WEIR_INVALID_ARGUMENT) return status;
  weir_status_destroy(status);
  return weir_shape_set_scalar(ctx, 0);  // shapes that do not go together: one answer
}

// ---- ApproximateEqual ----

static weir_status_t* approximate_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* shape;
  WEIR_TRY(weir_shape_join(ctx, weir_shape_input(ctx, 0), weir_shape_input(ctx, 1), &shape));
  return weir_shape_set(ctx, 0, shape);
}

static weir_status_t* approximate_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_tensor_t* y = weir_kernel_input(ctx, 1);
  float tolerance = weir_attrs_float(weir_kernel_attrs(ctx), "tolerance");
  if (!weir_tensor_same_shape(x, y)) {
    char a[WEIR_SHAPE_TEXT_SIZE];
    char b[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "x and y must be of the same shape. x shape: %s. y shape: %s",
                       weir_tensor_shape_text(x, a), weir_tensor_shape_text(y, b));
  }
  weir_tensor_t* z = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, x->dims, &z));
  bool* out = z->data;
  for (int64_t i = 0; i < x->count; ++i) {
    if (x->dtype == WEIR_DTYPE_FLOAT) {
      out[i] = fabsf(WEIR_TENSOR_DATA(x, float)[i] - WEIR_TENSOR_DATA(y, float)[i]) < tolerance;
    } else {
      out[i] =
          fabs(WEIR_TENSOR_DATA(x, double)[i] - WEIR_TENSOR_DATA(y, double)[i]) < (double)tolerance;
    }
  }
  return NULL;
}

#define ORDER_OP(op_name, text, init_fn)                                                          \
  {                                                                                               \
    .name = op_name, .attrs = "T: realnumbertype", .inputs = "x: T; y: T", .outputs = "z: bool",  \
    .flags = WEIR_OP_POINTWISE | WEIR_OP_NO_GRADIENT, .mixed = WEIR_MIXED_CLEAR, .summary = text, \
    .infer_shape = weir_shape_fn_broadcast, .kernels = WEIR_BINARY_KERNELS(init_fn, NULL)         \
  }
#define EQUALITY_OP(op_name, text, init_fn, function)                                     \
  {                                                                                       \
    .name = op_name, .attrs = "T: type; incompatible_shape_error: bool = true",           \
    .inputs = "x: T; y: T", .outputs = "z: bool",                                         \
    .flags = WEIR_OP_POINTWISE | WEIR_OP_COMMUTATIVE | WEIR_OP_NO_GRADIENT,               \
    .mixed = WEIR_MIXED_CLEAR, .summary = text, .scalar = {WEIR_SCALAR_BINARY, function}, \
    .infer_shape = equality_shape, .kernels = (const weir_kernel_def_t[]) {               \
      {WEIR_DEVICE_CPU, .types = EQUALITY_CPU, .compute = equality_cpu, .init = init_fn,  \
       .state_size = sizeof(equal_state_t)},                                              \
          {WEIR_DEVICE_GPU,                                                               \
           .types = "T: int32",                                                           \
           .compute = equality_cpu,                                                       \
           .init = init_fn,                                                               \
           .state_size = sizeof(equal_state_t),                                           \
           .host_inputs = "x, y",                                                         \
           .host_outputs = "z"},                                                          \
      {                                                                                   \
        0                                                                                 \
      }                                                                                   \
    }                                                                                     \
  }
#define EQUALITY_CPU CPU_NUMBER ", bool, string, qint8, quint8, qint16, quint16, qint32"

const weir_op_module_t weir_ops_math_compare = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        ORDER_OP("Less", "x < y", less_init),
        ORDER_OP("LessEqual", "x <= y", less_equal_init),
        ORDER_OP("Greater", "x > y", greater_init),
        ORDER_OP("GreaterEqual", "x >= y", greater_equal_init),
        EQUALITY_OP("Equal", "x == y", equal_init, WEIR_BINARY_EQUAL),
        EQUALITY_OP("NotEqual", "x != y", not_equal_init, WEIR_BINARY_NOT_EQUAL),
        {.name = "ApproximateEqual",
         .attrs = "T: numbertype; tolerance: float = 1e-05",
         .inputs = "x: T; y: T",
         .outputs = "z: bool",
         .flags = WEIR_OP_COMMUTATIVE | WEIR_OP_NO_GRADIENT,
         .summary = "|x - y| < tolerance",
         .infer_shape = approximate_shape,
         .kernels = WEIR_CPU_KERNEL(.types = "T: float, double", .compute = approximate_cpu)},
        {0}}};
