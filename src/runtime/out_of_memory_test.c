// out_of_memory_test.c — Each allocation fails in turn while a session makes its plan for a step:
// an error, or the right result.
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "runtime/program.h"
#include "testing/world.h"

// A step with what planning looks at: a branch and a constant that several read, a variable of the
// second device, a node on no path to the result.
static weir_edge_t build(world_t* w) {
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t limit = weir_const_float(w->scope, 3);
  weir_edge_t is_less = OP(w, "Less", x, limit);
  weir_node_t* branch = add(w, "Switch", NULL, WEIR_EDGES(x, is_less), WEIR_NO_ATTRS);
  weir_edge_t low = OP(w, "Neg", output(branch, 1));
  weir_edge_t high = OP(w, "Square", output(branch, 0));
  weir_edge_t merged = OP(w, "Merge", low, high);
  (void)OP(w, "Exp", merged);
  weir_scope_t* second = weir_scope_on(w->scope, "/device:CPU:1");
  weir_edge_t v = weir_variable(second, "v", limit);
  weir_node_t* init = weir_initializer(w->scope);
  weir_group(w->scope, "init", &init, 1);
  return OP(w, "AddV2", OP(w, "Mul", merged, merged), OP(w, "Identity", v));
}

// |rates|: the file by which nodes are placed; NULL: nobody looks at costs.
static weir_code_t run_without(world_t* w, weir_edge_t y, const char* rates, int64_t n,
                               float* out_value) {
  weir_session_t* session = NULL;
  weir_tensor_t *fed = make_float(2), *result = NULL;
  weir_edge_t x = {weir_graph_find_node(w->graph, "x"), 0};
  weir_step_spec_t spec = {WEIR_FEEDS({x, fed}), WEIR_FETCHES(y)};
  weir_session_options_t options = {
      .threads = 1, .devices = "cpu:2", .place = rates ? "cost" : NULL, .rates = rates};
  weir_alloc_fail_at(n, false);
  weir_status_t* status = weir_session_create(w->graph, &options, &session);
  if (!status) status = weir_session_run_target(session, weir_graph_find_node(w->graph, "init"));
  if (!status) status = weir_session_run(session, &spec, &result);
  weir_alloc_fail_at(0, false);
  if (!status) *out_value = float_of(result);
  weir_code_t code = weir_status_code(status);
  weir_status_destroy(status);
  weir_tensor_release(result);
  weir_tensor_release(fed);
  weir_session_destroy(session);
  return code;
}

static void sweep(world_t* w, const char* rates) {
  weir_edge_t y = build(w);
  weir_arena_split(true);
  int64_t failed = 0;
  for (int64_t n = 1, passed = 0; passed < 50; n += WEIR_TEST_STRIDE) {  // none of these fails
    float value = 0;
    weir_code_t code = run_without(w, y, rates, n, &value);
    assert_true(code == WEIR_OK || code == WEIR_RESOURCE_EXHAUSTED);
    if (code == WEIR_OK) assert_float_equal(value, 7, 0);
    failed += code != WEIR_OK;
    passed = code == WEIR_OK ? passed + 1 : 0;
  }
  weir_arena_split(false);
  assert_true(failed > 100 / WEIR_TEST_STRIDE);
}

static void test_each_allocation(void** state) { sweep(*state, NULL); }

static void test_by_cost(void** state) {
  static const char kRates[] =
      "CPU:0 flops=2 bytes=3 node_ns=500 copy_bytes=4\n"
      "CPU:1 flops=2 bytes=3 node_ns=500 copy_bytes=4\n";
  char path[] = "/tmp/weir_rates.XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, kRates, sizeof(kRates) - 1), sizeof(kRates) - 1);
  close(fd);
  sweep(*state, path);
  unlink(path);
}

// State of its own that a program is lent has a part for each device, or there is no program.
static void test_own_state(void** state) {
  world_t* w = *state;
  weir_runtime_t* runtime = NULL;
  weir_code_t code = WEIR_RESOURCE_EXHAUSTED;
  weir_runtime_options_t of_runtime = {
      .container = "w", .task = "/job:w/replica:0/task:0", .threads = 1, .devices = "cpu:2"};
  check_ok(weir_runtime_create(&of_runtime, &runtime));
  weir_arena_split(true);
  for (int64_t n = 1; code != WEIR_OK; ++n) {
    weir_resources_t* resources = NULL;
    weir_program_t* program = NULL;
    check_ok(weir_resources_create("w", &resources));
    weir_program_options_t options = {
        .runtime = runtime, .graph = w->graph, .resources = resources};
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_program_create(&options, &program);
    weir_alloc_fail_at(0, false);
    code = weir_status_code(status);
    assert_true(code == WEIR_RESOURCE_EXHAUSTED || (!status && weir_resources_of(resources, 1)));
    weir_status_destroy(status);
    weir_program_destroy(program);
    weir_resources_destroy(resources);
  }
  weir_arena_split(false);
  weir_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_each_allocation, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_by_cost, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_own_state, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
