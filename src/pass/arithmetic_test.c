// arithmetic_test.c — Simplify hooks and pass-through nodes: what is rewired, and what must stay.
#include "pass/pass_testing.h"

static void run(testing_t* t, weir_node_t** target) {
  weir_pass_ctx_t ctx = {.graph = t->graph, .targets = target, .target_count = target ? 1 : 0};
  check_ok(weir_pass_arithmetic(&ctx));
}

static weir_edge_t add_x(testing_t* t, const char* name) {
  return add_placeholder(t->graph, name, WEIR_DTYPE_FLOAT, &weir_shape_unknown);
}

static weir_edge_t add_branch(testing_t* t, weir_edge_t x) {
  weir_edge_t pred = add_placeholder(t->graph, "pred", WEIR_DTYPE_BOOL, &weir_shape_scalar);
  return edge_of(ADD(t->graph, "Switch", "switch", x, pred).node, 1);
}

static void test_existing_edge(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_x(t, "x");
  weir_edge_t out =
      ADD(t->graph, "Neg", "n1", ADD(t->graph, "Neg", "n0", ADD(t->graph, "Effect", "effect", x)));
  add_retval(t->graph, "ret", out, 0);
  weir_node_t* target = out.node;
  run(t, &target);
  check_input(t->graph, "ret", 0, "effect:0");
  assert_string_equal(target->def.name, "effect");
}

static void test_new_nodes_are_simplified_too(void** state) {
  testing_t* t = *state;
  weir_edge_t neg = ADD(t->graph, "Neg", "neg", add_x(t, "y"));
  add_retval(t->graph, "ret", ADD(t->graph, "Sub", "sub", add_x(t, "x"), neg), 0);
  run(t, NULL);
  check_input(t->graph, "ret", 0, "sub/Add:0");
  check_input(t->graph, "sub/Add", 0, "x:0");
  check_input(t->graph, "sub/Add", 1, "y:0");
}

static void test_control_inputs(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_x(t, "x");
  weir_edge_t effect = ADD(t->graph, "Effect", "effect", x);
  weir_edge_t one = add_float(t->graph, "one", 1);
  weir_edge_t mul = ADD(t->graph, "Mul", "mul", x, one);
  weir_edge_t sub = ADD(t->graph, "Sub", "sub", x, one);
  check_ok(weir_graph_add_control(mul.node, effect.node));
  check_ok(weir_graph_add_control(sub.node, effect.node));
  add_retval(t->graph, "r0", mul, 0);
  add_retval(t->graph, "r1", sub, 1);
  run(t, NULL);
  check_input(t->graph, "r0", 0, "mul:0");  // x cannot wait for the effect
  check_input(t->graph, "r1", 0, "sub/Add:0");
  check_input(t->graph, "sub/Add", 0, "^effect");
}

static void test_controls_in_between(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_x(t, "x");
  weir_edge_t inner = ADD(t->graph, "Neg", "inner", x);
  check_ok(weir_graph_add_control(inner.node, ADD(t->graph, "Effect", "effect", x).node));
  add_retval(t->graph, "ret", ADD(t->graph, "Neg", "outer", inner), 0);
  run(t, NULL);
  check_input(t->graph, "ret", 0, "outer:0");
}

static void test_dropped_inputs(void** state) {
  testing_t* t = *state;
  weir_edge_t zero = add_float(t->graph, "zero", 0);
  weir_edge_t x = add_x(t, "x");
  add_retval(t->graph, "r0", ADD(t->graph, "Mul", "pure", ADD(t->graph, "Neg", "neg", x), zero), 0);
  weir_edge_t effect = ADD(t->graph, "Neg", "after", ADD(t->graph, "Effect", "effect", x));
  add_retval(t->graph, "r1", ADD(t->graph, "Mul", "impure", effect, zero), 1);
  add_retval(t->graph, "r2", ADD(t->graph, "Mul", "branch", add_branch(t, x), zero), 2);
  run(t, NULL);
  assert_int_equal(weir_node_role(find(t->graph, "r0")->inputs[0].node), WEIR_ROLE_CONST);
  check_input(t->graph, "r1", 0, "impure:0");  // the effect must happen
  check_input(t->graph, "r2", 0, "branch:0");  // a constant would be alive in a dead branch
}

static void test_within_a_branch(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_branch(t, add_x(t, "x"));
  weir_edge_t out = ADD(t->graph, "Mul", "mul", x, add_float(t->graph, "one", 1));
  weir_node_t* group = add_with(t->graph, "NoOp", "group", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(group, out.node));
  add_retval(t->graph, "ret", out, 0);
  run(t, &group);
  check_input(t->graph, "ret", 0, "switch:1");
  check_input(t->graph, "group", 0,
              "^mul");  // a control edge from the Switch is alive on both sides
}

// a * 1, where the 1 is alive when another predicate says so, or in the other branch: not a.
static void test_conditions_of_both_inputs(void** state) {
  testing_t* t = *state;
  weir_edge_t p = add_placeholder(t->graph, "p", WEIR_DTYPE_BOOL, &weir_shape_scalar);
  weir_edge_t q = add_placeholder(t->graph, "q", WEIR_DTYPE_BOOL, &weir_shape_scalar);
  weir_node_t* on_x = ADD(t->graph, "Switch", "on_x", add_x(t, "x"), p).node;
  weir_node_t* on_p = ADD(t->graph, "Switch", "on_p", p, p).node;
  weir_node_t* on_q = ADD(t->graph, "Switch", "on_q", q, q).node;
  weir_edge_t a = edge_of(on_x, 1);
  const struct {
    const char* name;
    weir_edge_t pivot;
    bool is_dropped;
  } cases[] = {{"same", edge_of(on_p, 1), true},
               {"branch", edge_of(on_p, 0), false},
               {"predicate", edge_of(on_q, 1), false}};
  for (int i = 0; i < 3; ++i) {
    char name[32];
    snprintf(name, sizeof(name), "pivot_%s", cases[i].name);
    weir_edge_t pivot = ADD(t->graph, "Neg", name, cases[i].pivot);
    snprintf(name, sizeof(name), "one_%s", cases[i].name);
    weir_edge_t one = add_float(t->graph, name, 1);
    check_ok(weir_graph_add_control(one.node, pivot.node));
    snprintf(name, sizeof(name), "ret_%s", cases[i].name);
    add_retval(t->graph, name, ADD(t->graph, "Mul", cases[i].name, a, one), i);
  }
  run(t, NULL);
  check_input(t->graph, "ret_same", 0, "on_x:1");
  check_input(t->graph, "ret_branch", 0, "branch:0");
  check_input(t->graph, "ret_predicate", 0, "predicate:0");
}

// A write that only a constant waits for still happens, and what was read of a variable is not put
// in the place of what was made of it.
static void test_references(void** state) {
  testing_t* t = *state;
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar));
  weir_edge_t v = edge_of(add_with(t->graph, "Variable", "v", WEIR_NO_EDGES, attrs), 0);
  weir_edge_t x = add_x(t, "x");
  weir_edge_t one = add_float(t->graph, "one", 1);
  weir_edge_t late_one = add_float(t->graph, "late_one", 1);
  check_ok(weir_graph_add_control(late_one.node, ADD(t->graph, "Assign", "assign", v, x).node));
  weir_edge_t read = ADD(t->graph, "Identity", "read", v);
  add_retval(t->graph, "r0", ADD(t->graph, "Mul", "waits", x, late_one), 0);
  add_retval(t->graph, "r1", ADD(t->graph, "Mul", "copies", read, one), 1);
  add_retval(t->graph, "r2",
             ADD(t->graph, "Mul", "pure", ADD(t->graph, "Add", "new", read, one), one), 2);
  run(t, NULL);
  check_input(t->graph, "r0", 0, "waits:0");
  check_input(t->graph, "r1", 0, "copies:0");
  check_input(t->graph, "r2", 0, "new:0");
}

static void test_bypass(void** state) {
  testing_t* t = *state;
  weir_edge_t neg = ADD(t->graph, "Neg", "neg", add_x(t, "x"));
  weir_edge_t id = ADD(t->graph, "Identity", "i1", ADD(t->graph, "Identity", "i0", neg));
  add_retval(t->graph, "ret", id, 0);
  weir_node_t* group = add_with(t->graph, "NoOp", "group", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(group, id.node));
  run(t, &group);
  check_input(t->graph, "ret", 0, "neg:0");
  check_input(t->graph, "group", 0, "^neg");
}

static void test_bypass_of_a_pivot(void** state) {
  testing_t* t = *state;
  weir_edge_t pivot = ADD(t->graph, "Identity", "pivot", add_branch(t, add_x(t, "x")));
  weir_edge_t in_branch = add_float(t->graph, "in_branch", 1);
  check_ok(weir_graph_add_control(in_branch.node, pivot.node));
  add_retval(t->graph, "r0", pivot, 0);
  add_retval(t->graph, "r1", in_branch, 1);
  run(t, NULL);
  check_input(t->graph, "r0", 0, "switch:1");
  check_input(t->graph, "in_branch", 0, "^pivot");
}

static void test_not_bypassed(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_x(t, "x");
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar));
  weir_edge_t v = edge_of(add_with(t->graph, "Variable", "v", WEIR_NO_EDGES, attrs), 0);
  weir_edge_t waits = ADD(t->graph, "Identity", "waits", x);
  check_ok(weir_graph_add_control(waits.node, ADD(t->graph, "Effect", "effect", x).node));
  weir_node_params_t params = {
      .op = "Identity", .name = "moved", .device = "/cpu:1", .inputs = WEIR_EDGES(x)};
  weir_node_t* moved = NULL;
  check_ok(weir_graph_add(t->graph, &params, &moved));
  weir_view_t group[] = {weir_view_of("loc:@v")};
  weir_node_t* held = add_with(t->graph, "Identity", "held", WEIR_EDGES(x),
                               WEIR_ATTRS(weir_attr_strings("_class", group, 1)));
  add_retval(t->graph, "r0", ADD(t->graph, "Identity", "read", v), 0);
  add_retval(t->graph, "r1", waits, 1);
  add_retval(t->graph, "r2", edge_of(moved, 0), 2);
  add_retval(t->graph, "r3", edge_of(held, 0), 3);
  run(t, NULL);
  check_input(t->graph, "r0", 0, "read:0");
  check_input(t->graph, "r1", 0, "waits:0");
  check_input(t->graph, "r2", 0, "moved:0");
  check_input(t->graph, "r3", 0, "held:0");
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, testing_setup, testing_teardown)
      TEST(test_existing_edge),
      TEST(test_new_nodes_are_simplified_too),
      TEST(test_control_inputs),
      TEST(test_controls_in_between),
      TEST(test_dropped_inputs),
      TEST(test_within_a_branch),
      TEST(test_conditions_of_both_inputs),
      TEST(test_references),
      TEST(test_bypass),
      TEST(test_bypass_of_a_pivot),
      TEST(test_not_bypassed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
