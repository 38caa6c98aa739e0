// save_bench.c — What a checkpoint costs a training loop: a gigabyte of variables that every step
// updates, saved every few steps while steps wait, on a thread while they go on, and not at all.
//
//   cmake --build build/release --target save_bench && build/release/save_bench DIRECTORY [servers]
//
// With "servers" the variables are with two parameter servers, processes of their own, which take
// and write them.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include <weir/server.h>
#include <weir/weir.h>

enum { UNITS = 4096, LAYERS = 16, STEPS = 17, EVERY = 8, PS_COUNT = 2, SERVERS = PS_COUNT + 1 };

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

// ---- servers ----

typedef struct servers_t {
  char cluster[512], target[128];
  pid_t pids[SERVERS];
} servers_t;

static void serve(const servers_t* servers, int i) {
  weir_server_t* server = NULL;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // whatever becomes of the program
  check(weir_server_create(
      &(const weir_server_options_t){
          .cluster = servers->cluster, .job = i < PS_COUNT ? "ps" : "worker", .task = i % PS_COUNT},
      &server));
  for (;;) pause();
}

static void start_servers(const char* directory, servers_t* servers) {
  snprintf(servers->cluster, sizeof(servers->cluster),
           "ps|unix:%s/ps0;unix:%s/ps1,worker|unix:%s/w", directory, directory, directory);
  snprintf(servers->target, sizeof(servers->target), "grpc://unix:%s/w", directory);
  for (int i = 0; i < SERVERS; ++i) {
    servers->pids[i] = fork();
    if (servers->pids[i] == 0) serve(servers, i);
  }
}

static void stop_servers(const servers_t* servers) {
  for (int i = 0; i < SERVERS; ++i) {
    if (servers->pids[i] > 0) kill(servers->pids[i], SIGKILL);
  }
}

// ---- models ----

// Gradient descent, in this process.
static weir_node_t* build_here(weir_scope_t* s, weir_edge_t* out_loss) {
  weir_edge_t shape = weir_const_ints(s, (const int[]){UNITS, UNITS}, 2);
  weir_edge_t both = weir_const_ints(s, (const int[]){0, 1}, 2);
  *out_loss = weir_const_float(s, 0);
  for (int i = 0; i < LAYERS; ++i) {
    char name[16];
    snprintf(name, sizeof(name), "v%d", i);
    weir_edge_t v = weir_variable(s, name, weir_fill(s, shape, weir_const_float(s, 1)));
    *out_loss = weir_add_v2(s, *out_loss, weir_mean(s, v, both));
  }
  return weir_train_sgd(s, *out_loss, 1e-6f);
}

// Updates that are computed where the variables are: no gradients on their way.
static weir_node_t* build_there(weir_scope_t* root, weir_edge_t* out_loss) {
  weir_scope_t* s = weir_scope_replica(root, PS_COUNT, 0);
  weir_edge_t shape = weir_const_ints(s, (const int[]){UNITS, UNITS}, 2);
  weir_node_t* updates[LAYERS];
  for (int i = 0; i < LAYERS; ++i) {
    char name[16];
    snprintf(name, sizeof(name), "v%d", i);
    weir_edge_t v = weir_variable(s, name, weir_fill(s, shape, weir_const_float(s, 1)));
    weir_edge_t handle = weir_variable_handle(v);
    weir_scope_t* there = weir_scope_on(s, weir_node_device(handle.node));
    weir_edge_t change = weir_mul(there, v, weir_const_float(there, 1e-6f));
    updates[i] = weir_assign_sub_variable_op(there, handle, change);
  }
  *out_loss = weir_const_float(s, 0);
  return weir_group(s, "step", updates, LAYERS);
}

int main(int argc, char** argv) {
  const char* const ways[] = {"none", "foreground", "background"};
  if (argc < 2) return fputs("usage: save_bench DIRECTORY [servers]\n", stderr), 2;
  const bool has_servers = argc > 2 && !strcmp(argv[2], "servers");
  servers_t servers = {.target = ""};
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_edge_t loss;
  if (has_servers) start_servers(argv[1], &servers);
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_node_t* step = has_servers ? build_there(s, &loss) : build_here(s, &loss);
  weir_node_t* init = weir_initializer(s);
  weir_saver_t* saver = weir_saver_create(s, .max_to_keep = 1, .is_sharded = has_servers);
  check(weir_scope_finish(s));
  weir_session_options_t options = {.target = has_servers ? servers.target : NULL};
  check(weir_session_create(graph, &options, &session));
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
  stop_servers(&servers);
  return 0;
}
