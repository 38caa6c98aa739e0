// map_variable.c — _MapVariable: a variable whose value lies in a file.
#include "base/alloc.h"
#include "file/mapping.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/state/find_variable.h"

static weir_status_t* map_file(const weir_kernel_ctx_t* ctx, weir_tensor_t** out_tensor) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  const weir_dtype_t dtype = weir_attrs_type(attrs, "dtype");
  const weir_shape_t* shape = weir_attrs_shape(attrs, "shape");
  const weir_view_t path = weir_attrs_string(attrs, "path");
  int64_t count = 0;
  weir_mapping_t* mapping = NULL;
  if (!weir_shape_is_full(shape) || !weir_dtype_is_plain(dtype))
    return WEIR_STATUS(INVALID_ARGUMENT, "%s: needs a known shape and numbers, got %s",
                       ctx->node->name, weir_dtype_name(dtype));
  WEIR_TRY(weir_shape_count(dtype, shape->rank, shape->dims, &count));
  char* text = weir_strndup(path.data ? path.data : "", path.size);
  if (!text) return weir_out_of_memory();
  weir_status_t* status =
      weir_mapping_create_shared(text, (size_t)count * weir_dtype_size(dtype), &mapping);
  weir_free(text);
  return status ? status
                : weir_mapping_to_tensor(mapping, dtype, shape->rank, shape->dims, out_tensor);
}

static weir_status_t* map_cpu(weir_kernel_ctx_t* ctx) {
  const weir_dtype_t dtype = weir_attrs_type(weir_kernel_attrs(ctx), "dtype");
  weir_variable_t* variable = NULL;
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_state_find_or_create(ctx, dtype, &variable));
  weir_status_t* status = NULL;
  if (variable->is_ref) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s: a reference variable cannot lie in a file",
                         ctx->node->name);
  } else if (variable->dtype != dtype) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s: the variable is of type %s, not %s",
                         ctx->node->name, weir_dtype_name(variable->dtype), weir_dtype_name(dtype));
  } else {
    status = map_file(ctx, &tensor);
    if (!status) weir_variable_put_in_file(variable, tensor);
  }
  weir_resource_release(&variable->base);
  return status;
}

static weir_status_t* map_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_with_rank(ctx, weir_shape_input(ctx, 0), 0, NULL);
}

const weir_op_module_t weir_ops_state_map_variable = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "_MapVariable",
         .summary = "Gives a variable its value in a file, which is made where there is none",
         .attrs = "dtype: type; shape: shape; path: string",
         .inputs = "resource: resource",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_UNBOUNDED | WEIR_OP_NO_GRADIENT,
         .infer_shape = map_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = map_cpu)},
        {0}}};
