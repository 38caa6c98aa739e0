// node_times_test.c — Reading traces: times, queues, what is not a trace.
#include "pass/node_times.h"

#include "testing/tensors.h"

static weir_node_times_t* parse(const char* json) {
  weir_node_times_t* times = NULL;
  check_ok(weir_node_times_parse(weir_view_of(json), &times));
  return times;
}

#define EVENT(name, ts, dur, more) \
  "{\"name\":\"Op\",\"ts\":" ts ",\"dur\":" dur ",\"args\":{\"name\":\"" name "\"" more "}}"
#define ON(device) ",\"device\":\"/job:localhost/replica:0/task:0/device:" device "\""

static void test_times(void** state) {
  (void)state;
  weir_node_times_t* times =
      parse("{\"traceEvents\":[" EVENT("a", "0", "2.5", ",\"bytes\":8") "," EVENT(
          "b", "1", "3", "") "," EVENT("a", "4", "1", "") "]}");
  const weir_node_time_t* a = weir_node_times_find(times, "a");
  assert_non_null(a);
  assert_float_equal(a->ns, 3500, 1e-6);
  assert_int_equal(a->visits, 2);
  assert_true(a->bytes == 8);
  assert_float_equal(weir_node_times_find(times, "b")->ns, 3000, 1e-6);
  assert_null(weir_node_times_find(times, "c"));
  assert_null(weir_node_times_find(NULL, "a"));
  weir_node_times_destroy(times);
}

// Both were handed to the guard at once: the second waited for the first. CPUs do several things
// side by side.
static void test_waiting_does_not_count(void** state) {
  (void)state;
  weir_node_times_t* times = parse("{\"traceEvents\":["
                                   EVENT("second", "0", "5", ON("GUARD:0")) ","
                                   EVENT("first", "0", "3", ON("GUARD:0")) ","
                                   EVENT("other", "0", "4", ON("GUARD:1")) ","
                                   EVENT("x", "0", "4", ON("CPU:0")) ","
                                   EVENT("y", "0", "6", ON("CPU:0")) "]}");
  assert_float_equal(weir_node_times_find(times, "first")->ns, 3000, 1e-6);
  assert_float_equal(weir_node_times_find(times, "second")->ns, 2000, 1e-6);
  assert_float_equal(weir_node_times_find(times, "other")->ns, 4000, 1e-6);
  assert_float_equal(weir_node_times_find(times, "x")->ns, 4000, 1e-6);
  assert_float_equal(weir_node_times_find(times, "y")->ns, 6000, 1e-6);
  weir_node_times_destroy(times);
}

// What a GPU's stream took is a node's time, and not what the host took to launch it; names of
// threads, counters and waiting for results are none.
static void test_streams(void** state) {
  (void)state;
  weir_node_times_t* times = parse(
      "{\"traceEvents\":["
      EVENT("a", "0", "2", ON("GPU:0")) ","
      EVENT("a", "1", "9", ON("GPU:0") ",\"stream\":\"stream:all\"") ","
      "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"args\":{\"name\":\"GPU:0 stream:all\"}},"
      "{\"name\":\"memory\",\"ph\":\"C\",\"pid\":1,\"ts\":3,\"args\":{\"bytes\":12}},"
      "{\"name\":\"_Retval\",\"ts\":2,\"dur\":8,\"args\":{\"name\":\"r\"}},"
      EVENT("b", "0", "3", ON("GPU:0")) "]}");
  assert_null(weir_node_times_find(times, "r"));
  assert_float_equal(weir_node_times_find(times, "a")->ns, 9000, 1e-6);
  assert_int_equal(weir_node_times_find(times, "a")->visits, 1);
  assert_float_equal(weir_node_times_find(times, "b")->ns, 1000, 1e-6);
  weir_node_times_destroy(times);
}

// Nodes that ran as one have a share each, as much as another.
static void test_members(void** state) {
  (void)state;
  weir_node_times_t* times = parse(
      "{\"traceEvents\":[" EVENT("b", "1", "3", ",\"members\":[\"a\",\"b\"],\"bytes\":8") "]}");
  assert_float_equal(weir_node_times_find(times, "a")->ns, 1500, 1e-6);
  assert_float_equal(weir_node_times_find(times, "b")->ns, 1500, 1e-6);
  assert_int_equal(weir_node_times_find(times, "b")->visits, 1);
  assert_true(weir_node_times_find(times, "a")->bytes == 8);
  weir_node_times_destroy(times);
}

static void test_what_is_no_trace(void** state) {
  (void)state;
  static const struct {
    const char *json, *message;
  } bad[] = {{"", "expected"},
             {"[]", "traceEvents"},
             {"{\"traceEvents\":3}", "traceEvents"},
             {"{\"traceEvents\":[{}]}", "args.name"},
             {"{\"traceEvents\":[" EVENT("a", "-1", "1", "") "]}", "ts"}};
  for (size_t i = 0; i < WEIR_COUNT_OF(bad); ++i) {
    weir_node_times_t* times = NULL;
    check_error(weir_node_times_parse(weir_view_of(bad[i].json), &times), WEIR_INVALID_ARGUMENT,
                bad[i].message);
  }
  weir_node_times_t* times = NULL;
  check_error(weir_node_times_load("/no/such/trace.json", &times), WEIR_NOT_FOUND,
              "/no/such/trace.json");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_times),
      cmocka_unit_test(test_waiting_does_not_count),
      cmocka_unit_test(test_streams),
      cmocka_unit_test(test_members),
      cmocka_unit_test(test_what_is_no_trace),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
