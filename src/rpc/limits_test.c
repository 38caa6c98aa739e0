// limits_test.c — What a server takes at a time: connections, calls, steps, bytes of a message.
// More is RESOURCE_EXHAUSTED, and those who are served already notice nothing.
#include <sys/socket.h>

#include "rpc/address.h"
#include "rpc/rpc_testing.h"

static void open_with(world_t* world, weir_rpc_server_options_t options) {
  options.address = "127.0.0.1:0";
  world_open(world, (weir_rpc_loop_options_t){0});
  world_serve(world, options);
}

static weir_rpc_channel_t* connect_to(world_t* world) {
  return channel_to(world->loop, weir_rpc_server_address(world->server));
}

static void answer_all(world_t* world, int count) {
  assert_true(event_wait(&world->held, count));
  for (int i = 0; i < count; ++i) weir_rpc_call_respond(world->calls[i], weir_rpc_message_create());
}

static void test_calls(void** state) {
  (void)state;
  world_t world;
  open_with(&world, (weir_rpc_server_options_t){.max_calls = 3});
  weir_rpc_channel_t* channel = connect_to(&world);
  outcome_t held[3];
  for (int i = 0; i < 3; ++i) outcome_start(&held[i], channel, "/weir.Test/Hold", "", NULL, NULL);
  assert_true(event_wait(&world.held, 3));
  expect_call(channel, "/weir.Test/Echo", "x", NULL, WEIR_RESOURCE_EXHAUSTED, "--max-calls");
  answer_all(&world, 3);
  for (int i = 0; i < 3; ++i) outcome_expect(&held[i], WEIR_OK, "");
  expect_call(channel, "/weir.Test/Echo", "x", NULL, WEIR_OK, "x");
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

static void test_steps(void** state) {
  (void)state;
  world_t world;
  open_with(&world, (weir_rpc_server_options_t){.max_steps = 2});
  weir_rpc_channel_t* channel = connect_to(&world);
  outcome_t held[3];
  for (int i = 0; i < 2; ++i)
    outcome_start(&held[i], channel, "/weir.Test/HoldStep", "", NULL, NULL);
  outcome_start(&held[2], channel, "/weir.Test/Hold", "", NULL, NULL);  // is none
  assert_true(event_wait(&world.held, 3));
  expect_call(channel, "/weir.Test/HoldStep", "", NULL, WEIR_RESOURCE_EXHAUSTED, "--max-steps");
  expect_call(channel, "/weir.Test/Echo", "x", NULL, WEIR_OK, "x");
  answer_all(&world, 3);
  for (int i = 0; i < 3; ++i) outcome_expect(&held[i], WEIR_OK, "");
  outcome_start(&held[0], channel, "/weir.Test/HoldStep", "", NULL, NULL);
  assert_true(event_wait(&world.held, 4));
  weir_rpc_call_respond(world.calls[3], weir_rpc_message_create());
  outcome_expect(&held[0], WEIR_OK, "");
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

static void test_messages(void** state) {
  (void)state;
  world_t world;
  open_with(&world, (weir_rpc_server_options_t){.max_message_size = 5});
  weir_rpc_channel_t* channel = connect_to(&world);
  expect_call(channel, "/weir.Test/Echo", "12345", NULL, WEIR_OK, "12345");
  expect_call(channel, "/weir.Test/Echo", "123456", NULL, WEIR_RESOURCE_EXHAUSTED,
              "--max-message-size");
  expect_call(channel, "/weir.Test/Echo", "12345", NULL, WEIR_OK, "12345");
  weir_rpc_channel_destroy(channel);
  weir_rpc_channel_options_t options = {.address = weir_rpc_server_address(world.server),
                                        .max_message_size = 3};
  assert_null(weir_rpc_channel_create(world.loop, &options, &channel));
  expect_call(channel, "/weir.Test/Echo", "123", NULL, WEIR_OK, "123");
  expect_call(channel, "/weir.Test/Echo", "1234", NULL, WEIR_RESOURCE_EXHAUSTED,
              "--max-message-size");
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

static void test_connections(void** state) {
  (void)state;
  world_t world;
  open_with(&world, (weir_rpc_server_options_t){.max_connections = 2});
  weir_rpc_channel_t *first = connect_to(&world), *second = connect_to(&world);
  expect_call(first, "/weir.Test/Echo", "1", NULL, WEIR_OK, "1");
  expect_call(second, "/weir.Test/Echo", "2", NULL, WEIR_OK, "2");
  weir_rpc_channel_t* third = connect_to(&world);
  expect_call(third, "/weir.Test/Echo", "3", NULL, WEIR_RESOURCE_EXHAUSTED, "--max-connections");
  expect_call(first, "/weir.Test/Echo", "1", NULL, WEIR_OK, "1");
  weir_rpc_channel_destroy(second);
  // The server learns of the end a little later.
  int64_t deadline_ns = from_now_ms(60000);
  int connections = 2, calls = 0;
  while (connections > 1 && weir_clock_ns() < deadline_ns)
    weir_rpc_server_load(world.server, &connections, &calls);
  expect_call(third, "/weir.Test/Echo", "3", NULL, WEIR_OK, "3");
  weir_rpc_channel_destroy(third);
  weir_rpc_channel_destroy(first);
  world_close(&world);
}

// Hundreds that say nothing: the one that is served is, and all the others are closed.
static void test_flood_of_connections(void** state) {
  (void)state;
  enum { COUNT = 300 };
  world_t world;
  weir_rpc_address_t address;
  weir_rpc_target_t targets[WEIR_RPC_MAX_TARGETS];
  int fds[COUNT], count = 0, connections = 0, calls = 0;
  open_with(&world, (weir_rpc_server_options_t){.max_connections = 20});
  weir_rpc_channel_t* channel = connect_to(&world);
  expect_call(channel, "/weir.Test/Echo", "x", NULL, WEIR_OK, "x");
  assert_null(weir_rpc_address_parse(weir_rpc_server_address(world.server), &address));
  assert_null(weir_rpc_address_resolve(&address, false, targets, &count));
  for (int i = 0; i < COUNT; ++i) {
    assert_null(weir_rpc_connect(&targets[0], &fds[i]));
    if (i % 50 == 0) expect_call(channel, "/weir.Test/Echo", "x", NULL, WEIR_OK, "x");
  }
  expect_call(channel, "/weir.Test/Echo", "x", NULL, WEIR_OK, "x");
  weir_rpc_server_load(world.server, &connections, &calls);
  assert_true(connections <= 20 + 64);
  for (int i = 0; i < COUNT; ++i) close(fds[i]);
  expect_call(channel, "/weir.Test/Echo", "x", NULL, WEIR_OK, "x");
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

// One that is to be refused and does not even ask is closed after a while.
static void test_silent_surplus(void** state) {
  (void)state;
  world_t world;
  weir_rpc_address_t address;
  weir_rpc_target_t targets[WEIR_RPC_MAX_TARGETS];
  int fd = -1, count = 0;
  char byte;
  open_with(&world, (weir_rpc_server_options_t){.max_connections = 1});
  weir_rpc_channel_t* channel = connect_to(&world);
  expect_call(channel, "/weir.Test/Echo", "x", NULL, WEIR_OK, "x");
  assert_null(weir_rpc_address_parse(weir_rpc_server_address(world.server), &address));
  assert_null(weir_rpc_address_resolve(&address, false, targets, &count));
  assert_null(weir_rpc_connect(&targets[0], &fd));
  int64_t deadline_ns = from_now_ms(60000);
  int connections = 0, calls = 0;
  do {
    usleep(10000);
    weir_rpc_server_load(world.server, &connections, &calls);
  } while (connections != 2 && weir_clock_ns() < deadline_ns);
  while (connections > 1 && weir_clock_ns() < deadline_ns) {
    usleep(10000);
    weir_rpc_server_load(world.server, &connections, &calls);
  }
  assert_int_equal(connections, 1);
  while (recv(fd, &byte, 1, 0) > 0) continue;  // the server's settings, then the end
  close(fd);
  expect_call(channel, "/weir.Test/Echo", "x", NULL, WEIR_OK, "x");
  weir_rpc_channel_destroy(channel);
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls),
                                     cmocka_unit_test(test_steps),
                                     cmocka_unit_test(test_messages),
                                     cmocka_unit_test(test_connections),
                                     cmocka_unit_test(test_flood_of_connections),
                                     cmocka_unit_test(test_silent_surplus)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
