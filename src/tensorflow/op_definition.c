// op_definition.c — ops.h: ops that programs define, made ops of the process's registry.
#include "graph/graph_internal.h"
#include "op/shape_ctx.h"
#include "ops/builtin_ops.h"
#include "tensorflow/c/ops.h"
#include "tensorflow/internal.h"
#include "tensorflow/kernel.h"

typedef void (*shape_fn_t)(TF_ShapeInferenceContext* ctx, TF_Status* status);

struct TF_OpDefinitionBuilder {
  weir_op_def_t rows[2];  // the definition and the end of the table; first, for infer_shape
  weir_op_module_t module;
  weir_arena_t arena;  // of the texts
  shape_fn_t shape_fn;
  bool is_exhausted;  // there was no memory for a text
};

static const char* or_empty(const char* text) { return text ? text : ""; }

TF_OpDefinitionBuilder* TF_NewOpDefinitionBuilder(const char* op_name) {
  TF_OpDefinitionBuilder* builder = weir_calloc(1, sizeof(*builder));
  if (!builder) return NULL;
  builder->rows[0].name = weir_arena_printf(&builder->arena, "%s", op_name);
  builder->is_exhausted = !builder->rows[0].name;
  return builder;
}

void TF_DeleteOpDefinitionBuilder(TF_OpDefinitionBuilder* builder) {
  if (!builder) return;
  weir_arena_free(&builder->arena);
  weir_free(builder);
}

// ---- filling ----

// "first; second": as definitions of our own are written.
static void add_spec(TF_OpDefinitionBuilder* builder, const char** specs, const char* spec) {
  const char* before = or_empty(*specs);
  const char* joined =
      weir_arena_printf(&builder->arena, "%s%s%s", before, *before ? "; " : "", spec);
  if (joined) *specs = joined;
  else builder->is_exhausted = true;
}

void TF_OpDefinitionBuilderAddAttr(TF_OpDefinitionBuilder* builder, const char* attr_spec) {
  add_spec(builder, &builder->rows[0].attrs, attr_spec);
}
void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder* builder, const char* input_spec) {
  add_spec(builder, &builder->rows[0].inputs, input_spec);
}
void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder* builder, const char* output_spec) {
  add_spec(builder, &builder->rows[0].outputs, output_spec);
}

static void set_flag(TF_OpDefinitionBuilder* builder, weir_op_flags_t flag, bool is_on) {
  if (is_on) builder->rows[0].flags |= flag;
  else builder->rows[0].flags &= ~flag;
}

void TF_OpDefinitionBuilderSetIsCommutative(TF_OpDefinitionBuilder* builder, bool is_commutative) {
  set_flag(builder, WEIR_OP_COMMUTATIVE, is_commutative);
}
void TF_OpDefinitionBuilderSetIsAggregate(TF_OpDefinitionBuilder* builder, bool is_aggregate) {
  set_flag(builder, WEIR_OP_AGGREGATE, is_aggregate);
}
void TF_OpDefinitionBuilderSetIsStateful(TF_OpDefinitionBuilder* builder, bool is_stateful) {
  set_flag(builder, WEIR_OP_STATEFUL, is_stateful);
}
void TF_OpDefinitionBuilderSetAllowsUninitializedInput(TF_OpDefinitionBuilder* builder,
                                                       bool allows_uninitialized_input) {
  set_flag(builder, WEIR_OP_UNINITIALIZED_INPUT, allows_uninitialized_input);
}

void TF_OpDefinitionBuilderDeprecated(TF_OpDefinitionBuilder* builder, int version,
                                      const char* explanation) {
  const char* summary = weir_arena_printf(&builder->arena, "Deprecated since version %d: %s",
                                          version, or_empty(explanation));
  if (summary) builder->rows[0].summary = summary;
  else builder->is_exhausted = true;
}

void TF_OpDefinitionBuilderSetShapeInferenceFunction(TF_OpDefinitionBuilder* builder,
                                                     shape_fn_t shape_inference_func) {
  builder->shape_fn = shape_inference_func;
}

// ---- registering ----

// The shape function of all such ops: calls the program's.
static weir_status_t* infer_shape(weir_shape_ctx_t* ctx) {
  const TF_OpDefinitionBuilder* builder = (const void*)ctx->node->op->def;
  TF_Status* said = TF_NewStatus();
  builder->shape_fn((TF_ShapeInferenceContext*)ctx, said);
  weir_status_t* status = tf_status_to_weir(said);
  TF_DeleteStatus(said);
  return status;
}

static weir_status_t* add_op(TF_OpDefinitionBuilder* builder) {
  if (builder->is_exhausted) return weir_out_of_memory();
  builder->rows[0].infer_shape = builder->shape_fn ? infer_shape : weir_shape_fn_unknown;
  builder->module = (weir_op_module_t){.file = "TF_RegisterOpDefinition", .ops = builder->rows};
  const weir_op_module_t* const modules[] = {&builder->module, NULL};
  WEIR_TRY(weir_registry_builtin_add(modules));
  return NULL;  // the registry points into |builder| from now on
}

void TF_RegisterOpDefinition(TF_OpDefinitionBuilder* builder, TF_Status* status) {
  const char* name = builder->rows[0].name;
  if (tf_status_take(status, add_op(builder))) tf_status_take(status, tf_kernels_of_new_op(name));
  else TF_DeleteOpDefinitionBuilder(builder);
}
