// saving.c — Trains and saves all the time, to be killed at any moment by killed_saves_test.py.
//
// Each step adds one to every element of |a| and |b| and to the global step: a checkpoint of which
// these are not all equal is of no step.
//
//   saving train DIRECTORY ELEMENTS STEPS background|foreground|timed
//   saving check DIRECTORY ELEMENTS        prints the step that would be gone on from
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

typedef struct model_t {
  weir_graph_t* graph;
  weir_session_t* session;
  weir_edge_t a, b, global_step, loss;
  weir_node_t *step, *init;
  weir_saver_t* saver;
} model_t;

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

static weir_edge_t add_variable(weir_scope_t* s, const char* name, int elements) {
  weir_edge_t zeros =
      weir_fill(s, weir_const_ints(s, (const int[]){elements}, 1), weir_const_float(s, 0));
  return weir_variable(s, name, zeros);
}

static weir_edge_t handle_of(weir_scope_t* s, int index) {
  return weir_scope_variable_at(s, index).handle;
}

static model_t build(int elements) {
  model_t m = {0};
  check(weir_graph_create(&m.graph));
  weir_scope_t* s = weir_scope_create(m.graph);
  m.a = add_variable(s, "a", elements);
  m.b = add_variable(s, "b", elements);
  m.global_step = weir_global_step(s);
  weir_edge_t ones =
      weir_fill(s, weir_const_ints(s, (const int[]){elements}, 1), weir_const_float(s, 1));
  weir_edge_t one = weir_cast(s, weir_const_int(s, 1), WEIR_DTYPE_INT64);
  weir_node_t* nodes[] = {weir_assign_add_variable_op(s, handle_of(s, 0), ones),
                          weir_assign_add_variable_op(s, handle_of(s, 1), ones),
                          weir_assign_add_variable_op(s, handle_of(s, 2), one)};
  m.step = weir_group(s, "step", nodes, 3);
  m.loss = weir_const_float(s, 0);
  m.init = weir_initializer(s);
  m.saver = weir_saver_create(s, .max_to_keep = 3);
  check(weir_scope_finish(s));
  check(weir_session_create(m.graph, &(const weir_session_options_t){.threads = 1}, &m.session));
  return m;
}

static void close_model(model_t m) {
  weir_saver_destroy(m.saver);
  weir_session_destroy(m.session);
  weir_graph_release(m.graph);
}

static weir_status_t* tell(void* arg, const weir_fit_state_t* state, bool* stop) {
  (void)arg, (void)stop;
  printf("%lld\n", (long long)state->step);
  fflush(stdout);
  return NULL;
}

// |way|: steps wait for saves (foreground) or not; timed: nor do saves come after every step.
static int train(const char* directory, int elements, int steps, const char* way) {
  const bool is_timed = !strcmp(way, "timed");
  model_t m = build(elements);
  check(weir_fit(m.session, m.step, m.loss, NULL, .init = m.init, .max_steps = steps,
                 .saver = m.saver, .directory = directory, .save_every = !is_timed,
                 .save_every_seconds = is_timed ? 1e-9 : 0, .on_step = tell, .log_every = 1 << 30,
                 .save_in_foreground = !strcmp(way, "foreground")));
  close_model(m);
  return 0;
}

// The smallest and the largest element.
static void print_range(const model_t* m, weir_edge_t variable, const char* name) {
  weir_tensor_t* value = NULL;
  weir_step_spec_t spec = {WEIR_FETCHES(variable)};
  check(weir_session_run(m->session, &spec, &value));
  const float* data = weir_tensor_data(value);
  float least = data[0], most = data[0];
  for (int64_t i = 1; i < weir_tensor_count(value); ++i) {
    least = data[i] < least ? data[i] : least;
    most = data[i] > most ? data[i] : most;
  }
  printf("%s %g %g\n", name, (double)least, (double)most);
  weir_tensor_release(value);
}

static int look(const char* directory, int elements) {
  char prefix[4096];
  char *path = NULL, *refused = NULL;
  int64_t step = 0;
  weir_tensor_t* value = NULL;
  model_t m = build(elements);
  snprintf(prefix, sizeof(prefix), "%s/model.ckpt", directory);
  check(weir_saver_resume(m.saver, m.session, prefix, &path, &refused));
  printf("path %s\n", path ? path : "none");
  if (refused) printf("refused %s\n", refused);
  if (path) {
    weir_step_spec_t spec = {WEIR_FETCHES(m.global_step)};
    check(weir_session_run(m.session, &spec, &value));
    step = *(const int64_t*)weir_tensor_data(value);
    weir_tensor_release(value);
    printf("step %lld\n", (long long)step);
    print_range(&m, m.a, "a");
    print_range(&m, m.b, "b");
  }
  weir_buffer_free(path);
  weir_buffer_free(refused);
  close_model(m);
  return 0;
}

int main(int argc, char** argv) {
  const char* verb = argc > 3 ? argv[1] : "";
  if (!strcmp(verb, "train") && argc > 5)
    return train(argv[2], atoi(argv[3]), atoi(argv[4]), argv[5]);
  if (!strcmp(verb, "check")) return look(argv[2], atoi(argv[3]));
  return fputs("usage: saving train DIRECTORY ELEMENTS STEPS WAY | check DIRECTORY ELEMENTS\n",
               stderr),
         2;
}
