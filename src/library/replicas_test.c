// replicas_test.c — Replicas in one process: where variables go, waiting for them, and synchronous
// steps of workers that are threads. tests/replicas_test.py has them as processes.
#include "weir/replicas.h"

#include <math.h>
#include <unistd.h>

#include "testing/tensors.h"
#include "weir/server.h"
#include "weir/weir.h"

enum { MOST_WORKERS = 4, PS_COUNT = 2, SERVER_COUNT = PS_COUNT + 1 };

typedef struct world_t {
  weir_graph_t* graph;
  weir_scope_t* scope;
  weir_session_t* session;
  weir_coordinator_t* coordinator;
  weir_sync_replicas_t sync[MOST_WORKERS];
  weir_server_t* servers[SERVER_COUNT];  // NULL: the session is local
  char paths[SERVER_COUNT][96];
  char target[128];
} world_t;

static int setup(void** state) {
  world_t* w = calloc(1, sizeof(*w));
  check_ok(weir_graph_create(&w->graph));
  w->scope = weir_scope_create(w->graph);
  check_ok(weir_coordinator_create(&w->coordinator));
  *state = w;
  return 0;
}

static int teardown(void** state) {
  world_t* w = *state;
  weir_coordinator_destroy(w->coordinator);
  weir_session_destroy(w->session);
  for (int i = 0; i < SERVER_COUNT; ++i) {
    weir_server_destroy(w->servers[i], 0);
    if (*w->paths[i]) unlink(w->paths[i] + strlen("unix:"));
  }
  weir_status_destroy(weir_scope_finish(w->scope));
  weir_graph_release(w->graph);
  free(w);
  return 0;
}

static void open_session(world_t* w) {
  check_ok(weir_status_copy(weir_scope_status(w->scope)));
  weir_session_options_t options = {.target = w->target, .device_filters = "/job:ps,/job:worker"};
  check_ok(weir_session_create(w->graph, &options, &w->session));
}

static void open_world(world_t* w) {
  weir_node_t* init = weir_initializer(w->scope);
  open_session(w);
  check_ok(weir_session_run_target(w->session, init));
}

static weir_tensor_t* fetch(world_t* w, weir_edge_t edge) {
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {WEIR_FETCHES(edge)};
  check_ok(weir_session_run(w->session, &spec, &result));
  return result;
}

static void run(world_t* w, weir_node_t* node) {
  assert_non_null(node);
  check_ok(weir_session_run_target(w->session, node));
}

static int64_t fetch_int(world_t* w, weir_edge_t edge) {
  weir_tensor_t* result = fetch(w, edge);
  const int64_t value = weir_tensor_dtype(result) == WEIR_DTYPE_INT64
                            ? *(int64_t*)weir_tensor_data(result)
                            : *(int32_t*)weir_tensor_data(result);
  weir_tensor_release(result);
  return value;
}

static weir_edge_t scalar(weir_scope_t* s, const char* name, float value) {
  return weir_variable(s, name, weir_const_float(s, value));
}

// ---- where things go ----

static const char* device_of(weir_edge_t variable) {
  return weir_node_device(weir_variable_handle(variable).node);
}

static void test_round_robin(void** state) {
  world_t* w = *state;
  weir_scope_t* s = weir_scope_replica(w->scope, 2, 7);
  weir_edge_t a = scalar(s, "a", 1), b = scalar(weir_scope_in(s, "in"), "b", 1);
  weir_edge_t c = scalar(s, "c", 1), sum = weir_add_v2(s, a, b);
  assert_string_equal(device_of(a), "/job:ps/task:0");
  assert_string_equal(weir_node_device(a.node), "/job:ps/task:0");
  assert_string_equal(weir_node_device(weir_scope_variable_at(s, 0).initializer), "/job:ps/task:0");
  assert_string_equal(device_of(b), "/job:ps/task:1");
  assert_string_equal(device_of(c), "/job:ps/task:0");
  assert_string_equal(weir_node_device(sum.node), "/job:worker/task:7");
  weir_edge_t own = scalar(weir_scope_on(s, "/job:worker/task:7/device:GPU:0"), "own", 1);
  assert_string_equal(device_of(own), "/job:worker/task:7/device:GPU:0");
  assert_string_equal(device_of(weir_global_step(s)), "/job:ps/task:1");
  check_ok(weir_status_copy(weir_scope_status(w->scope)));
}

static weir_edge_t variable_of(weir_scope_t* s, int64_t rows) {
  return weir_variable(
      s, "v",
      weir_fill(s, weir_const_ints(s, (const int[]){(int)rows}, 1), weir_const_float(s, 0)));
}

static void test_by_size(void** state) {
  world_t* w = *state;
  weir_scope_t* s =
      weir_scope_replica(w->scope, 3, 0, .choice = WEIR_PS_BY_SIZE, .ps_job = "keeper",
                         .worker_job = "chief", .worker_device = "/device:CPU:0");
  const int64_t sizes[] = {100, 10, 20, 5, 5, 1, 90};
  const int expected[] = {0, 1, 2, 1, 1, 1, 2};  // 100 | 10, 15, 20, 21 | 20, 110
  for (int i = 0; i < 7; ++i) {
    char name[32];
    snprintf(name, sizeof(name), "/job:keeper/task:%d", expected[i]);
    assert_string_equal(device_of(variable_of(s, sizes[i])), name);
  }
  weir_edge_t one = weir_const_float(s, 1);
  assert_string_equal(weir_node_device(one.node), "/job:chief/task:0/device:CPU:0");
}

// Layers, what optimizers keep, and the nodes that update.
static void test_layers_and_optimizers(void** state) {
  world_t* w = *state;
  weir_scope_t* s = weir_scope_replica(w->scope, 2, 1);
  weir_edge_t x = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(-1, 3));
  weir_edge_t y = weir_layer_dense(s, x, 2);
  weir_optimizer_t adam = weir_adam(0.1f);
  weir_minimize(s, &adam, weir_sum(s, y, weir_const_ints(s, (const int[]){0, 1}, 2)));
  check_ok(weir_status_copy(weir_scope_status(s)));
  for (size_t i = 0; i < weir_graph_node_count(w->graph); ++i) {
    const weir_node_t* node = weir_graph_node_at(w->graph, i);
    const char* device = weir_node_device(node);
    const bool is_kernel = !strncmp(weir_node_name(node), "dense/kernel", 12);
    const bool is_bias = !strncmp(weir_node_name(node), "dense/bias", 10);
    if (is_kernel) assert_string_equal(device, "/job:ps/task:0");
    if (is_bias) assert_string_equal(device, "/job:ps/task:1");
    if (!strcmp(weir_node_op(node), "ResourceApplyAdam"))
      assert_string_equal(device, weir_node_device(weir_node_input(node, 0).node));
    if (!strcmp(weir_node_op(node), "MatMul")) assert_string_equal(device, "/job:worker/task:1");
  }
}

static void make_in_body(weir_scope_t* s, weir_edge_t* value, void* user) {
  weir_edge_t* made = user;
  *made = weir_variable(s, "inside", weir_const_float(s, 2));
  *value = weir_mul(s, *value, *made);
}

static weir_edge_t is_small(weir_scope_t* s, const weir_edge_t* value, void* user) {
  (void)user;
  return weir_less(s, *value, weir_const_float(s, 100));
}

static void test_loops(void** state) {
  world_t* w = *state;
  weir_scope_t* s = weir_scope_replica(w->scope, 3, 2);
  weir_edge_t first = scalar(s, "first", 1), value = weir_const_float(s, 1), inside;
  weir_while_loop(s, &value, 1, is_small, make_in_body, &inside, &value);
  check_ok(weir_status_copy(weir_scope_status(s)));
  assert_string_equal(device_of(first), "/job:ps/task:0");
  assert_string_equal(device_of(inside), "/job:ps/task:1");
  assert_string_equal(weir_node_device(value.node), "/job:worker/task:2");
}

static void test_no_servers(void** state) {
  world_t* w = *state;
  weir_scope_t* s = weir_scope_replica(w->scope, 0, 3);
  assert_string_equal(device_of(scalar(s, "a", 1)), "");
  weir_scope_replica(w->scope, -1, 0);
  check_error(weir_status_copy(weir_scope_status(s)), WEIR_INVALID_ARGUMENT, "negative");
}

// ---- waiting ----

static void test_wait(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_edge_t a = scalar(s, "a", 1);
  scalar(weir_scope_in(s, "in"), "b", 2);
  weir_edge_t missing = weir_uninitialized(s);
  weir_node_t* init = weir_initializer(s);
  open_session(w);
  check_error(weir_wait_initialized(w->session, missing, .timeout_ms = 800), WEIR_DEADLINE_EXCEEDED,
              "a, in/b");
  check_ok(weir_session_run_target(w->session, weir_scope_variable_at(s, 0).initializer));
  check_error(weir_wait_initialized(w->session, missing, .timeout_ms = 800), WEIR_DEADLINE_EXCEEDED,
              ": in/b");
  check_ok(weir_wait_initialized(w->session, missing, .init = init));
  check_ok(weir_wait_initialized(w->session, missing));
  // A chief that comes back does not begin anew.
  weir_node_t* set = weir_assign_variable_op(s, weir_variable_handle(a), weir_const_float(s, 5));
  check_ok(weir_session_run_target(w->session, set));
  check_ok(weir_wait_initialized(w->session, missing, .init = init));
  weir_tensor_t* value = fetch(w, a);
  assert_true(*(float*)weir_tensor_data(value) == 5);
  weir_tensor_release(value);
}

static weir_status_t* initialize_later(weir_coordinator_t* coordinator, void* arg) {
  world_t* w = arg;
  weir_coordinator_wait(coordinator, 100);
  return weir_session_run_target(w->session, weir_scope_variable_at(w->scope, 0).initializer);
}

static void test_wait_for_another(void** state) {
  world_t* w = *state;
  scalar(w->scope, "a", 1);
  weir_edge_t missing = weir_uninitialized(w->scope);
  open_session(w);
  check_ok(weir_coordinator_start(w->coordinator, initialize_later, w));
  check_ok(weir_wait_initialized(w->session, missing, .timeout_ms = 60000));
}

static void test_wait_stops(void** state) {
  world_t* w = *state;
  scalar(w->scope, "a", 1);
  weir_edge_t missing = weir_uninitialized(w->scope);
  open_session(w);
  weir_coordinator_request_stop(w->coordinator, NULL);
  check_error(weir_wait_initialized(w->session, missing, .coordinator = w->coordinator),
              WEIR_CANCELLED, "variables: a");
  missing.node = NULL;
  check_error(weir_wait_initialized(w->session, missing), WEIR_INVALID_ARGUMENT, "to wait for");
}

static void test_nothing_to_wait_for(void** state) {
  world_t* w = *state;
  weir_edge_t missing = weir_uninitialized(w->scope);
  open_session(w);
  check_ok(weir_wait_initialized(w->session, missing));
}

// ---- synchronous steps ----

// A model with a table, of which only some rows have gradients, and a dense matrix.
typedef struct model_t {
  weir_edge_t table, matrix;
} model_t;

static model_t make_model(weir_scope_t* s) {
  float table[12], matrix[6];
  for (int i = 0; i < 12; ++i) table[i] = 0.1f * (float)(i % 5) - 0.2f;
  for (int i = 0; i < 6; ++i) matrix[i] = 0.3f * (float)(i % 4) - 0.4f;
  model_t m;
  m.table = weir_variable(s, "table", weir_const_floats(s, WEIR_DIMS(4, 3), table));
  m.matrix = weir_variable(s, "matrix", weir_const_floats(s, WEIR_DIMS(3, 2), matrix));
  return m;
}

// The mean over |rows| of squared outputs.
static weir_edge_t loss_of(weir_scope_t* s, model_t m, const int* rows, int count) {
  weir_edge_t handle = weir_variable_handle(m.table);
  weir_edge_t x =
      weir_resource_gather(s, handle, weir_const_ints(s, rows, count), WEIR_DTYPE_FLOAT);
  weir_edge_t goal = weir_sub(s, weir_mat_mul(s, x, m.matrix), weir_const_float(s, 1));
  return weir_mean(s, weir_square(s, goal), weir_const_ints(s, (const int[]){0, 1}, 2));
}

static weir_status_t* work(weir_coordinator_t* coordinator, void* arg) {
  void** args = arg;
  weir_session_t* session = args[0];
  const weir_sync_replicas_t* sync = args[1];
  (void)coordinator;
  weir_status_t* status = weir_session_run_target(session, sync->begin);
  while (!status) status = weir_session_run_target(session, sync->step);
  return status;  // OUT_OF_RANGE is no error
}

// |workers| of the world's take steps until the chief has made |steps|.
static void train(world_t* w, int workers, int64_t steps) {
  void* args[MOST_WORKERS][2];
  check_ok(weir_sync_replicas_lead(&w->sync[0], w->session, w->coordinator, steps));
  for (int i = 0; i < workers; ++i) {
    args[i][0] = w->session;
    args[i][1] = &w->sync[i];
    check_ok(weir_coordinator_start(w->coordinator, work, args[i]));
  }
  check_ok(weir_coordinator_join(w->coordinator, 60000));
  assert_int_equal(fetch_int(w, w->sync[0].global_step), steps);
}

// Trains by workers that have |rows|, |per_worker| each, and in one process on all of them; both
// must give the same.
static void compare(void** state, const weir_optimizer_t* optimizer, int workers, const int* rows,
                    int per_worker, bool is_same_batch, float clip) {
  world_t* w = *state;
  weir_scope_t* s = weir_scope_replica(w->scope, *w->target ? PS_COUNT : 0, 0);
  model_t together = make_model(weir_scope_in(s, "together"));
  for (int i = 0; i < workers; ++i) {
    const int* own = is_same_batch ? rows : rows + i * per_worker;
    w->sync[i] = weir_sync_replicas(
        s, optimizer, loss_of(s, together, own, per_worker), i, workers,
        .minimize = {.clip_global_norm = clip,
                     .variables = (const weir_edge_t[]){together.table, together.matrix},
                     .variable_count = 2});
  }
  model_t alone = make_model(weir_scope_in(s, "alone"));
  weir_edge_t loss = loss_of(s, alone, rows, is_same_batch ? per_worker : workers * per_worker);
  weir_node_t* step = weir_minimize(s, optimizer, loss, .clip_global_norm = clip,
                                    .variables = (const weir_edge_t[]){alone.table, alone.matrix},
                                    .variable_count = 2);
  open_world(w);
  enum { STEPS = 20 };
  train(w, workers, STEPS);
  for (int i = 0; i < STEPS; ++i) check_ok(weir_session_run_target(w->session, step));
  const weir_edge_t pairs[][2] = {{together.table, alone.table}, {together.matrix, alone.matrix}};
  for (int i = 0; i < 2; ++i) {
    weir_tensor_t *a = fetch(w, pairs[i][0]), *b = fetch(w, pairs[i][1]);
    const float *x = weir_tensor_data(a), *y = weir_tensor_data(b);
    for (int64_t k = 0; k < weir_tensor_count(a); ++k) {
      // The mean of two equal numbers is exact; other sums are rounded elsewhere.
      if (is_same_batch && workers == 2) assert_true(x[k] == y[k]);
      else assert_true(fabsf(x[k] - y[k]) <= 1e-5f * (1 + fabsf(y[k])));
    }
    weir_tensor_release(a);
    weir_tensor_release(b);
  }
}

static void test_same_batch_is_plain_descent(void** state) {
  weir_optimizer_t sgd = weir_sgd(0.1f);
  // SGD does not sum rows that come twice, accumulators do: here each comes once.
  compare(state, &sgd, 2, (const int[]){3, 1, 0}, 3, true, 0);
}
static void test_same_batch_with_adam(void** state) {
  weir_optimizer_t adam = weir_adam(0.05f);
  compare(state, &adam, 2, (const int[]){3, 1, 3}, 3, true, 0);
}
static void test_same_batch_of_three(void** state) {
  weir_optimizer_t momentum = weir_momentum(0.1f, 0.9f);
  compare(state, &momentum, 3, (const int[]){0, 2}, 2, true, 0);
}
// Rows that one worker has and the other lacks count as zero there.
static void test_parts_of_a_batch(void** state) {
  weir_optimizer_t sgd = weir_sgd(0.2f);
  compare(state, &sgd, 4, (const int[]){3, 1, 0, 1, 3, 3, 1, 0}, 2, false, 0);
}
static void test_clipped(void** state) {
  weir_optimizer_t adagrad = weir_adagrad(0.2f);
  compare(state, &adagrad, 2, (const int[]){3, 1, 0, 2}, 2, false, 0.1f);
}

// Two parameter servers and a worker. False in a build without clusters.
static bool start_servers(world_t* w) {
  char cluster[512];
  for (int i = 0; i < SERVER_COUNT; ++i)
    snprintf(w->paths[i], sizeof(w->paths[i]), "unix:/tmp/weir_replicas_test.%d.%d", (int)getpid(),
             i);
  snprintf(cluster, sizeof(cluster), "ps|%s;%s,worker|%s", w->paths[0], w->paths[1], w->paths[2]);
  snprintf(w->target, sizeof(w->target), "grpc://%s", w->paths[PS_COUNT]);
  for (int i = 0; i < SERVER_COUNT; ++i) {
    weir_server_options_t options = {.cluster = cluster,
                                     .job = i < PS_COUNT ? "ps" : "worker",
                                     .task = i % PS_COUNT,
                                     .threads = 1};
    weir_status_t* status = weir_server_create(&options, &w->servers[i]);
    if (weir_status_code(status) == WEIR_UNIMPLEMENTED) {
      weir_status_destroy(status);
      return false;
    }
    check_ok(status);
  }
  return true;
}

static void test_on_servers(void** state) {
  if (!start_servers(*state)) skip();
  weir_optimizer_t adam = weir_adam(0.05f);
  compare(state, &adam, 3, (const int[]){3, 1, 0, 2, 3, 3}, 2, false, 0);
}

// ---- in the order of workers ----

enum { ORDERED = 3 };

// Three workers of their own |name|, with a model of their own.
static model_t make_ordered(world_t* w, const char* name, weir_sync_replicas_t* out) {
  static const int rows[ORDERED][3] = {{3, 1, 0}, {1, 3, 3}, {2, 1, 1}};
  weir_scope_t* s = weir_scope_in(w->scope, name);
  char shared[16];
  snprintf(shared, sizeof(shared), "%s_sync", name);
  model_t m = make_model(s);
  weir_edge_t steps =
      weir_variable(s, "steps", weir_cast(s, weir_const_int(s, 0), WEIR_DTYPE_INT64));
  weir_optimizer_t momentum = weir_momentum(0.37f, 0.9f);
  for (int i = 0; i < ORDERED; ++i) {
    out[i] = weir_sync_replicas(w->scope, &momentum, loss_of(s, m, rows[i], 3), i, ORDERED,
                                .name = shared, .in_order = true,
                                .minimize = {.variables = (const weir_edge_t[]){m.table, m.matrix},
                                             .variable_count = 2,
                                             .global_step = steps});
  }
  return m;
}

// A step whose gradients come as |order| says.
static void step_in(world_t* w, const char* name, const weir_sync_replicas_t* sync,
                    const int* order) {
  char node[64];
  for (int i = 0; i < ORDERED; ++i) run(w, sync[i].begin);
  for (int i = 0; i < ORDERED; ++i) {
    if (order[i]) snprintf(node, sizeof(node), "%s_sync_%d/hand_in", name, order[i]);
    else snprintf(node, sizeof(node), "%s_sync/hand_in", name);
    run(w, weir_graph_find_node(w->graph, node));
  }
  run(w, sync[0].advance);
}

static void test_same_bits_in_any_order(void** state) {
  world_t* w = *state;
  weir_sync_replicas_t sync[2][ORDERED];
  model_t models[2] = {make_ordered(w, "a", sync[0]), make_ordered(w, "b", sync[1])};
  open_world(w);
  for (int i = 0; i < 2; ++i) run(w, sync[i][0].chief_begin);
  for (int i = 0; i < 5; ++i) {
    step_in(w, "a", sync[0], (const int[]){0, 1, 2});
    step_in(w, "b", sync[1], (const int[]){2, i % 2, 1 - i % 2});
  }
  weir_edge_t values[] = {models[0].table, models[1].table, models[0].matrix, models[1].matrix};
  for (int i = 0; i < 4; i += 2) {
    weir_tensor_t *a = fetch(w, values[i]), *b = fetch(w, values[i + 1]);
    assert_memory_equal(weir_tensor_data(a), weir_tensor_data(b), weir_tensor_byte_size(a));
    weir_tensor_release(a);
    weir_tensor_release(b);
  }
}

// ---- workers that are slow, dead or asleep ----

// x² for each worker: the mean gradient is 2x whoever takes part.
static weir_edge_t make_workers(world_t* w, int workers, int needed) {
  weir_scope_t* s = w->scope;
  weir_edge_t x = scalar(s, "x", 1);
  weir_optimizer_t sgd = weir_sgd(0.25f);
  for (int i = 0; i < workers; ++i)
    w->sync[i] = weir_sync_replicas(s, &sgd, weir_square(s, x), i, workers, .needed = needed);
  return x;
}

static void test_goes_on_without_one(void** state) {
  world_t* w = *state;
  weir_edge_t x = make_workers(w, 3, 2);
  open_world(w);
  train(w, 2, 5);  // the third never comes
  weir_tensor_t* value = fetch(w, x);
  assert_true(*(float*)weir_tensor_data(value) == 0.03125f);
  weir_tensor_release(value);
}

static weir_edge_t queue_size(world_t* w, const char* name) {
  weir_edge_t queue =
      weir_fifo_queue_v2(w->scope, WEIR_TYPES(WEIR_DTYPE_INT64),
                         .shapes = WEIR_SHAPES(WEIR_SCALAR_SHAPE), .shared_name = name);
  return weir_queue_size_v2(w->scope, queue);
}

static weir_edge_t accumulated(world_t* w) {
  weir_edge_t accumulator = weir_conditional_accumulator(
      w->scope, WEIR_DTYPE_FLOAT, WEIR_SCALAR_SHAPE, .shared_name = "sync_replicas/accumulator/x");
  return weir_accumulator_num_accumulated(w->scope, accumulator);
}

static weir_edge_t local_step(world_t* w, const char* name) {
  weir_edge_t handle =
      weir_var_handle_op(w->scope, WEIR_DTYPE_INT64, WEIR_SCALAR_SHAPE, .shared_name = name);
  return weir_read_variable_op(w->scope, handle, WEIR_DTYPE_INT64);
}

static void hand_in(world_t* w, int worker) {
  run(w,
      weir_graph_find_node(w->graph, worker ? "sync_replicas_1/hand_in" : "sync_replicas/hand_in"));
}

// Gradients of older steps are dropped, and who made them goes on with the newest step.
static void test_stale_gradients_are_dropped(void** state) {
  world_t* w = *state;
  make_workers(w, 2, 1);
  weir_edge_t held = accumulated(w), tokens = queue_size(w, "sync_replicas/tokens/1");
  weir_edge_t at = local_step(w, "sync_replicas/local_step/1");
  open_world(w);
  run(w, w->sync[0].chief_begin);
  for (int i = 0; i < 2; ++i) run(w, w->sync[i].begin);
  hand_in(w, 0);
  assert_int_equal(fetch_int(w, held), 1);
  run(w, w->sync[0].advance);
  hand_in(w, 1);  // of step 0, but the parameters are at 1
  assert_int_equal(fetch_int(w, held), 0);
  run(w, w->sync[1].step);  // again too late
  assert_int_equal(fetch_int(w, held), 0);
  assert_int_equal(fetch_int(w, at), 1);
  hand_in(w, 1);
  assert_int_equal(fetch_int(w, held), 1);
  run(w, w->sync[0].advance);
  run(w, w->sync[0].step);  // leaves out step 1
  hand_in(w, 0);
  run(w, w->sync[0].advance);
  assert_int_equal(fetch_int(w, tokens), 2);
  run(w, w->sync[1].step);  // leaves out step 2
  assert_int_equal(fetch_int(w, held), 0);
  assert_int_equal(fetch_int(w, tokens), 0);
  assert_int_equal(fetch_int(w, at), 3);
  assert_int_equal(fetch_int(w, w->sync[0].global_step), 3);
}

// A chief that begins again repeats the step's number; workers do not repeat their gradients.
static void test_one_gradient_a_step(void** state) {
  world_t* w = *state;
  make_workers(w, 2, 2);
  weir_edge_t held = accumulated(w);
  open_world(w);
  run(w, w->sync[0].chief_begin);
  run(w, w->sync[0].chief_begin);
  run(w, w->sync[0].begin);
  weir_step_spec_t spec = {WEIR_TARGETS(w->sync[0].step)};
  weir_run_options_t options = {.timeout_ms = 800};
  weir_tensor_t* none = NULL;
  check_error(weir_session_run_with(w->session, &spec, &options, &none, NULL, NULL),
              WEIR_DEADLINE_EXCEEDED, "");
  assert_int_equal(fetch_int(w, held), 1);
}

static weir_status_t* step_on(weir_coordinator_t* coordinator, void* arg) {
  void** args = arg;
  weir_status_t* status = NULL;
  (void)coordinator;
  while (!status)
    status = weir_session_run_target(args[0], ((const weir_sync_replicas_t*)args[1])->step);
  return status;
}

// A chief dies when it has taken the gradients; workers that wait for the next step must compute
// them again.
static void test_lost_gradients(void** state) {
  world_t* w = *state;
  weir_edge_t x = make_workers(w, 2, 2);
  open_world(w);
  run(w, w->sync[0].chief_begin);
  for (int i = 0; i < 2; ++i) run(w, w->sync[i].begin);
  void* args[2][2] = {{w->session, &w->sync[0]}, {w->session, &w->sync[1]}};
  for (int i = 0; i < 2; ++i) check_ok(weir_coordinator_start(w->coordinator, step_on, args[i]));
  run(w, weir_graph_find_node(w->graph, "sync_replicas/AccumulatorTakeGradient"));
  check_ok(weir_sync_replicas_lead(&w->sync[0], w->session, w->coordinator, 3));
  check_ok(weir_coordinator_join(w->coordinator, 60000));
  weir_tensor_t* value = fetch(w, x);
  assert_true(*(float*)weir_tensor_data(value) == 0.25f);  // number 1 was left out
  weir_tensor_release(value);
}

// The queue of a worker that sleeps for ever does not grow for ever.
static void test_queues_are_bounded(void** state) {
  world_t* w = *state;
  make_workers(w, 2, 1);
  weir_edge_t tokens = queue_size(w, "sync_replicas/tokens/1");
  open_world(w);
  train(w, 1, 1100);
  assert_int_equal(fetch_int(w, tokens), 1000);
}

// Accumulators learn where a training goes on.
static void test_resumes(void** state) {
  world_t* w = *state;
  weir_edge_t x = make_workers(w, 1, 1);
  weir_scope_t* s = w->scope;
  weir_edge_t hundred = weir_cast(s, weir_const_int(s, 100), WEIR_DTYPE_INT64);
  weir_node_t* set =
      weir_assign_variable_op(s, weir_variable_handle(w->sync[0].global_step), hundred);
  open_world(w);
  run(w, set);
  train(w, 1, 102);
  weir_tensor_t* value = fetch(w, x);
  assert_true(*(float*)weir_tensor_data(value) == 0.25f);
  weir_tensor_release(value);
}

// ---- the end ----

static void test_stop_while_waiting(void** state) {
  world_t* w = *state;
  make_workers(w, 2, 2);
  open_world(w);
  check_ok(weir_sync_replicas_lead(&w->sync[0], w->session, w->coordinator, 0));
  void* args[] = {w->session, &w->sync[0]};
  check_ok(weir_coordinator_start(w->coordinator, work, args));
  assert_false(weir_coordinator_wait(w->coordinator, 50));  // both wait for the second worker
  weir_coordinator_request_stop(w->coordinator, NULL);
  check_ok(weir_coordinator_join(w->coordinator, 60000));
  assert_int_equal(fetch_int(w, w->sync[0].global_step), 0);
  run(w, w->sync[1].begin);
  check_error(weir_session_run_target(w->session, w->sync[1].step), WEIR_OUT_OF_RANGE, "closed");
  check_ok(weir_session_run_target(w->session, w->sync[0].close));  // as the next chief may
}

// What is left to do at the end of a training is to say so.
static void test_nothing_left(void** state) {
  world_t* w = *state;
  make_workers(w, 1, 1);
  weir_scope_t* s = w->scope;
  weir_edge_t three = weir_cast(s, weir_const_int(s, 3), WEIR_DTYPE_INT64);
  weir_node_t* set =
      weir_assign_variable_op(s, weir_variable_handle(w->sync[0].global_step), three);
  open_world(w);
  run(w, set);
  train(w, 1, 3);
}

// ---- errors ----

static void expect_error(world_t* w, weir_sync_replicas_t sync, const char* text) {
  assert_null(sync.step);
  assert_null(sync.advance);
  check_error(weir_status_copy(weir_scope_status(w->scope)), WEIR_INVALID_ARGUMENT, text);
}

static void test_no_such_worker(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_optimizer_t sgd = weir_sgd(0.1f);
  expect_error(w, weir_sync_replicas(s, &sgd, scalar(s, "x", 1), 3, 3), "no worker 3 of 3");
}
static void test_too_many_needed(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_optimizer_t sgd = weir_sgd(0.1f);
  expect_error(w, weir_sync_replicas(s, &sgd, scalar(s, "x", 1), 0, 3, .needed = 4),
               "3 workers cannot give 4 gradients");
}
static void test_order_needs_all(void** state) {
  world_t* w = *state;
  weir_edge_t x = scalar(w->scope, "x", 1);
  weir_optimizer_t sgd = weir_sgd(1);
  expect_error(w,
               weir_sync_replicas(w->scope, &sgd, weir_square(w->scope, x), 0, 3, .needed = 2,
                                  .in_order = true),
               "a mean in the order of workers needs all 3 of them, not 2");
}

static void test_no_accumulation(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_optimizer_t sgd = weir_sgd(0.1f);
  expect_error(w,
               weir_sync_replicas(s, &sgd, scalar(s, "x", 1), 0, 1, .minimize = {.accumulate = 2}),
               "do not accumulate 2 steps");
}
static void test_bad_optimizer(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_optimizer_t adagrad = weir_adagrad(0.1f, .initial_accumulator = WEIR_SET(-1));
  expect_error(w, weir_sync_replicas(s, &adagrad, scalar(s, "x", 1), 0, 1), "must be positive");
}
static void test_no_gradient(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_optimizer_t sgd = weir_sgd(0.1f);
  scalar(s, "x", 1);
  expect_error(w, weir_sync_replicas(s, &sgd, weir_const_float(s, 1), 0, 1),
               "depends on none of 1");
}
static void test_bad_global_step(void** state) {
  world_t* w = *state;
  weir_scope_t* s = w->scope;
  weir_optimizer_t sgd = weir_sgd(0.1f);
  weir_edge_t x = scalar(s, "x", 1);
  expect_error(w, weir_sync_replicas(s, &sgd, x, 0, 1, .minimize = {.global_step = x}),
               "'x/Read' is no int64 variable");
  weir_sync_replicas_t none = {0};
  check_error(weir_sync_replicas_lead(&none, w->session, w->coordinator, 1), WEIR_INVALID_ARGUMENT,
              "nothing to lead");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_round_robin),
      TEST(test_by_size),
      TEST(test_layers_and_optimizers),
      TEST(test_loops),
      TEST(test_no_servers),
      TEST(test_wait),
      TEST(test_wait_for_another),
      TEST(test_wait_stops),
      TEST(test_nothing_to_wait_for),
      TEST(test_same_batch_is_plain_descent),
      TEST(test_same_batch_with_adam),
      TEST(test_same_batch_of_three),
      TEST(test_parts_of_a_batch),
      TEST(test_clipped),
      TEST(test_on_servers),
      TEST(test_same_bits_in_any_order),
      TEST(test_goes_on_without_one),
      TEST(test_stale_gradients_are_dropped),
      TEST(test_one_gradient_a_step),
      TEST(test_lost_gradients),
      TEST(test_queues_are_bounded),
      TEST(test_resumes),
      TEST(test_stop_while_waiting),
      TEST(test_nothing_left),
      TEST(test_no_such_worker),
      TEST(test_too_many_needed),
      TEST(test_order_needs_all),
      TEST(test_no_accumulation),
      TEST(test_bad_optimizer),
      TEST(test_no_gradient),
      TEST(test_bad_global_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
