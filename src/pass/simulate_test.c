// simulate_test.c — Steps over tasks, in simulated time: what is sent, how often, and who waits.
#include "pass/simulate.h"

#include "testing/world.h"

enum { COPY_NS = 1000, MESSAGE_NS = 100, MAX_NODES = 64 };
// Nothing but messages takes time.
#define TASK(n)                                                                                   \
  {                                                                                               \
    .device = "/job:a/replica:0/task:" #n "/device:CPU:0", .type = "CPU", .task = (n), .rates = { \
      .flops = 1e30,                                                                              \
      .bytes = 1e30,                                                                              \
      .copy_bytes = 1e30,                                                                         \
      .copy_ns = COPY_NS,                                                                         \
      .message_ns = MESSAGE_NS,                                                                   \
      .speed = 1,                                                                                 \
      .is_host = (n) == 0,                                                                        \
      .processor = (n),                                                                           \
      .executor = (n)*WEIR_LANES + WEIR_LANE_EXECUTOR                                             \
    }                                                                                             \
  }
static const weir_placement_t tasks[] = {TASK(0), TASK(1), TASK(2)};

// A graph whose nodes are on the first task but for those that are moved.
typedef struct play_t {
  weir_arena_t arena;
  weir_costs_t costs;
  weir_simulation_t sim;
  int device_of[MAX_NODES];
} play_t;

static void move(play_t* play, const weir_node_t* node, int task) {
  assert_true(node->id < MAX_NODES);
  play->device_of[node->id] = task;
}

static double simulate_on(world_t* w, const weir_placement_t* devices, int count, play_t* play) {
  weir_costs_params_t params = {.graph = w->graph, .devices = devices, .device_count = count};
  assert_true(w->graph->node_count <= MAX_NODES);
  check_ok(weir_costs_init(&play->costs, &params, &play->arena));
  check_ok(weir_simulation_init(&play->sim, &play->costs, &play->arena));
  return weir_simulate(&play->sim, play->device_of);
}

static double simulate(world_t* w, play_t* play) {
  return simulate_on(w, tasks, WEIR_COUNT_OF(tasks), play);
}

static void check_ns(double ns, double want) { assert_float_equal(ns, want, 0.1); }

static double end_of(const play_t* play, weir_edge_t edge) { return play->sim.end[edge.node->id]; }

static weir_edge_t sign_of(weir_node_t* node) { return output(node, node->def.output_count); }

static bool is_sent(const play_t* play, weir_edge_t edge, int memory) {
  return play->sim.is_made[weir_simulation_copy(&play->sim, edge, memory)];
}

// Messages are on their way side by side, but one begins after the other.
static void test_messages(void** state) {
  world_t* w = *state;
  play_t play = {.device_of = {0}};
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT), y = placeholder(w, "y", WEIR_DTYPE_FLOAT);
  weir_edge_t far_x = OP(w, "Neg", x), far_y = OP(w, "Square", y), again = OP(w, "Abs", x);
  move(&play, far_x.node, 1);
  move(&play, far_y.node, 1);
  move(&play, again.node, 1);
  check_ns(simulate(w, &play), COPY_NS + MESSAGE_NS);
  check_ns(end_of(&play, far_y), COPY_NS);  // y was ready last
  check_ns(end_of(&play, far_x), COPY_NS + MESSAGE_NS);
  check_ns(end_of(&play, again), COPY_NS + MESSAGE_NS);  // the value is there already
  weir_arena_free(&play.arena);
}

// Bytes of a large message take less, once it is under way.
static void test_large_messages(void** state) {
  enum { SMALL_BYTES = 2, LARGE_BYTES = 10, LARGE_NS = 2000 };  // a nanosecond
  world_t* w = *state;
  weir_placement_t devices[] = {tasks[0], tasks[1]};
  devices[1].rates.small_bytes = SMALL_BYTES * 1e9;
  devices[1].rates.copy_bytes = LARGE_BYTES * 1e9;
  devices[1].rates.large_ns = LARGE_NS;
  for (int count = 100; count <= 10000; count *= 100) {
    play_t play = {.device_of = {0}};
    weir_edge_t shape = weir_const_ints(w->scope, &count, 1);
    weir_edge_t far_x = OP(w, "Neg", OP(w, "Fill", shape, weir_const_float(w->scope, 1)));
    move(&play, far_x.node, 1);
    simulate_on(w, devices, 2, &play);
    const int bytes = 4 * count;
    check_ns(end_of(&play, far_x),
             COPY_NS + (count == 100 ? bytes / SMALL_BYTES : LARGE_NS + bytes / LARGE_BYTES));
    weir_arena_free(&play.arena);
  }
}

// Tasks need no third one to send to each other.
static void test_from_task_to_task(void** state) {
  world_t* w = *state;
  play_t play = {.device_of = {0}};
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT), y = OP(w, "Neg", x), z = OP(w, "Abs", y);
  move(&play, x.node, 1);
  move(&play, y.node, 2);
  check_ns(simulate(w, &play), 2 * COPY_NS);
  assert_true(is_sent(&play, x, 2) && !is_sent(&play, x, WEIR_HOST));
  check_ns(end_of(&play, z), 2 * COPY_NS);
  weir_arena_free(&play.arena);
}

// Who waits for a node elsewhere gets a sign, once a task.
static void test_signs(void** state) {
  world_t* w = *state;
  play_t play = {.device_of = {0}};
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT), y = placeholder(w, "y", WEIR_DTYPE_FLOAT);
  weir_edge_t here = OP(w, "Neg", y), there = OP(w, "Abs", y), too = OP(w, "Square", y);
  check_ok(weir_graph_add_control(here.node, x.node));
  check_ok(weir_graph_add_control(there.node, x.node));
  check_ok(weir_graph_add_control(too.node, x.node));
  move(&play, y.node, 1);
  move(&play, there.node, 1);
  move(&play, too.node, 1);
  move(&play, here.node, 1);
  check_ns(simulate(w, &play), COPY_NS);
  check_ns(end_of(&play, there), COPY_NS);
  assert_true(is_sent(&play, sign_of(x.node), 1));
  assert_true(play.sim.crossed_bytes == 0);
  move(&play, x.node, 1);
  check_ns(weir_simulate(&play.sim, play.device_of), 0);
  assert_false(is_sent(&play, sign_of(x.node), WEIR_HOST));
  weir_arena_free(&play.arena);
}

// A task that receives in a loop gets the condition, too, and asks for what the next turn brings
// when it has it.
static void test_loops(void** state) {
  enum { TURNS = WEIR_COST_TRIPS };
  world_t* w = *state;
  play_t play = {.device_of = {0}};
  loop_nodes_t loop =
      open_loop(w, "loop", placeholder(w, "start", WEIR_DTYPE_INT32),
                placeholder(w, "x", WEIR_DTYPE_FLOAT), placeholder(w, "n", WEIR_DTYPE_INT32), 10);
  weir_edge_t side = OP(w, "Neg", loop.x);
  close_loop(w, &loop, OP(w, "Square", loop.x));
  move(&play, side.node, 1);
  double ns = simulate(w, &play);
  weir_edge_t condition = output(loop.merge_x, 0);
  for (size_t i = 0; i < w->graph->node_count; ++i)
    if (weir_node_role(w->graph->nodes[i]) == WEIR_ROLE_LOOP_COND)
      condition = output(w->graph->nodes[i], 0);
  assert_true(is_sent(&play, condition, 1));
  // Nobody here waits for the other task; two values a turn are sent to it.
  check_ns(end_of(&play, loop.exit_x), 2 * TURNS * MESSAGE_NS);
  check_ns(end_of(&play, side), TURNS * (COPY_NS + MESSAGE_NS));
  check_ns(ns, 2 * TURNS * COPY_NS);
  weir_arena_free(&play.arena);
}

// What leaves a loop on a task that had to ask for every turn leaves it after the last.
static void test_exits(void** state) {
  enum { TURNS = WEIR_COST_TRIPS };
  world_t* w = *state;
  play_t play = {.device_of = {0}};
  loop_nodes_t loop =
      open_loop(w, "loop", placeholder(w, "start", WEIR_DTYPE_INT32),
                placeholder(w, "x", WEIR_DTYPE_FLOAT), placeholder(w, "n", WEIR_DTYPE_INT32), 10);
  weir_edge_t body = OP(w, "Square", loop.x);
  close_loop(w, &loop, body);
  const weir_node_t* choice = loop.exit_x.node->inputs[0].node;
  const weir_node_t* moved[] = {loop.merge_x,
                                loop.merge_x->inputs[0].node,
                                loop.merge_x->inputs[1].node,
                                choice,
                                loop.x.node,
                                body.node,
                                loop.exit_x.node};
  for (size_t i = 0; i < WEIR_COUNT_OF(moved); ++i) move(&play, moved[i], 1);
  simulate(w, &play);
  check_ns(end_of(&play, body), MESSAGE_NS + TURNS * COPY_NS);  // after x's message
  check_ns(end_of(&play, loop.exit_x), MESSAGE_NS + 2 * TURNS * COPY_NS);
  weir_arena_free(&play.arena);
}

// What no turn waits for from the one before is turns ahead of what reads it on another task, which
// begins with the first and ends after the last; what goes in a circle is not.
static void test_flows(void** state) {
  enum { TURNS = WEIR_COST_TRIPS };
  for (int is_circle = 0; is_circle < 2; ++is_circle) {
    world_t* w = *state;
    play_t play = {.device_of = {0}};
    weir_placement_t devices[] = {TASK(0), TASK(1)};
    loop_nodes_t loop = open_loop(w, is_circle ? "circle" : "flow",
                                  placeholder(w, is_circle ? "s1" : "s0", WEIR_DTYPE_INT32),
                                  placeholder(w, is_circle ? "x1" : "x0", WEIR_DTYPE_FLOAT),
                                  placeholder(w, is_circle ? "n1" : "n0", WEIR_DTYPE_INT32), 10);
    weir_edge_t far = OP(w, "Square", loop.x);
    weir_edge_t back = OP(w, "Neg", far);
    close_loop(w, &loop, is_circle ? back : loop.x);
    move(&play, far.node, 1);
    simulate_on(w, devices, 2, &play);
    // After the messages of the condition: there and back in each turn or, turn by turn, once more.
    const int times = is_circle ? 2 * TURNS : TURNS + 1;
    check_ns(end_of(&play, back), TURNS * MESSAGE_NS + times * COPY_NS);
    weir_arena_free(&play.arena);
  }
}

// A task goes on with what became ready last. What another task waits for may be below it.
static void test_the_newest_first(void** state) {
  enum { NODE_NS = 10 };
  world_t* w = *state;
  play_t play = {.device_of = {0}};
  weir_placement_t devices[] = {TASK(0), TASK(1)};
  devices[0].rates.node_ns = devices[1].rates.node_ns = NODE_NS;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);  // the executor has work with it, too
  weir_edge_t first = OP(w, "Neg", x), second = OP(w, "Abs", x), third = OP(w, "Square", second);
  weir_edge_t far = OP(w, "Log", first);
  move(&play, far.node, 1);
  check_ns(simulate_on(w, devices, 2, &play), 4 * NODE_NS + COPY_NS + NODE_NS);
  check_ns(end_of(&play, second), 2 * NODE_NS);
  check_ns(end_of(&play, third), 3 * NODE_NS);
  check_ns(end_of(&play, first), 4 * NODE_NS);
  check_ns(end_of(&play, far), 5 * NODE_NS + COPY_NS);
  weir_arena_free(&play.arena);
}

// A device with streams may be another task's: its nodes run there, and what they read is sent.
static void test_stream_of_another_task(void** state) {
  world_t* w = *state;
  play_t play = {.device_of = {0}};
  weir_placement_t devices[] = {TASK(0), TASK(1), TASK(1)};
  devices[2].device = "/job:a/replica:0/task:1/device:GUARD:0";
  devices[2].type = "GUARD";
  devices[2].kernel_type = "CPU";
  devices[2].has_queue = true;
  devices[2].rates.processor = 2;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t a = OP(w, "Neg", x);
  weir_edge_t b = OP(w, "Neg", a);
  move(&play, b.node, 2);
  check_ns(simulate_on(w, devices, WEIR_COUNT_OF(devices), &play), COPY_NS);
  assert_true(is_sent(&play, a, 2));
  check_ns(end_of(&play, b), COPY_NS);
  weir_arena_free(&play.arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_messages, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_large_messages, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_from_task_to_task, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_signs, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_loops, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_exits, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_flows, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_the_newest_first, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_stream_of_another_task, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
