// fused_test.c — Fused programs give what their nodes give, bit for bit: types, shapes, tails.
#include <math.h>

#include "base/alloc.h"
#include "testing/world.h"

typedef struct shape_t {
  int rank;
  int64_t dims[5];
} shape_t;

static uint32_t next_random(uint32_t* seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

// Small numbers of either sign, with a zero and a NaN now and then.
static weir_tensor_t* make_random(weir_dtype_t dtype, const shape_t* shape, uint32_t seed) {
  weir_tensor_t* tensor = NULL;
  check_ok(weir_tensor_create(dtype, shape->rank, shape->dims, &tensor));
  for (int64_t i = 0; i < weir_tensor_count(tensor); ++i) {
    uint32_t bits = next_random(&seed);
    double value = (double)(bits % 4001) / 500 - 4;
    if (bits % 97 == 0) value = 0;
    if (bits % 101 == 0 && weir_dtype_is_floating(dtype)) value = NAN;
    switch (dtype) {
      case WEIR_DTYPE_FLOAT: ((float*)tensor->data)[i] = (float)value; break;
      case WEIR_DTYPE_DOUBLE: ((double*)tensor->data)[i] = value; break;
      case WEIR_DTYPE_INT32: ((int32_t*)tensor->data)[i] = (int32_t)(value * 100); break;
      case WEIR_DTYPE_INT64: ((int64_t*)tensor->data)[i] = (int64_t)(value * 1e9); break;
      case WEIR_DTYPE_UINT8: ((uint8_t*)tensor->data)[i] = (uint8_t)bits; break;
      case WEIR_DTYPE_BOOL: ((bool*)tensor->data)[i] = bits & 1; break;
      case WEIR_DTYPE_HALF:
      case WEIR_DTYPE_BFLOAT16: ((uint16_t*)tensor->data)[i] = (uint16_t)(bits & 0xbfff); break;
      case WEIR_DTYPE_COMPLEX64: ((float*)tensor->data)[2 * i] = (float)value; break;
      default: fail_msg("no numbers of type %d", (int)dtype);
    }
  }
  return tensor;
}

static void run(world_t* w, const char* disabled, int threads, const weir_step_spec_t* spec,
                weir_tensor_t** results, int64_t* out_nodes) {
  weir_session_options_t options = {.threads = threads, .disabled_passes = disabled};
  weir_session_t* session = NULL;
  weir_callable_t* callable = NULL;
  check_ok(weir_session_create(w->graph, &options, &session));
  check_ok(weir_callable_create(session, spec, &callable));
  *out_nodes = (int64_t)weir_callable_node_count(callable);
  check_ok(weir_session_run(session, spec, results));
  weir_callable_destroy(callable);
  weir_session_destroy(session);
}

static void check_equal(const weir_tensor_t* a, const weir_tensor_t* b) {
  assert_true(weir_tensor_same_shape(a, b));
  assert_int_equal(a->dtype, b->dtype);
  size_t size = weir_tensor_byte_size(a);
  if (size) assert_memory_equal(a->data, b->data, size);
}

// Each allocation of a step fails in turn: that is an error, or the results are the same.
static void check_without_memory(world_t* w, const weir_step_spec_t* spec, int threads,
                                 weir_tensor_t* const* want) {
  weir_session_options_t options = {.threads = threads};
  weir_session_t* session = NULL;
  check_ok(weir_session_create(w->graph, &options, &session));
  int successes = 0;
  for (int64_t n = 0; successes < 4; ++n) {  // 0: none, so that the step is compiled
    weir_tensor_t* results[4] = {NULL};
    weir_alloc_fail_at(n, false);
    weir_status_t* status = weir_session_run(session, spec, results);
    weir_alloc_fail_at(0, false);
    weir_code_t code = weir_status_code(status);
    if (code != WEIR_OK) assert_int_equal(code, WEIR_RESOURCE_EXHAUSTED);
    weir_status_destroy(status);
    successes = code == WEIR_OK && n > 0 ? successes + 1 : 0;
    for (int i = 0; i < spec->fetch_count && code == WEIR_OK; ++i) {
      check_equal(results[i], want[i]);
      weir_tensor_release(results[i]);
    }
  }
  weir_session_destroy(session);
}

// Runs with the pass and without: results are the same, nodes are fewer.
static void check_same(world_t* w, const weir_step_spec_t* spec, int threads) {
  weir_tensor_t *with[4] = {NULL}, *without[4] = {NULL};
  int64_t fewer = 0, more = 0;
  run(w, NULL, threads, spec, with, &fewer);
  run(w, "fuse", threads, spec, without, &more);
  assert_true(fewer < more);
  check_without_memory(w, spec, threads, without);
  for (int i = 0; i < spec->fetch_count; ++i) {
    check_equal(with[i], without[i]);
    weir_tensor_release(with[i]);
    weir_tensor_release(without[i]);
  }
}

static void check_fed(world_t* w, weir_edge_t fetch, const weir_edge_t* fed, weir_tensor_t** values,
                      int count, int threads) {
  weir_feed_t feeds[8];
  for (int i = 0; i < count; ++i) feeds[i] = (weir_feed_t){.edge = fed[i], .tensor = values[i]};
  check_same(
      w,
      &(weir_step_spec_t){.feeds = feeds, .feed_count = count, .fetches = &fetch, .fetch_count = 1},
      threads);
  for (int i = 0; i < count; ++i) weir_tensor_release(values[i]);
}

// ---- functions and types ----

static weir_edge_t arithmetic(world_t* w, weir_edge_t x, weir_edge_t y) {
  weir_edge_t sum = OP(w, "AddV2", OP(w, "Mul", x, y), OP(w, "Sub", y, x));
  return OP(w, "Mul", OP(w, "Square", sum), sum);
}

static void test_types(void** state) {
  world_t* w = *state;
  const weir_dtype_t types[] = {WEIR_DTYPE_FLOAT,    WEIR_DTYPE_DOUBLE,   WEIR_DTYPE_HALF,
                                WEIR_DTYPE_BFLOAT16, WEIR_DTYPE_INT32,    WEIR_DTYPE_INT64,
                                WEIR_DTYPE_UINT8,    WEIR_DTYPE_COMPLEX64};
  const shape_t shape = {2, {67, 31}};
  for (size_t i = 0; i < WEIR_COUNT_OF(types); ++i) {
    weir_edge_t fed[] = {placeholder(w, NULL, types[i]), placeholder(w, NULL, types[i])};
    weir_tensor_t* values[] = {make_random(types[i], &shape, 1), make_random(types[i], &shape, 2)};
    check_fed(w, arithmetic(w, fed[0], fed[1]), fed, values, 2, 1);
  }
}

static weir_edge_t functions(world_t* w, weir_edge_t x, weir_edge_t y) {
  weir_edge_t a = OP(w, "Tanh", OP(w, "Sigmoid", OP(w, "Relu", x)));
  weir_edge_t b = OP(w, "Exp", OP(w, "Neg", OP(w, "Abs", y)));
  weir_edge_t c = OP(w, "TanhGrad", a, OP(w, "ReluGrad", b, x));
  weir_edge_t d = OP(w, "Softplus", OP(w, "Elu", OP(w, "Maximum", c, y)));
  return OP(w, "RealDiv", d, OP(w, "Sqrt", OP(w, "AddV2", b, a)));
}

static void test_functions(void** state) {
  world_t* w = *state;
  const weir_dtype_t types[] = {WEIR_DTYPE_FLOAT, WEIR_DTYPE_DOUBLE, WEIR_DTYPE_HALF};
  const shape_t shape = {1, {4099}};
  for (size_t i = 0; i < WEIR_COUNT_OF(types); ++i) {
    weir_edge_t fed[] = {placeholder(w, NULL, types[i]), placeholder(w, NULL, types[i])};
    weir_tensor_t* values[] = {make_random(types[i], &shape, 3), make_random(types[i], &shape, 4)};
    check_fed(w, functions(w, fed[0], fed[1]), fed, values, 2, 2);
  }
}

static weir_edge_t cast(world_t* w, weir_edge_t x, weir_dtype_t dtype) {
  return output(add(w, "Cast", NULL, WEIR_EDGES(x), WEIR_ATTRS(weir_attr_type("DstT", dtype))), 0);
}

// Values of several sizes of element in one program.
static void test_casts_and_selects(void** state) {
  world_t* w = *state;
  const shape_t shape = {1, {3001}};
  weir_edge_t fed[] = {placeholder(w, "x", WEIR_DTYPE_FLOAT), placeholder(w, "i", WEIR_DTYPE_INT32),
                       placeholder(w, "s", WEIR_DTYPE_FLOAT)};
  weir_edge_t wide = OP(w, "Square", cast(w, fed[0], WEIR_DTYPE_DOUBLE));
  weir_edge_t sum = OP(w, "AddV2", wide, cast(w, OP(w, "Neg", fed[1]), WEIR_DTYPE_DOUBLE));
  weir_edge_t narrow = cast(w, sum, WEIR_DTYPE_FLOAT);
  weir_edge_t test = OP(w, "LogicalAnd", OP(w, "Less", fed[0], narrow),
                        OP(w, "LogicalNot", OP(w, "IsNan", narrow)));
  weir_edge_t chosen = OP(w, "SelectV2", test, OP(w, "Exp", fed[2]), OP(w, "Neg", narrow));
  const shape_t scalar = {0, {0}};
  weir_tensor_t* values[] = {make_random(WEIR_DTYPE_FLOAT, &shape, 5),
                             make_random(WEIR_DTYPE_INT32, &shape, 6),
                             make_random(WEIR_DTYPE_FLOAT, &scalar, 7)};
  check_fed(w, chosen, fed, values, 3, 1);
}

// ---- shapes ----

// (a + b) * exp(c) + tanh(b), of shapes that all differ.
static void test_broadcasts(void** state) {
  world_t* w = *state;
  static const shape_t shapes[][3] = {
      {{0, {0}}, {0, {0}}, {0, {0}}},
      {{1, {1}}, {0, {0}}, {2, {1, 1}}},
      {{2, {300, 40}}, {0, {0}}, {0, {0}}},
      {{2, {300, 40}}, {1, {40}}, {0, {0}}},
      {{2, {300, 40}}, {2, {300, 1}}, {1, {40}}},
      {{2, {300, 1}}, {1, {40}}, {2, {1, 40}}},
      {{2, {300, 1}}, {2, {300, 1}}, {1, {40}}},
      {{3, {4, 1, 600}}, {3, {1, 5, 1}}, {3, {4, 5, 1}}},
      {{3, {4, 3, 5}}, {2, {3, 5}}, {1, {1}}},
      {{3, {1, 3, 5}}, {2, {3, 5}}, {4, {1, 1, 3, 5}}},
      {{4, {2, 1, 3, 1}}, {4, {1, 4, 1, 5}}, {5, {2, 2, 1, 3, 5}}},
      {{1, {0}}, {1, {1}}, {0, {0}}},
      {{2, {3, 0}}, {2, {3, 1}}, {2, {1, 1}}},
      {{1, {1}}, {0, {0}}, {1, {0}}},
  };
  weir_edge_t fed[] = {placeholder(w, "a", WEIR_DTYPE_FLOAT), placeholder(w, "b", WEIR_DTYPE_FLOAT),
                       placeholder(w, "c", WEIR_DTYPE_FLOAT)};
  weir_edge_t product = OP(w, "Mul", OP(w, "AddV2", fed[0], fed[1]), OP(w, "Exp", fed[2]));
  weir_edge_t all = OP(w, "AddV2", product, OP(w, "Tanh", fed[1]));
  weir_edge_t positive = OP(w, "Greater", fed[0], fed[2]);
  weir_edge_t chosen = OP(w, "SelectV2", positive, all, OP(w, "Neg", fed[1]));
  for (size_t i = 0; i < WEIR_COUNT_OF(shapes); ++i) {
    for (int threads = 1; threads <= 2; ++threads) {
      weir_tensor_t* values[3];
      for (int k = 0; k < 3; ++k)
        values[k] = make_random(WEIR_DTYPE_FLOAT, &shapes[i][k], (uint32_t)(i * 3) + (uint32_t)k);
      check_fed(w, chosen, fed, values, 3, threads);
    }
  }
}

// Elements are counted off where an op does not broadcast.
static void test_flat(void** state) {
  world_t* w = *state;
  const shape_t shapes[] = {{2, {6, 50}}, {1, {300}}, {2, {300, 1}}};
  weir_edge_t fed[] = {placeholder(w, "a", WEIR_DTYPE_FLOAT),
                       placeholder(w, "b", WEIR_DTYPE_FLOAT)};
  weir_edge_t grad = OP(w, "TanhGrad", OP(w, "Neg", fed[0]), OP(w, "Abs", fed[1]));
  weir_edge_t both = OP(w, "AddV2", OP(w, "Exp", grad), OP(w, "Square", grad));
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 3; ++k) {
      weir_tensor_t* values[] = {make_random(WEIR_DTYPE_FLOAT, &shapes[i], 8),
                                 make_random(WEIR_DTYPE_FLOAT, &shapes[k], 9)};
      check_fed(w, both, fed, values, 2, 1);
    }
  }
}

// A bias along the last dimension, short and long ones.
static void test_biases(void** state) {
  world_t* w = *state;
  static const shape_t shapes[][2] = {
      {{2, {1, 7}}, {1, {7}}},       {{2, {5, 1}}, {1, {1}}},         {{2, {300, 10}}, {1, {10}}},
      {{2, {7, 1500}}, {1, {1500}}}, {{4, {3, 4, 5, 32}}, {1, {32}}}, {{2, {0, 3}}, {1, {3}}}};
  weir_edge_t fed[] = {placeholder(w, "x", WEIR_DTYPE_FLOAT),
                       placeholder(w, "b", WEIR_DTYPE_FLOAT)};
  weir_edge_t biased = OP(w, "BiasAdd", OP(w, "Neg", fed[0]), fed[1]);
  weir_edge_t y = OP(w, "Mul", OP(w, "Relu", biased), OP(w, "Exp", fed[1]));
  for (size_t i = 0; i < WEIR_COUNT_OF(shapes); ++i) {
    weir_tensor_t* values[] = {make_random(WEIR_DTYPE_FLOAT, &shapes[i][0], 14),
                               make_random(WEIR_DTYPE_FLOAT, &shapes[i][1], 15)};
    check_fed(w, y, fed, values, 2, 2);
  }
}

// Around a tile's and a thread's share of elements.
static void test_tails(void** state) {
  world_t* w = *state;
  weir_edge_t fed[] = {placeholder(w, "a", WEIR_DTYPE_FLOAT),
                       placeholder(w, "b", WEIR_DTYPE_FLOAT)};
  weir_edge_t y = functions(w, fed[0], fed[1]);
  const int64_t counts[] = {1, 2, 15, 63, 64, 65, 1023, 1024, 1025, 2049, 70001};
  for (size_t i = 0; i < WEIR_COUNT_OF(counts); ++i) {
    shape_t shape = {1, {counts[i]}};
    weir_tensor_t* values[] = {make_random(WEIR_DTYPE_FLOAT, &shape, 10),
                               make_random(WEIR_DTYPE_FLOAT, &shape, 11)};
    check_fed(w, y, fed, values, 2, 2);
  }
}

// ---- size ----

static void test_long_chain(void** state) {
  world_t* w = *state;
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_FLOAT);
  weir_edge_t y = x;
  for (int i = 0; i < 2500; ++i) y = OP(w, i % 2 ? "Sin" : "Cos", y);
  const shape_t shapes[] = {{0, {0}}, {1, {3000}}};
  for (int i = 0; i < 2; ++i) {
    weir_tensor_t* value = make_random(WEIR_DTYPE_FLOAT, &shapes[i], 12);
    check_fed(w, y, &x, &value, 1, 1);
  }
}

// More values alive at once than there are registers for tiles of a good size.
static void test_many_alive(void** state) {
  world_t* w = *state;
  enum { COUNT = 700 };
  weir_edge_t x = placeholder(w, "x", WEIR_DTYPE_DOUBLE);
  weir_edge_t values[COUNT];
  values[0] = OP(w, "Exp", x);
  for (int i = 1; i < COUNT; ++i) values[i] = OP(w, i % 3 ? "Sin" : "Cos", values[i - 1]);
  weir_edge_t sum = values[COUNT - 1];
  for (int i = 0; i < COUNT - 1; ++i) sum = OP(w, "AddV2", sum, values[i]);
  const shape_t shape = {1, {300}};
  weir_tensor_t* value = make_random(WEIR_DTYPE_DOUBLE, &shape, 13);
  check_fed(w, sum, &x, &value, 1, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_types, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_functions, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_casts_and_selects, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_broadcasts, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_flat, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_biases, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_tails, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_long_chain, world_setup, world_teardown),
      cmocka_unit_test_setup_teardown(test_many_alive, world_setup, world_teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
