// full_disk_test.c — A training loop whose disk is full for a while: it goes on, says so, and
// writes again when there is space. The limit on the size of files is the disk that is full here.
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "testing/tensors.h"
#include "weir/weir.h"

enum { EVERY = 500, FULL_AT = 1200, FREE_AT = 3200, END = 5100 };

typedef struct world_t {
  char directory[64];
  weir_graph_t* graph;
  weir_session_t* session;
  weir_edge_t count, loss;
  weir_node_t *init, *step;
  weir_saver_t* saver;
  rlim_t limit;
} world_t;

static world_t open_world(void) {
  world_t w = {.directory = "/tmp/weir_full_XXXXXX"};
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  w.limit = limit.rlim_cur;
  signal(SIGXFSZ, SIG_IGN);
  assert_non_null(mkdtemp(w.directory));
  check_ok(weir_graph_create(&w.graph));
  weir_scope_t* s = weir_scope_create(w.graph);
  w.count = weir_variable(s, "count", weir_const_float(s, 0));
  w.step = weir_assign_add_variable_op(s, weir_variable_handle(w.count), weir_const_float(s, 1));
  w.init = weir_initializer(s);
  w.loss = weir_const_float(s, 0);
  w.saver = weir_saver_create(s, .is_sharded = true);
  check_ok(weir_scope_finish(s));
  check_ok(weir_session_create(w.graph, NULL, &w.session));
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

static void limit_files(rlim_t size) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = size;
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static weir_status_t* fill_and_free(void* arg, const weir_fit_state_t* state, bool* stop) {
  (void)stop;
  const world_t* w = arg;
  const struct timespec pause = {.tv_sec = 2, .tv_nsec = 100000000};
  while ((state->step == FULL_AT || state->step == FREE_AT) && weir_saver_is_busy(w->saver)) {
  }
  if (state->step == FULL_AT) limit_files(0);
  if (state->step != FREE_AT) return NULL;
  limit_files(w->limit);
  nanosleep(&pause, NULL);  // events are tried again after two seconds
  return NULL;
}

static weir_status_t* fit(world_t* w, int steps, weir_fit_result_t* result) {
  return weir_fit(w->session, w->step, w->loss, result, .init = w->init, .max_steps = steps,
                  .saver = w->saver, .directory = w->directory, .save_every = EVERY,
                  .on_step = fill_and_free, .arg = w, .is_quiet = true);
}

static bool is_there(const world_t* w, int step) {
  char path[160];
  bool is_checkpoint = false;
  snprintf(path, sizeof(path), "%s/model.ckpt-%d", w->directory, step);
  weir_status_t* status = weir_checkpoint_has(path, "count", &is_checkpoint);
  weir_status_destroy(status);
  return !status && is_checkpoint;
}

// How many files have this in their names.
static int count_files(const world_t* w, const char* part) {
  int count = 0;
  DIR* directory = opendir(w->directory);
  assert_non_null(directory);
  for (struct dirent* entry; (entry = readdir(directory));) count += !!strstr(entry->d_name, part);
  closedir(directory);
  return count;
}

static void test_full_for_a_while(void** state) {
  (void)state;
  world_t w = open_world();
  weir_fit_result_t result;
  check_ok(fit(&w, END, &result));
  assert_int_equal(result.taken, END);
  assert_int_equal(result.unsaved, 4);  // 1500, 2000, 2500, 3000
  for (int step = EVERY; step <= END - END % EVERY; step += EVERY)
    assert_int_equal(is_there(&w, step), step > FREE_AT);  // five are kept: 3500 to 5000, 5100
  assert_true(is_there(&w, END));
  assert_int_equal(count_files(&w, "temp"), 0);
  assert_int_equal(count_files(&w, "tfevents"), 2);
  close_world(&w);
}

// What cannot be saved at the end is an error.
static void test_full_at_the_end(void** state) {
  (void)state;
  world_t w = open_world();
  weir_fit_result_t result;
  weir_status_t* status = fit(&w, FULL_AT + EVERY, &result);
  limit_files(w.limit);
  check_error(status, WEIR_RESOURCE_EXHAUSTED, "model.ckpt-1700");
  assert_int_equal(result.unsaved, 1);
  assert_true(is_there(&w, 1000));
  assert_int_equal(count_files(&w, "temp"), 0);
  close_world(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_full_for_a_while),
                                     cmocka_unit_test(test_full_at_the_end)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
