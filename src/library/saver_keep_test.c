// saver_keep_test.c — Which checkpoints stay: the best by a metric, one in some hours, over
// restarts.
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "testing/tensors.h"
#include "weir/weir.h"

// A variable, and savers of it: one a run of the training program.
typedef struct world_t {
  char directory[64];
  weir_graph_t* graph;
  weir_scope_t* scope;
  weir_session_t* session;
  weir_edge_t v;
  weir_node_t* init;
  weir_saver_t* saver;
} world_t;

static world_t open_world(void) {
  world_t w = {.directory = "/tmp/weir_keep_XXXXXX"};
  assert_non_null(mkdtemp(w.directory));
  check_ok(weir_graph_create(&w.graph));
  w.scope = weir_scope_create(w.graph);
  w.v = weir_variable(w.scope, "v", weir_const_float(w.scope, 4));
  w.init = weir_initializer(w.scope);
  check_ok(weir_session_create(w.graph, NULL, &w.session));
  check_ok(weir_session_run_target(w.session, w.init));
  return w;
}

static void close_world(world_t* w) {
  char command[128];
  snprintf(command, sizeof(command), "rm -rf '%s'", w->directory);
  assert_int_equal(system(command), 0);
  weir_saver_destroy(w->saver);
  check_ok(weir_scope_finish(w->scope));
  weir_session_destroy(w->session);
  weir_graph_release(w->graph);
}

static const char* path_in(const world_t* w, const char* name) {
  static char path[160];
  snprintf(path, sizeof(path), "%s/%s", w->directory, name);
  return path;
}

// Another run begins, in the same directory.
static weir_status_t* restart_with(world_t* w, const weir_saver_options_t* options) {
  weir_saver_destroy(w->saver);
  w->saver = weir_saver_create_with(w->scope, options);
  return weir_saver_recover(w->saver, w->directory);
}
#define restart(w, ...) restart_with((w), &(const weir_saver_options_t){0, __VA_ARGS__})

static void save(world_t* w, int step, double metric) {
  check_ok(weir_saver_save_with(w->saver, w->session, path_in(w, "m"), step,
                                &(const weir_save_options_t){.metric = &metric}, NULL));
}

// The steps of which there are checkpoints, as digits.
static const char* steps_of(const world_t* w) {
  static char steps[16];
  size_t count = 0;
  for (int step = 1; step <= 9; ++step) {
    char name[32];
    struct stat info;
    snprintf(name, sizeof(name), "m-%d.index", step);
    if (stat(path_in(w, name), &info) == 0) steps[count++] = (char)('0' + step);
  }
  steps[count] = '\0';
  return steps;
}

static void check_file(const world_t* w, const char* name, const char* expected) {
  char text[256];
  FILE* file = fopen(path_in(w, name), "rb");
  assert_non_null(file);
  text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
  fclose(file);
  assert_string_equal(text, expected);
}

static void write_file(const world_t* w, const char* name, const char* text) {
  FILE* file = fopen(path_in(w, name), "wb");
  assert_non_null(file);
  fputs(text, file);
  assert_int_equal(fclose(file), 0);
}

static void check_best(const world_t* w, const char* name, double metric) {
  char* path = NULL;
  double value = 0;
  check_ok(weir_best_checkpoint(w->directory, &path, &value));
  assert_string_equal(path, path_in(w, name));
  assert_true(value == metric);
  weir_buffer_free(path);
}

static void test_lowest(void** state) {
  (void)state;
  world_t w = open_world();
  check_ok(restart(&w, .max_to_keep = 1, .keep_best = 2));
  const double metrics[] = {5, 3, 4, 9, 1, NAN, 3};
  const char* const expected[] = {"1", "12", "23", "234", "25", "256", "257"};
  for (int i = 0; i < 7; ++i) {
    save(&w, i + 1, metrics[i]);
    assert_string_equal(steps_of(&w), expected[i]);
  }
  check_file(&w, "checkpoint_best", "best 2 lowest\n1 m-5\n3 m-2\n");  // of equals the older
  check_best(&w, "m-5", 1);
  assert_true(weir_saver_is_best(w.saver, 2.5));
  assert_false(weir_saver_is_best(w.saver, 3));
  assert_false(weir_saver_is_best(w.saver, NAN));
  close_world(&w);
}

static void test_highest_over_restarts(void** state) {
  (void)state;
  world_t w = open_world();
  for (int step = 1; step <= 6; ++step) {
    const double metrics[] = {0.1, 0.75, 0.5, 0.25, 0.9, 0};
    check_ok(restart(&w, .max_to_keep = 1, .keep_best = 2, .higher_is_better = true));
    save(&w, step, metrics[step - 1]);
  }
  assert_string_equal(steps_of(&w), "256");
  check_file(&w, "checkpoint_best", "best 2 highest\n0.90000000000000002 m-5\n0.75 m-2\n");
  bool is_highest = false;
  assert_true(weir_saver_keeps_best(w.saver, &is_highest) && is_highest);
  check_error(restart(&w, .keep_best = 2), WEIR_INVALID_ARGUMENT, "this saver keeps the lowest");
  // One that keeps none leaves them alone.
  check_ok(restart(&w, .max_to_keep = 1));
  assert_false(weir_saver_keeps_best(w.saver, NULL));
  for (int step = 7; step <= 9; ++step) save(&w, step, 1);
  assert_string_equal(steps_of(&w), "259");
  close_world(&w);
}

// A save that was killed between its two files: the best are named first.
static void test_killed_between(void** state) {
  (void)state;
  world_t w = open_world();
  check_ok(restart(&w, .max_to_keep = 1, .keep_best = 1));
  save(&w, 1, 8);
  save(&w, 2, 9);
  check_ok(restart(&w, .max_to_keep = 1));
  check_ok(weir_saver_save(w.saver, w.session, path_in(&w, "other/m"), 3, NULL));
  char command[256];
  snprintf(command, sizeof(command), "mv '%s'/other/m-3.* '%s'", w.directory, w.directory);
  assert_int_equal(system(command), 0);
  write_file(&w, "checkpoint_best", "best 1 lowest\n7 m-3\n");
  check_ok(restart(&w, .max_to_keep = 1, .keep_best = 1));
  save(&w, 4, 9);
  assert_string_equal(steps_of(&w), "34");
  close_world(&w);
}

// What the file no longer says is not taken for bad.
static void test_damaged_file(void** state) {
  (void)state;
  const char* const texts[] = {"", "best 2 lowest\n1 m-1\n", "best 1 lowest\nx m-1\n", "best 1\n"};
  for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); ++i) {
    world_t w = open_world();
    check_ok(restart(&w, .max_to_keep = 1, .keep_best = 2));
    for (int step = 1; step <= 4; ++step) save(&w, step, step);
    assert_string_equal(steps_of(&w), "124");
    write_file(&w, "checkpoint_best", texts[i]);
    char* path = NULL;
    check_error(weir_best_checkpoint(w.directory, &path, NULL), WEIR_DATA_LOSS, "checkpoint_best");
    check_ok(restart(&w, .max_to_keep = 1, .keep_best = 2));
    for (int step = 5; step <= 7; ++step) save(&w, step, step);
    assert_string_equal(steps_of(&w), "12567");
    close_world(&w);
  }
}

static void test_none(void** state) {
  (void)state;
  world_t w = open_world();
  char* path = NULL;
  double metric = 0;
  check_ok(weir_best_checkpoint(w.directory, &path, &metric));
  assert_true(!path && isnan(metric));
  check_ok(restart(&w, .keep_best = 1));
  check_ok(weir_saver_save(w.saver, w.session, path_in(&w, "m"), 1, NULL));
  check_file(&w, "checkpoint_best", "best 0 lowest\n");
  check_ok(weir_best_checkpoint(w.directory, &path, NULL));
  assert_null(path);
  close_world(&w);
}

// The hours are counted from the beginning of the first run, however often it is started again.
static void test_hours_over_restarts(void** state) {
  (void)state;
  world_t w = open_world();
  for (int run = 0; run < 2; ++run) {
    check_ok(restart(&w, .max_to_keep = 1, .keep_every_n_hours = 1));
    save(&w, 1 + 2 * run, NAN);
    if (run == 1)
      write_file(&w, "checkpoint",
                 "model_checkpoint_path: \"m-3\"\nall_model_checkpoint_paths: \"m-3\"\n"
                 "all_model_checkpoint_timestamps: 10000\nlast_preserved_timestamp: 5000\n");
    check_ok(restart(&w, .max_to_keep = 1, .keep_every_n_hours = 1));
    save(&w, 2 + 2 * run, NAN);
    assert_string_equal(steps_of(&w), run ? "34" : "2");
  }
  close_world(&w);
}

// ---- the loop ----

static weir_status_t* evaluate(void* arg, const weir_fit_state_t* state, float* out_metric) {
  const float metrics[] = {0.5f, 0.75f, 0.25f, 0.625f};
  (void)arg;
  *out_metric = metrics[state->step / 2 - 1];
  return NULL;
}

static void test_loop(void** state) {
  (void)state;
  world_t w = open_world();
  weir_node_t* step =
      weir_assign_add_variable_op(w.scope, weir_variable_handle(w.v), weir_const_float(w.scope, 1));
  const weir_saver_options_t best = {.max_to_keep = 1, .keep_best = 2, .higher_is_better = true};
  char expected[160], *path = NULL;
  check_ok(restart_with(&w, &best));
  check_error(weir_fit(w.session, step, w.v, NULL, .max_steps = 9, .saver = w.saver,
                       .directory = w.directory),
              WEIR_INVALID_ARGUMENT, "evaluate is NULL");
  check_error(weir_fit(w.session, step, w.v, NULL, .max_steps = 9, .saver = w.saver,
                       .directory = w.directory, .evaluate = evaluate),
              WEIR_INVALID_ARGUMENT, "higher_is_better");
  for (int last = 3; last <= 9; last += 3) {  // started again, twice
    check_ok(restart_with(&w, &best));
    check_ok(weir_fit(w.session, step, w.v, NULL, .max_steps = last, .init = w.init,
                      .saver = w.saver, .directory = w.directory, .evaluate = evaluate,
                      .evaluate_every = 2, .higher_is_better = true, .is_quiet = true));
  }
  check_file(&w, "checkpoint_best", "best 2 highest\n0.75 model.ckpt-4\n0.625 model.ckpt-8\n");
  check_ok(weir_best_checkpoint(w.directory, &path, NULL));
  check_ok(weir_saver_restore(w.saver, w.session, path));
  weir_buffer_free(path);
  float value = 0;
  check_ok(weir_session_fetch_float(w.session, w.v, &value));
  assert_true(value == 4 + 4);  // of step 4
  check_ok(weir_latest_checkpoint(w.directory, &path));
  snprintf(expected, sizeof(expected), "%s/model.ckpt-9", w.directory);
  assert_string_equal(path, expected);
  weir_buffer_free(path);
  close_world(&w);
}

// Sets when a file, or folder, was written.
static void make_older(const char* path, int seconds) {
  const struct timespec then[] = {{.tv_sec = time(NULL) - seconds},
                                  {.tv_sec = time(NULL) - seconds}};
  assert_int_equal(utimensat(AT_FDCWD, path, then, 0), 0);
}

// What killed saves of shards left goes with a later save, and nothing else does; not at all where
// there are no shards.
static void test_leftovers(void** state) {
  (void)state;
  static const struct {
    const char* name;
    int file_age, folder_age;
    bool goes;
  } folders[] = {{"m-7_temp", 100, 100, true},      {"m-12_temp", 100, 100, true},
                 {"m-1_temp", 0, 0, true},          {"m-8_temp", 0, 100, false},
                 {"m-9_temp", 100, 0, false},       {"m-10_temp", 20, 20, false},
                 {"other-7_temp", 100, 100, false}, {"m-x_temp", 100, 100, false},
                 {"mm-7_temp", 100, 100, false},    {"m-7_temp2", 100, 100, false},
                 {"_temp", 100, 100, false},        {"m_temp", 100, 100, false}};
  for (int is_sharded = 0; is_sharded < 2; ++is_sharded) {
    world_t w = open_world();
    check_ok(restart(&w, .is_sharded = is_sharded));
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); ++i) {
      char name[64];
      assert_int_equal(mkdir(path_in(&w, folders[i].name), 0700), 0);
      snprintf(name, sizeof(name), "%s/part-00000-of-00002.index", folders[i].name);
      write_file(&w, name, "half");
      make_older(path_in(&w, name), folders[i].file_age);
      make_older(path_in(&w, folders[i].name), folders[i].folder_age);
    }
    save(&w, 1, NAN);
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); ++i) {
      struct stat info;
      const bool is_there = stat(path_in(&w, folders[i].name), &info) == 0;
      assert_int_equal(is_there, !(is_sharded && folders[i].goes));
    }
    close_world(&w);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lowest),         cmocka_unit_test(test_highest_over_restarts),
      cmocka_unit_test(test_killed_between), cmocka_unit_test(test_damaged_file),
      cmocka_unit_test(test_none),           cmocka_unit_test(test_hours_over_restarts),
      cmocka_unit_test(test_leftovers),      cmocka_unit_test(test_loop)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
