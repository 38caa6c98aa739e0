// nccl_test.c — Collectives between the GPUs of one process, on a driver and an NCCL that are
// fakes: values, errors that leave nothing hanging, and the ways that do without NCCL.
#include "device/cuda/cuda_compiler.h"
#include "session/session.h"
#include "testing/cuda_fake.h"
#include "testing/nccl_fake.h"
#include "testing/world.h"

enum { GPUS = 3, COUNT = 6 };

static weir_status_t* compile(const char* name, const char* source, int architecture,
                              char** out_code, size_t* out_size) {
  (void)name, (void)source, (void)architecture;
  *out_code = weir_calloc(1, 1);
  *out_size = 1;
  return *out_code ? NULL : weir_out_of_memory();
}

static int setup(void** state) {
  weir_cuda_driver_replace(&cuda_fake_driver);
  weir_cuda_compiler_replace(compile);
  weir_nccl_replace(&nccl_fake);
  nccl_fake_collectives = nccl_fake_made = nccl_fake_aborted = 0;
  return world_setup(state);
}

static int teardown(void** state) {
  int result = world_teardown(state);
  weir_nccl_replace(NULL);
  assert_int_equal(nccl_fake_members, 0);
  weir_cuda_compiler_replace(NULL);
  weir_cuda_driver_replace(NULL);
  return result;
}

// ---- graphs: what is fed to GPU i is 6 numbers from i + 1 on ----

static weir_edge_t fed[GPUS];

static weir_scope_t* on(world_t* w, const char* kind, int i) {
  char name[32];
  snprintf(name, sizeof(name), "/device:%s:%d", kind, i);
  return weir_scope_on(w->scope, name);
}

static weir_edge_t add_on(world_t* w, int i, const char* op, weir_edges_t inputs,
                          weir_attrs_t attrs) {
  weir_node_t* node = weir_scope_add(on(w, "GPU", i), op, NULL, inputs, attrs);
  check_scope(w);
  return output(node, 0);
}

static void add_inputs(world_t* w, weir_dtype_t dtype) {
  static const char* const names[GPUS] = {"x0", "x1", "x2"};
  for (int i = 0; i < GPUS; ++i) fed[i] = placeholder(w, names[i], dtype);
}

#define NAMED(name, count) \
  weir_attr_string("shared_name", name), weir_attr_int("num_devices", count)

static weir_edge_t all_reduce(world_t* w, int i, weir_edge_t x, const char* reduction,
                              const char* name, int count) {
  return add_on(w, i, "NcclAllReduce", WEIR_EDGES(x),
                WEIR_ATTRS(weir_attr_string("reduction", reduction), NAMED(name, count)));
}

static void open_devices(world_t* w, const char* devices) {
  weir_session_options_t options = {.threads = 4, .devices = devices};
  check_ok(weir_session_create(w->graph, &options, &w->session));
}

static double input_at(int gpu, int i) { return gpu + 1 + i; }

static weir_tensor_t* make_input(weir_dtype_t dtype, int gpu) {
  weir_tensor_t* x = NULL;
  check_ok(weir_tensor_create(dtype, 1, (const int64_t[]){COUNT}, &x));
  for (int i = 0; i < COUNT; ++i) {
    if (dtype == WEIR_DTYPE_INT32) WEIR_TENSOR_DATA(x, int32_t)[i] = (int32_t)input_at(gpu, i);
    else WEIR_TENSOR_DATA(x, float)[i] = (float)input_at(gpu, i);
  }
  return x;
}

static weir_status_t* run(world_t* w, const weir_edge_t* edges, int count, int64_t timeout_ms,
                          weir_tensor_t** results) {
  weir_feed_t feeds[GPUS];
  weir_dtype_t dtype = weir_edge_dtype(fed[0]);
  for (int i = 0; i < GPUS; ++i) feeds[i] = (weir_feed_t){fed[i], make_input(dtype, i)};
  weir_step_spec_t spec = {
      .feeds = feeds, .feed_count = GPUS, .fetches = edges, .fetch_count = count};
  weir_run_options_t options = {.timeout_ms = timeout_ms};
  weir_status_t* status = weir_session_run_with(w->session, &spec, &options, results, NULL, NULL);
  for (int i = 0; i < GPUS; ++i) weir_tensor_release(feeds[i].tensor);
  return status;
}

static void check_values(weir_tensor_t* take_tensor, int64_t count, const double* expected) {
  assert_int_equal(take_tensor->count, count);
  for (int64_t i = 0; i < count; ++i) {
    double value = weir_tensor_type(take_tensor) == WEIR_DTYPE_INT32
                       ? WEIR_TENSOR_DATA(take_tensor, int32_t)[i]
                       : (double)WEIR_TENSOR_DATA(take_tensor, float)[i];
    assert_true(value > expected[i] - 1e-4 && value < expected[i] + 1e-4);
  }
  weir_tensor_release(take_tensor);
}

// All of |edges| are |expected|.
static void expect_same(world_t* w, const weir_edge_t* edges, int64_t count,
                        const double* expected) {
  weir_tensor_t* results[GPUS] = {NULL};
  check_ok(run(w, edges, GPUS, 0, results));
  for (int i = 0; i < GPUS; ++i) check_values(results[i], count, expected);
}

// ---- NcclAllReduce ----

static void merge(const char* reduction, double out[COUNT]) {
  for (int i = 0; i < COUNT; ++i) {
    const double a = input_at(0, i), b = input_at(1, i), c = input_at(2, i);
    out[i] = a + b + c;
    if (!strcmp(reduction, "prod")) out[i] = a * b * c;
    if (!strcmp(reduction, "min")) out[i] = a;
    if (!strcmp(reduction, "max")) out[i] = c;
  }
}

static void check_reductions(world_t* w, weir_dtype_t dtype) {
  static const char* const reductions[] = {"sum", "prod", "min", "max"};
  weir_edge_t edges[WEIR_COUNT_OF(reductions)][GPUS];
  double expected[COUNT];
  add_inputs(w, dtype);
  for (size_t k = 0; k < WEIR_COUNT_OF(reductions); ++k) {
    for (int i = 0; i < GPUS; ++i)
      edges[k][i] = all_reduce(w, i, fed[i], reductions[k], reductions[k], GPUS);
  }
  open_devices(w, "cpu,cuda:3");
  for (size_t k = 0; k < WEIR_COUNT_OF(reductions); ++k) {
    merge(reductions[k], expected);
    for (int step = 0; step < 3; ++step) expect_same(w, edges[k], COUNT, expected);
  }
  assert_int_equal(nccl_fake_collectives, 3 * WEIR_COUNT_OF(reductions));
  assert_int_equal(nccl_fake_made, 1);
}

static void test_floats_are_reduced(void** state) { check_reductions(*state, WEIR_DTYPE_FLOAT); }
static void test_ints_are_reduced(void** state) { check_reductions(*state, WEIR_DTYPE_INT32); }

// Many in one step, which threads come to in any order, and which depend on each other.
static void test_many_at_once(void** state) {
  enum { WIDTH = 8, DEPTH = 4 };
  world_t* w = *state;
  weir_edge_t last[WIDTH * GPUS];
  add_inputs(w, WEIR_DTYPE_FLOAT);
  for (int k = 0; k < WIDTH; ++k) {
    for (int i = 0; i < GPUS; ++i) last[k * GPUS + i] = fed[i];
    for (int d = 0; d < DEPTH; ++d) {
      char name[32];
      snprintf(name, sizeof(name), "c%d_%d", k, d);
      for (int i = 0; i < GPUS; ++i) {
        weir_edge_t* at = &last[k * GPUS + i];
        *at = all_reduce(w, i, *at, d ? "max" : "sum", name, GPUS);
      }
    }
  }
  open_devices(w, "cpu,cuda:3");
  double expected[COUNT];
  merge("sum", expected);
  for (int step = 0; step < 10; ++step) {
    weir_tensor_t* results[WIDTH * GPUS] = {NULL};
    check_ok(run(w, last, WIDTH * GPUS, 0, results));
    for (int i = 0; i < WIDTH * GPUS; ++i) check_values(results[i], COUNT, expected);
  }
  assert_int_equal(nccl_fake_collectives, 10 * WIDTH * DEPTH);
}

// ---- the others ----

static void test_reduce_and_broadcast(void** state) {
  world_t* w = *state;
  weir_edge_t parts[GPUS], edges[GPUS];
  double expected[COUNT];
  add_inputs(w, WEIR_DTYPE_FLOAT);
  // A group of one each: what is fed, as it is, on its GPU.
  for (int i = 0; i < GPUS; ++i) {
    char name[8];
    snprintf(name, sizeof(name), "own%d", i);
    parts[i] = all_reduce(w, i, fed[i], "sum", name, 1);
  }
  weir_edge_t product =
      add_on(w, 1, "NcclReduce", WEIR_EDGES(parts[2], parts[0], parts[1]),
             WEIR_ATTRS(weir_attr_string("reduction", "prod"), weir_attr_int("num_devices", GPUS)));
  weir_edge_t all = add_on(w, 1, "NcclBroadcast", WEIR_EDGES(product),
                           WEIR_ATTRS(weir_attr_shape("shape", &weir_shape_unknown)));
  for (int i = 0; i < GPUS; ++i) edges[i] = all_reduce(w, i, all, "max", "last", GPUS);
  weir_edge_t lost =
      add_on(w, 0, "NcclReduce", WEIR_EDGES(parts[1], parts[2]),
             WEIR_ATTRS(weir_attr_string("reduction", "sum"), weir_attr_int("num_devices", 2)));
  open_devices(w, "cpu,cuda:3");
  merge("prod", expected);
  int copies = cuda_fake_peer_copies;
  expect_same(w, edges, COUNT, expected);
  assert_int_equal(cuda_fake_peer_copies - copies, GPUS - 1);  // of the broadcast alone
  assert_int_equal(nccl_fake_collectives, GPUS + 2);
  weir_tensor_t* result = NULL;
  check_error(run(w, &lost, 1, 0, &result), WEIR_INVALID_ARGUMENT,
              "No input tensor uses the same device as the NcclReduce op");
}

// Of sums: all get the sum of what flows back to each, or what flows back to the one.
static void test_gradients(void** state) {
  world_t* w = *state;
  weir_edge_t sums[GPUS], parts[GPUS], dx[GPUS], dparts[GPUS], all[1], most[1], none[1];
  double expected[COUNT];
  add_inputs(w, WEIR_DTYPE_FLOAT);
  for (int i = 0; i < GPUS; ++i) {
    char name[8];
    snprintf(name, sizeof(name), "own%d", i);
    sums[i] = all_reduce(w, i, fed[i], "sum", "s", GPUS);
    parts[i] = all_reduce(w, i, fed[i], "sum", name, 1);
  }
  weir_edge_t sum =
      add_on(w, 1, "NcclReduce", WEIR_EDGES(parts[0], parts[1], parts[2]),
             WEIR_ATTRS(weir_attr_string("reduction", "sum"), weir_attr_int("num_devices", GPUS)));
  all[0] = add_on(w, 1, "NcclBroadcast", WEIR_EDGES(sum),
                  WEIR_ATTRS(weir_attr_shape("shape", &weir_shape_unknown)));
  most[0] = all_reduce(w, 0, fed[0], "max", "m", 1);
  check_ok(weir_gradients(w->scope, sums, GPUS, fed, GPUS, fed, dx));
  check_ok(weir_gradients(w->scope, all, 1, parts, GPUS, &fed[1], dparts));
  check_error(weir_gradients(w->scope, most, 1, fed, 1, fed, none), WEIR_INVALID_ARGUMENT,
              "No gradient defined for NcclAllReduce except sum.");
  open_devices(w, "cpu,cuda:3");
  merge("sum", expected);
  expect_same(w, dx, COUNT, expected);
  for (int i = 0; i < COUNT; ++i) expected[i] = input_at(1, i);
  expect_same(w, dparts, COUNT, expected);
}

static void test_ends(void** state) {
  world_t* w = *state;
  weir_edge_t edges[GPUS];
  double sum[COUNT];
  add_inputs(w, WEIR_DTYPE_FLOAT);
  weir_attrs_t reduced = WEIR_ATTRS(weir_attr_string("reduction", "sum"), NAMED("r", GPUS));
  weir_attrs_t sent = WEIR_ATTRS(weir_attr_type("T", WEIR_DTYPE_FLOAT), NAMED("b", GPUS));
  edges[0] = add_on(w, 0, "_NcclReduceRecv", WEIR_EDGES(fed[0]), reduced);
  weir_node_t* sends[GPUS];
  for (int i = 1; i < GPUS; ++i)
    sends[i] = add_on(w, i, "_NcclReduceSend", WEIR_EDGES(fed[i]), reduced).node;
  sends[0] = add_on(w, 0, "_NcclBroadcastSend", WEIR_EDGES(edges[0]), sent).node;
  weir_edge_t dims = weir_const_ints(w->scope, (const int[]){COUNT}, 1);
  for (int i = 1; i < GPUS; ++i)
    edges[i] = add_on(w, i, "_NcclBroadcastRecv", WEIR_EDGES(dims), sent);
  for (int i = 0; i < GPUS; ++i) {  // what has no outputs is run for those who wait for it
    weir_edge_t last = edges[i];
    edges[i] = add_on(w, i, "Identity", WEIR_EDGES(last), WEIR_NO_ATTRS);
    for (int k = 0; k < GPUS; ++k) check_ok(weir_graph_add_control(edges[i].node, sends[k]));
  }
  open_devices(w, "cpu,cuda:3");
  merge("sum", sum);
  for (int step = 0; step < 3; ++step) expect_same(w, edges, COUNT, sum);
  assert_int_equal(nccl_fake_collectives, 6);
  assert_int_equal(nccl_fake_made, 1);
}

// ---- collectives ----

static weir_attrs_t keys(int instance, const char* hint) {
  static weir_named_attr_t attrs[4];
  attrs[0] = weir_attr_int("group_size", GPUS);
  attrs[1] = weir_attr_int("group_key", 1);
  attrs[2] = weir_attr_int("instance_key", instance);
  attrs[3] = weir_attr_string("communication_hint", hint);
  return (weir_attrs_t){.items = attrs, .count = 4};
}

static weir_edge_t add_keyed(world_t* w, const char* kind, int i, const char* op,
                             weir_edges_t inputs, weir_attrs_t with, weir_attrs_t more) {
  weir_named_attr_t attrs[12];
  size_t count = 0;
  for (size_t k = 0; k < with.count; ++k) attrs[count++] = with.items[k];
  for (size_t k = 0; k < more.count; ++k) attrs[count++] = more.items[k];
  weir_node_t* node = weir_scope_add(on(w, kind, i), op, NULL, inputs,
                                     (weir_attrs_t){.items = attrs, .count = count});
  check_scope(w);
  return output(node, 0);
}

#define MERGE(op, last)                                                            \
  WEIR_ATTRS(weir_attr_string("merge_op", op), weir_attr_string("final_op", last), \
             weir_attr_ints("subdiv_offsets", (const int64_t[]){0}, 1))

// Means, products, what all have, and what one has.
static void add_collectives(world_t* w, const char* hint, weir_edge_t edges[4][GPUS]) {
  static const weir_shape_t declared = {.rank = 1, .dims = {COUNT}};
  weir_attrs_t shape =
      WEIR_ATTRS(weir_attr_shape("shape", &declared), weir_attr_type("T", WEIR_DTYPE_FLOAT));
  for (int i = 0; i < GPUS; ++i) {
    weir_edges_t x = WEIR_EDGES(fed[i]);
    edges[0][i] = add_keyed(w, "GPU", i, "CollectiveReduce", x, keys(1, hint), MERGE("Add", "Div"));
    edges[1][i] = add_keyed(w, "GPU", i, "CollectiveReduce", x, keys(2, hint), MERGE("Mul", "Id"));
    edges[2][i] = add_keyed(w, "GPU", i, "CollectiveGather", x, keys(3, hint), shape);
    edges[3][i] =
        i == 2 ? add_keyed(w, "GPU", i, "CollectiveBcastSend", x, keys(4, hint), shape)
               : add_keyed(w, "GPU", i, "CollectiveBcastRecv", WEIR_NO_EDGES, keys(4, hint), shape);
  }
}

static void expect_collectives(world_t* w, weir_edge_t edges[4][GPUS]) {
  double expected[GPUS * COUNT];
  for (int step = 0; step < 3; ++step) {
    for (int i = 0; i < COUNT; ++i) expected[i] = input_at(1, i);
    expect_same(w, edges[0], COUNT, expected);
    merge("prod", expected);
    expect_same(w, edges[1], COUNT, expected);
    for (int i = 0; i < GPUS * COUNT; ++i) expected[i] = input_at(i / COUNT, i % COUNT);
    expect_same(w, edges[2], (int64_t)GPUS * COUNT, expected);
    expect_same(w, edges[3], COUNT, expected + (ptrdiff_t)2 * COUNT);
  }
}

static void check_collectives(world_t* w, const char* hint, int collectives) {
  weir_edge_t edges[4][GPUS];
  add_inputs(w, WEIR_DTYPE_FLOAT);
  add_collectives(w, hint, edges);
  open_devices(w, "cpu,cuda:3");
  expect_collectives(w, edges);
  assert_int_equal(nccl_fake_collectives, collectives);
}

static void test_collectives(void** state) { check_collectives(*state, "auto", 12); }

static void test_collectives_by_the_host(void** state) { check_collectives(*state, "ring", 0); }

// Rows that are exchanged, and parts of what is merged; a mean of products is the host's.
static void test_parts(void** state) {
  world_t* w = *state;
  weir_edge_t edges[3][GPUS];
  add_inputs(w, WEIR_DTYPE_FLOAT);
  weir_edge_t size = weir_const_int(w->scope, GPUS), key = weir_const_int(w->scope, 5);
  weir_edge_t rows = weir_const_ints(w->scope, (const int[]){3, 2}, 2);
  weir_attrs_t auto_ = WEIR_ATTRS(weir_attr_string("communication_hint", "auto"));
  for (int i = 0; i < GPUS; ++i) {
    weir_edge_t row = OP(w, "Reshape", fed[i], rows), first = weir_const_int(w->scope, 1),
                second = weir_const_int(w->scope, 2), third = weir_const_int(w->scope, 3);
    edges[0][i] = add_keyed(w, "GPU", i, "CollectiveAllToAllV2", WEIR_EDGES(row, size, key, first),
                            auto_, WEIR_NO_ATTRS);
    edges[1][i] = add_keyed(
        w, "GPU", i, "CollectiveReduceScatterV2", WEIR_EDGES(row, size, key, second), auto_,
        WEIR_ATTRS(weir_attr_string("merge_op", "Max"), weir_attr_string("final_op", "Id")));
    edges[2][i] = add_keyed(
        w, "GPU", i, "CollectiveReduceV2", WEIR_EDGES(row, size, key, third), auto_,
        WEIR_ATTRS(weir_attr_string("merge_op", "Mul"), weir_attr_string("final_op", "Div")));
  }
  open_devices(w, "cpu,cuda:3");
  weir_tensor_t* results[GPUS] = {NULL};
  double expected[COUNT];
  check_ok(run(w, edges[0], GPUS, 0, results));
  for (int i = 0; i < GPUS; ++i) {
    for (int k = 0; k < COUNT; ++k) expected[k] = input_at(k / 2, 2 * i + k % 2);
    check_values(results[i], COUNT, expected);
  }
  check_ok(run(w, edges[1], GPUS, 0, results));
  for (int i = 0; i < GPUS; ++i) {
    for (int k = 0; k < 2; ++k) expected[k] = input_at(2, 2 * i + k);
    check_values(results[i], 2, expected);
  }
  assert_int_equal(nccl_fake_collectives, 2);
  merge("prod", expected);
  for (int i = 0; i < COUNT; ++i) expected[i] /= GPUS;
  expect_same(w, edges[2], COUNT, expected);
  assert_int_equal(nccl_fake_collectives, 2);
}

static void test_without_nccl(void** state) {
  world_t* w = *state;
  weir_edge_t edges[4][GPUS], named[GPUS];
  weir_nccl_replace(&weir_nccl_none);
  add_inputs(w, WEIR_DTYPE_FLOAT);
  add_collectives(w, "auto", edges);
  for (int i = 0; i < GPUS; ++i) named[i] = all_reduce(w, i, fed[i], "sum", "s", GPUS);
  weir_edge_t asks = add_keyed(w, "GPU", 0, "CollectiveReduce", WEIR_EDGES(fed[0]), keys(9, "nccl"),
                               MERGE("Add", "Id"));
  open_devices(w, "cpu,cuda:3");
  expect_collectives(w, edges);
  weir_tensor_t* results[GPUS] = {NULL};
  check_error(run(w, named, GPUS, 0, results), WEIR_UNAVAILABLE, "libnccl.so.2 cannot be opened");
  check_error(run(w, &asks, 1, 0, results), WEIR_UNAVAILABLE, "libnccl.so.2 cannot be opened");
}

// ---- what goes wrong ----

static void test_failures_leave_nothing(void** state) {
  world_t* w = *state;
  weir_edge_t edges[GPUS], late[GPUS];
  weir_tensor_t* results[GPUS] = {NULL};
  double expected[COUNT];
  add_inputs(w, WEIR_DTYPE_FLOAT);
  for (int i = 0; i < GPUS; ++i) {
    edges[i] = all_reduce(w, i, fed[i], "sum", "s", GPUS);
    late[i] = all_reduce(w, i, fed[i], "sum", "late", GPUS + 1);
  }
  open_devices(w, "cpu,cuda:3");
  merge("sum", expected);
  nccl_fake_failing_inits = 1;
  check_error(run(w, edges, GPUS, 0, results), WEIR_INTERNAL,
              "NCCL: making a communicator: fake failure");
  expect_same(w, edges, COUNT, expected);
  nccl_fake_failing_groups = 1;
  check_error(run(w, edges, GPUS, 0, results), WEIR_INTERNAL,
              "NCCL: launching a collective: fake failure");
  assert_int_equal(nccl_fake_aborted, GPUS);
  expect_same(w, edges, COUNT, expected);
  nccl_fake_is_broken = true;  // one of them failed since
  expect_same(w, edges, COUNT, expected);
  assert_int_equal(nccl_fake_aborted, 2 * GPUS);
  assert_int_equal(nccl_fake_made, 3);
  // One that never comes: nothing was launched, so nothing is to be undone.
  int collectives = nccl_fake_collectives;
  check_error(run(w, late, GPUS, 30, results), WEIR_DEADLINE_EXCEEDED, "");
  assert_int_equal(nccl_fake_collectives, collectives);
  expect_same(w, edges, COUNT, expected);
  assert_int_equal(nccl_fake_made, 3);
}

static void test_disagreements(void** state) {
  world_t* w = *state;
  weir_edge_t sizes[GPUS], kinds[GPUS], mixed[2];
  weir_tensor_t* results[GPUS] = {NULL};
  add_inputs(w, WEIR_DTYPE_FLOAT);
  for (int i = 0; i < GPUS; ++i) {
    sizes[i] = all_reduce(w, i, fed[i], "sum", "sizes", i == 1 ? 2 : GPUS);
    kinds[i] = i == 1 ? add_on(w, i, "_NcclReduceRecv", WEIR_EDGES(fed[i]),
                               WEIR_ATTRS(weir_attr_string("reduction", "sum"), NAMED("k", GPUS)))
                      : all_reduce(w, i, fed[i], "sum", "k", GPUS);
  }
  for (int i = 0; i < 2; ++i)
    mixed[i] = add_keyed(w, i ? "GPU" : "CPU", 0, "CollectiveReduce", WEIR_EDGES(fed[i]),
                         WEIR_ATTRS(weir_attr_int("group_size", 2), weir_attr_int("group_key", 8),
                                    weir_attr_int("instance_key", 8)),
                         MERGE("Add", "Id"));
  open_devices(w, "cpu,cuda:3");
  check_error(run(w, sizes, GPUS, 0, results), WEIR_INTERNAL,
              "previously initialized with num_global_devices");
  check_error(run(w, kinds, GPUS, 0, results), WEIR_INTERNAL, "previously initialized with type");
  check_error(run(w, mixed, 2, 0, results), WEIR_INTERNAL, "but that group has type");
  assert_int_equal(nccl_fake_collectives, 0);
}

static void test_no_kernel_on_cpus(void** state) {
  world_t* w = *state;
  weir_tensor_t* result = NULL;
  add_inputs(w, WEIR_DTYPE_FLOAT);
  weir_node_t* node =
      weir_scope_add(w->scope, "NcclAllReduce", NULL, WEIR_EDGES(fed[0]),
                     WEIR_ATTRS(weir_attr_string("reduction", "sum"), NAMED("c", 1)));
  open_devices(w, "cpu");
  weir_edge_t edge = output(node, 0);
  check_error(run(w, &edge, 1, 0, &result), WEIR_INVALID_ARGUMENT, "No OpKernel was registered");
}

// Each node is shown in its own GPU's stream, whichever came last.
static void test_traces(void** state) {
  world_t* w = *state;
  weir_feed_t feeds[GPUS];
  weir_edge_t edges[GPUS];
  weir_tensor_t* results[GPUS] = {NULL};
  char* json = NULL;
  add_inputs(w, WEIR_DTYPE_FLOAT);
  for (int i = 0; i < GPUS; ++i) {
    edges[i] = all_reduce(w, i, fed[i], "sum", "s", GPUS);
    feeds[i] = (weir_feed_t){fed[i], make_input(WEIR_DTYPE_FLOAT, i)};
  }
  open_devices(w, "cpu,cuda:3");
  weir_step_spec_t spec = {
      .feeds = feeds, .feed_count = GPUS, .fetches = edges, .fetch_count = GPUS};
  check_ok(weir_session_run_traced(w->session, &spec, results, &json));
  for (int i = 0; i < GPUS; ++i) {
    char name[64];
    snprintf(name, sizeof(name), "\"%s\"", weir_node_name(edges[i].node));
    const char* event = strstr(json, name);
    assert_non_null(event);
    assert_non_null(strstr(event + 1, name));  // on the host, and in the stream
    weir_tensor_release(results[i]);
    weir_tensor_release(feeds[i].tensor);
  }
  weir_buffer_free(json);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_floats_are_reduced),
      TEST(test_ints_are_reduced),
      TEST(test_many_at_once),
      TEST(test_reduce_and_broadcast),
      TEST(test_gradients),
      TEST(test_ends),
      TEST(test_collectives),
      TEST(test_collectives_by_the_host),
      TEST(test_parts),
      TEST(test_without_nccl),
      TEST(test_failures_leave_nothing),
      TEST(test_disagreements),
      TEST(test_no_kernel_on_cpus),
      TEST(test_traces),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
