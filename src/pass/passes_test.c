// passes_test.c — Calls of library functions, and the runner.
#include <stdlib.h>

#include "graph/function.h"
#include "pass/pass_testing.h"
#include "wire/wire.h"

// A FunctionDef with a signature only: x: T -> y: T, attr T: type.
static void add_function(weir_graph_t* graph, const char* name, bool is_stateful) {
  weir_strbuf_t def = {0};
  size_t signature = weir_wire_begin(&def, 1);
  weir_wire_put_string(&def, 1, name);
  for (int side = 2; side <= 3; ++side) {
    size_t arg = weir_wire_begin(&def, (uint32_t)side);
    weir_wire_put_string(&def, 1, side == 2 ? "x" : "y");
    weir_wire_put_string(&def, 4, "T");
    weir_wire_end(&def, arg);
  }
  size_t attr = weir_wire_begin(&def, 4);
  weir_wire_put_string(&def, 1, "T");
  weir_wire_put_string(&def, 2, "type");
  weir_wire_end(&def, attr);
  if (is_stateful) weir_wire_put_bool(&def, 17, true);
  weir_wire_end(&def, signature);
  check_ok(weir_strbuf_finish(&def));
  check_ok(weir_function_library_add(graph->library, weir_strbuf_view(&def)));
  weir_strbuf_free(&def);
}

// An attribute that no definition has.
static void add_tag(testing_t* t, weir_node_t* node) {
  size_t count = node->def.attrs.count;
  weir_named_attr_t* items = weir_arena_array(&t->graph->arena, count + 1, sizeof(*items));
  assert_non_null(items);
  if (count) memcpy(items, node->def.attrs.items, count * sizeof(*items));
  items[count] = weir_attr_string("_tag", "of the node");
  node->def.attrs = (weir_attrs_t){.items = items, .count = count + 1};
}

static void test_calls(void** state) {
  testing_t* t = *state;
  add_function(t->graph, "square", false);
  add_function(t->graph, "count", true);
  weir_edge_t x = add_placeholder(t->graph, "x", WEIR_DTYPE_FLOAT, &weir_shape_unknown);
  weir_edge_t pure = ADD(t->graph, "square", "pure", x);
  weir_edge_t impure = ADD(t->graph, "count", "impure", pure);
  add_tag(t, impure.node);
  check_ok(weir_graph_add_control(impure.node, x.node));
  add_retval(t->graph, "ret", impure, 0);
  weir_node_t* target = pure.node;
  weir_pass_ctx_t ctx = {.graph = t->graph, .targets = &target, .target_count = 1};
  check_ok(weir_pass_calls(&ctx));
  check_input(t->graph, "ret", 0, "impure_call:0");
  check_input(t->graph, "impure_call", 0, "pure_call:0");
  check_input(t->graph, "impure_call", 0, "^x");
  check_input(t->graph, "pure_call", 0, "x:0");
  assert_string_equal(target->def.op_name, "PartitionedCall");
  weir_node_t* call = find(t->graph, "impure_call");
  assert_string_equal(call->def.op_name, "StatefulPartitionedCall");
  const weir_func_t* func = weir_attrs_func(call->def.attrs, "f");
  assert_true(weir_view_is(func->name, "count"));
  assert_int_equal(weir_attrs_type(func->attrs, "T"), WEIR_DTYPE_FLOAT);
  assert_null(weir_attrs_find(func->attrs, "_tag"));  // it is the node's
  assert_non_null(weir_attrs_find(call->def.attrs, "_tag"));
  assert_int_equal(weir_edge_dtype(edge_of(call, 0)), WEIR_DTYPE_FLOAT);
}

static void add_work(testing_t* t) {
  weir_edge_t x = add_placeholder(t->graph, "x", WEIR_DTYPE_FLOAT, &weir_shape_unknown);
  weir_edge_t a = ADD(t->graph, "Neg", "n1", ADD(t->graph, "Neg", "n0", x));
  weir_edge_t b = ADD(t->graph, "Add", "b", x, x);
  weir_edge_t c = ADD(t->graph, "Add", "c", a, x);
  add_retval(t->graph, "r0", b, 0);
  add_retval(t->graph, "r1", c, 1);
}

static void test_all_passes(void** state) {
  testing_t* t = *state;
  add_work(t);
  weir_pass_ctx_t ctx = {.graph = t->graph};
  check_ok(weir_passes_run(&ctx, NULL));
  check_input(t->graph, "r1", 0, "b:0");  // the same once simplified
}

static void test_disabled(void** state) {
  testing_t* t = *state;
  add_work(t);
  weir_pass_ctx_t ctx = {.graph = t->graph};
  check_error(weir_passes_run(&ctx, "cse,polish"), WEIR_INVALID_ARGUMENT, "'polish'");
  check_ok(weir_passes_run(&ctx, "arithmetic"));
  check_input(t->graph, "r1", 0, "c:0");
  setenv("WEIR_DISABLE_PASSES", "cse", 1);
  check_ok(weir_passes_run(&ctx, ""));
  unsetenv("WEIR_DISABLE_PASSES");
  check_input(t->graph, "r1", 0, "c:0");
  check_input(t->graph, "c", 0, "x:0");
  check_ok(weir_passes_run(&ctx, "all"));
  check_input(t->graph, "r1", 0, "c:0");
  check_ok(weir_passes_run(&ctx, " calls, fold "));
  check_input(t->graph, "r1", 0, "b:0");
}

// Every allocation may fail: a status comes back and nothing leaks.
static void test_out_of_memory(void** state) {
  testing_t* t = *state;
  add_function(t->graph, "square", false);
  add_work(t);
  add_retval(t->graph, "r2", ADD(t->graph, "square", "call", edge_of(find(t->graph, "b"), 0)), 2);
  weir_pass_ctx_t ctx = {.graph = t->graph};
  for (int n = 1;; ++n) {
    weir_alloc_fail_at(n, true);
    weir_status_t* status = weir_passes_run(&ctx, NULL);
    weir_alloc_fail_at(0, false);
    if (!status) break;
    assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, testing_setup, testing_teardown)
      TEST(test_calls),
      TEST(test_all_passes),
      TEST(test_disabled),
      TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
