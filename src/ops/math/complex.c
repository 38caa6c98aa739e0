// complex.c — Complex, Real, Imag, Conj, Angle, ComplexAbs.
#include "ops/math/common.h"
#include "tensor/handle.h"

static weir_edge_t complex_of(weir_grad_ctx_t* g, weir_edge_t real, weir_edge_t imag) {
  bool is_double = weir_grad_dtype(g, real) == WEIR_DTYPE_DOUBLE;
  return weir_grad_node_with(
      g, "Complex", WEIR_EDGES(real, imag),
      WEIR_ATTRS(weir_attr_type("Tout", is_double ? WEIR_DTYPE_COMPLEX128 : WEIR_DTYPE_COMPLEX64)));
}

static weir_edge_t part_of(weir_grad_ctx_t* g, const char* part, weir_edge_t z) {
  bool is_double = weir_grad_dtype(g, z) == WEIR_DTYPE_COMPLEX128;
  return weir_grad_node_with(
      g, part, WEIR_EDGES(z),
      WEIR_ATTRS(weir_attr_type("Tout", is_double ? WEIR_DTYPE_DOUBLE : WEIR_DTYPE_FLOAT)));
}

static weir_status_t* complex_grad(weir_grad_ctx_t* g) {
  weir_edge_t dz = weir_grad_dy(g, 0);
  return set_broadcast(g, part_of(g, "Real", dz), part_of(g, "Imag", dz));
}

static weir_status_t* real_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  return weir_grad_set(g, 0, complex_of(g, dy, weir_grad_scalar(g, dy, 0)));
}

static weir_status_t* imag_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  return weir_grad_set(g, 0, complex_of(g, weir_grad_scalar(g, dy, 0), dy));
}

// Few variants have a conjugate; TensorFlow finds out when it runs. One element, as there.
static weir_status_t* conj_variant_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  const weir_variant_object_t* object =
      x->count > 0 ? WEIR_TENSOR_DATA(x, const weir_variant_t)->object : NULL;
  if (!object || !object->type->conj || x->rank != 0) {
    return WEIR_STATUS(INTERNAL,
                       "No unary variant unary_op function found for op CONJ Variant type_name: %s "
                       "for device type: CPU",
                       object ? object->type->type_name : "");
  }
  void* made = NULL;
  weir_tensor_t* out = NULL;
  WEIR_TRY(object->type->conj(object, &made));
  WEIR_TRY(weir_tensor_create_variant(made, &out));
  weir_kernel_set(ctx, 0, out);
  return NULL;
}

static weir_status_t* conj_grad(weir_grad_ctx_t* g) {
  return weir_grad_set(g, 0, node1(g, "Conj", weir_grad_dy(g, 0)));
}

// -dy / (im + i re)
static weir_status_t* angle_grad(weir_grad_ctx_t* g) {
  weir_edge_t x = weir_grad_input(g, 0);
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t turned = complex_of(g, part_of(g, "Imag", x), part_of(g, "Real", x));
  weir_edge_t dz = weir_grad_neg(g, complex_of(g, dy, weir_grad_scalar(g, dy, 0)));
  return weir_grad_set(g, 0, weir_grad_mul(g, dz, node1(g, "Reciprocal", turned)));
}

// dy x / |x|, 0 at 0
static weir_status_t* complex_abs_grad(weir_grad_ctx_t* g) {
  weir_edge_t dy = weir_grad_dy(g, 0);
  weir_edge_t zero = weir_grad_scalar(g, dy, 0);
  weir_edge_t scaled = weir_grad_mul(g, complex_of(g, dy, zero), weir_grad_input(g, 0));
  return weir_grad_set(g, 0,
                       node2(g, "DivNoNan", scaled, complex_of(g, weir_grad_output(g, 0), zero)));
}

WEIR_BINARY_INIT(complex_init, COMPLEX)
WEIR_UNARY_INIT(real_init, REAL)
WEIR_UNARY_INIT(imag_init, IMAG)
WEIR_UNARY_INIT(conj_init, CONJ)
WEIR_UNARY_INIT(angle_init, ANGLE)
WEIR_UNARY_INIT(complex_abs_init, COMPLEX_ABS)

// The result type is an attribute of its own and must be the parts' type.
static weir_status_t* check_parts(const weir_kernel_init_t* init) {
  weir_dtype_t complex_type = weir_dtype_base(init->node->input_types[0]);
  weir_dtype_t real_type = weir_dtype_base(init->node->output_types[0]);
  if (weir_dtype_is_complex(real_type)) {
    weir_dtype_t held = complex_type;
    complex_type = real_type;
    real_type = held;
  }
  if ((complex_type == WEIR_DTYPE_COMPLEX128) == (real_type == WEIR_DTYPE_DOUBLE)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "%s: types %s and %s do not belong together",
                     init->node->op_name, weir_dtype_name(complex_type),
                     weir_dtype_name(real_type));
}

#define PART_INIT(name, inner)                                              \
  enum { name##_function = inner##_function };                              \
  static weir_status_t* name(const weir_kernel_init_t* init, void* state) { \
    WEIR_TRY(check_parts(init));                                            \
    return inner(init, state);                                              \
  }
PART_INIT(checked_complex_init, complex_init)
PART_INIT(checked_real_init, real_init)
PART_INIT(checked_imag_init, imag_init)
PART_INIT(checked_angle_init, angle_init)
PART_INIT(checked_abs_init, complex_abs_init)

#define PART_ATTRS "T: {complex64,complex128} = DT_COMPLEX64; Tout: {float,double} = DT_FLOAT"
#define PART_OP(op_name, text, grad, init_fn)                                              \
  {                                                                                        \
    .name = op_name, .attrs = PART_ATTRS, .inputs = "input: T", .outputs = "output: Tout", \
    .flags = WEIR_OP_POINTWISE, .summary = text, .infer_shape = weir_shape_fn_unchanged,   \
    .build_grad = grad, .kernels = WEIR_UNARY_KERNELS(init_fn, NULL)                       \
  }

const weir_op_module_t weir_ops_math_complex = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Complex",
         .attrs = "T: {float,double} = DT_FLOAT; Tout: {complex64,complex128} = DT_COMPLEX64",
         .inputs = "real: T; imag: T",
         .outputs = "out: Tout",
         .flags = WEIR_OP_POINTWISE,
         .summary = "real + i imag",
         .infer_shape = weir_shape_fn_broadcast,
         .build_grad = complex_grad,
         .kernels = WEIR_BINARY_KERNELS(checked_complex_init, NULL)},
        PART_OP("Real", "The real part", real_grad, checked_real_init),
        PART_OP("Imag", "The imaginary part", imag_grad, checked_imag_init),
        PART_OP("Angle", "The angle of a complex number to the real axis, in radians", angle_grad,
                checked_angle_init),
        {.name = "Conj",
         .attrs = "T: {complex64,complex128,variant} = DT_COMPLEX64",
         .inputs = "input: T",
         .outputs = "output: T",
         .flags = WEIR_OP_POINTWISE,
         .scalar = {WEIR_SCALAR_UNARY, WEIR_UNARY_CONJ},
         .summary = "The complex conjugate",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = conj_grad,
         .kernels =
             (const weir_kernel_def_t[]){
                 {WEIR_DEVICE_CPU, .types = "T: complex64, complex128",
                  .compute = weir_unary_compute, .init = conj_init,
                  .state_size = sizeof(weir_unary_state_t)},
                 {WEIR_DEVICE_CPU, .types = "T: variant", .compute = conj_variant_cpu},
                 {0}}},
        {.name = "ComplexAbs",
         .attrs = PART_ATTRS,
         .inputs = "x: T",
         .outputs = "y: Tout",
         .flags = WEIR_OP_POINTWISE,
         .summary = "The magnitude of complex numbers",
         .infer_shape = weir_shape_fn_unchanged,
         .build_grad = complex_abs_grad,
         .kernels = WEIR_UNARY_KERNELS(checked_abs_init, NULL)},
        {0}}};
