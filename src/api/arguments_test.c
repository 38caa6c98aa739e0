// arguments_test.c — Counts below zero, outputs that a node lacks, and names and nodes that are
// missing in a list are told of, by the name of the call or of the node.
#include "api/scope.h"
#include "testing/world.h"
#include "weir/layer.h"
#include "weir/ops.h"
#include "weir/plugin.h"

static weir_edge_t beyond(weir_scope_t* s) {
  return (weir_edge_t){weir_const_float(weir_scope_name(s, "x"), 1).node, 7};
}

static void edges_below_zero(weir_scope_t* s) {
  weir_edge_t x = weir_const_float(s, 1);
  weir_add_n(s, &x, -1);
}
static void nodes_below_zero(weir_scope_t* s) { weir_scope_after(s, NULL, -1); }
static void inputs_below_zero(weir_scope_t* s) { weir_scope_node(s, "NoOp", NULL, -1, NULL, 0); }
static void attrs_below_zero(weir_scope_t* s) { weir_scope_node(s, "NoOp", NULL, 0, NULL, -1); }
static void ys_below_zero(weir_scope_t* s) {
  weir_edge_t x = weir_const_float(s, 1), dx;
  weir_scope_fail(s, weir_gradients(s, &x, -1, &x, 1, NULL, &dx));
}
static void xs_below_zero(weir_scope_t* s) {
  weir_edge_t x = weir_const_float(s, 1), dx;
  weir_scope_fail(s, weir_gradients(s, &x, 1, &x, -1, NULL, &dx));
}
static void input_beyond(weir_scope_t* s) { weir_neg(s, beyond(s)); }
static void initial_beyond(weir_scope_t* s) { weir_variable(s, "v", beyond(s)); }
static void layer_beyond(weir_scope_t* s) { weir_layer_flatten(s, beyond(s)); }
static void node_in_list(weir_scope_t* s) { weir_group(s, "all", (weir_node_t*[]){NULL}, 1); }
static void collected(weir_scope_t* s) { weir_scope_collect(s, "mine", WEIR_NO_EDGE); }
static void function_name(weir_scope_t* s) {
  weir_edge_t x = weir_const_float(s, 1);
  weir_while(s, &x, 1, NULL, "body");
}
static void attribute_name(weir_scope_t* s) {
  weir_scope_node(s, "NoOp", NULL, 0, &(weir_attr_arg_t){.kind = WEIR_ARG_INT}, 1);
}
static void attribute_text(weir_scope_t* s) {
  weir_scope_node(s, "NoOp", NULL, 0, &(weir_attr_arg_t){.name = "a", .kind = WEIR_ARG_STRING}, 1);
}

typedef struct case_t {
  void (*build)(weir_scope_t* s);
  const char* text;  // of the message
} case_t;

static void test_building(void** state) {
  (void)state;
  static const case_t cases[] = {
      {edges_below_zero, "count is -1"},
      {nodes_below_zero, "weir_scope_after: count is -1"},
      {inputs_below_zero, "weir_scope_node: input_count is -1"},
      {attrs_below_zero, "weir_scope_node: "},
      {ys_below_zero, "weir_gradients_sparse: y_count is -1"},
      {xs_below_zero, "weir_gradients: x_count is -1"},
      {input_beyond, "Node 'Neg': input 0 is 'x:7', but the node has 1 outputs"},
      {initial_beyond, "variable 'v': initial value 0 is 'x:7', but the node has 1 outputs"},
      {layer_beyond, "input 0 is 'x:7', but the node has 1 outputs"},
      {node_in_list, "weir_scope_after: nodes[i] is NULL"},
      {collected, "weir_scope_collect: edge.node is NULL"},
      {function_name, "attribute: cond is NULL"},
      {attribute_name, "weir_scope_node: NoOp: attribute 0 has no name"},
      {attribute_text, "weir_scope_node: NoOp: attribute 'a' is NULL"},
  };
  for (size_t i = 0; i < WEIR_COUNT_OF(cases); ++i) {
    weir_graph_t* graph = NULL;
    check_ok(weir_graph_create(&graph));
    weir_scope_t* s = weir_scope_create(graph);
    cases[i].build(s);
    check_error(weir_scope_finish(s), WEIR_INVALID_ARGUMENT, cases[i].text);
    weir_graph_release(graph);
  }
}

static void test_tensor_without_data(void** state) {
  (void)state;
  weir_tensor_t* tensor = NULL;
  check_error(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 0, NULL, NULL, &tensor),
              WEIR_INVALID_ARGUMENT, "weir_tensor_create_from: data is NULL");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_building),
                                     cmocka_unit_test(test_tensor_without_data)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
