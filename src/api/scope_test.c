// scope_test.c — Scopes: names, devices, control inputs, sticky errors, variables.
#include "api/scope.h"

#include "testing/world.h"
#include "weir/optimizer.h"

static void test_names_are_unique(void** state) {
  world_t* w = *state;
  weir_edge_t a = weir_const_float(w->scope, 1);
  weir_edge_t b = weir_const_float(w->scope, 1);
  assert_string_not_equal(weir_node_name(a.node), weir_node_name(b.node));
  weir_scope_t* named = weir_scope_name(w->scope, "mine");
  assert_string_equal(weir_node_name(weir_const_float(named, 1).node), "mine");
  assert_string_not_equal(weir_node_name(weir_const_float(named, 1).node),
                          "mine_1");  // only the next node
  assert_string_equal(weir_node_name(weir_const_float(weir_scope_name(w->scope, "mine"), 1).node),
                      "mine_1");
}

static void test_sub_scopes(void** state) {
  world_t* w = *state;
  weir_scope_t* dense = weir_scope_in(w->scope, "dense");
  weir_scope_t* inner = weir_scope_in(dense, "inner");
  weir_scope_t* again = weir_scope_in(w->scope, "dense");
  assert_string_equal(weir_node_name(weir_const_float(weir_scope_name(dense, "w"), 1).node),
                      "dense/w");
  assert_string_equal(weir_node_name(weir_const_float(weir_scope_name(inner, "w"), 1).node),
                      "dense/inner/w");
  assert_string_equal(weir_node_name(weir_const_float(weir_scope_name(again, "w"), 1).node),
                      "dense_1/w");
  weir_const_float(weir_scope_name(w->scope, "taken"), 1);
  weir_scope_t* taken = weir_scope_in(w->scope, "taken");
  assert_string_equal(weir_node_name(weir_const_float(weir_scope_name(taken, "w"), 1).node),
                      "taken_1/w");
}

static void test_devices(void** state) {
  world_t* w = *state;
  weir_scope_t* on = weir_scope_on(w->scope, "/cpu:0");
  assert_string_equal(weir_node_device(weir_const_float(on, 1).node), "/cpu:0");
  assert_string_equal(weir_node_device(weir_const_float(weir_scope_in(on, "x"), 1).node), "/cpu:0");
  assert_string_equal(weir_node_device(weir_const_float(w->scope, 1).node), "");
}

static void test_control_inputs(void** state) {
  world_t* w = *state;
  weir_node_t* first = add(w, "NoOp", "first", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  weir_node_t* second = add(w, "NoOp", "second", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  weir_scope_t* after = weir_scope_after(weir_scope_after(w->scope, &first, 1), &second, 1);
  weir_node_t* node = weir_scope_add(after, "NoOp", NULL, WEIR_NO_EDGES, WEIR_NO_ATTRS);
  assert_int_equal(weir_node_control_count(node), 2);
  assert_ptr_equal(weir_node_control(node, 0), first);
  assert_ptr_equal(weir_node_control(node, 1), second);
  assert_int_equal(weir_node_control_count(weir_const_float(w->scope, 1).node), 0);
  weir_node_t* group = weir_group(w->scope, "all", (weir_node_t*[]){first, second, node}, 3);
  assert_int_equal(weir_node_control_count(group), 3);
  check_scope(w);
}

static void test_errors_stick(void** state) {
  world_t* w = *state;
  weir_scope_t* inner = weir_scope_in(w->scope, "inner");
  weir_edge_t f = weir_const_float(w->scope, 1);
  weir_edge_t i = weir_const_int(w->scope, 1);
  size_t count = weir_graph_node_count(w->graph);
  assert_null(weir_scope_add(inner, "AddV2", "first", WEIR_EDGES(f, i), WEIR_NO_ATTRS));
  assert_null(weir_scope_add(w->scope, "NoOp", "second", WEIR_NO_EDGES, WEIR_NO_ATTRS));
  assert_null(weir_const_float(w->scope, 2).node);
  assert_null(weir_variable(w->scope, "v", f).node);
  assert_null(weir_initializer(w->scope));
  weir_scope_t* later = weir_scope_after(weir_scope_in(w->scope, "x"), (weir_node_t*[]){NULL}, 1);
  assert_null(weir_train_sgd(later, f, 0.1f));
  weir_edge_t grads[1];
  weir_status_destroy(weir_gradients(later, &f, 1, &f, 1, NULL, grads));
  assert_int_equal(weir_graph_node_count(w->graph), count);
  assert_int_equal(weir_status_code(weir_scope_status(inner)), WEIR_INVALID_ARGUMENT);
  weir_scope_t* root = w->scope;
  w->scope = NULL;
  check_error(weir_scope_finish(root), WEIR_INVALID_ARGUMENT, "inner/first");
}

static void test_variables(void** state) {
  world_t* w = *state;
  weir_edge_t x = weir_variable(w->scope, "x", weir_const_float(w->scope, 3));
  weir_edge_t fixed = weir_state_variable(w->scope, "fixed", weir_const_float(w->scope, 5));
  assert_string_equal(weir_node_op(weir_variable_handle(x).node), "VarHandleOp");
  assert_string_equal(weir_node_name(weir_variable_handle(x).node), "x");
  weir_edge_t error = OP(w, "Sub", x, fixed);
  weir_edge_t loss = OP(w, "Mul", error, error);
  weir_node_t* train = weir_train_sgd(w->scope, loss, 0.25f);
  weir_node_t* init = weir_initializer(w->scope);
  check_scope(w);
  weir_session_t* session = open_session(w, 1);
  check_ok(weir_session_run_target(session, init));
  for (int i = 0; i < 3; ++i) check_ok(weir_session_run_target(session, train));
  assert_float_equal(fetch_float(session, x), 4.75,
                     0);  // the error halves at each step: 2, 1, 0.5, 0.25
  assert_float_equal(fetch_float(session, fixed), 5, 0);
}

static void test_gradients(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t apart = placeholder(w, "apart", WEIR_DTYPE_FLOAT);
  weir_edge_t y = OP(w, "Mul", OP(w, "Mul", x, x), x);
  weir_edge_t xs[] = {x, apart};
  weir_edge_t grads[2];
  check_ok(weir_gradients(w->scope, &y, 1, xs, 2, NULL, grads));
  assert_null(grads[1].node);
  weir_edge_t second[1];
  check_ok(weir_gradients(w->scope, grads, 1, xs, 1, NULL, second));
  weir_session_t* session = open_session(w, 1);
  assert_float_equal(feed_float(session, x, 2, grads[0]), 12, 0);
  assert_float_equal(feed_float(session, x, 2, second[0]), 12, 0);
}

static void test_finish_takes_null(void** state) {
  (void)state;
  check_error(weir_scope_finish(NULL), WEIR_RESOURCE_EXHAUSTED, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_names_are_unique), TEST(test_sub_scopes),        TEST(test_devices),
      TEST(test_control_inputs),   TEST(test_errors_stick),      TEST(test_variables),
      TEST(test_gradients),        TEST(test_finish_takes_null),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
