// saver_test.c — Savers: round trips, subsets and other names, which checkpoints stay, errors.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing/tensors.h"
#include "weir/weir.h"

typedef struct world_t {
  char directory[64];
  weir_graph_t* graph;
  weir_session_t* session;
  weir_edge_t w, b;
  weir_node_t* init;
  weir_saver_t* saver;
} world_t;

// w = [1, 2, 3] + shift, b = 4 + shift.
static world_t open_world_with(float shift, const weir_saver_options_t* options) {
  world_t world = {.directory = "/tmp/weir_saver_XXXXXX"};
  assert_non_null(mkdtemp(world.directory));
  check_ok(weir_graph_create(&world.graph));
  weir_scope_t* s = weir_scope_create(world.graph);
  const float w[] = {1 + shift, 2 + shift, 3 + shift};
  world.w = weir_variable(s, "w", weir_const_floats(s, WEIR_DIMS(3), w));
  world.b = weir_variable(weir_scope_in(s, "layer"), "b", weir_const_float(s, 4 + shift));
  world.init = weir_initializer(s);
  world.saver = weir_saver_create_with(s, options);
  check_ok(weir_scope_finish(s));
  check_ok(weir_session_create(world.graph, NULL, &world.session));
  return world;
}
#define open_world(shift, ...) \
  open_world_with((shift), &(const weir_saver_options_t){0, __VA_ARGS__})

static void close_world(world_t* world) {
  char command[128];
  snprintf(command, sizeof(command), "rm -rf '%s'", world->directory);
  assert_int_equal(system(command), 0);
  weir_saver_destroy(world->saver);
  weir_session_destroy(world->session);
  weir_graph_release(world->graph);
}

static const char* path_in(const world_t* world, const char* name) {
  static char path[160];
  snprintf(path, sizeof(path), "%s/%s", world->directory, name);
  return path;
}

static bool exists(const world_t* world, const char* name) {
  struct stat info;
  return stat(path_in(world, name), &info) == 0;
}

static float value_of(const world_t* world, weir_edge_t edge) {
  weir_step_spec_t spec = {WEIR_FETCHES(edge)};
  weir_tensor_t* result = NULL;
  check_ok(weir_session_run(world->session, &spec, &result));
  const float value = *(const float*)weir_tensor_data(result);
  weir_tensor_release(result);
  return value;
}

static void save(world_t* world, int64_t step) {
  check_ok(weir_saver_save(world->saver, world->session, path_in(world, "m"), step, NULL));
}

static void test_round_trip(void** state) {
  (void)state;
  world_t a = open_world(0), b = open_world(10);
  char* path = NULL;
  check_ok(weir_session_run_target(a.session, a.init));
  check_ok(weir_saver_save(a.saver, a.session, path_in(&a, "new/m"), 7, &path));
  assert_string_equal(path, path_in(&a, "new/m-7"));
  check_ok(weir_saver_restore(b.saver, b.session, path));  // which was not even initialised
  assert_float_equal(value_of(&b, b.w), 1, 0);
  assert_float_equal(value_of(&b, b.b), 4, 0);
  weir_buffer_free(path);
  check_ok(weir_latest_checkpoint(path_in(&a, "new"), &path));
  assert_string_equal(path, path_in(&a, "new/m-7"));
  bool has = false;
  check_ok(weir_checkpoint_has(path, "layer/b", &has));
  assert_true(has);
  check_ok(weir_checkpoint_has(path, "layer/c", &has));
  assert_false(has);
  weir_buffer_free(path);
  close_world(&a);
  close_world(&b);
}

static void test_sharded(void** state) {
  (void)state;
  world_t a = open_world(0, .is_sharded = true), b = open_world(10);
  check_ok(weir_session_run_target(a.session, a.init));
  save(&a, 1);
  check_ok(weir_saver_restore(b.saver, b.session, path_in(&a, "m-1")));
  assert_float_equal(value_of(&b, b.w), 1, 0);
  assert_false(exists(&a, "m-1_temp"));
  close_world(&a);
  close_world(&b);
}

static void test_subset_and_other_names(void** state) {
  (void)state;
  world_t a = open_world(0);
  check_ok(weir_session_run_target(a.session, a.init));
  save(&a, 1);
  // A new model: its "head" comes from the old "layer/b", the rest starts anew.
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check_ok(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t head = weir_variable(s, "head", weir_const_float(s, -1));
  weir_edge_t rest = weir_variable(s, "rest", weir_const_float(s, -2));
  weir_node_t* init = weir_initializer(s);
  weir_saver_t* saver =
      weir_saver_create(s, .variables = (weir_saved_t[]){{head, "layer/b"}}, .variable_count = 1);
  check_ok(weir_scope_finish(s));
  check_ok(weir_session_create(graph, NULL, &session));
  check_ok(weir_session_run_target(session, init));
  check_ok(weir_saver_restore(saver, session, path_in(&a, "m-1")));
  float value = 0;
  check_ok(weir_session_fetch_float(session, head, &value));
  assert_float_equal(value, 4, 0);
  check_ok(weir_session_fetch_float(session, rest, &value));
  assert_float_equal(value, -2, 0);
  weir_saver_destroy(saver);
  weir_session_destroy(session);
  weir_graph_release(graph);
  close_world(&a);
}

static void test_imported_graph(void** state) {
  (void)state;
  world_t a = open_world(0);
  char* def = NULL;
  size_t size = 0;
  weir_graph_t* graph = NULL;
  check_ok(weir_session_run_target(a.session, a.init));
  save(&a, -1);
  assert_true(exists(&a, "m.index"));
  check_ok(weir_graph_to_def(a.graph, &def, &size));
  check_ok(weir_graph_create(&graph));
  check_ok(weir_graph_import_def(graph, def, size, NULL));
  weir_scope_t* s = weir_scope_create(graph);  // knows no variable of its own
  weir_saver_t* saver = weir_saver_create(s, .name = "again");
  check_ok(weir_scope_finish(s));
  weir_session_t* session = NULL;
  check_ok(weir_session_create(graph, NULL, &session));
  check_ok(weir_saver_restore(saver, session, path_in(&a, "m")));
  weir_edge_t b;
  float value = 0;
  check_ok(weir_graph_find_output(graph, "layer/b/Read", &b));
  check_ok(weir_session_fetch_float(session, b, &value));
  assert_float_equal(value, 4, 0);
  weir_buffer_free(def);
  weir_saver_destroy(saver);
  weir_session_destroy(session);
  weir_graph_release(graph);
  close_world(&a);
}

static void test_max_to_keep(void** state) {
  (void)state;
  world_t a = open_world(0, .max_to_keep = 2);
  check_ok(weir_session_run_target(a.session, a.init));
  for (int step = 1; step <= 3; ++step) save(&a, step);
  save(&a, 2);  // again: now the newest
  save(&a, 4);
  const bool expected[] = {false, true, false, true};
  for (int step = 1; step <= 4; ++step) {
    char name[32];
    snprintf(name, sizeof(name), "m-%d.index", step);
    assert_int_equal(exists(&a, name), expected[step - 1]);
    snprintf(name, sizeof(name), "m-%d.data-00000-of-00001", step);
    assert_int_equal(exists(&a, name), expected[step - 1]);
  }
  // A second saver takes over what the first left.
  world_t b = open_world(0, .max_to_keep = 1);
  check_ok(weir_session_run_target(b.session, b.init));
  check_ok(weir_saver_recover(b.saver, a.directory));
  check_ok(weir_saver_recover(b.saver, b.directory));  // has none
  check_ok(weir_saver_save(b.saver, b.session, path_in(&a, "m"), 5, NULL));
  assert_false(exists(&a, "m-2.index"));
  assert_false(exists(&a, "m-4.index"));
  assert_true(exists(&a, "m-5.index"));
  close_world(&a);
  close_world(&b);
}

static void remove_path(const char* path) { assert_int_equal(rmdir(path), 0); }

// A run that ends before an old checkpoint is gone leaves it on the list, for the next run.
static void test_unfinished_removal(void** state) {
  (void)state;
  world_t a = open_world(0, .max_to_keep = 1);
  check_ok(weir_session_run_target(a.session, a.init));
  save(&a, 1);
  // What cannot be removed stands for the end of the process.
  assert_int_equal(mkdir(path_in(&a, "m-1.data-zzz"), 0700), 0);
  weir_status_t* status = weir_saver_save(a.saver, a.session, path_in(&a, "m"), 2, NULL);
  assert_non_null(status);
  weir_status_destroy(status);
  char* latest = NULL;
  check_ok(weir_latest_checkpoint(a.directory, &latest));
  assert_string_equal(latest, path_in(&a, "m-2"));
  weir_buffer_free(latest);
  remove_path(path_in(&a, "m-1.data-zzz"));
  close(creat(path_in(&a, "m-1.meta"), 0600));
  world_t b = open_world(0, .max_to_keep = 1);
  check_ok(weir_session_run_target(b.session, b.init));
  check_ok(weir_saver_recover(b.saver, a.directory));
  check_ok(weir_saver_save(b.saver, b.session, path_in(&a, "m"), 3, NULL));
  const char* const gone[] = {"m-1.index", "m-1.meta", "m-1.data-00000-of-00001", "m-2.index"};
  for (size_t i = 0; i < sizeof(gone) / sizeof(*gone); ++i) assert_false(exists(&a, gone[i]));
  assert_true(exists(&a, "m-3.index"));
  close_world(&a);
  close_world(&b);
}

static void test_keep_every_n_hours(void** state) {
  (void)state;
  // So short a time that every checkpoint but the last is due to stay.
  world_t a = open_world(0, .max_to_keep = 1, .keep_every_n_hours = 1e-12);
  check_ok(weir_session_run_target(a.session, a.init));
  for (int step = 1; step <= 3; ++step) save(&a, step);
  assert_true(exists(&a, "m-1.index"));
  assert_true(exists(&a, "m-2.index"));
  world_t b = open_world(0, .max_to_keep = -1);
  check_ok(weir_session_run_target(b.session, b.init));
  for (int step = 1; step <= 8; ++step) save(&b, step);
  assert_true(exists(&b, "m-1.index"));
  close_world(&a);
  close_world(&b);
}

static void test_latest_of_nothing(void** state) {
  (void)state;
  world_t a = open_world(0);
  char* path = NULL;
  check_ok(weir_latest_checkpoint(a.directory, &path));
  assert_null(path);
  check_ok(weir_session_run_target(a.session, a.init));
  save(&a, 1);
  assert_int_equal(remove(path_in(&a, "m-1.index")), 0);
  check_ok(weir_latest_checkpoint(a.directory, &path));  // the state file lists what is gone
  assert_null(path);
  close_world(&a);
}

static void test_errors(void** state) {
  (void)state;
  world_t a = open_world(0);
  check_error(weir_saver_save(a.saver, a.session, path_in(&a, "m"), 1, NULL),
              WEIR_FAILED_PRECONDITION, "uninitialized");
  assert_false(exists(&a, "checkpoint"));
  check_error(weir_saver_restore(a.saver, a.session, path_in(&a, "none")), WEIR_NOT_FOUND, "none");
  check_ok(weir_session_run_target(a.session, a.init));
  check_error(weir_saver_save(a.saver, a.session, path_in(&a, ""), -1, NULL), WEIR_INVALID_ARGUMENT,
              "names a directory");
  save(&a, 1);
  weir_scope_t* s = weir_scope_create(a.graph);
  weir_edge_t other = weir_variable(s, "other", weir_const_float(s, 0));
  weir_saver_t* missing = weir_saver_create(s);
  weir_saver_t* reshaped =
      weir_saver_create(s, .variables = (weir_saved_t[]){{other, "w"}}, .variable_count = 1);
  check_ok(weir_scope_finish(s));
  check_error(weir_saver_restore(missing, a.session, path_in(&a, "m-1")), WEIR_NOT_FOUND, "other");
  check_error(weir_saver_restore(reshaped, a.session, path_in(&a, "m-1")), WEIR_INVALID_ARGUMENT,
              "other");
  weir_saver_destroy(missing);
  weir_saver_destroy(reshaped);
  close_world(&a);
}

// Without a saver's nodes: what is not initialised is named, and nothing is written.
static void test_checkpoint_before_initialisation(void** state) {
  (void)state;
  world_t w = open_world(0);
  check_error(weir_checkpoint_save(w.session, path_in(&w, "early")), WEIR_FAILED_PRECONDITION,
              "2 of 2 variables are not initialised: 'w', 'layer/b'");
  weir_node_t* assign = weir_graph_find_node(w.graph, "w/Assign");
  check_ok(weir_session_run_target(w.session, assign));
  check_error(weir_checkpoint_save(w.session, path_in(&w, "early")), WEIR_FAILED_PRECONDITION,
              "1 of 2 variables are not initialised: 'layer/b'");
  assert_false(exists(&w, "checkpoint"));
  assert_false(exists(&w, "early.index"));
  check_ok(weir_session_run_target(w.session, w.init));
  check_ok(weir_checkpoint_save(w.session, path_in(&w, "late")));
  assert_true(exists(&w, "checkpoint"));
  assert_true(exists(&w, "late.index"));
  close_world(&w);
}

static void test_checkpoint_of_nothing(void** state) {
  (void)state;
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check_ok(weir_graph_create(&graph));
  check_ok(weir_session_create(graph, NULL, &session));
  check_error(weir_checkpoint_save(session, "/tmp/weir_nothing"), WEIR_INVALID_ARGUMENT,
              "no variables to save");
  weir_session_destroy(session);
  weir_graph_release(graph);
}

static void test_bad_variables(void** state) {
  (void)state;
  const struct {
    int kind;
    const char* text;
  } cases[] = {{0, "no variables"},
               {1, "two variables"},
               {2, "neither a variable nor a table"},
               {3, "without"}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    weir_graph_t* graph = NULL;
    check_ok(weir_graph_create(&graph));
    weir_scope_t* s = weir_scope_create(graph);
    weir_edge_t none = {NULL, 0},
                sum = weir_add_v2(s, weir_const_float(s, 1), weir_const_float(s, 2));
    if (cases[i].kind == 0) assert_null(weir_saver_create(s));
    if (cases[i].kind == 1) {
      weir_edge_t v = weir_variable(s, "v", sum), u = weir_variable(s, "u", sum);
      assert_null(weir_saver_create(s, .variables = (weir_saved_t[]){{v, "x"}, {u, "x"}},
                                    .variable_count = 2));
    }
    if (cases[i].kind == 2)
      assert_null(
          weir_saver_create(s, .variables = (weir_saved_t[]){{sum, NULL}}, .variable_count = 1));
    if (cases[i].kind == 3)
      assert_null(
          weir_saver_create(s, .variables = (weir_saved_t[]){{none, NULL}}, .variable_count = 1));
    check_error(weir_scope_finish(s), WEIR_INVALID_ARGUMENT, cases[i].text);
    weir_graph_release(graph);
  }
  weir_saver_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                     cmocka_unit_test(test_sharded),
                                     cmocka_unit_test(test_subset_and_other_names),
                                     cmocka_unit_test(test_imported_graph),
                                     cmocka_unit_test(test_max_to_keep),
                                     cmocka_unit_test(test_unfinished_removal),
                                     cmocka_unit_test(test_keep_every_n_hours),
                                     cmocka_unit_test(test_latest_of_nothing),
                                     cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_checkpoint_before_initialisation),
                                     cmocka_unit_test(test_checkpoint_of_nothing),
                                     cmocka_unit_test(test_bad_variables)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
