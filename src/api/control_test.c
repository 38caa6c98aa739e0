// control_test.c — Loops and conditionals when memory runs out while they are built.
#include "api/control.h"

#include "testing/world.h"

static weir_edge_t op(weir_scope_t* s, const char* name, weir_edges_t inputs) {
  return weir_scope_first(weir_scope_add(s, name, NULL, inputs, WEIR_NO_ATTRS));
}

static weir_edge_t below_three(weir_scope_t* s, const weir_edge_t* state, void* user) {
  (void)user;
  return op(s, "Less", WEIR_EDGES(state[0], weir_const_int(s, 3)));
}

static void square(weir_scope_t* s, weir_edge_t* outs, void* user) {
  outs[0] = op(s, "Square", WEIR_EDGES(*(weir_edge_t*)user));
}

static void negate(weir_scope_t* s, weir_edge_t* outs, void* user) {
  outs[0] = op(s, "Neg", WEIR_EDGES(*(weir_edge_t*)user));
}

static void choose(weir_scope_t* s, weir_edge_t* state, void* user) {
  weir_edge_t* x = user;
  weir_edge_t is_positive = op(s, "Greater", WEIR_EDGES(state[1], weir_const_float(s, 0)));
  weir_edge_t chosen = WEIR_NO_EDGE;
  weir_cond(s, is_positive, square, negate, x, &chosen, 1);
  weir_edge_t w = weir_variable(s, "w", op(s, "Identity", WEIR_EDGES(weir_const_float(s, 1))));
  weir_scope_t* after = weir_scope_after(s, &x->node, 1);
  state[0] = op(after, "AddV2", WEIR_EDGES(state[0], weir_const_int(s, 1)));
  state[1] = op(s, "Mul", WEIR_EDGES(chosen, w));
}

static weir_status_t* build(weir_graph_t* graph, int64_t fail_at) {
  weir_alloc_fail_at(fail_at, true);
  weir_scope_t* s = weir_scope_create(graph);
  if (s) {
    weir_edge_t x = op(s, "Identity", WEIR_EDGES(weir_const_float(s, 2)));
    weir_edge_t state[] = {weir_const_int(s, 0), x};
    weir_while_loop(s, state, 2, below_three, choose, &x, state, .maximum_iterations = 5);
  }
  weir_status_t* status = weir_scope_finish(s);
  weir_alloc_fail_at(0, false);
  return status;
}

static void test_exhausted_memory(void** state) {
  (void)state;
  bool is_done = false;
  int failures = 0;
  for (int64_t n = 1; !is_done; n += 1 + n / 16) {
    world_t* w = NULL;
    world_setup((void**)&w);
    weir_status_t* status = build(w->graph, n);
    is_done = !status;
    failures += !is_done;
    if (status) assert_int_equal(weir_status_code(status), WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
    world_teardown((void**)&w);
  }
  assert_true(failures > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_exhausted_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
