// arg.c — _Arg, _Retval: where functions get arguments and leave results; FakeParam: a value nobody
// reads.
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "tensor/accumulate.h"

// Graphs made by TensorFlow may note the shape of an argument.
static weir_status_t* arg_shape(weir_shape_ctx_t* ctx) {
  const weir_attr_t* shapes = weir_attrs_find(weir_shape_attrs(ctx), "_output_shapes");
  const weir_attr_t* shape = weir_attrs_find(weir_shape_attrs(ctx), "_shape");
  if (shapes && shapes->kind == WEIR_ATTR_SHAPE && shapes->is_list && shapes->count > 0) {
    return weir_shape_set(ctx, 0, shapes->u.shapes[0]);
  }
  if (shape && shape->kind == WEIR_ATTR_SHAPE && !shape->is_list)
    return weir_shape_set(ctx, 0, shape->u.shape);
  return weir_shape_fn_unknown(ctx);
}

// The executor sets arguments and takes results itself; a kernel is looked up only where a graph is
// run in another way.
static weir_status_t* arg_cpu(weir_kernel_ctx_t* ctx) {
  return WEIR_STATUS(INTERNAL, "%s '%s' runs only within a function call", ctx->node->op_name,
                     ctx->node->name);
}

// ---- FakeParam ----

static weir_status_t* fake_param_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, weir_attrs_shape(weir_shape_attrs(ctx), "shape"));
}

static weir_status_t* fake_param_cpu(weir_kernel_ctx_t* ctx) {
  const weir_shape_t* shape = weir_attrs_shape(weir_kernel_attrs(ctx), "shape");
  int64_t dims[WEIR_MAX_RANK];
  int rank = WEIR_MAX(shape->rank, 0);
  for (int i = 0; i < rank; ++i) dims[i] = WEIR_MAX(shape->dims[i], 0);
  weir_tensor_t* value = NULL;
  WEIR_TRY(weir_tensor_create_zeros(weir_attrs_type(weir_kernel_attrs(ctx), "dtype"), rank, dims,
                                    &value));
  weir_kernel_set(ctx, 0, value);
  return NULL;
}

#define ARG_OP(op_name)                                                            \
  {                                                                                \
    .name = op_name, .attrs = "T: type; index: int >= 0", .outputs = "output: T",  \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP, .role = WEIR_ROLE_ARG,              \
    .summary = "An argument of the function around it.", .infer_shape = arg_shape, \
    .kernels = WEIR_CPU_KERNEL(.compute = arg_cpu)                                 \
  }
#define RETVAL_OP(op_name)                                                               \
  {                                                                                      \
    .name = op_name, .attrs = "T: type; index: int >= 0", .inputs = "input: T",          \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_CHEAP, .role = WEIR_ROLE_RETVAL,                 \
    .summary = "A result of the function around it.", .infer_shape = weir_shape_fn_none, \
    .kernels = WEIR_CPU_KERNEL(.compute = arg_cpu)                                       \
  }

const weir_op_module_t weir_ops_control_arg = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){ARG_OP("_Arg"),
                                   ARG_OP("_DeviceArg"),
                                   RETVAL_OP("_Retval"),
                                   RETVAL_OP("_DeviceRetval"),
                                   {.name = "FakeParam",
                                    .attrs = "dtype: type; shape: shape",
                                    .outputs = "output: dtype",
                                    .flags = WEIR_OP_CHEAP,
                                    .summary = "Stands for a value that no branch reads.",
                                    .infer_shape = fake_param_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = fake_param_cpu)},
                                   {0}}};
