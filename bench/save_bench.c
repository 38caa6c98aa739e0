// save_bench.c — What a checkpoint costs a training loop: a gigabyte of variables that every step
// updates, saved every few steps while steps wait, on a thread while they go on, and not at all.
//
//   cmake --build build/release --target save_bench && build/release/save_bench DIRECTORY
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/weir.h>

enum { UNITS = 4096, LAYERS = 16, STEPS = 17, EVERY = 8 };

// Seconds, by steps.
typedef struct times_t {
  double begun[STEPS];
  double ended[STEPS];
  int begun_count, ended_count;
} times_t;

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static weir_status_t* note_begin(void* arg, int64_t step, weir_feed_t* feeds, int* count) {
  times_t* times = arg;
  (void)step, (void)feeds, (void)count;
  times->begun[times->begun_count++] = now();
  return NULL;
}

static weir_status_t* note_end(void* arg, const weir_fit_state_t* state, bool* stop) {
  times_t* times = arg;
  (void)state, (void)stop;
  times->ended[times->ended_count++] = now();
  return NULL;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof(*values), compare);
  return values[count / 2];
}

// A save is made after each EVERY steps: it is the pause before the next. That step copies what the
// save holds, and the others go on beside it.
static void report(const char* way, const times_t* times, bool is_saving) {
  double plain[STEPS], pauses[STEPS], after[STEPS];
  int plain_count = 0, save_count = 0;
  for (int i = 1; i < EVERY; ++i) plain[plain_count++] = times->ended[i] - times->begun[i];
  for (int i = EVERY; i < STEPS; i += EVERY) {
    pauses[save_count] = times->begun[i] - times->ended[i - 1];
    after[save_count++] = times->ended[i] - times->begun[i];
  }
  printf("%-10s  step %6.0f ms", way, 1e3 * median(plain, plain_count));
  if (is_saving)
    printf("   pause of a save %6.0f ms, the step after it %6.0f ms",
           1e3 * median(pauses, save_count), 1e3 * median(after, save_count));
  // Without the first step, and from the first save on, of which each EVERY steps have one.
  printf("   %5.2f steps/s\n", EVERY / (times->ended[2 * EVERY - 1] - times->ended[EVERY - 1]));
}

int main(int argc, char** argv) {
  const char* const ways[] = {"none", "foreground", "background"};
  if (argc < 2) return fputs("usage: save_bench DIRECTORY\n", stderr), 2;
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t shape = weir_const_ints(s, (const int[]){UNITS, UNITS}, 2);
  weir_edge_t both = weir_const_ints(s, (const int[]){0, 1}, 2);
  weir_edge_t loss = weir_const_float(s, 0);
  for (int i = 0; i < LAYERS; ++i) {
    char name[16];
    snprintf(name, sizeof(name), "v%d", i);
    weir_edge_t v = weir_variable(s, name, weir_fill(s, shape, weir_const_float(s, 1)));
    loss = weir_add_v2(s, loss, weir_mean(s, v, both));
  }
  weir_node_t* step = weir_train_sgd(s, loss, 1e-6f);
  weir_node_t* init = weir_initializer(s);
  weir_saver_t* saver = weir_saver_create(s, .max_to_keep = 1);
  check(weir_scope_finish(s));
  check(weir_session_create(graph, NULL, &session));
  printf("%.2f GB of variables, saved every %d steps\n", 4e-9 * UNITS * UNITS * LAYERS, EVERY);
  for (int i = 0; i < 3; ++i) {
    times_t times = {.begun_count = 0};
    check(weir_fit(session, step, loss, NULL, .max_steps = STEPS, .init = init,
                   .saver = i ? saver : NULL, .directory = argv[1], .no_resume = true,
                   .save_every = EVERY, .feed = note_begin, .on_step = note_end, .arg = &times,
                   .is_quiet = true, .save_in_foreground = i == 1));
    report(ways[i], &times, i > 0);
  }
  weir_saver_destroy(saver);
  weir_session_destroy(session);
  weir_graph_release(graph);
  return 0;
}
