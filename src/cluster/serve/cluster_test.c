// cluster_test.c — Three servers and a native client: training, loops that span tasks, errors,
// cancellation, servers that stop and die, many steps at once.
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/serve/serving.h"
#include "testing/world.h"
#include "weir/server.h"

// Parameter servers 0 and 1, and a worker, which is the client's master.
enum { SERVER_COUNT = 3, MASTER = 2 };
#define PS0 "/job:ps/task:0"
#define PS1 "/job:ps/task:1"
#define WORKER "/job:worker/task:0"

typedef struct cluster_t {
  world_t world;          // first: what the helpers of world.h get
  weir_scope_t* outside;  // the scope without a device
  weir_server_t* servers[SERVER_COUNT];
  pid_t children[SERVER_COUNT];  // servers in processes of their own, to be killed
  char description[512];
  char target[128];
} cluster_t;

static void socket_path(char* out, size_t size, int server) {
  snprintf(out, size, "unix:/tmp/weir_cluster_test.%d.%d", (int)getpid(), server);
}

static void start_server(cluster_t* c, int i) {
  weir_server_options_t options = {.cluster = c->description,
                                   .job = i == MASTER ? "worker" : "ps",
                                   .task = i == MASTER ? 0 : i,
                                   .threads = 2};
  check_ok(weir_server_create(&options, &c->servers[i]));
}

static void describe(cluster_t* c) {
  char paths[SERVER_COUNT][96];
  for (int i = 0; i < SERVER_COUNT; ++i) socket_path(paths[i], sizeof(paths[i]), i);
  snprintf(c->description, sizeof(c->description), "ps|%s;%s,worker|%s", paths[0], paths[1],
           paths[MASTER]);
  snprintf(c->target, sizeof(c->target), "grpc://%s", paths[MASTER]);
}

static int set_up_graph(void** state) {
  cluster_t* c = calloc(1, sizeof(*c));
  check_ok(weir_graph_create(&c->world.graph));
  c->world.scope = c->outside = weir_scope_create(c->world.graph);
  describe(c);
  *state = c;
  return 0;
}

static int set_up(void** state) {
  set_up_graph(state);
  for (int i = 0; i < SERVER_COUNT; ++i) start_server(*state, i);
  return 0;
}

static int tear_down(void** state) {
  cluster_t* c = *state;
  weir_session_destroy(c->world.session);
  for (int i = 0; i < SERVER_COUNT; ++i) {
    if (c->children[i]) kill(c->children[i], SIGKILL);
    if (c->children[i]) waitpid(c->children[i], NULL, 0);
    weir_server_destroy(c->servers[i], 0);
    char path[96];
    socket_path(path, sizeof(path), i);
    unlink(path + strlen("unix:"));
  }
  weir_status_destroy(weir_scope_finish(c->outside));
  weir_graph_release(c->world.graph);
  free(c);
  return 0;
}

static weir_session_t* connect_client(cluster_t* c) {
  weir_session_options_t options = {.target = c->target};
  check_ok(weir_session_create(c->world.graph, &options, &c->world.session));
  return c->world.session;
}

// The same graph in this process.
static weir_session_t* open_local(cluster_t* c) {
  weir_session_t* session = NULL;
  weir_session_options_t options = {.threads = 1, .allow_soft_placement = true};
  check_ok(weir_session_create(c->world.graph, &options, &session));
  return session;
}

static void stop_server(cluster_t* c, int i) {
  weir_server_destroy(c->servers[i], 0);
  c->servers[i] = NULL;
}

// Has nodes that are added from now on placed on |device|, or anywhere.
static world_t* on(cluster_t* c, const char* device) {
  c->world.scope = device ? weir_scope_on(c->outside, device) : c->outside;
  return &c->world;
}

static weir_status_t* run_fed(weir_session_t* session, weir_edge_t feed, weir_tensor_t* take_fed,
                              weir_edge_t fetch, weir_tensor_t** out_value) {
  weir_step_spec_t spec = {WEIR_FEEDS({feed, take_fed}), WEIR_FETCHES(fetch)};
  *out_value = NULL;
  weir_status_t* status = weir_session_run(session, &spec, out_value);
  weir_tensor_release(take_fed);
  return status;
}

// ---- steps on threads of their own ----

typedef struct runner_t {
  weir_session_t* session;
  weir_edge_t fetch;
  weir_node_t* target;
  int steps;
  weir_run_options_t options;
  weir_status_t* status;
  float sum;
  pthread_t thread;
} runner_t;

static void* runner_main(void* arg) {
  runner_t* runner = arg;
  for (int i = 0; i < runner->steps && !runner->status; ++i) {
    weir_tensor_t* result = NULL;
    weir_step_spec_t spec = {.fetches = &runner->fetch,
                             .fetch_count = runner->fetch.node ? 1 : 0,
                             .targets = &runner->target,
                             .target_count = runner->target ? 1 : 0};
    runner->status =
        weir_session_run_with(runner->session, &spec, &runner->options, &result, NULL, NULL);
    if (result) runner->sum += float_of(result);
    weir_tensor_release(result);
  }
  return NULL;
}
static void runner_start(runner_t* runner) {
  assert_int_equal(pthread_create(&runner->thread, NULL, runner_main, runner), 0);
}
static weir_status_t* runner_join(runner_t* runner) {
  pthread_join(runner->thread, NULL);
  return runner->status;
}
static void expect_failure(runner_t* runner) {  // of whatever kind
  weir_status_t* status = runner_join(runner);
  assert_non_null(status);
  weir_status_destroy(status);
}

// A dequeue on |device| that nobody serves, after telling through another queue that the step runs.
typedef struct blocked_t {
  queue_nodes_t empty, started;
  weir_edge_t value;   // of the dequeue, where it is
  weir_edge_t result;  // the same on the worker
} blocked_t;
static blocked_t add_blocked(cluster_t* c, const char* device) {
  blocked_t b;
  world_t* w = on(c, device);
  b.empty = add_queue(w, "empty", 10);
  on(c, WORKER);
  b.started = add_queue(w, "started", 100);
  weir_node_t* tell =
      add(w, "QueueEnqueueV2", NULL, WEIR_EDGES(b.started.handle, weir_const_float(w->scope, 1)),
          WEIR_NO_ATTRS);
  on(c, device);
  weir_dtype_t types[] = {WEIR_DTYPE_FLOAT};
  weir_node_t* wait = add(w, "QueueDequeueV2", NULL, WEIR_EDGES(b.empty.handle),
                          WEIR_ATTRS(weir_attr_types("component_types", types, 1)));
  check_ok(weir_graph_add_control(wait, tell));
  b.value = output(wait, 0);
  on(c, WORKER);
  b.result = OP(w, "Neg", b.value);
  on(c, NULL);
  return b;
}

// Starts |count| steps that block, and returns when all of them run.
static void start_blocked(weir_session_t* session, const blocked_t* b,
                          weir_cancellation_t* cancellation, runner_t* runners, int count) {
  for (int i = 0; i < count; ++i) {
    runners[i] = (runner_t){.session = session,
                            .fetch = b->result,
                            .steps = 1,
                            .options = {.cancellation = cancellation}};
    runner_start(&runners[i]);
  }
  for (int i = 0; i < count; ++i) fetch_float(session, b->started.value);
}

// ---- training ----

// y = a x + b, with a and b on different tasks, by gradient descent.
typedef struct regression_t {
  weir_node_t *init, *train;
  weir_edge_t loss, a, b;
} regression_t;

static regression_t add_regression(cluster_t* c) {
  regression_t r;
  world_t* w = on(c, PS0);
  r.a = weir_variable(w->scope, "a", weir_const_float(w->scope, 0));
  on(c, PS1);
  r.b = weir_variable(w->scope, "b", weir_const_float(w->scope, 0));
  on(c, WORKER);
  weir_edge_t x = weir_const_floats(w->scope, WEIR_DIMS(4), (float[]){0, 1, 2, 3});
  weir_edge_t y = weir_const_floats(w->scope, WEIR_DIMS(4), (float[]){1, 3, 5, 7});
  weir_edge_t error = OP(w, "Sub", OP(w, "AddV2", OP(w, "Mul", r.a, x), r.b), y);
  r.loss = OP(w, "L2Loss", error);
  weir_edge_t variables[] = {r.a, r.b}, gradients[2];
  check_ok(weir_gradients(w->scope, &r.loss, 1, variables, 2, NULL, gradients));
  check_scope(w);
  on(c, NULL);
  r.train = add(w, "NoOp", "train", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  for (int i = 0; i < 2; ++i) {
    weir_node_t* apply = add(w, "ResourceApplyGradientDescent", NULL,
                             WEIR_EDGES(weir_variable_handle(variables[i]),
                                        weir_const_float(w->scope, 0.05f), gradients[i]),
                             WEIR_NO_ATTRS);
    check_ok(weir_graph_add_control(r.train, apply));
  }
  r.init = weir_initializer(w->scope);
  check_scope(w);
  return r;
}

static void test_training_equals_one_process(void** state) {
  enum { STEPS = 60 };
  cluster_t* c = *state;
  regression_t r = add_regression(c);
  weir_session_t *local = open_local(c), *remote = connect_client(c);
  assert_int_equal(weir_session_device_peak_bytes(remote), 0);  // its devices are not here
  check_ok(weir_session_run_target(local, r.init));
  check_ok(weir_session_run_target(remote, r.init));
  float first = fetch_float(remote, r.loss);
  for (int i = 0; i < STEPS; ++i) {
    check_ok(weir_session_run_target(local, r.train));
    check_ok(weir_session_run_target(remote, r.train));
    assert_float_equal(fetch_float(remote, r.loss), fetch_float(local, r.loss), 0);
  }
  assert_true(fetch_float(remote, r.loss) < first / 100);
  assert_float_equal(fetch_float(remote, r.a), fetch_float(local, r.a), 0);
  assert_float_equal(fetch_float(remote, r.b), fetch_float(local, r.b), 0);
  weir_session_destroy(local);
}

// The graph grows between runs: the master is told.
static void test_graph_grows(void** state) {
  cluster_t* c = *state;
  world_t* w = on(c, PS0);
  weir_edge_t x = weir_const_float(w->scope, 2);
  weir_session_t* session = connect_client(c);
  assert_float_equal(fetch_float(session, x), 2, 0);
  on(c, PS1);
  weir_edge_t y = OP(w, "Neg", x);
  on(c, NULL);
  assert_float_equal(fetch_float(session, y), -2, 0);
}

// A master finds nodes by their names: what another graph calls the same is not what was meant.
static void test_another_graph(void** state) {
  cluster_t* c = *state;
  weir_graph_t* graph = NULL;
  weir_callable_t* callable = NULL;
  float value = 0;
  check_ok(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  weir_edge_t foreign = weir_const_float(weir_scope_name(s, "x"), 1);
  check_ok(weir_scope_finish(s));
  weir_edge_t own = weir_const_float(weir_scope_name(c->world.scope, "x"), 2);
  weir_session_t* session = connect_client(c);
  assert_float_equal(fetch_float(session, own), 2, 0);
  check_error(weir_session_fetch_float(session, foreign, &value), WEIR_INVALID_ARGUMENT,
              "fetch 0 is 'x:0' of another graph");
  check_error(weir_session_run_target(session, foreign.node), WEIR_INVALID_ARGUMENT,
              "target 0 is 'x' of another graph");
  check_error(weir_callable_create(session, &(weir_step_spec_t){WEIR_FETCHES(foreign)}, &callable),
              WEIR_INVALID_ARGUMENT, "fetch 0 is 'x:0' of another graph");
  weir_graph_release(graph);
}

// Isolated sessions share nothing, neither on the master nor on another task.
static void test_isolated_state(void** state) {
  static const char* const places[] = {WORKER, PS1};
  cluster_t* c = *state;
  world_t* w = &c->world;
  weir_edge_t variables[2];
  for (int i = 0; i < 2; ++i) {
    on(c, places[i]);
    variables[i] = weir_variable(w->scope, "isolated", weir_const_float(w->scope, 3));
  }
  on(c, NULL);
  weir_node_t* init = weir_initializer(w->scope);
  check_scope(w);
  weir_session_options_t options = {.target = c->target, .isolate_state = true};
  weir_session_t* other = NULL;
  check_ok(weir_session_create(w->graph, &options, &w->session));
  check_ok(weir_session_create(w->graph, &options, &other));
  check_ok(weir_session_run_target(w->session, init));
  for (int i = 0; i < 2; ++i) {
    weir_tensor_t* value = NULL;
    weir_step_spec_t spec = {WEIR_FETCHES(variables[i])};
    assert_float_equal(fetch_float(w->session, variables[i]), 3, 0);
    check_error(weir_session_run(other, &spec, &value), WEIR_FAILED_PRECONDITION, "isolated");
  }
  weir_session_destroy(other);
}

// ---- loops ----

// Each turn goes from ps 0 to ps 1 and back, the condition is on the worker.
static void test_loop_spans_tasks(void** state) {
  cluster_t* c = *state;
  world_t* w = &c->world;
  weir_edge_t count = placeholder(w, "count", WEIR_DTYPE_INT32);
  on(c, WORKER);
  loop_nodes_t loop =
      open_loop(w, "loop", weir_const_int(w->scope, 0), weir_const_float(w->scope, 0), count, 10);
  on(c, PS0);
  weir_edge_t more = OP(w, "AddV2", loop.x, OP(w, "Exp", loop.x));
  on(c, PS1);
  weir_edge_t less = OP(w, "Sub", more, OP(w, "Exp", loop.x));
  weir_edge_t whole = OP(w, "Sub", less, OP(w, "Neg", OP(w, "Cos", OP(w, "Mul", loop.x, less))));
  on(c, WORKER);
  close_loop(w, &loop, OP(w, "Minimum", whole, loop.x));
  on(c, NULL);
  weir_session_t *session = connect_client(c), *local = open_local(c);
  for (int turns = 0; turns < 40; turns = turns * 3 + 1) {
    weir_tensor_t *there, *here;
    check_ok(run_fed(session, count, make_int(turns), loop.exit_x, &there));
    check_ok(run_fed(local, count, make_int(turns), loop.exit_x, &here));
    assert_float_equal(float_of(there), float_of(here), 0);
    weir_tensor_release(there);
    weir_tensor_release(here);
  }
  weir_session_destroy(local);
}

// The gradient's loop is built without a device around a body that has one.
static void test_gradient_of_a_loop_elsewhere(void** state) {
  cluster_t* c = *state;
  world_t* w = on(c, PS0);
  weir_edge_t x = weir_const_float(w->scope, 0.75f), dx;
  loop_nodes_t loop =
      open_loop(w, "loop", weir_const_int(w->scope, 0), x, weir_const_int(w->scope, 4), 10);
  close_loop(w, &loop, OP(w, "Sin", loop.x));
  on(c, NULL);
  check_ok(weir_gradients(w->scope, &loop.exit_x, 1, &x, 1, NULL, &dx));
  check_scope(w);
  weir_session_t *session = connect_client(c), *local = open_local(c);
  assert_float_equal(fetch_float(session, dx), fetch_float(local, dx), 0);
  weir_session_destroy(local);
}

// ---- errors ----

static void test_error_of_a_remote_part(void** state) {
  cluster_t* c = *state;
  world_t* w = &c->world;
  weir_edge_t divisor = placeholder(w, "divisor", WEIR_DTYPE_INT32);
  on(c, PS1);
  weir_edge_t quotient =
      output(add(w, "FloorDiv", "quotient", WEIR_EDGES(weir_const_int(w->scope, 6), divisor),
                 WEIR_NO_ATTRS),
             0);
  on(c, PS0);
  weir_edge_t result = OP(w, "Neg", quotient);
  on(c, NULL);
  weir_session_t* session = connect_client(c);
  for (int i = 0; i < 10; ++i) {
    weir_tensor_t* value;
    weir_status_t* status = run_fed(session, divisor, make_int(i % 3), result, &value);
    if (i % 3 == 0) {
      assert_non_null(status);
      assert_non_null(strstr(weir_status_message(status), "From /job:ps/replica:0/task:1"));
      check_error(status, WEIR_INVALID_ARGUMENT, "{{node quotient}}");
    } else {
      check_ok(status);
      assert_int_equal(int_of(value), -6 / (i % 3));
    }
    weir_tensor_release(value);
  }
}

static void test_device_that_nobody_has(void** state) {
  cluster_t* c = *state;
  world_t* w = on(c, "/job:ps/task:7");
  weir_edge_t x = OP(w, "Neg", placeholder(w, "x", WEIR_DTYPE_FLOAT));
  on(c, NULL);
  weir_tensor_t* value;
  check_error(run_fed(connect_client(c), x.node->inputs[0], make_float(1), x, &value),
              WEIR_INVALID_ARGUMENT, "task:7");
}

static void test_no_server(void** state) {
  cluster_t* c = *state;
  weir_edge_t x = weir_const_float(c->world.scope, 1);
  weir_session_t* session = connect_client(c);
  float value = 0;
  check_error(weir_session_fetch_float(session, x, &value), WEIR_UNAVAILABLE, "");
}

// A cluster of which one task never starts: the client waits no longer than it says.
static void test_absent_peer(void** state) {
  cluster_t* c = *state;
  start_server(c, MASTER);
  weir_edge_t x = weir_const_float(c->world.scope, 1);
  weir_session_t* session = connect_client(c);
  runner_t late = {.session = session, .fetch = x, .steps = 1, .options = {.timeout_ms = 50}};
  runner_start(&late);
  check_error(runner_join(&late), WEIR_DEADLINE_EXCEEDED, "");
  runner_t waiting = {.session = session, .fetch = x, .steps = 1};
  runner_start(&waiting);
  start_server(c, 0);
  start_server(c, 1);
  check_ok(runner_join(&waiting));
  assert_float_equal(waiting.sum, 1, 0);
}

// A server that waits for a peer in vain stops all the same.
static void test_stop_while_a_peer_is_absent(void** state) {
  cluster_t* c = *state;
  start_server(c, MASTER);
  weir_edge_t x = weir_const_float(c->world.scope, 1);
  runner_t waiting = {.session = connect_client(c), .fetch = x, .steps = 1};
  runner_start(&waiting);
  usleep(20000);  // likely, but not necessarily, in CreateSession by then
  stop_server(c, MASTER);
  expect_failure(&waiting);
}

// ---- cancellation ----

static void test_blocked_dequeue_is_cancelled(void** state) {
  cluster_t* c = *state;
  blocked_t b = add_blocked(c, PS0);
  weir_session_t* session = connect_client(c);
  for (int i = 0; i < 5; ++i) {
    weir_cancellation_t* cancellation = NULL;
    check_ok(weir_cancellation_create(&cancellation));
    runner_t runner;
    start_blocked(session, &b, cancellation, &runner, 1);
    weir_cancellation_cancel(cancellation);
    check_error(runner_join(&runner), WEIR_CANCELLED, "");
    weir_cancellation_destroy(cancellation);
  }
}

static void test_session_cancel_and_timeout(void** state) {
  cluster_t* c = *state;
  blocked_t b = add_blocked(c, PS1);
  weir_session_t* session = connect_client(c);
  runner_t runners[3];
  start_blocked(session, &b, NULL, runners, 3);
  weir_session_cancel(session);
  for (int i = 0; i < 3; ++i) check_error(runner_join(&runners[i]), WEIR_CANCELLED, "");
  runner_t late = {
      .session = session, .fetch = b.result, .steps = 1, .options = {.timeout_ms = 50}};
  runner_start(&late);
  check_error(runner_join(&late), WEIR_DEADLINE_EXCEEDED, "");
}

// ---- servers that end ----

static void test_peer_stops_while_steps_run(void** state) {
  cluster_t* c = *state;
  blocked_t b = add_blocked(c, PS0);
  weir_session_t* session = connect_client(c);
  runner_t runners[4];
  start_blocked(session, &b, NULL, runners, 4);
  stop_server(c, 0);
  for (int i = 0; i < 4; ++i) expect_failure(&runners[i]);
  fetch_float(session, weir_const_float(c->world.scope, 1));  // what needs it not goes on
}

static void test_master_stops_while_steps_run(void** state) {
  cluster_t* c = *state;
  blocked_t b = add_blocked(c, PS0);
  weir_session_t* session = connect_client(c);
  runner_t runners[4];
  start_blocked(session, &b, NULL, runners, 4);
  stop_server(c, MASTER);
  for (int i = 0; i < 4; ++i) expect_failure(&runners[i]);
}

// A server that restarts has lost its part of the session; a new session has it again.
static void test_peer_restarts(void** state) {
  cluster_t* c = *state;
  world_t* w = on(c, PS0);
  weir_edge_t x = OP(w, "Neg", placeholder(w, "x", WEIR_DTYPE_FLOAT));
  on(c, NULL);
  weir_session_t* session = connect_client(c);
  assert_float_equal(feed_float(session, x.node->inputs[0], 1, x), -1, 0);
  stop_server(c, 0);
  start_server(c, 0);
  weir_code_t code = WEIR_OK;
  for (int i = 0; i < 1500 && code != WEIR_ABORTED; ++i) {  // the channel notices, and reconnects
    weir_tensor_t* value;
    weir_status_t* status = run_fed(session, x.node->inputs[0], make_float(1), x, &value);
    code = weir_status_code(status);
    assert_true(code == WEIR_ABORTED || code == WEIR_UNAVAILABLE);
    weir_status_destroy(status);
    usleep(20000);
  }
  assert_int_equal(code, WEIR_ABORTED);
  weir_session_destroy(session);
  session = connect_client(c);
  assert_float_equal(feed_float(session, x.node->inputs[0], 1, x), -1, 0);
}

// Serves in a process of its own until it is killed.
static void spawn_server(cluster_t* c, int i) {
  int ready[2];
  assert_int_equal(pipe(ready), 0);
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    weir_server_options_t options = {
        .cluster = c->description, .job = "ps", .task = i, .threads = 1};
    weir_server_t* server = NULL;
    weir_status_t* status = weir_server_create(&options, &server);
    if (status || write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte;
  c->children[i] = pid;
  close(ready[1]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
}

static void test_peer_dies_mid_step(void** state) {
  cluster_t* c = *state;
  spawn_server(c, 0);  // before there are threads here
  start_server(c, 1);
  start_server(c, MASTER);
  blocked_t b = add_blocked(c, PS0);
  weir_session_t* session = connect_client(c);
  runner_t runners[4];
  start_blocked(session, &b, NULL, runners, 4);
  kill(c->children[0], SIGKILL);
  for (int i = 0; i < 4; ++i) check_error(runner_join(&runners[i]), WEIR_UNAVAILABLE, "");
}

// ---- many steps at once ----

static void test_concurrent_steps(void** state) {
  enum { THREADS = 8, STEPS = 25 };
  cluster_t* c = *state;
  world_t* w = on(c, PS0);
  weir_edge_t a = weir_variable(w->scope, "a", weir_const_float(w->scope, 0));
  weir_node_t* bump =
      add(w, "AssignAddVariableOp", NULL,
          WEIR_EDGES(weir_variable_handle(a), weir_const_float(w->scope, 1)), WEIR_NO_ATTRS);
  on(c, PS1);
  weir_edge_t b = weir_variable(w->scope, "b", weir_const_float(w->scope, 3));
  weir_edge_t half = OP(w, "Mul", b, weir_const_float(w->scope, 0.5f));
  on(c, WORKER);
  weir_edge_t sum = OP(w, "AddV2", half, b);
  on(c, NULL);
  weir_node_t* init = weir_initializer(w->scope);
  weir_session_t* session = connect_client(c);
  check_ok(weir_session_run_target(session, init));
  runner_t runners[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    runners[i] = (runner_t){.session = session, .fetch = sum, .target = bump, .steps = STEPS};
    runner_start(&runners[i]);
  }
  for (int i = 0; i < THREADS; ++i) {
    check_ok(runner_join(&runners[i]));
    assert_float_equal(runners[i].sum, STEPS * 4.5f, 0);
  }
  assert_float_equal(fetch_float(session, a), THREADS * STEPS, 0);
}

// Producers and consumers of a queue on another task, with more steps blocked than it has threads.
static void test_queue_between_clients(void** state) {
  enum { PAIRS = 6, STEPS = 20 };
  cluster_t* c = *state;
  world_t* w = on(c, PS1);
  queue_nodes_t q = add_queue(w, "q", 2);
  weir_node_t* put = add(w, "QueueEnqueueV2", NULL,
                         WEIR_EDGES(q.handle, weir_const_float(w->scope, 1)), WEIR_NO_ATTRS);
  on(c, NULL);
  weir_session_t* session = connect_client(c);
  runner_t runners[2 * PAIRS];
  for (int i = 0; i < 2 * PAIRS; ++i) {
    runners[i] = (runner_t){.session = session, .steps = STEPS};
    if (i % 2) runners[i].target = put;
    else runners[i].fetch = q.value;
    runner_start(&runners[i]);
  }
  for (int i = 0; i < 2 * PAIRS; ++i) check_ok(runner_join(&runners[i]));
}

// ---- no memory ----

// A step that has parts on two tasks, while the n-th allocation from now on fails.
static weir_code_t run_without(weir_session_t* session, weir_edge_t feed, weir_edge_t fetch,
                               int64_t n, float* out_value) {
  weir_tensor_t *result = NULL, *fed = make_float(2);
  weir_run_options_t options = {.timeout_ms = 20000};
  weir_step_spec_t spec = {WEIR_FEEDS({feed, fed}), WEIR_FETCHES(fetch)};
  weir_alloc_fail_at(n, false);
  weir_status_t* status = weir_session_run_with(session, &spec, &options, &result, NULL, NULL);
  weir_alloc_fail_at(0, false);
  weir_code_t code = weir_status_code(status);
  bool is_expected = code == WEIR_OK || code == WEIR_RESOURCE_EXHAUSTED || code == WEIR_UNAVAILABLE;
  if (!is_expected) print_error("%lld: %s\n", (long long)n, weir_status_message(status));
  assert_true(is_expected);
  if (!status) *out_value = float_of(result);
  weir_tensor_release(fed);
  weir_tensor_release(result);
  weir_status_destroy(status);
  return code;
}

// Whichever allocation fails, of client, master or worker, the step ends soon, and the next works.
static void test_out_of_memory(void** state) {
  cluster_t* c = *state;
  world_t* w = on(c, PS0);
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = OP(w, "Neg", x);
  on(c, WORKER);
  weir_edge_t z = OP(w, "Square", y);
  on(c, NULL);
  weir_session_t* session = connect_client(c);
  float value = 0;
  int failed = 0;
  for (int64_t n = 0; n < 150; ++n) {
    weir_code_t code = run_without(session, x, z, n, &value);
    if (code == WEIR_OK) assert_float_equal(value, 4, 0);
    failed += code != WEIR_OK;
    assert_int_equal(run_without(session, x, z, 0, &value), WEIR_OK);
  }
  assert_true(failed > 10);
}

// The same of a session's first step, for which the master makes its own session and asks tasks for
// their devices.
static void test_out_of_memory_at_first(void** state) {
  cluster_t* c = *state;
  world_t* w = on(c, PS0);
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  on(c, WORKER);
  weir_edge_t y = OP(w, "Square", x);
  on(c, NULL);
  weir_session_options_t options = {.target = c->target};
  int failed = 0, worked = 0;
  for (int64_t n = 1; worked < 30; ++n) {
    weir_session_t* session = NULL;
    float value = 0;
    check_ok(weir_session_create(w->graph, &options, &session));
    weir_code_t code = run_without(session, x, y, n, &value);
    for (int i = 0; i < 250 && run_without(session, x, y, 0, &value) != WEIR_OK; ++i)
      usleep(20000);  // a connection that could not be made is not tried again at once
    assert_float_equal(value, 4, 0);
    weir_session_destroy(session);
    failed += code != WEIR_OK;
    worked = code == WEIR_OK ? worked + 1 : 0;
  }
  assert_true(failed > 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_ALONE(name) cmocka_unit_test_setup_teardown(name, set_up_graph, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST_ALONE(test_peer_dies_mid_step),
      TEST(test_training_equals_one_process),
      TEST(test_graph_grows),
      TEST(test_another_graph),
      TEST(test_isolated_state),
      TEST(test_loop_spans_tasks),
      TEST(test_gradient_of_a_loop_elsewhere),
      TEST(test_error_of_a_remote_part),
      TEST(test_device_that_nobody_has),
      TEST_ALONE(test_no_server),
      TEST_ALONE(test_absent_peer),
      TEST_ALONE(test_stop_while_a_peer_is_absent),
      TEST(test_blocked_dequeue_is_cancelled),
      TEST(test_session_cancel_and_timeout),
      TEST(test_peer_stops_while_steps_run),
      TEST(test_master_stops_while_steps_run),
      TEST(test_peer_restarts),
      TEST(test_concurrent_steps),
      TEST(test_queue_between_clients),
      TEST(test_out_of_memory),
      TEST(test_out_of_memory_at_first),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
