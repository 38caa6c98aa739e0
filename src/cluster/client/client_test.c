// client_test.c — A client whose master does not answer: nobody but the step itself waits for it.
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "testing/world.h"

enum { LIMIT_S = 20 };  // what hangs is killed after that

// A master that takes requests in, and says nothing.
typedef struct silent_t {
  int listener;
  int connection;
  char target[64];
} silent_t;

static silent_t open_silent(void) {
  silent_t silent = {.listener = socket(AF_INET, SOCK_STREAM, 0), .connection = -1};
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(address);
  assert_int_equal(bind(silent.listener, (struct sockaddr*)&address, size), 0);
  assert_int_equal(listen(silent.listener, 1), 0);
  assert_int_equal(getsockname(silent.listener, (struct sockaddr*)&address, &size), 0);
  snprintf(silent.target, sizeof(silent.target), "grpc://127.0.0.1:%d", ntohs(address.sin_port));
  return silent;
}

// Reads what the client sends until |text| came, which is part of its request.
static void read_until(silent_t* silent, const char* text) {
  char bytes[65536];
  size_t size = 0;
  silent->connection = accept(silent->listener, NULL, NULL);
  assert_true(silent->connection >= 0);
  // An empty SETTINGS frame: the client may begin.
  assert_int_equal(write(silent->connection, "\0\0\0\4\0\0\0\0\0", 9), 9);
  while (size == 0 || !memmem(bytes, size, text, strlen(text))) {
    ssize_t more = read(silent->connection, bytes + size, sizeof(bytes) - size);
    assert_true(more > 0);
    size += (size_t)more;
  }
}

typedef struct step_t {
  weir_session_t* session;
  weir_edge_t fetch;
  weir_run_options_t options;
  weir_status_t* status;
} step_t;

static void* run_step(void* arg) {
  step_t* step = arg;
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {.fetches = &step->fetch, .fetch_count = 1};
  step->status = weir_session_run_with(step->session, &spec, &step->options, &result, NULL, NULL);
  return NULL;
}

static void test_silent_master(void** state) {
  world_t* w = *state;
  pthread_t thread, other;
  weir_cancellation_t* cancellation = NULL;
  alarm(LIMIT_S);
  silent_t silent = open_silent();
  weir_edge_t x = weir_const_float(weir_scope_name(w->scope, "the_needle"), 1);
  weir_session_options_t options = {.target = silent.target};
  check_ok(weir_session_create(w->graph, &options, &w->session));
  step_t first = {.session = w->session, .fetch = x};
  assert_int_equal(pthread_create(&thread, NULL, run_step, &first), 0);
  read_until(&silent, "the_needle");  // CreateSession is under way
  // Whoever builds or looks at the graph goes on.
  weir_const_float(w->scope, 2);
  check_ok(weir_graph_find_output(w->graph, "the_needle", &x));
  // Other steps wait as long as they may, or until they are cancelled.
  step_t late = {.session = w->session, .fetch = x, .options = {.timeout_ms = 20}};
  run_step(&late);
  check_error(late.status, WEIR_DEADLINE_EXCEEDED, "");
  check_ok(weir_cancellation_create(&cancellation));
  step_t unwanted = {.session = w->session, .fetch = x, .options = {.cancellation = cancellation}};
  assert_int_equal(pthread_create(&other, NULL, run_step, &unwanted), 0);
  weir_cancellation_cancel(cancellation);
  pthread_join(other, NULL);
  check_error(unwanted.status, WEIR_CANCELLED, "");
  weir_cancellation_destroy(cancellation);
  weir_session_cancel(w->session);
  pthread_join(thread, NULL);
  check_error(first.status, WEIR_CANCELLED, "");
  close(silent.connection);
  close(silent.listener);
  alarm(0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_silent_master, world_setup, world_teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
