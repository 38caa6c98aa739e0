// token_test.c — Tokens: which files are good, which headers bear one, and who is served.
#include "rpc/token.h"

#include <sys/stat.h>

#include "rpc/rpc_testing.h"

#define TOKEN "0123456789abcdef-secret"

static weir_status_t* load(const char* content, size_t size, char** out_token) {
  char path[64];
  snprintf(path, sizeof(path), "/tmp/weir_token_%d", (int)getpid());
  FILE* file = fopen(path, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(content, 1, size, file), size);
  fclose(file);
  assert_int_equal(chmod(path, 0600), 0);
  weir_status_t* status = weir_rpc_token_load(path, out_token);
  unlink(path);
  return status;
}

static void expect_bad(const char* content, size_t size, const char* text) {
  char* token = NULL;
  weir_status_t* status = load(content, size, &token);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), text));
  assert_null(token);
  weir_status_destroy(status);
}

static void test_files(void** state) {
  (void)state;
  const char* good[] = {TOKEN, TOKEN "\n", " \t" TOKEN " \r\n\n"};
  for (size_t i = 0; i < WEIR_COUNT_OF(good); ++i) {
    char* token = NULL;
    assert_null(load(good[i], strlen(good[i]), &token));
    assert_string_equal(token, TOKEN);
    weir_rpc_token_free(token);
  }
  char large[4096];
  memset(large, 'x', sizeof(large));
  expect_bad("", 0, "0 letters");
  expect_bad("\n\n", 2, "0 letters");
  expect_bad("short", 5, "can be guessed");
  expect_bad("one line here 1\nanother line\n", 29, "more than one line");
  expect_bad("0123456789\0abcdef-secret", 24, "more than one line");
  expect_bad("0123456789\xc3\xa4-secret", 19, "visible ASCII");
  expect_bad(large, sizeof(large), "more than 1024");
  expect_bad(large, 1025, "more than 1024");
  char* token = NULL;
  weir_status_t* status = weir_rpc_token_load("/no/such/file", &token);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), "/no/such/file"));
  weir_status_destroy(status);
  status = weir_rpc_token_load("/", &token);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
}

static void test_headers(void** state) {
  (void)state;
  char* value = NULL;
  assert_null(weir_rpc_token_header(TOKEN, &value));
  assert_true(weir_rpc_token_is_in(TOKEN, weir_view_of(value)));
  weir_rpc_token_free(value);
  assert_true(weir_rpc_token_is_in(TOKEN, weir_view_of("bearer " TOKEN)));
  const char* bad[] = {"",
                       "Bearer",
                       "Bearer ",
                       TOKEN,
                       "Basic " TOKEN,
                       "Bearer " TOKEN "x",
                       "Bearer 0123456789abcdef-secreT",
                       "Bearer  " TOKEN};
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i)
    assert_false(weir_rpc_token_is_in(TOKEN, weir_view_of(bad[i])));
}

static void expect_with(world_t* world, const char* token, const char* path, weir_code_t code,
                        const char* text) {
  weir_rpc_channel_options_t options = {.address = weir_rpc_server_address(world->server),
                                        .token = token};
  weir_rpc_channel_t* channel = NULL;
  assert_null(weir_rpc_channel_create(world->loop, &options, &channel));
  expect_call(channel, path, "", NULL, code, text);
  weir_rpc_channel_destroy(channel);
}

static void test_calls(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){.address = "127.0.0.1:0", .token = TOKEN});
  const char* echo = "/weir.Test/Echo";
  expect_with(&world, TOKEN, echo, WEIR_OK, "");
  expect_with(&world, NULL, echo, WEIR_UNAUTHENTICATED, "bears no token");
  expect_with(&world, TOKEN "s", echo, WEIR_UNAUTHENTICATED, "another token");
  // Nor is anybody told which methods there are.
  expect_with(&world, NULL, "/weir.Test/None", WEIR_UNAUTHENTICATED, "bears no token");
  expect_with(&world, TOKEN, "/weir.Test/None", WEIR_UNIMPLEMENTED, "unknown method");
  expect_with(&world, NULL, "/grpc.health.v1.Health/Check", WEIR_OK, "\x08\x01");
  world_close(&world);
}

static bool is_left_alone(world_t* world) {
  int64_t deadline_ns = from_now_ms(60000);
  int connections = 1, calls = 0;
  while (connections > 0 && weir_clock_ns() < deadline_ns)
    weir_rpc_server_load(world->server, &connections, &calls);
  return connections == 0;
}

// Who does not show the token loses the connection; who does keeps it.
static void test_strangers(void** state) {
  (void)state;
  world_t world;
  weir_rpc_channel_t *stranger = NULL, *friend = NULL;
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){
                          .address = "127.0.0.1:0", .token = TOKEN, .greeting_ms = 200});
  const char* health = "/grpc.health.v1.Health/Check";
  stranger = channel_to(world.loop, weir_rpc_server_address(world.server));
  expect_call(stranger, "/weir.Test/Echo", "", NULL, WEIR_UNAUTHENTICATED, "bears no token");
  assert_true(is_left_alone(&world));
  expect_call(stranger, health, "", NULL, WEIR_OK, "\x08\x01");  // on a new one
  assert_true(is_left_alone(&world));
  weir_rpc_channel_options_t options = {.address = weir_rpc_server_address(world.server),
                                        .token = TOKEN};
  assert_null(weir_rpc_channel_create(world.loop, &options, &friend));
  outcome_t held;
  outcome_start(&held, friend, "/weir.Test/Hold", "", NULL, NULL);
  assert_true(event_wait(&world.held, 1));
  usleep(600000);
  int connections = 0, calls = 0;
  weir_rpc_server_load(world.server, &connections, &calls);
  assert_int_equal(connections, 1);
  weir_rpc_call_respond(world.calls[0], weir_rpc_message_create());
  outcome_expect(&held, WEIR_OK, "");
  weir_rpc_channel_destroy(friend);
  weir_rpc_channel_destroy(stranger);
  world_close(&world);
}

// Servers that ask for none do not look at one.
static void test_needless(void** state) {
  (void)state;
  world_t world;
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){.address = "127.0.0.1:0"});
  expect_with(&world, TOKEN, "/weir.Test/Echo", WEIR_OK, "");
  world_close(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_files), cmocka_unit_test(test_headers),
                                     cmocka_unit_test(test_calls), cmocka_unit_test(test_strangers),
                                     cmocka_unit_test(test_needless)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
