// prune_test.c — Pruning: what is kept, and what takes the place of feeds and fetches.
#include "pass/pass_testing.h"

static weir_status_t* prune(testing_t* t, weir_edges_t feeds, weir_edges_t fetches,
                            weir_node_t* target) {
  weir_prune_params_t params = {.graph = t->graph,
                                .feeds = feeds,
                                .fetches = fetches,
                                .targets = &target,
                                .target_count = target ? 1 : 0};
  return weir_prune(&params, &t->copy, &t->targets);
}

static void test_keeps_what_is_needed(void** state) {
  testing_t* t = *state;
  weir_edge_t a = add_float(t->graph, "a", 1);
  weir_edge_t b = add_float(t->graph, "b", 2);
  weir_edge_t sum = ADD(t->graph, "Add", "sum", a, b);
  ADD(t->graph, "Neg", "unused", sum);
  check_ok(prune(t, WEIR_NO_EDGES, WEIR_EDGES(sum), NULL));
  assert_int_equal(t->copy->node_count, 4);
  assert_false(has(t->copy, "unused"));
  check_input(t->copy, "_retval_sum_0_0", 0, "sum:0");
  check_input(t->copy, "sum", 1, "b:0");
  assert_int_equal(weir_attrs_int(find(t->copy, "_retval_sum_0_0")->def.attrs, "index"), 0);
  assert_ptr_equal(find(t->copy, "sum")->graph, t->copy);
}

static void test_control_inputs_and_targets(void** state) {
  testing_t* t = *state;
  weir_edge_t a = add_float(t->graph, "a", 1);
  weir_edge_t effect = ADD(t->graph, "Effect", "effect", a);
  weir_node_t* group = add_with(t->graph, "NoOp", "group", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(group, effect.node));
  check_ok(prune(t, WEIR_NO_EDGES, WEIR_NO_EDGES, group));
  assert_int_equal(t->copy->node_count, 3);
  check_input(t->copy, "group", 0, "^effect");
  assert_ptr_equal(t->targets[0], find(t->copy, "group"));
}

static void test_feed_cuts(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_placeholder(t->graph, "x", WEIR_DTYPE_FLOAT, vector_shape(t->graph, 3));
  weir_edge_t mid = ADD(t->graph, "Effect", "mid", x);
  weir_edge_t out = ADD(t->graph, "Add", "out", mid, x);
  check_ok(prune(t, WEIR_EDGES(mid, x), WEIR_EDGES(out), NULL));
  assert_false(has(t->copy, "x"));
  assert_false(has(t->copy, "mid"));
  check_input(t->copy, "out", 0, "_arg_mid_0_0:0");
  check_input(t->copy, "out", 1, "_arg_x_0_1:0");
  weir_node_t* arg = find(t->copy, "_arg_x_0_1");
  assert_int_equal(weir_attrs_int(arg->def.attrs, "index"), 1);
  assert_int_equal(arg->shapes[0]->rank, 1);  // promised by the placeholder
  assert_int_equal(arg->shapes[0]->dims[0], 3);
  assert_int_equal(find(t->copy, "_arg_mid_0_0")->shapes[0]->rank, -1);  // nobody promised that one
  assert_int_equal(find(t->copy, "out")->shapes[0]->rank, -1);
  assert_int_equal(weir_edge_shape(out)->rank, 1);  // the source is as it was
}

static void test_fed_value_is_forgotten(void** state) {
  testing_t* t = *state;
  int32_t size = 4;
  weir_edge_t dims = add_tensor(t->graph, "dims", WEIR_DTYPE_INT32, 1, 1, &size);
  weir_edge_t fill = ADD(t->graph, "Fill", "fill", dims, add_float(t->graph, "value", 1));
  assert_int_equal(weir_edge_shape(fill)->dims[0], 4);
  check_ok(prune(t, WEIR_EDGES(dims), WEIR_EDGES(fill), NULL));
  assert_int_equal(find(t->copy, "fill")->shapes[0]->rank, -1);
}

static void test_fed_and_fetched(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_placeholder(t->graph, "x", WEIR_DTYPE_INT32, &weir_shape_unknown);
  check_ok(prune(t, WEIR_EDGES(x), WEIR_EDGES(x, x), x.node));
  assert_int_equal(t->copy->node_count, 3);
  check_input(t->copy, "_retval_x_0_1", 0, "_arg_x_0_0:0");
  assert_ptr_equal(t->targets[0], find(t->copy, "_arg_x_0_0"));
}

static void test_other_outputs_of_a_fed_node(void** state) {
  testing_t* t = *state;
  weir_edge_t two = ADD(t->graph, "Two", "two", add_float(t->graph, "a", 1));
  weir_edge_t out = ADD(t->graph, "Add", "out", edge_of(two.node, 0), edge_of(two.node, 1));
  check_ok(prune(t, WEIR_EDGES(edge_of(two.node, 1)), WEIR_EDGES(out), NULL));
  check_input(t->copy, "out", 0, "two:0");
  check_input(t->copy, "out", 1, "_arg_two_1_0:0");
}

static void test_control_edge_of_a_fed_placeholder(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_placeholder(t->graph, "x", WEIR_DTYPE_INT32, &weir_shape_unknown);
  weir_edge_t effect = ADD(t->graph, "Effect", "effect", add_float(t->graph, "a", 1));
  weir_node_t* group = add_with(t->graph, "NoOp", "group", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(group, x.node));
  check_ok(weir_graph_add_control(group, effect.node));
  check_ok(prune(t, WEIR_EDGES(x, effect), WEIR_NO_EDGES, group));
  assert_false(has(t->copy, "x"));
  assert_true(has(t->copy, "effect"));  // only placeholders are never run
  check_input(t->copy, "group", 0, "^effect");
  check_input(t->copy, "group", 1, "^_arg_x_0_0");
}

static void test_names_do_not_clash(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_placeholder(t->graph, "x", WEIR_DTYPE_FLOAT, &weir_shape_unknown);
  weir_edge_t y = ADD(t->graph, "Neg", "_arg_x_0_0", x);
  check_ok(prune(t, WEIR_EDGES(x), WEIR_EDGES(y), NULL));
  check_input(t->copy, "_arg_x_0_0", 0, "_arg_x_0_0_1:0");
}

static void test_references(void** state) {
  testing_t* t = *state;
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar));
  weir_edge_t v = edge_of(add_with(t->graph, "Variable", "v", WEIR_NO_EDGES, attrs), 0);
  weir_edge_t read = ADD(t->graph, "Identity", "read", v);
  weir_edge_t assign = ADD(t->graph, "Assign", "assign", v, read);
  check_error(prune(t, WEIR_EDGES(v), WEIR_EDGES(assign), NULL), WEIR_INVALID_ARGUMENT, "assign");
  check_ok(prune(t, WEIR_EDGES(v), WEIR_EDGES(read), NULL));
  check_input(t->copy, "read", 0, "_arg_v_0_0:0");
  weir_graph_unref(t->copy);
  t->copy = NULL;
  check_ok(prune(t, WEIR_NO_EDGES, WEIR_EDGES(v), NULL));
  check_input(t->copy, "_retval_v_0_0", 0, "v:0");
}

static weir_edge_t add_loop(weir_graph_t* graph, bool is_growing) {
  int32_t size = 4;
  weir_edge_t start = add_tensor(graph, "start", WEIR_DTYPE_INT32, 1, 1, &size);
  weir_edge_t pred = add_placeholder(graph, "pred", WEIR_DTYPE_BOOL, &weir_shape_scalar);
  weir_edge_t enter = ADD(graph, "Enter", "enter", start);
  weir_edge_t merge = ADD(graph, "Merge", "merge", enter, enter);
  weir_edge_t sw = ADD(graph, "Switch", "switch", merge, pred);
  weir_edge_t body = edge_of(sw.node, 1);
  if (is_growing) body = ADD(graph, "Fill", "grow", body, enter);
  weir_edge_t next = ADD(graph, "NextIteration", "next", body);
  check_ok(weir_graph_set_input(merge.node, 1, next));
  return ADD(graph, "Exit", "exit", edge_of(sw.node, 0));
}

static void test_loop(void** state) {
  testing_t* t = *state;
  weir_edge_t out = add_loop(t->graph, false);
  check_ok(prune(t, WEIR_NO_EDGES, WEIR_EDGES(out), NULL));
  check_input(t->copy, "merge", 1, "next:0");
  assert_ptr_equal(find(t->copy, "merge")->inputs[1].node, find(t->copy, "next"));
  assert_int_equal(find(t->copy, "exit")->shapes[0]->dims[0], 1);
}

static void test_loop_that_changes_shape(void** state) {
  testing_t* t = *state;
  weir_edge_t out = add_loop(t->graph, true);
  check_ok(prune(t, WEIR_NO_EDGES, WEIR_EDGES(out), NULL));
  assert_int_equal(find(t->copy, "merge")->shapes[0]->rank, -1);
  assert_int_equal(find(t->copy, "exit")->shapes[0]->rank, -1);
}

// ---- connections ----

#define CONNECT(...)                                                                      \
  ((weir_connections_t){.items = (const weir_connection_t[]){__VA_ARGS__},                \
                        .count = (int)(sizeof((const weir_connection_t[]){__VA_ARGS__}) / \
                                       sizeof(weir_connection_t))})

static weir_status_t* connect(testing_t* t, weir_edges_t feeds, weir_connections_t connections,
                              weir_edges_t fetches, weir_node_t* target) {
  weir_prune_params_t params = {.graph = t->graph,
                                .feeds = feeds,
                                .connections = connections,
                                .fetches = fetches,
                                .targets = &target,
                                .target_count = target ? 1 : 0};
  weir_graph_unref(t->copy);
  t->copy = NULL;
  return weir_prune(&params, &t->copy, &t->targets);
}

// x → y → z → out, and c beside them.
typedef struct chain_t {
  weir_edge_t x, y, z, out, c;
} chain_t;

static chain_t add_chain(weir_graph_t* graph) {
  chain_t chain = {.x = add_placeholder(graph, "x", WEIR_DTYPE_FLOAT, vector_shape(graph, 3)),
                   .c = add_float(graph, "c", 1)};
  chain.y = ADD(graph, "Effect", "y", chain.x);
  chain.z = ADD(graph, "Neg", "z", chain.y);
  chain.out = ADD(graph, "Add", "out", chain.z, chain.z);
  return chain;
}

static void test_connection(void** state) {
  testing_t* t = *state;
  chain_t g = add_chain(t->graph);
  check_ok(connect(t, WEIR_NO_EDGES, CONNECT({g.c, g.y}), WEIR_EDGES(g.out, g.c), NULL));
  assert_false(has(t->copy, "x"));
  assert_false(has(t->copy, "y"));
  check_input(t->copy, "_identity_y_0", 0, "c:0");
  check_input(t->copy, "z", 0, "_identity_y_0:0");
  assert_int_equal(find(t->copy, "z")->shapes[0]->rank, 0);  // of c, not of x
  assert_int_equal(weir_edge_shape(g.z)->rank, 1);           // the source is as it was
}

static void test_connection_that_nobody_reads(void** state) {
  testing_t* t = *state;
  chain_t g = add_chain(t->graph);
  weir_edge_t other = ADD(t->graph, "Neg", "other", g.c);
  check_ok(connect(t, WEIR_NO_EDGES, CONNECT({g.c, g.y}), WEIR_EDGES(other), NULL));
  assert_int_equal(t->copy->node_count, 3);
}

// A connection reads its node, whatever was connected before it; one made later is read.
static void test_order_of_connections(void** state) {
  testing_t* t = *state;
  chain_t g = add_chain(t->graph);
  check_ok(connect(t, WEIR_EDGES(g.x), CONNECT({g.c, g.y}, {g.y, g.z}), WEIR_EDGES(g.out), NULL));
  check_input(t->copy, "_identity_z_0", 0, "y:0");
  check_input(t->copy, "y", 0, "_arg_x_0_0:0");
  assert_false(has(t->copy, "_identity_y_0"));
  check_ok(connect(t, WEIR_EDGES(g.x), CONNECT({g.y, g.z}, {g.c, g.y}), WEIR_EDGES(g.out), NULL));
  check_input(t->copy, "_identity_z_0", 0, "_identity_y_0:0");
  check_input(t->copy, "_identity_y_0", 0, "c:0");
  assert_false(has(t->copy, "y"));
}

static void test_connection_from_what_is_fed(void** state) {
  testing_t* t = *state;
  chain_t g = add_chain(t->graph);
  check_ok(connect(t, WEIR_EDGES(g.x), CONNECT({g.x, g.y}), WEIR_EDGES(g.out), NULL));
  check_input(t->copy, "_identity_y_0", 0, "x:0");
}

static void test_connected_placeholder(void** state) {
  testing_t* t = *state;
  chain_t g = add_chain(t->graph);
  weir_node_t* group = add_with(t->graph, "NoOp", "group", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(group, g.x.node));
  check_ok(connect(t, WEIR_NO_EDGES, CONNECT({g.c, g.x}), WEIR_NO_EDGES, group));
  assert_false(has(t->copy, "x"));
  check_input(t->copy, "group", 0, "^_identity_x_0");
  check_ok(connect(t, WEIR_NO_EDGES, CONNECT({g.c, g.x}), WEIR_NO_EDGES, g.x.node));
  assert_ptr_equal(t->targets[0], find(t->copy, "x"));
  assert_int_equal(t->copy->node_count, 1);
}

static void test_connections_that_are_refused(void** state) {
  testing_t* t = *state;
  chain_t g = add_chain(t->graph);
  weir_edge_t d = ADD(t->graph, "Neg", "d", g.c);
  int32_t number = 4;
  weir_edge_t i = add_tensor(t->graph, "i", WEIR_DTYPE_INT32, 1, 1, &number);
  const struct {
    weir_connections_t connections;
    const char* message;
  } cases[] = {
      {CONNECT({g.c, g.x}, {d, g.x}), "\"x:0\" fed more than once"},
      {CONNECT({g.c, g.out}), "out:0 is both fed and fetched"},
      {CONNECT({g.z, g.y}), "\"y\" and \"z\" would create a cycle"},
      {CONNECT({g.z, g.z}), "cycle"},
      {CONNECT({g.out, g.c}, {d, g.y}), "\"y\" and \"d\" would create a cycle"},
      {CONNECT({edge_of(g.c.node, 2), g.y}), "'c:2'"},
      {CONNECT({g.c, edge_of(g.y.node, 2)}), "'y:2'"},
      {CONNECT({WEIR_NO_EDGE, g.y}), "connection"},
      {CONNECT({i, g.y}), "passed int32 from _identity_y_0:0"},
  };
  for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); ++k) {
    check_error(connect(t, WEIR_NO_EDGES, cases[k].connections, WEIR_EDGES(g.out), NULL),
                WEIR_INVALID_ARGUMENT, cases[k].message);
  }
  check_error(connect(t, WEIR_EDGES(g.x), CONNECT({g.c, g.x}), WEIR_EDGES(g.out), NULL),
              WEIR_INVALID_ARGUMENT, "\"x:0\" fed more than once");
  check_ok(connect(t, WEIR_EDGES(g.y), CONNECT({g.z, g.x}), WEIR_EDGES(g.out), NULL));
}

static void test_errors(void** state) {
  testing_t* t = *state;
  weir_edge_t x = add_placeholder(t->graph, "x", WEIR_DTYPE_INT32, &weir_shape_unknown);
  check_error(prune(t, WEIR_EDGES(x, x), WEIR_EDGES(x), NULL), WEIR_INVALID_ARGUMENT,
              "fed more than once");
  check_error(prune(t, WEIR_NO_EDGES, WEIR_EDGES(edge_of(x.node, 7)), NULL), WEIR_INVALID_ARGUMENT,
              "'x:7'");
  check_error(prune(t, WEIR_EDGES(WEIR_NO_EDGE), WEIR_EDGES(x), NULL), WEIR_INVALID_ARGUMENT,
              "feed");
}

// Every allocation may fail: a status comes back and nothing leaks.
static void test_out_of_memory(void** state) {
  testing_t* t = *state;
  weir_edge_t out = add_loop(t->graph, true);
  weir_edge_t pred = edge_of(find(t->graph, "pred"), 0);
  weir_connection_t connection = {
      ADD(t->graph, "Neg", "other", edge_of(find(t->graph, "start"), 0)),
      edge_of(find(t->graph, "enter"), 0)};
  for (int n = 1;; ++n) {
    weir_alloc_fail_at(n, true);
    weir_status_t* status =
        connect(t, WEIR_EDGES(pred), CONNECT(connection), WEIR_EDGES(out), NULL);
    weir_alloc_fail_at(0, false);
    if (!status) break;
    assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, testing_setup, testing_teardown)
      TEST(test_keeps_what_is_needed),
      TEST(test_control_inputs_and_targets),
      TEST(test_feed_cuts),
      TEST(test_fed_value_is_forgotten),
      TEST(test_fed_and_fetched),
      TEST(test_other_outputs_of_a_fed_node),
      TEST(test_control_edge_of_a_fed_placeholder),
      TEST(test_names_do_not_clash),
      TEST(test_references),
      TEST(test_loop),
      TEST(test_loop_that_changes_shape),
      TEST(test_connection),
      TEST(test_connection_that_nobody_reads),
      TEST(test_order_of_connections),
      TEST(test_connection_from_what_is_fed),
      TEST(test_connected_placeholder),
      TEST(test_connections_that_are_refused),
      TEST(test_errors),
      TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
