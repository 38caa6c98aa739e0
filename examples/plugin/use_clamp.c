// use_clamp.c — Loads the plug-in given as its argument, and uses the op Clamp and its gradient.
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) return fputs("usage: use_clamp PLUGIN.so\n", stderr), 2;
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check(weir_plugin_load(argv[1]));
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t x = weir_const_floats(s, WEIR_DIMS(4), (const float[]){-3, -0.5f, 1, 2.5f}), dx;
  const weir_attr_arg_t limit = {.name = "limit", .kind = WEIR_ARG_FLOAT, .value.f = 2};
  weir_edge_t y = {weir_scope_node(s, "Clamp", &x, 1, &limit, 1), 0};
  check(weir_gradients(s, &y, 1, &x, 1, NULL, &dx));
  check(weir_scope_finish(s));

  check(weir_session_create(graph, NULL, &session));
  weir_step_spec_t spec = {WEIR_FETCHES(y, dx)};
  weir_tensor_t* results[2] = {NULL};
  check(weir_session_run(session, &spec, results));
  const char* const names[] = {"y", "dy/dx"};
  for (int i = 0; i < 2; ++i) {
    char* text = NULL;
    check(weir_tensor_to_text(results[i], 10, &text));
    printf("%s = %s\n", names[i], text);
    weir_buffer_free(text);
    weir_tensor_release(results[i]);
  }
  weir_session_destroy(session);
  weir_graph_release(graph);
  return 0;
}
