// exec_test.c — Both executors through a session: static schedules, deadness, loops, asynchronous
// kernels, errors.
#include <pthread.h>

#include "exec/plan.h"
#include "session/session.h"
#include "testing/world.h"

static weir_plan_t* plan_of(weir_session_t* session, weir_edge_t fetch) {
  weir_plan_t* plan = NULL;
  check_ok(weir_session_plan(session, &(weir_step_spec_t){WEIR_FETCHES(fetch)}, &plan));
  weir_plan_release(plan);  // the session keeps it
  return plan;
}

// A constant that passes do not see through.
static weir_edge_t opaque_int(world_t* w, int value) {
  weir_edge_t v = weir_state_variable(w->scope, "opaque", weir_const_int(w->scope, value));
  check_scope(w);
  return v;
}
static void initialise(world_t* w, weir_session_t* session) {
  check_ok(weir_session_run_target(session, weir_initializer(w->scope)));
}

// ---- plans ----

static void test_straight_line_is_linear(void** state) {
  world_t* w = *state;
  weir_edge_t x = opaque_int(w, 3);
  weir_edge_t square = OP(w, "Mul", x, x);
  weir_edge_t y = OP(w, "AddV2", square, OP(w, "Neg", square));
  weir_node_t* noop = add(w, "NoOp", NULL, WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(noop, y.node));
  weir_edge_t z = OP(w, "Sub", y, x);
  check_ok(weir_graph_add_control(z.node, noop));
  weir_session_t* session = open_session(w, 1);
  initialise(w, session);
  assert_true(plan_of(session, z)->is_linear);
  for (int i = 0; i < 3; ++i) assert_int_equal(fetch_int(session, z), -3);
}

static void test_plan_holds_what_is_needed(void** state) {
  world_t* w = *state;
  weir_edge_t x = opaque_int(w, 3);
  weir_edge_t y = OP(w, "Neg", x);
  OP(w, "FloorDiv", x, weir_const_int(w->scope, 0));  // would fail: not asked for
  weir_session_t* session = open_session(w, 1);
  initialise(w, session);
  assert_int_equal(fetch_int(session, y), -3);
  assert_true(plan_of(session, y)->node_count <= 4);
}

static void test_queue_is_dynamic(void** state) {
  world_t* w = *state;
  queue_nodes_t q = add_queue(w, "q", 10);
  weir_session_t* session = open_session(w, 1);
  assert_false(plan_of(session, q.value)->is_linear);
  for (int i = 0; i < 5; ++i) enqueue_float(session, &q, (float)i);
  for (int i = 0; i < 5; ++i) assert_float_equal(fetch_float(session, q.value), i, 0);
}

// Two asynchronous kernels in one step, each the other's partner.
static void test_async_kernels_meet_in_one_step(void** state) {
  world_t* w = *state;
  queue_nodes_t q = add_queue(w, "q", 1);
  weir_node_t* put = add(w, "QueueEnqueueV2", NULL,
                         WEIR_EDGES(q.handle, weir_const_float(w->scope, 5)), WEIR_NO_ATTRS);
  weir_edge_t y = OP(w, "Neg", q.value);
  weir_session_t* session = open_session(w, 1);
  for (int i = 0; i < 20; ++i) {
    weir_tensor_t* result = NULL;
    check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(y), WEIR_TARGETS(put)},
                              &result));
    assert_float_equal(float_of(result), -5, 0);
    weir_tensor_release(result);
  }
}

static void test_placeholder_must_be_fed(void** state) {
  world_t* w = *state;
  import_text(w,
              "node {name: 'a' op: 'Const' attr {key: 'dtype' value {type: DT_STRING}} attr {key: "
              "'value' value {tensor "
              "{dtype: DT_STRING tensor_shape {} string_val: 'x'}}}}"
              "node {name: 'b' op: 'Relu' input: 'x' attr {key: 'T' value {type: DT_HALF}}}"
              "node {name: 'x' op: 'Placeholder' attr {key: 'dtype' value {type: DT_HALF}}}");
  weir_edge_t b, x;
  check_ok(weir_graph_find_output(w->graph, "b", &b));
  check_ok(weir_graph_find_output(w->graph, "x", &x));
  weir_session_t* session = open_session(w, 1);
  weir_tensor_t* result = NULL;
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(b)}, &result),
              WEIR_INVALID_ARGUMENT, "'x'");
}

// ---- conditionals ----

// pred ? x + 1 : x - 1, with a variable counted up in the true branch only.
typedef struct cond_nodes_t {
  weir_edge_t pred, x, result, index, count, in_true;
} cond_nodes_t;
static cond_nodes_t add_cond(world_t* w) {
  cond_nodes_t c;
  c.pred = placeholder(w, "pred", WEIR_DTYPE_BOOL);
  c.x = opaque_int(w, 10);
  c.count = weir_state_variable(w->scope, "count", weir_const_int(w->scope, 0));
  weir_edge_t one = weir_const_int(w->scope, 1);
  weir_node_t* on_x = add(w, "Switch", NULL, WEIR_EDGES(c.x, c.pred), WEIR_NO_ATTRS);
  weir_node_t* on_one = add(w, "Switch", NULL, WEIR_EDGES(one, c.pred), WEIR_NO_ATTRS);
  c.in_true = OP(w, "AddV2", output(on_x, 1), output(on_one, 1));
  weir_edge_t in_false = OP(w, "Sub", output(on_x, 0), output(on_one, 0));
  weir_node_t* bump =
      add(w, "AssignAddVariableOp", NULL,
          WEIR_EDGES(weir_variable_handle(c.count), output(on_one, 1)), WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(c.in_true.node, bump));
  weir_node_t* merge = add(w, "Merge", NULL, WEIR_EDGES(in_false, c.in_true), WEIR_NO_ATTRS);
  c.result = output(merge, 0);
  c.index = output(merge, 1);
  return c;
}

static weir_status_t* run_cond(weir_session_t* session, const cond_nodes_t* c, bool pred,
                               weir_edge_t fetch, int* out_value) {
  weir_tensor_t *fed = make_bool(pred), *result = NULL;
  weir_status_t* status = weir_session_run(
      session, &(weir_step_spec_t){WEIR_FEEDS({c->pred, fed}), WEIR_FETCHES(fetch)}, &result);
  if (!status) *out_value = int_of(result);
  weir_tensor_release(result);
  weir_tensor_release(fed);
  return status;
}

static void test_cond(void** state) {
  world_t* w = *state;
  cond_nodes_t c = add_cond(w);
  weir_session_t* session = open_session(w, 2);
  initialise(w, session);
  int value = 0;
  for (int i = 1; i <= 3; ++i) {
    check_ok(run_cond(session, &c, true, c.result, &value));
    assert_int_equal(value, 11);
    check_ok(run_cond(session, &c, true, c.index, &value));
    assert_int_equal(value, 1);
    assert_int_equal(fetch_int(session, c.count), 2 * i);
    check_ok(run_cond(session, &c, false, c.result, &value));
    assert_int_equal(value, 9);
    check_ok(run_cond(session, &c, false, c.index, &value));
    assert_int_equal(value, 0);
    assert_int_equal(fetch_int(session, c.count), 2 * i);  // the untaken branch has no effect
  }
}

// A constant that nothing orders is there before all else, also for a loop that reads it elsewhere.
static void test_merge_with_a_constant(void** state) {
  world_t* w = *state;
  cond_nodes_t c = add_cond(w);
  weir_edge_t seven = weir_const_int(w->scope, 7);
  weir_node_t* merge = add(w, "Merge", NULL, WEIR_EDGES(c.in_true, seven), WEIR_NO_ATTRS);
  weir_edge_t zero = weir_const_int(w->scope, 0);
  loop_nodes_t loop = open_loop(w, "loop", zero, zero, weir_const_int(w->scope, 3), 10);
  close_loop(w, &loop, OP(w, "AddV2", loop.x, seven));
  weir_edge_t sum = OP(w, "AddV2", output(merge, 0), loop.exit_x);
  weir_session_t* session = open_session(w, 2);
  initialise(w, session);
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    check_ok(run_cond(session, &c, i % 2, sum, &value));
    assert_int_equal(value, 28);
    check_ok(run_cond(session, &c, i % 2, output(merge, 1), &value));
    assert_int_equal(value, 1);
  }
}

static void test_dead_fetch(void** state) {
  world_t* w = *state;
  cond_nodes_t c = add_cond(w);
  weir_session_t* session = open_session(w, 1);
  initialise(w, session);
  int value = 0;
  check_ok(run_cond(session, &c, true, c.in_true, &value));
  check_error(run_cond(session, &c, false, c.in_true, &value), WEIR_INVALID_ARGUMENT,
              "branch not taken");
  check_ok(run_cond(session, &c, false, c.result, &value));
}

// A control edge from a dead node makes its reader dead; a ControlTrigger stops that.
static void test_dead_control_inputs(void** state) {
  world_t* w = *state;
  cond_nodes_t c = add_cond(w);
  weir_edge_t reader = OP(w, "Neg", c.x);
  check_ok(weir_graph_add_control(reader.node, c.in_true.node));
  weir_node_t* trigger = add(w, "ControlTrigger", NULL, WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(trigger, c.in_true.node));
  weir_edge_t after = OP(w, "Neg", c.x);
  check_ok(weir_graph_add_control(after.node, trigger));
  weir_session_t* session = NULL;
  check_ok(weir_session_create(w->graph, &(weir_session_options_t){.threads = 1}, &session));
  w->session = session;
  initialise(w, session);
  int value = 0;
  check_ok(run_cond(session, &c, true, reader, &value));
  assert_int_equal(value, -10);
  check_error(run_cond(session, &c, false, reader, &value), WEIR_INVALID_ARGUMENT,
              "branch not taken");
  check_ok(run_cond(session, &c, false, after, &value));
  assert_int_equal(value, -10);
}

static void test_nested_cond(void** state) {
  world_t* w = *state;
  weir_edge_t p = placeholder(w, "p", WEIR_DTYPE_BOOL);
  weir_edge_t q = placeholder(w, "q", WEIR_DTYPE_BOOL);
  weir_edge_t x = opaque_int(w, 1);
  weir_node_t* outer = add(w, "Switch", NULL, WEIR_EDGES(x, p), WEIR_NO_ATTRS);
  weir_node_t* outer_q = add(w, "Switch", NULL, WEIR_EDGES(q, p), WEIR_NO_ATTRS);
  weir_node_t* inner =
      add(w, "Switch", NULL, WEIR_EDGES(output(outer, 1), output(outer_q, 1)), WEIR_NO_ATTRS);
  weir_edge_t a = OP(w, "Neg", output(inner, 0));
  weir_edge_t b = OP(w, "AddV2", output(inner, 1), output(inner, 1));
  weir_node_t* inner_merge = add(w, "Merge", NULL, WEIR_EDGES(a, b), WEIR_NO_ATTRS);
  weir_node_t* merge =
      add(w, "Merge", NULL, WEIR_EDGES(output(outer, 0), output(inner_merge, 0)), WEIR_NO_ATTRS);
  weir_session_t* session = open_session(w, 2);
  initialise(w, session);
  int expected[2][2] = {{1, 1}, {-1, 2}};
  for (int i = 0; i < 8; ++i) {
    weir_tensor_t *tp = make_bool(i & 1), *tq = make_bool(i & 2), *result = NULL;
    weir_step_spec_t spec = {WEIR_FEEDS({p, tp}, {q, tq}), WEIR_FETCHES(output(merge, 0))};
    check_ok(weir_session_run(session, &spec, &result));
    assert_int_equal(int_of(result), expected[i & 1][(i & 2) / 2]);
    weir_tensor_release(result);
    weir_tensor_release(tp);
    weir_tensor_release(tq);
  }
}

// ---- loops ----

static loop_nodes_t add_sum_loop(world_t* w, const char* frame, weir_edge_t limit, int parallel) {
  loop_nodes_t loop =
      open_loop(w, frame, weir_const_int(w->scope, 0), opaque_int(w, 0), limit, parallel);
  close_loop(w, &loop, OP(w, "AddV2", loop.x, loop.i));
  return loop;
}

static void test_loops_of_any_parallelism(void** state) {
  world_t* w = *state;
  weir_edge_t limit = placeholder(w, "limit", WEIR_DTYPE_INT32);
  int parallel[] = {1, 2, 10, 32, 1000};
  loop_nodes_t loops[5];
  for (int i = 0; i < 5; ++i) {
    char frame[16];
    snprintf(frame, sizeof(frame), "loop%d", i);
    loops[i] = add_sum_loop(w, frame, limit, parallel[i]);
  }
  weir_session_t* session = open_session(w, 2);
  initialise(w, session);
  int limits[] = {0, 1, 2, 31, 32, 33, 1000};
  for (int k = 0; k < 7; ++k) {
    weir_tensor_t *fed = make_int(limits[k]), *results[5] = {NULL};
    weir_step_spec_t spec = {WEIR_FEEDS({limit, fed}),
                             WEIR_FETCHES(loops[0].exit_x, loops[1].exit_x, loops[2].exit_x,
                                          loops[3].exit_x, loops[4].exit_x)};
    check_ok(weir_session_run(session, &spec, results));
    for (int i = 0; i < 5; ++i) {
      assert_int_equal(int_of(results[i]), limits[k] * (limits[k] - 1) / 2);
      weir_tensor_release(results[i]);
    }
    weir_tensor_release(fed);
  }
}

// A loop whose iterations say that they began and then wait for a permit.
typedef struct gated_t {
  weir_session_t* session;
  weir_edge_t result;
  weir_status_t* status;
} gated_t;

static void* run_gated(void* arg) {
  gated_t* gated = arg;
  weir_tensor_t* result = NULL;
  gated->status =
      weir_session_run(gated->session, &(weir_step_spec_t){WEIR_FETCHES(gated->result)}, &result);
  weir_tensor_release(result);
  return NULL;
}

static weir_node_t* add_after(world_t* w, weir_node_t* before, const char* op, weir_edges_t inputs,
                              weir_attrs_t attrs) {
  weir_node_t* node = add(w, op, NULL, inputs, attrs);
  check_ok(weir_graph_add_control(node, before));
  return node;
}

// |parallel| iterations begin before the first has ended, and never one more.
static void check_parallel_iterations(world_t* w, int parallel) {
  enum { TURNS = 100 };
  char name[32];
  snprintf(name, sizeof(name), "begun%d", parallel);
  queue_nodes_t begun = add_queue(w, name, TURNS);
  snprintf(name, sizeof(name), "permits%d", parallel);
  queue_nodes_t permits = add_queue(w, name, TURNS);
  weir_edge_t size = OP(w, "QueueSizeV2", begun.handle);
  weir_dtype_t types[] = {WEIR_DTYPE_FLOAT};
  weir_edge_t in_begun = add_enter(w, begun.handle, name, true, parallel);
  weir_edge_t in_permits = add_enter(w, permits.handle, name, true, parallel);
  weir_edge_t one = add_enter(w, weir_const_float(w->scope, 1), name, true, parallel);
  loop_nodes_t loop = open_loop(w, name, weir_const_int(w->scope, 0), weir_const_float(w->scope, 0),
                                opaque_int(w, TURNS), parallel);
  weir_node_t* enqueue =
      add_after(w, loop.i.node, "QueueEnqueueV2", WEIR_EDGES(in_begun, one), WEIR_NO_ATTRS);
  weir_node_t* dequeue = add_after(w, enqueue, "QueueDequeueV2", WEIR_EDGES(in_permits),
                                   WEIR_ATTRS(weir_attr_types("component_types", types, 1)));
  check_ok(weir_graph_add_control(dequeue, loop.x.node));  // permits go to the oldest
  close_loop(w, &loop, OP(w, "AddV2", loop.x, output(dequeue, 0)));
  initialise(w, w->session);
  gated_t gated = {.session = w->session, .result = loop.exit_x};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run_gated, &gated), 0);
  int seen = 0;
  for (int permitted = 0; permitted < TURNS; ++permitted) {
    for (; seen < permitted + parallel && seen < TURNS; ++seen)
      fetch_float(w->session, begun.value);
    assert_int_equal(fetch_int(w->session, size), 0);
    enqueue_float(w->session, &permits, 1);
  }
  pthread_join(thread, NULL);
  check_ok(gated.status);
}

static void test_parallel_iterations(void** state) {
  world_t* w = *state;
  open_session(w, 2);
  check_parallel_iterations(w, 1);
  check_parallel_iterations(w, 3);
}

// for (i < n) for (j < i) x += j
static loop_nodes_t add_nested(world_t* w, weir_edge_t n, int parallel) {
  loop_nodes_t outer =
      open_loop(w, "outer", weir_const_int(w->scope, 0), opaque_int(w, 0), n, parallel);
  weir_edge_t zero = OP(w, "Sub", outer.i, outer.i);
  loop_nodes_t inner = open_loop(w, "inner", zero, outer.x, outer.i, parallel);
  close_loop(w, &inner, OP(w, "AddV2", inner.x, inner.i));
  close_loop(w, &outer, inner.exit_x);
  return outer;
}

static void test_nested_loops(void** state) {
  world_t* w = *state;
  weir_edge_t n = placeholder(w, "n", WEIR_DTYPE_INT32);
  loop_nodes_t outer = add_nested(w, n, 7);
  weir_session_t* session = open_session(w, 3);
  initialise(w, session);
  for (int limit = 0; limit < 25; limit += 6) {
    int expected = 0;
    for (int i = 0; i < limit; ++i) expected += i * (i - 1) / 2;
    weir_tensor_t *fed = make_int(limit), *result = NULL;
    check_ok(weir_session_run(
        session, &(weir_step_spec_t){WEIR_FEEDS({n, fed}), WEIR_FETCHES(outer.exit_x)}, &result));
    assert_int_equal(int_of(result), expected);
    weir_tensor_release(result);
    weir_tensor_release(fed);
  }
}

static void test_fetch_from_inside_a_loop(void** state) {
  world_t* w = *state;
  loop_nodes_t loop = add_sum_loop(w, "loop", weir_const_int(w->scope, 9), 3);
  weir_session_t* session = open_session(w, 1);
  initialise(w, session);
  weir_tensor_t* result = NULL;
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(loop.x)}, &result),
              WEIR_INVALID_ARGUMENT, "inside a loop");
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_TARGETS(loop.x.node)},
                            &result));  // to run it is fine
}

// Graphs whose frames do not add up.
static void test_bad_frames(void** state) {
  world_t* w = *state;
  weir_tensor_t* result = NULL;
  weir_edge_t x = opaque_int(w, 3);
  weir_edge_t outside = output(add(w, "Exit", "lost", WEIR_EDGES(x), WEIR_NO_ATTRS), 0);
  weir_edge_t inside = add_enter(w, x, "loop", false, 1);
  weir_edge_t other = add_enter(w, x, "other", false, 1);
  weir_edge_t mixed = output(add(w, "AddV2", "mix", WEIR_EDGES(inside, x), WEIR_NO_ATTRS), 0);
  weir_edge_t crossed =
      output(add(w, "AddV2", "cross", WEIR_EDGES(inside, other), WEIR_NO_ATTRS), 0);
  weir_session_t* session = open_session(w, 1);
  initialise(w, session);
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(outside)}, &result),
              WEIR_INVALID_ARGUMENT, "'lost' (Exit) is in no loop");
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_TARGETS(mixed.node)}, &result),
              WEIR_INVALID_ARGUMENT, "Node 'mix' has inputs from different frames");
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_TARGETS(crossed.node)}, &result),
              WEIR_INVALID_ARGUMENT, "Node 'cross' has inputs from different frames");
}

// A loop on a branch not taken is dead from Enter to Exit.
static void test_loop_on_a_branch(void** state) {
  world_t* w = *state;
  weir_edge_t p = placeholder(w, "p", WEIR_DTYPE_BOOL);
  weir_edge_t x = opaque_int(w, 5);
  weir_node_t* on_x = add(w, "Switch", NULL, WEIR_EDGES(x, p), WEIR_NO_ATTRS);
  weir_edge_t start = OP(w, "Sub", output(on_x, 1), output(on_x, 1));
  loop_nodes_t loop = open_loop(w, "branch", start, output(on_x, 1), output(on_x, 1), 10);
  close_loop(w, &loop, OP(w, "AddV2", loop.x, loop.i));
  weir_node_t* merge =
      add(w, "Merge", NULL, WEIR_EDGES(output(on_x, 0), loop.exit_x), WEIR_NO_ATTRS);
  cond_nodes_t c = {.pred = p};
  weir_session_t* session = open_session(w, 2);
  initialise(w, session);
  int value = 0;
  for (int i = 0; i < 3; ++i) {
    check_ok(run_cond(session, &c, false, output(merge, 0), &value));
    assert_int_equal(value, 5);
    check_ok(run_cond(session, &c, true, output(merge, 0), &value));
    assert_int_equal(value, 15);
  }
}

// What comes after |dead| by a ControlTrigger runs although |dead| is on a branch not taken.
static weir_edge_t add_after_trigger(world_t* w, weir_node_t* dead, weir_edge_t x) {
  weir_node_t* trigger = add(w, "ControlTrigger", NULL, WEIR_NO_EDGES, WEIR_NO_ATTRS);
  check_ok(weir_graph_add_control(trigger, dead));
  weir_edge_t after = OP(w, "Neg", x);
  check_ok(weir_graph_add_control(after.node, trigger));
  return after;
}

// Death goes through a Merge of dead values and through a loop that never starts: it is not just
// that nothing comes out of them.
static void test_death_of_merges_and_loops(void** state) {
  world_t* w = *state;
  weir_edge_t p = placeholder(w, "p", WEIR_DTYPE_BOOL);
  weir_edge_t x = opaque_int(w, 5);
  weir_node_t* outer = add(w, "Switch", NULL, WEIR_EDGES(x, p), WEIR_NO_ATTRS);
  weir_node_t* pred = add(w, "Switch", NULL, WEIR_EDGES(p, p), WEIR_NO_ATTRS);
  weir_node_t* inner =
      add(w, "Switch", NULL, WEIR_EDGES(output(outer, 1), output(pred, 1)), WEIR_NO_ATTRS);
  weir_node_t* merge = add(
      w, "Merge", NULL,
      WEIR_EDGES(OP(w, "Neg", output(inner, 0)), OP(w, "Square", output(inner, 1))), WEIR_NO_ATTRS);
  weir_edge_t start = OP(w, "Sub", output(outer, 1), output(outer, 1));
  loop_nodes_t loop = open_loop(w, "branch", start, output(outer, 1), output(outer, 1), 10);
  close_loop(w, &loop, OP(w, "AddV2", loop.x, loop.i));
  weir_edge_t after_merge = add_after_trigger(w, merge, x);
  weir_edge_t after_loop = add_after_trigger(w, loop.exit_x.node, x);
  cond_nodes_t c = {.pred = p};
  weir_session_t* session = open_session(w, 2);
  initialise(w, session);
  int value = 0;
  for (int i = 0; i < 2; ++i) {
    check_ok(run_cond(session, &c, i == 1, after_merge, &value));
    assert_int_equal(value, -5);
    check_ok(run_cond(session, &c, i == 1, after_loop, &value));
    assert_int_equal(value, -5);
  }
}

// if (i odd) x += i, inside the loop.
static void test_cond_in_a_loop(void** state) {
  world_t* w = *state;
  weir_edge_t n = opaque_int(w, 50);
  loop_nodes_t loop = open_loop(w, "loop", weir_const_int(w->scope, 0), opaque_int(w, 0), n, 10);
  weir_edge_t two = add_enter(w, weir_const_int(w->scope, 2), "loop", true, 10);
  weir_edge_t one = add_enter(w, weir_const_int(w->scope, 1), "loop", true, 10);
  weir_edge_t odd = OP(w, "Equal", OP(w, "FloorMod", loop.i, two), one);
  weir_node_t* on_x = add(w, "Switch", NULL, WEIR_EDGES(loop.x, odd), WEIR_NO_ATTRS);
  weir_node_t* on_i = add(w, "Switch", NULL, WEIR_EDGES(loop.i, odd), WEIR_NO_ATTRS);
  weir_edge_t more = OP(w, "AddV2", output(on_x, 1), output(on_i, 1));
  weir_node_t* merge = add(w, "Merge", NULL, WEIR_EDGES(output(on_x, 0), more), WEIR_NO_ATTRS);
  close_loop(w, &loop, output(merge, 0));
  weir_session_t* session = open_session(w, 2);
  initialise(w, session);
  assert_int_equal(fetch_int(session, loop.exit_x), 625);
}

static void test_async_kernel_in_a_loop(void** state) {
  world_t* w = *state;
  queue_nodes_t q = add_queue(w, "q", 100);
  weir_edge_t handle = add_enter(w, q.handle, "loop", true, 4);
  loop_nodes_t loop = open_loop(w, "loop", weir_const_int(w->scope, 0),
                                weir_const_float(w->scope, 0), opaque_int(w, 20), 4);
  weir_dtype_t types[] = {WEIR_DTYPE_FLOAT};
  weir_node_t* dequeue = add(w, "QueueDequeueV2", NULL, WEIR_EDGES(handle),
                             WEIR_ATTRS(weir_attr_types("component_types", types, 1)));
  check_ok(weir_graph_add_control(dequeue, loop.i.node));
  close_loop(w, &loop, OP(w, "AddV2", loop.x, output(dequeue, 0)));
  weir_session_t* session = open_session(w, 2);
  initialise(w, session);
  for (int i = 1; i <= 20; ++i) enqueue_float(session, &q, (float)i);
  assert_float_equal(fetch_float(session, loop.exit_x), 210, 0);
}

// ---- errors ----

static void test_error_in_a_loop(void** state) {
  world_t* w = *state;
  weir_edge_t n = placeholder(w, "n", WEIR_DTYPE_INT32);
  loop_nodes_t loop = open_loop(w, "loop", weir_const_int(w->scope, 0), opaque_int(w, 1), n, 8);
  weir_edge_t five = add_enter(w, weir_const_int(w->scope, 5), "loop", true, 8);
  weir_node_t* div =
      add(w, "FloorDiv", "guilty", WEIR_EDGES(loop.x, OP(w, "Sub", loop.i, five)), WEIR_NO_ATTRS);
  close_loop(w, &loop, OP(w, "AddV2", loop.x, OP(w, "Sub", output(div, 0), output(div, 0))));
  weir_session_t* session = open_session(w, 3);
  initialise(w, session);
  for (int i = 0; i < 20; ++i) {
    weir_tensor_t *bad = make_int(100), *good = make_int(5), *result = NULL;
    check_error(
        weir_session_run(
            session, &(weir_step_spec_t){WEIR_FEEDS({n, bad}), WEIR_FETCHES(loop.exit_x)}, &result),
        WEIR_INVALID_ARGUMENT, "guilty");
    check_ok(weir_session_run(
        session, &(weir_step_spec_t){WEIR_FEEDS({n, good}), WEIR_FETCHES(loop.exit_x)}, &result));
    assert_int_equal(int_of(result), 1);
    weir_tensor_release(result);
    weir_tensor_release(bad);
    weir_tensor_release(good);
  }
}

// What was fetched before another node failed is let go: nobody is given it. |after|: what the
// failing node waits for, so that it is the last.
static void check_failed_step_keeps_nothing(world_t* w, weir_session_t* session, weir_edge_t x,
                                            weir_node_t* after) {
  weir_edge_t same = OP(w, "Identity", x);
  weir_edge_t bad = opaque_int(w, 1);
  for (int i = 0; i < 20; ++i) bad = OP(w, "Neg", bad);
  bad = OP(w, "FloorDiv", bad, opaque_int(w, 0));
  if (after) check_ok(weir_graph_add_control(bad.node, after));
  initialise(w, session);
  weir_tensor_t *fed = make_int(7), *results[2] = {NULL};
  weir_step_spec_t spec = {WEIR_FEEDS({x, fed}), WEIR_FETCHES(same, bad)};
  for (int i = 0; i < 3; ++i) {
    check_error(weir_session_run(session, &spec, results), WEIR_INVALID_ARGUMENT, "zero");
    assert_null(results[0]);
    assert_null(results[1]);
    assert_true(weir_tensor_is_sole(fed));
  }
  weir_tensor_release(fed);
}

static void test_failed_step_keeps_nothing(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_INT32);
  check_failed_step_keeps_nothing(w, open_session(w, 1), x, NULL);
}

static void test_failed_dynamic_step_keeps_nothing(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_INT32);
  loop_nodes_t loop = add_sum_loop(w, "loop", weir_const_int(w->scope, 20), 3);
  check_failed_step_keeps_nothing(w, open_session(w, 1), x, loop.exit_x.node);
}

// The failing node ends another one that is blocked.
static void test_error_frees_a_blocked_kernel(void** state) {
  world_t* w = *state;
  queue_nodes_t q = add_queue(w, "q", 1);
  weir_edge_t bad = OP(w, "FloorDiv", opaque_int(w, 1), opaque_int(w, 0));
  weir_session_t* session = open_session(w, 2);
  initialise(w, session);
  for (int i = 0; i < 10; ++i) {
    weir_tensor_t* results[2] = {NULL};
    check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(q.value, bad)}, results),
                WEIR_INVALID_ARGUMENT, "zero");
  }
  enqueue_float(session, &q, 4);
  assert_float_equal(fetch_float(session, q.value), 4, 0);
}

static void test_wide_graph_on_many_threads(void** state) {
  enum { WIDTH = 200, SIZE = 64 };
  world_t* w = *state;
  float ones[SIZE * SIZE];
  for (int i = 0; i < SIZE * SIZE; ++i) ones[i] = 1;
  weir_edge_t m =
      weir_state_variable(w->scope, "m", weir_const_floats(w->scope, WEIR_DIMS(SIZE, SIZE), ones));
  queue_nodes_t q =
      add_queue(w, "q", 1);  // an asynchronous kernel: the general executor runs the step
  weir_edge_t parts[WIDTH];
  for (int i = 0; i < WIDTH; ++i)
    parts[i] = OP(w, "MatMul", m, OP(w, "Mul", m, weir_const_float(w->scope, (float)(i + 1))));
  weir_edge_t sum = output(add(w, "AddN", NULL, (weir_edges_t){parts, WIDTH}, WEIR_NO_ATTRS), 0);
  weir_session_t* session = open_session(w, 4);
  initialise(w, session);
  for (int k = 0; k < 3; ++k) {
    enqueue_float(session, &q, 1);
    weir_tensor_t* results[2] = {NULL};
    check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(sum, q.value)}, results));
    const float* data = weir_tensor_data(results[0]);
    for (int i = 0; i < SIZE * SIZE; ++i)
      assert_float_equal(data[i], (float)SIZE * WIDTH * (WIDTH + 1) / 2, 0);
    weir_tensor_release(results[0]);
    weir_tensor_release(results[1]);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_straight_line_is_linear),
      TEST(test_plan_holds_what_is_needed),
      TEST(test_queue_is_dynamic),
      TEST(test_async_kernels_meet_in_one_step),
      TEST(test_placeholder_must_be_fed),
      TEST(test_cond),
      TEST(test_merge_with_a_constant),
      TEST(test_dead_fetch),
      TEST(test_dead_control_inputs),
      TEST(test_nested_cond),
      TEST(test_loops_of_any_parallelism),
      TEST(test_parallel_iterations),
      TEST(test_nested_loops),
      TEST(test_fetch_from_inside_a_loop),
      TEST(test_bad_frames),
      TEST(test_loop_on_a_branch),
      TEST(test_death_of_merges_and_loops),
      TEST(test_cond_in_a_loop),
      TEST(test_async_kernel_in_a_loop),
      TEST(test_error_in_a_loop),
      TEST(test_failed_step_keeps_nothing),
      TEST(test_failed_dynamic_step_keeps_nothing),
      TEST(test_error_frees_a_blocked_kernel),
      TEST(test_wide_graph_on_many_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
