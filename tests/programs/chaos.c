// chaos.c — A training program that tests/chaos/chaos.py starts on servers, stops, kills and starts
// again. Each step adds one to every element of every variable and to the global step, by way of
// gradients and an optimizer: state in which these are not all equal has lost a part of a step, or
// has taken it twice.
//
//   chaos train TARGET WORKER WORKERS PS STEPS DIRECTORY sync|async [lease | ETCD SECONDS]
//                                 prints each step it came to. The chief is worker 0 or, with
//                                 "lease", who has that, which etcd may keep
//   chaos show TARGET PS          the variables that servers hold: name, smallest, largest element
//   chaos read PREFIX             the same of a checkpoint
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/weir.h>

enum { VARIABLES = 5, ELEMENTS = 1000, SAVE_EVERY = 10, PATIENCE_MS = 60000 };
static const double kLostSeconds = 60, kStepSeconds = 0.7;
static const float kLeaseSeconds = 0.4f;
static const useconds_t kPause = 3000;  // µs after each step, so that faults meet training

typedef struct model_t {
  weir_graph_t* graph;
  weir_session_t* session;
  weir_edge_t variables[VARIABLES];
  weir_edge_t loss, missing, global_step;
  weir_sync_replicas_t sync;  // all NULL when asynchronous
  weir_election_t* election;  // NULL: etcd does not say who is the chief
  weir_lease_t lease;         // nothing: worker 0 is the chief
  weir_node_t *step, *init;
  weir_saver_t* saver;
} model_t;

static void check(weir_status_t* status) {
  if (weir_status_report(status)) exit(1);
}

// What gradient descent by 1 makes larger by one.
static weir_edge_t add_loss(weir_scope_t* s, model_t* m) {
  weir_edge_t sums[VARIABLES];
  for (int i = 0; i < VARIABLES; ++i) {
    char name[8];
    snprintf(name, sizeof(name), "v%d", i);
    weir_edge_t shape = weir_const_ints(s, (const int[]){ELEMENTS}, 1);
    m->variables[i] = weir_variable(s, name, weir_fill(s, shape, weir_const_float(s, 0)));
    sums[i] = weir_sum(s, m->variables[i], weir_const_int(s, 0));
  }
  return weir_neg(s, weir_add_n(s, sums, VARIABLES));
}

// |lease|: what the command line says of it; its first is NULL where it says nothing.
static weir_lease_t make_lease(weir_scope_t* s, model_t* m, char** lease) {
  if (!lease[0]) return (weir_lease_t){.seconds = 0};
  if (!lease[1]) return weir_lease(s, .seconds = kLeaseSeconds);
  check(weir_election_create(lease[0], "chaos/chief", &m->election,
                             .seconds = strtof(lease[1], NULL)));
  return weir_election_lease(m->election);
}

static model_t build(int worker, int workers, int ps, bool is_sync, char** lease) {
  model_t m = {0};
  check(weir_graph_create(&m.graph));
  weir_scope_t* root = weir_scope_create(m.graph);
  weir_scope_t* s = weir_scope_replica(root, ps, worker);
  weir_optimizer_t sgd = weir_sgd(1);
  m.loss = add_loss(s, &m);
  m.global_step = weir_global_step(s);
  m.lease = make_lease(s, &m, lease);
  if (is_sync) m.sync = weir_sync_replicas(s, &sgd, m.loss, worker, workers, .lease = m.lease);
  m.step = is_sync ? m.sync.step : weir_minimize(s, &sgd, m.loss, .global_step = m.global_step);
  m.missing = weir_uninitialized(s);
  m.init = weir_initializer(s);
  m.saver = weir_saver_create(s, .is_sharded = true, .max_to_keep = 3);
  check(weir_scope_finish(root));
  return m;
}

static void open_session(model_t* m, const char* target, int worker) {
  char filters[64];
  snprintf(filters, sizeof(filters), "/job:ps,/job:worker/task:%d", worker);
  weir_session_options_t options = {.target = target, .device_filters = filters};
  check(weir_session_create(m->graph, &options, &m->session));
}

static void close_model(model_t* m) {
  weir_election_destroy(m->election);
  weir_saver_destroy(m->saver);
  weir_session_destroy(m->session);
  weir_graph_release(m->graph);
}

// ---- train ----

static weir_status_t* tell(void* arg, const weir_fit_state_t* state, bool* stop) {
  (void)arg, (void)stop;
  printf("at %lld\n", (long long)state->step);
  fflush(stdout);
  usleep(kPause);
  return NULL;
}

static int train(char** argv) {
  const int worker = atoi(argv[1]), steps = atoi(argv[4]);
  const bool is_sync = !strcmp(argv[6], "sync"), is_leased = argv[7] != NULL;
  const bool is_worker = worker != 0 && !is_leased;  // for ever
  model_t m = build(worker, atoi(argv[2]), atoi(argv[3]), is_sync, argv + 7);
  weir_coordinator_t* coordinator = NULL;
  weir_fit_result_t result;
  open_session(&m, argv[0], worker);
  check(weir_coordinator_create(&coordinator));
  if (is_sync && !is_worker) check(weir_sync_replicas_lead(&m.sync, m.session, coordinator, steps));
  check(weir_fit(m.session, m.step, m.loss, &result, .max_steps = is_sync ? 0 : steps,
                 .init = m.init, .start = m.sync.begin, .chief_start = m.sync.chief_start,
                 .uninitialized = m.missing, .is_worker = is_worker, .lease = m.lease,
                 .global_step = m.global_step, .saver = m.saver, .directory = argv[5],
                 .save_every = SAVE_EVERY, .on_step = tell, .coordinator = coordinator,
                 .lost_seconds = kLostSeconds, .step_seconds = kStepSeconds, .log_every = 1 << 30));
  weir_coordinator_request_stop(coordinator, NULL);
  check(weir_coordinator_join(coordinator, PATIENCE_MS));
  printf("end %lld%s%s\n", (long long)result.step,
         result.reason == WEIR_STOP_SIGNAL ? " by signal" : "",
         result.is_resumed ? " restored" : "");
  weir_coordinator_destroy(coordinator);
  close_model(&m);
  return 0;
}

// ---- look ----

static void print_range(const char* name, const weir_tensor_t* value) {
  const float* data = weir_tensor_data(value);
  float least = data[0], most = data[0];
  for (int64_t i = 1; i < weir_tensor_count(value); ++i) {
    least = data[i] < least ? data[i] : least;
    most = data[i] > most ? data[i] : most;
  }
  printf("%s %.0f %.0f\n", name, (double)least, (double)most);
}

static void print_step(const weir_tensor_t* value) {
  const long long step = (long long)*(const int64_t*)weir_tensor_data(value);
  printf("global_step %lld %lld\n", step, step);
}

static int show(char** argv) {
  model_t m = build(0, 1, atoi(argv[1]), false, (char*[]){NULL});
  weir_edge_t fetches[VARIABLES + 1];
  weir_tensor_t* values[VARIABLES + 1] = {NULL};
  memcpy(fetches, m.variables, sizeof(m.variables));
  fetches[VARIABLES] = m.global_step;
  open_session(&m, argv[0], 0);
  const weir_step_spec_t spec = {.fetches = fetches, .fetch_count = VARIABLES + 1};
  check(weir_wait_initialized(m.session, m.missing, .timeout_ms = PATIENCE_MS));
  check(weir_session_run(m.session, &spec, values));
  for (int i = 0; i < VARIABLES; ++i)
    print_range((const char[]){'v', (char)('0' + i), 0}, values[i]);
  print_step(values[VARIABLES]);
  for (int i = 0; i <= VARIABLES; ++i) weir_tensor_release(values[i]);
  close_model(&m);
  return 0;
}

static int read_checkpoint(const char* prefix) {
  weir_checkpoint_t* checkpoint = NULL;
  check(weir_checkpoint_open(prefix, &checkpoint));
  for (size_t i = 0; i < weir_checkpoint_count(checkpoint); ++i) {
    const weir_checkpoint_tensor_t* t = weir_checkpoint_at(checkpoint, i);
    weir_tensor_t* value = NULL;
    if (t->dtype != WEIR_DTYPE_FLOAT && t->dtype != WEIR_DTYPE_INT64) continue;
    check(weir_checkpoint_read(checkpoint, t->name, &value));
    if (t->dtype == WEIR_DTYPE_FLOAT) print_range(t->name, value);
    else print_step(value);
    weir_tensor_release(value);
  }
  weir_checkpoint_close(checkpoint);
  return 0;
}

int main(int argc, char** argv) {
  const char* verb = argc > 1 ? argv[1] : "";
  if (!strcmp(verb, "train") && argc >= 9 && argc <= 11) return train(argv + 2);
  if (!strcmp(verb, "show") && argc == 4) return show(argv + 2);
  if (!strcmp(verb, "read") && argc == 3) return read_checkpoint(argv[2]);
  return fputs(
             "usage: chaos train TARGET WORKER WORKERS PS STEPS DIRECTORY sync|async "
             "[lease | ETCD SECONDS]\n"
             "       chaos show TARGET PS\n"
             "       chaos read PREFIX\n",
             stderr),
         2;
}
