// peer.c — A program that uses the library among peers that do as they like, for
// tests/cluster/random_peers.py.
//
//   peer use TARGET SEED SECONDS            one thread waits for TARGET, another uses the same
//   graph peer train FOLDER TARGET STEPS BLOCK GRACE
//                                           a training loop with a checkpoint at every step
//
// TARGET "-" is this process. It ends with 3, and says in which call, when one does not return that
// need not wait for anybody.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weir/weir.h>

enum { LIMIT_S = 20, SIZE = 1 << 18 };

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

static const char* target_of(const char* text) { return strcmp(text, "-") ? text : NULL; }

// ---- calls that must return ----

static const char* volatile current = "none";

static void stuck(int number) {
  (void)number;
  const char* parts[] = {"stuck in ", current, "\n"};
  for (int i = 0; i < 3; ++i) {
    if (write(1, parts[i], strlen(parts[i])) < 0) _exit(4);
  }
  _exit(3);
}

static void begin(const char* call) {
  current = call;
  alarm(LIMIT_S);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- use ----

typedef struct user_t {
  weir_graph_t* graph;
  weir_session_t* remote;
  weir_edge_t x;
  int count;
} user_t;

// Waits for the peer for as long as that takes.
static void* wait_for_peer(void* arg) {
  user_t* user = arg;
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {.fetches = &user->x, .fetch_count = 1};
  weir_status_destroy(weir_session_run(user->remote, &spec, &result));
  weir_tensor_release(result);
  return NULL;
}

static void add_nodes(user_t* user) {
  char name[32];
  weir_scope_t* s = weir_scope_create(user->graph);
  snprintf(name, sizeof(name), "more_%d", user->count++);
  weir_const_float(weir_scope_name(s, name), 2);
  check(weir_scope_finish(s));
}

static void find_nodes(user_t* user) {
  weir_edge_t edge;
  check(weir_graph_find_output(user->graph, "x", &edge));
}

static void write_graph(user_t* user) {
  char* def = NULL;
  size_t size = 0;
  check(weir_graph_to_def(user->graph, &def, &size));
  weir_buffer_free(def);
}

static void run_here(user_t* user) {
  weir_session_t* session = NULL;
  float value = 0;
  check(weir_session_create(user->graph, NULL, &session));
  check(weir_session_fetch_float(session, user->x, &value));
  weir_session_destroy(session);
}

// May fail in any way, but not later than this.
static void run_there(user_t* user) {
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {.fetches = &user->x, .fetch_count = 1};
  weir_run_options_t options = {.timeout_ms = 50};
  weir_status_destroy(weir_session_run_with(user->remote, &spec, &options, &result, NULL, NULL));
  weir_tensor_release(result);
}

static const struct {
  const char* name;
  void (*call)(user_t* user);
} kCalls[] = {{"adding nodes", add_nodes},
              {"finding an output", find_nodes},
              {"writing the graph", write_graph},
              {"a step of this process", run_here},
              {"a step with a deadline", run_there}};

static int use(const char* target, unsigned seed, double seconds) {
  user_t user = {.count = 0};
  pthread_t thread;
  check(weir_graph_create(&user.graph));
  weir_scope_t* s = weir_scope_create(user.graph);
  user.x = weir_const_float(weir_scope_name(s, "x"), 1);
  check(weir_scope_finish(s));
  check(weir_session_create(user.graph, &(weir_session_options_t){.target = target}, &user.remote));
  signal(SIGALRM, stuck);
  if (pthread_create(&thread, NULL, wait_for_peer, &user)) return 1;
  for (double end = now() + seconds; now() < end; usleep(10000)) {
    size_t i = (size_t)rand_r(&seed) % (sizeof(kCalls) / sizeof(kCalls[0]));
    begin(kCalls[i].name);
    kCalls[i].call(&user);
  }
  begin("cancelling a step");
  weir_session_cancel(user.remote);
  pthread_join(thread, NULL);
  begin("destroying the session");
  weir_session_destroy(user.remote);
  weir_graph_release(user.graph);
  return 0;
}

// ---- train ----

static weir_status_t* say_step(void* arg, const weir_fit_state_t* state, bool* stop) {
  (void)arg, (void)stop;
  printf("step %lld\n", (long long)state->step);
  return fflush(stdout) ? WEIR_STATUS(INTERNAL, "nobody listens") : NULL;
}

static weir_edge_t initial(weir_scope_t* s) {
  weir_edge_t dims = weir_const_ints(s, (const int[]){SIZE}, 1);
  return weir_fill(s, dims, weir_const_float(s, 1));
}

// A step takes a value of a queue that has |block| of them, and waits for more; negative: none.
static int train(const char* folder, const char* target, int steps, int block, double grace) {
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  weir_fit_result_t result;
  check(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t v = weir_variable(s, "v", initial(s)), w = weir_variable(s, "w", initial(s));
  weir_edge_t axis = weir_const_ints(s, (const int[]){0}, 1);
  weir_edge_t loss = weir_mean(s, weir_square(s, weir_add(s, v, w)), axis);
  weir_node_t* step = weir_train_sgd(s, loss, 0.05f);
  weir_edge_t queue = weir_fifo_queue_v2(s, WEIR_TYPES(WEIR_DTYPE_FLOAT));
  weir_edge_t one = weir_const_float(s, 1);
  weir_node_t* fill = weir_queue_enqueue_v2(s, queue, &one, 1);
  if (block >= 0)
    loss = weir_mul(s, loss, weir_queue_dequeue_v2(s, queue, WEIR_TYPES(WEIR_DTYPE_FLOAT)));
  weir_node_t* init = weir_initializer(s);
  weir_saver_t* saver = weir_saver_create(s, .max_to_keep = 2);
  check(weir_scope_finish(s));
  check(weir_session_create(graph, &(weir_session_options_t){.target = target}, &session));
  for (int i = 0; i < block && !target; ++i) check(weir_session_run_target(session, fill));
  puts("begins");
  fflush(stdout);
  check(weir_fit(session, step, loss, &result, .max_steps = steps, .init = init, .saver = saver,
                 .directory = folder, .save_every = 1, .is_quiet = true, .on_step = say_step,
                 .grace_seconds = grace));
  weir_saver_destroy(saver);
  weir_session_destroy(session);
  weir_graph_release(graph);
  return 0;
}

int main(int argc, char** argv) {
  if (argc == 5 && !strcmp(argv[1], "use"))
    return use(target_of(argv[2]), (unsigned)atoi(argv[3]), atof(argv[4]));
  if (argc == 7 && !strcmp(argv[1], "train"))
    return train(argv[2], target_of(argv[3]), atoi(argv[4]), atoi(argv[5]), atof(argv[6]));
  return fputs("see the head of the source\n", stderr), 2;
}
