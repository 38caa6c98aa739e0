// cse_test.c — Common subexpressions: what counts as equal.
#include "pass/pass_testing.h"

static void run(testing_t* t, weir_node_t** target) {
  weir_pass_ctx_t ctx = {.graph = t->graph, .targets = target, .target_count = target ? 1 : 0};
  check_ok(weir_pass_cse(&ctx));
}

static weir_edge_t add_x(testing_t* t, const char* name) {
  return add_placeholder(t->graph, name, WEIR_DTYPE_FLOAT, &weir_shape_unknown);
}

static void test_merges_chains(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_x(t, "x");
  weir_edge_t a =
      ADD(t->graph, "Neg", "a2", ADD(t->graph, "Add", "a1", x, add_float(t->graph, "ac", 2)));
  weir_edge_t b =
      ADD(t->graph, "Neg", "b2", ADD(t->graph, "Add", "b1", add_float(t->graph, "bc", 2), x));
  add_retval(t->graph, "r0", a, 0);
  add_retval(t->graph, "r1", b, 1);
  weir_node_t* group = add_with(t->graph, "NoOp", "group", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(group, a.node));
  check_ok(weir_graph_add_control(group, b.node));
  weir_node_t* target = b.node;
  run(t, &target);
  check_input(t->graph, "r0", 0, "a2:0");
  check_input(t->graph, "r1", 0, "a2:0");
  assert_int_equal(group->control_count, 1);
  assert_ptr_equal(target, a.node);
}

static void test_order_matters_unless_commutative(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_x(t, "x"), y = add_x(t, "y");
  add_retval(t->graph, "r0", ADD(t->graph, "Div", "d0", x, y), 0);
  add_retval(t->graph, "r1", ADD(t->graph, "Div", "d1", y, x), 1);
  add_retval(t->graph, "r2", ADD(t->graph, "Add", "s0", x, y), 2);
  add_retval(t->graph, "r3", ADD(t->graph, "Add", "s1", y, x), 3);
  run(t, NULL);
  check_input(t->graph, "r1", 0, "d1:0");
  check_input(t->graph, "r3", 0, "s0:0");
}

static void test_kept_apart(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_x(t, "x");
  weir_edge_t y = add_x(t, "y");  // equal in all but name
  weir_edge_t e0 = ADD(t->graph, "Effect", "e0", x);
  weir_edge_t e1 = ADD(t->graph, "Effect", "e1", x);
  weir_edge_t n0 = ADD(t->graph, "Neg", "n0", x);
  weir_edge_t n1 = ADD(t->graph, "Neg", "n1", x);
  check_ok(weir_graph_add_control(n1.node, e0.node));
  weir_node_params_t params = {
      .op = "Neg", .name = "n2", .device = "/cpu:1", .inputs = WEIR_EDGES(x)};
  weir_node_t* n2 = NULL;
  check_ok(weir_graph_add(t->graph, &params, &n2));
  weir_edge_t i0 = ADD(t->graph, "Enter", "i0", x);
  weir_edge_t i1 = ADD(t->graph, "Enter", "i1", x);
  weir_edge_t edges[] = {x, y, e0, e1, n0, n1, edge_of(n2, 0), i0, i1};
  for (int i = 0; i < (int)WEIR_COUNT_OF(edges); ++i) {
    char name[16];
    snprintf(name, sizeof(name), "r%d", i);
    add_retval(t->graph, name, edges[i], i);
  }
  run(t, NULL);
  for (int i = 0; i < (int)WEIR_COUNT_OF(edges); ++i) {
    char name[16];
    snprintf(name, sizeof(name), "r%d", i);
    assert_true(weir_edge_equal(find(t->graph, name)->inputs[0], edges[i]));
  }
}

static void test_constants_by_value(void** state) {
  testing_t* t = *state;
  int32_t bits = 0;  // the same bytes as 0.0f
  add_retval(t->graph, "r0", add_float(t->graph, "a", 0), 0);
  add_retval(t->graph, "r1", add_float(t->graph, "b", 0), 1);
  add_retval(t->graph, "r2", add_float(t->graph, "c", 1), 2);
  add_retval(t->graph, "r3", add_tensor(t->graph, "d", WEIR_DTYPE_INT32, 0, 0, &bits), 3);
  run(t, NULL);
  check_input(t->graph, "r1", 0, "a:0");
  check_input(t->graph, "r2", 0, "c:0");
  check_input(t->graph, "r3", 0, "d:0");
}

static void test_references(void** state) {
  testing_t* t = *state;
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar));
  weir_edge_t v = edge_of(add_with(t->graph, "Variable", "v", WEIR_NO_EDGES, attrs), 0);
  add_retval(t->graph, "r0", ADD(t->graph, "Identity", "i0", v), 0);
  add_retval(t->graph, "r1", ADD(t->graph, "Identity", "i1", v), 1);
  run(t, NULL);
  check_input(t->graph, "r1", 0, "i1:0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, testing_setup, testing_teardown)
      TEST(test_merges_chains), TEST(test_order_matters_unless_commutative),
      TEST(test_kept_apart),    TEST(test_constants_by_value),
      TEST(test_references),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
