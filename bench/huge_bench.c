// huge_bench.c — What a lookup and a sparse update of a table in a file cost, by the table's size.
// One JSON line; huge.py makes a table of several.
//
//   cmake --build build/release --target huge_bench && build/release/huge_bench FILE GIGABYTES
//
// Rows have 64 floats; each step takes 1024 of them at random. "first": rows that nobody has
// touched, which costs a page fault each; "again": those of the step before.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <weir/weir.h>

enum { WIDTH = 64, BATCH = 1024, STEPS = 101 };

typedef struct model_t {
  weir_graph_t* graph;
  weir_session_t* session;
  weir_edge_t ids, loss;
  weir_node_t *init, *step;
  int64_t rows;
} model_t;

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static model_t open_model(const char* file, double gigabytes) {
  model_t m = {.rows = (int64_t)(gigabytes * 1e9 / (WIDTH * sizeof(float)))};
  check(weir_graph_create(&m.graph));
  weir_scope_t* s = weir_scope_create(m.graph);
  weir_edge_t table = weir_mapped_variable(s, "table", file, WEIR_SHAPE(m.rows, WIDTH));
  m.ids = weir_placeholder(s, WEIR_DTYPE_INT64, .shape = WEIR_SHAPE(BATCH));
  weir_edge_t x = weir_embedding_lookup(s, WEIR_TABLES(table), m.ids);
  m.loss = weir_sum(s, weir_square(s, weir_sub(s, x, weir_const_float(s, 1))),
                    weir_const_ints(s, (const int[]){0, 1}, 2));
  weir_optimizer_t sgd = weir_sgd(0.1f);
  m.step = weir_minimize(s, &sgd, m.loss);
  m.init = weir_initializer(s);
  check(weir_scope_finish(s));
  check(weir_session_create(m.graph, &(const weir_session_options_t){.threads = 1}, &m.session));
  return m;
}

static uint64_t draw(void) {
  static uint64_t x = 88172645463325252u;
  x ^= x << 13, x ^= x >> 7, x ^= x << 17;
  return x;
}

// Microseconds.
static double run(const model_t* m, weir_tensor_t* ids, weir_node_t* target) {
  weir_tensor_t* loss = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({m->ids, ids}), WEIR_FETCHES(m->loss), .targets = &target,
                           .target_count = target != NULL};
  const double start = now();
  check(weir_session_run(m->session, &spec, &loss));
  const double took = now() - start;
  weir_tensor_release(loss);
  return took * 1e6;
}

static double median(double* values) {
  qsort(values, STEPS, sizeof(*values), compare);
  return values[STEPS / 2];
}

int main(int argc, char** argv) {
  static double first[STEPS], again[STEPS], update[STEPS], update_again[STEPS];
  struct stat info;
  int64_t ids[BATCH];
  if (argc != 3) return fputs("usage: huge_bench FILE GIGABYTES\n", stderr), 2;
  model_t m = open_model(argv[1], atof(argv[2]));
  double start = now();
  check(weir_session_run_target(m.session, m.init));
  const double opened = (now() - start) * 1e6;
  for (int i = 0; i < STEPS; ++i) {
    weir_tensor_t* fed = NULL;
    for (int j = 0; j < BATCH; ++j) ids[j] = (int64_t)(draw() % (uint64_t)m.rows);
    check(weir_tensor_create_from(WEIR_DTYPE_INT64, 1, &(int64_t){BATCH}, ids, &fed));
    first[i] = run(&m, fed, NULL);
    again[i] = run(&m, fed, NULL);
    update[i] = run(&m, fed, m.step);
    update_again[i] = run(&m, fed, m.step);
    weir_tensor_release(fed);
  }
  weir_session_destroy(m.session);
  weir_graph_release(m.graph);
  if (stat(argv[1], &info)) return perror(argv[1]), 1;
  printf(
      "{\"gigabytes\": %s, \"rows\": %lld, \"open_us\": %.0f, \"first_us\": %.0f, "
      "\"again_us\": %.0f, \"update_us\": %.0f, \"update_again_us\": %.0f, \"disk_bytes\": %lld}\n",
      argv[2], (long long)m.rows, opened, median(first), median(again), median(update),
      median(update_again), (long long)info.st_blocks * 512);
  return 0;
}
