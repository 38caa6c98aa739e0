// saver_background_test.c — Checkpoints written on a thread while steps go on: what they hold, and
// who hears of errors.
#include <stdlib.h>
#include <sys/stat.h>

#include "testing/tensors.h"
#include "weir/weir.h"

enum { SIZE = 1 << 20, STEPS = 40 };

// Two variables that a step adds one to, of one kind or of two.
typedef struct world_t {
  char directory[64];
  weir_graph_t* graph;
  weir_session_t* session;
  weir_edge_t a, b, loss;
  weir_node_t *init, *step;
  weir_saver_t* saver;
} world_t;

static weir_edge_t zeros(weir_scope_t* s, float value) {
  return weir_fill(s, weir_const_ints(s, (const int[]){SIZE}, 1), weir_const_float(s, value));
}

// |is_ref|: |b| is a reference variable.
static world_t open_world(bool is_ref, bool is_sharded) {
  world_t w = {.directory = "/tmp/weir_background_XXXXXX"};
  assert_non_null(mkdtemp(w.directory));
  check_ok(weir_graph_create(&w.graph));
  weir_scope_t* s = weir_scope_create(w.graph);
  weir_edge_t one = zeros(s, 1);
  w.a = weir_variable(s, "a", zeros(s, 0));
  weir_node_t* nodes[2] = {weir_assign_add_variable_op(s, weir_variable_handle(w.a), one)};
  weir_node_t* inits[2] = {NULL};
  if (is_ref) {
    w.b = weir_variable_v2(weir_scope_name(s, "b"), WEIR_SHAPE(SIZE), WEIR_DTYPE_FLOAT);
    inits[1] = weir_assign(s, w.b, zeros(s, 0)).node;
    nodes[1] = weir_assign_add(s, w.b, one).node;
  } else {
    w.b = weir_variable(s, "b", zeros(s, 0));
    nodes[1] = weir_assign_add_variable_op(s, weir_variable_handle(w.b), one);
  }
  inits[0] = weir_initializer(s);
  w.init = is_ref ? weir_group(s, "init_all", inits, 2) : inits[0];
  w.step = weir_group(s, "step", nodes, 2);
  w.loss = weir_const_float(s, 0);
  const weir_saved_t both[] = {{w.a, "a"}, {w.b, "b"}};
  w.saver = weir_saver_create(s, .variables = both, .variable_count = 2, .is_sharded = is_sharded);
  check_ok(weir_scope_finish(s));
  check_ok(weir_session_create(w.graph, NULL, &w.session));
  check_ok(weir_session_run_target(w.session, w.init));
  return w;
}

static void close_world(world_t* w) {
  char command[128];
  weir_saver_destroy(w->saver);
  snprintf(command, sizeof(command), "rm -rf '%s'", w->directory);
  assert_int_equal(system(command), 0);
  weir_session_destroy(w->session);
  weir_graph_release(w->graph);
}

static const char* path_in(const world_t* w, const char* name) {
  static char path[160];
  snprintf(path, sizeof(path), "%s/%s", w->directory, name);
  return path;
}

static weir_status_t* start(world_t* w, int step) {
  return weir_saver_save_with(w->saver, w->session, path_in(w, "m"), step,
                              &(const weir_save_options_t){.in_background = true}, NULL);
}

static void check_all(const world_t* w, weir_edge_t edge, float expected) {
  weir_tensor_t* value = NULL;
  check_ok(weir_session_run(w->session, &(const weir_step_spec_t){WEIR_FETCHES(edge)}, &value));
  const float* data = weir_tensor_data(value);
  for (int64_t i = 0; i < weir_tensor_count(value); ++i) assert_true(data[i] == expected);
  weir_tensor_release(value);
}

// What is saved is what there was at the call, whatever steps do while it is written.
static void check_snapshot(bool is_ref, bool is_sharded) {
  world_t w = open_world(is_ref, is_sharded);
  int taken = 0;
  for (; taken < 3; ++taken) check_ok(weir_session_run_target(w.session, w.step));
  check_ok(start(&w, 3));
  do {
    check_ok(weir_session_run_target(w.session, w.step));
    ++taken;
  } while (weir_saver_is_busy(w.saver) || taken < STEPS);
  check_ok(weir_saver_wait(w.saver));
  check_ok(weir_saver_wait(w.saver));  // there is none
  check_all(&w, w.a, (float)taken);
  check_all(&w, w.b, (float)taken);
  check_ok(weir_saver_restore(w.saver, w.session, path_in(&w, "m-3")));
  check_all(&w, w.a, 3);
  check_all(&w, w.b, 3);
  close_world(&w);
}

static void test_snapshot(void** state) {
  (void)state;
  for (int i = 0; i < 4; ++i) check_snapshot(i & 1, i & 2);
}

// Each save waits for the one before it, and the end of the saver for the last.
static void test_one_at_a_time(void** state) {
  (void)state;
  world_t w = open_world(false, false);
  struct stat info;
  char* latest = NULL;
  for (int i = 1; i <= 4; ++i) {
    check_ok(weir_session_run_target(w.session, w.step));
    check_ok(start(&w, i));
  }
  weir_saver_destroy(w.saver);
  w.saver = NULL;
  check_ok(weir_latest_checkpoint(w.directory, &latest));
  assert_string_equal(latest, path_in(&w, "m-4"));
  weir_buffer_free(latest);
  assert_int_equal(stat(path_in(&w, "m-1.index"), &info), 0);
  close_world(&w);
}

static void test_not_initialised(void** state) {
  (void)state;
  world_t w = open_world(false, false);
  weir_session_reset(w.session, NULL, 0);
  check_error(start(&w, 1), WEIR_FAILED_PRECONDITION, "uninitialized");
  assert_false(weir_saver_is_busy(w.saver));
  close_world(&w);
}

// The error comes from whoever waits, once.
static void test_error(void** state) {
  (void)state;
  world_t w = open_world(false, false);
  char* path = NULL;
  assert_int_equal(mkdir(path_in(&w, "m-1.index"), 0700), 0);  // what cannot be replaced
  check_ok(start(&w, 1));
  check_error(weir_saver_wait(w.saver), WEIR_FAILED_PRECONDITION, "m-1.index");
  check_ok(weir_saver_wait(w.saver));
  check_ok(weir_latest_checkpoint(w.directory, &path));
  assert_null(path);
  check_ok(start(&w, 1));
  check_error(start(&w, 2), WEIR_FAILED_PRECONDITION, "m-1.index");
  check_ok(start(&w, 2));
  check_ok(weir_saver_restore(w.saver, w.session, path_in(&w, "m-2")));  // waits for it
  close_world(&w);
}

// ---- the loop ----

static weir_status_t* fail_at_three(void* arg, const weir_fit_state_t* state, bool* stop) {
  (void)stop;
  return arg && state->step == 3 ? WEIR_STATUS(ABORTED, "enough") : NULL;
}

static weir_status_t* fit(world_t* w, int steps, bool is_failing, bool in_foreground) {
  return weir_fit(w->session, w->step, w->loss, NULL, .init = w->init, .max_steps = steps,
                  .saver = w->saver, .directory = w->directory, .save_every = 2,
                  .on_step = fail_at_three, .arg = is_failing ? w : NULL, .is_quiet = true,
                  .save_in_foreground = in_foreground);
}

static void test_loop(void** state) {
  (void)state;
  for (int in_foreground = 0; in_foreground < 2; ++in_foreground) {
    world_t w = open_world(false, false);
    check_ok(fit(&w, 5, false, in_foreground));
    assert_false(weir_saver_is_busy(w.saver));
    for (int step = 2; step <= 5; step += step == 4 ? 1 : 2) {
      char name[32];
      snprintf(name, sizeof(name), "model.ckpt-%d", step);
      check_ok(weir_saver_restore(w.saver, w.session, path_in(&w, name)));
      check_all(&w, w.a, (float)step);
      check_all(&w, w.b, (float)step);
    }
    close_world(&w);
  }
}

// An error of the thread ends the loop, also one that is over by then, and one that has another.
static void test_loop_errors(void** state) {
  (void)state;
  for (int in_foreground = 0; in_foreground < 2; ++in_foreground) {
    world_t w = open_world(false, false);
    assert_int_equal(mkdir(path_in(&w, "model.ckpt-2.index"), 0700), 0);
    check_error(fit(&w, 0, false, in_foreground), WEIR_FAILED_PRECONDITION, "model.ckpt-2.index");
    check_error(fit(&w, 2, false, in_foreground), WEIR_FAILED_PRECONDITION, "model.ckpt-2.index");
    if (!in_foreground)
      check_error(fit(&w, 0, true, false), WEIR_ABORTED,
                  "enough; and a checkpoint was not saved: ");
    close_world(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_snapshot),
                                     cmocka_unit_test(test_one_at_a_time),
                                     cmocka_unit_test(test_not_initialised),
                                     cmocka_unit_test(test_error),
                                     cmocka_unit_test(test_loop),
                                     cmocka_unit_test(test_loop_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
