// rpc_test.c — Calls between our own server and channel: messages, errors, cancellation, deadlines,
// connections that come and go, shutdown.
#include "rpc/rpc.h"

#include "base/memory.h"
#include "rpc/rpc_testing.h"

// ---- messages ----
static void expect_echo(weir_rpc_channel_t* channel, const char* path, size_t size) {
  char* data = weir_malloc(size);
  assert_non_null(data);
  for (size_t i = 0; i < size; ++i) data[i] = (char)(i * 7 + i / 251);
  weir_rpc_message_t* message = weir_rpc_message_create();
  // Three segments: copied, referred to, referred to.
  weir_rpc_message_append(message, data, size / 3);
  weir_rpc_message_append_ref(message, data + size / 3, size / 2, NULL, NULL);
  size_t done = size / 3 + size / 2;
  weir_rpc_message_append_ref(message, data + done, size - done, NULL, NULL);
  assert_int_equal(weir_rpc_message_size(message), size);
  weir_rpc_buffer_t* response = NULL;
  assert_null(weir_rpc_channel_call(channel, path, message, NULL, &response));
  weir_view_t view = weir_rpc_buffer_view(response);
  assert_int_equal(view.size, size);
  assert_true(size == 0 || memcmp(view.data, data, size) == 0);
  assert_int_equal((uintptr_t)view.data % 64, 0);
  weir_rpc_buffer_release(response);
  weir_free(data);
}

static void check_transport(const char* address, int thread_count) {
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){.thread_count = thread_count});
  world_serve(&world, (weir_rpc_server_options_t){.address = address});
  weir_rpc_channel_options_t options = {.address = weir_rpc_server_address(world.server)};
  if (!address) options.server = world.server;
  weir_rpc_channel_t* channel = NULL;
  assert_null(weir_rpc_channel_create(world.loop, &options, &channel));
  const size_t large = ((size_t)64 << 20) / WEIR_TEST_STRIDE;
  const size_t sizes[] = {0, 1, 100, 16384, 262139, 262140, 300000, 5000000, large};
  for (size_t i = 0; i < WEIR_COUNT_OF(sizes); ++i) {
    expect_echo(channel, "/weir.Test/Echo", sizes[i]);
    expect_echo(channel, "/weir.Test/PoolEcho", sizes[i] / 2);
  }
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

static void test_tcp(void** state) {
  (void)state;
  check_transport("127.0.0.1:0", 1);
  check_transport(":0", 2);
}

static void test_unix(void** state) {
  (void)state;
  char address[64];
  snprintf(address, sizeof(address), "unix:/tmp/weir_rpc_test.%d", (int)getpid());
  check_transport(address, 1);
  assert_int_equal(access(address + 5, F_OK), -1);  // the server removed it
}

static void test_in_process(void** state) {
  (void)state;
  check_transport(NULL, 2);
}

static void test_names(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){.address = "127.0.0.1:0"});
  assert_true(weir_rpc_server_port(world.server) > 0);
  char address[64];
  snprintf(address, sizeof(address), "grpc://localhost:%d", weir_rpc_server_port(world.server));
  weir_rpc_channel_t* channel = channel_to(world.loop, address);
  expect_call(channel, "/weir.Test/Echo", "x", NULL, WEIR_OK, "x");
  weir_rpc_channel_destroy(channel);
  channel = channel_to(world.loop, "no-such-host.invalid:1");
  expect_call(channel, "/weir.Test/Echo", "x", NULL, WEIR_UNAVAILABLE, "no-such-host.invalid");
  weir_rpc_channel_destroy(channel);
  const char* bad[] = {"", "host", "host:", "host:x", "host:70000", "::1:5", "unix:", NULL};
  for (int i = 0; bad[i]; ++i) {
    weir_rpc_channel_options_t options = {.address = bad[i]};
    weir_status_t* status = weir_rpc_channel_create(world.loop, &options, &channel);
    assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
    weir_status_destroy(status);
  }
  // A port that is taken.
  weir_rpc_server_options_t options = {.address = weir_rpc_server_address(world.server)};
  weir_rpc_server_t* second = NULL;
  weir_status_t* status = weir_rpc_server_create(world.loop, &options, test_methods, &second);
  assert_int_equal(weir_status_code(status), WEIR_UNAVAILABLE);
  weir_status_destroy(status);
  world_close(&world);
}

// ---- errors ----
static void test_errors(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){.address = ":0"});
  weir_rpc_channel_t* channel = channel_to(world.loop, weir_rpc_server_address(world.server));
  for (int code = 1; code <= 16; ++code) {
    char text[64];
    snprintf(text, sizeof(text), "%d 100%% wrong:\n\xc3\xa4\xe2\x82\xac \x01 end", code);
    outcome_t outcome;
    outcome_start(&outcome, channel, "/weir.Test/Fail", text, NULL, NULL);
    assert_true(event_wait(&outcome.event, 1));
    assert_int_equal(outcome.details_size, 9);
    assert_memory_equal(outcome.details, "\0\1details", 9);
    assert_string_equal(weir_status_message(outcome.status), strchr(text, ' ') + 1);
    outcome_expect(&outcome, (weir_code_t)code, NULL);
  }
  expect_call(channel, "/weir.Test/Fail", "0 ", NULL, WEIR_OK, "");
  expect_call(channel, "/weir.Test/Nothing", "", NULL, WEIR_UNIMPLEMENTED, "/weir.Test/Nothing");
  // Long messages are cut, and what is left is whole characters.
  char text[6000] = "3 ";
  for (size_t i = 2; i + 2 < sizeof(text); i += 2) memcpy(text + i, "\xc3\xa4", 3);
  outcome_t outcome;
  outcome_start(&outcome, channel, "/weir.Test/Fail", text, NULL, NULL);
  assert_true(event_wait(&outcome.event, 1));
  assert_int_equal(strlen(weir_status_message(outcome.status)), 2048);
  outcome_expect(&outcome, WEIR_INVALID_ARGUMENT, NULL);
  // Refused metadata does not harm the connection.
  weir_rpc_metadata_t metadata[] = {{"Upper", "x"}, {0}};
  weir_rpc_call_options_t options = {.metadata = metadata};
  expect_call(channel, "/weir.Test/Echo", "", &options, WEIR_INVALID_ARGUMENT, "Upper");
  expect_call(channel, "/weir.Test/Echo", "on", NULL, WEIR_OK, "on");
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

static void test_description(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){.address = ":0"});
  weir_rpc_channel_t* channel = channel_to(world.loop, weir_rpc_server_address(world.server));
  weir_rpc_metadata_t metadata[20] = {{"x-first", "1"}, {"x-test", "some value"}, {"x-last", ""}};
  for (int i = 3; i < 19; ++i) metadata[i] = (weir_rpc_metadata_t){"x-more", "y"};
  weir_rpc_call_options_t options = {.deadline_ns = from_now_ms(5500000), .metadata = metadata};
  outcome_t outcome;
  outcome_start(&outcome, channel, "/weir.Test/Describe", "", &options, NULL);
  assert_true(event_wait(&outcome.event, 1));
  assert_null(outcome.status);
  char text[512];
  snprintf(text, sizeof(text), "%.*s", WEIR_VIEW_ARG(weir_rpc_buffer_view(outcome.message)));
  assert_true(strstr(text, "/weir.Test/Describe|127.0.0.1:") == text);
  assert_non_null(strstr(text, "|some value|54"));  // the seconds left, give or take some
  outcome_expect(&outcome, WEIR_OK, NULL);
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

// ---- many at once ----
static void test_concurrent(void** state) {
  (void)state;
  enum { COUNT = 200 };
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){.thread_count = 2});
  world_serve(&world, (weir_rpc_server_options_t){.address = ":0"});
  weir_rpc_channel_t* channel = channel_to(world.loop, weir_rpc_server_address(world.server));
  outcome_t* outcomes = weir_calloc(COUNT, sizeof(*outcomes));
  assert_non_null(outcomes);
  weir_rpc_call_options_t options = {.pool = world.pool};
  for (int i = 0; i < COUNT; ++i) {
    char text[32];
    snprintf(text, sizeof(text), "call %d", i);
    outcome_start(&outcomes[i], channel, "/weir.Test/Hold", text, i % 2 ? &options : NULL, NULL);
  }
  assert_true(event_wait(&world.held, COUNT));
  for (int i = COUNT - 1; i >= 0; --i) serve_echo(NULL, world.calls[i]);
  for (int i = 0; i < COUNT; ++i) {
    char text[32];
    snprintf(text, sizeof(text), "call %d", i);
    outcome_expect(&outcomes[i], WEIR_OK, text);
  }
  assert_int_equal(world.cancelled.count, 0);
  weir_free(outcomes);
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

// A connection takes no more memory for the calls that it had.
static void test_ended_calls_leave_nothing(void** state) {
  (void)state;
  enum { COUNT = 1000, SLACK = 64 << 10 };
  size_t allocated[3];
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){.thread_count = 1});
  world_serve(&world, (weir_rpc_server_options_t){.address = ":0"});
  weir_rpc_channel_t* channel = channel_to(world.loop, weir_rpc_server_address(world.server));
  for (size_t i = 0; i < WEIR_COUNT_OF(allocated); ++i) {
    for (int k = 0; k < COUNT; ++k)
      expect_call(channel, "/weir.Test/Echo", "x", NULL, WEIR_OK, "x");
    allocated[i] = weir_memory_allocated();
  }
  assert_true(allocated[2] < allocated[0] + SLACK);
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

static void test_memory_budget(void** state) {
  (void)state;
  enum { COUNT = 8 };
  world_t world;
  world_open(&world,
             (weir_rpc_loop_options_t){.thread_count = 2, .memory_budget = (uint64_t)3 << 20});
  world_serve(&world, (weir_rpc_server_options_t){.address = ":0"});
  weir_rpc_channel_t* channels[2];
  for (int i = 0; i < 2; ++i)
    channels[i] = channel_to(world.loop, weir_rpc_server_address(world.server));
  char* text = weir_malloc(((size_t)4 << 20) + 1);
  assert_non_null(text);
  memset(text, 'x', (size_t)4 << 20);
  text[(size_t)4 << 20] = '\0';
  // Requests of 2 MiB take turns.
  outcome_t outcomes[COUNT];
  char* half = text + ((size_t)2 << 20);
  for (int i = 0; i < COUNT; ++i)
    outcome_start(&outcomes[i], channels[i % 2], "/weir.Test/Echo", half, NULL, NULL);
  for (int i = 0; i < COUNT; ++i) outcome_expect(&outcomes[i], WEIR_OK, half);
  expect_call(channels[0], "/weir.Test/Echo", text, NULL, WEIR_RESOURCE_EXHAUSTED, "4194304 bytes");
  expect_call(channels[0], "/weir.Test/Echo", half, NULL, WEIR_OK, half);
  weir_free(text);
  for (int i = 0; i < 2; ++i) weir_rpc_channel_destroy(channels[i]);
  world_close(&world);
}

// ---- cancellation and deadlines ----
static void test_cancel(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){.address = ":0"});
  weir_rpc_channel_t* channel = channel_to(world.loop, weir_rpc_server_address(world.server));
  outcome_t outcome;
  weir_rpc_request_t* request = NULL;
  outcome_start(&outcome, channel, "/weir.Test/Hold", "", NULL, &request);
  assert_true(event_wait(&world.held, 1));
  assert_false(weir_rpc_call_is_cancelled(world.calls[0]));
  weir_rpc_request_cancel(request);
  weir_rpc_request_cancel(request);
  outcome_expect(&outcome, WEIR_CANCELLED, NULL);
  assert_true(event_wait(&world.cancelled, 1));
  assert_true(weir_rpc_call_is_cancelled(world.calls[0]));
  // Registering late calls at once.
  weir_rpc_call_on_cancel(world.calls[0], count_cancel, &world);
  assert_int_equal(world.cancelled.count, 2);
  serve_echo(NULL, world.calls[0]);
  weir_rpc_request_cancel(request);  // ended: nothing happens
  weir_rpc_request_release(request);
  expect_call(channel, "/weir.Test/Echo", "on", NULL, WEIR_OK, "on");
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

static void test_deadline(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){.address = ":0"});
  weir_rpc_channel_t* channel = channel_to(world.loop, weir_rpc_server_address(world.server));
  expect_call(channel, "/weir.Test/Echo", "on", NULL, WEIR_OK, "on");
  weir_rpc_call_options_t options = {.deadline_ns = from_now_ms(1500)};
  expect_call(channel, "/weir.Test/Hold", "", &options, WEIR_DEADLINE_EXCEEDED, NULL);
  assert_true(event_wait(&world.held, 1));
  assert_true(event_wait(&world.cancelled, 1));
  serve_echo(NULL, world.calls[0]);
  options.deadline_ns = 1;  // long past
  expect_call(channel, "/weir.Test/Echo", "", &options, WEIR_DEADLINE_EXCEEDED, NULL);
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

// ---- connections that come and go ----
static void test_unavailable(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){0});
  // The port must be nobody's while the server is away: that of a loopback address of our own.
  char address[64];
  snprintf(address, sizeof(address), "127.%d.%d.%d:0", 1 + (int)getpid() / 62500 % 250,
           1 + (int)getpid() / 250 % 250, 1 + (int)getpid() % 250);
  world_serve(&world, (weir_rpc_server_options_t){.address = address});
  snprintf(address, sizeof(address), "%s", weir_rpc_server_address(world.server));
  weir_rpc_channel_t* channel = channel_to(world.loop, address);
  expect_call(channel, "/weir.Test/Echo", "on", NULL, WEIR_OK, "on");
  outcome_t pending;
  outcome_start(&pending, channel, "/weir.Test/Hold", "", NULL, NULL);
  assert_true(event_wait(&world.held, 1));
  // The server goes with a call pending: the call is cancelled there and unavailable here.
  weir_rpc_server_shutdown(world.server, 0);
  outcome_expect(&pending, WEIR_UNAVAILABLE, NULL);
  assert_true(event_wait(&world.cancelled, 1));
  serve_echo(NULL, world.calls[0]);
  weir_rpc_server_destroy(world.server);
  expect_call(channel, "/weir.Test/Echo", "", NULL, WEIR_UNAVAILABLE, address);
  weir_rpc_call_options_t options = {.deadline_ns = from_now_ms(1000), .wait_for_ready = true};
  expect_call(channel, "/weir.Test/Echo", "", &options, WEIR_DEADLINE_EXCEEDED, "cannot connect");
  // One that waits sees the next server.
  outcome_t patient;
  options.deadline_ns = 0;
  outcome_start(&patient, channel, "/weir.Test/Echo", "again", &options, NULL);
  world_serve(&world, (weir_rpc_server_options_t){.address = address});
  outcome_expect(&patient, WEIR_OK, "again");
  expect_call(channel, "/weir.Test/Echo", "on", NULL, WEIR_OK, "on");
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

static void test_channel_destroy(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){.address = ":0"});
  weir_rpc_channel_t* channel = channel_to(world.loop, weir_rpc_server_address(world.server));
  outcome_t pending, queued;
  outcome_start(&pending, channel, "/weir.Test/Hold", "", NULL, NULL);
  assert_true(event_wait(&world.held, 1));
  weir_rpc_channel_t* nowhere = channel_to(world.loop, "127.0.0.1:1");
  weir_rpc_call_options_t options = {.wait_for_ready = true};
  outcome_start(&queued, nowhere, "/weir.Test/Echo", "", &options, NULL);
  weir_rpc_channel_destroy(channel);
  weir_rpc_channel_destroy(nowhere);
  assert_int_equal(pending.event.count, 1);
  assert_int_equal(queued.event.count, 1);
  outcome_expect(&pending, WEIR_CANCELLED, NULL);
  outcome_expect(&queued, WEIR_CANCELLED, NULL);
  assert_true(event_wait(&world.cancelled, 1));
  serve_echo(NULL, world.calls[0]);
  world_close(&world);
}

// A channel whose peer is nowhere yet, then at one address, then at another: by number and by name.
static void test_channel_moves(void** state) {
  (void)state;
  world_t one, other;
  world_open(&one, (weir_rpc_loop_options_t){0});
  world_open(&other, (weir_rpc_loop_options_t){0});
  world_serve(&one, (weir_rpc_server_options_t){.address = ":0"});
  world_serve(&other, (weir_rpc_server_options_t){.address = ":0"});
  weir_rpc_channel_t* channel = channel_to(one.loop, NULL);
  expect_call(channel, "/weir.Test/Echo", "", NULL, WEIR_UNAVAILABLE, "nobody has told it yet");
  outcome_t patient, pending, again;
  weir_rpc_call_options_t options = {.wait_for_ready = true};
  outcome_start(&patient, channel, "/weir.Test/Echo", "there", &options, NULL);
  assert_null(weir_rpc_channel_move(channel, weir_rpc_server_address(one.server)));
  outcome_expect(&patient, WEIR_OK, "there");
  outcome_start(&pending, channel, "/weir.Test/Hold", "", NULL, NULL);
  assert_true(event_wait(&one.held, 1));
  assert_null(weir_rpc_channel_move(channel, weir_rpc_server_address(other.server)));
  outcome_expect(&pending, WEIR_UNAVAILABLE, "the peer has moved to 127.0.0.1:");
  outcome_start(&again, channel, "/weir.Test/Hold", "kept", NULL, NULL);
  assert_true(event_wait(&other.held, 1));
  serve_echo(NULL, other.calls[0]);
  outcome_expect(&again, WEIR_OK, "kept");
  weir_status_t* status = weir_rpc_channel_move(channel, "nowhere");
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
  status = weir_rpc_channel_move(channel, "grpc+tls://h:1");
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
  char name[64];
  for (int i = 0; i < 50; ++i) {  // while names are looked up
    world_t* world = i % 2 ? &one : &other;
    snprintf(name, sizeof(name), "localhost:%d", weir_rpc_server_port(world->server));
    assert_null(weir_rpc_channel_move(channel, name));
    if (i % 3 == 0) outcome_start(&patient, channel, "/weir.Test/Echo", "on", &options, NULL);
    assert_null(weir_rpc_channel_move(channel, weir_rpc_server_address(world->server)));
    if (i % 3 != 0) continue;
    assert_true(event_wait(&patient.event, 1));  // it may have been under way to the first
    const weir_code_t code = weir_status_code(patient.status);
    assert_true(code == WEIR_OK || code == WEIR_UNAVAILABLE);
    outcome_expect(&patient, code, NULL);
  }
  expect_call(channel, "/weir.Test/Echo", "on", NULL, WEIR_OK, "on");
  serve_echo(NULL, one.calls[0]);
  weir_rpc_channel_destroy(channel);
  world_close(&one);
  world_close(&other);
}

static void* answer_later(void* arg) {
  world_t* world = arg;
  usleep(50000);
  serve_echo(NULL, world->calls[0]);
  return NULL;
}

static void test_shutdown(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){.thread_count = 2});
  world_serve(&world, (weir_rpc_server_options_t){.address = ":0"});
  weir_rpc_channel_t* channel = channel_to(world.loop, weir_rpc_server_address(world.server));
  weir_rpc_channel_t* idle = channel_to(world.loop, weir_rpc_server_address(world.server));
  expect_call(idle, "/weir.Test/Echo", "", NULL, WEIR_OK, "");
  outcome_t pending;
  outcome_start(&pending, channel, "/weir.Test/Hold", "kept", NULL, NULL);
  assert_true(event_wait(&world.held, 1));
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, answer_later, &world), 0);
  weir_rpc_server_shutdown(world.server, 60000);  // ends as soon as the call has
  outcome_expect(&pending, WEIR_OK, "kept");
  pthread_join(thread, NULL);
  assert_int_equal(world.cancelled.count, 0);
  expect_call(channel, "/weir.Test/Echo", "", NULL, WEIR_UNAVAILABLE, NULL);
  weir_rpc_server_shutdown(world.server, 60000);  // again: nothing to do
  weir_rpc_channel_destroy(channel);
  weir_rpc_channel_destroy(idle);
  world_close(&world);
}

// ---- health ----
static void test_health(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){.address = ":0"});
  weir_rpc_channel_t* channel = channel_to(world.loop, weir_rpc_server_address(world.server));
  const char* path = "/grpc.health.v1.Health/Check";
  expect_call(channel, path, "", NULL, WEIR_OK, "\x08\x01");
  expect_call(channel, path, "\x0a\x09weir.Test", NULL, WEIR_OK, "\x08\x01");
  expect_call(channel, path, "\x0a\x04none", NULL, WEIR_NOT_FOUND, "none");
  expect_call(channel, path, "\x0a\x7f", NULL, WEIR_INVALID_ARGUMENT, "HealthCheckRequest");
  expect_call(channel, "/grpc.health.v1.Health/Watch", "", NULL, WEIR_UNIMPLEMENTED, NULL);
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

static void test_keepalive(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){.spin_us = 20});
  world_serve(&world, (weir_rpc_server_options_t){.address = ":0", .keepalive_ms = 1000});
  weir_rpc_channel_options_t options = {.address = weir_rpc_server_address(world.server),
                                        .keepalive_ms = 800};
  weir_rpc_channel_t* channel = NULL;
  assert_null(weir_rpc_channel_create(world.loop, &options, &channel));
  outcome_t outcome;
  outcome_start(&outcome, channel, "/weir.Test/Hold", "idle", NULL, NULL);
  assert_true(event_wait(&world.held, 1));
  usleep(3000000);  // both sides answer pings: the connection lives
  serve_echo(NULL, world.calls[0]);
  outcome_expect(&outcome, WEIR_OK, "idle");
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tcp),
      cmocka_unit_test(test_unix),
      cmocka_unit_test(test_in_process),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_errors),
      cmocka_unit_test(test_description),
      cmocka_unit_test(test_ended_calls_leave_nothing),
      cmocka_unit_test(test_concurrent),
      cmocka_unit_test(test_memory_budget),
      cmocka_unit_test(test_cancel),
      cmocka_unit_test(test_deadline),
      cmocka_unit_test(test_unavailable),
      cmocka_unit_test(test_channel_destroy),
      cmocka_unit_test(test_channel_moves),
      cmocka_unit_test(test_shutdown),
      cmocka_unit_test(test_health),
      cmocka_unit_test(test_keepalive),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
