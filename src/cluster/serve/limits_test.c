// limits_test.c — What peers and clients can make a server keep: receivers of steps that never
// come, sessions that nobody closes, sizes that are lies. All of it is bounded, and the server goes
// on.
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cluster/master/master_internal.h"
#include "cluster/serve/serving.h"
#include "cluster/worker/worker_internal.h"
#include "testing/tensors.h"

#define MASTER "/tensorflow.MasterService/"
#define WORKER "/tensorflow.WorkerService/"

typedef struct server_t {
  weir_serving_t* serving;
  weir_task_t* task;
  weir_rpc_loop_t* loop;
  weir_rpc_channel_t* channel;
  char address[96];
} server_t;

static void socket_of(int task, char out_address[96]) {
  snprintf(out_address, 96, "unix:/tmp/weir_limits_test.%d.%d", (int)getpid(), task);
}

// Task |task| of a cluster of |count|.
static weir_serving_t* start_serving(int task, int count) {
  weir_serving_params_t params = {.task = {.job = "localhost", .index = task, .threads = 2}};
  weir_serving_t* serving = NULL;
  for (int i = 0; i < count; ++i) {
    char address[96];
    socket_of(i, address);
    check_ok(weir_cluster_spec_add(&params.task.spec, weir_view_of("localhost"), i,
                                   weir_view_of(address)));
  }
  check_ok(weir_serving_start(&params, &serving));
  return serving;
}

static int set_up_cluster(void** state, int count) {
  server_t* s = calloc(1, sizeof(*s));
  socket_of(0, s->address);
  s->serving = start_serving(0, count);
  s->task = weir_serving_task(s->serving);
  s->task->runtime->devices[0]->incarnation = 1;  // what the keys of the tests have
  check_ok(weir_rpc_loop_create(NULL, &s->loop));
  weir_rpc_channel_options_t options = {.address = s->address};
  check_ok(weir_rpc_channel_create(s->loop, &options, &s->channel));
  *state = s;
  return 0;
}
static int set_up(void** state) { return set_up_cluster(state, 1); }
static int set_up_two(void** state) { return set_up_cluster(state, 2); }

static int tear_down(void** state) {
  server_t* s = *state;
  weir_rpc_channel_destroy(s->channel);
  weir_rpc_loop_destroy(s->loop);
  weir_serving_stop(s->serving, 0);
  unlink(s->address + strlen("unix:"));
  free(s);
  return 0;
}

static weir_status_t* call(server_t* s, const char* method, weir_strbuf_t* take_request,
                           weir_rpc_buffer_t** out_response) {
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append_strbuf(message, take_request);
  weir_rpc_call_options_t options = {.deadline_ns = weir_clock_ns() + INT64_C(60000000000)};
  return weir_rpc_channel_call(s->channel, method, message, &options, out_response);
}

// As call, for answers that say nothing.
static weir_status_t* tell(server_t* s, const char* method, weir_strbuf_t* take_request) {
  weir_rpc_buffer_t* response = NULL;
  weir_status_t* status = call(s, method, take_request, &response);
  weir_rpc_buffer_release(response);
  return status;
}

// As call, for answers whose first field is a handle.
static weir_status_t* get_handle(server_t* s, const char* method, weir_strbuf_t* take_request,
                                 char out_handle[64]) {
  weir_rpc_buffer_t* response = NULL;
  weir_status_t* status = call(s, method, take_request, &response);
  weir_wire_reader_t reader = weir_wire_reader(weir_rpc_buffer_view(response));
  while (!status && weir_wire_next(&reader)) {
    if (reader.field == 1) snprintf(out_handle, 64, "%.*s", WEIR_VIEW_ARG(reader.bytes));
  }
  weir_rpc_buffer_release(response);
  return status;
}

static void put_graph(weir_strbuf_t* request, uint32_t field, const char* text) {
  weir_graph_t* graph = NULL;
  check_ok(weir_graph_create(&graph));
  check_ok(weir_graph_import_text(graph, text, strlen(text), NULL));
  size_t def = weir_wire_begin(request, field);
  check_ok(weir_graph_write(graph, request));
  weir_wire_end(request, def);
  weir_graph_release(graph);
}

static void create_session_of(server_t* s, const char* text, char out_handle[64]) {
  weir_strbuf_t request = {0};
  put_graph(&request, 1, text);
  check_ok(get_handle(s, MASTER "CreateSession", &request, out_handle));
}
static void create_session(server_t* s, char out_handle[64]) {
  create_session_of(s, "", out_handle);
}

static weir_status_t* list_devices(server_t* s, const char* handle) {
  weir_strbuf_t request = {0};
  weir_wire_put_string(&request, 1, handle);
  return tell(s, MASTER "ListDevices", &request);
}

static size_t count_locked(weir_mutex_t* mu, const weir_map_t* map) {
  weir_mutex_lock(mu);
  size_t count = map->count;
  weir_mutex_unlock(mu);
  return count;
}

// ---- steps that never come ----

typedef struct flood_t {
  weir_mutex_t mu;
  weir_cond_t cond;
  int ended, refused;  // guarded by mu
} flood_t;

static void note_end(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  flood_t* flood = self;
  weir_mutex_lock(&flood->mu);
  ++flood->ended;
  if (weir_status_code(take_status) == WEIR_RESOURCE_EXHAUSTED) ++flood->refused;
  weir_cond_broadcast(&flood->cond);
  weir_mutex_unlock(&flood->mu);
  weir_status_destroy(take_status);
  weir_rpc_buffer_release(take_message);
}

static bool wait_for_refusals(flood_t* flood, int count) {
  int64_t deadline = weir_clock_ns() + INT64_C(60000000000);
  weir_mutex_lock(&flood->mu);
  while (flood->refused < count && weir_cond_wait_until(&flood->cond, &flood->mu, deadline)) {
  }
  bool has_come = flood->refused >= count;
  weir_mutex_unlock(&flood->mu);
  return has_come;
}

static void test_receivers_of_unknown_steps(void** state) {
  enum { CHANNELS = 2, CALLS = 5500, LIMIT = 10000 };
  server_t* s = *state;
  flood_t flood = {.ended = 0};
  weir_mutex_init(&flood.mu);
  weir_cond_init(&flood.cond);
  weir_rpc_channel_t* channels[CHANNELS] = {NULL};
  for (int k = 0; k < CHANNELS; ++k) {
    weir_rpc_channel_options_t options = {.address = s->address};
    check_ok(weir_rpc_channel_create(s->loop, &options, &channels[k]));
    for (int i = 0; i < CALLS; ++i) {
      weir_strbuf_t request = {0};
      weir_wire_put_int(&request, 1, k * CALLS + i + 1);
      weir_wire_put_string(&request, 2, "/job:localhost/task:0;1;/job:localhost/task:0;edge;0:0");
      weir_rpc_message_t* message = weir_rpc_message_create();
      weir_rpc_message_append_strbuf(message, &request);
      weir_rpc_channel_call_async(channels[k], WORKER "RecvTensor", message, NULL, note_end, &flood,
                                  NULL);
    }
  }
  assert_true(wait_for_refusals(&flood, CHANNELS * CALLS - LIMIT));
  assert_int_equal(count_locked(&s->task->mu, &s->task->steps), LIMIT);
  char handle[64] = "";
  create_session(s, handle);  // others are served meanwhile
  check_ok(list_devices(s, handle));
  for (int k = 0; k < CHANNELS; ++k) weir_rpc_channel_destroy(channels[k]);
  assert_int_equal(flood.ended, CHANNELS * CALLS);
  for (int i = 0; i < 3000 && count_locked(&s->task->mu, &s->task->steps); ++i) usleep(10000);
  assert_int_equal(count_locked(&s->task->mu, &s->task->steps), 0);
  assert_int_equal(s->task->unknown_step_count, 0);
  weir_cond_destroy(&flood.cond);
  weir_mutex_destroy(&flood.mu);
}

// A step that waits for a tensor that nobody sends.
static void register_waiting_graph(server_t* s, char out_handle[64]) {
  static const char text[] =
      "node {name: 'r' op: '_Recv' attr {key: 'tensor_type' value {type: DT_FLOAT}}"
      " attr {key: 'tensor_name' value {s: 'never'}}"
      " attr {key: 'send_device' value {s: '/job:localhost/replica:0/task:0/device:CPU:0'}}"
      " attr {key: 'recv_device' value {s: '/job:localhost/replica:0/task:0/device:CPU:0'}}"
      " attr {key: 'send_device_incarnation' value {i: 1}}"
      " attr {key: 'client_terminated' value {b: false}}}";
  weir_strbuf_t request = {0};
  put_graph(&request, 2, text);
  check_ok(get_handle(s, WORKER "RegisterGraph", &request, out_handle));
}

static bool wait_for_steps(server_t* s, size_t count) {
  for (int i = 0; i < 3000 && count_locked(&s->task->mu, &s->task->steps) != count; ++i)
    usleep(10000);
  return count_locked(&s->task->mu, &s->task->steps) == count;
}

// A master that dies in the middle of its steps leaves none of them behind.
static void test_steps_of_a_master_that_died(void** state) {
  enum { STEPS = 200 };
  server_t* s = *state;
  char handle[64] = "";
  flood_t flood = {.ended = 0};
  weir_mutex_init(&flood.mu);
  weir_cond_init(&flood.cond);
  register_waiting_graph(s, handle);
  weir_rpc_channel_t* channel = NULL;
  weir_rpc_channel_options_t options = {.address = s->address};
  check_ok(weir_rpc_channel_create(s->loop, &options, &channel));
  for (int i = 0; i < STEPS; ++i) {
    weir_strbuf_t request = {0};
    weir_wire_put_string(&request, 1, handle);
    weir_wire_put_int(&request, 2, i + 1);
    weir_rpc_message_t* message = weir_rpc_message_create();
    weir_rpc_message_append_strbuf(message, &request);
    weir_rpc_channel_call_async(channel, WORKER "RunGraph", message, NULL, note_end, &flood, NULL);
  }
  assert_true(wait_for_steps(s, STEPS));
  weir_rpc_channel_destroy(channel);
  assert_int_equal(flood.ended, STEPS);
  assert_true(wait_for_steps(s, 0));
  assert_int_equal(s->task->unknown_step_count, 0);
  weir_cond_destroy(&flood.cond);
  weir_mutex_destroy(&flood.mu);
}

// ---- sessions nobody closes ----

static void test_abandoned_sessions(void** state) {
  enum { SESSIONS = 1100, LIMIT = 1024 };
  server_t* s = *state;
  char used[64] = "", idle[64] = "", last[64] = "";
  create_session(s, used);
  create_session(s, idle);
  for (int i = 0; i < SESSIONS; ++i) {
    create_session(s, last);
    check_ok(list_devices(s, used));
  }
  weir_master_t* master = s->task->master;
  assert_int_equal(count_locked(&master->mu, &master->sessions), LIMIT);
  check_error(list_devices(s, idle), WEIR_INVALID_ARGUMENT, "is not found");
  check_ok(list_devices(s, last));
}

// A client that comes back to a session which made room, or whose server has restarted.
static void test_sessions_that_are_gone(void** state) {
  static const char* const methods[] = {MASTER "RunStep",         MASTER "ExtendSession",
                                        MASTER "PartialRunSetup", MASTER "MakeCallable",
                                        MASTER "RunCallable",     MASTER "ReleaseCallable",
                                        MASTER "CloseSession"};
  server_t* s = *state;
  for (size_t i = 0; i < WEIR_COUNT_OF(methods); ++i) {
    weir_strbuf_t request = {0};
    weir_wire_put_string(&request, 1, "gone");  // the session's handle
    check_error(tell(s, methods[i], &request), WEIR_ABORTED, "Session gone is not found");
  }
}

static weir_status_t* create_worker_session(server_t* s, const char* handle, const char* master,
                                            int64_t incarnation) {
  weir_strbuf_t request = {0};
  weir_wire_put_string(&request, 1, handle);
  weir_wire_put_string(&request, 5, master);
  weir_wire_put_int(&request, 6, incarnation);
  return tell(s, WORKER "CreateWorkerSession", &request);
}

static weir_status_t* register_nothing(server_t* s, const char* handle) {
  weir_strbuf_t request = {0};
  weir_wire_put_string(&request, 1, handle);
  weir_wire_put_bool(&request, 6, true);
  return tell(s, WORKER "RegisterGraph", &request);
}

// A master that has restarted knows nothing of its sessions: the worker drops them.
static void test_sessions_of_a_masters_earlier_life(void** state) {
  server_t* s = *state;
  const weir_worker_t* worker = s->task->worker;
  weir_mutex_t* mu = &s->task->worker->mu;
  check_ok(create_worker_session(s, "a", "/job:m/replica:0/task:0", 1));
  check_ok(create_worker_session(s, "b", "/job:m/replica:0/task:0", 1));
  check_ok(create_worker_session(s, "c", "/job:m/replica:0/task:1", 1));
  assert_int_equal(count_locked(mu, &worker->sessions), 3);
  check_ok(create_worker_session(s, "d", "/job:m/replica:0/task:0", 2));
  assert_int_equal(count_locked(mu, &worker->sessions), 2);
  check_error(register_nothing(s, "a"), WEIR_ABORTED, "Session handle is not found: a");
  check_error(register_nothing(s, "b"), WEIR_ABORTED, "Session handle is not found: b");
  check_ok(create_worker_session(s, "e", "", 7));  // says not who it is: nobody's place
  check_ok(create_worker_session(s, "f", "", 8));
  assert_int_equal(count_locked(mu, &worker->sessions), 4);
}

static void test_abandoned_worker_sessions(void** state) {
  enum { SESSIONS = 4200, LIMIT = 4096 };
  server_t* s = *state;
  char handle[32];
  for (int i = 0; i < SESSIONS; ++i) {
    snprintf(handle, sizeof(handle), "session %d", i);
    check_ok(create_worker_session(s, handle, "/job:m/replica:0/task:0", 1));
  }
  assert_int_equal(count_locked(&s->task->worker->mu, &s->task->worker->sessions), LIMIT);
  check_error(register_nothing(s, "session 0"), WEIR_ABORTED, "Session handle is not found");
}

// ---- what a session keeps ----

static weir_master_session_t* session_of(server_t* s, const char* handle) {
  weir_master_session_t* session = NULL;
  check_ok(weir_master_find(s->task->master, weir_view_of(handle), &session));
  weir_master_session_release(session);  // the table keeps it
  return session;
}

static weir_status_t* fetch(server_t* s, const char* handle, const char* name) {
  weir_strbuf_t request = {0};
  weir_wire_put_string(&request, 1, handle);
  weir_wire_put_string(&request, 3, name);
  return tell(s, MASTER "RunStep", &request);
}

// Of the value |name|; NULL: of the target 'n'.
static weir_status_t* make_callable(server_t* s, const char* handle, const char* name) {
  weir_strbuf_t request = {0};
  weir_wire_put_string(&request, 1, handle);
  size_t options = weir_wire_begin(&request, 2);
  if (name) weir_wire_put_string(&request, 2, name);
  else weir_wire_put_string(&request, 3, "n");
  weir_wire_end(&request, options);
  return tell(s, MASTER "MakeCallable", &request);
}

static weir_status_t* run_callable(server_t* s, const char* handle, int64_t number) {
  weir_strbuf_t request = {0};
  weir_wire_put_string(&request, 1, handle);
  weir_wire_put_int(&request, 2, number);
  return tell(s, MASTER "RunCallable", &request);
}

// A client of many signatures: those used last stay ready, and so do those of callables.
static void test_signatures(void** state) {
  enum { SIGNATURES = 1100, LIMIT = 1000 };
  server_t* s = *state;
  char handle[64] = "", name[32];
  weir_strbuf_t text = {0};
  for (int i = 0; i < SIGNATURES; ++i)
    weir_strbuf_printf(&text,
                       "node {name: 'c%d' op: 'Const' attr {key: 'dtype' value {type: DT_INT32}}"
                       " attr {key: 'value' value {tensor {dtype: DT_INT32 tensor_shape {} "
                       "int_val: %d}}}}",
                       i, i);
  create_session_of(s, text.data, handle);
  weir_strbuf_free(&text);
  weir_master_session_t* session = session_of(s, handle);
  check_ok(make_callable(s, handle, "c0:0"));
  check_ok(fetch(s, handle, "c1:0"));
  weir_mutex_lock(&session->mu);
  size_t at = 0;
  weir_map_entry_t* first = weir_map_next(&session->runs.items, &at);
  const weir_master_run_t *called = first->value,
                          *used = weir_map_next(&session->runs.items, &at)->value;
  weir_mutex_unlock(&session->mu);
  for (int i = 2; i < SIGNATURES; ++i) {
    snprintf(name, sizeof(name), "c%d:0", i);
    check_ok(fetch(s, handle, name));
    check_ok(fetch(s, handle, "c1:0"));
  }
  assert_int_equal(count_locked(&session->mu, &session->runs.items), LIMIT);
  bool has_called = false, has_used = false;
  weir_mutex_lock(&session->mu);
  for (at = 0; (first = weir_map_next(&session->runs.items, &at));) {
    has_called |= first->value == called;
    has_used |= first->value == used;
  }
  weir_mutex_unlock(&session->mu);
  assert_false(has_called);
  assert_true(has_used);
  check_ok(run_callable(s, handle, 0));  // holds its own
  check_ok(fetch(s, handle, "c2:0"));    // is made anew
  assert_int_equal(count_locked(&session->mu, &session->runs.items), LIMIT);
}

// What made room is gone from the other tasks, too.
static void test_signatures_of_a_peer(void** state) {
  enum { SIGNATURES = 1010, LIMIT = 1000 };
  server_t* s = *state;
  char handle[64] = "", name[32], address[96];
  weir_serving_t* peer = start_serving(1, 2);
  weir_worker_t* worker = weir_serving_task(peer)->worker;
  weir_strbuf_t text = {0};
  weir_strbuf_puts(&text,
                   "node {name: 'shape' op: 'Const' attr {key: 'dtype' value {type: DT_INT32}}"
                   " attr {key: 'value' value {tensor {dtype: DT_INT32 tensor_shape {dim {size: 0}}"
                   "}}}}");
  for (int i = 0; i < SIGNATURES; ++i)
    weir_strbuf_printf(&text,
                       "node {name: 'r%d' op: 'RandomUniform' input: 'shape' device: '/task:1'"
                       " attr {key: 'T' value {type: DT_INT32}}"
                       " attr {key: 'dtype' value {type: DT_FLOAT}}}",
                       i);
  create_session_of(s, text.data, handle);
  weir_strbuf_free(&text);
  for (int i = 0; i < SIGNATURES; ++i) {
    snprintf(name, sizeof(name), "r%d:0", i);
    check_ok(fetch(s, handle, name));
  }
  const worker_session_t* session = weir_map_find(&worker->sessions, weir_view_of(handle));
  assert_non_null(session);
  for (int i = 0; i < 3000 && count_locked(&worker->mu, &session->graphs) != LIMIT; ++i)
    usleep(10000);
  assert_int_equal(count_locked(&worker->mu, &session->graphs), LIMIT);
  weir_serving_stop(peer, 0);
  socket_of(1, address);
  unlink(address + strlen("unix:"));
}

static void test_callables(void** state) {
  enum { LIMIT = 4096 };
  server_t* s = *state;
  char handle[64] = "";
  create_session_of(s, "node {name: 'n' op: 'NoOp'}", handle);
  for (int i = 0; i < LIMIT; ++i) check_ok(make_callable(s, handle, NULL));
  check_error(make_callable(s, handle, NULL), WEIR_RESOURCE_EXHAUSTED, "4096 callables");
  check_ok(run_callable(s, handle, LIMIT - 1));
}

static weir_status_t* set_up_partial(server_t* s, const char* handle, char out_partial[64]) {
  weir_strbuf_t request = {0};
  weir_wire_put_string(&request, 1, handle);
  weir_wire_put_string(&request, 2, "x:0");
  weir_wire_put_string(&request, 3, "y:0");
  return get_handle(s, MASTER "PartialRunSetup", &request, out_partial);
}

static weir_status_t* finish_partial(server_t* s, const char* handle, const char* partial) {
  weir_strbuf_t request = {0};
  weir_wire_put_string(&request, 1, handle);
  size_t feed = weir_wire_begin(&request, 2);
  weir_wire_put_string(&request, 1, "x:0");
  size_t tensor = weir_wire_begin(&request, 2);
  weir_wire_put_int(&request, 1, WEIR_DTYPE_INT32);
  size_t shape = weir_wire_begin(&request, 2);
  weir_wire_end(&request, shape);
  weir_wire_put_int(&request, 7, 5);
  weir_wire_end(&request, tensor);
  weir_wire_end(&request, feed);
  weir_wire_put_string(&request, 3, "y:0");
  weir_wire_put_string(&request, 6, partial);
  return tell(s, MASTER "RunStep", &request);
}

// Partial runs that nobody finishes: a new one has room when an old one is through.
static void test_partial_runs(void** state) {
  enum { LIMIT = 1000 };
  static const char text[] =
      "node {name: 'x' op: 'Placeholder' attr {key: 'dtype' value {type: DT_INT32}}}"
      "node {name: 'y' op: 'Neg' input: 'x' attr {key: 'T' value {type: DT_INT32}}}";
  server_t* s = *state;
  char handle[64] = "", partials[LIMIT][64], more[64] = "";
  create_session_of(s, text, handle);
  weir_master_session_t* session = session_of(s, handle);
  for (int i = 0; i < LIMIT; ++i) check_ok(set_up_partial(s, handle, partials[i]));
  check_error(set_up_partial(s, handle, more), WEIR_RESOURCE_EXHAUSTED, "1000 partial runs");
  assert_int_equal(count_locked(&session->mu, &session->partials), LIMIT);
  check_ok(finish_partial(s, handle, partials[3]));
  check_ok(set_up_partial(s, handle, more));
  check_error(set_up_partial(s, handle, partials[3]), WEIR_RESOURCE_EXHAUSTED, "");
  check_ok(finish_partial(s, handle, more));
  check_ok(finish_partial(s, handle, partials[LIMIT - 1]));
}

// ---- requests that wait ----

// A JobDef of one task.
static void put_job(weir_strbuf_t* out, const char* name, const char* address) {
  size_t job = weir_wire_begin(out, 1);
  weir_wire_put_string(out, 1, name);
  size_t entry = weir_wire_begin(out, 2);
  weir_wire_put_string(out, 2, address);
  weir_wire_end(out, entry);
  weir_wire_end(out, job);
}

// Many sessions wait for a peer that is not there; others are served, and the server can stop.
static void test_waiting_requests(void** state) {
  enum { COUNT = 60 };
  server_t* s = *state;
  flood_t flood = {.ended = 0};
  weir_mutex_init(&flood.mu);
  weir_cond_init(&flood.cond);
  weir_rpc_channel_t* channel = NULL;
  weir_rpc_channel_options_t options = {.address = s->address};
  check_ok(weir_rpc_channel_create(s->loop, &options, &channel));
  for (int i = 0; i < COUNT; ++i) {
    weir_strbuf_t request = {0};
    size_t config = weir_wire_begin(&request, 2), cluster = weir_wire_begin(&request, 14);
    put_job(&request, "absent", "unix:/tmp/weir_limits_test.absent");
    put_job(&request, "present", s->address);
    weir_wire_end(&request, cluster);
    weir_wire_end(&request, config);
    weir_wire_put_string(&request, 3, s->address);
    weir_rpc_message_t* message = weir_rpc_message_create();
    weir_rpc_message_append_strbuf(message, &request);
    weir_rpc_channel_call_async(channel, MASTER "CreateSession", message, NULL, note_end, &flood,
                                NULL);
  }
  char handle[64] = "";
  create_session(s, handle);
  check_ok(list_devices(s, handle));
  weir_mutex_lock(&flood.mu);
  assert_int_equal(flood.ended, 0);
  weir_mutex_unlock(&flood.mu);
  weir_serving_stop(s->serving, 0);
  s->serving = NULL;
  weir_rpc_channel_destroy(channel);
  assert_int_equal(flood.ended, COUNT);
  weir_cond_destroy(&flood.cond);
  weir_mutex_destroy(&flood.mu);
}

// ---- sizes that are lies ----

// A tensor of terabytes in a few bytes: its shape says so, one value stands for all.
static void put_huge_tensor(weir_strbuf_t* out, uint32_t field) {
  size_t tensor = weir_wire_begin(out, field);
  weir_wire_put_int(out, 1, WEIR_DTYPE_FLOAT);
  size_t shape = weir_wire_begin(out, 2);
  for (int i = 0; i < 2; ++i) {
    size_t dim = weir_wire_begin(out, 2);
    weir_wire_put_int(out, 1, 1 << 22);
    weir_wire_end(out, dim);
  }
  weir_wire_end(out, shape);
  weir_wire_put_bytes(out, 5, "abcd", 4);  // float_val, packed
  weir_wire_end(out, tensor);
}

static void test_huge_tensor(void** state) {
  server_t* s = *state;
  char handle[64] = "";
  create_session(s, handle);
  weir_strbuf_t request = {0};
  weir_wire_put_string(&request, 1, handle);
  size_t feed = weir_wire_begin(&request, 2);
  weir_wire_put_string(&request, 1, "x:0");
  put_huge_tensor(&request, 2);
  weir_wire_end(&request, feed);
  check_error(tell(s, MASTER "RunStep", &request), WEIR_RESOURCE_EXHAUSTED, "x:0");
  put_huge_tensor(&request, 3);
  weir_status_t* status = tell(s, MASTER "RunCallable", &request);
  assert_non_null(status);
  weir_status_destroy(status);
}

// Every method gets requests whose fields claim more bytes than there are.
static void test_lengths_beyond_the_end(void** state) {
  server_t* s = *state;
  static const char* const bodies[] = {"\x0a\xff\xff\xff\xff\x0f",
                                       "\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                       "\x1a\x05hi",
                                       "\x0a",
                                       "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                                       "\xff\xff\xff"};
  const weir_rpc_method_t* const tables[] = {weir_master_methods, weir_worker_methods};
  for (size_t t = 0; t < WEIR_COUNT_OF(tables); ++t) {
    for (const weir_rpc_method_t* m = tables[t]; m->path; ++m) {
      bool is_read = !strstr(m->path, "GetStatus") && !strstr(m->path, "Logging") &&
                     !strstr(m->path, "Tracing") && !strstr(m->path, "UcxAddress");
      for (size_t i = 0; i < WEIR_COUNT_OF(bodies) && is_read; ++i) {
        weir_strbuf_t request = {0};
        weir_strbuf_puts(&request, bodies[i]);
        check_error(tell(s, m->path, &request), WEIR_INVALID_ARGUMENT, "malformed");
      }
    }
  }
  char handle[64] = "";
  create_session(s, handle);
  check_ok(list_devices(s, handle));
}

// The same within the messages that a request holds.
static void test_lengths_beyond_the_end_of_a_field(void** state) {
  server_t* s = *state;
  static const struct {
    const char* path;
    uint32_t field;
    bool has_session;  // field 1 is a session's handle
  } fields[] = {{MASTER "CreateSession", 1, false}, {MASTER "CreateSession", 2, false},
                {MASTER "ExtendSession", 2, true},  {MASTER "RunStep", 2, true},
                {MASTER "RunStep", 5, true},        {MASTER "MakeCallable", 2, true},
                {MASTER "RunCallable", 3, true},    {WORKER "CreateWorkerSession", 2, true},
                {WORKER "RegisterGraph", 2, false}, {WORKER "RunGraph", 5, false}};
  char handle[64] = "";
  create_session(s, handle);
  for (size_t i = 0; i < WEIR_COUNT_OF(fields); ++i) {
    weir_strbuf_t request = {0};
    if (fields[i].has_session) weir_wire_put_string(&request, 1, handle);
    weir_wire_put_bytes(&request, fields[i].field, "\x0a\x05hi", 4);
    weir_status_t* status = tell(s, fields[i].path, &request);
    if (weir_status_code(status) != WEIR_INVALID_ARGUMENT ||
        !strstr(weir_status_message(status), "malformed"))
      fail_msg("%s, field %u: %s", fields[i].path, fields[i].field, weir_status_message(status));
    weir_status_destroy(status);
  }
}

// Where nobody is there to end the process, no client ends it.
static void test_shutdown(void** state) {
  server_t* s = *state;
  weir_rpc_buffer_t* response = NULL;
  for (int i = 0; i < 2; ++i)
    check_error(call(s, WEIR_SHUTDOWN_PATH, &(weir_strbuf_t){0}, &response), WEIR_PERMISSION_DENIED,
                "not ended by clients");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_receivers_of_unknown_steps),
      TEST(test_steps_of_a_master_that_died),
      TEST(test_abandoned_sessions),
      TEST(test_sessions_that_are_gone),
      TEST(test_sessions_of_a_masters_earlier_life),
      TEST(test_abandoned_worker_sessions),
      TEST(test_signatures),
      cmocka_unit_test_setup_teardown(test_signatures_of_a_peer, set_up_two, tear_down),
      TEST(test_callables),
      TEST(test_partial_runs),
      TEST(test_waiting_requests),
      TEST(test_huge_tensor),
      TEST(test_lengths_beyond_the_end),
      TEST(test_lengths_beyond_the_end_of_a_field),
      TEST(test_shutdown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
