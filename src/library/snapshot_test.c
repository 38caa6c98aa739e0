// snapshot_test.c — Checkpoints of variables on two parameter servers while workers go on: each
// holds whole steps, and steps go on while it is written.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "testing/tensors.h"
#include "weir/server.h"
#include "weir/weir.h"

enum { PS_COUNT = 2, WORKERS = 3, SERVERS = PS_COUNT + WORKERS, VARIABLES = 6 };

// A step adds one to every variable, one after the other, so that it is halfway most of the time.
typedef struct model_t {
  weir_graph_t* graph;
  weir_edge_t variables[VARIABLES];
  weir_node_t *init, *step;
  weir_saver_t* saver;
  weir_session_t* session;
} model_t;

typedef struct world_t {
  char directory[64];
  char paths[SERVERS][96];
  weir_server_t* servers[SERVERS];
  atomic_bool is_over;
} world_t;

static void build(weir_scope_t* s, int size, model_t* m) {
  weir_edge_t shape = weir_const_ints(s, &size, 1);
  weir_edge_t zero = weir_fill(s, shape, weir_const_float(s, 0));
  weir_edge_t one = weir_fill(s, shape, weir_const_float(s, 1));
  weir_node_t* before = NULL;
  for (int i = 0; i < VARIABLES; ++i) {
    char name[16];
    snprintf(name, sizeof(name), "v%d", i);
    m->variables[i] = weir_variable(s, name, zero);
    weir_scope_t* after = before ? weir_scope_after(s, &before, 1) : s;
    weir_edge_t handle = weir_variable_handle(m->variables[i]);
    before = weir_assign_add_variable_op(weir_scope_on(after, weir_node_device(handle.node)),
                                         handle, one);
  }
  m->step = before;
  m->init = weir_initializer(s);
}

// |target| NULL: a local session.
static model_t open_model(const char* target, int worker, int size, bool is_sharded) {
  model_t m = {.graph = NULL};
  char filters[64];
  check_ok(weir_graph_create(&m.graph));
  weir_scope_t* root = weir_scope_create(m.graph);
  build(target ? weir_scope_replica(root, PS_COUNT, worker) : root, size, &m);
  m.saver = weir_saver_create(root, .is_sharded = is_sharded, .max_to_keep = 2);
  check_ok(weir_scope_finish(root));
  snprintf(filters, sizeof(filters), "/job:ps,/job:worker/task:%d", worker);
  weir_session_options_t options = {.target = target, .device_filters = target ? filters : NULL};
  check_ok(weir_session_create(m.graph, &options, &m.session));
  return m;
}

static void close_model(model_t* m) {
  weir_saver_destroy(m->saver);
  weir_session_destroy(m->session);
  weir_graph_release(m->graph);
}

static int setup(void** state) {
  world_t* w = calloc(1, sizeof(*w));
  char cluster[1024] = "";
  size_t at = 0;
  strcpy(w->directory, "/tmp/weir_snapshot_XXXXXX");
  assert_non_null(mkdtemp(w->directory));
  for (int i = 0; i < SERVERS; ++i) {
    snprintf(w->paths[i], sizeof(w->paths[i]), "unix:%s/%d", w->directory, i);
    const char* before = i == 0 ? "ps|" : i == PS_COUNT ? ",worker|" : ";";
    at += (size_t)snprintf(cluster + at, sizeof(cluster) - at, "%s%s", before, w->paths[i]);
  }
  *state = w;
  for (int i = 0; i < SERVERS; ++i) {
    weir_server_options_t options = {.cluster = cluster,
                                     .job = i < PS_COUNT ? "ps" : "worker",
                                     .task = i < PS_COUNT ? i : i - PS_COUNT,
                                     .threads = 1};
    weir_status_t* status = weir_server_create(&options, &w->servers[i]);
    if (weir_status_code(status) == WEIR_UNIMPLEMENTED) {  // built without clusters
      weir_status_destroy(status);
      return 0;
    }
    check_ok(status);
  }
  return 0;
}

static int teardown(void** state) {
  world_t* w = *state;
  char command[128];
  for (int i = 0; i < SERVERS; ++i) weir_server_destroy(w->servers[i], 0);
  snprintf(command, sizeof(command), "rm -rf '%s'", w->directory);
  assert_int_equal(system(command), 0);
  free(w);
  return 0;
}

static void target_of(const world_t* w, int worker, char out[128]) {
  snprintf(out, 128, "grpc://%s", w->paths[PS_COUNT + worker]);
}

// ---- looking at a checkpoint ----

// How many steps the checkpoint |path| holds of all variables: the same of each.
static int steps_in(model_t* reader, const char* path) {
  float first = -1;
  check_ok(weir_saver_restore(reader->saver, reader->session, path));
  for (int i = 0; i < VARIABLES; ++i) {
    weir_tensor_t* value = NULL;
    weir_step_spec_t spec = {WEIR_FETCHES(reader->variables[i])};
    check_ok(weir_session_run(reader->session, &spec, &value));
    const float* elements = weir_tensor_data(value);
    if (i == 0) first = elements[0];
    for (int64_t k = 0; k < weir_tensor_count(value); ++k)
      if (elements[k] != first) fail_msg("%s: v%d is %g, v0 %g", path, i, elements[k], first);
    weir_tensor_release(value);
  }
  return (int)first;
}

// ---- workers that go on ----

typedef struct worker_t {
  world_t* world;
  int number;
  pthread_t thread;
  int steps;
} worker_t;

static void* work(void* arg) {
  worker_t* worker = arg;
  char target[128];
  target_of(worker->world, worker->number, target);
  model_t m = open_model(target, worker->number, 8, false);
  while (!atomic_load(&worker->world->is_over)) {
    check_ok(weir_session_run_target(m.session, m.step));
    ++worker->steps;
  }
  close_model(&m);
  return NULL;
}

static void save_while_others_work(world_t* w, bool is_sharded, bool in_background, int saves) {
  if (!w->servers[0]) skip();
  char target[128], prefix[128];
  target_of(w, 0, target);
  snprintf(prefix, sizeof(prefix), "%s/model.ckpt", w->directory);
  model_t chief = open_model(target, 0, 8, is_sharded);
  model_t reader = open_model(NULL, 0, 8, false);
  check_ok(weir_session_run_target(chief.session, chief.init));
  worker_t workers[WORKERS - 1];
  for (int i = 0; i < WORKERS - 1; ++i) {
    workers[i] = (worker_t){.world = w, .number = i + 1};
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  int last = -1, different = 0;
  for (int i = 0; i < saves; ++i) {
    char* path = NULL;
    check_ok(weir_saver_save_with(chief.saver, chief.session, prefix, i,
                                  &(weir_save_options_t){.in_background = in_background}, &path));
    check_ok(weir_session_run_target(chief.session, chief.step));
    check_ok(weir_saver_wait(chief.saver));
    const int steps = steps_in(&reader, path);
    assert_true(steps >= last);
    different += steps != last;
    last = steps;
    weir_buffer_free(path);
  }
  atomic_store(&w->is_over, true);
  int total = saves;
  for (int i = 0; i < WORKERS - 1; ++i) {
    assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    total += workers[i].steps;
    assert_true(workers[i].steps > 0);
  }
  assert_true(different > saves / 2);  // others were at work
  char* path = NULL;
  check_ok(weir_saver_save(chief.saver, chief.session, prefix, saves, &path));
  assert_int_equal(steps_in(&reader, path), total);  // every step that ended is in it
  weir_buffer_free(path);
  close_model(&reader);
  close_model(&chief);
}

static void test_in_background(void** state) { save_while_others_work(*state, true, true, 200); }

static void test_in_one_file(void** state) { save_while_others_work(*state, false, true, 50); }

static void test_in_foreground(void** state) { save_while_others_work(*state, true, false, 50); }

// What is saved is what the caller's own steps before it left, none after it, though they go on
// while it is written.
static void test_own_steps(void** state) {
  world_t* w = *state;
  enum { SIZE = 1 << 18, SAVES = 10 };
  if (!w->servers[0]) skip();
  char target[128], prefix[128];
  target_of(w, 0, target);
  snprintf(prefix, sizeof(prefix), "%s/model.ckpt", w->directory);
  model_t m = open_model(target, 0, SIZE, true), reader = open_model(NULL, 0, SIZE, false);
  check_ok(weir_session_run_target(m.session, m.init));
  int steps = 0, at_work = 0;
  for (int i = 0; i < SAVES; ++i) {
    char* path = NULL;
    const int expected = steps;
    check_ok(weir_saver_save_with(m.saver, m.session, prefix, i,
                                  &(weir_save_options_t){.in_background = true}, &path));
    at_work += weir_saver_is_busy(m.saver);
    for (int k = 0; k < 3; ++k, ++steps) check_ok(weir_session_run_target(m.session, m.step));
    check_ok(weir_saver_wait(m.saver));
    assert_int_equal(steps_in(&reader, path), expected);
    weir_buffer_free(path);
  }
  assert_true(at_work > 0);
  close_model(&reader);
  close_model(&m);
}

// A variable that is not initialised is an error before anything is written.
static void test_uninitialized(void** state) {
  world_t* w = *state;
  if (!w->servers[0]) skip();
  char target[128], prefix[128];
  target_of(w, 0, target);
  snprintf(prefix, sizeof(prefix), "%s/model.ckpt", w->directory);
  model_t m = open_model(target, 0, 8, true);
  weir_status_t* status = weir_saver_save_with(m.saver, m.session, prefix, 0,
                                               &(weir_save_options_t){.in_background = true}, NULL);
  assert_int_equal(weir_status_code(status), WEIR_FAILED_PRECONDITION);
  assert_non_null(strstr(weir_status_message(status), "v"));
  weir_status_destroy(status);
  check_ok(weir_session_run_target(m.session, m.init));  // nobody is held
  check_ok(weir_saver_save(m.saver, m.session, prefix, 1, NULL));
  close_model(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_in_background, setup, teardown),
      cmocka_unit_test_setup_teardown(test_in_one_file, setup, teardown),
      cmocka_unit_test_setup_teardown(test_in_foreground, setup, teardown),
      cmocka_unit_test_setup_teardown(test_own_steps, setup, teardown),
      cmocka_unit_test_setup_teardown(test_uninitialized, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
