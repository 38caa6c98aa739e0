// rpc_testing.h — What the tests of this folder share: a server with a few methods, and calls that
// remember how they ended.
#ifndef WEIR_RPC_RPC_TESTING_H_
#define WEIR_RPC_RPC_TESTING_H_

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/details.h"
#include "rpc/rpc.h"
#include "testing/cmocka.h"

// ---- an event that threads wait for; never for ever ----
typedef struct event_t {
  weir_mutex_t mu;
  weir_cond_t cond;
  int count;
} event_t;

static inline void event_init(event_t* event) {
  weir_mutex_init(&event->mu);
  weir_cond_init(&event->cond);
  event->count = 0;
}
static inline void event_free(event_t* event) {
  weir_cond_destroy(&event->cond);
  weir_mutex_destroy(&event->mu);
}
static inline void event_signal(event_t* event) {
  weir_mutex_lock(&event->mu);
  ++event->count;
  weir_cond_broadcast(&event->cond);
  weir_mutex_unlock(&event->mu);
}
static inline bool event_wait(event_t* event, int count) {
  int64_t deadline_ns = weir_clock_ns() + (int64_t)60 * 1000000000;
  weir_mutex_lock(&event->mu);
  while (event->count < count && weir_cond_wait_until(&event->cond, &event->mu, deadline_ns)) {
  }
  bool has_come = event->count >= count;
  weir_mutex_unlock(&event->mu);
  return has_come;
}

// ---- the server ----
typedef struct world_t {
  weir_rpc_loop_t* loop;
  weir_rpc_server_t* server;
  weir_pool_t* pool;
  event_t held;       // counts calls that a handler keeps
  event_t cancelled;  // counts their cancellations
  weir_rpc_call_t* calls[256];
  int call_count;  // guarded by held.mu
} world_t;

static inline void serve_echo(void* self, weir_rpc_call_t* call) {
  (void)self;
  weir_rpc_buffer_t* request = weir_rpc_buffer_retain(weir_rpc_call_request(call));
  weir_view_t view = weir_rpc_buffer_view(request);
  weir_rpc_message_t* response = weir_rpc_message_create();
  weir_rpc_message_append_ref(response, view.data, view.size,
                              (weir_rpc_release_fn_t)weir_rpc_buffer_release, request);
  weir_rpc_call_respond(call, response);
}

static inline void count_cancel(void* arg) { event_signal(&((world_t*)arg)->cancelled); }

// Keeps the call for the test to answer.
static inline void serve_hold(void* self, weir_rpc_call_t* call) {
  world_t* world = self;
  weir_rpc_call_on_cancel(call, count_cancel, world);
  weir_mutex_lock(&world->held.mu);
  world->calls[world->call_count++] = call;
  weir_mutex_unlock(&world->held.mu);
  event_signal(&world->held);
}

// "CODE MESSAGE" as the request: fails so, with details "\0\1details".
static inline void serve_fail(void* self, weir_rpc_call_t* call) {
  (void)self;
  weir_view_t view = weir_rpc_buffer_view(weir_rpc_call_request(call));
  char text[8192];
  snprintf(text, sizeof(text), "%.*s", WEIR_VIEW_ARG(view));
  char* message = NULL;
  weir_code_t code = (weir_code_t)strtol(text, &message, 10);
  weir_status_t* status = weir_status_create(code, "", 0, "%s", message + 1);
  status = weir_status_with_details(status, weir_view("\0\1details", 9));
  weir_rpc_call_fail(call, status);
}

// Answers with what the call knows of itself.
static inline void serve_describe(void* self, weir_rpc_call_t* call) {
  (void)self;
  weir_view_t value = weir_view_of("none");
  weir_rpc_call_metadata(call, "x-test", &value);
  char text[512];
  int64_t deadline_ns = weir_rpc_call_deadline(call);
  snprintf(text, sizeof(text), "%s|%s|%.*s|%d", weir_rpc_call_path(call), weir_rpc_call_peer(call),
           WEIR_VIEW_ARG(value),
           deadline_ns == INT64_MAX ? -1 : (int)((deadline_ns - weir_clock_ns()) / 1000000000));
  weir_rpc_message_t* response = weir_rpc_message_create();
  weir_rpc_message_append(response, text, strlen(text));
  weir_rpc_call_respond(call, response);
}

static const weir_rpc_method_t test_methods[] = {
    {"/weir.Test/Echo", serve_echo, .is_inline = true},
    {"/weir.Test/PoolEcho", serve_echo, .is_inline = false},
    {"/weir.Test/Hold", serve_hold, .is_inline = true},
    {"/weir.Test/HoldStep", serve_hold, .is_inline = true, .is_step = true},
    {"/weir.Test/Fail", serve_fail, .is_inline = true},
    {"/weir.Test/Describe", serve_describe, .is_inline = true},
    {0}};

static inline void world_serve(world_t* world, weir_rpc_server_options_t options) {
  options.self = world;
  options.pool = world->pool;
  assert_null(weir_rpc_server_create(world->loop, &options, test_methods, &world->server));
}

static inline void world_open(world_t* world, weir_rpc_loop_options_t options) {
  memset(world, 0, sizeof(*world));
  event_init(&world->held);
  event_init(&world->cancelled);
  assert_null(weir_pool_create(3, &world->pool));
  assert_null(weir_rpc_loop_create(&options, &world->loop));
}

static inline void world_close(world_t* world) {
  weir_rpc_server_destroy(world->server);
  weir_rpc_loop_destroy(world->loop);
  weir_pool_destroy(world->pool);
  event_free(&world->held);
  event_free(&world->cancelled);
}

// ---- calls ----
typedef struct outcome_t {
  event_t event;
  weir_status_t* status;
  weir_rpc_buffer_t* message;
  char details[64];
  size_t details_size;
} outcome_t;

static inline void outcome_done(void* self, weir_status_t* take_status,
                                weir_rpc_buffer_t* take_message) {
  weir_view_t details = weir_status_details(take_status);
  outcome_t* outcome = self;
  outcome->status = take_status;
  outcome->message = take_message;
  outcome->details_size = WEIR_MIN(details.size, sizeof(outcome->details));
  if (details.size) memcpy(outcome->details, details.data, outcome->details_size);
  event_signal(&outcome->event);
}

static inline weir_rpc_message_t* message_of(const char* text) {
  weir_rpc_message_t* message = weir_rpc_message_create();
  weir_rpc_message_append(message, text, strlen(text));
  return message;
}

static inline void outcome_start(outcome_t* outcome, weir_rpc_channel_t* channel, const char* path,
                                 const char* text, const weir_rpc_call_options_t* options,
                                 weir_rpc_request_t** out_request) {
  memset(outcome, 0, sizeof(*outcome));
  event_init(&outcome->event);
  weir_rpc_channel_call_async(channel, path, message_of(text), options, outcome_done, outcome,
                              out_request);
}

// Waits, and checks the code; |text| (may be NULL) must be in the message or be the response.
static inline void outcome_expect(outcome_t* outcome, weir_code_t code, const char* text) {
  assert_true(event_wait(&outcome->event, 1));
  if (weir_status_code(outcome->status) != code)
    print_message("%s: %s\n", weir_code_name(weir_status_code(outcome->status)),
                  weir_status_message(outcome->status));
  assert_int_equal(weir_status_code(outcome->status), code);
  if (code == WEIR_OK && text) {
    weir_view_t view = weir_rpc_buffer_view(outcome->message);
    assert_int_equal(view.size, strlen(text));
    assert_memory_equal(view.data, text, view.size);
  } else if (text) {
    if (!strstr(weir_status_message(outcome->status), text))
      print_message("'%s' lacks '%s'\n", weir_status_message(outcome->status), text);
    assert_non_null(strstr(weir_status_message(outcome->status), text));
  }
  weir_status_destroy(outcome->status);
  weir_rpc_buffer_release(outcome->message);
  event_free(&outcome->event);
}

static inline void expect_call(weir_rpc_channel_t* channel, const char* path, const char* text,
                               const weir_rpc_call_options_t* options, weir_code_t code,
                               const char* answer) {
  outcome_t outcome;
  outcome_start(&outcome, channel, path, text, options, NULL);
  outcome_expect(&outcome, code, answer);
}

static inline weir_rpc_channel_t* channel_to(weir_rpc_loop_t* loop, const char* address) {
  weir_rpc_channel_options_t options = {.address = address};
  weir_rpc_channel_t* channel = NULL;
  assert_null(weir_rpc_channel_create(loop, &options, &channel));
  return channel;
}

static inline int64_t from_now_ms(int ms) { return weir_clock_ns() + ms * (int64_t)1000000; }

#endif  // WEIR_RPC_RPC_TESTING_H_
