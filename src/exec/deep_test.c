// deep_test.c — Calls within calls and loops within loops, many levels deep: they end, fail, are
// cancelled and time out without using the stack, and what never ends is stopped.
#include <math.h>
#include <stdio.h>

#include "base/string.h"
#include "exec/run.h"
#include "session/session.h"
#include "testing/world.h"

enum { DEPTH = 20000 };

#define FLOAT(key) " attr {key: '" key "' value {type: DT_FLOAT}}"
#define BOOL(key) " attr {key: '" key "' value {type: DT_BOOL}}"
#define NONE(key) " attr {key: '" key "' value {list {}}}"
#define ONE(key) " attr {key: '" key "' value {list {type: DT_FLOAT}}}"
#define TWO(key) " attr {key: '" key "' value {list {type: DT_FLOAT type: DT_FLOAT}}}"
#define ARG(name) " {name: '" name "' type: DT_FLOAT}"
#define FUNC(key, name) " attr {key: '" key "' value {func {name: '" name "'}}}"
#define NUMBER(name, value) \
  " node_def {name: '" name "' op: 'Const'" FLOAT("dtype") " attr {key: 'value' value {tensor " \
  "{dtype: DT_FLOAT tensor_shape {} float_val: " value "}}}}"
#define LESS         \
  NUMBER("one", "1") \
  " node_def {name: 'less' op: 'Sub' input: 'n' input: 'one:output:0'" FLOAT("T") "}"
#define IS_END        \
  NUMBER("zero", "0") \
  " node_def {name: 'is_end' op: 'LessEqual' input: 'n' input: 'zero:output:0'" FLOAT("T") "}"

// Down(n, x) = n > 0 ? Down(n - 1, x) + 1 : check(x). Silent(n) does the same without a result.
// Endless(x) = Endless(x).
static const char text[] =
    "node {name: 'x' op: 'Placeholder'" FLOAT("dtype") " attr {key: 'shape' value {shape {}}}}"
    "node {name: 'n' op: 'Placeholder'" FLOAT("dtype") " attr {key: 'shape' value {shape {}}}}"
    "node {name: 'down' op: 'PartitionedCall' input: 'n' input: 'x'" TWO("Tin") ONE("Tout")
    FUNC("f", "Down") "}"
    "node {name: 'silent' op: 'StatefulPartitionedCall' input: 'n'" ONE("Tin") NONE("Tout")
    FUNC("f", "Silent") "}"
    "node {name: 'endless' op: 'PartitionedCall' input: 'x'" ONE("Tin") ONE("Tout")
    FUNC("f", "Endless") "}"
    "library {"
    " function {signature {name: 'Down' input_arg" ARG("n") " input_arg" ARG("x")
    "  output_arg" ARG("r") "}" IS_END
    "  node_def {name: 'if' op: 'If' input: 'is_end:z:0' input: 'n' input: 'x'" BOOL("Tcond")
    TWO("Tin") ONE("Tout") FUNC("then_branch", "End") FUNC("else_branch", "Further") "}"
    "  ret {key: 'r' value: 'if:output:0'}}"
    " function {signature {name: 'End' input_arg" ARG("n") " input_arg" ARG("x")
    "  output_arg" ARG("r") "}"
    "  node_def {name: 'check' op: 'CheckNumerics' input: 'x'" FLOAT("T")
    "  attr {key: 'message' value {s: 'at the end'}}} ret {key: 'r' value: 'check:output:0'}}"
    " function {signature {name: 'Further' input_arg" ARG("n") " input_arg" ARG("x")
    "  output_arg" ARG("r") "}" LESS
    "  node_def {name: 'rest' op: 'PartitionedCall' input: 'less:z:0' input: 'x'" TWO("Tin")
    ONE("Tout") FUNC("f", "Down") "}"
    "  node_def {name: 'add' op: 'AddV2' input: 'rest:output:0' input: 'one:output:0'" FLOAT("T")
    "} ret {key: 'r' value: 'add:z:0'}}"
    " function {signature {name: 'Silent' input_arg" ARG("n") " is_stateful: true}" IS_END
    "  node_def {name: 'if' op: 'If' input: 'is_end:z:0' input: 'n'" BOOL("Tcond")
    ONE("Tin") NONE("Tout") FUNC("then_branch", "Nothing") FUNC("else_branch", "Again") "}"
    "  control_ret {key: 'if' value: 'if'}}"
    " function {signature {name: 'Nothing' input_arg" ARG("n") "}"
    "  node_def {name: 'nothing' op: 'NoOp'} control_ret {key: 'nothing' value: 'nothing'}}"
    " function {signature {name: 'Again' input_arg" ARG("n") " is_stateful: true}" LESS
    "  node_def {name: 'rest' op: 'StatefulPartitionedCall' input: 'less:z:0'" ONE("Tin")
    NONE("Tout") FUNC("f", "Silent") "} control_ret {key: 'rest' value: 'rest'}}"
    " function {signature {name: 'Endless' input_arg" ARG("x") " output_arg" ARG("r") "}"
    "  node_def {name: 'again' op: 'PartitionedCall' input: 'x'" ONE("Tin") ONE("Tout")
    FUNC("f", "Endless") "} ret {key: 'r' value: 'again:output:0'}}"
    "}";

static weir_edge_t edge_of(world_t* w, const char* name) {
  weir_edge_t edge;
  check_ok(weir_graph_find_output(w->graph, name, &edge));
  return edge;
}

// Runs |fetch|, or |target|, with n and x fed.
static weir_status_t* run(world_t* w, float n, float x, weir_edge_t fetch, weir_node_t* target,
                          const weir_run_options_t* options, float* out_value) {
  weir_tensor_t *fed_n = make_float(n), *fed_x = make_float(x), *result = NULL;
  weir_feed_t feeds[] = {{edge_of(w, "n"), fed_n}, {edge_of(w, "x"), fed_x}};
  weir_step_spec_t spec = {.feeds = feeds,
                           .feed_count = 2,
                           .fetches = &fetch,
                           .fetch_count = target ? 0 : 1,
                           .targets = &target,
                           .target_count = target ? 1 : 0};
  weir_status_t* status = weir_session_run_with(w->session, &spec, options, &result, NULL, NULL);
  if (!status && !target) *out_value = float_of(result);
  weir_tensor_release(result);
  weir_tensor_release(fed_x);
  weir_tensor_release(fed_n);
  return status;
}

// ---- calls ----

static void check_short(weir_status_t* take_status, weir_code_t code, const char* part) {
  assert_true(strlen(weir_status_message(take_status)) < 1000);
  check_error(take_status, code, part);
}

static void check_calls(world_t* w, int threads) {
  weir_run_options_t none = {.timeout_ms = 0};
  float value = 0;
  import_text(w, text);
  open_session(w, threads);
  check_ok(run(w, DEPTH, 5, edge_of(w, "down"), NULL, &none, &value));
  assert_float_equal(value, DEPTH + 5, 0);
  weir_node_t* silent = weir_graph_find_node(w->graph, "silent");
  check_ok(run(w, DEPTH, 5, edge_of(w, "down"), silent, &none, NULL));
  check_short(run(w, DEPTH, NAN, edge_of(w, "down"), NULL, &none, &value), WEIR_INVALID_ARGUMENT,
              "at the end");
}

static void test_calls_on_one_thread(void** state) { check_calls(*state, 1); }
static void test_calls_on_many_threads(void** state) { check_calls(*state, 4); }

static void test_endless_call_times_out(void** state) {
  world_t* w = *state;
  weir_run_options_t options = {.timeout_ms = 100};
  float value = 0;
  import_text(w, text);
  open_session(w, 2);
  check_short(run(w, 0, 5, edge_of(w, "endless"), NULL, &options, &value), WEIR_DEADLINE_EXCEEDED,
              "");
}

static void* cancel_main(void* arg) {
  weir_cond_t never;
  weir_mutex_t mu;
  weir_mutex_init(&mu);
  weir_cond_init(&never);
  weir_mutex_lock(&mu);
  int64_t end = weir_clock_ns() + 50000000;
  while (weir_cond_wait_until(&never, &mu, end)) {
  }
  weir_mutex_unlock(&mu);
  weir_cancellation_cancel(arg);
  weir_cond_destroy(&never);
  weir_mutex_destroy(&mu);
  return NULL;
}

static void test_endless_call_is_cancelled(void** state) {
  world_t* w = *state;
  weir_run_options_t options = {.timeout_ms = 0};
  float value = 0;
  pthread_t thread;
  import_text(w, text);
  open_session(w, 2);
  check_ok(weir_cancellation_create(&options.cancellation));
  assert_int_equal(pthread_create(&thread, NULL, cancel_main, options.cancellation), 0);
  check_short(run(w, 0, 5, edge_of(w, "endless"), NULL, &options, &value), WEIR_CANCELLED, "");
  pthread_join(thread, NULL);
  weir_cancellation_destroy(options.cancellation);
}

// Without a deadline, memory ends it, and is free again.
static void test_endless_call_is_refused(void** state) {
  world_t* w = *state;
  weir_run_options_t none = {.timeout_ms = 0};
  float value = 0;
  import_text(w, text);
  open_session(w, 2);
  weir_run_limit_calls(30 << 20);
  for (int i = 0; i < 3; ++i) {
    check_short(run(w, 0, 5, edge_of(w, "endless"), NULL, &none, &value), WEIR_RESOURCE_EXHAUSTED,
                "Function 'Endless'");
    check_ok(run(w, 100, 5, edge_of(w, "down"), NULL, &none, &value));
    assert_float_equal(value, 105, 0);
  }
  weir_run_limit_calls(0);
}

// ---- graphs that are deep themselves ----

// Functions F0, F1, ... each of which calls the next, by |op|.
static void append_chain(weir_strbuf_t* graph, int count, bool is_if) {
  const char* call = is_if ? "op: 'If' input: 'yes:output:0' input: 'a'" BOOL("Tcond")
                           : "op: 'PartitionedCall' input: 'a'";
  weir_strbuf_printf(graph, "library {");
  for (int i = 0; i < count; ++i) {
    weir_strbuf_printf(graph, "function {signature {name: 'F%d' input_arg" ARG("a") " output_arg"
                       ARG("r") "} node_def {name: 'yes' op: 'Const'" BOOL("dtype") " attr {key: "
                       "'value' value {tensor {dtype: DT_BOOL tensor_shape {} bool_val: true}}}}",
                       i);
    if (i + 1 == count)
      weir_strbuf_printf(graph, "node_def {name: 'c' op: 'CheckNumerics' input: 'a'" FLOAT("T")
                         " attr {key: 'message' value {s: 'at the end'}}}"
                         " ret {key: 'r' value: 'c:output:0'}}");
    else
      weir_strbuf_printf(graph, "node_def {name: 'c' %s" ONE("Tin") ONE("Tout")
                         " attr {key: '%s' value {func {name: 'F%d'}}}"
                         " attr {key: '%s' value {func {name: 'F%d'}}}}"
                         " ret {key: 'r' value: 'c:output:0'}}",
                         call, is_if ? "then_branch" : "f", i + 1, is_if ? "else_branch" : "_g",
                         i + 1);
  }
  weir_strbuf_printf(graph, "} node {name: 'top' op: 'PartitionedCall' input: 'x'" ONE("Tin")
                                ONE("Tout") FUNC("f", "F0") "}");
}

static void check_chain(world_t* w, bool is_if) {
  weir_run_options_t none = {.timeout_ms = 0};
  weir_strbuf_t graph = {0};
  float value = 0;
  import_text(w, text);
  append_chain(&graph, 2000, is_if);
  check_ok(weir_graph_import_text(w->graph, graph.data, graph.size, NULL));
  weir_strbuf_free(&graph);
  open_session(w, 2);
  check_ok(run(w, 0, 5, edge_of(w, "top"), NULL, &none, &value));
  assert_float_equal(value, 5, 0);
  check_short(run(w, 0, NAN, edge_of(w, "top"), NULL, &none, &value), WEIR_INVALID_ARGUMENT,
              "at the end");
}

static void test_chain_of_functions(void** state) { check_chain(*state, false); }
static void test_chain_of_branches(void** state) { check_chain(*state, true); }

typedef struct failing_t {
  world_t* w;
  weir_edge_t fetch;
  weir_status_t* status;
} failing_t;

static void* run_failing(void* arg) {
  failing_t* failing = arg;
  float value = 0;
  failing->status =
      run(failing->w, 0, NAN, failing->fetch, NULL, &(weir_run_options_t){.timeout_ms = 0}, &value);
  return NULL;
}

// Runs the step on a thread with little stack.
static weir_status_t* run_narrow(world_t* w, weir_edge_t fetch) {
  enum { STACK_SIZE = 256 << 10 };
  failing_t failing = {.w = w, .fetch = fetch};
  pthread_attr_t narrow;
  pthread_t thread;
  assert_int_equal(pthread_attr_init(&narrow), 0);
  assert_int_equal(pthread_attr_setstacksize(&narrow, STACK_SIZE), 0);
  assert_int_equal(pthread_create(&thread, &narrow, run_failing, &failing), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  pthread_attr_destroy(&narrow);
  return failing.status;
}

// Loops within loops, of one turn each.
static void test_nested_loops(void** state) {
  enum { LOOPS = 10000 };
  world_t* w = *state;
  weir_run_options_t none = {.timeout_ms = 0};
  float value = 0;
  import_text(w, text);
  weir_edge_t inner = edge_of(w, "x");
  for (int i = 0; i < LOOPS; ++i) {
    char name[32];
    snprintf(name, sizeof(name), "loop%d", i);
    inner = add_enter(w, inner, name, false, 1);
  }
  inner = output(add(w, "CheckNumerics", NULL, WEIR_EDGES(inner),
                     WEIR_ATTRS(weir_attr_string("message", "at the end"))),
                 0);
  for (int i = 0; i < LOOPS; ++i) inner = OP(w, "Exit", inner);
  open_session(w, 1);
  check_ok(run(w, 0, 5, inner, NULL, &none, &value));
  assert_float_equal(value, 5, 0);
  check_short(run_narrow(w, inner), WEIR_INVALID_ARGUMENT, "at the end");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_calls_on_one_thread),     TEST(test_calls_on_many_threads),
      TEST(test_endless_call_times_out),  TEST(test_endless_call_is_cancelled),
      TEST(test_endless_call_is_refused), TEST(test_chain_of_functions),
      TEST(test_chain_of_branches),       TEST(test_nested_loops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
