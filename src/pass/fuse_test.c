// fuse_test.c — Which nodes are fused, and which are left alone.
#include <math.h>
#include <stdlib.h>

#include "pass/pass.h"
#include "testing/world.h"

typedef struct step_t {
  weir_edge_t fetches[4];
  int fetch_count;
  weir_node_t* target;
} step_t;

// Nodes of the plan, results and arguments included; fed are all placeholders.
static int count_nodes(world_t* w, const char* disabled, const step_t* step) {
  weir_session_options_t options = {.threads = 1, .disabled_passes = disabled, .devices = "cpu:2"};
  weir_session_t* session = NULL;
  weir_callable_t* callable = NULL;
  weir_feed_t feeds[8];
  int feed_count = 0;
  for (size_t i = 0; i < w->graph->node_count; ++i) {
    if (strcmp(w->graph->nodes[i]->def.op_name, "Placeholder") == 0)
      feeds[feed_count++] = (weir_feed_t){.edge = output(w->graph->nodes[i], 0)};
  }
  weir_step_spec_t spec = {.feeds = feeds,
                           .feed_count = feed_count,
                           .fetches = step->fetches,
                           .fetch_count = step->fetch_count,
                           .targets = &step->target,
                           .target_count = step->target ? 1 : 0};
  check_ok(weir_session_create(w->graph, &options, &session));
  check_ok(weir_callable_create(session, &spec, &callable));
  int count = (int)weir_callable_node_count(callable);
  weir_callable_destroy(callable);
  weir_session_destroy(session);
  return count;
}

// How many nodes fewer there are with the pass than without.
static int saved(world_t* w, const step_t* step) {
  return count_nodes(w, "fuse", step) - count_nodes(w, NULL, step);
}
#define FETCH(...)                     \
  (&(step_t){.fetches = {__VA_ARGS__}, \
             .fetch_count = (int)(sizeof((weir_edge_t[]){__VA_ARGS__}) / sizeof(weir_edge_t))})

static void test_chain(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t one = OP(w, "Exp", x);
  assert_int_equal(saved(w, FETCH(one)), 0);  // nothing to join
  weir_edge_t two = OP(w, "Relu", one);
  assert_int_equal(saved(w, FETCH(two)), 1);
  weir_edge_t five = OP(w, "Tanh", OP(w, "Square", OP(w, "Neg", two)));
  assert_int_equal(saved(w, FETCH(five)), 4);
  weir_session_t* session = open_session(w, 1);
  assert_true(feed_float(session, x, 0, five) == tanhf(1));
}

static void test_diamond(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = placeholder(w, "y", WEIR_DTYPE_FLOAT);
  weir_edge_t top = OP(w, "Mul", x, y);
  weir_edge_t join = OP(w, "AddV2", OP(w, "Exp", top), OP(w, "Mul", OP(w, "Neg", top), x));
  assert_int_equal(saved(w, FETCH(join)), 4);
}

// A matrix product between elementwise nodes keeps them apart.
static void test_apart(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t before = OP(w, "Exp", x);
  weir_edge_t product = OP(w, "MatMul", before, before);
  weir_edge_t after = OP(w, "AddV2", OP(w, "Neg", product), before);
  assert_int_equal(saved(w, FETCH(after)), 1);  // Neg and AddV2
}

// Values that others read are outputs, too.
static void test_outputs(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = placeholder(w, "y", WEIR_DTYPE_FLOAT);
  weir_edge_t gate = OP(w, "Sigmoid", x);
  weir_edge_t cell = OP(w, "AddV2", OP(w, "Mul", gate, y), x);
  weir_edge_t out = OP(w, "Mul", OP(w, "Tanh", cell), gate);
  weir_edge_t gates = OP(w, "MatMul", gate, gate);
  weir_edge_t cells = OP(w, "MatMul", cell, cell);
  assert_int_equal(saved(w, FETCH(out, gates, cells)), 4);
  weir_session_t* session = open_session(w, 1);
  const int64_t dims[] = {1, 1};
  const float values[] = {0.0f, 2.0f};
  weir_tensor_t* fed[] = {make_tensor(WEIR_DTYPE_FLOAT, 2, dims, &values[0]),
                          make_tensor(WEIR_DTYPE_FLOAT, 2, dims, &values[1])};
  weir_tensor_t* results[3] = {NULL};
  check_ok(weir_session_run(
      session,
      &(weir_step_spec_t){WEIR_FEEDS({x, fed[0]}, {y, fed[1]}), WEIR_FETCHES(out, gates, cells)},
      results));
  assert_true(float_of(results[1]) == 0.25f && float_of(results[2]) == 1);
  assert_true(fabsf(float_of(results[0]) - 0.5f * tanhf(1)) < 1e-6f);
  for (int i = 0; i < 3; ++i) weir_tensor_release(results[i]);
  for (int i = 0; i < 2; ++i) weir_tensor_release(fed[i]);
}

// Three groups, each reading another by way of a product: joined two by two they would wait for
// each other.
static void test_no_circles(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t a = OP(w, "Exp", x);
  weir_edge_t b = OP(w, "Sin", x);
  weir_edge_t c = OP(w, "AddV2", OP(w, "Neg", a), OP(w, "MatMul", b, b));
  weir_edge_t d = OP(w, "Sub", OP(w, "Abs", b), OP(w, "MatMul", a, a));
  // {a, Neg, c} and {b, Abs, d}: only one of the two may be whole.
  assert_int_equal(saved(w, FETCH(c, d)), 3);
}

// An enqueue of what is read again beside what was dequeued: the way between them is no edge.
static void test_queues(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  queue_nodes_t q = add_queue(w, "q", 1);
  weir_edge_t first = OP(w, "Exp", x);
  weir_node_t* enqueue = add(w, "QueueEnqueueV2", NULL, WEIR_EDGES(q.handle, first), WEIR_NO_ATTRS);
  weir_edge_t sum = OP(w, "AddV2", first, q.value);
  weir_session_t* session = open_session(w, 2);
  weir_tensor_t *fed = make_float(0), *result = NULL;
  weir_run_options_t options = {.timeout_ms = 5000};
  check_ok(weir_session_run_with(
      session, &(weir_step_spec_t){WEIR_FEEDS({x, fed}), WEIR_FETCHES(sum), WEIR_TARGETS(enqueue)},
      &options, &result, NULL, NULL));
  assert_true(float_of(result) == 2);
  weir_tensor_release(fed);
  weir_tensor_release(result);
}

static void test_disabled(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = OP(w, "Relu", OP(w, "Exp", x));
  int without = count_nodes(w, "fuse", FETCH(y));
  setenv("WEIR_DISABLE_PASSES", "fuse", 1);
  assert_int_equal(count_nodes(w, NULL, FETCH(y)), without);
  unsetenv("WEIR_DISABLE_PASSES");
  assert_int_equal(count_nodes(w, NULL, FETCH(y)), without - 1);
}

// ---- what keeps a node out ----

// A value that is fetched must be there, and so must what a target is.
static void test_values_that_are_wanted(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t middle = OP(w, "Exp", x);
  weir_edge_t last = OP(w, "Neg", middle);
  weir_session_t* session = open_session(w, 1);
  weir_tensor_t* fed = make_float(0);
  weir_tensor_t* results[2] = {NULL, NULL};
  check_ok(weir_session_run(
      session, &(weir_step_spec_t){WEIR_FEEDS({x, fed}), WEIR_FETCHES(last, middle)}, results));
  assert_true(float_of(results[0]) == -1 && float_of(results[1]) == 1);
  weir_tensor_release(results[0]);
  weir_tensor_release(results[1]);
  weir_tensor_release(fed);
  assert_int_equal(saved(w, FETCH(last, middle)), 1);
  step_t step = {.fetches = {last}, .fetch_count = 1, .target = middle.node};
  assert_int_equal(saved(w, &step), 1);
}

static void test_control_edges(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = placeholder(w, "y", WEIR_DTYPE_FLOAT);
  weir_edge_t other = OP(w, "Sign", y);
  weir_edge_t first = OP(w, "Exp", x);
  weir_edge_t last = OP(w, "Neg", first);
  check_ok(weir_graph_add_control(last.node, other.node));
  assert_int_equal(saved(w, FETCH(last, other)), 2);
  // Whoever waits for the root waits for all of it.
  weir_edge_t more = OP(w, "Tanh", OP(w, "Abs", x));
  weir_node_t* waits = add(w, "NoOp", "waits", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(waits, more.node));
  step_t step = {.fetches = {more}, .fetch_count = 1, .target = waits};
  assert_int_equal(saved(w, &step), 1);
  check_ok(weir_graph_add_control(waits, more.node->inputs[0].node));
  assert_int_equal(saved(w, &step), 1);
  // Unless what waits for the first is what the last waits for.
  weir_edge_t start = OP(w, "Abs", y);
  weir_node_t* between = add(w, "Timestamp", "between", WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(between, start.node));
  weir_edge_t late = OP(w, "Identity", y);
  check_ok(weir_graph_add_control(late.node, between));
  assert_int_equal(saved(w, FETCH(OP(w, "AddV2", start, late))), 0);
}

// A value held back by a control edge to |barrier|.
static weir_edge_t held(world_t* w, weir_edge_t x, weir_node_t* barrier) {
  weir_edge_t y = OP(w, "Identity", x);
  check_ok(weir_graph_add_control(y.node, barrier));
  return y;
}

static weir_node_t* barrier_of(world_t* w, weir_edge_t x, weir_edge_t y) {
  weir_node_t* barrier = add(w, "NoOp", NULL, WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(barrier, x.node));
  check_ok(weir_graph_add_control(barrier, y.node));
  return barrier;
}

// Gradients of one node wait for each other before any of them is used.
static void test_tuples(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t dx = OP(w, "Exp", x), dy = OP(w, "Square", x);
  weir_node_t* barrier = barrier_of(w, dx, dy);
  weir_edge_t hx = held(w, dx, barrier), hy = held(w, dy, barrier);
  weir_edge_t sum = OP(w, "AddV2", OP(w, "Neg", hx), OP(w, "Tanh", hy));
  assert_int_equal(saved(w, FETCH(sum)), 7);  // all but one of 8
  assert_int_equal(saved(w, FETCH(sum, hx, dx)), 7);
  weir_session_t* session = open_session(w, 1);
  weir_tensor_t *fed = make_float(0), *results[3] = {NULL};
  check_ok(weir_session_run(
      session, &(weir_step_spec_t){WEIR_FEEDS({x, fed}), WEIR_FETCHES(sum, hx, dx)}, results));
  assert_true(float_of(results[0]) == -1 && float_of(results[1]) == 1 && float_of(results[2]) == 1);
  for (int i = 0; i < 3; ++i) weir_tensor_release(results[i]);
  weir_tensor_release(fed);
  // One that is made of the other is between.
  weir_edge_t product = OP(w, "MatMul", dx, dx);
  weir_edge_t late = held(w, dx, barrier_of(w, dx, product));
  assert_int_equal(saved(w, FETCH(OP(w, "Neg", late), product)), 0);
}

// A value from outside that is held back for others, too, stays.
static void test_held_for_others(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t product = OP(w, "MatMul", x, x);
  weir_edge_t value = held(w, product, OP(w, "Relu", product).node);
  weir_edge_t both = OP(w, "Tanh", OP(w, "Exp", value));
  assert_int_equal(saved(w, FETCH(both, OP(w, "MatMul", value, x))), 1);
}

// An enqueue of what is read again after a dequeue: what it waits for must not be the dequeue.
static void test_held_by_a_queue(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  queue_nodes_t q = add_queue(w, "q", 1);
  weir_edge_t first = OP(w, "Exp", x);
  weir_node_t* enqueue = add(w, "QueueEnqueueV2", NULL, WEIR_EDGES(q.handle, first), WEIR_NO_ATTRS);
  weir_edge_t last = OP(w, "Neg", held(w, first, q.value.node));
  weir_session_t* session = open_session(w, 2);
  weir_tensor_t *fed = make_float(0), *result = NULL;
  weir_run_options_t options = {.timeout_ms = 5000};
  check_ok(weir_session_run_with(
      session, &(weir_step_spec_t){WEIR_FEEDS({x, fed}), WEIR_FETCHES(last), WEIR_TARGETS(enqueue)},
      &options, &result, NULL, NULL));
  assert_true(float_of(result) == -1);
  weir_tensor_release(fed);
  weir_tensor_release(result);
}

static void test_sums(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = placeholder(w, "y", WEIR_DTYPE_FLOAT);
  assert_int_equal(saved(w, FETCH(OP(w, "Exp", OP(w, "AddN", OP(w, "Neg", x), y)))), 2);
  assert_int_equal(saved(w, FETCH(OP(w, "Exp", OP(w, "AddN", x, y, x)))), 0);
}

// Integers have no quotient by zero.
static void test_what_may_fail(void** state) {
  world_t* w = *state;
  weir_edge_t i = placeholder(w, "i", WEIR_DTYPE_INT32);
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t integer = OP(w, "Neg", OP(w, "FloorDiv", i, i));
  assert_int_equal(saved(w, FETCH(integer)), 0);
  weir_edge_t number = OP(w, "Neg", OP(w, "FloorDiv", x, x));
  assert_int_equal(saved(w, FETCH(number)), 1);
}

// Equal may be told to answer "no" for shapes that do not fit.
static void test_attributes(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = placeholder(w, "y", WEIR_DTYPE_FLOAT);
  weir_edge_t strict = OP(w, "LogicalNot", OP(w, "Equal", x, y));
  assert_int_equal(saved(w, FETCH(strict)), 1);
  weir_edge_t lax = output(add(w, "Equal", NULL, WEIR_EDGES(x, y),
                               WEIR_ATTRS(weir_attr_bool("incompatible_shape_error", false))),
                           0);
  assert_int_equal(saved(w, FETCH(OP(w, "LogicalNot", lax))), 0);
  weir_edge_t leaky = output(
      add(w, "LeakyRelu", NULL, WEIR_EDGES(x), WEIR_ATTRS(weir_attr_float("alpha", 0.5f))), 0);
  weir_edge_t halved = OP(w, "Neg", leaky);
  weir_edge_t last = OP(w, "Relu", OP(w, "BiasAdd", x, y));
  assert_int_equal(saved(w, FETCH(last)), 1);
  weir_edge_t second = output(add(w, "BiasAdd", NULL, WEIR_EDGES(x, y),
                                  WEIR_ATTRS(weir_attr_string("data_format", "NCHW"))),
                              0);
  assert_int_equal(saved(w, FETCH(OP(w, "Relu", second))), 0);
  assert_int_equal(saved(w, FETCH(halved)), 1);
  assert_true(feed_float(open_session(w, 1), x, -3, halved) == 1.5f);
}

static weir_edge_t add_all_on(world_t* w, const char* device, const char* op, weir_edges_t inputs) {
  weir_node_params_t params = {
      .op = op, .name = op, .unique_name = true, .device = device, .inputs = inputs};
  weir_node_t* node = NULL;
  check_ok(weir_graph_add(w->graph, &params, &node));
  return output(node, 0);
}
static weir_edge_t add_on(world_t* w, const char* device, const char* op, weir_edge_t x) {
  return add_all_on(w, device, op, (weir_edges_t){.items = &x, .count = 1});
}
static weir_edge_t add_two_on(world_t* w, const char* device, const char* op,
                              const weir_edge_t* inputs) {
  return add_all_on(w, device, op, (weir_edges_t){.items = inputs, .count = 2});
}

static void test_devices(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t here = add_on(w, "/device:CPU:1", "Exp", x);
  weir_edge_t there = add_on(w, "/device:CPU:0", "Neg", here);
  assert_int_equal(saved(w, FETCH(there)), 0);
  weir_edge_t both = add_on(w, "/device:CPU:1", "Neg", here);
  assert_int_equal(saved(w, FETCH(both)), 1);
}

// Nodes have their places by now: what they were to be with does not matter any more.
static void test_colocation(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_view_t loc[] = {weir_view_of("loc:@x")};
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_strings("_class", loc, 1));
  weir_edge_t held = output(add(w, "Exp", NULL, WEIR_EDGES(x), attrs), 0);
  assert_int_equal(saved(w, FETCH(OP(w, "Neg", held))), 1);
  weir_edge_t both = output(add(w, "Neg", NULL, WEIR_EDGES(held), attrs), 0);
  assert_int_equal(saved(w, FETCH(both)), 1);
}

// Nodes of |op|, a fused one, among those that a step of |fetch| needs.
static int count_of(world_t* w, const char* op, weir_edge_t fetch) {
  weir_graph_t* copy = NULL;
  weir_node_t** targets = NULL;
  weir_edge_t feeds[4];
  int feed_count = 0, count = 0;
  for (size_t i = 0; i < w->graph->node_count; ++i) {
    if (strcmp(w->graph->nodes[i]->def.op_name, "Placeholder") == 0)
      feeds[feed_count++] = output(w->graph->nodes[i], 0);
  }
  weir_prune_params_t params = {.graph = w->graph,
                                .feeds = {.items = feeds, .count = feed_count},
                                .fetches = {.items = &fetch, .count = 1}};
  check_ok(weir_prune(&params, &copy, &targets));
  weir_pass_ctx_t ctx = {.graph = copy};
  check_ok(weir_pass_fuse(&ctx));
  for (size_t i = 0; i < copy->node_count; ++i)
    count += strcmp(copy->nodes[i]->def.op_name, op) == 0;
  weir_graph_release(copy);
  return count;
}

static int count_fused(world_t* w, weir_edge_t fetch) { return count_of(w, "_Fused", fetch); }

// Nodes are fused where their kind of device has a kernel for it and holds their values.
static void test_kinds_of_devices(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t i = placeholder(w, "i", WEIR_DTYPE_INT32);
  static const char gpu[] = "/job:localhost/replica:0/task:0/device:GPU:0";
  assert_int_equal(count_fused(w, add_on(w, gpu, "Neg", add_on(w, gpu, "Exp", x))), 1);
  assert_int_equal(count_fused(w, add_on(w, "/device:GPU:1", "Neg", add_on(w, gpu, "Exp", x))), 0);
  assert_int_equal(count_fused(w, add_on(w, gpu, "OnesLike", add_on(w, gpu, "Exp", x))), 0);
  assert_int_equal(
      count_fused(w, add_on(w, "/device:TPU:0", "Neg", add_on(w, "/device:TPU:0", "Exp", x))), 0);
  weir_edge_t here[2] = {i, i}, there[2] = {i, i};
  for (int k = 0; k < 2; ++k) {
    here[0] = add_two_on(w, "/device:CPU:0", "AddV2", here);
    there[0] = add_two_on(w, gpu, "AddV2", there);
  }
  assert_int_equal(count_fused(w, here[0]), 1);
  assert_int_equal(count_fused(w, there[0]), 0);  // a GPU's int32 are the host's
}

// A sum over all but the channels is taken along where its kind of device does that: with what
// makes its elements, though others read them, not with what reads it, and one at most.
static void test_reductions(void** state) {
  world_t* w = *state;
  static const char gpu[] = "/device:GPU:0", cpu[] = "/device:CPU:0", sum[] = "BiasAddGrad";
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t i = placeholder(w, "i", WEIR_DTYPE_INT64);
  weir_edge_t value = add_on(w, gpu, "Neg", x), total = add_on(w, gpu, sum, value);
  assert_int_equal(count_of(w, "_FusedReduce", total), 1);
  weir_edge_t both[2] = {add_on(w, gpu, "Softmax", value), total};
  assert_int_equal(count_of(w, "_FusedReduce", add_two_on(w, gpu, "Pack", both)), 1);
  assert_int_equal(count_of(w, "_FusedReduce", add_on(w, gpu, sum, x)), 0);
  assert_int_equal(count_of(w, "_FusedReduce", add_on(w, gpu, sum, add_on(w, gpu, "Neg", i))), 0);
  assert_int_equal(count_of(w, "_FusedReduce", add_on(w, cpu, sum, add_on(w, cpu, "Neg", x))), 0);
  weir_edge_t after = add_on(w, gpu, "Neg", add_on(w, gpu, "Exp", total));
  assert_int_equal(count_of(w, "_FusedReduce", after), 1);
  assert_int_equal(count_of(w, "_Fused", after), 1);
  weir_edge_t beside[2] = {value, total};
  assert_int_equal(count_of(w, "_FusedReduce", add_two_on(w, gpu, "Mul", beside)), 1);
  weir_edge_t sums[2] = {total, add_on(w, gpu, sum, add_on(w, gpu, "Exp", value))};
  weir_edge_t apart = add_two_on(w, gpu, "Pack", sums);
  assert_int_equal(count_of(w, "_FusedReduce", apart), 1);
}

// What reads a reference reads it in its turn.
static void test_references(void** state) {
  world_t* w = *state;
  int64_t none = 0;
  weir_edge_t v =
      output(add(w, "VariableV2", "v", WEIR_NO_EDGES,
                 WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                            weir_attr_shape("shape", weir_shape_make(&w->graph->arena, 0, &none)))),
             0);
  weir_edge_t direct = OP(w, "Exp", v);
  assert_int_equal(saved(w, FETCH(OP(w, "Neg", direct))), 0);
  weir_edge_t value = OP(w, "Identity", v);
  assert_int_equal(saved(w, FETCH(OP(w, "Neg", OP(w, "Exp", value)))), 1);
}

// ---- branches and loops ----

// What one branch computes is fused with what is dead when it is, not with what may outlive it.
static void test_branches(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t p = placeholder(w, "p", WEIR_DTYPE_BOOL);
  weir_edge_t q = placeholder(w, "q", WEIR_DTYPE_BOOL);
  weir_node_t* first = add(w, "Switch", NULL, WEIR_EDGES(x, p), WEIR_NO_ATTRS);
  weir_node_t* second = add(w, "Switch", NULL, WEIR_EDGES(OP(w, "Neg", x), p), WEIR_NO_ATTRS);
  weir_node_t* other = add(w, "Switch", NULL, WEIR_EDGES(x, q), WEIR_NO_ATTRS);
  weir_edge_t exp = OP(w, "Exp", output(first, 1));
  weir_edge_t alike = OP(w, "AddV2", exp, output(second, 1));
  weir_edge_t unlike = OP(w, "AddV2", OP(w, "Exp", output(first, 1)), output(other, 1));
  weir_edge_t dead = OP(w, "AddV2", OP(w, "Exp", output(first, 1)), output(second, 0));
  weir_edge_t merges[] = {OP(w, "Merge", alike, output(first, 0)), OP(w, "Merge", unlike, x),
                          OP(w, "Merge", dead, x)};
  assert_int_equal(saved(w, FETCH(merges[0])), 1);
  assert_int_equal(saved(w, FETCH(merges[1])), 0);
  assert_int_equal(saved(w, FETCH(merges[2])), 0);
  // What all see is not computed in the branch alone.
  weir_edge_t seen = OP(w, "Exp", x);
  weir_edge_t in_branch = OP(w, "AddV2", output(first, 1), seen);
  assert_int_equal(saved(w, FETCH(OP(w, "Merge", in_branch, output(first, 0)))), 0);
}

// while (i < n) { i += 1; x = tanh(x * limit) + i }: the variables' Merges are alive together.
static void test_loops(void** state) {
  world_t* w = *state;
  weir_edge_t n = placeholder(w, "n", WEIR_DTYPE_INT32);
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  loop_nodes_t loop = open_loop(w, "loop", weir_const_int(w->scope, 0), x, n, 10);
  weir_edge_t i = output(add(w, "Cast", NULL, WEIR_EDGES(loop.i),
                             WEIR_ATTRS(weir_attr_type("DstT", WEIR_DTYPE_FLOAT))),
                         0);
  close_loop(w, &loop, OP(w, "AddV2", OP(w, "Tanh", OP(w, "Square", loop.x)), i));
  assert_int_equal(saved(w, FETCH(loop.exit_x)), 3);
  weir_session_t* session = open_session(w, 1);
  weir_tensor_t *turns = make_int(3), *start = make_float(0.5f), *result = NULL;
  check_ok(weir_session_run(
      session, &(weir_step_spec_t){WEIR_FEEDS({n, turns}, {x, start}), WEIR_FETCHES(loop.exit_x)},
      &result));
  float y = 0.5f;
  for (int k = 0; k < 3; ++k) y = tanhf(y * y) + (float)k;
  assert_true(fabsf(float_of(result) - y) < 1e-5f);
  weir_tensor_release(turns);
  weir_tensor_release(start);
  weir_tensor_release(result);
}

// A variable that dies in a branch of the loop is unlike the others: it is gone in the next turn.
static void test_loop_variables_that_die(void** state) {
  world_t* w = *state;
  weir_edge_t n = placeholder(w, "n", WEIR_DTYPE_INT32);
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  loop_nodes_t loop = open_loop(w, "loop", weir_const_int(w->scope, 0), x, n, 10);
  weir_edge_t enter = add_enter(w, x, "loop", false, 10);
  weir_node_t* merge = add(w, "Merge", NULL, WEIR_EDGES(enter, enter), WEIR_NO_ATTRS);
  weir_edge_t is_early = OP(w, "Less", loop.i, loop.limit);
  weir_node_t* dying =
      add(w, "Switch", NULL, WEIR_EDGES(output(merge, 0), is_early), WEIR_NO_ATTRS);
  check_ok(weir_graph_set_input(merge, 1, OP(w, "NextIteration", output(dying, 1))));
  weir_edge_t both = OP(w, "AddV2", OP(w, "Exp", loop.x), output(merge, 0));
  close_loop(w, &loop, OP(w, "Merge", both, loop.x));
  assert_int_equal(saved(w, FETCH(loop.exit_x)), 0);
}

// while (i < n) { i += 1; x = invariant }: what enters the loop by one variable leaves it by
// another.
static weir_edge_t change_variables(world_t* w, weir_edge_t x, weir_edge_t invariant) {
  weir_edge_t n = placeholder(w, NULL, WEIR_DTYPE_INT32);
  loop_nodes_t loop = open_loop(w, "loop", weir_const_int(w->scope, 0), x, n, 10);
  weir_node_t* turn = add(w, "Identity", NULL, WEIR_EDGES(loop.i), WEIR_NO_ATTRS);
  close_loop(w, &loop, held(w, add_enter(w, invariant, "loop", true, 10), turn));
  return loop.exit_x;
}

// What leaves a loop waits for all that enters it, though no edge forwards leads from one to the
// other: a node of both would wait for itself.
static void test_ways_through_loops(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t square = OP(w, "Square", x);
  weir_edge_t left = change_variables(w, x, square);
  assert_int_equal(saved(w, FETCH(OP(w, "AddV2", square, left))), 0);
  assert_int_equal(saved(w, FETCH(OP(w, "AddV2", square, x), left)), 1);
}

// And it waits for what those wait for.
static void test_waiting_through_loops(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  queue_nodes_t q = add_queue(w, "q", 1);
  weir_edge_t left = change_variables(w, x, q.value);
  weir_edge_t square = OP(w, "Square", x);
  weir_edge_t sum = OP(w, "AddV2", square, left);
  assert_int_equal(saved(w, FETCH(sum)), 1);
  assert_int_equal(saved(w, FETCH(sum, OP(w, "MatMul", square, square))), 0);
}

// ---- errors ----

// The message names the node that does not fit, and its op.
static void test_errors_name_the_node(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = placeholder(w, "y", WEIR_DTYPE_FLOAT);
  weir_edge_t sum =
      output(add(w, "AddV2", "sum", WEIR_EDGES(OP(w, "Exp", x), y), WEIR_NO_ATTRS), 0);
  weir_edge_t grad =
      output(add(w, "ReluGrad", "slope", WEIR_EDGES(OP(w, "Exp", x), y), WEIR_NO_ATTRS), 0);
  weir_tensor_t* two = FLOATS(1, 2);
  weir_tensor_t* three = FLOATS(1, 2, 3);
  weir_tensor_t* result = NULL;
  weir_session_t* session = open_session(w, 1);
  weir_edge_t biased =
      output(add(w, "BiasAdd", "biased", WEIR_EDGES(OP(w, "Exp", x), y), WEIR_NO_ATTRS), 0);
  weir_edge_t added =
      output(add(w, "AddN", "added", WEIR_EDGES(OP(w, "Exp", x), y), WEIR_NO_ATTRS), 0);
  weir_edge_t last[] = {OP(w, "Neg", sum), OP(w, "Neg", grad), OP(w, "Neg", biased),
                        OP(w, "Neg", added)};
  const char* texts[] = {"Node 'sum' (AddV2): Incompatible shapes: [2] vs. [3]",
                         "Node 'slope' (ReluGrad): Inputs to operation slope of type ReluGrad must "
                         "have the same size and shape.  Input 0: [2] != input 1: [3]",
                         "Node 'biased' (BiasAdd): Input tensor must be at least 2D: [2]",
                         "Node 'added' (AddN): Inputs to operation added of type AddN must have "
                         "the same size and shape.  Input 0: [2] != input 1: [3]"};
  for (int i = 0; i < 4; ++i) {
    assert_int_equal(saved(w, FETCH(last[i])), 2);
    weir_status_t* status = weir_session_run(
        session, &(weir_step_spec_t){WEIR_FEEDS({x, two}, {y, three}), WEIR_FETCHES(last[i])},
        &result);
    assert_string_equal(weir_status_message(status), texts[i]);
    weir_status_destroy(status);
  }
  weir_tensor_release(two);
  weir_tensor_release(three);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_chain, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_diamond, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_apart, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_outputs, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_no_circles, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_queues, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_disabled, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_values_that_are_wanted, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_control_edges, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_tuples, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_held_for_others, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_held_by_a_queue, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_sums, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_what_may_fail, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_attributes, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_devices, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_kinds_of_devices, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_reductions, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_colocation, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_references, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_branches, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_loops, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_loop_variables_that_die, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_ways_through_loops, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_waiting_through_loops, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_errors_name_the_node, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
