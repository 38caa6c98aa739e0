// session_test.c — Sessions: feeds, fetches, state, concurrency, cancellation, partial runs,
// callables, functions.
#include "session/session.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/perturb.h"
#include "testing/world.h"

// ---- feeds and fetches ----

static void test_any_edge_can_be_fed(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = OP(w, "Mul", x, weir_const_float(w->scope, 2));
  weir_edge_t z = OP(w, "AddV2", y, weir_const_float(w->scope, 1));
  weir_session_t* session = open_session(w, 1);
  assert_float_equal(feed_float(session, x, 5, z), 11, 0);
  assert_float_equal(feed_float(session, y, 5, z), 6, 0);  // x is not needed then
  assert_float_equal(feed_float(session, z, 5, z), 5, 0);  // a fed edge can be fetched
  assert_float_equal(feed_float(session, x, 5, x), 5, 0);
}

static void test_fed_output_of_many(void** state) {
  world_t* w = *state;
  weir_edge_t value = weir_const_floats(w->scope, WEIR_DIMS(4), (float[]){1, 2, 3, 4});
  weir_node_t* split = add(w, "Split", NULL, WEIR_EDGES(weir_const_int(w->scope, 0), value),
                           WEIR_ATTRS(weir_attr_int("num_split", 2)));
  weir_edge_t sum = OP(w, "AddV2", output(split, 0), output(split, 1));
  weir_session_t* session = open_session(w, 1);
  weir_tensor_t* fed = FLOATS(10, 20);
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({output(split, 1), fed}), WEIR_FETCHES(sum)};
  check_ok(weir_session_run(session, &spec, &result));
  check_floats(result, 0, 11, 22);
  weir_tensor_release(result);
  weir_tensor_release(fed);
}

static void test_fetches_and_targets(void** state) {
  world_t* w = *state;
  weir_edge_t v = weir_variable(w->scope, "v", weir_const_float(w->scope, 1));
  weir_node_t* init = weir_initializer(w->scope);
  weir_node_t* bump =
      add(w, "AssignAddVariableOp", NULL,
          WEIR_EDGES(weir_variable_handle(v), weir_const_float(w->scope, 2)), WEIR_NO_ATTRS);
  weir_edge_t c = weir_const_float(w->scope, 7);
  weir_session_t* session = open_session(w, 1);
  check_ok(weir_session_run_target(session, init));
  weir_tensor_t* results[3] = {NULL};
  weir_step_spec_t spec = {WEIR_FETCHES(c, c, c), WEIR_TARGETS(bump, bump)};
  check_ok(
      weir_session_run(session, &spec, results));  // the same fetch thrice, the same target twice
  for (int i = 0; i < 3; ++i) {
    assert_float_equal(float_of(results[i]), 7, 0);
    weir_tensor_release(results[i]);
  }
  assert_float_equal(fetch_float(session, v), 3, 0);
  check_ok(weir_session_run_target(session, bump));
  assert_float_equal(fetch_float(session, v), 5, 0);
}

static void test_bad_feeds(void** state) {
  world_t* w = *state;
  int64_t dims[] = {2, -1};
  weir_edge_t x =
      output(add(w, "Placeholder", "x", WEIR_NO_EDGES,
                 WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                            weir_attr_shape("shape", weir_shape_make(&w->graph->arena, 2, dims)))),
             0);
  weir_edge_t y = OP(w, "Neg", x);
  weir_session_t* session = open_session(w, 1);
  weir_tensor_t* result = NULL;
  weir_tensor_t* scalar = make_float(1);
  weir_tensor_t* integer = make_int(1);
  weir_step_spec_t twice = {WEIR_FEEDS({x, scalar}, {x, scalar}), WEIR_FETCHES(y)};
  check_error(weir_session_run(session, &twice, &result), WEIR_INVALID_ARGUMENT,
              "fed more than once");
  weir_step_spec_t none = {WEIR_FETCHES(y)};
  check_error(weir_session_run(session, &none, &result), WEIR_INVALID_ARGUMENT, "'x'");
  weir_step_spec_t type = {WEIR_FEEDS({x, integer}), WEIR_FETCHES(y)};
  check_error(weir_session_run(session, &type, &result), WEIR_INVALID_ARGUMENT, "int32 was fed");
  weir_step_spec_t shape = {WEIR_FEEDS({x, scalar}), WEIR_FETCHES(y)};
  check_error(weir_session_run(session, &shape, &result), WEIR_INVALID_ARGUMENT,
              "Cannot feed value of shape [] for");
  weir_step_spec_t null = {WEIR_FEEDS({x, NULL}), WEIR_FETCHES(y)};
  check_error(weir_session_run(session, &null, &result), WEIR_INVALID_ARGUMENT, "without a value");
  assert_null(result);
  weir_tensor_release(scalar);
  weir_tensor_release(integer);
}

static void test_bad_fetches(void** state) {
  world_t* w = *state;
  weir_edge_t c = weir_const_float(w->scope, 1);
  weir_graph_t* other = NULL;
  check_ok(weir_graph_create(&other));
  weir_scope_t* other_scope = weir_scope_create(other);
  weir_edge_t foreign = weir_const_float(other_scope, 1);
  weir_session_t* session = open_session(w, 1);
  weir_tensor_t* result = NULL;
  weir_edge_t edge;
  check_error(weir_graph_find_output(w->graph, "nowhere:0", &edge), WEIR_NOT_FOUND, "nowhere");
  check_error(weir_graph_find_output(w->graph, "Const:1", &edge), WEIR_INVALID_ARGUMENT, "Const");
  check_error(weir_graph_find_output(w->graph, "Const:-1", &edge), WEIR_INVALID_ARGUMENT,
              "Const:-1");
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(foreign)}, &result),
              WEIR_INVALID_ARGUMENT, "fetch");
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES({c.node, 1})}, &result),
              WEIR_INVALID_ARGUMENT, "has 1 outputs");
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES({NULL, 0})}, &result),
              WEIR_INVALID_ARGUMENT, "fetch");
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_TARGETS(foreign.node)}, &result),
              WEIR_INVALID_ARGUMENT, "target");
  check_error(weir_session_run(session, &(weir_step_spec_t){0}, &result), WEIR_INVALID_ARGUMENT,
              "at least one target");
  assert_float_equal(fetch_float(session, c), 1, 0);
  check_ok(weir_scope_finish(other_scope));
  weir_graph_release(other);
}

static void test_many_feeds(void** state) {
  enum { COUNT = 40 };
  world_t* w = *state;
  weir_feed_t feeds[COUNT];
  weir_edge_t edges[COUNT];
  for (int i = 0; i < COUNT; ++i) {
    edges[i] = placeholder(w, "x", WEIR_DTYPE_FLOAT);
    feeds[i] = (weir_feed_t){edges[i], make_float((float)i)};
  }
  weir_edge_t sum = output(add(w, "AddN", NULL, (weir_edges_t){edges, COUNT}, WEIR_NO_ATTRS), 0);
  weir_session_t* session = open_session(w, 1);
  weir_tensor_t* result = NULL;
  check_ok(weir_session_run(
      session, &(weir_step_spec_t){.feeds = feeds, .feed_count = COUNT, WEIR_FETCHES(sum)},
      &result));
  assert_float_equal(float_of(result), COUNT * (COUNT - 1) / 2, 0);
  weir_tensor_release(result);
  for (int i = 0; i < COUNT; ++i) weir_tensor_release(feeds[i].tensor);
}

static void test_graph_grows_between_runs(void** state) {
  world_t* w = *state;
  weir_edge_t v = weir_variable(w->scope, "v", weir_const_float(w->scope, 4));
  weir_node_t* init = weir_initializer(w->scope);
  weir_session_t* session = open_session(w, 2);
  check_ok(weir_session_run_target(session, init));
  weir_edge_t y = v;
  for (int i = 1; i <= 20; ++i) {
    y = OP(w, "AddV2", y, weir_const_float(w->scope, 1));
    assert_float_equal(fetch_float(session, y), 4 + i, 0);
  }
}

// ---- state ----

static void test_uninitialised(void** state) {
  world_t* w = *state;
  weir_edge_t v = weir_variable(w->scope, "v", weir_const_float(w->scope, 4));
  weir_node_t* init = weir_initializer(w->scope);
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar));
  weir_node_t* ref = add(w, "VariableV2", "old", WEIR_NO_EDGES, attrs);
  weir_edge_t read_ref = OP(w, "Identity", output(ref, 0));
  // Its shape is known, but nobody may ask for it yet.
  weir_edge_t rank = OP(w, "StopGradient", OP(w, "Rank", read_ref));
  weir_edge_t assigned = OP(w, "Assign", output(ref, 0), weir_const_float(w->scope, 6));
  weir_session_t* session = open_session(w, 1);
  float value;
  weir_tensor_t* unused = NULL;
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(rank)}, &unused),
              WEIR_FAILED_PRECONDITION, "Attempting to use uninitialized value old");
  check_error(weir_session_fetch_float(session, v, &value), WEIR_FAILED_PRECONDITION, "v");
  check_error(weir_session_fetch_float(session, read_ref, &value), WEIR_FAILED_PRECONDITION,
              "Attempting to use uninitialized value old");
  check_error(weir_session_fetch_float(session, output(ref, 0), &value), WEIR_FAILED_PRECONDITION,
              "old");
  check_ok(weir_session_run_target(session, init));
  assert_float_equal(fetch_float(session, v), 4, 0);
  assert_float_equal(fetch_float(session, assigned), 6, 0);
  assert_float_equal(fetch_float(session, output(ref, 0)), 6, 0);
}

// A result that is a variable's memory is copied when the step is through. Where that fails the
// step leaves no result, and what is behind the results is not its own.
static void test_no_memory_for_the_result(void** state) {
  world_t* w = *state;
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT),
                                  weir_attr_shape("shape", &weir_shape_scalar));
  weir_edge_t v = output(add(w, "VariableV2", NULL, WEIR_NO_EDGES, attrs), 0);
  weir_edge_t assigned = OP(w, "Assign", v, weir_const_float(w->scope, 6));
  weir_tensor_t* behind = make_float(7);
  int failures = 0;
  assert_float_equal(fetch_float(open_session(w, 1), assigned), 6, 0);
  for (int64_t n = 0; n < 100; ++n) {
    weir_tensor_t* results[] = {NULL, behind};
    weir_alloc_fail_at(n, false);  // 0: none fails, and the plan is ready from then on
    weir_status_t* status =
        weir_session_run(w->session, &(weir_step_spec_t){WEIR_FETCHES(v)}, results);
    weir_alloc_fail_at(0, false);
    assert_ptr_equal(results[1], behind);
    assert_true(status ? !results[0] : float_of(results[0]) == 6);
    failures += status != NULL;
    weir_status_destroy(status);
    weir_tensor_release(results[0]);
  }
  assert_true(failures > 0);
  weir_tensor_release(behind);
}

// A result that is a variable's memory is what the variable held at the step's end, whoever writes
// to it later.
static void test_results_stay(void** state) {
  world_t* w = *state;
  enum { size = 4096 };
  const weir_shape_t* shape = weir_shape_make(&w->graph->arena, 1, &(int64_t){size});
  weir_attrs_t attrs =
      WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT), weir_attr_shape("shape", shape));
  weir_edge_t v = output(add(w, "VariableV2", NULL, WEIR_NO_EDGES, attrs), 0);
  weir_edge_t ones = OP(w, "Fill", weir_const_ints(w->scope, (const int[]){size}, 1),
                        weir_const_float(w->scope, 1));
  weir_edge_t init = OP(w, "Assign", v, ones);
  weir_edge_t more = OP(w, "AssignAdd", v, ones);
  weir_edge_t read = OP(w, "Identity", v);
  weir_session_t* session = open_session(w, 1);
  check_ok(weir_session_run_target(session, init.node));
  weir_tensor_t *first = NULL, *second = NULL;
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(read)}, &first));
  check_ok(weir_session_run_target(session, more.node));
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(more)}, &second));
  check_ok(weir_session_run_target(session, more.node));
  assert_true(WEIR_TENSOR_DATA(first, float)[size - 1] == 1);
  assert_true(WEIR_TENSOR_DATA(second, float)[size - 1] == 3);
  // Nor does it where it is fed, and a result again.
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t same = OP(w, "Identity", x);
  weir_feed_t feed = {x, first};
  weir_tensor_t* again[2] = {NULL, NULL};
  weir_step_spec_t spec = {.feeds = &feed, .feed_count = 1, WEIR_FETCHES(same, read)};
  check_ok(weir_session_run(session, &spec, again));
  assert_true(WEIR_TENSOR_DATA(again[0], float)[size - 1] == 1);
  assert_true(WEIR_TENSOR_DATA(again[1], float)[size - 1] == 4);
  weir_tensor_release(again[0]);
  weir_tensor_release(again[1]);
  weir_tensor_release(first);
  weir_tensor_release(second);
}

// How many gradients the accumulator named "one" has.
static weir_edge_t count_in_one(world_t* w, weir_dtype_t type, int64_t size) {
  const weir_shape_t* shape = weir_shape_make(&w->graph->arena, 1, &size);
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", type), weir_attr_shape("shape", shape),
                                  weir_attr_string("shared_name", "one"));
  weir_edge_t handle = output(add(w, "ConditionalAccumulator", NULL, WEIR_NO_EDGES, attrs), 0);
  return OP(w, "Identity", OP(w, "AccumulatorNumAccumulated", handle));
}

static void test_accumulators_of_one_name(void** state) {
  world_t* w = *state;
  static const char kSays[] = "'one' has another kind, type or shape";
  weir_edge_t first = count_in_one(w, WEIR_DTYPE_FLOAT, 2);
  weir_edge_t fits = count_in_one(w, WEIR_DTYPE_FLOAT, -1);
  weir_edge_t longer = count_in_one(w, WEIR_DTYPE_FLOAT, 3);
  weir_edge_t doubles = count_in_one(w, WEIR_DTYPE_DOUBLE, 2);
  weir_session_t* session = open_session(w, 1);
  weir_tensor_t* value = NULL;
  check_ok(weir_session_run_target(session, first.node));
  check_ok(weir_session_run_target(session, fits.node));
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(longer)}, &value),
              WEIR_INVALID_ARGUMENT, kSays);
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(doubles)}, &value),
              WEIR_INVALID_ARGUMENT, kSays);
}

static weir_edge_t container_variable(world_t* w, const char* container, const char* shared_name,
                                      weir_node_t** out_init, float value) {
  weir_attrs_t attrs = WEIR_ATTRS(
      weir_attr_type("dtype", WEIR_DTYPE_FLOAT), weir_attr_shape("shape", &weir_shape_scalar),
      weir_attr_string("container", container), weir_attr_string("shared_name", shared_name));
  weir_edge_t handle = output(add(w, "VarHandleOp", NULL, WEIR_NO_EDGES, attrs), 0);
  *out_init = add(w, "AssignVariableOp", NULL,
                  WEIR_EDGES(handle, weir_const_float(w->scope, value)), WEIR_NO_ATTRS);
  return output(add(w, "ReadVariableOp", NULL, WEIR_EDGES(handle),
                    WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT))),
                0);
}

static void test_containers(void** state) {
  world_t* w = *state;
  weir_node_t *init_a, *init_b, *init_c;
  weir_edge_t a = container_variable(w, "a", "same", &init_a, 1);
  weir_edge_t b = container_variable(w, "b", "same", &init_b, 2);
  weir_edge_t c =
      container_variable(w, "a", "same", &init_c, 3);  // another node, the same variable as a
  weir_session_t* session = open_session(w, 1);
  weir_tensor_t* none = NULL;
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_TARGETS(init_a, init_b)}, &none));
  assert_float_equal(fetch_float(session, c), 1, 0);
  check_ok(weir_session_run_target(session, init_c));
  assert_float_equal(fetch_float(session, a), 3, 0);
  assert_float_equal(fetch_float(session, b), 2, 0);
  weir_session_reset(session, (const char* const[]){"a"}, 1);
  float value;
  check_error(weir_session_fetch_float(session, a, &value), WEIR_FAILED_PRECONDITION, "same");
  assert_float_equal(fetch_float(session, b), 2, 0);
  weir_session_reset(session, NULL, 0);
  check_error(weir_session_fetch_float(session, b, &value), WEIR_FAILED_PRECONDITION, "same");
}

static void test_sessions_share_state(void** state) {
  world_t* w = *state;
  weir_edge_t v = weir_variable(w->scope, "v", weir_const_float(w->scope, 4));
  weir_node_t* init = weir_initializer(w->scope);
  weir_session_t *second = NULL, *alone = NULL;
  weir_session_t* first = open_session(w, 1);
  check_ok(weir_session_create(w->graph, &(weir_session_options_t){.threads = 1}, &second));
  check_ok(weir_session_create(
      w->graph, &(weir_session_options_t){.threads = 1, .isolate_state = true}, &alone));
  check_ok(weir_session_run_target(first, init));
  assert_float_equal(fetch_float(second, v), 4, 0);
  float value;
  check_error(weir_session_fetch_float(alone, v, &value), WEIR_FAILED_PRECONDITION, "v");
  weir_session_destroy(second);
  weir_session_destroy(alone);
  assert_float_equal(fetch_float(first, v), 4, 0);
}

static void test_state_ends_with_the_last_session(void** state) {
  world_t* w = *state;
  weir_edge_t v = weir_variable(w->scope, "v", weir_const_float(w->scope, 4));
  weir_node_t* init = weir_initializer(w->scope);
  const weir_session_options_t options = {.threads = 1};
  weir_session_t *first = NULL, *second = NULL;
  check_ok(weir_session_create(w->graph, &options, &first));
  check_ok(weir_session_run_target(first, init));
  check_ok(weir_session_create(w->graph, &options, &second));
  weir_session_destroy(first);
  assert_float_equal(fetch_float(second, v), 4, 0);
  weir_session_destroy(second);
  check_ok(weir_session_create(w->graph, &options, &second));
  float value;
  check_error(weir_session_fetch_float(second, v, &value), WEIR_FAILED_PRECONDITION, "v");
  weir_session_destroy(second);
}

static void test_seeds_continue_between_signatures(void** state) {
  world_t* w = *state;
  weir_edge_t r =
      output(add(w, "RandomUniform", NULL, WEIR_EDGES(weir_const_ints(w->scope, (int[]){1}, 1)),
                 WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_FLOAT), weir_attr_int("seed", 7),
                            weir_attr_int("seed2", 9))),
             0);
  weir_edge_t more = OP(w, "AddV2", r, weir_const_float(w->scope, 0));
  weir_session_t* first = open_session(w, 1);
  float a = fetch_float(first, r);
  float b = fetch_float(first, r);
  weir_session_t* second = NULL;
  check_ok(weir_session_create(
      w->graph, &(weir_session_options_t){.threads = 1, .isolate_state = true}, &second));
  float c = fetch_float(second, r);
  float d = fetch_float(second, more);  // another signature: the generator goes on
  float e = fetch_float(first, r);
  float f = fetch_float(second, r);
  weir_session_destroy(second);
  assert_true(a != b && b != e);
  assert_float_equal(a, c, 0);
  assert_float_equal(b, d, 0);
  assert_float_equal(e, f, 0);
}

// ---- many steps at once ----

typedef struct worker_t {
  weir_session_t* session;
  weir_node_t* target;
  weir_edge_t fetch;
  int steps;
  weir_run_options_t options;
  weir_status_t* status;
  pthread_t thread;
  atomic_bool is_done;
} worker_t;

static void* worker_main(void* arg) {
  worker_t* worker = arg;
  for (int i = 0; i < worker->steps && !worker->status; ++i) {
    weir_tensor_t* result = NULL;
    weir_step_spec_t spec = {.fetches = &worker->fetch,
                             .fetch_count = worker->fetch.node ? 1 : 0,
                             .targets = &worker->target,
                             .target_count = worker->target ? 1 : 0};
    worker->status =
        weir_session_run_with(worker->session, &spec, &worker->options, &result, NULL, NULL);
    weir_tensor_release(result);
  }
  atomic_store(&worker->is_done, true);
  return NULL;
}
static void worker_start(worker_t* worker) {
  assert_int_equal(pthread_create(&worker->thread, NULL, worker_main, worker), 0);
}
static weir_status_t* worker_join(worker_t* worker) {
  pthread_join(worker->thread, NULL);
  return worker->status;
}

static void test_concurrent_steps(void** state) {
  enum { THREADS = 8, STEPS = 100 };
  world_t* w = *state;
  weir_edge_t start = weir_const_floats(w->scope, WEIR_DIMS(3), (float[]){0, 0, 0});
  weir_edge_t v = weir_variable(w->scope, "v", start);
  weir_node_t* init = weir_initializer(w->scope);
  weir_edge_t one = weir_const_floats(w->scope, WEIR_DIMS(3), (float[]){1, 2, 3});
  weir_node_t* bump =
      add(w, "AssignAddVariableOp", NULL, WEIR_EDGES(weir_variable_handle(v), one), WEIR_NO_ATTRS);
  weir_session_t* session = open_session(w, 4);
  check_ok(weir_session_run_target(session, init));
  worker_t workers[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    workers[i] = (worker_t){
        .session = session, .target = bump, .fetch = i % 2 ? v : WEIR_NO_EDGE, .steps = STEPS};
    worker_start(&workers[i]);
  }
  for (int i = 0; i < THREADS; ++i) check_ok(worker_join(&workers[i]));
  weir_tensor_t* result = NULL;
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(v)}, &result));
  check_floats(result, 0, THREADS * STEPS, 2 * THREADS * STEPS, 3 * THREADS * STEPS);
  weir_tensor_release(result);
}

static void test_concurrent_producers_and_consumers(void** state) {
  world_t* w = *state;
  queue_nodes_t q = add_queue(w, "q", 2);
  weir_node_t* put = add(w, "QueueEnqueueV2", NULL,
                         WEIR_EDGES(q.handle, weir_const_float(w->scope, 1)), WEIR_NO_ATTRS);
  weir_session_t* session = open_session(w, 2);
  worker_t workers[6];
  for (int i = 0; i < 6; ++i) {
    workers[i] = (worker_t){.session = session, .steps = 50};
    if (i < 3) workers[i].target = put;
    else workers[i].fetch = q.value;
    worker_start(&workers[i]);
  }
  for (int i = 0; i < 6; ++i) check_ok(worker_join(&workers[i]));
}

// ---- cancellation ----

// A dequeue that nobody serves, after telling through another queue that the step runs.
typedef struct blocked_t {
  queue_nodes_t empty;
  queue_nodes_t started;
  weir_edge_t value;
} blocked_t;
static blocked_t add_blocked(world_t* w) {
  blocked_t b;
  b.empty = add_queue(w, "empty", 1);
  b.started = add_queue(w, "started", 100);
  weir_node_t* tell =
      add(w, "QueueEnqueueV2", NULL, WEIR_EDGES(b.started.handle, weir_const_float(w->scope, 1)),
          WEIR_NO_ATTRS);
  weir_dtype_t types[] = {WEIR_DTYPE_FLOAT};
  weir_node_t* wait = add(w, "QueueDequeueV2", NULL, WEIR_EDGES(b.empty.handle),
                          WEIR_ATTRS(weir_attr_types("component_types", types, 1)));
  check_ok(weir_graph_add_control(wait, tell));
  b.value = output(wait, 0);
  return b;
}

static void test_call_cancelled(void** state) {
  world_t* w = *state;
  blocked_t b = add_blocked(w);
  weir_session_t* session = open_session(w, 1);
  weir_cancellation_t* cancellation = NULL;
  check_ok(weir_cancellation_create(&cancellation));
  worker_t worker = {
      .session = session, .fetch = b.value, .steps = 1, .options = {.cancellation = cancellation}};
  worker_start(&worker);
  fetch_float(session, b.started.value);
  weir_cancellation_cancel(cancellation);
  check_error(worker_join(&worker), WEIR_CANCELLED, "");
  // Cancelled before it starts: never starts.
  worker = (worker_t){
      .session = session, .fetch = b.value, .steps = 1, .options = {.cancellation = cancellation}};
  worker_start(&worker);
  check_error(worker_join(&worker), WEIR_CANCELLED, "");
  weir_cancellation_destroy(cancellation);
  // A cancelled dequeue takes no element.
  enqueue_float(session, &b.empty, 3);
  assert_float_equal(fetch_float(session, b.value), 3, 0);
}

static void test_linear_step_cancelled(void** state) {
  world_t* w = *state;
  weir_edge_t y = OP(w, "Neg", placeholder(w, "x", WEIR_DTYPE_FLOAT));
  weir_session_t* session = open_session(w, 1);
  weir_cancellation_t* cancellation = NULL;
  check_ok(weir_cancellation_create(&cancellation));
  weir_cancellation_cancel(cancellation);
  weir_tensor_t* fed = make_float(1);
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({y.node->inputs[0], fed}), WEIR_FETCHES(y)};
  weir_run_options_t options = {.cancellation = cancellation};
  check_error(weir_session_run_with(session, &spec, &options, &result, NULL, NULL), WEIR_CANCELLED,
              "cancelled");
  assert_null(result);
  weir_cancellation_destroy(cancellation);
  weir_tensor_release(fed);
}

static void test_session_cancel(void** state) {
  world_t* w = *state;
  blocked_t b = add_blocked(w);
  weir_session_t* session = open_session(w, 2);
  worker_t workers[3];
  for (int i = 0; i < 3; ++i) {
    workers[i] = (worker_t){.session = session, .fetch = b.value, .steps = 1};
    worker_start(&workers[i]);
  }
  for (int i = 0; i < 3; ++i) fetch_float(session, b.started.value);
  weir_session_cancel(session);
  for (int i = 0; i < 3; ++i) check_error(worker_join(&workers[i]), WEIR_CANCELLED, "");
  enqueue_float(session, &b.empty, 3);  // later runs are not affected
  assert_float_equal(fetch_float(session, b.value), 3, 0);
}

// Other threads start new steps all the time; cancel must not wait for those.
static void test_session_cancel_under_load(void** state) {
  world_t* w = *state;
  blocked_t b = add_blocked(w);
  weir_edge_t y = OP(w, "Neg", weir_const_float(w->scope, 1));
  weir_session_t* session = open_session(w, 2);
  worker_t busy[2], blocked = {.session = session, .fetch = b.value, .steps = 1};
  worker_start(&blocked);
  fetch_float(session, b.started.value);
  for (int i = 0; i < 2; ++i) {
    busy[i] = (worker_t){.session = session, .fetch = y, .steps = 300};
    worker_start(&busy[i]);
  }
  weir_session_cancel(session);
  check_error(worker_join(&blocked), WEIR_CANCELLED, "");
  for (int i = 0; i < 2; ++i) {
    weir_status_t* status = worker_join(&busy[i]);  // ran, or was cancelled
    if (status) check_error(status, WEIR_CANCELLED, "");
  }
}

static void test_timeout(void** state) {
  world_t* w = *state;
  blocked_t b = add_blocked(w);
  weir_session_t* session = open_session(w, 1);
  worker_t worker = {
      .session = session, .fetch = b.value, .steps = 1, .options = {.timeout_ms = 30}};
  worker_start(&worker);
  check_error(worker_join(&worker), WEIR_DEADLINE_EXCEEDED, "Timed out");
  enqueue_float(session, &b.empty, 3);
  assert_float_equal(fetch_float(session, b.value), 3, 0);
}

static void test_timeout_of_a_loop(void** state) {
  world_t* w = *state;
  weir_edge_t limit = weir_const_int(w->scope, 2000000000);
  loop_nodes_t loop = open_loop(w, "forever", weir_const_int(w->scope, 0),
                                weir_const_float(w->scope, 0), limit, 10);
  close_loop(w, &loop, OP(w, "Neg", loop.x));
  weir_session_t* session = open_session(w, 2);
  worker_t worker = {
      .session = session, .fetch = loop.exit_x, .steps = 1, .options = {.timeout_ms = 50}};
  worker_start(&worker);
  check_error(worker_join(&worker), WEIR_DEADLINE_EXCEEDED, "Timed out");
}

static void test_destroy_while_blocked(void** state) {
  world_t* w = *state;
  blocked_t b = add_blocked(w);
  weir_session_t* session = NULL;
  check_ok(weir_session_create(w->graph, &(weir_session_options_t){.threads = 2}, &session));
  worker_t workers[2];
  for (int i = 0; i < 2; ++i) {
    workers[i] = (worker_t){.session = session, .fetch = b.value, .steps = 1};
    worker_start(&workers[i]);
  }
  for (int i = 0; i < 2; ++i) fetch_float(session, b.started.value);
  weir_session_destroy(session);
  for (int i = 0; i < 2; ++i) check_error(worker_join(&workers[i]), WEIR_CANCELLED, "");
}

static void test_closed_queue_ends_the_wait(void** state) {
  world_t* w = *state;
  blocked_t b = add_blocked(w);
  weir_session_t* session = open_session(w, 1);
  worker_t worker = {.session = session, .fetch = b.value, .steps = 1};
  worker_start(&worker);
  fetch_float(session, b.started.value);
  check_ok(weir_session_run_target(session, b.empty.close));
  check_error(worker_join(&worker), WEIR_OUT_OF_RANGE, "is closed and has insufficient elements");
}

// ---- errors ----

static void test_error_names_node_and_leaves_session_usable(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_INT32);
  weir_node_t* div =
      add(w, "FloorDiv", "quotient", WEIR_EDGES(weir_const_int(w->scope, 6), x), WEIR_NO_ATTRS);
  weir_session_t* session = open_session(w, 1);
  for (int i = 0; i < 3; ++i) {
    weir_tensor_t* fed = make_int(0);
    weir_tensor_t* results[2] = {NULL};
    weir_step_spec_t spec = {WEIR_FEEDS({x, fed}), WEIR_FETCHES(x, output(div, 0))};
    check_error(weir_session_run(session, &spec, results), WEIR_INVALID_ARGUMENT, "quotient");
    assert_null(results[0]);
    weir_tensor_release(fed);
    fed = make_int(2);
    weir_step_spec_t good = {WEIR_FEEDS({x, fed}), WEIR_FETCHES(x, output(div, 0))};
    check_ok(weir_session_run(session, &good, results));
    assert_int_equal(int_of(results[1]), 3);
    weir_tensor_release(results[0]);
    weir_tensor_release(results[1]);
    weir_tensor_release(fed);
  }
}

static void test_bad_options(void** state) {
  world_t* w = *state;
  weir_edge_t c = OP(w, "Neg", weir_const_float(w->scope, 1));
  w->scope = weir_scope_on(w->scope, "/gpu:0");
  weir_edge_t elsewhere = OP(w, "Neg", weir_const_float(w->scope, 1));
  weir_session_t* session = NULL;
  float value;
  check_ok(weir_session_create(
      w->graph, &(weir_session_options_t){.disabled_passes = "fold,nonsense"}, &session));
  check_error(weir_session_fetch_float(session, c, &value), WEIR_INVALID_ARGUMENT, "nonsense");
  weir_session_destroy(session);
  check_ok(
      weir_session_create(w->graph, &(weir_session_options_t){.disabled_passes = "all"}, &session));
  assert_float_equal(fetch_float(session, c), -1, 0);
  check_error(weir_session_fetch_float(session, elsewhere, &value), WEIR_INVALID_ARGUMENT,
              "Cannot assign a device");
  weir_session_destroy(session);
  check_ok(weir_session_create(w->graph, &(weir_session_options_t){.allow_soft_placement = true},
                               &session));
  assert_float_equal(fetch_float(session, elsewhere), -1, 0);
  weir_session_destroy(session);
}

// ---- callables, partial runs ----

static void test_callables(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = placeholder(w, "y", WEIR_DTYPE_FLOAT);
  weir_edge_t difference = OP(w, "Sub", x, y);
  weir_session_t* session = open_session(w, 1);
  weir_callable_t* callable = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({y, NULL}, {x, NULL}), WEIR_FETCHES(difference)};
  check_ok(weir_callable_create(session, &spec, &callable));
  assert_int_not_equal(weir_callable_node_count(callable), 0);
  weir_tensor_t* feeds[] = {make_float(1), make_float(10)};
  weir_tensor_t* result = NULL;
  for (int i = 0; i < 3; ++i) {
    check_ok(weir_callable_run(callable, feeds, &result));
    assert_float_equal(float_of(result), 9, 0);
    weir_tensor_release(result);
    result = NULL;
  }
  weir_tensor_t* wrong[] = {feeds[0], make_int(1)};
  check_error(weir_callable_run(callable, wrong, &result), WEIR_INVALID_ARGUMENT, "'x:0'");
  weir_callable_destroy(callable);
  weir_step_spec_t bad = {WEIR_FETCHES({NULL, 0})};
  check_error(weir_callable_create(session, &bad, &callable), WEIR_INVALID_ARGUMENT, "fetch");
  weir_tensor_release(feeds[0]);
  weir_tensor_release(feeds[1]);
  weir_tensor_release(wrong[1]);
}

static void test_partial_run(void** state) {
  world_t* w = *state;
  weir_edge_t a = placeholder(w, "a", WEIR_DTYPE_FLOAT);
  weir_edge_t b = placeholder(w, "b", WEIR_DTYPE_FLOAT);
  weir_edge_t c = placeholder(w, "c", WEIR_DTYPE_FLOAT);
  weir_edge_t r1 = OP(w, "AddV2", a, b);
  weir_edge_t r2 = OP(w, "Mul", r1, c);
  weir_session_t* session = open_session(w, 1);
  weir_partial_run_t* partial = NULL;
  weir_step_spec_t all = {WEIR_FEEDS({a, NULL}, {b, NULL}, {c, NULL}), WEIR_FETCHES(r1, r2)};
  check_ok(weir_partial_run_create(session, &all, &partial));
  weir_tensor_t *one = make_float(1), *two = make_float(2), *result = NULL, *integer = make_int(3);
  weir_step_spec_t first = {WEIR_FEEDS({a, one}, {b, two}), WEIR_FETCHES(r1)};
  check_ok(weir_partial_run_continue(partial, &first, &result));
  assert_float_equal(float_of(result), 3, 0);
  weir_tensor_release(result);
  result = NULL;
  check_error(
      weir_partial_run_continue(partial, &(weir_step_spec_t){WEIR_FEEDS({a, one})}, &result),
      WEIR_INVALID_ARGUMENT, "already used");
  check_error(weir_partial_run_continue(partial, &(weir_step_spec_t){WEIR_FETCHES(r1)}, &result),
              WEIR_INVALID_ARGUMENT, "already used");
  check_error(weir_partial_run_continue(partial, &(weir_step_spec_t){WEIR_FETCHES(a)}, &result),
              WEIR_INVALID_ARGUMENT, "not declared");
  check_error(
      weir_partial_run_continue(partial, &(weir_step_spec_t){WEIR_FEEDS({c, integer})}, &result),
      WEIR_INVALID_ARGUMENT, "int32 was fed");
  weir_step_spec_t second = {WEIR_FEEDS({c, two}), WEIR_FETCHES(r2)};
  check_ok(weir_partial_run_continue(partial, &second, &result));
  assert_float_equal(float_of(result), 6, 0);
  weir_tensor_release(result);
  weir_partial_run_destroy(partial);
  weir_tensor_release(one);
  weir_tensor_release(two);
  weir_tensor_release(integer);
}

static void test_partial_run_left_alone(void** state) {
  world_t* w = *state;
  weir_edge_t a = placeholder(w, "a", WEIR_DTYPE_FLOAT);
  weir_edge_t r = OP(w, "Neg", a);
  weir_session_t* session = open_session(w, 1);
  weir_partial_run_t* partial = NULL;
  check_ok(weir_partial_run_create(
      session, &(weir_step_spec_t){WEIR_FEEDS({a, NULL}), WEIR_FETCHES(r)}, &partial));
  weir_partial_run_destroy(partial);  // cancels the step that waits for its feed
  weir_step_spec_t twice = {WEIR_FEEDS({a, NULL}, {a, NULL}), WEIR_FETCHES(r)};
  check_error(weir_partial_run_create(session, &twice, &partial), WEIR_INVALID_ARGUMENT,
              "more than once");
}

// What a call fetched before it failed goes with the error.
static void test_partial_run_error_drops_results(void** state) {
  world_t* w = *state;
  weir_edge_t a = placeholder(w, "a", WEIR_DTYPE_FLOAT);
  weir_edge_t same = OP(w, "Identity", a);
  weir_edge_t other = OP(w, "Neg", a);
  weir_session_t* session = open_session(w, 2);
  weir_partial_run_t* partial = NULL;
  check_ok(weir_partial_run_create(
      session, &(weir_step_spec_t){WEIR_FEEDS({a, NULL}), WEIR_FETCHES(same, other)}, &partial));
  weir_tensor_t *one = make_float(1), *results[2] = {NULL};
  check_error(
      weir_partial_run_continue(
          partial, &(weir_step_spec_t){WEIR_FEEDS({a, one}), WEIR_FETCHES(same, same)}, results),
      WEIR_INVALID_ARGUMENT, "");
  assert_null(results[0]);
  assert_null(results[1]);
  weir_partial_run_destroy(partial);
  assert_true(weir_tensor_is_sole(one));
  weir_tensor_release(one);
}

// The session ends while the step's thread starts, or before it has come to anything.
static void test_partial_run_outlives_its_session(void** state) {
  enum { ROUNDS = 100 };
  world_t* w = *state;
  weir_edge_t a = placeholder(w, "a", WEIR_DTYPE_FLOAT);
  weir_edge_t r = OP(w, "Neg", a);
  weir_tensor_t *one = make_float(1), *result = NULL;
  for (int i = 0; i < ROUNDS; ++i) {
    weir_session_t* session = NULL;
    weir_partial_run_t* partial = NULL;
    weir_perturb_start((uint64_t)i + 1);
    check_ok(weir_session_create(w->graph, &(weir_session_options_t){.threads = 1}, &session));
    check_ok(weir_partial_run_create(
        session, &(weir_step_spec_t){WEIR_FEEDS({a, NULL}), WEIR_FETCHES(r)}, &partial));
    weir_session_destroy(session);
    check_error(weir_partial_run_continue(
                    partial, &(weir_step_spec_t){WEIR_FEEDS({a, one}), WEIR_FETCHES(r)}, &result),
                WEIR_CANCELLED, "");
    assert_null(result);
    weir_partial_run_destroy(partial);
  }
  weir_perturb_start(0);
  weir_tensor_release(one);
}

static void test_partial_run_error_reaches_the_fetch(void** state) {
  world_t* w = *state;
  weir_edge_t a = placeholder(w, "a", WEIR_DTYPE_INT32);
  weir_edge_t r = OP(w, "FloorDiv", weir_const_int(w->scope, 1), a);
  weir_session_t* session = open_session(w, 1);
  weir_partial_run_t* partial = NULL;
  check_ok(weir_partial_run_create(
      session, &(weir_step_spec_t){WEIR_FEEDS({a, NULL}), WEIR_FETCHES(r)}, &partial));
  weir_tensor_t *zero = make_int(0), *result = NULL;
  weir_step_spec_t step = {WEIR_FEEDS({a, zero}), WEIR_FETCHES(r)};
  check_error(weir_partial_run_continue(partial, &step, &result), WEIR_INVALID_ARGUMENT, "zero");
  weir_partial_run_destroy(partial);
  weir_tensor_release(zero);
}

// ---- traces ----

static void test_traces(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = output(add(w, "Neg", "a/minus", WEIR_EDGES(x), WEIR_NO_ATTRS), 0);
  weir_session_t* session = open_session(w, 1);
  weir_tensor_t *fed = make_float(1), *result = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({x, fed}), WEIR_FETCHES(y)};
  char *metadata = NULL, *json = NULL;
  size_t size = 0;
  check_ok(weir_session_run_with(session, &spec, &(weir_run_options_t){.trace = true}, &result,
                                 &metadata, &size));
  weir_tensor_release(result);
  assert_true(size > 0);
  assert_non_null(memmem(metadata, size, "a/minus", 7));
  assert_non_null(memmem(metadata, size, "/device:CPU:0", 13));
  check_ok(weir_session_run_traced(session, &spec, &result, &json));
  weir_tensor_release(result);
  assert_non_null(strstr(json, "\"traceEvents\""));
  assert_non_null(strstr(json, "{\"name\":\"Neg\""));
  assert_non_null(strstr(json, "a/minus"));
  weir_buffer_free(metadata);
  weir_buffer_free(json);
  weir_tensor_release(fed);
}

// A program of many signatures: those used last stay ready, and a callable keeps its own.
static void test_many_signatures(void** state) {
  enum { SIGNATURES = 1050, LIMIT = 1000 };
  world_t* w = *state;
  weir_session_t* session = open_session(w, 1);
  weir_edge_t first = weir_const_float(w->scope, 7);
  weir_callable_t* callable = NULL;
  check_ok(weir_callable_create(session, &(weir_step_spec_t){WEIR_FETCHES(first)}, &callable));
  for (int i = 0; i < SIGNATURES; ++i) {
    weir_edge_t c = weir_const_float(w->scope, (float)i);
    assert_float_equal(fetch_float(session, c), (float)i, 0);
  }
  assert_int_equal(session->plans.items.count, LIMIT);
  weir_tensor_t* result = NULL;
  check_ok(weir_callable_run(callable, NULL, &result));
  assert_float_equal(float_of(result), 7, 0);
  weir_tensor_release(result);
  assert_float_equal(fetch_float(session, first), 7, 0);
  assert_int_equal(session->plans.items.count, LIMIT);
  weir_callable_destroy(callable);
}

// ---- functions ----

#define INT_ARG(name) " {name: '" name "' type: DT_INT32}"
#define INT_ATTR(key) " attr {key: '" key "' value {type: DT_INT32}}"
#define INT_LIST(key) " attr {key: '" key "' value {list {type: DT_INT32}}}"
#define INT_ONE \
  " node_def {name: 'one' op: 'Const'" INT_ATTR("dtype") " attr {key: 'value' value {tensor {dtype: " \
  "DT_INT32 tensor_shape {} int_val: 1}}}}"
#define FUNC(key, value) " attr {key: '" key "' value {func {name: '" value "'}}}"

static const char factorial[] =
    "node {name: 'n' op: 'Placeholder'" INT_ATTR("dtype") "}"
    "node {name: 'call' op: 'PartitionedCall' input: 'n'" INT_LIST("Tin") INT_LIST("Tout") FUNC("f", "Fact") "}"
    "library {"
    " function {signature {name: 'Fact' input_arg" INT_ARG("n") " output_arg" INT_ARG("r") "}" INT_ONE
    "  node_def {name: 'le' op: 'LessEqual' input: 'n' input: 'one:output:0'" INT_ATTR("T") "}"
    "  node_def {name: 'if' op: 'If' input: 'le:z:0' input: 'n' attr {key: 'Tcond' value {type: DT_BOOL}}"
    INT_LIST("Tin") INT_LIST("Tout") FUNC("then_branch", "Base") FUNC("else_branch", "Step") "}"
    "  ret {key: 'r' value: 'if:output:0'}}"
    " function {signature {name: 'Base' input_arg" INT_ARG("n") " output_arg" INT_ARG("r") "}" INT_ONE
    "  ret {key: 'r' value: 'one:output:0'}}"
    " function {signature {name: 'Step' input_arg" INT_ARG("n") " output_arg" INT_ARG("r") "}" INT_ONE
    "  node_def {name: 'less' op: 'Sub' input: 'n' input: 'one:output:0'" INT_ATTR("T") "}"
    "  node_def {name: 'rest' op: 'PartitionedCall' input: 'less:z:0'" INT_LIST("Tin") INT_LIST("Tout") FUNC("f", "Fact") "}"
    "  node_def {name: 'product' op: 'Mul' input: 'n' input: 'rest:output:0'" INT_ATTR("T") "}"
    "  ret {key: 'r' value: 'product:z:0'}}"
    "}";

static void run_factorial(weir_session_t* session, weir_graph_t* graph, int n, int expected) {
  weir_edge_t x, y;
  check_ok(weir_graph_find_output(graph, "n", &x));
  check_ok(weir_graph_find_output(graph, "call", &y));
  weir_tensor_t *fed = make_int(n), *result = NULL;
  check_ok(weir_session_run(session, &(weir_step_spec_t){WEIR_FEEDS({x, fed}), WEIR_FETCHES(y)},
                            &result));
  assert_int_equal(int_of(result), expected);
  weir_tensor_release(result);
  weir_tensor_release(fed);
}

static void test_recursive_function(void** state) {
  world_t* w = *state;
  import_text(w, factorial);
  weir_session_t* session = open_session(w, 2);
  run_factorial(session, w->graph, 1, 1);
  run_factorial(session, w->graph, 5, 120);
  run_factorial(session, w->graph, 12, 479001600);
  run_factorial(session, w->graph, 200, 0);  // depth costs memory of the step, no stack
}

static void test_unknown_function(void** state) {
  world_t* w = *state;
  import_text(
      w, "node {name: 'call' op: 'PartitionedCall'  attr {key: 'Tin' value {list {}}}" INT_LIST(
             "Tout") FUNC("f", "Nobody") "}");
  weir_session_t* session = open_session(w, 1);
  weir_tensor_t* result = NULL;
  weir_edge_t y;
  check_ok(weir_graph_find_output(w->graph, "call", &y));
  check_error(weir_session_run(session, &(weir_step_spec_t){WEIR_FETCHES(y)}, &result),
              WEIR_NOT_FOUND, "Nobody");
}

// Nobody reads numbers as strings: what a function returns is what its caller says, or an error.
static void check_other_type(world_t* w, const char* caller, const char* inputs, weir_code_t code,
                             const char* says) {
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text,
                     "node {name: 'n' op: 'Placeholder'" INT_ATTR("dtype") "}"
                     "node {name: 'yes' op: 'Placeholder' attr {key: 'dtype' value {type: DT_BOOL}}}"
                     "node {name: 'call' %s %s}"
                     "library {function {signature {name: 'Same' input_arg" INT_ARG("n")
                     " output_arg" INT_ARG("r") "} ret {key: 'r' value: 'n'}}"
                     "function {signature {name: 'Yes' input_arg" INT_ARG("n")
                     " output_arg {name: 'r' type: DT_BOOL}}"
                     " node_def {name: 'yes' op: 'Const' attr {key: 'dtype' value {type: DT_BOOL}}"
                     "  attr {key: 'value' value {tensor {dtype: DT_BOOL tensor_shape {} bool_val: true}}}}"
                     " ret {key: 'r' value: 'yes:output:0'}}}", inputs, caller);
  check_ok(weir_strbuf_finish(&text));
  import_text(w, text.data);
  weir_strbuf_free(&text);
  weir_session_t* session = open_session(w, 1);
  weir_edge_t n, yes, made;
  check_ok(weir_graph_find_output(w->graph, "n", &n));
  check_ok(weir_graph_find_output(w->graph, "yes", &yes));
  check_ok(weir_graph_find_output(w->graph, "call", &made));
  weir_tensor_t *number = make_int(3), *truth = make_bool(true), *result = NULL;
  weir_step_spec_t spec = {WEIR_FEEDS({n, number}, {yes, truth}), WEIR_FETCHES(made)};
  check_error(weir_session_run(session, &spec, &result), code, says);
  weir_tensor_release(number);
  weir_tensor_release(truth);
}
#define STRINGS_IF                                                                            \
  "op: 'If' attr {key: 'Tcond' value {type: DT_BOOL}}" INT_LIST(                              \
      "Tin") " attr {key: 'Tout' value {list {type: DT_STRING}}}" FUNC("then_branch", "Same") \
      FUNC("else_branch", "Same")

static void test_branch_of_another_type(void** state) {
  check_other_type(*state, STRINGS_IF, "input: 'yes' input: 'n'", WEIR_INTERNAL,
                   "Expect 0-th output is of type string but get int32");
}

// What cannot be lowered is called.
static void test_lowered_branch_of_another_type(void** state) {
  check_other_type(*state, STRINGS_IF " attr {key: '_lower_using_switch_merge' value {b: true}}",
                   "input: 'yes' input: 'n'", WEIR_INTERNAL,
                   "Expect 0-th output is of type string but get int32");
}

static void test_body_of_another_type(void** state) {
  check_other_type(*state, "op: 'While'" INT_LIST("T") FUNC("cond", "Yes") FUNC("body", "Yes"),
                   "input: 'n'", WEIR_INVALID_ARGUMENT,
                   "Expected type int32 for return value 0 but got bool");
}

// A condition is looked at when the Switch runs, not when it was read.
static void test_condition_that_changes(void** state) {
  world_t* w = *state;
  weir_attrs_t attrs = WEIR_ATTRS(weir_attr_type("dtype", WEIR_DTYPE_BOOL),
                                  weir_attr_shape("shape", &weir_shape_scalar));
  weir_edge_t v = output(add(w, "VariableV2", "v", WEIR_NO_EDGES, attrs), 0);
  weir_edge_t init = OP(w, "Assign", v, const_bool(w, true));
  weir_edge_t read = OP(w, "StopGradient", v);
  weir_edge_t write = OP(w, "Assign", v, const_bool(w, false));
  check_ok(weir_graph_add_control(write.node, read.node));
  weir_edge_t sides = OP(w, "Switch", weir_const_float(w->scope, 4), read);
  check_ok(weir_graph_add_control(sides.node, write.node));
  weir_session_t* session = open_session(w, 1);
  check_ok(weir_session_run_target(session, init.node));
  float value = 0;
  check_ok(weir_session_fetch_float(session, output(sides.node, 0), &value));
  assert_float_equal(value, 4, 0);
}

// Rates that cannot be read are an error of the session or of its first step, not a guess.
static void test_rates_nobody_wrote(void** state) {
  world_t* w = *state;
  weir_edge_t x = weir_const_float(w->scope, 2), y = OP(w, "Neg", OP(w, "Square", x));
  weir_session_options_t options = {
      .threads = 1, .devices = "cpu:2", .place = "cost", .rates = "/no/such/file"};
  float value = 0;
  weir_status_t* status = weir_session_create(w->graph, &options, &w->session);
  if (!status) status = weir_session_fetch_float(w->session, y, &value);
  check_error(status, WEIR_NOT_FOUND, "/no/such/file");
}

static void test_peak_of_no_session(void** state) {
  (void)state;
  assert_int_equal(weir_session_device_peak_bytes(NULL), 0);
}

static void test_unknown_op_fails_when_run(void** state) {
  world_t* w = *state;
  import_text(w, "node {name: 'a' op: 'NobodyKnows'} node {name: 'b' op: 'NoOp'}");
  weir_session_t* session = open_session(w, 1);
  check_ok(weir_session_run_target(session, weir_graph_find_node(w->graph, "b")));
  check_error(weir_session_run_target(session, weir_graph_find_node(w->graph, "a")), WEIR_NOT_FOUND,
              "NobodyKnows");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_rates_nobody_wrote),
      TEST(test_peak_of_no_session),
      TEST(test_any_edge_can_be_fed),
      TEST(test_fed_output_of_many),
      TEST(test_fetches_and_targets),
      TEST(test_bad_feeds),
      TEST(test_bad_fetches),
      TEST(test_many_feeds),
      TEST(test_graph_grows_between_runs),
      TEST(test_uninitialised),
      TEST(test_branch_of_another_type),
      TEST(test_lowered_branch_of_another_type),
      TEST(test_body_of_another_type),
      TEST(test_condition_that_changes),
      TEST(test_no_memory_for_the_result),
      TEST(test_results_stay),
      TEST(test_accumulators_of_one_name),
      TEST(test_containers),
      TEST(test_sessions_share_state),
      TEST(test_state_ends_with_the_last_session),
      TEST(test_seeds_continue_between_signatures),
      TEST(test_concurrent_steps),
      TEST(test_concurrent_producers_and_consumers),
      TEST(test_call_cancelled),
      TEST(test_linear_step_cancelled),
      TEST(test_session_cancel),
      TEST(test_session_cancel_under_load),
      TEST(test_timeout),
      TEST(test_timeout_of_a_loop),
      TEST(test_destroy_while_blocked),
      TEST(test_closed_queue_ends_the_wait),
      TEST(test_error_names_node_and_leaves_session_usable),
      TEST(test_bad_options),
      TEST(test_callables),
      TEST(test_partial_run),
      TEST(test_partial_run_left_alone),
      TEST(test_partial_run_error_drops_results),
      TEST(test_partial_run_outlives_its_session),
      TEST(test_partial_run_error_reaches_the_fetch),
      TEST(test_traces),
      TEST(test_many_signatures),
      TEST(test_recursive_function),
      TEST(test_unknown_function),
      TEST(test_unknown_op_fails_when_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
