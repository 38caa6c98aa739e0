// placed_test.c — Programs whose nodes a master has placed, on several devices: what it may say,
// and what it may not.
#include "pass/partition.h"
#include "runtime/program.h"
#include "testing/world.h"

#define TASK "/job:other/replica:0/task:3"  // whatever this process calls itself
#define CPU TASK "/device:CPU:0"
#define GUARD TASK "/device:GUARD:0"
#define FLOAT " attr {key: 'dtype' value {type: DT_FLOAT}}"
#define SCALAR " attr {key: 'shape' value {shape {}}}"

// Compiles a graph in text as a worker does.
static weir_status_t* compile(const char* text, weir_plan_t** out_plan) {
  weir_runtime_t* runtime = NULL;
  weir_program_t* program = NULL;
  weir_graph_t *graph = NULL, *copy = NULL;
  weir_arena_t arena = {0};
  weir_runtime_options_t options = {
      .container = "w", .task = "/job:w/replica:0/task:0", .devices = "cpu:2,guard:2"};
  check_ok(weir_runtime_create(&options, &runtime));
  check_ok(weir_graph_create(&graph));
  check_ok(weir_graph_import_text(graph, text, strlen(text), NULL));
  weir_program_options_t of_program = {.runtime = runtime, .graph = graph, .is_placed = true};
  check_ok(weir_program_create(&of_program, &program));
  check_ok(weir_graph_copy(graph, NULL, &arena, &copy, NULL));
  weir_source_t source = {.graph = copy};
  check_ok(weir_graph_sinks(copy, &source.targets, &source.target_count));
  weir_status_t* status = weir_program_compile(program, &source, out_plan);
  if (!status) weir_plan_release(*out_plan);
  weir_program_destroy(program);
  weir_graph_unref(graph);
  weir_runtime_release(runtime);
  weir_arena_free(&arena);
  return status;
}

static void check_refused(const char* text, const char* says) {
  weir_plan_t* plan = NULL;
  check_error(compile(text, &plan), WEIR_INVALID_ARGUMENT, says);
}

static void test_devices_by_kind(void** state) {
  (void)state;
  weir_plan_t* plan = NULL;
  check_ok(compile("node {name: 'v' op: 'VarHandleOp' device: '" GUARD "'" FLOAT SCALAR "}"
                   "node {name: 'r' op: 'ReadVariableOp' input: 'v' device: '" GUARD "'" FLOAT "}"
                   "node {name: 'y' op: 'Square' input: 'r' device: '" CPU "'"
                   " attr {key: 'T' value {type: DT_FLOAT}}}",
                   &plan));
}

static void test_no_such_device(void** state) {
  (void)state;
  check_refused("node {name: 'n' op: 'NoOp' device: '" TASK "/device:GUARD:2'}", "GUARD:2");
  check_refused("node {name: 'n' op: 'NoOp' device: '" TASK "/device:GPU:0'}", "unknown device");
  check_refused("node {name: 'n' op: 'NoOp' device: 'nonsense'}", "Malformed");
}

// A kernel that waits runs on the host, whose hands must stay off a guard's memory.
static void test_what_waits_on_a_queue(void** state) {
  (void)state;
  check_refused("node {name: 'q' op: 'FIFOQueueV2' device: '" GUARD
                "'"
                " attr {key: 'component_types' value {list {type: DT_FLOAT}}}}"
                "node {name: 'd' op: 'QueueDequeueV2' input: 'q' device: '" GUARD
                "'"
                " attr {key: 'component_types' value {list {type: DT_FLOAT}}}}",
                "Node 'd' is placed on " GUARD ", which cannot run it");
}

static void test_state_out_of_reach(void** state) {
  (void)state;
  check_refused("node {name: 'v' op: 'VarHandleOp' device: '" GUARD "'" FLOAT SCALAR
                "}"
                "node {name: 'r' op: 'ReadVariableOp' input: 'v' device: '" CPU "'" FLOAT "}",
                "Node 'r' on /job:w/replica:0/task:0/device:CPU:0: trying to access state of node "
                "'v' located in device /job:w/replica:0/task:0/device:GUARD:0");
  check_refused("node {name: 'v' op: 'VariableV2' device: '" GUARD "'" FLOAT SCALAR
                "}"
                "node {name: 'c' op: 'Const' device: '" CPU "'" FLOAT
                " attr {key: 'value' value {tensor {dtype: DT_FLOAT tensor_shape {}"
                " float_val: 1}}}}"
                "node {name: 'a' op: 'Assign' input: 'v' input: 'c'"
                " device: '" TASK "/device:GUARD:1' attr {key: 'T' value {type: DT_FLOAT}}}",
                "Node 'a' on /job:w/replica:0/task:0/device:GUARD:1");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_devices_by_kind),
      cmocka_unit_test(test_no_such_device),
      cmocka_unit_test(test_what_waits_on_a_queue),
      cmocka_unit_test(test_state_out_of_reach),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
