// iterator_next.c — IteratorGetNext, IteratorGetNextSync, IteratorGetNextAsOptional: the next
// element.
#include "ops/data/background_kernel.h"
#include "ops/data/iterator_resource.h"
#include "ops/list/optional.h"

weir_status_t* weir_element_check(weir_attrs_t attrs, weir_tensor_t* const* items, int count) {
  weir_element_spec_t spec;
  WEIR_TRY(weir_element_spec_of(attrs, &spec));
  if (count != spec.count)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of components does not match: expected %d types but got %d.",
                       spec.count, count);
  for (int i = 0; i < count; ++i) {
    weir_dtype_t got = weir_tensor_type(items[i]);
    if (got != spec.types[i])
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Data type mismatch at component %d: expected %s but got %s.", i,
                         weir_dtype_name(spec.types[i]), weir_dtype_name(got));
  }
  for (int i = 0; i < count; ++i) {
    if (weir_shape_accepts(spec.shapes[i], items[i]->rank, items[i]->dims)) continue;
    char text[WEIR_SHAPE_TEXT_SIZE];
    weir_strbuf_t want = {0};
    weir_shape_append(spec.shapes[i], &want);
    weir_status_t* status = WEIR_STATUS(
        INVALID_ARGUMENT, "Incompatible shapes at component %d: expected %s but got %s.", i,
        want.data, weir_tensor_shape_text(items[i], text));
    weir_strbuf_free(&want);
    return status;
  }
  return NULL;
}

// |out_element| is NULL at the end.
static weir_status_t* pull(weir_kernel_ctx_t* ctx, weir_tensor_t*** out_element, int* out_count) {
  weir_resource_t* resource = NULL;
  WEIR_TRY(weir_kernel_resource(ctx, 0, &weir_iterator_resource_type, &resource));
  weir_iterator_resource_t* iterator = (weir_iterator_resource_t*)resource;
  int count = weir_iterator_resource_width(iterator);
  weir_tensor_t** element = weir_element_create(count);
  bool is_end = false;
  weir_status_t* status =
      element ? weir_iterator_resource_next(iterator, ctx->step->cancel, element, &is_end)
              : weir_out_of_memory();
  if (!status && !is_end) status = weir_element_check(weir_kernel_attrs(ctx), element, count);
  weir_resource_release(resource);
  if (status || is_end) {
    weir_element_free(element, count);
    element = NULL;
  }
  *out_element = element;
  *out_count = count;
  return status;
}

static weir_status_t* next(weir_kernel_ctx_t* ctx) {
  weir_tensor_t** element = NULL;
  int count = 0;
  WEIR_TRY(pull(ctx, &element, &count));
  if (!element) return WEIR_STATUS(OUT_OF_RANGE, "End of sequence");
  for (int i = 0; i < count; ++i) weir_kernel_set(ctx, i, element[i]);
  weir_free(element);  // its tensors are the kernel's now
  return NULL;
}

static weir_status_t* next_as_optional(weir_kernel_ctx_t* ctx) {
  weir_tensor_t** element = NULL;
  int count = 0;
  WEIR_TRY(pull(ctx, &element, &count));
  weir_status_t* status = weir_optional_output(ctx, element, count);
  weir_element_free(element, count);
  return status;
}

static void next_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, next);
}

static void next_as_optional_cpu(weir_kernel_ctx_t* ctx, weir_done_t done) {
  weir_background_kernel(ctx, done, next_as_optional);
}

weir_status_t* weir_iterator_next_shape(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->input_count; ++i)
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, i), 0, NULL));
  return weir_element_shape(ctx);
}

#define NEXT(op)                                                                                   \
  {                                                                                                \
    .name = op, .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",         \
    .inputs = "iterator: resource", .outputs = "components: output_types",                         \
    .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | WEIR_OP_UNBOUNDED,       \
    .summary = "The next element of an iterator; OUT_OF_RANGE after the last",                     \
    .infer_shape = weir_iterator_next_shape, .kernels = WEIR_CPU_KERNEL(.compute_async = next_cpu) \
  }

const weir_op_module_t weir_ops_data_iterator_next = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        NEXT("IteratorGetNext"),
        NEXT("IteratorGetNextSync"),
        {.name = "IteratorGetNextAsOptional",
         .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
         .inputs = "iterator: resource",
         .outputs = "optional: variant",
         .flags = WEIR_OP_STATEFUL | WEIR_OP_NO_GRADIENT | WEIR_OP_HOST_ONLY | WEIR_OP_UNBOUNDED,
         .summary = "The next element of an iterator; an empty optional after the last",
         .infer_shape = weir_shape_fn_scalar,
         .kernels = WEIR_CPU_KERNEL(.compute_async = next_as_optional_cpu)},
        {0}}};
