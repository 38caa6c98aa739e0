// unread_test.c — Values that nobody reads: what gives way, what order is kept, what stays.
#include "pass/pass_testing.h"

static weir_edge_t add_x(testing_t* t, const char* name) {
  return add_placeholder(t->graph, name, WEIR_DTYPE_FLOAT, &weir_shape_unknown);
}

static weir_node_t* add_group(testing_t* t, const char* name, weir_node_t* const* nodes,
                              int count) {
  weir_node_t* group = add_with(t->graph, "NoOp", name, WEIR_NO_EDGES, WEIR_NO_ATTRS);
  for (int i = 0; i < count; ++i) check_ok(weir_graph_add_control(group, nodes[i]));
  return group;
}

static void run(testing_t* t, weir_node_t** targets, int count) {
  weir_pass_ctx_t ctx = {.graph = t->graph, .targets = targets, .target_count = count};
  check_ok(weir_pass_unread(&ctx));
}

// A gradient nobody asked for, as control edges tie it to another one.
static void test_chain_gives_way(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_x(t, "x"), y = add_x(t, "y");
  weir_edge_t dy = ADD(t->graph, "Effect", "dy", y);
  weir_edge_t dx = ADD(t->graph, "Mul", "dx", dy, x);
  weir_edge_t sum = ADD(t->graph, "Neg", "sum", dx);
  weir_edge_t dw = ADD(t->graph, "Mul", "dw", dy, y);
  weir_node_t* const grads[] = {sum.node, dw.node};
  weir_edge_t out = ADD(t->graph, "Identity", "out", dw);
  check_ok(weir_graph_add_control(out.node, add_group(t, "group", grads, 2)));
  add_retval(t->graph, "r", out, 0);
  run(t, NULL, 0);
  check_input(t->graph, "group", 0, "^sum_unread");
  check_input(t->graph, "group", 1, "^dw");
  check_input(t->graph, "sum_unread", 0, "^dx_unread");
  check_input(t->graph, "dx_unread", 0, "^dy");
  check_input(t->graph, "dx_unread", 1, "^x");
  assert_int_equal(find(t->graph, "sum_unread")->control_count, 1);
}

static void test_order_is_kept(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_x(t, "x");
  weir_edge_t first = ADD(t->graph, "Effect", "first", x);
  weir_edge_t between = ADD(t->graph, "Add", "between", x, x);
  check_ok(weir_graph_add_control(between.node, first.node));
  weir_edge_t second = ADD(t->graph, "Effect", "second", x);
  check_ok(weir_graph_add_control(second.node, between.node));
  weir_node_t* target = second.node;
  run(t, &target, 1);
  check_input(t->graph, "second", 0, "^between_unread");
  check_input(t->graph, "between_unread", 0, "^first");
  check_input(t->graph, "between_unread", 1, "^x");
  assert_int_equal(find(t->graph, "between_unread")->control_count, 2);
}

// A part does not know what a client named: nothing gives way in it.
static void test_parts_keep_all(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_x(t, "x");
  weir_edge_t between = ADD(t->graph, "Add", "between", x, x);
  weir_edge_t last = ADD(t->graph, "Effect", "last", x);
  check_ok(weir_graph_add_control(last.node, between.node));
  weir_node_t* end = last.node;
  weir_pass_ctx_t ctx = {.graph = t->graph, .targets = &end, .target_count = 1, .is_part = true};
  check_ok(weir_pass_unread(&ctx));
  check_input(t->graph, "last", 0, "^between");
}

// Effects, guards, what has no inputs or is a target, and whatever they read.
static void test_kept(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_x(t, "x");
  weir_edge_t read = ADD(t->graph, "Neg", "read", x);
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar));
  weir_edge_t v = edge_of(add_with(t->graph, "Variable", "v", WEIR_NO_EDGES, attrs), 0);
  weir_node_t* const nodes[] = {
      ADD(t->graph, "Effect", "effect", read).node, ADD(t->graph, "Guard", "guard", read).node,
      ADD(t->graph, "Neg", "asked", read).node, add_float(t->graph, "c", 1).node,
      ADD(t->graph, "Identity", "v_read", v).node};
  const int count = (int)WEIR_COUNT_OF(nodes);
  weir_node_t* group = add_group(t, "group", nodes, count);
  run(t, (weir_node_t*[]){group, nodes[2]}, 2);
  for (int i = 0; i < count; ++i) assert_ptr_equal(group->control_inputs[i], nodes[i]);
  check_input(t->graph, "asked", 0, "read:0");
}

// A control edge from a Switch does not tell which branch is taken.
static void test_branches(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_x(t, "x");
  weir_edge_t pred = add_placeholder(t->graph, "p", WEIR_DTYPE_BOOL, &weir_shape_scalar);
  weir_edge_t branch = ADD(t->graph, "Switch", "branch", x, pred);
  weir_edge_t inside = ADD(t->graph, "Neg", "inside", branch);
  weir_edge_t deeper = ADD(t->graph, "Neg", "deeper", inside);
  weir_edge_t effect = ADD(t->graph, "Effect", "effect", x);
  check_ok(weir_graph_add_control(effect.node, deeper.node));
  weir_node_t* target = effect.node;
  run(t, &target, 1);
  check_input(t->graph, "effect", 0, "^deeper_unread");
  check_input(t->graph, "deeper_unread", 0, "^inside");
  check_input(t->graph, "inside", 0, "branch:0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, testing_setup, testing_teardown)
      TEST(test_chain_gives_way), TEST(test_order_is_kept),
      TEST(test_parts_keep_all),  TEST(test_kept),
      TEST(test_branches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
