// split_test.c — Graphs spread over several devices of a process, guard devices among them.
#include <stdlib.h>

#include "base/json.h"
#include "base/perturb.h"
#include "op/kernel.h"
#include "testing/world.h"
#include "weir/file.h"
#include "wire/message.h"
#include "wire/text.h"

// What the last devices of every list have in addition.
static const char* last_option = "";

// Nodes stay what they are: it is they that are counted.
static weir_session_t* open_on(world_t* w, const char* devices, const char* place, bool is_soft) {
  char all[128];
  snprintf(all, sizeof(all), "%s%s", devices ? devices : "cpu", last_option);
  weir_session_options_t options = {.threads = 2,
                                    .devices = all,
                                    .place = place,
                                    .allow_soft_placement = is_soft,
                                    .disabled_passes = "fuse"};
  weir_session_destroy(w->session);
  w->session = NULL;
  check_ok(weir_session_create(w->graph, &options, &w->session));
  return w->session;
}

static weir_node_t* add_on(world_t* w, const char* device, const char* op, const char* name,
                           weir_edges_t inputs, weir_attrs_t attrs) {
  weir_node_params_t params = {.op = op,
                               .name = name ? name : op,
                               .unique_name = !name,
                               .device = device,
                               .inputs = inputs,
                               .attrs = attrs};
  weir_node_t* node = NULL;
  check_ok(weir_graph_add(w->graph, &params, &node));
  return node;
}
#define ON(w, device, op, name, ...) \
  output(add_on((w), (device), (op), (name), WEIR_EDGES(__VA_ARGS__), WEIR_NO_ATTRS), 0)

// ---- what crosses ----

static int count_nodes(weir_session_t* session, weir_edge_t fed, weir_edge_t fetched) {
  weir_feed_t feed = {.edge = fed};
  weir_step_spec_t spec = {.feeds = &feed, .feed_count = 1, .fetches = &fetched, .fetch_count = 1};
  weir_callable_t* callable = NULL;
  check_ok(weir_callable_create(session, &spec, &callable));
  int count = (int)weir_callable_node_count(callable);
  weir_callable_destroy(callable);
  return count;
}

// One copy there for two readers, and one back.
static void test_a_value_crosses_once(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t a = ON(w, "/device:GUARD:0", "Square", "a", x);
  weir_edge_t b = ON(w, "/device:GUARD:0", "Neg", "b", x);
  weir_edge_t sum = ON(w, "/device:GUARD:0", "AddV2", "sum", a, b);
  weir_session_t* session = open_on(w, "cpu:1,guard:1", NULL, false);
  assert_true(feed_float(session, x, 3, sum) == 6);
  assert_int_equal(count_nodes(session, x, sum), 7);  // x, copy, a, b, sum, copy, result
}

// Without a stay at the host.
static void test_from_guard_to_guard(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t a = ON(w, "/device:GUARD:0", "Square", "a", x);
  weir_edge_t b = ON(w, "/device:GUARD:1", "AddV2", "b", a, a);
  weir_edge_t c = ON(w, "/device:CPU:1", "Neg", "c", b);
  weir_session_t* session = open_on(w, "cpu:2,guard:2", NULL, false);
  assert_true(feed_float(session, x, 3, c) == -18);
  assert_int_equal(count_nodes(session, x, c), 8);  // x, copy, a, copy, b, copy, c, result
}

// A constant that is read as a value, not bound to its reader, be that on another device or on its
// own, whose kernels check where their inputs are.
static void check_merged_constant(world_t* w, const char* reader) {
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT), zero = weir_const_float(w->scope, 0);
  weir_node_t* branch = add_on(w, "/device:CPU:0", "Switch", "branch",
                               WEIR_EDGES(x, OP(w, "Greater", x, zero)), WEIR_NO_ATTRS);
  weir_tensor_t* seven = make_float(7);
  weir_node_t* constant = add_on(
      w, "/device:GUARD:0", "Const", "seven", WEIR_NO_EDGES,
      WEIR_ATTRS(weir_attr_tensor("value", seven), weir_attr_type("dtype", WEIR_DTYPE_FLOAT)));
  weir_tensor_release(seven);
  weir_edge_t merged = ON(w, reader, "Merge", "merged", output(branch, 1), output(constant, 0));
  weir_edge_t y = ON(w, reader, "Neg", "y", merged);
  weir_session_t* session = open_on(w, "cpu,guard:2", NULL, false);
  assert_true(feed_float(session, x, -1, y) == -7);
}

static void test_a_constant_crosses(void** state) {
  check_merged_constant(*state, "/device:GUARD:1");
}

static void test_a_constant_is_where_its_device_is(void** state) {
  check_merged_constant(*state, "/device:GUARD:0");
}

// What hands an int32 on leaves it with the host where it is borrowed from the CPU.
static void test_counters_stay_on_the_host(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_INT32), y = placeholder(w, "y", WEIR_DTYPE_FLOAT);
  const weir_node_def_t* counter = &OP(w, "Identity", x).node->def;
  const weir_node_def_t* number = &OP(w, "Identity", y).node->def;
  const weir_kernel_def_t *own = weir_op_kernel(counter, "CPU"),
                          *borrowed = weir_op_kernel(counter, "GPU");
  assert_false(weir_kernel_is_host_arg(counter, own, true, 0));
  assert_true(weir_kernel_is_host_arg(counter, borrowed, true, 0));
  assert_true(weir_kernel_is_host_arg(counter, borrowed, false, 0));
  assert_false(weir_kernel_is_host_arg(number, borrowed, true, 0));
}

// Large enough to be copied in pieces, where that is done.
static void test_between_kinds(void** state) {
  world_t* w = *state;
  enum { COUNT = 600000 };
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t many = weir_const_ints(w->scope, (const int[]){COUNT}, 1);
  weir_edge_t zero = weir_const_int(w->scope, 0);
  weir_edge_t a = ON(w, "/device:GUARD:0", "Fill", "a", many, x);
  weir_edge_t b = ON(w, "/device:TIGHT:0", "Neg", "b", a);
  weir_edge_t c = ON(w, "/device:GUARD:1", "AddV2", "c", b, b);
  weir_edge_t d = ON(w, "/device:CPU:0", "AddV2", "d", c, c);
  weir_edge_t e = ON(w, "/device:GUARD:1", "Sum", "e", d, zero);
  weir_session_t* session = open_on(w, "cpu,tight@memory=1e8,guard:2", NULL, false);
  for (int i = 1; i < 4; ++i) assert_true(feed_float(session, x, (float)i, e) == -4.0f * COUNT * i);
}

// When the executor came to the node.
static double start_of(const weir_json_t* trace, const char* name) {
  const weir_json_t* events = weir_json_find(trace, "traceEvents");
  for (const weir_json_t* event = events->first; event; event = event->next) {
    const weir_json_t* found = weir_json_find(weir_json_find(event, "args"), "name");
    const weir_json_t* start = weir_json_find(event, "ts");  // not of what tells names and counts
    if (found && start && weir_view_is(found->text, name)) return start->number;
  }
  fail_msg("%s was not traced", name);
  return 0;
}

// Another device waits for a copy, and the copy for what its device was given before.
static void test_copies_go_first(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t a = ON(w, "/device:GUARD:0", "Square", "a", x);
  weir_edge_t b = ON(w, "/device:GUARD:0", "Square", "b", a);
  weir_edge_t c = ON(w, "/device:GUARD:0", "Neg", "c", a);
  weir_edge_t there = ON(w, "/device:CPU:0", "Square", "there", a);
  weir_edge_t d = ON(w, "/device:GUARD:0", "AddV2", "d", b, c);
  if (weir_perturb_is_on()) skip();
  weir_tensor_t* results[2] = {NULL, NULL};
  char* json = NULL;
  const weir_json_t* trace = NULL;
  weir_arena_t arena = {0};
  weir_tensor_t* two = make_float(2);
  weir_step_spec_t spec = {WEIR_FEEDS({x, two}), WEIR_FETCHES(d, there)};
  weir_session_options_t options = {
      .threads = 1, .devices = "cpu,guard", .disabled_passes = "fuse"};
  check_ok(weir_session_create(w->graph, &options, &w->session));
  check_ok(weir_session_run_traced(w->session, &spec, results, &json));
  check_ok(weir_json_parse(weir_view_of(json), &arena, &trace));
  assert_true(start_of(trace, "a/copy") < start_of(trace, "b"));
  assert_true(start_of(trace, "a/copy") < start_of(trace, "c"));
  assert_true(float_of(results[0]) == 12);
  weir_tensor_release(results[0]);
  weir_tensor_release(results[1]);
  weir_tensor_release(two);
  weir_buffer_free(json);
  weir_arena_free(&arena);
}

// ---- variants hold tensors ----

static weir_edge_t push_on(world_t* w, const char* device, weir_edge_t x) {
  weir_edge_t any = weir_const_int(w->scope, -1);
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("element_dtype", WEIR_DTYPE_FLOAT));
  weir_edge_t empty =
      output(add_on(w, device, "EmptyTensorList", "empty", WEIR_EDGES(any, any), attrs), 0);
  return ON(w, device, "TensorListPushBack", "push", empty, x);
}

static weir_edge_t pop_on(world_t* w, const char* device, weir_edge_t list, const char* name) {
  weir_edges_t inputs = WEIR_EDGES(list, weir_const_int(w->scope, -1));
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("element_dtype", WEIR_DTYPE_FLOAT));
  return output(add_on(w, device, "TensorListPopBack", name, inputs, attrs), 1);
}

// What a list holds comes along.
static void test_a_list_crosses(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t list = push_on(w, "/device:GUARD:0", ON(w, "/device:GUARD:0", "Square", "a", x));
  const char* devices[] = {"/device:CPU:0", "/device:CPU:1", "/device:GUARD:0", "/device:GUARD:1"};
  weir_session_t* session = open_on(w, "cpu:2,guard:2", NULL, false);
  for (size_t i = 0; i < WEIR_COUNT_OF(devices); ++i) {
    char name[32];
    snprintf(name, sizeof(name), "pop%zu", i);
    weir_edge_t item = pop_on(w, devices[i], list, name);
    snprintf(name, sizeof(name), "y%zu", i);
    weir_edge_t y =
        output(add_on(w, devices[i], "AddV2", name, WEIR_EDGES(item, item), WEIR_NO_ATTRS), 0);
    assert_true(feed_float(session, x, 3, y) == 18);
  }
}

// An optional holds a list, which holds a tensor.
static void test_a_list_within_crosses(void** state) {
  world_t* w = *state;
  const weir_dtype_t type = WEIR_DTYPE_VARIANT;
  const weir_shape_t* shape = &weir_shape_scalar;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t list = push_on(w, "/device:GUARD:0", ON(w, "/device:GUARD:0", "Square", "a", x));
  weir_edge_t some = ON(w, "/device:GUARD:0", "OptionalFromValue", "some", list);
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_types("output_types", &type, 1),
                                  weir_attr_shapes("output_shapes", &shape, 1));
  weir_node_t* value =
      add_on(w, "/device:GUARD:1", "OptionalGetValue", "value", WEIR_EDGES(some), attrs);
  weir_edge_t item = pop_on(w, "/device:CPU:0", output(value, 0), "pop");
  weir_edge_t y = ON(w, "/device:CPU:0", "Neg", "y", item);
  assert_true(feed_float(open_on(w, "cpu:1,guard:2", NULL, false), x, 3, y) == -9);
}

// ---- transfers by name ----

static weir_attrs_t transfer_attrs(const char* type, weir_arena_t* arena) {
  const char* device = "/job:localhost/replica:0/task:0/device:CPU:0";
  weir_named_attr_t attrs[] = {
      weir_attr_type(type, WEIR_DTYPE_FLOAT), weir_attr_string("tensor_name", "t"),
      weir_attr_string("send_device", device), weir_attr_string("recv_device", device),
      weir_attr_int("send_device_incarnation", 1)};
  weir_named_attr_t* copy = weir_arena_array(arena, WEIR_COUNT_OF(attrs), sizeof(*copy));
  assert_non_null(copy);
  memcpy(copy, attrs, sizeof(attrs));
  return (weir_attrs_t){copy, WEIR_COUNT_OF(attrs)};
}

// Whoever receives it can read it.
static void test_sent_from_a_guard(void** state) {
  world_t* w = *state;
  weir_arena_t arena = {0};
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t a = ON(w, "/device:GUARD:0", "Square", "a", x);
  weir_node_t* send =
      add_on(w, "/device:GUARD:0", "_Send", "send", WEIR_EDGES(a), transfer_attrs("T", &arena));
  weir_edge_t got = output(add_on(w, "/device:CPU:0", "_Recv", "recv", WEIR_NO_EDGES,
                                  transfer_attrs("tensor_type", &arena)),
                           0);
  weir_edge_t y = ON(w, "/device:CPU:0", "Neg", "y", got);
  weir_tensor_t *fed = make_float(3), *result = NULL;
  weir_feed_t feed = {.edge = x, .tensor = fed};
  weir_step_spec_t spec = {.feeds = &feed,
                           .feed_count = 1,
                           .fetches = &y,
                           .fetch_count = 1,
                           .targets = &send,
                           .target_count = 1};
  check_ok(weir_session_run(open_on(w, "cpu:1,guard:1", NULL, false), &spec, &result));
  assert_true(*WEIR_TENSOR_DATA(result, float) == -9);
  weir_tensor_release(result);
  weir_tensor_release(fed);
  weir_arena_free(&arena);
}

// ---- loops ----

// A loop and all that is in it, wherever its nodes are.
static void test_loop_anywhere(void** state) {
  world_t* w = *state;
  loop_nodes_t loop = open_loop(w, "frame", weir_const_int(w->scope, 0),
                                weir_const_float(w->scope, 1), weir_const_int(w->scope, 20), 10);
  weir_edge_t grown = OP(w, "AddV2", loop.x, OP(w, "Cos", loop.x));
  close_loop(w, &loop, grown);
  check_scope(w);
  float want = fetch_float(open_on(w, NULL, NULL, false), loop.exit_x);
  for (int seed = 0; seed < 12; ++seed) {
    char place[32];
    snprintf(place, sizeof(place), "random:%d", seed);
    assert_true(fetch_float(open_on(w, "cpu:2,guard:2", place, false), loop.exit_x) == want);
  }
}

// A loop on a branch not taken ends, where the values that enter it are copied, too.
static void test_loop_not_taken(void** state) {
  world_t* w = *state;
#define T " attr {key: 'T' value {type: DT_FLOAT}}"
#define GUARD " device: '/device:GUARD:0'"
  import_text(w,
              "node {name: 'p' op: 'Placeholder' attr {key: 'dtype' value {type: DT_BOOL}}}"
              "node {name: 'x' op: 'Placeholder' attr {key: 'dtype' value {type: DT_FLOAT}}}"
              "node {name: 'branch' op: 'Switch' input: 'x' input: 'p'" T
              "}"
              "node {name: 'enter' op: 'Enter' input: 'branch:1'" T
              " attr {key: 'frame_name' value {s: 'frame'}} device: '/device:CPU:0'}"
              "node {name: 'merge' op: 'Merge' input: 'enter' input: 'next'" T GUARD
              " attr {key: 'N' value {i: 2}}}"
              "node {name: 'less' op: 'Less' input: 'merge' input: 'merge'" T GUARD
              "}"
              "node {name: 'cond' op: 'LoopCond' input: 'less'}"
              "node {name: 'switch' op: 'Switch' input: 'merge' input: 'cond'" T GUARD
              "}"
              "node {name: 'next' op: 'NextIteration' input: 'switch:1'" T GUARD
              "}"
              "node {name: 'exit' op: 'Exit' input: 'switch'" T GUARD
              "}"
              "node {name: 'other' op: 'Identity' input: 'branch:1'" T
              "}"
              "node {name: 'y' op: 'Merge' input: 'branch' input: 'other' input: '^exit'" T
              " attr {key: 'N' value {i: 2}}}");
#undef T
#undef GUARD
  weir_tensor_t *no = make_bool(false), *x = make_float(3), *y = NULL;
  weir_edge_t edges[] = {output(weir_graph_find_node(w->graph, "p"), 0),
                         output(weir_graph_find_node(w->graph, "x"), 0),
                         output(weir_graph_find_node(w->graph, "y"), 0)};
  weir_step_spec_t spec = {WEIR_FEEDS({edges[0], no}, {edges[1], x}), WEIR_FETCHES(edges[2])};
  check_ok(weir_session_run(open_on(w, "cpu:1,guard:1", NULL, false), &spec, &y));
  assert_float_equal(float_of(y), 3, 0);
  weir_tensor_release(y);
  weir_tensor_release(x);
  weir_tensor_release(no);
}

// ---- state ----

static weir_edge_t add_variable(world_t* w, const char* device, const char* name) {
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar),
                                  weir_attr_string("shared_name", "shared"));
  return output(add_on(w, device, "VarHandleOp", name, WEIR_NO_EDGES, attrs), 0);
}

// Each device has state of its own, also under one name.
static void test_state_of_devices(void** state) {
  world_t* w = *state;
  const char* devices[] = {"/device:CPU:0", "/device:CPU:1", "/device:GUARD:0", "/device:GUARD:1"};
  enum { COUNT = WEIR_COUNT_OF(devices) };
  weir_edge_t values[COUNT];
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT));
  weir_session_t* session = open_on(w, "cpu:2,guard:2", NULL, false);
  for (int i = 0; i < COUNT; ++i) {
    char name[32];
    snprintf(name, sizeof(name), "v%d", i);
    weir_edge_t v = add_variable(w, devices[i], name);
    weir_edge_t start = weir_const_float(w->scope, (float)i);
    snprintf(name, sizeof(name), "init%d", i);
    weir_node_t* init = add_on(w, "", "AssignVariableOp", name, WEIR_EDGES(v, start), attrs);
    snprintf(name, sizeof(name), "add%d", i);
    weir_node_t* more = add_on(w, "", "AssignAddVariableOp", name, WEIR_EDGES(v, start), attrs);
    snprintf(name, sizeof(name), "read%d", i);
    values[i] = output(add_on(w, "", "ReadVariableOp", name, WEIR_EDGES(v), attrs), 0);
    check_ok(weir_session_run_target(session, init));
    check_ok(weir_session_run_target(session, more));
  }
  for (int i = 0; i < COUNT; ++i) assert_true(fetch_float(session, values[i]) == 2 * (float)i);
}

// A kernel that fails when its stream gets to it, long after others were submitted that read what
// it promised: the step says so, and none of them has run.
static void test_a_promise_not_kept(void** state) {
  world_t* w = *state;
  const char* guard = "/device:GUARD:0";
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT));
  weir_edge_t i = placeholder(w, "i", WEIR_DTYPE_INT32), zero = weir_const_int(w->scope, 0);
  weir_edge_t v = add_variable(w, guard, "v"), one = weir_const_float(w->scope, 1);
  weir_node_t* init = add_on(w, "", "AssignVariableOp", "init", WEIR_EDGES(v, one), attrs);
  weir_edge_t read = output(add_on(w, "", "ReadVariableOp", "read", WEIR_EDGES(v), attrs), 0);
  weir_edge_t row = OP(w, "ExpandDims", weir_const_float(w->scope, 7), zero);
  weir_edge_t x = ON(w, guard, "GatherV2", "late", row, i, zero);
  for (int k = 0; k < 5; ++k) {
    char name[32];
    snprintf(name, sizeof(name), "more%d", k);
    x = ON(w, guard, "AddV2", name, x, x);
  }
  weir_edge_t inputs[] = {v, x};
  weir_node_t* write = add_on(w, guard, "AssignVariableOp", "write",
                              (weir_edges_t){.items = inputs, .count = 2}, attrs);
  weir_session_t* session = open_on(w, "cpu:1,guard:1", NULL, false);
  check_ok(weir_session_run_target(session, init));
  for (int32_t index = 9; index >= 0; index -= 9) {
    weir_tensor_t* fed = make_int(index);
    weir_feed_t feed = {.edge = i, .tensor = fed};
    weir_step_spec_t spec = {.feeds = &feed, .feed_count = 1, .targets = &write, .target_count = 1};
    weir_status_t* status = weir_session_run(session, &spec, NULL);
    if (index) check_error(status, WEIR_INVALID_ARGUMENT, "'late'");
    else check_ok(status);
    assert_true(fetch_float(session, read) == (index ? 1 : 7 * 32));
    weir_tensor_release(fed);
  }
}

static weir_node_t* add_init(world_t* w, weir_edge_t v, const char* name, float value) {
  weir_edges_t inputs = WEIR_EDGES(v, weir_const_float(w->scope, value));
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT));
  return add_on(w, "", "AssignVariableOp", name, inputs, attrs);
}

static weir_node_t* add_reader(world_t* w, const char* device, weir_edge_t v, weir_node_t* before) {
  weir_node_t* node = add_on(w, device, "Neg", NULL, WEIR_EDGES(v), WEIR_NO_ATTRS);
  if (before) check_ok(weir_graph_add_control(node, before));
  return node;
}

// A reader before a write and one after it, wherever variable and readers are.
static void check_reads_of_reference(world_t* w, const char* home, const char* away) {
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar));
  weir_edge_t v = output(add_on(w, home, "VariableV2", NULL, WEIR_NO_EDGES, attrs), 0);
  weir_edge_t one = weir_const_float(w->scope, 1), two = weir_const_float(w->scope, 2);
  weir_node_t* init = add_on(w, "", "Assign", NULL, WEIR_EDGES(v, one), WEIR_NO_ATTRS);
  weir_node_t* early = add_reader(w, away, v, NULL);
  weir_node_t* write = add_on(w, "", "AssignAdd", NULL, WEIR_EDGES(v, two), WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(write, early));
  weir_edge_t fetches[] = {output(early, 0), output(add_reader(w, away, v, write), 0)};
  weir_tensor_t* results[2];
  weir_step_spec_t spec = {.fetches = fetches, .fetch_count = 2};
  weir_session_t* session = open_on(w, "cpu:2,guard:2", NULL, false);
  check_ok(weir_session_run_target(session, init));
  for (int step = 0; step < 3; ++step) {
    check_ok(weir_session_run(session, &spec, results));
    for (int i = 0; i < 2; ++i) {
      assert_true(*WEIR_TENSOR_DATA(results[i], float) == -(float)(1 + 2 * (step + i)));
      weir_tensor_release(results[i]);
    }
  }
}

static void test_references_read_elsewhere(void** state) {
  const char* devices[] = {"/device:CPU:0", "/device:CPU:1", "/device:GUARD:0", "/device:GUARD:1"};
  for (size_t i = 0; i < WEIR_COUNT_OF(devices); ++i)
    for (size_t k = 0; k < WEIR_COUNT_OF(devices); ++k)
      check_reads_of_reference(*state, devices[i], devices[k]);
}

// Also those that are shared under one name, each on its own device.
static void test_checkpoint_of_all_devices(void** state) {
  world_t* w = *state;
  const char* devices[] = {"/device:CPU:1", "/device:GUARD:0", "/device:GUARD:1", ""};
  enum { COUNT = WEIR_COUNT_OF(devices) };
  weir_edge_t values[COUNT];
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT));
  char folder[] = "/tmp/weir_split_XXXXXX", prefix[64];
  assert_non_null(mkdtemp(folder));
  snprintf(prefix, sizeof(prefix), "%s/model", folder);
  weir_session_t* session = open_on(w, "cpu:2,guard:2", "/device:GUARD:0", false);
  for (int i = 0; i < COUNT; ++i) {
    char name[32];
    snprintf(name, sizeof(name), "v%d", i);
    const bool is_shared = *devices[i];
    weir_attrs_t own = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar));
    weir_edge_t v = is_shared ? add_variable(w, devices[i], name)
                              : output(add_on(w, "", "VarHandleOp", name, WEIR_NO_EDGES, own), 0);
    snprintf(name, sizeof(name), "init%d", i);
    check_ok(weir_session_run_target(session, add_init(w, v, name, (float)i + 1)));
    snprintf(name, sizeof(name), "read%d", i);
    values[i] = output(add_on(w, "", "ReadVariableOp", name, WEIR_EDGES(v), attrs), 0);
  }
  check_ok(weir_checkpoint_save(session, prefix));
  session = open_on(w, "cpu:2,guard:2", "/device:GUARD:0", false);
  check_ok(weir_checkpoint_restore(session, prefix));
  for (int i = 0; i < COUNT; ++i) assert_true(fetch_float(session, values[i]) == (float)i + 1);
  char command[96];
  snprintf(command, sizeof(command), "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

// ---- memory that is not enough ----

// Runs a step that makes n elements, and then four times as many, in a tight device's memory.
static weir_status_t* run_with(weir_session_t* session, weir_edge_t n, int32_t value, weir_edge_t y,
                               weir_tensor_t** out_result) {
  weir_tensor_t* fed = make_int(value);
  weir_feed_t feed = {.edge = n, .tensor = fed};
  weir_step_spec_t spec = {.feeds = &feed, .feed_count = 1, .fetches = &y, .fetch_count = 1};
  weir_status_t* status = weir_session_run(session, &spec, out_result);
  weir_tensor_release(fed);
  return status;
}

// Outputs that are promised take their memory once: there is no room for them twice.
static void test_promised_once(void** state) {
  world_t* w = *state;
  const char* tight = "/device:TIGHT:0";
  weir_edge_t n = placeholder(w, "n", WEIR_DTYPE_INT32), zero = weir_const_int(w->scope, 0);
  weir_edge_t one = weir_const_float(w->scope, 1);
  weir_edge_t row = ON(w, tight, "Fill", "row", OP(w, "ExpandDims", n, zero), one);
  weir_edge_t five = weir_const_ints(w->scope, (const int[]){5, 1}, 2);
  weir_edge_t rows = ON(w, tight, "AddV2", "rows", row, ON(w, tight, "Fill", "column", five, one));
  weir_edge_t y = ON(w, tight, "Sum", "y", rows, zero);
  weir_session_t* session = open_on(w, "cpu:1,tight:1@memory=1e6", NULL, false);
  weir_tensor_t* result = NULL;
  check_ok(run_with(session, n, 25000, y, &result));  // 100000 bytes, and five times as many
  assert_true(WEIR_TENSOR_DATA(result, float)[0] == 10);
  weir_tensor_release(result);
}

// The step that finds too little says where and how little; what it had is there for later ones.
static void test_out_of_device_memory(void** state) {
  world_t* w = *state;
  const char* tight = "/device:TIGHT:0";
  weir_edge_t n = placeholder(w, "n", WEIR_DTYPE_INT32), zero = weir_const_int(w->scope, 0);
  weir_edge_t four = OP(w, "ExpandDims", weir_const_int(w->scope, 4), zero);
  weir_edge_t some =
      ON(w, tight, "Fill", "some", OP(w, "ExpandDims", n, zero), weir_const_float(w->scope, 1));
  weir_edge_t big = ON(w, tight, "Tile", "big", some, four);
  weir_edge_t y = ON(w, tight, "Sum", "y", big, zero);
  weir_session_t* session = open_on(w, "cpu:1,tight:1@memory=1e6", NULL, false);
  const char* said[] = {"Node 'big' (Tile): OOM when", "shape[400000] and type float", tight,
                        "1600000 bytes asked", "of 1000000 in use"};
  for (int round = 0; round < 10; ++round) {  // a leak would leave nothing
    weir_tensor_t* result = NULL;
    weir_status_t* status = run_with(session, n, 100000, y, &result);
    for (size_t i = 0; i < WEIR_COUNT_OF(said); ++i)
      if (!status || !strstr(weir_status_message(status), said[i]))
        fail_msg("'%s' is not in %s", said[i], status ? weir_status_message(status) : "OK");
    check_error(status, WEIR_RESOURCE_EXHAUSTED, "OOM");
    check_ok(run_with(session, n, 10000, y, &result));
    assert_true(WEIR_TENSOR_DATA(result, float)[0] == 40000);
    weir_tensor_release(result);
  }
}

// ---- what cannot be ----

static void test_devices_that_are_not_there(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = ON(w, "/device:GPU:0", "Square", "y", x);
  weir_tensor_t *fed = make_float(3), *result = NULL;
  weir_feed_t feed = {.edge = x, .tensor = fed};
  weir_step_spec_t spec = {.feeds = &feed, .feed_count = 1, .fetches = &y, .fetch_count = 1};
  check_error(weir_session_run(open_on(w, NULL, NULL, false), &spec, &result),
              WEIR_INVALID_ARGUMENT, "explicitly assigned to /device:GPU:0");
  assert_true(feed_float(open_on(w, NULL, NULL, true), x, 3, y) == 9);
  weir_tensor_release(fed);
}

// What waits for others has no place in a device's queue.
static void test_a_queue_stays_on_the_host(void** state) {
  world_t* w = *state;
  queue_nodes_t q = add_queue(w, "q", 4);
  weir_session_t* session = open_on(w, "cpu:1,guard:1", "/device:GUARD:0", false);
  enqueue_float(session, &q, 5);
  assert_true(fetch_float(session, OP(w, "Square", q.value)) == 25);
}

static void test_bad_options(void** state) {
  world_t* w = *state;
  weir_session_t* session = NULL;
  weir_session_options_t options = {.devices = "cpu:2,tpu:1"};
  check_error(weir_session_create(w->graph, &options, &session), WEIR_INVALID_ARGUMENT, "tpu");
  options = (weir_session_options_t){.place = "anywhere"};
  check_error(weir_session_create(w->graph, &options, &session), WEIR_INVALID_ARGUMENT, "anywhere");
  options = (weir_session_options_t){.place = "cost:/no/such/trace.json"};
  check_error(weir_session_create(w->graph, &options, &session), WEIR_NOT_FOUND, "trace.json");
}

// ---- traces ----

// What RunMetadata says of |name|, up to the next node; in |text|.
static char* stats_of(weir_strbuf_t* text, const char* name) {
  char key[64];
  snprintf(key, sizeof(key), "node_name: \"%s\"\n", name);
  char* from = strstr(text->data, key);
  if (!from) fail_msg("nothing of %s in\n%s", name, text->data);
  char* end = strstr(from + 1, "node_name:");
  char* copy = weir_strndup(from, end ? (size_t)(end - from) : strlen(from));
  assert_non_null(copy);
  return copy;
}

static void check_stats(weir_strbuf_t* text, const char* name, const char* expected) {
  char* stats = stats_of(text, name);
  if (!strstr(stats, expected)) fail_msg("'%s' is not in\n%s", expected, stats);
  weir_free(stats);
}

// Memory is counted where it is taken: by the executor where an output is promised (a), by the
// stream's thread where it is not (b, of which one element in four is there), and by copies.
static void test_memory_in_traces(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t a = ON(w, "/device:GUARD:0", "Neg", "a", x);
  weir_edge_t b = ON(w, "/device:GUARD:0", "Where", "b", a);
  weir_session_t* session = open_on(w, "cpu:1,guard:1", NULL, false);
  weir_tensor_t *fed = FLOATS(0, 1, 0, 0), *result = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({x, fed}), WEIR_FETCHES(b)};
  char* metadata = NULL;
  size_t size = 0;
  weir_strbuf_t text = {0};
  check_ok(weir_session_run_with(session, &spec, &(weir_run_options_t){.trace = true}, &result,
                                 &metadata, &size));
  check_ok(weir_text_print(&weir_message_run_metadata, weir_view(metadata, size), &text));
#define USED(name, bytes)                                                       \
  "memory {\n        allocator_name: \"" name "\"\n        total_bytes: " bytes \
  "\n"                                                                          \
  "        peak_bytes: " bytes "\n        live_bytes: " bytes "\n"
  check_stats(&text, "_arg_x_0_0/copy", USED("GUARD", "16"));
  check_stats(&text, "a", USED("GUARD", "16"));
  check_stats(&text, "b", USED("GUARD", "8"));
  check_stats(&text, "b/copy", USED("cpu", "8"));
#undef USED
  weir_strbuf_free(&text);
  weir_buffer_free(metadata);
  weir_tensor_release(result);
  weir_tensor_release(fed);
}

static int64_t stat_of(weir_strbuf_t* text, const char* name, const char* field) {
  char* stats = stats_of(text, name);
  const char* at = strstr(stats, field);
  if (!at) fail_msg("no %s in\n%s", field, stats);
  int64_t value = strtoll(at + strlen(field), NULL, 10);
  weir_free(stats);
  return value;
}

// A node of a stream starts when its turn comes, not when it was submitted: what it waits for is
// not what it costs.
static void test_times_in_traces(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t a = ON(w, "/device:GUARD:0", "Neg", "a", x);
  weir_edge_t b = ON(w, "/device:GUARD:0", "Abs", "b", a);
  weir_edge_t c = ON(w, "/device:GUARD:0", "Where", "c", b);
  weir_session_t* session = open_on(w, "cpu:1,guard:1@speed=0.001", NULL, false);
  weir_tensor_t *fed = FLOATS(0, 1, 0, 0), *result = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({x, fed}), WEIR_FETCHES(c)};
  char* metadata = NULL;
  size_t size = 0;
  weir_strbuf_t text = {0};
  check_ok(weir_session_run_with(session, &spec, &(weir_run_options_t){.trace = true}, &result,
                                 &metadata, &size));
  check_ok(weir_text_print(&weir_message_run_metadata, weir_view(metadata, size), &text));
  const char* const names[] = {"a", "b", "c"};
  int64_t end = 0;
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    int64_t start = stat_of(&text, names[i], "all_start_nanos: ");
    assert_true(start >= end);
    end = start + stat_of(&text, names[i], "all_end_rel_nanos: ");
  }
  weir_strbuf_free(&text);
  weir_buffer_free(metadata);
  weir_tensor_release(result);
  weir_tensor_release(fed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
      TEST(test_a_value_crosses_once),
      TEST(test_from_guard_to_guard),
      TEST(test_a_constant_crosses),
      TEST(test_a_constant_is_where_its_device_is),
      TEST(test_counters_stay_on_the_host),
      TEST(test_between_kinds),
      TEST(test_copies_go_first),
      TEST(test_a_list_crosses),
      TEST(test_a_list_within_crosses),
      TEST(test_sent_from_a_guard),
      TEST(test_loop_anywhere),
      TEST(test_loop_not_taken),
      TEST(test_state_of_devices),
      TEST(test_references_read_elsewhere),
      TEST(test_checkpoint_of_all_devices),
      TEST(test_a_promise_not_kept),
      TEST(test_promised_once),
      TEST(test_out_of_device_memory),
      TEST(test_devices_that_are_not_there),
      TEST(test_a_queue_stays_on_the_host),
      TEST(test_bad_options),
      TEST(test_memory_in_traces),
      TEST(test_times_in_traces),
  };
  int failures = cmocka_run_group_tests(tests, NULL, NULL);
  last_option = "@staged";
  return failures + cmocka_run_group_tests(tests, NULL, NULL);
}
