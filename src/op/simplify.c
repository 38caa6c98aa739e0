// simplify.c — What algebraic rewritings of single nodes share.
#include "op/simplify.h"

#include "tensor/cast.h"

bool weir_simplify_is_all(const weir_simplify_ctx_t* ctx, int i, double value) {
  const weir_tensor_t* tensor = ctx->builder->vtable->constant(ctx->builder, ctx->inputs[i]);
  if (!tensor || tensor->count == 0) return false;
  weir_dtype_t dtype = weir_tensor_type(tensor);
  if (!weir_dtype_is_plain(dtype) || weir_dtype_is_complex(dtype)) return false;
  size_t size = weir_dtype_size(dtype);
  for (int64_t k = 0; k < tensor->count; ++k) {
    double element = 0;
    const char* at = (const char*)tensor->data + (size_t)k * size;
    if (!weir_element_to_double(dtype, at, &element) || element != value) return false;
  }
  return true;
}

weir_status_t* weir_simplify_to_input(weir_simplify_ctx_t* ctx, int i) {
  weir_builder_t* b = ctx->builder;
  weir_edge_t input = ctx->inputs[i];
  if (!ctx->self.node || weir_dtype_is_ref(ctx->node->input_types[i])) return NULL;
  if (weir_build_dtype(b, input) != weir_dtype_base(ctx->node->output_types[0])) return NULL;
  const weir_shape_t* from = weir_build_shape(b, input);
  const weir_shape_t* to = weir_build_shape(b, ctx->self);
  if (!weir_shape_is_full(from) || !weir_shape_equal(from, to)) return NULL;
  ctx->replacement = input;
  return NULL;
}
