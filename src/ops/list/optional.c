// optional.c — OptionalFromValue, OptionalNone, OptionalHasValue, OptionalGetValue: tensors that
// may be there or not, held by a variant.
#include "ops/list/optional.h"

#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "ops/string/summarize.h"
#include "tensor/accumulate.h"

// Immutable once made.
typedef struct optional_t {
  weir_variant_object_t base;
  bool has_value;
  int count;
  weir_tensor_t* items[];  // |count| references
} optional_t;

// ---- lifetime, sums and zeros ----

static void optional_destroy(void* object) {
  optional_t* optional = object;
  for (int i = 0; i < optional->count; ++i) weir_tensor_release(optional->items[i]);
  weir_free(optional);
}

static weir_status_t* optional_add(const void* a, const void* b, void** out_sum);
static weir_status_t* optional_zeros(const void* object, void** out_zeros);

static weir_status_t* optional_map(const void* object, weir_tensor_map_t map, void** out_object);

static void optional_describe(const void* object, weir_strbuf_t* out);

static const weir_variant_type_t optional_type = {.type_name = "tensorflow::data::Optional",
                                                  .describe = optional_describe,
                                                  .destroy = optional_destroy,
                                                  .add = optional_add,
                                                  .zeros_like = optional_zeros,
                                                  .map = optional_map};

// |count| components, to be set by the caller.
static weir_status_t* optional_create(bool has_value, int count, optional_t** out_optional) {
  optional_t* optional =
      weir_calloc(1, sizeof(*optional) + (size_t)count * sizeof(optional->items[0]));
  if (!optional) return weir_out_of_memory();
  optional->base.type = &optional_type;
  weir_ref_init(&optional->base.ref);
  optional->has_value = has_value;
  optional->count = count;
  *out_optional = optional;
  return NULL;
}

static weir_status_t* optional_add(const void* a, const void* b, void** out_sum) {
  const optional_t* x = a;
  const optional_t* y = b;
  if (x->has_value != y->has_value) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Cannot add optionals because one has a value and the other doesn't.");
  }
  if (x->count != y->count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Cannot add optionals because they have different numbers of components "
                       "(%d vs. %d).",
                       x->count, y->count);
  }
  optional_t* sum = NULL;
  weir_status_t* status = optional_create(x->has_value, x->count, &sum);
  for (int i = 0; i < x->count && !status; ++i) {
    sum->items[i] = weir_tensor_retain(x->items[i]);
    if (x->items[i]->dtype != y->items[i]->dtype ||
        !weir_tensor_same_shape(x->items[i], y->items[i])) {
      status = WEIR_STATUS(INVALID_ARGUMENT,
                           "Cannot add optionals whose components %d differ in type or shape", i);
    } else {
      status = weir_tensor_accumulate(&sum->items[i], y->items[i]);
    }
  }
  if (status) {
    if (sum) weir_variant_release(&sum->base);
    return status;
  }
  *out_sum = sum;
  return NULL;
}

// Zeros of a variant are those of what it holds.
static weir_status_t* zero_variants(const weir_tensor_t* like, weir_tensor_t* zeros) {
  for (int64_t i = 0; i < like->count; ++i) {
    const weir_variant_object_t* object = WEIR_TENSOR_DATA(like, const weir_variant_t)[i].object;
    void* made = NULL;
    if (!object) continue;
    if (!object->type->zeros_like) {
      return WEIR_STATUS(UNIMPLEMENTED, "ZerosLike of %s", object->type->type_name);
    }
    WEIR_TRY(object->type->zeros_like(object, &made));
    WEIR_TENSOR_DATA(zeros, weir_variant_t)[i].object = made;
  }
  return NULL;
}

static weir_status_t* optional_zeros(const void* object, void** out_zeros) {
  const optional_t* optional = object;
  optional_t* zeros = NULL;
  weir_status_t* status = optional_create(optional->has_value, optional->count, &zeros);
  for (int i = 0; i < optional->count && !status; ++i) {
    const weir_tensor_t* item = optional->items[i];
    status =
        weir_tensor_create_zeros(weir_tensor_type(item), item->rank, item->dims, &zeros->items[i]);
    if (!status && item->dtype == WEIR_DTYPE_VARIANT) status = zero_variants(item, zeros->items[i]);
  }
  if (status) {
    if (zeros) weir_variant_release(&zeros->base);
    return status;
  }
  *out_zeros = zeros;
  return NULL;
}

static weir_status_t* optional_map(const void* object, weir_tensor_map_t map, void** out_object) {
  const optional_t* optional = object;
  optional_t* copy = NULL;
  WEIR_TRY(optional_create(optional->has_value, optional->count, &copy));
  weir_status_t* status = NULL;
  for (int i = 0; i < optional->count && !status; ++i)
    status = map.fn(map.arg, optional->items[i], &copy->items[i]);
  if (status) weir_variant_release(&copy->base);
  else *out_object = copy;
  return status;
}

// TensorFlow shows the last component alone.
static void optional_describe(const void* object, weir_strbuf_t* out) {
  const optional_t* optional = object;
  char text[WEIR_SHAPE_TEXT_SIZE];
  if (!optional->has_value || optional->count == 0) {
    weir_strbuf_puts(out, "OptionalVariant<None>");
    return;
  }
  const weir_tensor_t* item = optional->items[optional->count - 1];
  weir_strbuf_printf(out, "OptionalVariant<values: (Tensor<type: %s shape: %s values: ",
                     weir_dtype_name(weir_tensor_type(item)), weir_tensor_shape_text(item, text));
  weir_tensor_summarize(item, 3, out);
  weir_strbuf_puts(out, ">)>");
}

// ---- kernels ----

static weir_status_t* output_optional(weir_kernel_ctx_t* ctx, optional_t* take_optional) {
  weir_tensor_t* tensor = NULL;
  WEIR_TRY(weir_tensor_create_variant(&take_optional->base, &tensor));
  weir_kernel_set(ctx, 0, tensor);
  return NULL;
}

weir_status_t* weir_optional_output(weir_kernel_ctx_t* ctx, weir_tensor_t** take_items, int count) {
  optional_t* optional = NULL;
  WEIR_TRY(optional_create(take_items != NULL, take_items ? count : 0, &optional));
  for (int i = 0; i < optional->count; ++i) {
    optional->items[i] = take_items[i];
    take_items[i] = NULL;
  }
  return output_optional(ctx, optional);
}

static weir_status_t* from_value_cpu(weir_kernel_ctx_t* ctx) {
  optional_t* optional = NULL;
  WEIR_TRY(optional_create(true, ctx->input_count, &optional));
  for (int i = 0; i < ctx->input_count; ++i)
    optional->items[i] = weir_tensor_retain(ctx->inputs[i].tensor);
  return output_optional(ctx, optional);
}

static weir_status_t* none_cpu(weir_kernel_ctx_t* ctx) {
  optional_t* optional = NULL;
  WEIR_TRY(optional_create(false, 0, &optional));
  return output_optional(ctx, optional);
}

static weir_status_t* input_optional(const weir_kernel_ctx_t* ctx, const optional_t** out) {
  const weir_tensor_t* input = weir_kernel_input(ctx, 0);
  if (input->rank != 0) {
    char text[WEIR_SHAPE_TEXT_SIZE];
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input to %s must be a scalar tensor containing an OptionalVariant object, "
                       "got shape %s",
                       ctx->node->op_name, weir_tensor_shape_text(input, text));
  }
  const weir_variant_object_t* object = WEIR_TENSOR_DATA(input, const weir_variant_t)->object;
  if (!object || object->type != &optional_type) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Input to %s must be an OptionalVariant, not '%s'",
                       ctx->node->op_name, object ? object->type->type_name : "<empty>");
  }
  *out = (const optional_t*)object;
  return NULL;
}

static weir_status_t* has_value_cpu(weir_kernel_ctx_t* ctx) {
  const optional_t* optional = NULL;
  WEIR_TRY(input_optional(ctx, &optional));
  return weir_kernel_output_bool(ctx, 0, optional->has_value);
}

static weir_status_t* check_component(const weir_kernel_ctx_t* ctx, const optional_t* optional,
                                      int i) {
  const weir_tensor_t* item = optional->items[i];
  const weir_dtype_t expected = weir_dtype_base(ctx->node->output_types[i]);
  if (weir_tensor_type(item) != expected) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The given optional does not match the expected type for component %d. "
                       "Expected: %s. Actual: %s.",
                       i, weir_dtype_name(expected), weir_dtype_name(weir_tensor_type(item)));
  }
  const weir_shape_t* shape = weir_attrs_list(weir_kernel_attrs(ctx), "output_shapes")->u.shapes[i];
  if (weir_shape_accepts(shape, item->rank, item->dims)) return NULL;
  char text[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "The given optional does not match the expected shape for component %d. "
                     "Actual: %s.",
                     i, weir_tensor_shape_text(item, text));
}

static weir_status_t* get_value_cpu(weir_kernel_ctx_t* ctx) {
  const optional_t* optional = NULL;
  WEIR_TRY(input_optional(ctx, &optional));
  if (!optional->has_value) {
    return WEIR_STATUS(INVALID_ARGUMENT, "The given optional does not have a value.");
  }
  if (optional->count != ctx->output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "The given optional has %d components, expected %d.",
                       optional->count, ctx->output_count);
  }
  for (int i = 0; i < optional->count; ++i) WEIR_TRY(check_component(ctx, optional, i));
  for (int i = 0; i < optional->count; ++i)
    weir_kernel_set(ctx, i, weir_tensor_retain(optional->items[i]));
  return NULL;
}

static weir_status_t* get_value_init(const weir_kernel_init_t* init, void* state) {
  (void)state;
  const size_t shapes = weir_attrs_list(init->node->attrs, "output_shapes")->count;
  if (shapes == (size_t)init->node->output_count) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "output_types and output_shapes must be same length, got: %d and %zu",
                     init->node->output_count, shapes);
}

static weir_status_t* get_value_shape(weir_shape_ctx_t* ctx) {
  const weir_attr_t* shapes = weir_attrs_list(weir_shape_attrs(ctx), "output_shapes");
  if (shapes->count != (size_t)ctx->node->output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "`output_shapes` must be the same length as `output_types` (%zu vs. %d)",
                       shapes->count, ctx->node->output_count);
  }
  for (size_t i = 0; i < shapes->count; ++i)
    WEIR_TRY(weir_shape_set(ctx, (int)i, shapes->u.shapes[i]));
  return NULL;
}

// ---- gradients ----

static weir_status_t* from_value_grad(weir_grad_ctx_t* g) {
  const int count = g->node->input_count;
  weir_arena_t arena = {0};
  const weir_shape_t** shapes = weir_arena_array(&arena, (size_t)count, sizeof(*shapes));
  weir_status_t* status = shapes ? NULL : weir_out_of_memory();
  if (!status) {
    for (int i = 0; i < count; ++i) shapes[i] = weir_grad_shape(g, weir_grad_input(g, i));
    weir_edge_t values = weir_grad_node_with(
        g, "OptionalGetValue", WEIR_EDGES(weir_grad_dy(g, 0)),
        WEIR_ATTRS(weir_attr_types("output_types", g->node->input_types, (size_t)count),
                   weir_attr_shapes("output_shapes", shapes, (size_t)count)));
    for (int i = 0; i < count && !status; ++i)
      status = weir_grad_set(g, i, weir_build_output(values, i));
  }
  weir_arena_free(&arena);
  return status;
}

static weir_status_t* get_value_grad(weir_grad_ctx_t* g) {
  const int count = g->node->output_count;
  weir_arena_t arena = {0};
  weir_edge_t* dys = weir_arena_array(&arena, (size_t)count, sizeof(*dys));
  weir_status_t* status = dys ? NULL : weir_out_of_memory();
  if (!status) {
    for (int i = 0; i < count; ++i) dys[i] = weir_grad_dy(g, i);
    status = weir_grad_set(
        g, 0, weir_grad_node(g, "OptionalFromValue", (weir_edges_t){.items = dys, .count = count}));
  }
  weir_arena_free(&arena);
  return status;
}

const weir_op_module_t weir_ops_list_optional = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "OptionalFromValue",
         .attrs = "Toutput_types: list(type) >= 1",
         .inputs = "components: Toutput_types",
         .outputs = "optional: variant",
         .flags = WEIR_OP_NO_FOLD,
         .summary = "An optional that has a value",
         .infer_shape = weir_shape_fn_scalar,
         .build_grad = from_value_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = from_value_cpu)},
        {.name = "OptionalNone",
         .outputs = "optional: variant",
         .flags = WEIR_OP_NO_FOLD,
         .summary = "An optional without a value",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = none_cpu)},
        {.name = "OptionalHasValue",
         .inputs = "optional: variant",
         .outputs = "has_value: bool",
         .flags = WEIR_OP_NO_FOLD,
         .summary = "Whether an optional has a value",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute = has_value_cpu)},
        {.name = "OptionalGetValue",
         .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
         .inputs = "optional: variant",
         .outputs = "components: output_types",
         .flags = WEIR_OP_NO_FOLD,
         .summary = "The value of an optional",
         .infer_shape = get_value_shape,
         .build_grad = get_value_grad,
         .kernels =
             WEIR_CPU_KERNEL(.compute = get_value_cpu, .state_size = 1, .init = get_value_init)},
        {0}}};
