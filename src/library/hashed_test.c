// hashed_test.c — Embeddings of any ids: who has which row, who loses it, training, checkpoints,
// errors.
#include "weir/hashed.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing/bench.h"
#include "weir/embedding.h"
#include "weir/optimizer.h"
#include "weir/saver.h"
#include "weir/session.h"

enum { BATCH = 4, SIZE = 2 };

typedef struct world_t {
  bench_t b;  // first
  weir_session_t* session;
  weir_hashed_t table;
  weir_edge_t ids, looked, frozen;
  char folder[64];
  char path[96];
} world_t;

static int open_world(void** state) {
  world_t* w = calloc(1, sizeof(*w));
  check_ok(weir_graph_create(&w->b.graph));
  w->b.s = weir_scope_create(w->b.graph);
  snprintf(w->folder, sizeof(w->folder), "/tmp/weir_hashed_XXXXXX");
  assert_non_null(mkdtemp(w->folder));
  snprintf(w->path, sizeof(w->path), "%s/table", w->folder);
  *state = w;
  return 0;
}

static int close_world(void** state) {
  world_t* w = *state;
  char command[128];
  snprintf(command, sizeof(command), "rm -rf '%s'", w->folder);
  weir_session_destroy(w->session);
  assert_int_equal(system(command), 0);
  return teardown(state);
}

static void build(world_t* w, int64_t capacity, float range, const char* path) {
  w->ids = FED(&w->b, INT64, BATCH);
  w->table = weir_hashed_table(w->b.s, "t", capacity, SIZE, .path = path);
  w->looked = weir_hashed_lookup(w->b.s, &w->table, w->ids, .range = range, .seed = 3);
  w->frozen = weir_hashed_lookup(w->b.s, &w->table, w->ids, .is_frozen = true);
}

static void start(world_t* w) {
  weir_node_t* init = weir_initializer(w->b.s);
  check_built(&w->b);
  check_ok(weir_session_create(w->b.graph, NULL, &w->session));
  check_ok(weir_session_run_target(w->session, init));
}

// Fetches |edge| for four ids.
static void run(world_t* w, weir_edge_t edge, const int64_t* ids, weir_node_t* target,
                float* out_values) {
  weir_tensor_t *fed = NULL, *result = NULL;
  check_ok(weir_tensor_create_from(WEIR_DTYPE_INT64, 1, &(int64_t){BATCH}, ids, &fed));
  weir_step_spec_t spec = {WEIR_FEEDS({w->ids, fed}), WEIR_FETCHES(edge), .targets = &target,
                           .target_count = target != NULL};
  check_ok(weir_session_run(w->session, &spec, &result));
  memcpy(out_values, weir_tensor_data(result),
         (size_t)weir_tensor_count(result) * sizeof(*out_values));
  weir_tensor_release(fed);
  weir_tensor_release(result);
}

#define IDS(...) ((const int64_t[BATCH]){__VA_ARGS__})

// ---- rows ----

static void test_ids_keep_their_rows(void** state) {
  world_t* w = *state;
  float first[BATCH * SIZE], again[BATCH * SIZE];
  build(w, 1024, 1, NULL);
  start(w);
  run(w, w->looked, IDS(7, -5, INT64_MAX - 1, 7), NULL, first);
  assert_memory_equal(first, first + 3 * SIZE, SIZE * sizeof(float));
  assert_memory_not_equal(first, first + SIZE, SIZE * sizeof(float));
  for (int i = 0; i < BATCH * SIZE; ++i) assert_true(first[i] >= -1 && first[i] < 1 && first[i]);
  run(w, w->looked, IDS(-5, 7, 8, 9), NULL, again);
  assert_memory_equal(again, first + SIZE, SIZE * sizeof(float));
  assert_memory_equal(again + SIZE, first, SIZE * sizeof(float));
}

static void test_frozen_gives_nothing(void** state) {
  world_t* w = *state;
  float known[BATCH * SIZE], values[BATCH * SIZE];
  build(w, 64, 1, NULL);
  start(w);
  run(w, w->looked, IDS(1, 2, 3, 4), NULL, known);
  for (int i = 0; i < 2; ++i) {  // the second time as the first
    run(w, w->frozen, IDS(1, 50, 4, 60), NULL, values);
    assert_memory_equal(values, known, SIZE * sizeof(float));
    assert_memory_equal(values + 2 * SIZE, known + 3 * SIZE, SIZE * sizeof(float));
    for (int j = 0; j < SIZE; ++j) assert_true(values[SIZE + j] == 0 && values[3 * SIZE + j] == 0);
  }
}

// One set of eight: who was not used for longest goes, and comes back as another.
static void test_the_least_recent_goes(void** state) {
  world_t* w = *state;
  float old[BATCH * SIZE], values[BATCH * SIZE];
  build(w, 1, 1, NULL);
  start(w);
  run(w, w->looked, IDS(0, 1, 2, 3), NULL, old);
  run(w, w->looked, IDS(4, 5, 6, 7), NULL, values);
  run(w, w->looked, IDS(0, 0, 2, 3), NULL, values);  // 1 is the oldest now
  assert_memory_equal(values, old, SIZE * sizeof(float));
  run(w, w->looked, IDS(100, 100, 100, 100), NULL, values);
  run(w, w->frozen, IDS(0, 1, 2, 3), NULL, values);
  assert_memory_equal(values, old, SIZE * sizeof(float));
  assert_true(values[SIZE] == 0 && values[SIZE + 1] == 0);
  assert_memory_equal(values + 2 * SIZE, old + 2 * SIZE, 2 * SIZE * sizeof(float));
  run(w, w->looked, IDS(1, 1, 1, 1), NULL, values);
  assert_memory_not_equal(values, old + SIZE, SIZE * sizeof(float));
}

// ---- training ----

static weir_edge_t loss_of(weir_scope_t* s, weir_edge_t x) {
  weir_edge_t goal = weir_sub(s, x, weir_const_float(s, 1));
  return weir_sum(s, weir_square(s, goal), weir_const_ints(s, (const int[]){0, 1}, 2));
}

// While no row changes hands, it is an embedding whose rows start as zeros.
static void test_trains_as_an_embedding(void** state) {
  world_t* w = *state;
  weir_optimizer_t sgd = weir_sgd(0.1f);
  build(w, 4096, 0, NULL);
  weir_scope_t* s = w->b.s;
  weir_edge_t plain = weir_weight(s, "plain", weir_init_zeros(), WEIR_SHAPE(20, SIZE));
  weir_edge_t a = loss_of(s, w->looked);
  weir_edge_t b = loss_of(s, weir_embedding_lookup(s, WEIR_TABLES(plain), w->ids));
  weir_node_t* steps[] = {
      weir_minimize(s, &sgd, a, .variables = &w->table.rows, .variable_count = 1),
      weir_minimize(s, &sgd, b, .variables = &plain, .variable_count = 1)};
  start(w);
  for (int i = 0; i < 12; ++i) {
    float got = 0, want = 0;
    const int64_t ids[] = {i % 7, i % 5 + 10, i % 3, i % 7};
    run(w, a, ids, steps[0], &got);
    run(w, b, ids, steps[1], &want);
    assert_float_equal(got, want, 1e-6);
  }
}

// ---- what stays ----

static void test_checkpoints(void** state) {
  world_t* w = *state;
  float before[BATCH * SIZE], after[BATCH * SIZE];
  char prefix[96];
  build(w, 64, 1, NULL);
  weir_saver_t* saver = weir_saver_create(w->b.s, .max_to_keep = 1);
  start(w);
  snprintf(prefix, sizeof(prefix), "%s/model", w->folder);
  run(w, w->looked, IDS(11, 22, 33, 44), NULL, before);
  check_ok(weir_saver_save(saver, w->session, prefix, -1, NULL));
  weir_session_destroy(w->session);
  check_ok(weir_session_create(w->b.graph, NULL, &w->session));
  check_ok(weir_saver_restore(saver, w->session, prefix));
  run(w, w->frozen, IDS(11, 22, 33, 44), NULL, after);
  assert_memory_equal(before, after, sizeof(before));
  weir_saver_destroy(saver);
}

// A gigabyte of rows takes what its ids take.
static void test_in_files(void** state) {
  world_t* w = *state;
  float before[BATCH * SIZE], after[BATCH * SIZE];
  char rows[128];
  struct stat info;
  build(w, 1 << 27, 1, w->path);
  start(w);
  run(w, w->looked, IDS(11, 22, 33, 44), NULL, before);
  weir_session_destroy(w->session);
  w->session = NULL;
  start(w);
  run(w, w->frozen, IDS(11, 22, 33, 44), NULL, after);
  assert_memory_equal(before, after, sizeof(before));
  snprintf(rows, sizeof(rows), "%s.rows", w->path);
  assert_int_equal(stat(rows, &info), 0);
  assert_int_equal(info.st_size, (int64_t)1 << 30);
  assert_true((int64_t)info.st_blocks * 512 < 1 << 25);
}

// ---- errors ----

static void test_ids_that_are_none(void** state) {
  world_t* w = *state;
  weir_tensor_t *fed = NULL, *result = NULL;
  build(w, 64, 1, NULL);
  start(w);
  check_ok(weir_tensor_create_from(WEIR_DTYPE_INT64, 1, &(int64_t){BATCH}, IDS(1, 2, -1, 3), &fed));
  weir_step_spec_t spec = {WEIR_FEEDS({w->ids, fed}), WEIR_FETCHES(w->looked)};
  check_error(weir_session_run(w->session, &spec, &result), WEIR_INVALID_ARGUMENT, "id -1");
  weir_tensor_release(fed);
}

static void test_variables_that_do_not_fit(void** state) {
  world_t* w = *state;
  weir_tensor_t *fed = NULL, *result = NULL;
  build(w, 64, 1, NULL);
  weir_hashed_t wrong = w->table;
  wrong.used = wrong.keys;
  weir_edge_t same = weir_hashed_lookup(w->b.s, &wrong, w->ids);
  wrong.used = weir_state_variable(w->b.s, "other",
                                   weir_cast(w->b.s, weir_const_int(w->b.s, 0), WEIR_DTYPE_INT64));
  weir_edge_t other = weir_hashed_lookup(w->b.s, &wrong, w->ids);
  start(w);
  check_ok(weir_tensor_create_from(WEIR_DTYPE_INT64, 1, &(int64_t){BATCH}, IDS(1, 2, 3, 4), &fed));
  weir_step_spec_t spec = {WEIR_FEEDS({w->ids, fed}), WEIR_FETCHES(same)};
  check_error(weir_session_run(w->session, &spec, &result), WEIR_INVALID_ARGUMENT,
              "keys and used are one variable");
  spec = (weir_step_spec_t){WEIR_FEEDS({w->ids, fed}), WEIR_FETCHES(other)};
  check_error(weir_session_run(w->session, &spec, &result), WEIR_INVALID_ARGUMENT,
              "needs a multiple of 8 keys and one more of used, got 64 and 1");
  weir_tensor_release(fed);
}

static void test_arguments(void** state) {
  world_t* w = *state;
  weir_hashed_t none = weir_hashed_table(w->b.s, "t", 0, 4);
  check_fails(&w->b, none.rows, "hashed table 't': needs positive sizes, got 0 rows of 4");
  none = weir_hashed_table(w->b.s, "t", 4, 4, .dtype = WEIR_DTYPE_INT32);
  check_fails(&w->b, none.rows, "rows are float or double, not int32");
  none = weir_hashed_table(w->b.s, "t", 4, 4);
  check_fails(&w->b, weir_hashed_lookup(w->b.s, &none, weir_const_float(w->b.s, 1)),
              "must be int32 or int64, got float");
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
      TEST(test_ids_keep_their_rows),
      TEST(test_frozen_gives_nothing),
      TEST(test_the_least_recent_goes),
      TEST(test_trains_as_an_embedding),
      TEST(test_checkpoints),
      TEST(test_in_files),
      TEST(test_ids_that_are_none),
      TEST(test_variables_that_do_not_fit),
      TEST(test_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
