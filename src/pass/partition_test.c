// partition_test.c — Partitioning: what crosses between parts, how often, and the small loops that
// start receives.
#include "pass/partition.h"

#include "testing/world.h"

#define TASK(n) "/job:a/replica:0/task:" n "/device:CPU:0"

static const weir_placement_t devices[] = {
    {.device = TASK("0"), .type = "CPU", .incarnation = 10, .task = 0},
    {.device = TASK("1"), .type = "CPU", .incarnation = 11, .task = 1},
    {.device = TASK("2"), .type = "CPU", .incarnation = 12, .task = 2},
};

// A graph placed and cut; parts by task, NULL where a task has none.
typedef struct cut_t {
  weir_arena_t arena;
  weir_part_t* parts;
  int count;
  weir_graph_t* of[WEIR_COUNT_OF(devices)];
} cut_t;

static weir_status_t* try_cut(world_t* w, cut_t* cut) {
  int* device_of = NULL;
  weir_place_params_t place = {
      .graph = w->graph, .devices = devices, .device_count = WEIR_COUNT_OF(devices)};
  *cut = (cut_t){.count = 0};
  WEIR_TRY(weir_place(&place, &cut->arena, &device_of));
  weir_partition_params_t params = {.graph = w->graph,
                                    .device_of = device_of,
                                    .devices = devices,
                                    .device_count = WEIR_COUNT_OF(devices)};
  WEIR_TRY(weir_partition(&params, &cut->arena, &cut->parts, &cut->count));
  for (int i = 0; i < cut->count; ++i) cut->of[cut->parts[i].task] = cut->parts[i].graph;
  return NULL;
}

static cut_t cut_of(world_t* w) {
  cut_t cut;
  check_ok(try_cut(w, &cut));
  for (int i = 0; i < cut.count; ++i) {  // every part is a graph on its own
    weir_arena_t arena = {0};
    weir_node_t** order = NULL;
    check_ok(weir_graph_order(cut.parts[i].graph, &arena, &order));
    weir_arena_free(&arena);
  }
  return cut;
}

static void cut_free(cut_t* cut) {
  weir_parts_release(cut->parts, cut->count);
  weir_arena_free(&cut->arena);
}

static int count_op(const weir_graph_t* graph, const char* op) {
  int count = 0;
  for (size_t i = 0; i < graph->node_count; ++i)
    count += strcmp(graph->nodes[i]->def.op_name, op) == 0;
  return count;
}

static const weir_node_t* find(const weir_graph_t* graph, const char* name) {
  const weir_node_t* node = weir_graph_find(graph, weir_view_of(name));
  if (!node) fail_msg("no node '%s'", name);
  return node;
}

static const weir_node_t* only(const weir_graph_t* graph, const char* op) {
  const weir_node_t* found = NULL;
  assert_int_equal(count_op(graph, op), 1);
  for (size_t i = 0; i < graph->node_count; ++i) {
    if (strcmp(graph->nodes[i]->def.op_name, op) == 0) found = graph->nodes[i];
  }
  return found;
}

static void check_attr(const weir_node_t* node, const char* name, const char* expected) {
  weir_view_t text = weir_attrs_string(node->def.attrs, name);
  if (!weir_view_is(text, expected)) fail_msg("%s is '%.*s'", name, WEIR_VIEW_ARG(text));
}

#define PLACEHOLDER(name, task) \
  "node {name: '" name "' op: 'Placeholder' device: '" TASK(task) "' " \
  "attr {key: 'dtype' value {type: DT_FLOAT}}}"
#define SQUARE(name, inputs, task) \
  "node {name: '" name "' op: 'Square' " inputs " device: '" TASK(task) "' " \
  "attr {key: 'T' value {type: DT_FLOAT}}}"

// ---- transfers ----

static void test_one_task(void** state) {
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "1") SQUARE("y", "input: 'x'", "1"));
  cut_t cut = cut_of(w);
  assert_int_equal(cut.count, 1);
  assert_int_equal(cut.of[1]->node_count, 2);
  assert_int_equal(cut.parts[0].sink_count, 1);
  assert_string_equal(cut.parts[0].sinks[0]->def.name, "y");
  cut_free(&cut);
}

static void test_transfer(void** state) {
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "0") SQUARE("y", "input: 'x'", "1"));
  cut_t cut = cut_of(w);
  assert_int_equal(cut.count, 2);
  const weir_node_t* send = only(cut.of[0], "_Send");
  const weir_node_t* recv = only(cut.of[1], "_Recv");
  const weir_node_t* ends[] = {send, recv};
  for (int i = 0; i < 2; ++i) {
    check_attr(ends[i], "send_device", TASK("0"));
    check_attr(ends[i], "recv_device", TASK("1"));
    assert_int_equal(weir_attrs_int(ends[i]->def.attrs, "send_device_incarnation"), 10);
  }
  weir_view_t name = weir_attrs_string(send->def.attrs, "tensor_name");
  assert_true(weir_view_equal(name, weir_attrs_string(recv->def.attrs, "tensor_name")));
  assert_string_equal(send->inputs[0].node->def.name, "x");
  assert_ptr_equal(find(cut.of[1], "y")->inputs[0].node, recv);
  assert_int_equal(weir_attrs_type(recv->def.attrs, "tensor_type"), WEIR_DTYPE_FLOAT);
  assert_ptr_equal(cut.parts[0].sinks[0], cut.parts[0].task == 0 ? send : find(cut.of[1], "y"));
  cut_free(&cut);
}

static void test_a_tensor_crosses_once_a_task(void** state) {
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "0") SQUARE("a", "input: 'x'", "1") SQUARE("b", "input: 'x'", "1")
                     SQUARE("c", "input: 'x'", "1") SQUARE("d", "input: 'x'", "2")
                         SQUARE("back", "input: 'a'", "0"));
  cut_t cut = cut_of(w);
  assert_int_equal(cut.count, 3);
  assert_int_equal(count_op(cut.of[0], "_Send"), 2);
  assert_int_equal(count_op(cut.of[1], "_Recv"), 1);
  assert_int_equal(count_op(cut.of[2], "_Recv"), 1);
  assert_int_equal(count_op(cut.of[1], "_Send"), 1);
  assert_int_equal(count_op(cut.of[0], "_Recv"), 1);
  const weir_node_t* recv = only(cut.of[1], "_Recv");
  for (const char* name = "abc"; *name; ++name)
    assert_ptr_equal(find(cut.of[1], (char[]){*name, 0})->inputs[0].node, recv);
  cut_free(&cut);
}

static void test_outputs_cross_each_for_itself(void** state) {
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "0")
              "node {name: 'axis' op: 'Const' device: '" TASK("0") "' "
              "attr {key: 'dtype' value {type: DT_INT32}} "
              "attr {key: 'value' value {tensor {dtype: DT_INT32 tensor_shape {} int_val: 0}}}}"
              "node {name: 'parts' op: 'Split' input: 'axis' input: 'x' device: '" TASK("0") "' "
              "attr {key: 'T' value {type: DT_FLOAT}} attr {key: 'num_split' value {i: 3}}}"
              SQUARE("a", "input: 'parts:0'", "1") SQUARE("b", "input: 'parts:2'", "1"));
  cut_t cut = cut_of(w);
  assert_int_equal(count_op(cut.of[0], "_Send"), 2);
  assert_int_equal(count_op(cut.of[1], "_Recv"), 2);
  cut_free(&cut);
}

static void test_constants_are_copied(void** state) {
  world_t* w = *state;
  import_text(w,
              "node {name: 'c' op: 'Const' device: '" TASK("0") "' "
              "attr {key: 'dtype' value {type: DT_FLOAT}} "
              "attr {key: 'value' value {tensor {dtype: DT_FLOAT tensor_shape {} float_val: 5}}}}"
              SQUARE("a", "input: 'c'", "0") SQUARE("b", "input: 'c'", "1"));
  cut_t cut = cut_of(w);
  assert_int_equal(count_op(cut.of[0], "_Send"), 0);
  assert_int_equal(count_op(cut.of[1], "_Recv"), 0);
  const weir_tensor_t* value = weir_edge_constant(find(cut.of[1], "b")->inputs[0]);
  assert_non_null(value);
  assert_float_equal(WEIR_TENSOR_DATA(value, const float)[0], 5, 0);
  cut_free(&cut);
}

static void test_control_edges_cross_once(void** state) {
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "0") PLACEHOLDER("y", "1") SQUARE("first", "input: 'x'", "0")
                     SQUARE("a", "input: 'y' input: '^first'", "1")
                         SQUARE("b", "input: 'y' input: '^first'", "1"));
  cut_t cut = cut_of(w);
  const weir_node_t* send = only(cut.of[0], "_Send");
  const weir_node_t* recv = only(cut.of[1], "_Recv");
  const weir_node_t* signal = send->inputs[0].node;  // carries no data, comes after |first|
  assert_int_equal(signal->control_count, 1);
  assert_string_equal(signal->control_inputs[0]->def.name, "first");
  for (const char* name = "ab"; *name; ++name) {
    const weir_node_t* node = find(cut.of[1], (char[]){*name, 0});
    assert_int_equal(node->control_count, 1);
    const weir_node_t* arrival = node->control_inputs[0];  // the receiver, or what reads it
    assert_ptr_equal(arrival == recv ? recv : arrival->inputs[0].node, recv);
    assert_string_equal(node->inputs[0].node->def.name, "y");
  }
  cut_free(&cut);
}

static void test_data_and_control_of_one_node(void** state) {
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "0") SQUARE("first", "input: 'x'", "0")
                     SQUARE("a", "input: 'first' input: '^first'", "1"));
  cut_t cut = cut_of(w);
  const weir_node_t* a = find(cut.of[1], "a");
  assert_string_equal(a->inputs[0].node->def.op_name, "_Recv");
  assert_true(count_op(cut.of[1], "_Recv") >= 1);
  assert_int_equal(count_op(cut.of[1], "_Recv"), count_op(cut.of[0], "_Send"));
  cut_free(&cut);
}

// A variable by reference has a transfer for each reader, which begins when all else that the
// reader waits for has come.
static void test_references_are_received_last(void** state) {
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "0") PLACEHOLDER("y", "1")
              "node {name: 'v' op: 'VariableV2' device: '" TASK("0") "' "
              "attr {key: 'dtype' value {type: DT_FLOAT}} attr {key: 'shape' value {shape {}}}}"
              "node {name: 'update' op: 'AssignAdd' input: 'v' input: 'x' device: '" TASK("0") "' "
              "attr {key: 'T' value {type: DT_FLOAT}}}"
              SQUARE("early", "input: 'v'", "1") SQUARE("late", "input: 'v' input: '^update'", "1")
              "node {name: 'product' op: 'Mul' input: 'y' input: 'v' device: '" TASK("1") "' "
              "attr {key: 'T' value {type: DT_FLOAT}}}");
  cut_t cut = cut_of(w);
  assert_int_equal(count_op(cut.of[0], "_Send"),
                   4);  // three of the variable, one of the update's end
  assert_int_equal(count_op(cut.of[1], "_Recv"), 4);
  assert_int_equal(find(cut.of[1], "early")->inputs[0].node->control_count, 0);
  const weir_node_t* late = find(cut.of[1], "late");
  const weir_node_t* recv = late->inputs[0].node;
  assert_int_equal(recv->control_count, 1);
  assert_ptr_equal(recv->control_inputs[0], late->control_inputs[0]);
  const weir_node_t* product = find(cut.of[1], "product");
  assert_int_equal(product->inputs[1].node->control_count, 1);
  assert_ptr_equal(product->inputs[1].node->control_inputs[0], find(cut.of[1], "y"));
  cut_free(&cut);
}

// ---- loops ----

#define FLOAT "attr {key: 'T' value {type: DT_FLOAT}}"
#define LOOP_NODE(name, op, inputs, task, more) \
  "node {name: '" name "' op: '" op "' " inputs " device: '" TASK(task) "' " more "}"
// i = x; while (i < limit) i = body(i), with the body's one node on another task.
#define LOOP(condition)                                                               \
  PLACEHOLDER("x", "0")                                                               \
  PLACEHOLDER("limit", "0")                                                           \
  LOOP_NODE("enter", "Enter", "input: 'x'", "0",                                      \
            FLOAT " attr {key: 'frame_name' value {s: 'loop'}}")                      \
  LOOP_NODE("limit_in", "Enter", "input: 'limit'", "0",                               \
            FLOAT                                                                     \
            " attr {key: 'frame_name' value {s: 'loop'}} "                            \
            "attr {key: 'is_constant' value {b: true}}")                              \
  LOOP_NODE("merge", "Merge", "input: 'enter' input: 'next'", "0",                    \
            FLOAT " attr {key: 'N' value {i: 2}}")                                    \
  LOOP_NODE("less", "Less", "input: 'merge' input: 'limit_in'", "0", FLOAT)           \
  condition LOOP_NODE("switch", "Switch", "input: 'merge' input: 'cond'", "0", FLOAT) \
      LOOP_NODE("body", "Square", "input: 'switch:1'", "1", FLOAT)                    \
          LOOP_NODE("next", "NextIteration", "input: 'body'", "0", FLOAT)             \
              LOOP_NODE("exit", "Exit", "input: 'switch'", "0", FLOAT)                \
                  SQUARE("after", "input: 'exit'", "2")

static void test_loop(void** state) {
  world_t* w = *state;
  import_text(w, LOOP("node {name: 'cond' op: 'LoopCond' input: 'less' device: '" TASK("0") "'}"));
  cut_t cut = cut_of(w);
  assert_int_equal(cut.count, 3);
  // The task of the body gets a loop that turns with the condition and starts its receives.
  const weir_graph_t* body = cut.of[1];
  assert_int_equal(count_op(body, "Enter"), 1);
  assert_int_equal(count_op(body, "Merge"), 1);
  assert_int_equal(count_op(body, "Switch"), 1);
  assert_int_equal(count_op(body, "NextIteration"), 1);
  assert_int_equal(count_op(body, "_Recv"), 2);  // the value and the condition
  assert_int_equal(count_op(body, "_Send"), 1);
  check_attr(only(body, "Enter"), "frame_name", "loop");
  const weir_node_t* merge = only(body, "Merge");
  for (size_t i = 0; i < body->node_count; ++i) {
    const weir_node_t* node = body->nodes[i];
    if (strcmp(node->def.op_name, "_Recv")) continue;
    assert_int_equal(node->control_count, 1);
    assert_ptr_equal(node->control_inputs[0], merge);
  }
  // What leaves the loop is received outside of any.
  assert_int_equal(count_op(cut.of[2], "Enter"), 0);
  assert_int_equal(only(cut.of[2], "_Recv")->control_count, 0);
  cut_free(&cut);
}

// Whoever reads the condition shares it with the small loop.
static void test_the_condition_crosses_once(void** state) {
  world_t* w = *state;
  import_text(
      w, LOOP("node {name: 'cond' op: 'LoopCond' input: 'less' device: '" TASK(
             "0") "'}"
                  "node {name: 'not' op: 'LogicalNot' input: 'cond' device: '" TASK("1") "'}"));
  cut_t cut = cut_of(w);
  const weir_node_t* turn = only(cut.of[1], "Switch");
  assert_int_equal(count_op(cut.of[1], "_Recv"), 2);  // the value and the condition
  assert_ptr_equal(find(cut.of[1], "not")->inputs[0].node, turn->inputs[1].node);
  cut_free(&cut);
}

// Only in a loop on another task do constants wait for something that is in the loop.
static void test_constants_in_loops(void** state) {
  world_t* w = *state;
  import_text(w,
              LOOP("node {name: 'cond' op: 'LoopCond' input: 'less' device: '" TASK("0") "'}")
              "node {name: 'c' op: 'Const' device: '" TASK("0") "' "
              "attr {key: 'dtype' value {type: DT_FLOAT}} "
              "attr {key: 'value' value {tensor {dtype: DT_FLOAT tensor_shape {} float_val: 5}}}}"
              LOOP_NODE("here", "Mul", "input: 'switch:1' input: 'c'", "0", FLOAT)
              LOOP_NODE("there", "Mul", "input: 'body' input: 'c'", "1", FLOAT)
              LOOP_NODE("outside", "Mul", "input: 'after' input: 'c'", "2", FLOAT));
  cut_t cut = cut_of(w);
  const weir_node_t* there = find(cut.of[1], "there");
  assert_int_equal(there->inputs[1].node->control_count, 1);
  assert_ptr_equal(there->inputs[1].node->control_inputs[0], find(cut.of[1], "body"));
  assert_int_equal(find(cut.of[0], "here")->inputs[1].node->control_count, 0);
  assert_int_equal(find(cut.of[2], "outside")->inputs[1].node->control_count, 0);
  cut_free(&cut);
}

static void test_loop_without_condition(void** state) {
  world_t* w = *state;
  import_text(w, LOOP("node {name: 'cond' op: 'Identity' input: 'less' device: '" TASK(
                     "0") "' attr {key: 'T' value {type: DT_BOOL}}}"));
  cut_t cut;
  check_error(try_cut(w, &cut), WEIR_INVALID_ARGUMENT, "has no LoopCond");
  weir_arena_free(&cut.arena);
}

static void test_cycle(void** state) {
  world_t* w = *state;
  import_text(w,
              PLACEHOLDER("x", "0") SQUARE("a", "input: 'x'", "0") SQUARE("b", "input: 'a'", "1"));
  weir_node_t* a = weir_graph_find(w->graph, weir_view_of("a"));
  check_ok(weir_graph_set_input(a, 0, output(weir_graph_find(w->graph, weir_view_of("b")), 0)));
  cut_t cut;
  check_error(try_cut(w, &cut), WEIR_INVALID_ARGUMENT, "cycle");
  weir_arena_free(&cut.arena);
}

static void test_sinks(void** state) {
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "0") SQUARE("a", "input: 'x'", "0")
                     SQUARE("b", "input: 'a'", "0") "node {name: 'n' op: 'NoOp' input: '^a'}");
  weir_node_t** sinks = NULL;
  int count = 0;
  check_ok(weir_graph_sinks(w->graph, &sinks, &count));
  assert_int_equal(count, 2);
  assert_string_equal(sinks[0]->def.name, "b");
  assert_string_equal(sinks[1]->def.name, "n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_one_task),
      TEST(test_transfer),
      TEST(test_a_tensor_crosses_once_a_task),
      TEST(test_outputs_cross_each_for_itself),
      TEST(test_constants_are_copied),
      TEST(test_control_edges_cross_once),
      TEST(test_data_and_control_of_one_node),
      TEST(test_references_are_received_last),
      TEST(test_loop),
      TEST(test_the_condition_crosses_once),
      TEST(test_constants_in_loops),
      TEST(test_loop_without_condition),
      TEST(test_cycle),
      TEST(test_sinks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
