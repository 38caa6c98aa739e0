// recover_test.c — Training in a cluster whose servers are lost and come back: sessions are made
// anew, the chief restores or goes on, workers wait.
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "testing/tensors.h"
#include "weir/replicas.h"
#include "weir/server.h"
#include "weir/weir.h"

enum { PS = 0, WORKER = 1, SERVER_COUNT = 2 };

// A parameter server, and a worker that is the sessions' master.
typedef struct world_t {
  weir_server_t* servers[SERVER_COUNT];
  char paths[SERVER_COUNT][96];
  char cluster[256];
  char target[128];
  char directory[64];
} world_t;

// One process of the training: it moves x towards 0.
typedef struct process_t {
  world_t* world;
  weir_graph_t* graph;
  weir_scope_t* scope;
  weir_session_t* session;
  weir_edge_t x, loss, missing, global_step;
  weir_node_t *step, *init, *start;
  weir_sync_replicas_t sync;
  weir_saver_t* saver;
  weir_fit_result_t result;
  weir_status_t* status;    // of a loop on a thread of its own
  int64_t lose_at[2];       // at which steps which servers restart; 0: never
  struct process_t* other;  // who must have taken a step when they do, and waits for it then
  atomic_int taken;         // steps
  atomic_bool has_lost;     // a server
  bool is_worker;           // of test_no_part_is_begun_alone
  bool is_patient;          // takes no second step before the other has lost one
  int64_t leave_at;         // of test_takeover: ends after this step; 0: never
} process_t;

// ---- servers ----

// False in a build without clusters.
static bool start(world_t* w, int i) {
  weir_server_options_t options = {
      .cluster = w->cluster, .job = i == PS ? "ps" : "worker", .threads = 1};
  weir_status_t* status = weir_server_create(&options, &w->servers[i]);
  const bool is_there = weir_status_code(status) != WEIR_UNIMPLEMENTED;
  if (is_there) check_ok(status);
  else weir_status_destroy(status);
  return is_there;
}

static void end(world_t* w, int i) {
  weir_server_destroy(w->servers[i], 0);
  w->servers[i] = NULL;
}

static void restart(world_t* w, int i) {
  end(w, i);
  start(w, i);
}

static int setup(void** state) {
  world_t* w = calloc(1, sizeof(*w));
  for (int i = 0; i < SERVER_COUNT; ++i)
    snprintf(w->paths[i], sizeof(w->paths[i]), "unix:/tmp/weir_recover_test.%d.%d", (int)getpid(),
             i);
  snprintf(w->cluster, sizeof(w->cluster), "ps|%s,worker|%s", w->paths[PS], w->paths[WORKER]);
  snprintf(w->target, sizeof(w->target), "grpc://%s", w->paths[WORKER]);
  snprintf(w->directory, sizeof(w->directory), "/tmp/weir_recover_test.XXXXXX");
  assert_non_null(mkdtemp(w->directory));
  *state = w;
  return 0;
}

static int teardown(void** state) {
  world_t* w = *state;
  for (int i = 0; i < SERVER_COUNT; ++i) {
    end(w, i);
    unlink(w->paths[i] + strlen("unix:"));
  }
  char command[96];
  snprintf(command, sizeof(command), "rm -rf '%s'", w->directory);
  assert_int_equal(system(command), 0);
  free(w);
  return 0;
}

static void start_all(world_t* w) {
  for (int i = 0; i < SERVER_COUNT; ++i) {
    if (!start(w, i)) skip();
  }
}

// ---- the program ----

// Of |workers| synchronous ones, or alone.
static process_t* open_one_of(world_t* w, int worker, int workers) {
  process_t* p = calloc(1, sizeof(*p));
  p->world = w;
  check_ok(weir_graph_create(&p->graph));
  p->scope = weir_scope_create(p->graph);
  weir_scope_t* s = weir_scope_replica(p->scope, 1, 0);
  weir_optimizer_t sgd = weir_sgd(0.25f);
  p->x = weir_variable(s, "x", weir_const_float(s, 1024));
  p->loss = weir_square(s, p->x);
  p->global_step = weir_global_step(s);
  if (workers) p->sync = weir_sync_replicas(s, &sgd, p->loss, worker, workers);
  p->start = worker ? p->sync.begin : p->sync.chief_start;
  p->step = workers ? p->sync.step : weir_minimize(s, &sgd, p->loss, .global_step = p->global_step);
  p->missing = weir_uninitialized(s);
  p->saver = weir_saver_create(s);
  p->init = weir_initializer(s);
  check_ok(weir_status_copy(weir_scope_status(s)));
  check_ok(weir_session_create(p->graph, &(const weir_session_options_t){.target = w->target},
                               &p->session));
  return p;
}

static process_t* open_process(world_t* w) { return open_one_of(w, 0, 0); }

static void close_process(process_t* p) {
  weir_session_destroy(p->session);
  weir_saver_destroy(p->saver);
  weir_status_destroy(weir_scope_finish(p->scope));
  weir_graph_release(p->graph);
  free(p);
}

static float value_of(process_t* p, weir_edge_t edge) {
  float value = 0;
  check_ok(weir_session_fetch_float(p->session, edge, &value));
  return value;
}

static weir_status_t* lose_servers(void* arg, const weir_fit_state_t* state, bool* stop) {
  process_t *p = arg, *other = p->other;
  (void)stop;
  ++p->taken;
  for (int i = 0; i < SERVER_COUNT; ++i) {
    if (p->lose_at[i] && state->step >= p->lose_at[i]) {
      while (other && !other->taken) usleep(1000);
      restart(p->world, i);
      p->lose_at[i] = 0;
      p->has_lost = true;
    }
  }
  while (p->is_patient && other && !other->has_lost) usleep(1000);
  return NULL;
}

static weir_status_t* fit(process_t* p, bool is_worker, int64_t steps) {
  return weir_fit(p->session, p->step, p->loss, &p->result, .max_steps = steps, .init = p->init,
                  .start = p->start, .uninitialized = p->missing, .is_worker = is_worker,
                  .global_step = p->global_step, .saver = p->saver,
                  .directory = p->world->directory, .save_every = 4, .on_step = lose_servers,
                  .arg = p, .lost_seconds = 60, .is_quiet = true, .no_signals = true);
}

// ---- tests ----

// Whoever loses a server is told, and the session goes on.
static void test_session(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t* p = open_process(w);
  for (int i = 0; i < SERVER_COUNT; ++i) {
    check_ok(weir_wait_initialized(p->session, p->missing, .init = p->init));
    assert_true(value_of(p, p->x) == 1024);
    restart(w, i);
    float value = 0;
    weir_code_t code = WEIR_UNAVAILABLE;
    while (code == WEIR_UNAVAILABLE) {  // until the connection is made again
      weir_status_t* lost = weir_session_fetch_float(p->session, p->x, &value);
      code = weir_status_code(lost);
      weir_status_destroy(lost);
    }
    assert_int_equal(code, WEIR_ABORTED);
    if (i == WORKER) assert_true(value_of(p, p->x) == 1024);  // the parameter server has it
    else
      check_error(weir_session_fetch_float(p->session, p->x, &value), WEIR_FAILED_PRECONDITION,
                  "x");
  }
  close_process(p);
}

// The parameter server restarts empty: the chief restores what was saved after step 8.
static void test_parameter_server(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t* p = open_process(w);
  p->lose_at[PS] = 10;
  check_ok(fit(p, false, 16));
  assert_int_equal(p->result.recoveries, 1);
  assert_true(p->result.is_resumed);
  assert_int_equal(p->result.step, 16);
  assert_true(value_of(p, p->x) == 1024 / 65536.f);  // 16 halvings, none lost, none twice
  close_process(p);
}

// The master restarts: the state is elsewhere, and nothing is restored.
static void test_master(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t* p = open_process(w);
  p->lose_at[WORKER] = 10;
  check_ok(fit(p, false, 16));
  assert_int_equal(p->result.recoveries, 1);
  assert_false(p->result.is_resumed);
  assert_true(value_of(p, p->x) == 1024 / 65536.f);
  close_process(p);
}

// It restarts when the last step was taken but not saved: what was lost is taken again.
static void test_at_the_end(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t* p = open_process(w);
  p->lose_at[PS] = 16;
  check_ok(weir_fit(p->session, p->step, p->loss, &p->result, .max_steps = 16, .init = p->init,
                    .uninitialized = p->missing, .saver = p->saver, .directory = w->directory,
                    .save_every = 5, .save_in_foreground = true, .on_step = lose_servers, .arg = p,
                    .lost_seconds = 60, .is_quiet = true, .no_signals = true));
  assert_int_equal(p->result.recoveries, 1);
  assert_int_equal(p->result.taken, 17);  // the last one twice
  assert_int_equal(p->result.step, 16);
  assert_true(value_of(p, p->x) == 1024 / 65536.f);
  close_process(p);
}

// ---- state that comes back in parts ----

// x is on the parameter server, and y, which another server keeps, begins with what is in a queue.
static process_t* open_parts(world_t* w, weir_node_t** out_put) {
  process_t* p = calloc(1, sizeof(*p));
  p->world = w;
  check_ok(weir_graph_create(&p->graph));
  p->scope = weir_scope_create(p->graph);
  weir_scope_t *ps = weir_scope_on(p->scope, "/job:ps/task:0"),
               *kept = weir_scope_on(p->scope, "/job:worker/task:0");
  weir_edge_t queue = weir_fifo_queue_v2(kept, WEIR_TYPES(WEIR_DTYPE_FLOAT), .shared_name = "y0");
  weir_edge_t zero = weir_const_float(kept, 0), one = weir_const_float(kept, 1);
  weir_edge_t taken = weir_queue_dequeue_v2(kept, queue, WEIR_TYPES(WEIR_DTYPE_FLOAT));
  p->x = weir_variable(ps, "x", weir_const_float(ps, 0));
  p->loss = weir_variable(kept, "y", weir_ensure_shape(kept, taken, WEIR_SCALAR_SHAPE));
  weir_node_t* steps[] = {
      weir_assign_add_variable_op(ps, weir_variable_handle(p->x), weir_const_float(ps, 1)),
      weir_assign_add_variable_op(kept, weir_variable_handle(p->loss), one)};
  *out_put = weir_queue_enqueue_v2(kept, queue, &zero, 1);
  p->step = weir_group(kept, "step", steps, 2);
  p->missing = weir_uninitialized(p->scope);
  p->init = weir_initializer(p->scope);
  check_ok(weir_status_copy(weir_scope_status(p->scope)));
  check_ok(weir_session_create(p->graph, &(const weir_session_options_t){.target = w->target},
                               &p->session));
  return p;
}

// Until x has a value, whatever else has none.
static void wait_for_x(process_t* p) {
  for (bool is_there = false; !is_there;) {
    weir_tensor_t* names = NULL;
    size_t size = 0;
    const weir_step_spec_t spec = {WEIR_FETCHES(p->missing)};
    weir_status_t* lost = weir_session_run(p->session, &spec, &names);
    is_there = !lost && (weir_tensor_count(names) == 0 ||
                         !strncmp(weir_tensor_string(names, 0, &size), "y", 1));
    weir_status_destroy(lost);
    weir_tensor_release(names);
    usleep(1000);
  }
}

static void* take_one_step(void* arg) {
  process_t* p = arg;
  p->status = weir_fit(p->session, p->step, p->loss, &p->result, .max_steps = 1, .init = p->init,
                       .uninitialized = p->missing, .is_worker = p->is_worker, .lost_seconds = 60,
                       .is_quiet = true, .no_signals = true);
  return NULL;
}

// A worker takes no step while x has begun anew and y has not: y would be overwritten after it.
static void test_no_part_is_begun_alone(void** state) {
  world_t* w = *state;
  start_all(w);
  weir_node_t *put, *unused;
  process_t *chief = open_parts(w, &put), *worker = open_parts(w, &unused);
  worker->is_worker = true;
  check_ok(weir_session_run_target(chief->session, put));
  check_ok(weir_session_run_target(chief->session, chief->init));
  for (int i = 0; i < 5; ++i) check_ok(weir_session_run_target(chief->session, chief->step));
  restart(w, PS);
  pthread_t threads[2];
  assert_int_equal(pthread_create(&threads[0], NULL, take_one_step, chief), 0);
  wait_for_x(worker);
  assert_int_equal(pthread_create(&threads[1], NULL, take_one_step, worker), 0);
  usleep(200000);  // what must not happen has time to
  check_ok(weir_session_run_target(chief->session, put));
  for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  check_ok(chief->status);
  check_ok(worker->status);
  assert_true(value_of(chief, chief->x) == 2);
  assert_true(value_of(chief, chief->loss) == 2);
  close_process(worker);
  close_process(chief);
}

// ---- chiefs by lease ----

static weir_status_t* leave(void* arg, const weir_fit_state_t* state, bool* stop) {
  process_t* p = arg;
  ++p->taken;
  *stop = p->leave_at && state->step >= p->leave_at;
  while (!p->leave_at && !p->other->has_lost) usleep(1000);  // goes on when the other has left
  return NULL;
}

static void* fit_with_lease(void* arg) {
  process_t* p = arg;
  weir_lease_t lease = weir_lease(p->scope, .seconds = 0.2f, .holder = p->leave_at ? "a" : "b");
  p->status = weir_fit(p->session, p->step, p->loss, &p->result, .max_steps = 64, .init = p->init,
                       .uninitialized = p->missing, .lease = lease, .global_step = p->global_step,
                       .saver = p->saver, .directory = p->world->directory, .save_every = 4,
                       .on_step = leave, .arg = p, .lost_seconds = 60, .is_quiet = true,
                       .no_signals = true);
  p->has_lost = true;
  return NULL;
}

// The chief ends before the last step: the other is the chief then, and saves the end.
static void test_takeover(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t *first = open_process(w), *second = open_process(w);
  char *latest = NULL, expected[96];
  first->leave_at = 10;
  second->other = first;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, fit_with_lease, first), 0);
  while (!first->taken && !first->has_lost) usleep(1000);  // it has the lease then
  fit_with_lease(second);
  pthread_join(thread, NULL);
  check_ok(first->status);
  check_ok(second->status);
  assert_int_equal(first->result.reason, WEIR_STOP_REQUEST);
  assert_int_equal(second->result.step, 64);
  assert_int_equal(second->result.recoveries, 0);
  check_ok(weir_latest_checkpoint(w->directory, &latest));
  snprintf(expected, sizeof(expected), "%s/model.ckpt-64", w->directory);
  assert_string_equal(latest, expected);
  weir_buffer_free(latest);
  close_process(second);
  close_process(first);
}

// Nothing was saved: it begins from the beginning.
static void test_without_checkpoint(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t* p = open_process(w);
  p->lose_at[PS] = 3;
  check_ok(fit(p, false, 16));
  assert_false(p->result.is_resumed);
  assert_int_equal(p->result.recoveries, 1);
  assert_true(value_of(p, p->x) == 1024 / 65536.f);
  close_process(p);
}

// A chief that is started again goes on with what the servers have, which is newer than its files.
static void test_chief(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t* p = open_process(w);
  check_ok(fit(p, false, 4));
  for (int i = 0; i < 3; ++i) check_ok(weir_session_run_target(p->session, p->step));
  close_process(p);
  p = open_process(w);
  check_ok(fit(p, false, 16));
  assert_false(p->result.is_resumed);
  assert_true(value_of(p, p->x) == 1024 / 65536.f);
  close_process(p);
}

static void* run_worker(void* arg) {
  process_t* p = arg;
  p->status = fit(p, true, p->start ? 0 : 64);  // synchronous ones are told the end
  return NULL;
}

// A worker that is there before servers and chief waits for both, at the beginning and later.
static void test_worker(void** state) {
  world_t* w = *state;
  start_all(w);
  end(w, PS);
  process_t *worker = open_process(w), *chief = open_process(w);
  chief->other = worker;
  worker->other = chief;
  worker->is_patient = true;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run_worker, worker), 0);
  usleep(100000);
  start(w, PS);
  chief->lose_at[PS] = 20;
  check_ok(fit(chief, false, 64));
  pthread_join(thread, NULL);
  check_ok(worker->status);
  assert_true(worker->result.recoveries >= 1);
  assert_false(worker->result.is_resumed);
  assert_true(worker->result.step >= 64 && chief->result.step >= 64);
  close_process(worker);
  close_process(chief);
}

// Synchronous replicas: accumulators and queues go with the server, and are made anew.
static void test_synchronous(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t *worker = open_one_of(w, 1, 2), *chief = open_one_of(w, 0, 2);
  weir_coordinator_t* coordinator = NULL;
  pthread_t thread;
  check_ok(weir_coordinator_create(&coordinator));
  check_ok(weir_sync_replicas_lead(&chief->sync, chief->session, coordinator, 24));
  assert_int_equal(pthread_create(&thread, NULL, run_worker, worker), 0);
  chief->lose_at[PS] = 10;
  check_ok(fit(chief, false, 0));
  pthread_join(thread, NULL);
  check_ok(worker->status);
  check_ok(weir_coordinator_join(coordinator, 10000));
  assert_int_equal(chief->result.reason, WEIR_STOP_DATA);
  assert_true(chief->result.recoveries >= 1 && chief->result.is_resumed);
  // A checkpoint may be of the midst of a step, and has x of the one after it then. Each beginning
  // of the chief after its first leaves out a number, the last one perhaps.
  assert_true(chief->result.step == 24 || chief->result.step == 25);
  const float halvings = log2f(1024 / value_of(chief, chief->x));
  assert_true(halvings >= 20 && halvings <= 25);
  weir_coordinator_destroy(coordinator);
  close_process(worker);
  close_process(chief);
}

// A global step that was not lost goes back with the rest: nobody leads from it before that.
static void test_synchronous_step_goes_back(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t *worker = open_one_of(w, 1, 2), *chief = open_one_of(w, 0, 2);
  weir_coordinator_t* coordinator = NULL;
  pthread_t thread;
  weir_scope_t* ps = weir_scope_on(chief->scope, "/job:ps/task:0");
  weir_edge_t step = weir_cast(ps, weir_const_int(ps, 20), WEIR_DTYPE_INT64);
  weir_edge_t handle = weir_variable_handle(chief->global_step);
  check_ok(weir_session_run_target(chief->session, weir_assign_variable_op(ps, handle, step)));
  check_error(weir_session_run_target(chief->session, chief->sync.chief_begin),
              WEIR_FAILED_PRECONDITION, "x");  // nor does it begin while there is no x
  check_ok(weir_coordinator_create(&coordinator));
  check_ok(weir_sync_replicas_lead(&chief->sync, chief->session, coordinator, 24));
  usleep(200000);  // it might begin
  assert_int_equal(pthread_create(&thread, NULL, run_worker, worker), 0);
  check_ok(fit(chief, false, 0));
  pthread_join(thread, NULL);
  check_ok(worker->status);
  check_ok(weir_coordinator_join(coordinator, 10000));
  assert_true(chief->result.step == 24 || chief->result.step == 25);
  weir_coordinator_destroy(coordinator);
  close_process(worker);
  close_process(chief);
}

// Servers save by a step that goes on when the call is over; snapshot_test.c has what it holds.
static void test_saves_in_the_background(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t* p = open_process(w);
  char prefix[96], *path = NULL, *latest = NULL;
  snprintf(prefix, sizeof(prefix), "%s/m", w->directory);
  check_ok(weir_session_run_target(p->session, p->init));
  check_ok(weir_saver_save_with(p->saver, p->session, prefix, 7,
                                &(const weir_save_options_t){.in_background = true}, &path));
  check_ok(weir_session_run_target(p->session, p->step));
  check_ok(weir_saver_wait(p->saver));
  assert_false(weir_saver_is_busy(p->saver));
  check_ok(weir_latest_checkpoint(w->directory, &latest));
  assert_string_equal(latest, path);
  weir_buffer_free(path);
  weir_buffer_free(latest);
  close_process(p);
}

// The checkpoint that a lost server's variables come from is damaged: the one before it is taken.
static weir_status_t* damage_and_lose(void* arg, const weir_fit_state_t* state, bool* stop) {
  process_t* p = arg;
  if (p->lose_at[PS] && state->step >= p->lose_at[PS]) {
    char path[160], *latest = NULL;
    check_ok(weir_latest_checkpoint(p->world->directory, &latest));
    snprintf(path, sizeof(path), "%s.data-00000-of-00001", latest);
    weir_buffer_free(latest);
    assert_int_equal(truncate(path, 3), 0);
  }
  return lose_servers(arg, state, stop);
}

static void test_damaged_checkpoint(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t* p = open_process(w);
  p->lose_at[PS] = 10;
  check_ok(weir_fit(p->session, p->step, p->loss, &p->result, .max_steps = 16, .init = p->init,
                    .uninitialized = p->missing, .global_step = p->global_step, .saver = p->saver,
                    .directory = w->directory, .save_every = 4, .save_in_foreground = true,
                    .on_step = damage_and_lose, .arg = p, .lost_seconds = 60, .is_quiet = true,
                    .no_signals = true));
  assert_int_equal(p->result.recoveries, 1);
  assert_true(p->result.is_resumed);
  assert_true(p->result.taken >= 20);                // ten, and from about step 4 on again
  assert_true(value_of(p, p->x) == 1024 / 65536.f);  // 16 halvings
  close_process(p);
}

// It does not wait for ever.
static void test_gives_up(void** state) {
  world_t* w = *state;
  start_all(w);
  end(w, PS);
  process_t* p = open_process(w);
  check_error(weir_fit(p->session, p->step, p->loss, NULL, .uninitialized = p->missing,
                       .is_worker = true, .lost_seconds = 0.5, .is_quiet = true),
              WEIR_DEADLINE_EXCEEDED, "");
  start(w, PS);
  check_error(weir_fit(p->session, p->step, p->loss, NULL, .uninitialized = p->missing,
                       .is_worker = true, .lost_seconds = 0.5, .is_quiet = true),
              WEIR_UNAVAILABLE, "the chief has not initialised: x, global_step");
  check_error(weir_fit(p->session, p->step, p->loss, NULL, .uninitialized = p->missing,
                       .is_worker = true, .lost_seconds = 0.5, .is_quiet = true),
              WEIR_UNAVAILABLE, "attempts the loop waited in vain for the chief");
  check_error(weir_fit(p->session, p->step, p->loss, NULL, .is_worker = true),
              WEIR_INVALID_ARGUMENT, "uninitialized");
  check_error(weir_fit(p->session, p->step, p->loss, NULL, .init = p->init, .max_steps = 2,
                       .global_step = p->x, .is_quiet = true),
              WEIR_INVALID_ARGUMENT, "not an int64 scalar");
  close_process(p);
}

static weir_status_t* lose_and_end(void* arg, const weir_fit_state_t* state, bool* stop) {
  process_t* p = arg;
  (void)stop;
  if (state->step < 6) return NULL;
  end(p->world, PS);
  raise(SIGTERM);
  return NULL;
}

// Who is told to end while the parameter server is lost does so, and says that nothing was saved.
static void test_told_to_end(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t* p = open_process(w);
  char* latest = NULL;
  check_error(weir_fit(p->session, p->step, p->loss, &p->result, .init = p->init,
                       .uninitialized = p->missing, .global_step = p->global_step,
                       .saver = p->saver, .directory = w->directory, .save_every = 4,
                       .save_in_foreground = true, .on_step = lose_and_end, .arg = p,
                       .lost_seconds = 60, .grace_seconds = 0.2, .is_quiet = true),
              WEIR_UNAVAILABLE, "asked to end, but the state was not saved");
  assert_int_equal(p->result.reason, WEIR_STOP_SIGNAL);
  check_ok(weir_latest_checkpoint(w->directory, &latest));
  assert_non_null(latest);  // of step 4, or of the one after it
  weir_buffer_free(latest);
  close_process(p);
}

// A step that hangs is ended, and the next one goes on.
static void test_step_limit(void** state) {
  world_t* w = *state;
  start_all(w);
  process_t* p = open_process(w);
  weir_scope_t* s = weir_scope_on(p->scope, "/job:ps/task:0");
  weir_edge_t queue = weir_fifo_queue_v2(s, WEIR_TYPES(WEIR_DTYPE_FLOAT), .shared_name = "held");
  weir_edge_t one = weir_const_float(s, 1);
  weir_node_t* put = weir_queue_enqueue_v2(s, queue, &one, 1);
  weir_edge_t taken = weir_queue_dequeue_v2(s, queue, WEIR_TYPES(WEIR_DTYPE_FLOAT));
  check_ok(weir_session_run_target(p->session, p->init));
  for (int i = 0; i < 3; ++i) check_ok(weir_session_run_target(p->session, put));
  check_error(weir_fit(p->session, p->step, taken, &p->result, .max_steps = 5, .step_seconds = 0.2,
                       .uninitialized = p->missing, .lost_seconds = 1, .is_quiet = true),
              WEIR_DEADLINE_EXCEEDED, "");
  assert_int_equal(p->result.step, 3);
  assert_true(p->result.recoveries >= 1);
  close_process(p);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {TEST(test_session),
                                     TEST(test_parameter_server),
                                     TEST(test_master),
                                     TEST(test_at_the_end),
                                     TEST(test_no_part_is_begun_alone),
                                     TEST(test_takeover),
                                     TEST(test_without_checkpoint),
                                     TEST(test_chief),
                                     TEST(test_worker),
                                     TEST(test_synchronous),
                                     TEST(test_synchronous_step_goes_back),
                                     TEST(test_gives_up),
                                     TEST(test_told_to_end),
                                     TEST(test_step_limit),
                                     TEST(test_saves_in_the_background),
                                     TEST(test_damaged_checkpoint)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
