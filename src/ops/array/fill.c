// fill.c — Fill, Empty, ZerosLike, OnesLike: tensors of one value.
#include "ops/array/common.h"
#include "tensor/cast.h"
#include "tensor/handle.h"

// ---- Fill ----

static weir_status_t* fill_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 1, NULL));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1), 0, NULL));
  const weir_tensor_t* dims = weir_shape_value(ctx, 0);
  for (int64_t i = 0; dims && i < dims->count; ++i) {
    if (weir_tensor_int_at(dims, i) < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Fill dimensions must be >= 0");
    }
  }
  WEIR_TRY(weir_shape_from_value(ctx, 0, &out));
  return weir_shape_set(ctx, 0, out);
}

// Reads a vector of sizes; a scalar counts as a vector of one.
static weir_status_t* read_dims(const weir_tensor_t* t, int64_t dims[WEIR_MAX_RANK],
                                int* out_rank) {
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (t->rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "dims must represent a vector, got shape %s",
                       weir_tensor_shape_text(t, text));
  }
  if (t->count > WEIR_MAX_RANK) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "dims has %lld entries, at most %d dimensions are possible",
                       (long long)t->count, WEIR_MAX_RANK);
  }
  *out_rank = (int)t->count;
  for (int i = 0; i < *out_rank; ++i) {
    dims[i] = weir_tensor_int_at(t, i);
    if (dims[i] < 0) {
      return WEIR_STATUS(INVALID_ARGUMENT, "Dimension %lld must be >= 0", (long long)dims[i]);
    }
  }
  return NULL;
}

static weir_status_t* fill_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* value = weir_kernel_input(ctx, 1);
  char text[WEIR_SHAPE_TEXT_SIZE];
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  WEIR_TRY(read_dims(weir_kernel_input(ctx, 0), dims, &rank));
  if (value->count != 1 || value->rank > 1) {
    return WEIR_STATUS(INVALID_ARGUMENT, "value must represent a scalar, got shape %s",
                       weir_tensor_shape_text(value, text));
  }
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  return weir_move_fill(weir_kernel_pool(ctx), weir_tensor_type(out), value->data, out->data,
                        out->count);
}

static weir_status_t* fill_grad(weir_grad_ctx_t* g) {  // dvalue = Sum(dy)
  weir_edge_t dy = weir_grad_dy(g, 0);
  return weir_grad_set(g, 1, weir_grad_node(g, "Sum", WEIR_EDGES(dy, array_grad_all_axes(g, dy))));
}

// ---- Empty ----

static weir_status_t* empty_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* out = NULL;
  WEIR_TRY(weir_shape_from_value(ctx, 0, &out));
  return weir_shape_set(ctx, 0, out);
}

static weir_status_t* empty_cpu(weir_kernel_ctx_t* ctx) {
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  WEIR_TRY(read_dims(weir_kernel_input(ctx, 0), dims, &rank));
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_kernel_output(ctx, 0, rank, dims, &out));
  if (weir_attrs_bool(weir_kernel_attrs(ctx), "init"))
    weir_move_zero(weir_tensor_type(out), out->data, out->count);
  return NULL;
}

// ---- ZerosLike, OnesLike ----

static weir_status_t* zeros_of_variant(const weir_variant_t* in, weir_variant_t* out) {
  if (!in->object) return NULL;
  if (!in->object->type->zeros_like) {
    return WEIR_STATUS(
        UNIMPLEMENTED,
        "No unary variant unary_op function found for op ZEROS_LIKE Variant type_name: %s",
        in->object->type->type_name);
  }
  void* zeros = NULL;
  WEIR_TRY(in->object->type->zeros_like(in->object, &zeros));
  out->object = zeros;
  return NULL;
}

static weir_status_t* zeros_like_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  if (weir_dtype_is_plain(weir_tensor_type(x))) {
    WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &out));
    weir_move_zero(weir_tensor_type(out), out->data, out->count);
    return NULL;
  }
  WEIR_TRY(weir_kernel_output(ctx, 0, x->rank, x->dims, &out));
  if (x->dtype != WEIR_DTYPE_VARIANT) return NULL;
  for (int64_t i = 0; i < x->count; ++i) {
    WEIR_TRY(zeros_of_variant((const weir_variant_t*)x->data + i, (weir_variant_t*)out->data + i));
  }
  return NULL;
}

static weir_status_t* ones_like_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* x = weir_kernel_input(ctx, 0);
  weir_tensor_t* out = NULL;
  const double one = 1;
  _Alignas(16) char element[16];
  WEIR_TRY(weir_cast_elements(weir_tensor_type(x), element, WEIR_DTYPE_DOUBLE, &one, 1));
  WEIR_TRY(weir_kernel_forward(ctx, 0, 0, x->rank, x->dims, &out));
  return weir_move_fill(weir_kernel_pool(ctx), weir_tensor_type(out), element, out->data,
                        out->count);
}

const weir_op_module_t weir_ops_array_fill = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "Fill",
         .attrs = "T: type; index_type: {int32, int64} = DT_INT32",
         .inputs = "dims: index_type; value: T",
         .outputs = "output: T",
         .summary = "Creates a tensor of a given shape filled with one value.",
         .infer_shape = fill_shape,
         .build_grad = fill_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = fill_cpu, .host_inputs = "dims")},
        {.name = "Empty",
         .attrs = "dtype: type; init: bool = false",
         .inputs = "shape: int32",
         .outputs = "output: dtype",
         .flags = WEIR_OP_STATEFUL,
         .summary = "Creates a tensor whose elements are not set unless init is true.",
         .infer_shape = empty_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = empty_cpu, .host_inputs = "shape")},
        {.name = "ZerosLike",
         .attrs = "T: type",
         .inputs = "x: T",
         .outputs = "y: T",
         .flags = WEIR_OP_NO_GRADIENT,
         .summary = "Creates a tensor of zeros of the same type and shape.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = zeros_like_cpu)},
        {.name = "OnesLike",
         .attrs = "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, "
                  "int64, uint64, "
                  "complex64, complex128, bool}",
         .inputs = "x: T",
         .outputs = "y: T",
         .flags = WEIR_OP_NO_GRADIENT | WEIR_OP_SHAPE_ONLY,
         .summary = "Creates a tensor of ones of the same type and shape.",
         .infer_shape = weir_shape_fn_unchanged,
         .kernels = WEIR_CPU_KERNEL(.compute = ones_like_cpu)},
        {0}}};
