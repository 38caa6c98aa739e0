// token_test.c — Tokens: which files are good, which headers bear one, and who is served.
#include "rpc/token.h"

#include <sys/stat.h>

#include "rpc/rpc_testing.h"

#define TOKEN "0123456789abcdef-secret"

#define OTHER "another-secret-0123"

static const char* token_path(void) {
  static char path[64];
  snprintf(path, sizeof(path), "/tmp/weir_token_%d", (int)getpid());
  return path;
}

// Puts another file in its place, as whoever changes secrets does.
static void write_file(const char* content, size_t size) {
  char next[80];
  snprintf(next, sizeof(next), "%s.next", token_path());
  FILE* file = fopen(next, "w");
  assert_non_null(file);
  assert_int_equal(fwrite(content, 1, size, file), size);
  fclose(file);
  assert_int_equal(chmod(next, 0600), 0);
  assert_int_equal(rename(next, token_path()), 0);
}

static weir_status_t* load(const char* content, size_t size, weir_rpc_token_t** out_token) {
  write_file(content, size);
  weir_status_t* status = weir_rpc_token_open(token_path(), out_token);
  unlink(token_path());
  return status;
}

static weir_rpc_token_t* token_of(const char* content) {
  weir_rpc_token_t* token = NULL;
  assert_null(load(content, strlen(content), &token));
  return token;
}

static void expect_bad(const char* content, size_t size, const char* text) {
  weir_rpc_token_t* token = NULL;
  weir_status_t* status = load(content, size, &token);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), text));
  assert_null(token);
  weir_status_destroy(status);
}

static void expect_header(weir_rpc_token_t* token, const char* expected) {
  char value[WEIR_RPC_TOKEN_HEADER_SIZE];
  weir_rpc_token_header(token, value);
  assert_string_equal(value, expected);
  weir_rpc_token_forget(value);
  assert_int_equal(strlen(value), 0);
}

static void test_files(void** state) {
  (void)state;
  const char* good[] = {TOKEN, TOKEN "\n", " \t" TOKEN " \r\n\n", "\n" TOKEN "\n \n" OTHER};
  for (size_t i = 0; i < WEIR_COUNT_OF(good); ++i) {
    weir_rpc_token_t* token = token_of(good[i]);
    expect_header(token, "Bearer " TOKEN);
    weir_rpc_token_release(token);
  }
  char large[8192];
  memset(large, 'x', sizeof(large));
  expect_bad("", 0, "has no token");
  expect_bad("\n\n", 2, "has no token");
  expect_bad("short", 5, "can be guessed");
  expect_bad(TOKEN "\nshort\n", sizeof(TOKEN) + 6, "5 letters");
  expect_bad("not of visible letters\n", 23, "visible ASCII");
  expect_bad("0123456789\0abcdef-secret", 24, "visible ASCII");
  const char* five = TOKEN "\n" TOKEN "\n" TOKEN "\n" TOKEN "\n" TOKEN "\n";
  expect_bad(five, strlen(five), "more than 4 lines");
  expect_bad("0123456789\xc3\xa4-secret", 19, "visible ASCII");
  expect_bad(large, sizeof(large), "more than 4 lines of 1024 bytes");
  expect_bad(large, 1025, "more than 1024");
  weir_rpc_token_t* token = NULL;
  weir_status_t* status = weir_rpc_token_open("/no/such/file", &token);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  assert_non_null(strstr(weir_status_message(status), "/no/such/file"));
  weir_status_destroy(status);
  status = weir_rpc_token_open("/", &token);
  assert_int_equal(weir_status_code(status), WEIR_INVALID_ARGUMENT);
  weir_status_destroy(status);
}

static void test_headers(void** state) {
  (void)state;
  weir_rpc_token_t* token = token_of(TOKEN "\n" OTHER);
  assert_true(weir_rpc_token_is_in(token, weir_view_of("Bearer " TOKEN)));
  assert_true(weir_rpc_token_is_in(token, weir_view_of("bearer " TOKEN)));
  assert_true(weir_rpc_token_is_in(token, weir_view_of("Bearer " OTHER)));
  const char* bad[] = {"",
                       "Bearer",
                       "Bearer ",
                       TOKEN,
                       "Basic " TOKEN,
                       "Bearer " TOKEN "x",
                       "Bearer 0123456789abcdef-secreT",
                       "Bearer  " TOKEN};
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i)
    assert_false(weir_rpc_token_is_in(token, weir_view_of(bad[i])));
  weir_rpc_token_release(token);
}

static bool is_taken(weir_rpc_token_t* token, const char* secret) {
  char value[80];
  snprintf(value, sizeof(value), "Bearer %s", secret);
  return weir_rpc_token_is_in(token, weir_view_of(value));
}

// What the file has counts, a second later at most; but one that is no good does not.
static void test_changes(void** state) {
  (void)state;
  const int look_us = 1100000;
  weir_rpc_token_t* token = NULL;
  write_file(TOKEN, strlen(TOKEN));
  assert_null(weir_rpc_token_open(token_path(), &token));
  const struct {
    const char* content;  // NULL: the file is gone
    bool takes_first, takes_other;
    const char* sent;
  } steps[] = {{TOKEN "\n" OTHER, true, true, TOKEN},
               {OTHER "\n" TOKEN, true, true, OTHER},
               {OTHER, false, true, OTHER},
               {"short", false, true, OTHER},
               {NULL, false, true, OTHER},
               {TOKEN, true, false, TOKEN}};
  for (size_t i = 0; i < WEIR_COUNT_OF(steps); ++i) {
    char expected[80];
    if (steps[i].content) write_file(steps[i].content, strlen(steps[i].content));
    else unlink(token_path());
    usleep(look_us);
    assert_int_equal(is_taken(token, TOKEN), steps[i].takes_first);
    assert_int_equal(is_taken(token, OTHER), steps[i].takes_other);
    snprintf(expected, sizeof(expected), "Bearer %s", steps[i].sent);
    expect_header(token, expected);
  }
  unlink(token_path());
  weir_rpc_token_release(token);
}

static void expect_with(world_t* world, const char* secret, const char* path, weir_code_t code,
                        const char* text) {
  weir_rpc_token_t* token = secret ? token_of(secret) : NULL;
  weir_rpc_channel_options_t options = {.address = weir_rpc_server_address(world->server),
                                        .token = token};
  weir_rpc_channel_t* channel = NULL;
  assert_null(weir_rpc_channel_create(world->loop, &options, &channel));
  weir_rpc_token_release(token);
  expect_call(channel, path, "", NULL, code, text);
  weir_rpc_channel_destroy(channel);
}

static void test_calls(void** state) {
  (void)state;
  world_t world;
  weir_rpc_token_t* token = token_of(TOKEN);
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){.address = "127.0.0.1:0", .token = token});
  const char* echo = "/weir.Test/Echo";
  expect_with(&world, TOKEN, echo, WEIR_OK, "");
  expect_with(&world, NULL, echo, WEIR_UNAUTHENTICATED, "bears no token");
  expect_with(&world, TOKEN "s", echo, WEIR_UNAUTHENTICATED, "another token");
  // Nor is anybody told which methods there are.
  expect_with(&world, NULL, "/weir.Test/None", WEIR_UNAUTHENTICATED, "bears no token");
  expect_with(&world, TOKEN, "/weir.Test/None", WEIR_UNIMPLEMENTED, "unknown method");
  expect_with(&world, NULL, "/grpc.health.v1.Health/Check", WEIR_OK, "\x08\x01");
  world_close(&world);
  weir_rpc_token_release(token);
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
  weir_rpc_token_t* token = token_of(TOKEN);
  world_open(&world, (weir_rpc_loop_options_t){0});
  world_serve(&world, (weir_rpc_server_options_t){
                          .address = "127.0.0.1:0", .token = token, .greeting_ms = 200});
  const char* health = "/grpc.health.v1.Health/Check";
  stranger = channel_to(world.loop, weir_rpc_server_address(world.server));
  expect_call(stranger, "/weir.Test/Echo", "", NULL, WEIR_UNAUTHENTICATED, "bears no token");
  assert_true(is_left_alone(&world));
  expect_call(stranger, health, "", NULL, WEIR_OK, "\x08\x01");  // on a new one
  assert_true(is_left_alone(&world));
  weir_rpc_channel_options_t options = {.address = weir_rpc_server_address(world.server),
                                        .token = token};
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
  weir_rpc_token_release(token);
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
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_files),     cmocka_unit_test(test_headers),
      cmocka_unit_test(test_changes),   cmocka_unit_test(test_calls),
      cmocka_unit_test(test_strangers), cmocka_unit_test(test_needless)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
