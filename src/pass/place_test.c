// place_test.c — Placement: device names, groups that stay together, soft placement, errors.
#include "pass/place.h"

#include "testing/world.h"

#define PS0 "/job:ps/replica:0/task:0/device:CPU:0"
#define PS1 "/job:ps/replica:0/task:1/device:CPU:0"
#define WORKER0 "/job:worker/replica:0/task:0/device:CPU:0"
#define SECOND "/job:worker/replica:0/task:0/device:CPU:1"

// The first is the master's own.
static const weir_placement_t devices[] = {
    {.device = WORKER0, .type = "CPU", .incarnation = 1, .task = 0},
    {.device = PS0, .type = "CPU", .incarnation = 2, .task = 1},
    {.device = PS1, .type = "CPU", .incarnation = 3, .task = 2},
    {.device = SECOND, .type = "CPU", .incarnation = 4, .task = 0},
};

static weir_status_t* try_place_by(world_t* w, bool is_soft, weir_place_policy_t policy) {
  weir_arena_t arena = {0};
  int* device_of = NULL;
  weir_place_params_t params = {.graph = w->graph,
                                .devices = devices,
                                .device_count = WEIR_COUNT_OF(devices),
                                .allow_soft_placement = is_soft,
                                .policy = policy};
  weir_status_t* status = weir_place(&params, &arena, &device_of);
  for (size_t i = 0; !status && i < w->graph->node_count; ++i)
    assert_string_equal(w->graph->nodes[i]->def.device, devices[device_of[i]].device);
  weir_arena_free(&arena);
  return status;
}

static weir_status_t* try_place(world_t* w, bool is_soft) {
  return try_place_by(w, is_soft, (weir_place_policy_t){.kind = WEIR_PLACE_FIRST});
}

static void check_device(world_t* w, const char* name, const char* device) {
  const weir_node_t* node = weir_graph_find(w->graph, weir_view_of(name));
  assert_non_null(node);
  assert_string_equal(node->def.device, device);
}

#define PLACEHOLDER(name, device)                             \
  "node {name: '" name "' op: 'Placeholder' device: '" device \
  "' attr {key: 'dtype' value {type: DT_FLOAT}}}"
#define SQUARE(name, input, device, more)                                   \
  "node {name: '" name "' op: 'Square' input: '" input "' device: '" device \
  "' "                                                                      \
  "attr {key: 'T' value {type: DT_FLOAT}} " more "}"
#define CLASS(name) "attr {key: '_class' value {list {s: 'loc:@" name "'}}}"

// ---- names ----

static void test_names(void** state) {
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "") SQUARE("any", "x", "", "") SQUARE("job", "x", "/job:ps", "")
                     SQUARE("task", "x", "/job:ps/task:1", "") SQUARE("full", "x", PS1, "")
                         SQUARE("old", "x", "/job:ps/task:1/cpu:0", "")
                             SQUARE("kind", "x", "/device:CPU:0", "")
                                 SQUARE("number", "x", "/job:ps/task:1/device:CPU:*", ""));
  check_ok(try_place(w, false));
  check_device(w, "x", WORKER0);
  check_device(w, "any", WORKER0);
  check_device(w, "job", PS0);
  check_device(w, "task", PS1);
  check_device(w, "full", PS1);
  check_device(w, "old", PS1);
  check_device(w, "kind", WORKER0);
  check_device(w, "number", PS1);
  check_ok(try_place(w, false));  // what has a device keeps it
  check_device(w, "job", PS0);
}

static void test_devices_nobody_has(void** state) {
  static const char* const names[] = {"/job:ps/task:7", "/job:chief", "/job:ps/replica:3"};
  for (size_t i = 0; i < WEIR_COUNT_OF(names); ++i) {
    world_t* w = *state;
    weir_edge_t x = placeholder(w, NULL, WEIR_DTYPE_FLOAT);
    weir_node_t* node = NULL;
    weir_node_params_t params = {
        .op = "Square", .name = "y", .device = names[i], .inputs = WEIR_EDGES(x)};
    check_ok(weir_graph_add(w->graph, &params, &node));
    check_error(try_place(w, false), WEIR_INVALID_ARGUMENT,
                "Cannot assign a device for operation y: {{node y}} was explicitly assigned to");
    // No task stands in for another, whatever it would cost.
    check_error(try_place(w, true), WEIR_INVALID_ARGUMENT, names[i]);
    const weir_place_policy_t by_cost = {.kind = WEIR_PLACE_COST};
    check_error(try_place_by(w, false, by_cost), WEIR_INVALID_ARGUMENT,
                "Cannot assign a device for operation y: {{node y}} was explicitly assigned to");
    check_error(try_place_by(w, true, by_cost), WEIR_INVALID_ARGUMENT, names[i]);
    world_teardown(state);
    world_setup(state);
  }
}

static void test_soft_placement(void** state) {
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "") SQUARE("gpu", "x", "/job:ps/task:1/device:GPU:0", "")
                     SQUARE("third", "x", "/job:ps/task:0/device:CPU:3", ""));
  check_error(try_place(w, false), WEIR_INVALID_ARGUMENT, "GPU:0");
  check_ok(try_place(w, true));
  check_device(w, "gpu", PS1);
  check_device(w, "third", PS0);
}

static void test_bad_names(void** state) {
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "") SQUARE("y", "x", "//nonsense:", ""));
  check_error(try_place(w, true), WEIR_INVALID_ARGUMENT, "Node 'y'");
}

// ---- groups ----

static void test_colocation(void** state) {
  world_t* w = *state;
  import_text(w,
              PLACEHOLDER("x", "") SQUARE("c", "x", "", CLASS("b")) SQUARE("b", "x", "", CLASS("a"))
                  SQUARE("a", "x", PS1, "") SQUARE("lost1", "x", "", CLASS("pruned"))
                      SQUARE("lost2", "x", PS0, CLASS("pruned")));
  check_ok(try_place(w, false));
  check_device(w, "a", PS1);
  check_device(w, "b", PS1);
  check_device(w, "c", PS1);
  check_device(w, "lost1", PS0);
}

static void test_colocation_that_cannot_be(void** state) {
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "") SQUARE("a", "x", "/job:ps/task:1", "")
                     SQUARE("b", "x", "/job:ps/task:0", CLASS("a")));
  check_error(try_place(w, false), WEIR_INVALID_ARGUMENT,
              "Cannot colocate nodes {{colocation_node b}} and {{colocation_node a}}: Cannot merge "
              "devices with incompatible tasks: '/job:ps/task:0' and '/job:ps/task:1'");
  check_ok(try_place(w, true));  // each has its will
  check_device(w, "a", PS1);
  check_device(w, "b", PS0);
}

static void test_references_stay_with_their_variable(void** state) {
  world_t* w = *state;
  import_text(w,
              "node {name: 'v' op: 'VariableV2' device: '/job:ps/task:1' "
              "attr {key: 'dtype' value {type: DT_FLOAT}} attr {key: 'shape' value {shape {}}}}"
              "node {name: 'one' op: 'Const' attr {key: 'dtype' value {type: DT_FLOAT}} "
              "attr {key: 'value' value {tensor {dtype: DT_FLOAT tensor_shape {} float_val: 1}}}}"
              "node {name: 'set' op: 'Assign' input: 'v' input: 'one' "
              "attr {key: 'T' value {type: DT_FLOAT}}}"
              "node {name: 'read' op: 'Identity' input: 'v' "
              "attr {key: 'T' value {type: DT_FLOAT}}}"
              "node {name: 'h' op: 'VarHandleOp' device: '/job:ps/task:0' "
              "attr {key: 'dtype' value {type: DT_FLOAT}} attr {key: 'shape' value {shape {}}}}"
              "node {name: 'add' op: 'AssignAddVariableOp' input: 'h' input: 'one' "
              "attr {key: 'dtype' value {type: DT_FLOAT}}}"
              "node {name: 'value' op: 'ReadVariableOp' device: '/job:worker/task:0' input: 'h' "
              "attr {key: 'dtype' value {type: DT_FLOAT}}}");
  check_ok(try_place(w, false));
  check_device(w, "set", PS1);
  check_device(w, "add", PS0);
  check_device(w, "value", PS0);
  check_device(w, "read", WORKER0);  // takes the value, not the reference
}

// Two nodes that name one variable are on one device, though only the one's readers need it there;
// unless somebody asked for another.
static void test_nodes_of_one_name(void** state) {
#define NAMED(name, device)                                  \
  "node {name: '" name "' op: 'VariableV2' device: '" device \
  "' attr {key: 'dtype' value {type: DT_INT64}} "            \
  "attr {key: 'shape' value {shape {}}} attr {key: 'shared_name' value {s: 'v'}}}"
  static const weir_placement_t both[] = {{.device = WORKER0, .type = "CPU", .incarnation = 1},
                                          {.device = "/job:worker/replica:0/task:0/device:GPU:0",
                                           .type = "GPU",
                                           .has_queue = true,
                                           .preference = 1,
                                           .incarnation = 2}};
  world_t* w = *state;
  import_text(w, NAMED("v", "") NAMED("too", "") NAMED("other", "/device:GPU:0")
                     "node {name: 'gone' op: 'CountUpTo' input: 'v' attr {key: 'T' value {type: "
                     "DT_INT64}} attr {key: 'limit' value {i: 9}}}");
  weir_arena_t arena = {0};
  int* device_of = NULL;
  weir_place_params_t params = {.graph = w->graph, .devices = both, .device_count = 2};
  check_ok(weir_place(&params, &arena, &device_of));
  check_device(w, "v", WORKER0);
  check_device(w, "too", WORKER0);
  check_device(w, "other", both[1].device);
  weir_arena_free(&arena);
#undef NAMED
}

// So are what stages tensors and what asks how many there are, which no kernel holds on either.
static void test_a_staging_area_is_on_one_device(void** state) {
  static const weir_placement_t both[] = {{.device = WORKER0, .type = "CPU", .incarnation = 1},
                                          {.device = "/job:worker/replica:0/task:0/device:GPU:0",
                                           .type = "GPU",
                                           .has_queue = true,
                                           .preference = 1,
                                           .incarnation = 2}};
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "")
              "node {name: 'put' op: 'Stage' input: 'x' attr {key: 'shared_name' value {s: 'a'}} "
              "attr {key: 'dtypes' value {list {type: DT_FLOAT}}}}"
              "node {name: 'size' op: 'StageSize' attr {key: 'shared_name' value {s: 'a'}} "
              "attr {key: 'dtypes' value {list {type: DT_FLOAT}}}}");
  weir_arena_t arena = {0};
  int* device_of = NULL;
  weir_place_params_t params = {.graph = w->graph, .devices = both, .device_count = 2};
  check_ok(weir_place(&params, &arena, &device_of));
  const weir_node_t* put = weir_graph_find(w->graph, weir_view_of("put"));
  check_device(w, "size", put->def.device);
  weir_arena_free(&arena);
}

// A kernel that ends later is on a device that it was written for, which it waits for; borrowed
// ones wait for others, on the host.
static void test_kernels_that_wait_for_their_device(void** state) {
#define CHECKED(name, device)                                              \
  "node {name: '" name "' op: 'CheckNumerics' input: 'x' device: '" device \
  "' attr {key: 'T' value {type: DT_FLOAT}} attr {key: 'message' value {s: 'm'}}}"
  static const weir_placement_t all[] = {{.device = WORKER0, .type = "CPU", .incarnation = 1},
                                         {.device = "/job:worker/replica:0/task:0/device:GPU:0",
                                          .type = "GPU",
                                          .has_queue = true,
                                          .preference = 1,
                                          .incarnation = 2}};
  world_t* w = *state;
  import_text(w, PLACEHOLDER("x", "") CHECKED("check", "")
              "node {name: 'get' op: 'Unstage' attr {key: 'shared_name' value {s: 'a'}} "
              "attr {key: 'dtypes' value {list {type: DT_FLOAT}}}}");
  weir_arena_t arena = {0};
  int* device_of = NULL;
  weir_place_params_t params = {.graph = w->graph, .devices = all, .device_count = 2};
  check_ok(weir_place(&params, &arena, &device_of));
  check_device(w, "check", all[1].device);
  check_device(w, "get", WORKER0);
  weir_arena_free(&arena);
#undef CHECKED
}

// State is where its maker wants it, also where soft placement might give up both wishes: other
// graphs, without that reader, look for it there.
static void test_readers_do_not_move_state(void** state) {
  world_t* w = *state;
  import_text(w,
              "node {name: 'r' op: 'ReadVariableOp' input: 'i' device: '/device:CPU:0' "
              "attr {key: 'dtype' value {type: DT_FLOAT}}}"
              "node {name: 'i' op: 'Identity' input: 'h' "
              "attr {key: 'T' value {type: DT_RESOURCE}}}"
              "node {name: 'h' op: 'VarHandleOp' device: '/device:CPU:1' "
              "attr {key: 'dtype' value {type: DT_FLOAT}} attr {key: 'shape' value {shape {}}}}");
  check_ok(try_place(w, true));
  check_device(w, "h", SECOND);
  check_device(w, "i", SECOND);
  check_device(w, "r", SECOND);
}

static void test_sources_follow_their_reader(void** state) {
  world_t* w = *state;
  import_text(w,
              "node {name: 'one' op: 'Const' attr {key: 'dtype' value {type: DT_FLOAT}} "
              "attr {key: 'value' value {tensor {dtype: DT_FLOAT tensor_shape {} float_val: 1}}}}"
              "node {name: 'two' op: 'Const' attr {key: 'dtype' value {type: DT_FLOAT}} "
              "attr {key: 'value' value {tensor {dtype: DT_FLOAT tensor_shape {} float_val: 2}}}}"
              SQUARE("a", "one", PS1, "") SQUARE("b", "two", PS1, "") SQUARE("c", "two", PS0, "")
              "node {name: 'shape' op: 'Shape' input: 'a' attr {key: 'T' value {type: DT_FLOAT}} "
              "attr {key: 'out_type' value {type: DT_INT32}}}");
  check_ok(try_place(w, false));
  check_device(w, "one", PS1);
  check_device(w, "two", WORKER0);
  check_device(w, "shape", PS1);
}

// A value that crossed there would be waited for in the first iteration, too.
static void test_back_edges_stay_with_their_loop(void** state) {
  world_t* w = *state;
  weir_scope_t *root = w->scope, *away = weir_scope_on(root, PS1);
  loop_nodes_t loop = open_loop(w, "loop", weir_const_int(root, 0), weir_const_float(root, 1),
                                weir_const_int(root, 3), 10);
  w->scope = away;
  weir_edge_t body = OP(w, "Square", loop.x);
  close_loop(w, &loop, body);
  w->scope = root;
  check_ok(try_place(w, false));
  const weir_node_t* next = loop.merge_x->inputs[1].node;
  assert_string_equal(next->def.op_name, "NextIteration");
  assert_string_equal(body.node->def.device, PS1);
  assert_string_equal(loop.merge_x->def.device, WORKER0);
  assert_string_equal(next->def.device, WORKER0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_names),
      TEST(test_devices_nobody_has),
      TEST(test_soft_placement),
      TEST(test_bad_names),
      TEST(test_colocation),
      TEST(test_colocation_that_cannot_be),
      TEST(test_references_stay_with_their_variable),
      TEST(test_nodes_of_one_name),
      TEST(test_a_staging_area_is_on_one_device),
      TEST(test_kernels_that_wait_for_their_device),
      TEST(test_readers_do_not_move_state),
      TEST(test_sources_follow_their_reader),
      TEST(test_back_edges_stay_with_their_loop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
