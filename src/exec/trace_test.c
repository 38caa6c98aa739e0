// trace_test.c — What is written of nodes whose times and memory are known.
#include "exec/trace.h"

#include "base/alloc.h"
#include "exec/step_stats.h"
#include "graph/graph.h"
#include "testing/world.h"
#include "wire/message.h"
#include "wire/text.h"

// Two nodes: one quick that allocates nothing, one that gave back a part of what it took, on
// another device. The third device runs none.
static void trace_two(world_t* w, weir_device_t* const* devices, weir_trace_t* trace) {
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_node_t* split = add(w, "Split", "halves", WEIR_EDGES(weir_const_int(w->scope, 0), x),
                           WEIR_ATTRS(weir_attr_int("num_split", 2)));
  weir_node_t* sum = add(w, "Sub", "a/b", WEIR_EDGES(x, output(split, 1)), WEIR_NO_ATTRS);
  weir_trace_init(trace);
  trace->wall_start_us = 7000000;
  trace->clock_start_ns = 1000000;
  weir_value_t outputs[2] = {{.tensor = NULL}, {.tensor = FLOATS(1, 2, 3)}};
  weir_trace_add(trace,
                 (weir_trace_event_t){.node = &split->def,
                                      .device = devices[0],
                                      .ready_ns = 1001000,
                                      .start_ns = 1002500,
                                      .end_ns = 1002900},
                 outputs, 2);
  weir_trace_add(
      trace,
      (weir_trace_event_t){.node = &sum->def,
                           .device = devices[1],
                           .ready_ns = 1003000,
                           .start_ns = 1005000,
                           .end_ns = 1012750,
                           .memory = {.host = {.total = 3 << 20, .peak = 2 << 20, .live = 1000},
                                      .device = {.total = 80, .peak = 80, .live = 50}}},
      NULL, 0);
  weir_tensor_release(outputs[1].tensor);
  trace->events[0].thread = 4;
  trace->events[1].thread = 5;
}

static void test_metadata(void** state) {
  weir_trace_t trace;
  weir_strbuf_t wire = {0}, text = {0};
  weir_trace_devices_t devices = {.task = "/job:w/replica:0/task:1"};
  weir_device_t** items = NULL;
  check_ok(weir_devices_create("cpu:2,guard:1", NULL, NULL, &items, &devices.count));
  devices.items = items;
  trace_two(*state, items, &trace);
  check_ok(weir_trace_write_metadata(&trace, &devices, &wire));
  check_ok(weir_text_print(&weir_message_run_metadata, weir_strbuf_view(&wire), &text));
  static const char* const parts[] = {
      "device: \"/job:w/replica:0/task:1/device:CPU:0\"\n",
      "node_name: \"halves\"\n      all_start_micros: 7000002\n"
      "      op_end_rel_micros: 1\n      all_end_rel_micros: 1\n      output {\n        slot: 1\n",
      "requested_bytes: 12\n",
      "timeline_label: \"halves = Split(Const, x)\"\n      scheduled_micros: 7000001\n"
      "      thread_id: 4\n      memory_stats {\n      }\n",
      "all_start_nanos: 7000002500\n      op_end_rel_nanos: 400\n"
      "      all_end_rel_nanos: 400\n      scheduled_nanos: 7000001000\n",
      "device: \"/job:w/replica:0/task:1/device:CPU:1\"\n",
      "node_name: \"a/b\"\n      all_start_micros: 7000005\n"
      "      op_end_rel_micros: 7\n      all_end_rel_micros: 7\n",
      "allocator_name: \"cpu\"\n        total_bytes: 3145728\n        peak_bytes: 2097152\n"
      "        live_bytes: 1000\n",
      "allocator_name: \"CPU\"\n        total_bytes: 80\n        peak_bytes: 80\n"
      "        live_bytes: 50\n",
      "timeline_label: \"[cpu 3.0MB 2.0MB] a/b = Sub(x, halves:1)\"\n",
      "memory_stats {\n        temp_memory_size: 3144758\n",
  };
  const char* at = text.data;
  for (size_t i = 0; i < WEIR_COUNT_OF(parts) && at; ++i) {  // one after the other
    at = strstr(at, parts[i]);
    if (!at) fail_msg("'%s' is not in its place in\n%s", parts[i], text.data);
  }
  assert_null(strstr(text.data, "GUARD"));
  weir_devices_release(items, devices.count);
  weir_strbuf_free(&wire);
  weir_strbuf_free(&text);
  weir_trace_free(&trace);
}

static void test_chrome(void** state) {
  weir_trace_t trace;
  weir_strbuf_t json = {0};
  weir_device_t** devices = NULL;
  int count = 0;
  check_ok(weir_devices_create("cpu:2", NULL, NULL, &devices, &count));
  trace_two(*state, devices, &trace);
  check_ok(weir_trace_write_chrome(&trace, &json));
  assert_string_equal(
      json.data,
      "{\"traceEvents\":[\n"
      "{\"name\":\"Split\",\"ph\":\"X\",\"pid\":0,\"tid\":4,\"ts\":2.500,\"dur\":0.400,"
      "\"args\":{\"name\":\"halves\",\"bytes\":12}},\n"
      "{\"name\":\"Sub\",\"ph\":\"X\",\"pid\":1,\"tid\":5,\"ts\":5.000,\"dur\":7.750,"
      "\"args\":{\"name\":\"a/b\",\"bytes\":0}}\n"
      "],\"displayTimeUnit\":\"ns\"}\n");
  weir_devices_release(devices, count);
  weir_strbuf_free(&json);
  weir_trace_free(&trace);
}

// An allocation fails, each in turn: what was written is not whole, and that is an error.
static void test_out_of_memory(void** state) {
  weir_trace_t trace;
  weir_trace_devices_t devices = {.task = "/job:w/replica:0/task:1"};
  weir_device_t** items = NULL;
  check_ok(weir_devices_create("cpu:2", NULL, NULL, &items, &devices.count));
  devices.items = items;
  trace_two(*state, items, &trace);
  weir_code_t code = WEIR_RESOURCE_EXHAUSTED;
  for (int64_t n = 1; code != WEIR_OK; ++n) {
    weir_strbuf_t wire = {0}, json = {0};
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_trace_write_metadata(&trace, &devices, &wire);
    if (!status) status = weir_step_stats_write_chrome(weir_strbuf_view(&wire), &json);
    if (!status) status = weir_trace_write_chrome(&trace, &json);
    weir_alloc_fail_at(0, false);
    code = weir_status_code(status);
    assert_int_equal(code, code == WEIR_OK ? WEIR_OK : WEIR_RESOURCE_EXHAUSTED);
    if (code == WEIR_OK) assert_true(n > 3);
    weir_status_destroy(status);
    weir_strbuf_free(&wire);
    weir_strbuf_free(&json);
  }
  weir_devices_release(items, devices.count);
  weir_trace_free(&trace);
}

// What another process wrote as RunMetadata; its first node begins the time.
static void test_chrome_of_metadata(void** state) {
  weir_trace_t trace;
  weir_strbuf_t wire = {0}, json = {0};
  weir_trace_devices_t devices = {.task = "/job:w/replica:0/task:1"};
  weir_device_t** items = NULL;
  check_ok(weir_devices_create("cpu:2", NULL, NULL, &items, &devices.count));
  devices.items = items;
  trace_two(*state, items, &trace);
  check_ok(weir_trace_write_metadata(&trace, &devices, &wire));
  check_ok(weir_step_stats_write_chrome(weir_strbuf_view(&wire), &json));
  assert_string_equal(
      json.data,
      "{\"traceEvents\":[\n"
      "{\"name\":\"Split\",\"ph\":\"X\",\"pid\":0,\"tid\":4,\"ts\":0.000,\"dur\":0.400,"
      "\"args\":{\"name\":\"halves\",\"device\":\"/job:w/replica:0/task:1/"
      "device:CPU:0\",\"bytes\":12}},\n"
      "{\"name\":\"Sub\",\"ph\":\"X\",\"pid\":1,\"tid\":5,\"ts\":2.500,\"dur\":7.750,"
      "\"args\":{\"name\":\"a/b\",\"device\":\"/job:w/replica:0/task:1/"
      "device:CPU:1\",\"bytes\":0}}\n"
      "],\"displayTimeUnit\":\"ns\"}\n");
  check_error(weir_step_stats_write_chrome(weir_view(wire.data, wire.size - 1), &json),
              WEIR_INVALID_ARGUMENT, "malformed RunMetadata");
  weir_devices_release(items, devices.count);
  weir_strbuf_free(&wire);
  weir_strbuf_free(&json);
  weir_trace_free(&trace);
}

// A node that stands for several goes by the last one's name, says who they are, and whose value
// its readers get.
static void test_members(void** state) {
  world_t* w = *state;
  weir_trace_t trace;
  weir_strbuf_t wire = {0}, text = {0}, json = {0}, again = {0};
  weir_trace_devices_t devices = {.count = 0};
  weir_device_t** items = NULL;
  check_ok(weir_devices_create("cpu", NULL, NULL, &items, &devices.count));
  devices.items = items;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  const weir_dtype_t types[] = {WEIR_DTYPE_FLOAT, WEIR_DTYPE_FLOAT};
  const int64_t steps[] = {0}, outputs[] = {1, 2};
  const weir_view_t names[] = {weir_view_of("in/a"), weir_view_of("in/b")};
  const weir_view_t ops[] = {weir_view_of("Neg"), weir_view_of("Tanh")};
  weir_node_t* both =
      add(w, "_Fused", "in/b_fused", WEIR_EDGES(x),
          WEIR_ATTRS(weir_attr_types("Tin", types, 1), weir_attr_types("Tout", types, 2),
                     weir_attr_ints("steps", steps, 1), weir_attr_ints("outputs", outputs, 2),
                     weir_attr_strings("names", names, 2), weir_attr_strings("ops", ops, 2)));
  weir_node_t* sum =
      add(w, "Sub", "sum", WEIR_EDGES(output(both, 1), output(both, 0)), WEIR_NO_ATTRS);
  weir_trace_init(&trace);
  weir_trace_add(&trace, (weir_trace_event_t){.node = &both->def, .device = items[0]}, NULL, 0);
  weir_trace_add(&trace, (weir_trace_event_t){.node = &sum->def, .device = items[0]}, NULL, 0);
  check_ok(weir_trace_write_metadata(&trace, &devices, &wire));
  check_ok(weir_text_print(&weir_message_run_metadata, weir_strbuf_view(&wire), &text));
  assert_non_null(strstr(text.data, "node_name: \"in/b\"\n"));
  assert_non_null(strstr(text.data, "\"in/b = _Fused(x) of Neg in/a, Tanh in/b\"\n"));
  assert_non_null(strstr(text.data, "\"sum = Sub(in/b, in/a)\"\n"));
  static const char shown[] = "\"args\":{\"name\":\"in/b\",\"members\":[\"in/a\",\"in/b\"],";
  check_ok(weir_trace_write_chrome(&trace, &json));
  assert_non_null(strstr(json.data, shown));
  check_ok(weir_step_stats_write_chrome(weir_strbuf_view(&wire), &again));
  assert_non_null(strstr(again.data, shown));
  weir_devices_release(items, devices.count);
  weir_strbuf_free(&wire);
  weir_strbuf_free(&text);
  weir_strbuf_free(&json);
  weir_strbuf_free(&again);
  weir_trace_free(&trace);
}

// So does one that took over what follows it, of an op that knows nothing of that.
static void test_extended(void** state) {
  world_t* w = *state;
  weir_trace_t trace;
  weir_strbuf_t wire = {0}, text = {0};
  weir_trace_devices_t devices = {.count = 0};
  weir_device_t** items = NULL;
  check_ok(weir_devices_create("cpu", NULL, NULL, &items, &devices.count));
  devices.items = items;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  const weir_view_t names[] = {weir_view_of("in/a"), weir_view_of("in/b")};
  const weir_view_t ops[] = {weir_view_of("MatMul"), weir_view_of("BiasAdd")};
  weir_attrs_t attrs =
      WEIR_ATTRS(weir_attr_int("num_args", 1), weir_attr_strings("fused_ops", ops + 1, 1),
                 weir_attr_strings("_names", names, 2), weir_attr_strings("_ops", ops, 2),
                 weir_attr_strings("_outputs", names + 1, 1), weir_attr_int("_base", 0));
  weir_node_t* both = add(w, "_FusedMatMul", "in/b_extended", WEIR_EDGES(x, x, x), attrs);
  weir_node_t* after = add(w, "Neg", "after", WEIR_EDGES(output(both, 0)), WEIR_NO_ATTRS);
  // Attributes that are not of that kind are anybody's.
  weir_node_t* other =
      add(w, "Neg", "other", WEIR_EDGES(x),
          WEIR_ATTRS(weir_attr_strings("_names", names, 2), weir_attr_strings("_ops", ops, 1)));
  weir_trace_init(&trace);
  weir_node_t* const nodes[] = {both, after, other};
  for (int i = 0; i < 3; ++i)
    weir_trace_add(&trace, (weir_trace_event_t){.node = &nodes[i]->def, .device = items[0]}, NULL,
                   0);
  check_ok(weir_trace_write_metadata(&trace, &devices, &wire));
  check_ok(weir_text_print(&weir_message_run_metadata, weir_strbuf_view(&wire), &text));
  assert_non_null(
      strstr(text.data, "\"in/b = _FusedMatMul(x, x, x) of MatMul in/a, BiasAdd in/b\"\n"));
  assert_non_null(strstr(text.data, "\"after = Neg(in/b)\"\n"));
  assert_non_null(strstr(text.data, "\"other = Neg(x)\"\n"));
  check_error(weir_extended_at_node(&both->def, 1, WEIR_STATUS(INVALID_ARGUMENT, "wrong")),
              WEIR_INVALID_ARGUMENT, "Node 'in/b' (BiasAdd): wrong");
  check_error(weir_extended_at_node(&other->def, 1, WEIR_STATUS(INVALID_ARGUMENT, "wrong")),
              WEIR_INVALID_ARGUMENT, "wrong");
  weir_devices_release(items, devices.count);
  weir_strbuf_free(&wire);
  weir_strbuf_free(&text);
  weir_trace_free(&trace);
}

// What a device's streams did, beside what the host did: rows of their own, as TensorFlow's
// timeline looks for them.
static void test_streams(void** state) {
  weir_trace_t trace;
  weir_strbuf_t wire = {0}, text = {0}, json = {0}, again = {0};
  weir_trace_devices_t devices = {.task = "/job:w/replica:0/task:1"};
  weir_device_t** items = NULL;
  check_ok(weir_devices_create("cpu:2", NULL, NULL, &items, &devices.count));
  devices.items = items;
  trace_two(*state, items, &trace);
  trace.events[0].span = (weir_stream_span_t){
      .device = items[0], .stream = WEIR_STREAM_UPLOAD, .start_ns = 1002600, .end_ns = 1004700};
  trace.events[1].span = (weir_stream_span_t){.device = items[1],
                                              .stream = WEIR_STREAM_COMPUTE,
                                              .start_ns = 1004000,  // not before it was launched
                                              .end_ns = 1015500};
  check_ok(weir_trace_write_metadata(&trace, &devices, &wire));
  check_ok(weir_text_print(&weir_message_run_metadata, weir_strbuf_view(&wire), &text));
  static const char* const parts[] = {
      "device: \"/job:w/replica:0/task:1/device:CPU:0\"\n",
      "device: \"/job:w/replica:0/task:1/device:CPU:0/memcpy\"\n",
      "node_name: \"halves:MEMCPYHtoD\"\n      all_start_micros: 7000002\n"
      "      op_end_rel_micros: 2\n      all_end_rel_micros: 2\n"
      "      timeline_label: \"MEMCPYHtoD 12 bytes\"\n      scheduled_micros: 7000002\n",
      "all_start_nanos: 7000002600\n      op_end_rel_nanos: 2100\n"
      "      all_end_rel_nanos: 2100\n      scheduled_nanos: 7000002500\n",
      "device: \"/job:w/replica:0/task:1/device:CPU:1\"\n",
      "device: \"/job:w/replica:0/task:1/device:CPU:1/stream:all\"\n",
      "node_name: \"a/b:Sub\"\n      all_start_micros: 7000005\n      op_end_rel_micros: 10\n",
      "a/b = Sub(x, halves:1)\"\n",
      "all_start_nanos: 7000005000\n      op_end_rel_nanos: 10500\n"
      "      all_end_rel_nanos: 10500\n      scheduled_nanos: 7000005000\n",
  };
  const char* at = text.data;
  for (size_t i = 0; i < WEIR_COUNT_OF(parts) && at; ++i) {
    at = strstr(at, parts[i]);
    if (!at) fail_msg("'%s' is not in its place in\n%s", parts[i], text.data);
  }
  check_ok(weir_trace_write_chrome(&trace, &json));
  static const char* const rows[] = {
      "{\"name\":\"MEMCPYHtoD\",\"ph\":\"X\",\"pid\":0,\"tid\":1001,\"ts\":2.600,\"dur\":2.100,"
      "\"args\":{\"name\":\"halves\",\"stream\":\"memcpy\",\"bytes\":12}},\n"
      "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":1001,"
      "\"args\":{\"name\":\"CPU:0 memcpy HtoD\"}},\n",
      "{\"name\":\"Sub\",\"ph\":\"X\",\"pid\":1,\"tid\":1000,\"ts\":5.000,\"dur\":10.500,"
      "\"args\":{\"name\":\"a/b\",\"stream\":\"stream:all\",\"bytes\":0}},\n",
      "\"args\":{\"name\":\"CPU:1 stream:all\"}}\n],",
      ",\"otherData\":{\"/job:localhost/replica:0/task:0/device:CPU:1 busy\":1.000}}\n"};
  for (size_t i = 0; i < WEIR_COUNT_OF(rows); ++i)
    if (!strstr(json.data, rows[i])) fail_msg("'%s' is not in\n%s", rows[i], json.data);
  check_ok(weir_step_stats_write_chrome(weir_strbuf_view(&wire), &again));
  assert_non_null(strstr(again.data,
                         "\"ts\":2.500,\"dur\":10.500,\"args\":{\"name\":\"a/b\",\"device\":"
                         "\"/job:w/replica:0/task:1/device:CPU:1\",\"stream\":\"stream:all\","));
  weir_devices_release(items, devices.count);
  weir_strbuf_free(&wire);
  weir_strbuf_free(&text);
  weir_strbuf_free(&json);
  weir_strbuf_free(&again);
  weir_trace_free(&trace);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_metadata, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_chrome, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_chrome_of_metadata, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_out_of_memory, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_members, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_extended, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_streams, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
