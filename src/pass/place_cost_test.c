// place_cost_test.c — Placement by cost: node times, the simulation, and what it leads to.
#include "pass/place_cost.h"

#include "testing/world.h"

// A product of two 100 x 100 matrices takes 2 ms and holds 40 kB, which takes 1 ms to copy.
#define FLOPS 1e9
#define COPY_BYTES 40e6
#define GUARD(n, speed_)                                                           \
  {                                                                                \
    .device = "/job:localhost/replica:0/task:0/device:GUARD:" #n, .type = "GUARD", \
    .kernel_type = "CPU", .has_queue = true, .rates = {                            \
      .flops = FLOPS,                                                              \
      .bytes = 1e30,                                                               \
      .copy_bytes = COPY_BYTES,                                                    \
      .speed = (speed_),                                                           \
      .processor = (n) + 1                                                         \
    }                                                                              \
  }
#define CPU(speed_)                                                                     \
  {                                                                                     \
    .device = "/job:localhost/replica:0/task:0/device:CPU:0", .type = "CPU", .rates = { \
      .flops = FLOPS,                                                                   \
      .bytes = 1e30,                                                                    \
      .copy_bytes = COPY_BYTES,                                                         \
      .speed = (speed_),                                                                \
      .is_host = true                                                                   \
    }                                                                                   \
  }
enum { PRODUCT_NS = 2000000, COPY_NS = 1000000, SIDE = 100, MATRIX_BYTES = 4 * SIDE * SIDE };
// The CPU is not worth a thought.
static const weir_placement_t two_guards[] = {CPU(1e-6), GUARD(0, 1), GUARD(1, 1)};

typedef struct outcome_t {
  weir_arena_t arena;
  int* device_of;
  weir_simulation_t sim;
  double ns;
} outcome_t;

static outcome_t place_with(world_t* w, const weir_placement_t* devices, int count,
                            const weir_node_times_t* times) {
  outcome_t out = {.device_of = NULL};
  weir_place_params_t params = {.graph = w->graph,
                                .devices = devices,
                                .device_count = count,
                                .policy = {.kind = WEIR_PLACE_COST},
                                .times = times};
  check_ok(weir_place(&params, &out.arena, &out.device_of));
  weir_costs_t* costs = weir_arena_alloc(&out.arena, sizeof(*costs));
  weir_costs_params_t cost_params = {
      .graph = w->graph, .devices = devices, .device_count = count, .times = times};
  check_ok(weir_costs_init(costs, &cost_params, &out.arena));
  check_ok(weir_simulation_init(&out.sim, costs, &out.arena));
  out.ns = weir_simulate(&out.sim, out.device_of);
  return out;
}
#define PLACE(w, devices) place_with((w), (devices), (int)WEIR_COUNT_OF(devices), NULL)

static weir_edge_t matrix(world_t* w, const char* device) {
  const weir_shape_t* shape = weir_shape_make(&w->graph->arena, 2, (const int64_t[]){SIDE, SIDE});
  weir_attrs_t attrs =
      WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT), weir_attr_shape("shape", shape));
  weir_node_params_t params = {
      .op = "Placeholder", .name = "x", .unique_name = true, .device = device, .attrs = attrs};
  weir_node_t* node = NULL;
  check_ok(weir_graph_add(w->graph, &params, &node));
  return output(node, 0);
}

static weir_edge_t product(world_t* w, const char* device, weir_edge_t a, weir_edge_t b) {
  weir_node_params_t params = {.op = "MatMul",
                               .name = "product",
                               .unique_name = true,
                               .device = device,
                               .inputs = WEIR_EDGES(a, b)};
  weir_node_t* node = NULL;
  check_ok(weir_graph_add(w->graph, &params, &node));
  return output(node, 0);
}

static weir_edge_t chain(world_t* w, weir_edge_t x, int length) {
  for (int i = 0; i < length; ++i) x = product(w, NULL, x, x);
  return x;
}

static void check_ns(double ns, double want) { assert_float_equal(ns, want, 1e-6 * want); }

// ---- the simulation ----

// By hand: two products on guard 0, the first of which goes to guard 1 meanwhile, by the host; and
// two that are ready at once, of which one waits.
static void test_simulated_step(void** state) {
  world_t* w = *state;
  weir_edge_t x = matrix(w, "/device:GUARD:0");
  weir_edge_t a = product(w, "/device:GUARD:0", x, x);
  weir_edge_t b = product(w, "/device:GUARD:0", a, a);
  weir_edge_t c = product(w, "/device:GUARD:1", a, a);
  weir_edge_t d = product(w, "/device:GUARD:0", a, x);
  outcome_t out = PLACE(w, two_guards);
  const double* end = out.sim.end;
  int to_host = weir_simulation_copy(&out.sim, a, WEIR_HOST);
  int to_guard = weir_simulation_copy(&out.sim, a, 2);
  check_ns(end[a.node->id], PRODUCT_NS);
  check_ns(end[b.node->id], 2 * PRODUCT_NS);
  check_ns(end[to_host], PRODUCT_NS + COPY_NS);
  check_ns(end[to_guard], PRODUCT_NS + 2 * COPY_NS);
  check_ns(end[c.node->id], 2 * PRODUCT_NS + 2 * COPY_NS);
  check_ns(out.ns, 3 * PRODUCT_NS);
  check_ns(out.sim.crossed_bytes, 2 * MATRIX_BYTES);
  assert_true(out.sim.last_item == c.node->id || out.sim.last_item == d.node->id);
  assert_int_equal(out.sim.cause[c.node->id], to_guard);
  assert_int_equal(out.sim.cause[to_guard], to_host);
  assert_int_equal(out.sim.cause[to_host], a.node->id);
  check_ns(end[d.node->id], 3 * PRODUCT_NS);
  assert_int_equal(out.sim.cause[d.node->id], b.node->id);  // which kept the device
  weir_arena_free(&out.arena);
}

// Work is given away in the order in which it became ready, each piece by the executor, which is
// but one; and a copy waits for all that its device was given before.
static void test_the_executor(void** state) {
  enum { SUBMIT_NS = 1000 };
  world_t* w = *state;
  weir_placement_t devices[] = {CPU(1e-6), GUARD(0, 1), GUARD(1, 1)};
  for (int i = 0; i < 3; ++i) devices[i].rates.submit_ns = SUBMIT_NS;
  weir_edge_t x = matrix(w, "/device:CPU:0");
  weir_edge_t first = product(w, "/device:GUARD:0", x, x);
  weir_edge_t y = matrix(w, "/device:GUARD:1"), z = matrix(w, "/device:GUARD:1");
  weir_edge_t busy = product(w, "/device:GUARD:1", y, z);
  for (int i = 0; i < 4; ++i) busy = product(w, "/device:GUARD:1", busy, y);
  weir_edge_t late = product(w, "/device:GUARD:1", first, y);
  outcome_t out = PLACE(w, devices);
  const double* given = out.sim.given;
  int x_up = weir_simulation_copy(&out.sim, x, 1), down = weir_simulation_copy(&out.sim, first, -1);
  int up = weir_simulation_copy(&out.sim, first, 2);
  check_ns(given[x_up], SUBMIT_NS);
  check_ns(given[down] - given[first.node->id], SUBMIT_NS);
  check_ns(out.sim.start[down], out.sim.end[first.node->id]);
  assert_true(given[up] < out.sim.start[up]);
  check_ns(out.sim.start[up], out.sim.end[busy.node->id]);
  check_ns(out.ns, out.sim.end[late.node->id]);
  weir_arena_free(&out.arena);
}

// A loop counts ten times, where nobody knows better.
static void test_loops(void** state) {
  world_t* w = *state;
  loop_nodes_t loop = open_loop(w, "loop", weir_const_int(w->scope, 0), matrix(w, NULL),
                                weir_const_int(w->scope, 3), 10);
  weir_edge_t body = product(w, NULL, loop.x, loop.x);
  close_loop(w, &loop, body);
  weir_arena_t arena = {0};
  weir_costs_t costs;
  weir_costs_params_t params = {.graph = w->graph, .devices = two_guards, .device_count = 3};
  check_ok(weir_costs_init(&costs, &params, &arena));
  // Nothing is known of the shape that goes around.
  check_ns(weir_costs_node_ns(&costs, body.node, 1), WEIR_COST_TRIPS * 2.0 * 32 * 32 * 32);
  weir_arena_free(&arena);
}

// ---- placements ----

static void test_two_branches(void** state) {
  world_t* w = *state;
  weir_edge_t left = chain(w, matrix(w, NULL), 5), right = chain(w, matrix(w, NULL), 5);
  product(w, NULL, left, right);
  outcome_t out = PLACE(w, two_guards);
  assert_int_not_equal(out.device_of[left.node->id], out.device_of[right.node->id]);
  check_ns(out.ns, 6 * PRODUCT_NS + 2 * COPY_NS);
  weir_arena_free(&out.arena);
}

// What it takes to bring a branch elsewhere is more than it saves.
static void test_slow_copies(void** state) {
  world_t* w = *state;
  weir_placement_t devices[] = {CPU(1e-6), GUARD(0, 1), GUARD(1, 1)};
  devices[1].rates.copy_bytes = devices[2].rates.copy_bytes = COPY_BYTES / 100;
  weir_edge_t left = chain(w, matrix(w, NULL), 5), right = chain(w, matrix(w, NULL), 5);
  product(w, NULL, left, right);
  outcome_t out = PLACE(w, devices);
  assert_int_equal(out.device_of[left.node->id], out.device_of[right.node->id]);
  check_ns(out.ns, 11 * PRODUCT_NS);
  assert_true(out.sim.crossed_bytes == 0);
  weir_arena_free(&out.arena);
}

static void test_the_faster_device(void** state) {
  world_t* w = *state;
  const weir_placement_t devices[] = {CPU(1e-6), GUARD(0, 1), GUARD(1, 4)};
  weir_edge_t end = chain(w, matrix(w, NULL), 5);
  outcome_t out = PLACE(w, devices);
  assert_int_equal(out.device_of[end.node->id], 2);
  check_ns(out.ns, 5 * PRODUCT_NS / 4.0);
  weir_arena_free(&out.arena);
}

// What nodes ask for they get, also where it is only a kind of device.
static void test_constraints(void** state) {
  world_t* w = *state;
  const weir_placement_t devices[] = {CPU(100), GUARD(0, 1), GUARD(1, 10)};
  weir_edge_t x = matrix(w, NULL);
  weir_edge_t a = product(w, "/device:GUARD:0", x, x);
  weir_edge_t b = product(w, "/device:GUARD:*", x, x);
  weir_edge_t c = chain(w, x, 9);
  outcome_t out = PLACE(w, devices);
  assert_int_equal(out.device_of[a.node->id], 1);
  assert_int_equal(out.device_of[b.node->id], 2);
  assert_int_equal(out.device_of[c.node->id], 0);
  weir_arena_free(&out.arena);
}

static weir_edge_t variable(world_t* w, weir_node_t** out_handle) {
  const weir_shape_t* shape = weir_shape_make(&w->graph->arena, 2, (const int64_t[]){SIDE, SIDE});
  *out_handle =
      add(w, "VarHandleOp", NULL, WEIR_NO_EDGES,
          WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT), weir_attr_shape("shape", shape)));
  return output(add(w, "ReadVariableOp", NULL, WEIR_EDGES(output(*out_handle, 0)),
                    WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT))),
                0);
}

// Variables are with those who compute with them, so that nothing crosses but the results.
static void test_variables_follow(void** state) {
  world_t* w = *state;
  weir_node_t *v1, *v2;
  weir_edge_t left = chain(w, variable(w, &v1), 4), right = chain(w, variable(w, &v2), 4);
  product(w, NULL, left, right);
  outcome_t out = PLACE(w, two_guards);
  assert_int_equal(out.device_of[v1->id], out.device_of[left.node->id]);
  assert_int_equal(out.device_of[v2->id], out.device_of[right.node->id]);
  assert_int_not_equal(out.device_of[v1->id], out.device_of[v2->id]);
  assert_true(out.sim.crossed_bytes == 2 * MATRIX_BYTES);
  weir_arena_free(&out.arena);
}

static size_t draw(uint64_t* state) { return (size_t)weir_hash_mix(++*state); }

// The same twice, and never worse than everything on one device.
static void test_any_graph(void** state) {
  const weir_placement_t devices[] = {CPU(0.25), GUARD(0, 1), GUARD(1, 0.5)};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    world_t* w = *state;
    uint64_t random = seed;
    weir_edge_t values[40];
    for (size_t i = 0; i < WEIR_COUNT_OF(values); ++i) {
      if (i < 2) values[i] = matrix(w, NULL);
      else values[i] = product(w, NULL, values[draw(&random) % i], values[draw(&random) % i]);
    }
    outcome_t out = PLACE(w, devices);
    for (int device = 0; device < 3; ++device) {
      int all[WEIR_COUNT_OF(values)];
      for (size_t i = 0; i < WEIR_COUNT_OF(values); ++i) all[i] = device;
      assert_true(out.ns <= weir_simulate(&out.sim, all));
    }
    for (size_t i = 0; i < w->graph->node_count; ++i) w->graph->nodes[i]->def.device = "";
    outcome_t again = PLACE(w, devices);
    assert_memory_equal(out.device_of, again.device_of, w->graph->node_count * sizeof(int));
    weir_arena_free(&out.arena);
    weir_arena_free(&again.arena);
    world_teardown(state);
    world_setup(state);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
      TEST(test_simulated_step), TEST(test_the_executor),     TEST(test_loops),
      TEST(test_two_branches),   TEST(test_slow_copies),      TEST(test_the_faster_device),
      TEST(test_constraints),    TEST(test_variables_follow), TEST(test_any_graph),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
