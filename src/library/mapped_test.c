// mapped_test.c — Variables in files: lookups and sparse updates touch their pages only, the table
// outlives its session, what optimizers keep lies beside it, reads are snapshots, errors.
#include "weir/mapped.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing/bench.h"
#include "weir/optimizer.h"
#include "weir/replicas.h"
#include "weir/saver.h"
#include "weir/session.h"

// A row is a page, so that pages tell rows.
// What a file system may add to that, reading and writing in larger pieces, is far from the whole.
enum { PAGE = 4096, WIDTH = PAGE / (int)sizeof(float), ROWS = 65536, USED = 3, FEW = ROWS / 16 };
static const int used_rows[USED] = {5, 40000, 65535};

typedef struct world_t {
  bench_t b;  // first
  weir_session_t* session;
  char folder[64];
  char file[128];
} world_t;

static int open_world(void** state) {
  world_t* w = calloc(1, sizeof(*w));
  check_ok(weir_graph_create(&w->b.graph));
  w->b.s = weir_scope_create(w->b.graph);
  snprintf(w->folder, sizeof(w->folder), "/tmp/weir_mapped_XXXXXX");
  assert_non_null(mkdtemp(w->folder));
  snprintf(w->file, sizeof(w->file), "%s/table", w->folder);
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

static void start(world_t* w) {
  weir_node_t* init = weir_initializer(w->b.s);
  check_built(&w->b);
  check_ok(weir_session_create(w->b.graph, NULL, &w->session));
  check_ok(weir_session_run_target(w->session, init));
}

static float fetch(world_t* w, weir_edge_t edge) {
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {WEIR_FETCHES(edge)};
  check_ok(weir_session_run(w->session, &spec, &result));
  const float value = ((float*)weir_tensor_data(result))[0];
  weir_tensor_release(result);
  return value;
}

static void run(world_t* w, weir_node_t* node) {
  check_ok(weir_session_run_target(w->session, node));
}

// The sum of the rows that are used.
static weir_edge_t sum_of(weir_scope_t* s, weir_edge_t table) {
  weir_edge_t ids = weir_const_ints(s, used_rows, USED);
  weir_edge_t rows = weir_embedding_lookup(s, WEIR_TABLES(table), ids);
  return weir_sum(s, rows, weir_const_ints(s, (const int[]){0, 1}, 2));
}

static weir_node_t* add_one(weir_scope_t* s, weir_edge_t table) {
  weir_edge_t ids = weir_const_ints(s, used_rows, USED);
  return weir_resource_scatter_add(s, weir_variable_handle(table), ids, weir_const_float(s, 1));
}

// ---- pages ----

// What of the file has been written, in bytes of the disk.
static int64_t written(const char* path) {
  struct stat info;
  assert_int_equal(stat(path, &info), 0);
  return (int64_t)info.st_blocks * 512;
}

// How many pages of the file are in memory: those that anybody has touched.
static int resident(const char* path) {
  static unsigned char pages[ROWS];
  int count = 0;
  FILE* file = fopen(path, "rb");
  assert_non_null(file);
  void* data = mmap(NULL, (size_t)ROWS * PAGE, PROT_READ, MAP_SHARED, fileno(file), 0);
  assert_true(data != MAP_FAILED);
  assert_int_equal(mincore(data, (size_t)ROWS * PAGE, pages), 0);
  for (int i = 0; i < ROWS; ++i) count += pages[i] & 1;
  munmap(data, (size_t)ROWS * PAGE);
  fclose(file);
  return count;
}

static void test_only_the_pages_of_rows_are_touched(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->b.s;
  weir_edge_t table = weir_mapped_variable(s, "table", w->file, WEIR_SHAPE(ROWS, WIDTH));
  weir_edge_t sum = sum_of(s, table);
  weir_node_t* add = add_one(s, table);
  start(w);
  struct stat info;
  assert_int_equal(stat(w->file, &info), 0);
  assert_int_equal(info.st_size, (int64_t)ROWS * PAGE);
  assert_true(written(w->file) <= (int64_t)FEW * PAGE);
  assert_float_equal(fetch(w, sum), 0, 0);
  assert_true(resident(w->file) <= FEW);
  run(w, add);
  run(w, add);
  assert_float_equal(fetch(w, sum), 2.0f * WIDTH * USED, 0);
  assert_true(resident(w->file) <= FEW);
  assert_true(written(w->file) <= (int64_t)FEW * PAGE);
}

static void test_a_table_outlives_its_session(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->b.s;
  weir_edge_t table = weir_mapped_variable(s, "table", w->file, WEIR_SHAPE(ROWS, WIDTH));
  weir_edge_t sum = sum_of(s, table);
  weir_node_t* add = add_one(s, table);
  start(w);
  run(w, add);
  weir_session_destroy(w->session);
  w->session = NULL;
  start(w);
  assert_float_equal(fetch(w, sum), 1.0f * WIDTH * USED, 0);
  run(w, weir_scope_variable_at(s, 0).initializer);  // once more changes nothing
  assert_float_equal(fetch(w, sum), 1.0f * WIDTH * USED, 0);
}

// As when the disk is full: the process lives, and is told until the file is mapped anew.
static void test_pages_that_are_gone(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->b.s;
  float value = 0;
  weir_edge_t table = weir_mapped_variable(s, "table", w->file, WEIR_SHAPE(ROWS, WIDTH));
  weir_edge_t sum = sum_of(s, table);
  weir_node_t *add = add_one(s, table), *map = weir_scope_variable_at(s, 0).initializer;
  start(w);
  run(w, add);
  assert_int_equal(truncate(w->file, (off_t)ROWS / 2 * PAGE), 0);
  check_error(weir_session_fetch_float(w->session, sum, &value), WEIR_DATA_LOSS, w->file);
  check_error(weir_session_run_target(w->session, add), WEIR_DATA_LOSS, "the disk is full");
  check_error(weir_session_run_target(w->session, map), WEIR_INVALID_ARGUMENT, "has 134217728");
  assert_int_equal(truncate(w->file, (off_t)ROWS * PAGE), 0);
  run(w, map);
  assert_float_equal(fetch(w, sum), 1.0f * WIDTH, 0);  // one of the rows is in the first half
  run(w, add);
}

// ---- training ----

static void test_slots_lie_beside(void** state) {
  world_t* w = *state;
  char slot[160];
  weir_scope_t* s = w->b.s;
  weir_edge_t table = weir_mapped_variable(s, "table", w->file, WEIR_SHAPE(ROWS, WIDTH));
  weir_optimizer_t momentum = weir_momentum(0.5f, 0.5f);
  weir_edge_t sum = sum_of(s, table);
  weir_node_t* step = weir_minimize(s, &momentum, sum);
  start(w);
  run(w, step);  // each element: -0.5, then -0.5 - 0.75
  run(w, step);
  assert_float_equal(fetch(w, sum), -1.25f * WIDTH * USED, 0);
  snprintf(slot, sizeof(slot), "%s.Momentum", w->file);
  assert_true(written(slot) > 0);
  assert_true(resident(slot) <= FEW);
}

static void test_slots_that_are_not_zero(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->b.s;
  weir_edge_t table = weir_mapped_variable(s, "table", w->file, WEIR_SHAPE(4, 2));
  weir_optimizer_t adagrad = weir_adagrad(0.5f);
  weir_edge_t sum =
      weir_sum(s, weir_embedding_lookup(s, WEIR_TABLES(table), weir_const_ints(s, (int[]){1}, 1)),
               weir_const_ints(s, (const int[]){0, 1}, 2));
  assert_null(weir_minimize(s, &adagrad, sum));
  check_fails(&w->b, (weir_edge_t){0}, "'table' lies in a file, and so would 'Adagrad'");
}

// ---- as other variables ----

static void test_reads_are_snapshots(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->b.s;
  weir_tensor_t* before = NULL;
  weir_edge_t table = weir_mapped_variable(s, "table", w->file, WEIR_SHAPE(4));
  weir_edge_t ones = weir_const_floats(s, WEIR_DIMS(4), (const float[]){1, 2, 3, 4});
  weir_edge_t handle = weir_variable_handle(table);
  weir_node_t* assign = weir_assign_variable_op(s, handle, ones);
  weir_node_t* add = weir_assign_add_variable_op(s, handle, ones);
  start(w);
  run(w, assign);
  weir_step_spec_t spec = {WEIR_FETCHES(table)};
  check_ok(weir_session_run(w->session, &spec, &before));
  run(w, add);
  assert_float_equal(((float*)weir_tensor_data(before))[3], 4, 0);
  weir_tensor_release(before);
  weir_session_destroy(w->session);
  w->session = NULL;
  start(w);
  assert_float_equal(fetch(w, table), 2, 0);
}

static void test_other_variables_get_copies(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->b.s;
  weir_edge_t table = weir_mapped_variable(s, "table", w->file, WEIR_SHAPE(2));
  weir_edge_t ones = weir_const_floats(s, WEIR_DIMS(2), (const float[]){1, 1});
  weir_edge_t other = weir_variable(s, "other", ones);
  weir_node_t* copy = weir_assign_variable_op(s, weir_variable_handle(other), table);
  weir_node_t* add = weir_assign_add_variable_op(s, weir_variable_handle(other), ones);
  start(w);
  run(w, copy);
  run(w, add);
  assert_float_equal(fetch(w, table), 0, 0);
  assert_float_equal(fetch(w, other), 1, 0);
}

static void test_another_shape(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->b.s;
  weir_edge_t table = weir_mapped_variable(s, "table", w->file, WEIR_SHAPE(4));
  weir_edge_t value = weir_placeholder(s, WEIR_DTYPE_FLOAT);
  weir_node_t* assign = weir_assign_variable_op(s, weir_variable_handle(table), value);
  weir_tensor_t* fed = NULL;
  weir_tensor_t* none = NULL;
  start(w);
  check_ok(weir_tensor_create_from(WEIR_DTYPE_FLOAT, 1, &(int64_t){2}, (float[]){1, 2}, &fed));
  weir_step_spec_t spec = {WEIR_FEEDS({value, fed}), WEIR_TARGETS(assign)};
  check_error(weir_session_run(w->session, &spec, &none), WEIR_FAILED_PRECONDITION,
              "a variable of shape [4] that lies in a file cannot be assigned shape [2]");
  weir_tensor_release(fed);
}

// ---- many at once ----

enum { THREADS = 4, TIMES = 50 };

typedef struct worker_t {
  world_t* w;
  weir_node_t* add;
  weir_edge_t rows;
  int64_t width;
} worker_t;

// Adds to rows and looks at them. In each row all elements are the same, whoever else is at work.
static void* work(void* arg) {
  const worker_t* worker = arg;
  intptr_t torn = 0;
  for (int i = 0; i < TIMES; ++i) {
    weir_tensor_t* rows = NULL;
    weir_step_spec_t spec = {WEIR_FETCHES(worker->rows)};
    check_ok(weir_session_run_target(worker->w->session, worker->add));
    check_ok(weir_session_run(worker->w->session, &spec, &rows));
    const float* data = weir_tensor_data(rows);
    for (int64_t j = 0; j < weir_tensor_count(rows); ++j)
      torn += data[j] != data[j - j % worker->width];
    weir_tensor_release(rows);
  }
  return (void*)torn;
}

static void check_many(world_t* w, weir_edge_t table, int64_t width) {
  pthread_t threads[THREADS];
  weir_scope_t* s = w->b.s;
  weir_edge_t sum = sum_of(s, table);
  worker_t worker = {.w = w, .add = add_one(s, table), .width = width};
  worker.rows = weir_embedding_lookup(s, WEIR_TABLES(table), weir_const_ints(s, used_rows, USED));
  start(w);
  for (int i = 0; i < THREADS; ++i)
    assert_int_equal(pthread_create(&threads[i], NULL, work, &worker), 0);
  for (int i = 0; i < THREADS; ++i) {
    void* torn = NULL;
    pthread_join(threads[i], &torn);
    assert_null(torn);
  }
  assert_float_equal(fetch(w, sum), (float)(THREADS * TIMES * USED * width), 0);
}

static void test_many_threads(void** state) {
  world_t* w = *state;
  check_many(w, weir_mapped_variable(w->b.s, "table", w->file, WEIR_SHAPE(ROWS, WIDTH)), WIDTH);
}

// In memory a large table is looked at where it is, too: it is not copied for each update.
static void test_many_threads_in_memory(void** state) {
  world_t* w = *state;
  check_many(w, weir_weight(w->b.s, "table", weir_init_zeros(), WEIR_SHAPE(ROWS, 16)), 16);
}

// ---- checkpoints ----

static void test_savers_leave_it_out_and_map_it(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->b.s;
  char prefix[160];
  bool has_table = true;
  weir_edge_t table = weir_mapped_variable(s, "table", w->file, WEIR_SHAPE(ROWS, WIDTH));
  weir_variable(s, "w", weir_const_float(s, 1));
  weir_edge_t sum = sum_of(s, table);
  weir_node_t* add = add_one(s, table);
  weir_saver_t* saver = weir_saver_create(s, .max_to_keep = 1);
  start(w);
  run(w, add);
  snprintf(prefix, sizeof(prefix), "%s/model", w->folder);
  check_ok(weir_saver_save(saver, w->session, prefix, -1, NULL));
  check_ok(weir_checkpoint_has(prefix, "table", &has_table));
  assert_false(has_table);
  weir_session_destroy(w->session);
  check_ok(weir_session_create(w->b.graph, NULL, &w->session));
  check_ok(weir_saver_restore(saver, w->session, prefix));
  assert_float_equal(fetch(w, sum), 1.0f * WIDTH * USED, 0);
  weir_saver_destroy(saver);
}

static void test_parts_that_are_saved(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->b.s;
  char prefix[160];
  weir_tables_t table = weir_partitioned_variable(s, "table", (weir_init_t){0}, WEIR_SHAPE(5, 2),
                                                  weir_partition_fixed(2), .path = w->file);
  weir_saved_t saved[] = {{table.items[0], NULL}, {table.items[1], NULL}};
  weir_node_t* add =
      weir_resource_scatter_add(s, weir_variable_handle(table.items[1]),
                                weir_const_ints(s, (const int[]){1}, 1), weir_const_float(s, 3));
  weir_edge_t last = weir_embedding_lookup(s, table, weir_const_ints(s, (const int[]){4}, 1),
                                           .partition = WEIR_PARTITION_DIV);
  weir_saver_t* saver = weir_saver_create(s, .variables = saved, .variable_count = 2);
  start(w);
  run(w, add);
  snprintf(prefix, sizeof(prefix), "%s/model", w->folder);
  check_ok(weir_saver_save(saver, w->session, prefix, -1, NULL));
  run(w, add);
  assert_float_equal(fetch(w, last), 6, 0);
  check_ok(weir_saver_restore(saver, w->session, prefix));
  assert_float_equal(fetch(w, last), 3, 0);
  weir_saver_destroy(saver);
}

// ---- errors ----

static void test_a_file_of_another_size(void** state) {
  world_t* w = *state;
  FILE* file = fopen(w->file, "wb");
  assert_true(file && fputs("text", file) >= 0 && !fclose(file));
  weir_mapped_variable(w->b.s, "table", w->file, WEIR_SHAPE(4));
  weir_node_t* init = weir_initializer(w->b.s);
  check_ok(weir_session_create(w->b.graph, NULL, &w->session));
  check_error(weir_session_run_target(w->session, init), WEIR_INVALID_ARGUMENT,
              "has 4 bytes, not 16");
}

static void test_no_such_folder(void** state) {
  world_t* w = *state;
  weir_mapped_variable(w->b.s, "table", "/nowhere/at/all", WEIR_SHAPE(4));
  weir_node_t* init = weir_initializer(w->b.s);
  check_ok(weir_session_create(w->b.graph, NULL, &w->session));
  check_error(weir_session_run_target(w->session, init), WEIR_PERMISSION_DENIED, "/nowhere/at/all");
}

static void test_arguments(void** state) {
  world_t* w = *state;
  bench_t* b = &w->b;
  check_fails(b, weir_mapped_variable(b->s, "t", w->file, WEIR_SHAPE(0, 4)),
              "variable 't' lies in a file: all of its dimensions must be positive");
  check_fails(b, weir_mapped_variable(weir_scope_replica(b->s, 2, 0), "t", w->file, WEIR_SHAPE(4)),
              "weir_scope_on says on which machine");
  weir_partitioned_variable(b->s, "t", weir_init_ones(), WEIR_SHAPE(4), weir_partition_fixed(2),
                            .path = w->file);
  check_fails(b, (weir_edge_t){0}, "it starts with what is there");
  weir_edge_t plain = weir_variable(b->s, "v", weir_const_float(b->s, 1));
  assert_null(weir_variable_file(b->s, plain));
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
      TEST(test_only_the_pages_of_rows_are_touched),
      TEST(test_a_table_outlives_its_session),
      TEST(test_pages_that_are_gone),
      TEST(test_slots_lie_beside),
      TEST(test_slots_that_are_not_zero),
      TEST(test_reads_are_snapshots),
      TEST(test_other_variables_get_copies),
      TEST(test_another_shape),
      TEST(test_many_threads),
      TEST(test_many_threads_in_memory),
      TEST(test_savers_leave_it_out_and_map_it),
      TEST(test_parts_that_are_saved),
      TEST(test_a_file_of_another_size),
      TEST(test_no_such_folder),
      TEST(test_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
