// snapshots.c — Workers whose steps add one to each of many variables on two parameter servers; the
// first of them saves meanwhile. tests/snapshots_test.py reads what it saved.
//
//   snapshots TARGET WORKER [DIRECTORY SAVES]     a worker without DIRECTORY goes on until it is
//   killed
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir/replicas.h>
#include <weir/weir.h>

enum { PS_COUNT = 2, VARIABLES = 12 };

typedef struct model_t {
  weir_graph_t* graph;
  weir_session_t* session;
  weir_node_t *init, *step;
  weir_saver_t* saver;
} model_t;

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

// The variables are written one after the other, on one server and on the other.
static weir_node_t* build_step(weir_scope_t* s) {
  weir_node_t* before = NULL;
  for (int i = 0; i < VARIABLES; ++i) {
    char name[16];
    snprintf(name, sizeof(name), "v%02d", i);
    weir_edge_t variable = weir_variable(s, name, weir_const_float(s, 0));
    weir_edge_t handle = weir_variable_handle(variable);
    weir_scope_t* there = weir_scope_on(s, weir_node_device(handle.node));
    if (before) there = weir_scope_after(there, &before, 1);
    before = weir_assign_add_variable_op(there, handle, weir_const_float(s, 1));
  }
  return before;
}

static model_t open_model(const char* target, int worker) {
  model_t m = {.graph = NULL};
  char filters[64];
  check(weir_graph_create(&m.graph));
  weir_scope_t* root = weir_scope_create(m.graph);
  m.step = build_step(weir_scope_replica(root, PS_COUNT, worker));
  m.init = weir_initializer(root);
  m.saver = weir_saver_create(root, .is_sharded = true, .max_to_keep = -1);
  check(weir_scope_finish(root));
  snprintf(filters, sizeof(filters), "/job:ps,/job:worker/task:%d", worker);
  weir_session_options_t options = {.target = target, .device_filters = filters};
  check(weir_session_create(m.graph, &options, &m.session));
  return m;
}

static void save_often(model_t* m, const char* directory, int saves) {
  char prefix[512];
  snprintf(prefix, sizeof(prefix), "%s/model.ckpt", directory);
  check(weir_session_run_target(m->session, m->init));
  puts("ready");
  fflush(stdout);
  for (int i = 0; i < saves; ++i) {
    const weir_save_options_t options = {.in_background = true};
    check(weir_saver_save_with(m->saver, m->session, prefix, i, &options, NULL));
    check(weir_session_run_target(m->session, m->step));
    check(weir_saver_wait(m->saver));
    printf("saved %d\n", i);
    fflush(stdout);
  }
}

static void step_for_ever(model_t* m) {
  for (int64_t i = 0;; ++i) {
    weir_status_t* status = weir_session_run_target(m->session, m->step);
    if (status) usleep(10000);  // not initialised yet, or a server is gone
    if (!status && i % 100 == 0) puts("works");
    fflush(stdout);
    weir_status_destroy(status);
  }
}

int main(int argc, char** argv) {
  if (argc < 3) return fputs("usage: snapshots TARGET WORKER [DIRECTORY SAVES]\n", stderr), 2;
  model_t m = open_model(argv[1], atoi(argv[2]));
  if (argc < 5) step_for_ever(&m);
  save_often(&m, argv[3], atoi(argv[4]));
  weir_saver_destroy(m.saver);
  weir_session_destroy(m.session);
  weir_graph_release(m.graph);
  return 0;
}
