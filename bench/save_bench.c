// save_bench.c — What a checkpoint costs a training loop: a gigabyte of variables, saved every few
// steps while steps wait, on a thread while they go on, and not at all.
//
//   cmake --build build/release --target save_bench && build/release/save_bench DIRECTORY
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/weir.h>

enum { UNITS = 4096, LAYERS = 16, BATCH = 8, STEPS = 24, EVERY = 8 };

typedef struct times_t {
  double at[STEPS + 1];  // seconds, when each step had ended
  int count;
} times_t;

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static weir_status_t* note(void* arg, const weir_fit_state_t* state, bool* stop) {
  times_t* times = arg;
  (void)state, (void)stop;
  if (times->count <= STEPS) times->at[times->count++] = now();
  return NULL;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Steps that neither save nor pay for it: the median of those before the first save.
static double plain_step(const times_t* times) {
  double gaps[EVERY];
  int count = 0;
  for (int i = 1; i < EVERY; ++i) gaps[count++] = times->at[i] - times->at[i - 1];
  qsort(gaps, (size_t)count, sizeof(*gaps), compare);
  return gaps[count / 2];
}

// A save is made after each EVERY steps, so the gap that follows has it in it.
static void report(const char* way, const times_t* times, bool is_saving) {
  const double plain = plain_step(times);
  double longest = 0;
  for (int i = EVERY; i < times->count; i += EVERY) {
    const double gap = times->at[i] - times->at[i - 1];
    longest = gap > longest ? gap : longest;
  }
  const double all = times->at[times->count - 1] - times->at[0];
  printf("%-11s step %7.1f ms", way, 1e3 * plain);
  if (is_saving) printf("   the step after a save takes %8.1f ms more", 1e3 * (longest - plain));
  printf("   %.3f steps/s\n", (times->count - 1) / all);
}

int main(int argc, char** argv) {
  const char* const ways[] = {"none", "foreground", "background"};
  if (argc < 2) return fputs("usage: save_bench DIRECTORY\n", stderr), 2;
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t shape = weir_const_ints(s, (const int[]){BATCH, UNITS}, 2);
  weir_edge_t x = weir_fill(s, shape, weir_const_float(s, 0.01f));
  weir_edge_t y = weir_fill(s, shape, weir_const_float(s, 1));
  for (int i = 0; i < LAYERS; ++i) x = weir_layer_dense(s, x, UNITS, .no_bias = true);
  weir_edge_t loss = weir_loss_mean_squared(s, y, x);
  weir_node_t* step = weir_train_sgd(s, loss, 1e-6f);
  weir_node_t* init = weir_initializer(s);
  weir_saver_t* saver = weir_saver_create(s, .max_to_keep = 1);
  check(weir_scope_finish(s));
  check(weir_session_create(graph, NULL, &session));
  printf("%.2f GB of variables, saved every %d steps\n", 4e-9 * UNITS * UNITS * LAYERS, EVERY);
  for (int i = 0; i < 3; ++i) {
    times_t times = {.count = 0};
    check(weir_fit(session, step, loss, NULL, .max_steps = STEPS + 1, .init = init,
                   .saver = i ? saver : NULL, .directory = argv[1], .no_resume = true,
                   .save_every = EVERY, .on_step = note, .arg = &times, .is_quiet = true,
                   .save_in_foreground = i == 1));
    report(ways[i], &times, i > 0);
  }
  weir_saver_destroy(saver);
  weir_session_destroy(session);
  weir_graph_release(graph);
  return 0;
}
