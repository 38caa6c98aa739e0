// composite.c — CompositeTensorVariantFromComponents, CompositeTensorVariantToComponents: the
// tensors of a ragged, sparse or other composite tensor as one variant, with what it is of.
#include "tensor/composite.h"

#include "op/grad_ctx.h"
#include "op/kernel.h"
#include "op/shape_ctx.h"
#include "tensor/parcel.h"
#include "wire/wire.h"

// ---- the metadata: a CompositeTensorVariantMetadata ----

enum {
  METADATA_SPEC = 1,  // of CompositeTensorVariantMetadata: a TypeSpecProto
  SPEC_CLASS = 1,     // of TypeSpecProto
};

// What TypeSpecProto calls the class of a composite tensor.
static const char* class_name(int64_t number) {
  static const char* const names[] = {"UNKNOWN",
                                      "SPARSE_TENSOR_SPEC",
                                      "INDEXED_SLICES_SPEC",
                                      "RAGGED_TENSOR_SPEC",
                                      "TENSOR_ARRAY_SPEC",
                                      "DATA_DATASET_SPEC",
                                      "DATA_ITERATOR_SPEC",
                                      "OPTIONAL_SPEC",
                                      "PER_REPLICA_SPEC",
                                      "VARIABLE_SPEC",
                                      "ROW_PARTITION_SPEC",
                                      NULL,
                                      "REGISTERED_TYPE_SPEC",
                                      "EXTENSION_TYPE_SPEC"};
  const bool is_known = number >= 0 && number < (int64_t)WEIR_COUNT_OF(names) && names[number];
  return is_known ? names[number] : "class that is not known";
}

static bool read_spec(weir_view_t spec, int64_t* out_class) {
  weir_wire_reader_t field = weir_wire_reader(spec);
  while (weir_wire_next(&field)) {
    if (field.field == SPEC_CLASS) *out_class = weir_wire_int(&field);
  }
  return !field.error;
}

static bool read_class(weir_view_t metadata, int64_t* out_class) {
  weir_wire_reader_t field = weir_wire_reader(metadata);
  bool is_good = true;
  *out_class = 0;
  while (is_good && weir_wire_next(&field)) {
    if (field.field == METADATA_SPEC) is_good = read_spec(field.bytes, out_class);
  }
  return is_good && !field.error;
}

typedef struct composite_state_t {
  weir_view_t metadata;  // borrowed from the node
  int64_t spec_class;
} composite_state_t;

static weir_status_t* init_metadata(const weir_kernel_init_t* init, composite_state_t* s,
                                    const char* name) {
  s->metadata = weir_attrs_string(init->node->attrs, "metadata");
  if (read_class(s->metadata, &s->spec_class)) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Error parsing %s", name);
}

static weir_status_t* from_init(const weir_kernel_init_t* init, void* state) {
  return init_metadata(init, state, "metadata");
}

static weir_status_t* to_init(const weir_kernel_init_t* init, void* state) {
  return init_metadata(init, state, "`metadata`");
}

// ---- kernels ----

// The last item of the parcel is the metadata, a string.
static weir_status_t* from_cpu(weir_kernel_ctx_t* ctx) {
  const composite_state_t* s = ctx->state;
  weir_parcel_t* parcel = NULL;
  weir_tensor_t* out = NULL;
  WEIR_TRY(weir_composite_create(ctx->input_count, s->metadata, &parcel));
  for (int i = 0; i < ctx->input_count; ++i) {
    parcel->items[i] = weir_tensor_retain(ctx->inputs[i].tensor);
  }
  WEIR_TRY(weir_tensor_create_variant(&parcel->base, &out));
  weir_kernel_set(ctx, 0, out);
  return NULL;
}

static weir_status_t* check_encoded(const composite_state_t* s, const weir_parcel_t* parcel,
                                    const weir_kernel_ctx_t* ctx) {
  int64_t has = 0;
  if (!read_class(weir_composite_metadata(parcel), &has) || has != s->spec_class) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Expected a %s (based on `type_spec`), but `encoded` contains a %s",
                       class_name(s->spec_class), class_name(has));
  }
  if (parcel->count - 1 != ctx->output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Encoded value has %d tensor components; expected %d components based on "
                       "type_spec",
                       parcel->count - 1, ctx->output_count);
  }
  for (int i = 0; i < ctx->output_count; ++i) {
    const weir_dtype_t got = weir_tensor_type(parcel->items[i]);
    if (got == ctx->node->output_types[i]) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "Tensor component %d had dtype %s; expected dtype %s", i,
                       weir_dtype_name(got), weir_dtype_name(ctx->node->output_types[i]));
  }
  return NULL;
}

static weir_status_t* to_cpu(weir_kernel_ctx_t* ctx) {
  const weir_tensor_t* encoded = weir_kernel_input(ctx, 0);
  const weir_parcel_t* parcel =
      encoded->count > 0 ? weir_parcel_at(encoded, 0, &weir_composite_variant_type) : NULL;
  if (!parcel) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "The input `encoded` is not a valid CompositeTensorVariant tensor, got %s",
                       encoded->count > 0 ? weir_variant_name_at(encoded, 0) : "an empty one");
  }
  WEIR_TRY(check_encoded(ctx->state, parcel, ctx));
  for (int i = 0; i < ctx->output_count; ++i) {
    weir_kernel_set(ctx, i, weir_tensor_retain(parcel->items[i]));
  }
  return NULL;
}

// ---- gradients: the gradients of the components are those of the composite tensor ----

static weir_status_t* from_grad(weir_grad_ctx_t* g) {
  if (!weir_grad_has_dy(g, 0)) return NULL;
  weir_edge_t parts = weir_grad_node_like(g, "CompositeTensorVariantToComponents",
                                          WEIR_EDGES(weir_grad_dy_value(g, 0).values),
                                          WEIR_NAMES("metadata", "Tcomponents"));
  for (int i = 0; i < g->node->input_count; ++i) {
    WEIR_TRY(weir_grad_set(g, i, (weir_edge_t){.node = parts.node, .index = i}));
  }
  return NULL;
}

static weir_status_t* to_grad(weir_grad_ctx_t* g) {
  const int count = g->node->output_count;
  weir_edge_t* parts = weir_alloc_array((size_t)WEIR_MAX(count, 1), sizeof(*parts));
  if (!parts) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) {
    // What has no gradient, rows say, is part of the composite one as it is; numbers get zeros.
    bool is_number = weir_dtype_is_floating(g->node->output_types[i]) ||
                     weir_dtype_is_complex(g->node->output_types[i]);
    bool is_dy = is_number || weir_grad_has_dy(g, i);
    parts[i] = is_dy ? weir_grad_dy(g, i) : weir_grad_output(g, i);
  }
  weir_edge_t whole =
      weir_grad_node_like(g, "CompositeTensorVariantFromComponents",
                          (weir_edges_t){.items = parts, .count = count}, WEIR_NAMES("metadata"));
  weir_free(parts);
  return weir_grad_set(g, 0, whole);
}

const weir_op_module_t weir_ops_list_composite = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "CompositeTensorVariantFromComponents",
         .attrs = "metadata: string; Tcomponents: list(type) >= 0",
         .inputs = "components: Tcomponents",
         .outputs = "encoded: variant",
         .summary = "The tensors of a composite tensor as one variant",
         .infer_shape = weir_shape_fn_scalar,
         .build_grad = from_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = from_cpu, .init = from_init,
                                    .state_size = sizeof(composite_state_t))},
        {.name = "CompositeTensorVariantToComponents",
         .attrs = "metadata: string; Tcomponents: list(type) >= 0",
         .inputs = "encoded: variant",
         .outputs = "components: Tcomponents",
         .summary = "The tensors of the composite tensor that a variant is",
         .infer_shape = weir_shape_fn_unknown,
         .build_grad = to_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = to_cpu, .init = to_init,
                                    .state_size = sizeof(composite_state_t))},
        {0}}};
