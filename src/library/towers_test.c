// towers_test.c — One graph on several devices of a process: the losses are those of one device
// with the whole batches, and variables stay the same everywhere.
#include <math.h>

#include "testing/bench.h"
#include "weir/weir.h"

enum { ROWS = 8, FEATURES = 5, WORDS = 7, STEPS = 6 };

typedef struct model_t {
  weir_edge_t inputs[3];  // numbers, words, targets
  weir_towers_t towers;
  weir_node_t* init;
} model_t;

static weir_edge_t weights(weir_scope_t* s, const char* name, int rows, int columns, int* seed) {
  weir_edge_t dims = weir_const_ints(s, (const int[]){rows, columns}, 2);
  return weir_variable(s, name, weir_random_uniform(s, dims, WEIR_DTYPE_FLOAT, .seed = ++*seed));
}

// A net with a hidden layer, and a table of which few rows are read: dense and sparse gradients.
// |arg| counts variables: each starts as no other does.
static weir_edge_t build_tower(weir_scope_t* s, const weir_edge_t* inputs, void* arg) {
  weir_edge_t table = weights(s, "table", WORDS, FEATURES, arg);
  weir_edge_t rows =
      weir_resource_gather(s, weir_variable_handle(table), inputs[1], WEIR_DTYPE_FLOAT);
  weir_edge_t x = weir_add(s, inputs[0], rows);
  x = weir_tanh(s, weir_mat_mul(s, x, weights(s, "hidden", FEATURES, 6, arg)));
  weir_edge_t y = weir_mat_mul(s, x, weights(s, "last", 6, 1, arg));
  y = weir_reshape(s, y, weir_const_ints(s, (const int[]){-1}, 1));
  return weir_mean(s, weir_square(s, weir_sub(s, y, inputs[2])), weir_const_int(s, 0));
}

static model_t build(bench_t* b, const char* const* devices, int count) {
  model_t m = {0};
  weir_scope_seed(b->s, 1);
  m.inputs[0] = FED(b, FLOAT, -1, FEATURES);
  m.inputs[1] = FED(b, INT32, -1);
  m.inputs[2] = FED(b, FLOAT, -1);
  int seed = 0;
  const weir_tower_model_t model = {
      .build = build_tower, .arg = &seed, .inputs = m.inputs, .input_count = 3};
  weir_optimizer_t adam = weir_adam(0.05f);
  m.towers = weir_towers(b->s, &adam, &model, devices, count, .global_step = weir_global_step(b->s),
                         .clip_global_norm = 0.8f);
  m.init = weir_initializer(b->s);
  check_built(b);
  return m;
}

static weir_tensor_t* make(weir_dtype_t dtype, int rank, const int64_t* dims, int step) {
  weir_tensor_t* x = NULL;
  check_ok(weir_tensor_create(dtype, rank, dims, &x));
  for (int64_t i = 0; i < weir_tensor_count(x); ++i) {
    const int64_t seed = (i * 7 + step * 13 + rank) % 11;
    if (dtype == WEIR_DTYPE_INT32) ((int32_t*)weir_tensor_data(x))[i] = (int32_t)(seed % WORDS);
    else ((float*)weir_tensor_data(x))[i] = (float)seed / 11 - 0.4f;
  }
  return x;
}

static float run_step(weir_session_t* session, const model_t* m, int step) {
  const int64_t dims[] = {ROWS, FEATURES};
  weir_tensor_t* fed[] = {make(WEIR_DTYPE_FLOAT, 2, dims, step),
                          make(WEIR_DTYPE_INT32, 1, dims, step),
                          make(WEIR_DTYPE_FLOAT, 1, dims, step)};
  weir_tensor_t* loss = NULL;
  weir_step_spec_t spec = {
      WEIR_FEEDS({m->inputs[0], fed[0]}, {m->inputs[1], fed[1]}, {m->inputs[2], fed[2]}),
      WEIR_FETCHES(m->towers.loss), WEIR_TARGETS(m->towers.step)};
  check_ok(weir_session_run(session, &spec, &loss));
  float value = *(const float*)weir_tensor_data(loss);
  weir_tensor_release(loss);
  for (int i = 0; i < 3; ++i) weir_tensor_release(fed[i]);
  return value;
}

// Every variable of the others holds what the first one's does.
static void check_same(bench_t* b, weir_session_t* session) {
  const int count = weir_scope_variable_count(b->s);
  int others = 0;
  for (int i = 0; i < count; ++i) {
    weir_variable_info_t variable = weir_scope_variable_at(b->s, i);
    const char* name = weir_node_name(variable.handle.node);
    if (strncmp(name, "tower_1/", 8)) continue;
    ++others;
    for (int k = 0; k < count; ++k) {
      weir_variable_info_t first = weir_scope_variable_at(b->s, k);
      if (strcmp(weir_node_name(first.handle.node), name + 8)) continue;
      weir_tensor_t* values[2] = {NULL};
      weir_step_spec_t spec = {WEIR_FETCHES(first.value, variable.value)};
      check_ok(weir_session_run(session, &spec, values));
      check_floats_at(values[1], weir_tensor_count(values[0]), weir_tensor_data(values[0]), 1e-6f,
                      __FILE__, __LINE__);
      weir_tensor_release(values[0]);
      weir_tensor_release(values[1]);
    }
  }
  assert_true(others > 0);
}

static void train(const char* sessions, const char* const* names, int count, float* losses) {
  void* state = NULL;
  setup(&state);
  bench_t* b = state;
  weir_session_t* session = NULL;
  weir_session_options_t options = {.devices = sessions};
  model_t m = build(b, names, count);
  check_ok(weir_session_create(b->graph, &options, &session));
  check_ok(weir_session_run_target(session, m.init));
  check_ok(weir_session_run_target(session, m.towers.start));
  for (int i = 0; i < STEPS; ++i) losses[i] = run_step(session, &m, i);
  if (count > 1) check_same(b, session);
  weir_session_destroy(session);
  teardown(&state);
}

static void check_devices(const char* sessions, const char* const* names) {
  float alone[STEPS], together[STEPS];
  train("cpu", (const char* const[]){"/cpu:0"}, 1, alone);
  train(sessions, names, 2, together);
  assert_true(alone[STEPS - 1] < alone[0]);
  for (int i = 0; i < STEPS; ++i) {
    if (fabsf(together[i] - alone[i]) > 1e-5f * (1 + fabsf(alone[i])))
      fail_msg("step %d: %g, not %g", i, (double)together[i], (double)alone[i]);
  }
}

static void test_cpus(void** state) {
  (void)state;
  check_devices("cpu:2", (const char* const[]){"/cpu:0", "/cpu:1"});
}

static void test_guards(void** state) {
  (void)state;
  check_devices("cpu,guard:2", (const char* const[]){"/device:GUARD:0", "/device:GUARD:1"});
}

static void test_misuse(void** state) {
  bench_t* b = *state;
  const weir_edge_t x = FED(b, FLOAT, -1);
  const weir_tower_model_t model = {.build = build_tower, .inputs = &x, .input_count = 1};
  const char* const names[] = {"/cpu:0", NULL};
  weir_optimizer_t sgd = weir_sgd(0.1f);
  check_fails(b, weir_towers(b->s, &sgd, &model, names, 0).loss, "at least one is needed");
  check_fails(b, weir_towers(b->s, &sgd, &model, names, 2).loss, "tower 1 has no device");
  check_fails(b, weir_towers(b->s, &sgd, &model, names, 1, .accumulate = 2).loss, "accumulate");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_cpus),
      cmocka_unit_test(test_guards),
      cmocka_unit_test_setup_teardown(test_misuse, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
