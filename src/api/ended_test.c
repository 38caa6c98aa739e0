// ended_test.c — What is ended twice, or used after what it belongs to has ended, is told of.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing/world.h"
#include "weir/server.h"

static void test_scope_finished_twice(void** state) {
  (void)state;
  weir_graph_t* graph = NULL;
  check_ok(weir_graph_create(&graph));
  weir_scope_t* s = weir_scope_create(graph);
  check_ok(weir_scope_finish(s));
  check_error(weir_scope_finish(s), WEIR_FAILED_PRECONDITION, "finished already");
  weir_graph_release(graph);
}

// Asserts that |fn| aborts, and says |text| before.
static void check_aborts(void (*fn)(void* arg), void* arg, const char* text) {
  char said[4096] = "";
  int ends[2], status = 0;
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGABRT, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    fn(arg);
    _exit(0);
  }
  close(ends[1]);
  assert_true(read(ends[0], said, sizeof(said) - 1) >= 0);
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), SIGABRT);
  if (!strstr(said, text)) fail_msg("'%s' is not in '%s'", text, said);
}

static void destroy_session(void* arg) { weir_session_destroy(arg); }
static void destroy_server(void* arg) { weir_server_destroy(arg, 0); }

static void test_destroyed_twice(void** state) {
  world_t* w = *state;
  weir_server_t* server = NULL;
  weir_session_t* session = open_session(w, 1);
  w->session = NULL;
  weir_session_destroy(session);
  check_aborts(destroy_session, session, "weir_session_destroy: session was destroyed before");
  check_ok(weir_server_create(NULL, &server));
  weir_server_destroy(server, 0);
  check_aborts(destroy_server, server, "weir_server_destroy: server was destroyed before");
}

static void test_outlives_its_session(void** state) {
  world_t* w = *state;
  weir_callable_t* callables[3] = {NULL};
  weir_tensor_t* result = NULL;
  weir_edge_t x = weir_const_float(w->scope, 1);
  weir_step_spec_t spec = {WEIR_FETCHES(x)};
  open_session(w, 1);
  for (int i = 0; i < 3; ++i) check_ok(weir_callable_create(w->session, &spec, &callables[i]));
  weir_callable_destroy(callables[1]);
  weir_session_destroy(w->session);
  w->session = NULL;
  for (int i = 0; i < 3; i += 2) {
    check_error(weir_callable_run(callables[i], NULL, &result), WEIR_FAILED_PRECONDITION,
                "its session is destroyed");
    weir_callable_destroy(callables[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scope_finished_twice),
      cmocka_unit_test_setup_teardown(test_destroyed_twice, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_outlives_its_session, world_setup, world_teardown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
