// pass_testing.h — What the tests of passes share: a small registry, a graph under construction,
// and ways to look at it.
#ifndef WEIR_PASS_PASS_TESTING_H_
#define WEIR_PASS_PASS_TESTING_H_

#include <stdio.h>

#include "op/simplify.h"
#include "pass/pass.h"
#include "testing/cmocka.h"

// ---- ops ----

static weir_status_t* const_shape(weir_shape_ctx_t* ctx) {
  const weir_tensor_t* value = weir_attrs_tensor(ctx->node->attrs, "value");
  return weir_shape_set_dims(ctx, 0, value->rank, value->dims);
}

static weir_status_t* placeholder_shape(weir_shape_ctx_t* ctx) {
  return weir_shape_set(ctx, 0, weir_attrs_shape(ctx->node->attrs, "shape"));
}

static weir_status_t* shape_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t* in = weir_shape_input(ctx, 0);
  WEIR_TRY(weir_shape_set_vector(ctx, 0, in->rank));
  ctx->output_values_as_shape[0] = in->rank >= 0 ? in : NULL;
  return NULL;
}

static weir_status_t* fill_shape(weir_shape_ctx_t* ctx) {
  const weir_tensor_t* dims = ctx->input_values[0];
  if (!dims) return weir_shape_fn_unknown(ctx);
  int64_t size = weir_tensor_int_at(dims, 0);
  return weir_shape_set_dims(ctx, 0, 1, &size);
}

static weir_status_t* two_shape(weir_shape_ctx_t* ctx) {
  for (int i = 0; i < ctx->node->output_count; ++i)
    WEIR_TRY(weir_shape_set(ctx, i, weir_shape_input(ctx, 0)));
  return NULL;
}

static weir_status_t* merge_shape(weir_shape_ctx_t* ctx) {
  bool is_same = weir_shape_equal(weir_shape_input(ctx, 0), weir_shape_input(ctx, 1));
  WEIR_TRY(weir_shape_set_scalar(ctx, 1));
  return weir_shape_set(ctx, 0, is_same ? weir_shape_input(ctx, 0) : &weir_shape_unknown);
}

// Neg(Neg(x)) = x.
static weir_status_t* neg_simplify(weir_simplify_ctx_t* ctx) {
  const weir_node_def_t* inner = ctx->builder->vtable->node(ctx->builder, ctx->inputs[0]);
  if (strcmp(inner->op_name, "Neg") == 0)
    ctx->replacement = ctx->builder->vtable->input(ctx->builder, ctx->inputs[0], 0);
  return NULL;
}

// Sub(x, y) = Add(x, Neg(y)): adds two nodes.
static weir_status_t* sub_simplify(weir_simplify_ctx_t* ctx) {
  weir_edge_t neg = weir_build(ctx->builder, "Neg", WEIR_EDGES(ctx->inputs[1]), WEIR_NO_ATTRS);
  ctx->replacement =
      weir_build(ctx->builder, "Add", WEIR_EDGES(ctx->inputs[0], neg), WEIR_NO_ATTRS);
  return NULL;
}

// Mul(x, 0) = 0, whatever the shape: drops x. Mul(x, 1) = x.
static weir_status_t* mul_simplify(weir_simplify_ctx_t* ctx) {
  if (weir_simplify_is_all(ctx, 1, 0)) {
    ctx->replacement = weir_build_scalar(ctx->builder, WEIR_DTYPE_FLOAT, 0);
  } else if (weir_simplify_is_all(ctx, 1, 1)) {
    ctx->replacement = ctx->inputs[0];
  }
  return NULL;
}

#define UNARY(op_name, ...)                                                   \
  {                                                                           \
    .name = op_name, .attrs = "T: type", .inputs = "x: T", .outputs = "y: T", \
    .infer_shape = weir_shape_fn_unchanged, __VA_ARGS__                       \
  }
#define BINARY(op_name, ...)                                                        \
  {                                                                                 \
    .name = op_name, .attrs = "T: type", .inputs = "x: T; y: T", .outputs = "z: T", \
    .infer_shape = weir_shape_fn_broadcast, __VA_ARGS__                             \
  }

static const weir_op_module_t testing_module = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "_Arg",
         .attrs = "T: type; index: int",
         .outputs = "output: T",
         .flags = WEIR_OP_STATEFUL,
         .role = WEIR_ROLE_ARG,
         .infer_shape = weir_shape_fn_unknown},
        {.name = "_Retval",
         .attrs = "T: type; index: int",
         .inputs = "input: T",
         .flags = WEIR_OP_STATEFUL,
         .role = WEIR_ROLE_RETVAL,
         .infer_shape = weir_shape_fn_none},
        {.name = "Const",
         .attrs = "value: tensor; dtype: type",
         .outputs = "output: dtype",
         .role = WEIR_ROLE_CONST,
         .infer_shape = const_shape},
        {.name = "Placeholder",
         .attrs = "dtype: type; shape: shape = { unknown_rank: true }",
         .outputs = "output: dtype",
         .role = WEIR_ROLE_PLACEHOLDER,
         .infer_shape = placeholder_shape},
        UNARY("Identity", .flags = WEIR_OP_PASS_THROUGH),
        UNARY("Neg", .simplify = neg_simplify),
        UNARY("Guard", .flags = WEIR_OP_NO_FOLD),
        UNARY("Effect", .flags = WEIR_OP_STATEFUL),
        UNARY("Enter", .role = WEIR_ROLE_ENTER),
        UNARY("Exit", .role = WEIR_ROLE_EXIT),
        UNARY("NextIteration", .role = WEIR_ROLE_NEXT_ITERATION),
        BINARY("Add", .flags = WEIR_OP_COMMUTATIVE),
        BINARY("Mul", .simplify = mul_simplify),
        BINARY("Sub", .simplify = sub_simplify),
        BINARY("Div", .summary = "Not commutative."),
        {.name = "Shape",
         .attrs = "T: type",
         .inputs = "x: T",
         .outputs = "y: int32",
         .flags = WEIR_OP_SHAPE_ONLY,
         .infer_shape = shape_shape},
        {.name = "Fill",
         .attrs = "T: type",
         .inputs = "dims: int32; value: T",
         .outputs = "y: T",
         .infer_shape = fill_shape},
        {.name = "Two",
         .attrs = "T: type",
         .inputs = "x: T",
         .outputs = "y: T; z: T",
         .infer_shape = two_shape},
        {.name = "Switch",
         .attrs = "T: type",
         .inputs = "data: T; pred: bool",
         .outputs = "f: T; t: T",
         .role = WEIR_ROLE_SWITCH,
         .infer_shape = two_shape},
        {.name = "Merge",
         .attrs = "T: type; N: int >= 1",
         .inputs = "inputs: N * T",
         .outputs = "output: T; index: int32",
         .role = WEIR_ROLE_MERGE,
         .infer_shape = merge_shape},
        {.name = "Variable",
         .attrs = "dtype: type; shape: shape",
         .outputs = "ref: Ref(dtype)",
         .flags = WEIR_OP_STATEFUL,
         .role = WEIR_ROLE_VARIABLE,
         .infer_shape = placeholder_shape},
        {.name = "Assign",
         .attrs = "T: type",
         .inputs = "ref: Ref(T); value: T",
         .outputs = "out: Ref(T)",
         .infer_shape = weir_shape_fn_unchanged},
        {.name = "NoOp", .role = WEIR_ROLE_NO_OP, .infer_shape = weir_shape_fn_none},
        {.name = "PartitionedCall",
         .attrs = "Tin: list(type); Tout: list(type); f: func",
         .inputs = "args: Tin",
         .outputs = "output: Tout",
         .infer_shape = weir_shape_fn_unknown},
        {.name = "StatefulPartitionedCall",
         .attrs = "Tin: list(type); Tout: list(type); f: func",
         .inputs = "args: Tin",
         .outputs = "output: Tout",
         .flags = WEIR_OP_STATEFUL,
         .infer_shape = weir_shape_fn_unknown},
        {0}}};

// ---- a graph under construction ----

typedef struct testing_t {
  weir_registry_t* registry;
  weir_graph_t* graph;
  weir_graph_t* copy;  // of prune
  weir_node_t** targets;
} testing_t;

static inline void check_ok(weir_status_t* status) {
  if (status) fail_msg("%s", weir_status_message(status));
}

static inline void check_error(weir_status_t* status, weir_code_t code, const char* text) {
  assert_int_equal(weir_status_code(status), code);
  if (!strstr(weir_status_message(status), text))
    fail_msg("'%s' not in '%s'", text, weir_status_message(status));
  weir_status_destroy(status);
}

static inline int testing_setup(void** state) {
  testing_t* t = weir_calloc(1, sizeof(*t));
  *state = t;
  const weir_op_module_t* const modules[] = {&testing_module, NULL};
  check_ok(weir_registry_create(modules, &t->registry));
  check_ok(weir_graph_new(t->registry, &t->graph));
  return 0;
}

static inline int testing_teardown(void** state) {
  testing_t* t = *state;
  weir_graph_unref(t->copy);
  weir_graph_unref(t->graph);
  weir_registry_destroy(t->registry);
  weir_free(t);
  return 0;
}

static inline weir_edge_t edge_of(weir_node_t* node, int index) {
  return (weir_edge_t){.node = node, .index = index};
}

static inline weir_node_t* add_with(weir_graph_t* graph, const char* op, const char* name,
                                    weir_edges_t inputs, weir_attrs_t attrs) {
  weir_node_params_t params = {.op = op, .name = name, .inputs = inputs, .attrs = attrs};
  weir_node_t* node = NULL;
  check_ok(weir_graph_add(graph, &params, &node));
  return node;
}

// Output 0 of a new node.
#define ADD(graph, op, name, ...) \
  edge_of(add_with((graph), (op), (name), WEIR_EDGES(__VA_ARGS__), WEIR_NO_ATTRS), 0)

static inline weir_edge_t add_tensor(weir_graph_t* graph, const char* name, weir_dtype_t dtype,
                                     int rank, int64_t count, const void* data) {
  weir_tensor_t* tensor = NULL;
  check_ok(weir_tensor_create_from(dtype, rank, &count, data, &tensor));
  weir_attrs_t attrs =
      WEIR_ATTRS(weir_attr_type("dtype", dtype), weir_attr_tensor("value", tensor));
  weir_node_t* node = add_with(graph, "Const", name, WEIR_NO_EDGES, attrs);
  weir_tensor_release(tensor);
  return edge_of(node, 0);
}

static inline weir_edge_t add_float(weir_graph_t* graph, const char* name, float value) {
  return add_tensor(graph, name, WEIR_DTYPE_FLOAT, 0, 0, &value);
}

static inline weir_edge_t add_placeholder(weir_graph_t* graph, const char* name, weir_dtype_t dtype,
                                          const weir_shape_t* shape) {
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", dtype), weir_attr_shape("shape", shape));
  return edge_of(add_with(graph, "Placeholder", name, WEIR_NO_EDGES, attrs), 0);
}

static inline const weir_shape_t* vector_shape(weir_graph_t* graph, int64_t size) {
  return weir_shape_make(&graph->arena, 1, &size);
}

static inline void add_retval(weir_graph_t* graph, const char* name, weir_edge_t edge, int index) {
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_int("index", index));
  add_with(graph, "_Retval", name, (weir_edges_t){.items = &edge, .count = 1}, attrs);
}

// ---- looking at a graph ----

static inline weir_node_t* find(const weir_graph_t* graph, const char* name) {
  weir_node_t* node = weir_graph_find(graph, weir_view_of(name));
  if (!node) fail_msg("no node '%s'", name);
  return node;
}

static inline bool has(const weir_graph_t* graph, const char* name) {
  return weir_graph_find(graph, weir_view_of(name)) != NULL;
}

// Asserts that input |index| of |node| is |text|: "name:output", or "^name" for control input
// |index|.
static inline void check_input(const weir_graph_t* graph, const char* node, int index,
                               const char* text) {
  weir_node_t* n = find(graph, node);
  char seen[256];
  if (text[0] == '^') {
    assert_true(index < n->control_count);
    snprintf(seen, sizeof(seen), "^%s", n->control_inputs[index]->def.name);
  } else {
    assert_true(index < n->def.input_count);
    snprintf(seen, sizeof(seen), "%s:%d", n->inputs[index].node->def.name, n->inputs[index].index);
  }
  assert_string_equal(seen, text);
}

static inline float constant_float(const weir_graph_t* graph, const char* name) {
  const weir_tensor_t* value = weir_edge_constant(edge_of(find(graph, name), 0));
  assert_non_null(value);
  return WEIR_TENSOR_DATA(value, const float)[0];
}

#endif  // WEIR_PASS_PASS_TESTING_H_
