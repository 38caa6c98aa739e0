// rnn_test.c — Recurrent networks: cells in loops of one's own, dropout, arrays, shapes, errors.
// Values are compared with TensorFlow's in tests/rnn_test.py.
#include "weir/rnn.h"

#include <math.h>

#include "testing/bench.h"
#include "weir/control.h"
#include "weir/optimizer.h"
#include "weir/tensor_array.h"

enum { BATCH = 2, STEPS = 5, WIDTH = 3, UNITS = 4 };

// x is [BATCH, STEPS, WIDTH], constant.
static int setup_x(void** state) {
  float values[BATCH * STEPS * WIDTH];
  for (int i = 0; i < BATCH * STEPS * WIDTH; ++i) values[i] = sinf((float)i);
  setup(state);
  bench_t* b = *state;
  b->x = weir_const_floats(b->s, WEIR_DIMS(BATCH, STEPS, WIDTH), values);
  return 0;
}

static weir_session_t* start(bench_t* b) {
  weir_session_t* session = NULL;
  weir_node_t* init = weir_initializer(b->s);
  check_built(b);
  check_ok(weir_session_create(b->graph, &(weir_session_options_t){.threads = 2}, &session));
  check_ok(weir_session_run_target(session, init));
  return session;
}

static weir_tensor_t* run(weir_session_t* session, weir_edge_t edge) {
  weir_tensor_t* result = NULL;
  weir_step_spec_t spec = {WEIR_FETCHES(edge), .feeds = NULL};
  check_ok(weir_session_run(session, &spec, &result));
  return result;
}

static void check_equal(weir_session_t* session, weir_edge_t a, weir_edge_t b) {
  weir_tensor_t *x = run(session, a), *y = run(session, b);
  assert_int_equal(weir_tensor_count(x), weir_tensor_count(y));
  check_floats_at(x, weir_tensor_count(y), weir_tensor_data(y), 8, __FILE__, __LINE__);
  weir_tensor_release(x);
  weir_tensor_release(y);
}

static void check_shape(weir_edge_t edge, int rank, const int64_t* expected) {
  int64_t dims[8] = {0};
  assert_int_equal(weir_edge_dims(edge, dims, 8), rank);
  for (int i = 0; i < rank; ++i) assert_int_equal(dims[i], expected[i]);
}

// ---- shapes and names ----

static void test_shapes_and_names(void** state) {
  bench_t* b = *state;
  weir_rnn_cell_t* cells[] = {
      weir_lstm_cell(b->s, UNITS, .kernel_init = weir_init_glorot_uniform(1)),
      weir_gru_cell(b->s, 2, .kernel_init = weir_init_glorot_uniform(2))};
  weir_rnn_cell_t* cell = weir_multi_rnn_cell(b->s, cells, 2);
  weir_rnn_result_t r = weir_rnn(b->s, cell, b->x);
  check_built(b);
  check_shape(r.outputs, WEIR_DIMS(BATCH, STEPS, 2));
  assert_int_equal(r.state_count, 3);
  check_shape(r.state[0], WEIR_DIMS(BATCH, UNITS));
  check_shape(r.state[2], WEIR_DIMS(BATCH, 2));
  const char* names[] = {"rnn/multi_rnn_cell/cell_0/lstm_cell/kernel",
                         "rnn/multi_rnn_cell/cell_0/lstm_cell/bias",
                         "rnn/multi_rnn_cell/cell_1/gru_cell/gates/kernel",
                         "rnn/multi_rnn_cell/cell_1/gru_cell/gates/bias",
                         "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/kernel",
                         "rnn/multi_rnn_cell/cell_1/gru_cell/candidate/bias"};
  assert_int_equal(weir_scope_variable_count(b->s), 6);
  for (int i = 0; i < 6; ++i)
    assert_string_equal(weir_node_name(weir_scope_variable_at(b->s, i).handle.node), names[i]);
}

static void test_cell_is_shared(void** state) {
  bench_t* b = *state;
  weir_rnn_cell_t* cell = weir_gru_cell(b->s, UNITS, .kernel_init = weir_init_glorot_uniform(1));
  weir_rnn_result_t first = weir_rnn(b->s, cell, b->x);
  weir_rnn_result_t second = weir_rnn(b->s, cell, b->x, .parallel_iterations = 1);
  assert_int_equal(weir_scope_variable_count(b->s), 4);
  weir_session_t* session = start(b);
  check_equal(session, first.outputs, second.outputs);
  weir_session_destroy(session);
}

// ---- the same in a loop of one's own ----

typedef struct own_loop_t {
  weir_rnn_cell_t* cell;
  weir_array_t rows;
} own_loop_t;

static weir_edge_t has_more(weir_scope_t* s, const weir_edge_t* state, void* user) {
  (void)user;
  return weir_less(s, state[0], weir_const_int(s, STEPS));
}

static void step(weir_scope_t* s, weir_edge_t* state, void* user) {
  own_loop_t* loop = user;
  weir_edge_t row = weir_array_read(s, loop->rows, state[0]);
  weir_rnn_cell_step(loop->cell, s, row, state + 1);
  state[0] = weir_add_v2(s, state[0], weir_const_int(s, 1));
}

// The variables are made within the body, and end up outside.
static void test_own_loop(void** state) {
  bench_t* b = *state;
  own_loop_t loop = {
      .cell = weir_lstm_cell(b->s, UNITS, .kernel_init = weir_init_glorot_uniform(1)),
      .rows = weir_array_unstack(
          b->s, weir_transpose(b->s, b->x, weir_const_ints(b->s, (const int[]){1, 0, 2}, 3)))};
  weir_edge_t vars[3] = {weir_const_int(b->s, 0)};
  weir_rnn_cell_zero_state(loop.cell, b->s, weir_const_int(b->s, BATCH), WEIR_DTYPE_FLOAT,
                           vars + 1);
  weir_while_loop(b->s, vars, 3, has_more, step, &loop, vars);
  assert_int_equal(weir_scope_variable_count(b->s), 2);
  weir_rnn_result_t r = weir_rnn(b->s, loop.cell, b->x);
  weir_session_t* session = start(b);
  check_equal(session, vars[1], r.state[0]);
  check_equal(session, vars[2], r.state[1]);
  weir_session_destroy(session);
}

// ---- unrolled, both directions ----

static void test_unrolled(void** state) {
  bench_t* b = *state;
  weir_rnn_cell_t* cell = weir_lstm_cell(b->s, UNITS, .kernel_init = weir_init_glorot_uniform(1));
  weir_edge_t parts = weir_unpack(b->s, b->x, STEPS, .axis = 1);
  weir_edge_t inputs[STEPS], outputs[STEPS];
  for (int i = 0; i < STEPS; ++i) inputs[i] = (weir_edge_t){parts.node, i};
  weir_edge_t lengths = weir_const_ints(b->s, (const int[]){5, 2}, 2);
  weir_rnn_result_t unrolled =
      weir_static_rnn(b->s, cell, inputs, STEPS, outputs, .sequence_length = lengths);
  weir_rnn_result_t looped = weir_rnn(b->s, cell, b->x, .sequence_length = lengths);
  weir_session_t* session = start(b);
  check_equal(session, unrolled.state[0], looped.state[0]);
  check_equal(session, unrolled.state[1], looped.state[1]);
  check_equal(session, weir_pack(b->s, outputs, STEPS, .axis = 1), looped.outputs);
  weir_session_destroy(session);
}

static void test_bidirectional(void** state) {
  bench_t* b = *state;
  weir_rnn_cell_t* cell = weir_gru_cell(b->s, UNITS, .kernel_init = weir_init_glorot_uniform(1));
  weir_edge_t axis = weir_const_ints(b->s, (const int[]){1}, 1);
  weir_bidirectional_rnn_result_t r =
      weir_bidirectional_rnn(b->s, cell, cell, weir_reverse_v2(b->s, b->x, axis));
  weir_rnn_result_t plain = weir_rnn(b->s, cell, b->x);
  weir_session_t* session = start(b);
  check_shape(r.outputs, WEIR_DIMS(BATCH, STEPS, 2 * UNITS));
  check_equal(session, r.backward.state[0], plain.state[0]);
  check_equal(session, weir_reverse_v2(b->s, r.backward.outputs, axis), plain.outputs);
  weir_session_destroy(session);
}

// ---- dropout ----

static void test_dropout(void** state) {
  bench_t* b = *state;
  weir_rnn_cell_t* cell = weir_lstm_cell(b->s, UNITS, .kernel_init = weir_init_glorot_uniform(1));
  weir_rnn_cell_t* dropped =
      weir_dropout_cell(b->s, cell, .output_rate = 0.5f, .is_training = true, .seed = 7);
  weir_rnn_cell_t* kept =
      weir_dropout_cell(b->s, cell, .output_rate = 0.5f, .state_rate = 0.5f, .input_rate = 0.5f);
  weir_rnn_result_t plain = weir_rnn(b->s, cell, b->x);
  weir_rnn_result_t quiet = weir_rnn(b->s, kept, b->x);
  weir_rnn_result_t noisy = weir_rnn(b->s, dropped, b->x);
  weir_session_t* session = start(b);
  assert_int_equal(weir_scope_variable_count(b->s), 2);
  check_equal(session, plain.outputs, quiet.outputs);
  check_equal(session, plain.state[1], noisy.state[1]);  // only outputs are dropped
  weir_tensor_t *x = run(session, plain.outputs), *y = run(session, noisy.outputs);
  const float *before = weir_tensor_data(x), *after = weir_tensor_data(y);
  int zeros = 0, doubled = 0;
  for (int i = 0; i < BATCH * STEPS * UNITS; ++i) {
    zeros += after[i] == 0;
    doubled += fabsf(after[i] - 2 * before[i]) <= 1e-5f;
  }
  assert_true(zeros > 8 && doubled > 8);  // of 40
  assert_int_equal(zeros + doubled, BATCH * STEPS * UNITS);
  weir_tensor_release(x);
  weir_tensor_release(y);
  weir_session_destroy(session);
}

// Whether a step trains comes from outside the loop; gradients go through the branches within.
static void test_dropout_decided_by_the_step(void** state) {
  bench_t* b = *state;
  weir_edge_t zero = weir_const_float(b->s, 0);
  weir_edge_t training = weir_greater(b->s, zero, weir_identity(b->s, zero));
  weir_rnn_cell_t* cell = weir_gru_cell(b->s, UNITS, .kernel_init = weir_init_glorot_uniform(1));
  weir_rnn_cell_t* wrapped = weir_dropout_cell(b->s, cell, .input_rate = 0.5f, .state_rate = 0.5f,
                                               .training = training, .seed = 7);
  weir_edge_t x = weir_identity(b->s, b->x), grads[2];
  weir_rnn_result_t plain = weir_rnn(b->s, cell, x);
  weir_rnn_result_t quiet = weir_rnn(b->s, wrapped, x);
  check_built(b);
  check_ok(weir_gradients(b->s, &plain.outputs, 1, &x, 1, NULL, &grads[0]));
  check_ok(weir_gradients(b->s, &quiet.outputs, 1, &x, 1, NULL, &grads[1]));
  weir_session_t* session = start(b);
  check_equal(session, plain.outputs, quiet.outputs);
  check_equal(session, grads[0], grads[1]);
  weir_session_destroy(session);
}

// ---- training ----

static void test_training_reduces_the_loss(void** state) {
  bench_t* b = *state;
  weir_rnn_cell_t* cells[] = {weir_lstm_cell(b->s, 8, .kernel_init = weir_init_glorot_uniform(1)),
                              weir_lstm_cell(b->s, 8, .kernel_init = weir_init_glorot_uniform(2))};
  weir_rnn_result_t r = weir_rnn(b->s, weir_multi_rnn_cell(b->s, cells, 2), b->x);
  weir_edge_t error = weir_sub(b->s, r.state[3], weir_const_float(b->s, 0.3f));
  weir_edge_t axes = weir_const_ints(b->s, (const int[]){0, 1}, 2);
  weir_edge_t loss = weir_mean(b->s, weir_square(b->s, error), axes);
  weir_node_t* train = weir_train_adam(b->s, loss, 0.02f);
  weir_session_t* session = start(b);
  weir_tensor_t* before = run(session, loss);
  for (int i = 0; i < 50; ++i) check_ok(weir_session_run_target(session, train));
  weir_tensor_t* after = run(session, loss);
  assert_true(float_of(after) < float_of(before) / 20);
  weir_tensor_release(before);
  weir_tensor_release(after);
  weir_session_destroy(session);
}

// ---- errors ----

static void check_stuck(bench_t* b, const char* text) {
  weir_status_t* status = weir_scope_finish(b->s);
  b->s = weir_scope_create(b->graph);
  check_error(status, WEIR_INVALID_ARGUMENT, text);
}

static void test_errors(void** state) {
  bench_t* b = *state;
  assert_null(weir_lstm_cell(b->s, 0));
  check_stuck(b, "lstm_cell needs at least one unit");
  assert_null(weir_multi_rnn_cell(b->s, NULL, 0));
  check_stuck(b, "at least one cell");
  weir_rnn(b->s, NULL, b->x);
  check_stuck(b, "has no cell");
  weir_rnn(b->s, weir_gru_cell(b->s, 2), weir_const_float(b->s, 1));
  check_stuck(b, "must be of rank 3");
  weir_edge_t wrong[] = {weir_const_floats(b->s, WEIR_DIMS(1, 1), (const float[]){1})};
  weir_rnn(b->s, weir_gru_cell(b->s, 2), b->x, .initial_state = wrong);
  check_stuck(b, "EnsureShape");
  weir_edge_t missing[2] = {0};
  weir_rnn(b->s, weir_lstm_cell(b->s, 2), b->x, .initial_state = missing);
  check_stuck(b, "initial state of rnn: input 0");
  weir_array_unstack(b->s, weir_const_float(b->s, 1));
  check_stuck(b, "has no slices");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_x, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_shapes_and_names),
      TEST(test_cell_is_shared),
      TEST(test_own_loop),
      TEST(test_unrolled),
      TEST(test_bidirectional),
      TEST(test_dropout),
      TEST(test_dropout_decided_by_the_step),
      TEST(test_training_reduces_the_loss),
      TEST(test_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
