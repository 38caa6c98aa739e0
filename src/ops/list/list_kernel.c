// list_kernel.c — TensorLists as inputs and outputs of kernels.
#include "ops/list/list_kernel.h"

weir_status_t* weir_list_input(weir_kernel_ctx_t* ctx, int i, const weir_list_t** out_list) {
  const weir_tensor_t* t = ctx->inputs[i].tensor;
  if (t->rank != 0) {
    char shape[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT, "Input list must be a scalar saw: %s",
                       weir_tensor_shape_text(t, shape));
  }
  const weir_variant_object_t* object =
      t->dtype == WEIR_DTYPE_VARIANT ? WEIR_TENSOR_DATA(t, const weir_variant_t)->object : NULL;
  if (!object || object->type != &weir_list_type) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input handle is not a list. Saw: '%s'",
                       object ? object->type->type_name : "<empty>");
  }
  *out_list = (const weir_list_t*)object;
  return NULL;
}

weir_status_t* weir_list_input_typed(weir_kernel_ctx_t* ctx, int i, weir_dtype_t dtype,
                                     const weir_list_t** out_list) {
  WEIR_TRY(weir_list_input(ctx, i, out_list));
  if ((*out_list)->dtype == dtype) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid data types; op elements %s but list elements %s",
                     weir_dtype_name(dtype), weir_dtype_name((*out_list)->dtype));
}

weir_status_t* weir_list_output(weir_kernel_ctx_t* ctx, int i, weir_list_t* take_list) {
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_tensor_create_variant(&take_list->base, &tensor));
  weir_kernel_set(ctx, i, tensor);
  return NULL;
}

weir_status_t* weir_list_forward(weir_kernel_ctx_t* ctx, int from, int to, weir_list_t** out_list) {
  weir_tensor_t* t = ctx->inputs[from].tensor;
  weir_list_t* list = (weir_list_t*)WEIR_TENSOR_DATA(t, weir_variant_t)->object;
  if (weir_tensor_is_sole(t) && weir_ref_is_one(&list->base.ref)) {
    weir_kernel_set(ctx, to, weir_kernel_take_input(ctx, from));
    *out_list = list;
    return NULL;
  }
  weir_list_t* copy = NULL;
  WEIR_TRY(weir_list_copy(list, &copy));
  *out_list = copy;
  return weir_list_output(ctx, to, copy);
}
