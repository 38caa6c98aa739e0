// loops.c — Loops built in C, whose constants nothing orders, run by the master that is named, for
// cluster/mixed_test.py: prints the values of a loop, of its gradient, and of a nested loop, each
// added to a graph that the master has already. Usage: loops [TARGET [DEVICE]].
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

typedef struct body_t {
  weir_edge_t limit, factor;
  bool is_nested;
} body_t;

static weir_edge_t counts(weir_scope_t* s, const weir_edge_t* state, void* user) {
  const body_t* b = user;
  return weir_less(s, state[0], b->limit);
}

// x = x * factor + sin(x), and within it, where asked for, the same a few times more.
static void turn(weir_scope_t* s, weir_edge_t* state, void* user) {
  body_t* b = user;
  state[1] = weir_add_v2(s, weir_mul(s, state[1], b->factor), weir_sin(s, state[1]));
  if (b->is_nested) {
    body_t inner = {.limit = weir_const_int(s, 3), .factor = b->factor};
    weir_edge_t vars[] = {weir_const_int(s, 0), state[1]};
    weir_while_loop(s, vars, 2, counts, turn, &inner, vars);
    state[1] = vars[1];
  }
  state[0] = weir_add_v2(s, state[0], weir_const_int(s, 1));
}

static weir_edge_t loop(weir_scope_t* s, weir_edge_t x, weir_edge_t factor, bool is_nested) {
  body_t b = {.limit = weir_const_int(s, 4), .factor = factor, .is_nested = is_nested};
  weir_edge_t vars[] = {weir_const_int(s, 0), x};
  weir_while_loop(s, vars, 2, counts, turn, &b, vars);
  return vars[1];
}

static void print(weir_scope_t* s, weir_session_t* session, const char* name, weir_edge_t value) {
  float number = 0;
  if (weir_scope_status(s)) check(weir_status_copy(weir_scope_status(s)));
  check(weir_session_fetch_float(session, value, &number));
  printf("%s %.6g\n", name, (double)number);
}

int main(int argc, char** argv) {
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_session_options_t options = {.target = argc > 1 ? argv[1] : NULL};
  check(weir_graph_create(&graph));
  weir_scope_t* root = weir_scope_create(graph);
  weir_scope_t* s = argc > 2 ? weir_scope_on(root, argv[2]) : root;
  check(weir_session_create(graph, &options, &session));
  weir_edge_t x = weir_const_float(s, 1.5f), factor = weir_const_float(s, 0.5f), dx;
  weir_edge_t y = loop(s, x, factor, false);
  print(s, session, "loop", y);
  check(weir_gradients(s, &y, 1, &x, 1, NULL, &dx));
  print(s, session, "gradient", dx);
  print(s, session, "nested", loop(s, x, factor, true));
  weir_session_destroy(session);
  check(weir_scope_finish(root));
  weir_graph_release(graph);
  return 0;
}
