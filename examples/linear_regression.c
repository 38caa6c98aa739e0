// linear_regression.c — Fits y = w x + b to four points by gradient descent.
#include <stdio.h>
#include <weir/weir.h>

int main(void) {
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  float slope = 0, offset = 0;
  if (weir_status_report(weir_graph_create(&graph))) return 1;

  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t x = weir_const_floats(s, WEIR_DIMS(4), (const float[]){0, 1, 2, 3});
  weir_edge_t y = weir_const_floats(s, WEIR_DIMS(4), (const float[]){2, 5, 8, 11});
  weir_edge_t w = weir_variable(s, "w", weir_const_float(s, 0));
  weir_edge_t b = weir_variable(s, "b", weir_const_float(s, 0));
  weir_edge_t error = weir_sub(s, weir_add_v2(s, weir_mul(s, w, x), b), y);
  weir_edge_t loss = weir_mean(s, weir_square(s, error), weir_const_int(s, 0));
  weir_node_t* step = weir_train_sgd(s, loss, 0.1f);
  weir_node_t* init = weir_initializer(s);
  weir_status_t* status = weir_scope_finish(s);  // the first error of all of the above

  if (!status) status = weir_session_create(graph, NULL, &session);
  if (!status) status = weir_session_run_target(session, init);
  for (int i = 0; i < 200 && !status; ++i) status = weir_session_run_target(session, step);
  if (!status) status = weir_session_fetch_float(session, w, &slope);
  if (!status) status = weir_session_fetch_float(session, b, &offset);
  if (!status) printf("y = %.3f x + %.3f\n", slope, offset);

  weir_session_destroy(session);
  weir_graph_release(graph);
  return weir_status_report(status);
}
