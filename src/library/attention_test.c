// attention_test.c — Attention: masks, and a decoder that looks at a memory in a loop. Values are
// compared with Keras' in tests/attention_test.py.
#include "weir/attention.h"

#include <math.h>

#include "testing/bench.h"
#include "weir/control.h"
#include "weir/rnn.h"

static weir_tensor_t* value_of(bench_t* b, weir_edge_t edge) {
  weir_session_t* session = NULL;
  weir_tensor_t* result = NULL;
  weir_node_t* init = weir_initializer(b->s);
  check_built(b);
  weir_step_spec_t spec = {WEIR_FETCHES(edge), .feeds = NULL};
  check_ok(weir_session_create(b->graph, &(weir_session_options_t){.threads = 1}, &session));
  check_ok(weir_session_run_target(session, init));
  check_ok(weir_session_run(session, &spec, &result));
  weir_session_destroy(session);
  return result;
}

static weir_edge_t waves(bench_t* b, int rank, const int64_t* dims) {
  float values[64];
  int64_t count = 1;
  for (int i = 0; i < rank; ++i) count *= dims[i];
  assert_true(count <= 64);
  for (int64_t i = 0; i < count; ++i) values[i] = sinf((float)i);
  return weir_const_floats(b->s, rank, dims, values);
}

// The first query sees the first value only, whatever the others are.
static void test_causal(void** state) {
  bench_t* b = *state;
  weir_edge_t x = waves(b, WEIR_DIMS(3, 4));
  weir_attention_result_t a = weir_attention(b->s, x, x, x, .is_causal = true);
  weir_tensor_t *weights = value_of(b, a.weights), *output = value_of(b, a.output);
  const float* w = weir_tensor_data(weights);
  assert_true(w[0] == 1 && w[1] == 0 && w[2] == 0 && w[5] == 0);
  assert_true(w[3] > 0 && w[4] > 0 && w[6] > 0 && w[7] > 0 && w[8] > 0);
  const float* y = weir_tensor_data(output);
  for (int i = 0; i < 4; ++i) assert_true(y[i] == sinf((float)i));
  weir_tensor_release(weights);
  weir_tensor_release(output);
}

static void test_dropout_of_weights(void** state) {
  bench_t* b = *state;
  weir_edge_t x = waves(b, WEIR_DIMS(4, 4));
  weir_attention_result_t kept = weir_attention(b->s, x, x, x, .dropout_rate = 0.9f);
  weir_attention_result_t dropped =
      weir_attention(b->s, x, x, x, .dropout_rate = 0.9f, .is_training = true, .seed = 3);
  weir_tensor_t *y = value_of(b, kept.output), *z = value_of(b, dropped.output);
  const float *first = weir_tensor_data(y), *second = weir_tensor_data(z);
  int same = 0;
  for (int i = 0; i < 16; ++i) same += first[i] == second[i];
  assert_true(same < 16);
  weir_tensor_release(y);
  weir_tensor_release(z);
}

// ---- a decoder ----

typedef struct decoder_t {
  weir_memory_attention_t* attention;
  weir_rnn_cell_t* cell;
} decoder_t;

static weir_edge_t has_more(weir_scope_t* s, const weir_edge_t* state, void* user) {
  (void)user;
  return weir_less(s, state[0], weir_const_int(s, 3));
}

static void decode(weir_scope_t* s, weir_edge_t* state, void* user) {
  decoder_t* d = user;
  weir_attention_result_t a = weir_attend(d->attention, s, state[1]);
  weir_rnn_cell_step(d->cell, s, a.output, state + 1);
  state[0] = weir_add_v2(s, state[0], weir_const_int(s, 1));
}

static void decode_by(bench_t* b, decoder_t* d, weir_edge_t memory, bool is_unrolled) {
  weir_edge_t zero = weir_const_int(b->s, 0);
  weir_edge_t vars[2] = {zero};
  weir_rnn_cell_zero_state(d->cell, b->s, weir_const_int(b->s, 2), WEIR_DTYPE_FLOAT, vars + 1);
  if (!is_unrolled) weir_while_loop(b->s, vars, 2, has_more, decode, d, vars);
  for (int i = 0; is_unrolled && i < 3; ++i) decode(b->s, vars, d);
  weir_edge_t grad = {0};
  assert_null(weir_scope_status(b->s));
  weir_edge_t pair[2] = {vars[1], {0}};
  check_ok(weir_gradients(b->s, &vars[1], 1, &memory, 1, NULL, &grad));
  pair[1] = grad;
  for (int i = 0; i < 2; ++i)
    weir_scope_collect(b->s, is_unrolled ? "unrolled" : "looped", pair[i]);
}

static void check_decoder(bench_t* b, decoder_t* d, weir_edge_t memory) {
  decode_by(b, d, memory, false);
  decode_by(b, d, memory, true);
  const weir_edge_t *looped = NULL, *unrolled = NULL;
  assert_int_equal(weir_scope_collected(b->s, "looped", &looped), 2);
  assert_int_equal(weir_scope_collected(b->s, "unrolled", &unrolled), 2);
  for (int i = 0; i < 2; ++i) {
    weir_tensor_t *x = value_of(b, looped[i]), *y = value_of(b, unrolled[i]);
    const float *got = weir_tensor_data(x), *expected = weir_tensor_data(y);
    assert_int_equal(weir_tensor_count(x), weir_tensor_count(y));
    for (int64_t k = 0; k < weir_tensor_count(x); ++k)
      assert_true(fabsf(got[k] - expected[k]) <= 1e-6f);
    weir_tensor_release(x);
    weir_tensor_release(y);
  }
}

static void test_decoder(void** state) {
  bench_t* b = *state;
  weir_edge_t memory = weir_identity(b->s, waves(b, WEIR_DIMS(2, 4, 3)));
  weir_edge_t lengths = weir_const_ints(b->s, (const int[]){4, 2}, 2);
  decoder_t d = {.attention = weir_bahdanau_attention(b->s, memory, 5, .memory_length = lengths,
                                                      .normalize = true,
                                                      .kernel_init = weir_init_glorot_uniform(1)),
                 .cell = weir_gru_cell(b->s, 5, .kernel_init = weir_init_glorot_uniform(2))};
  check_decoder(b, &d, memory);
}

static void test_decoder_by_products(void** state) {
  bench_t* b = *state;
  weir_edge_t memory = weir_identity(b->s, waves(b, WEIR_DIMS(2, 4, 3)));
  decoder_t d = {.attention = weir_luong_attention(b->s, memory, 5,
                                                   .kernel_init = weir_init_glorot_uniform(1)),
                 .cell = weir_gru_cell(b->s, 5, .kernel_init = weir_init_glorot_uniform(2))};
  check_decoder(b, &d, memory);
}

// ---- errors ----

static void check_stuck(bench_t* b, const char* text) {
  weir_status_t* status = weir_scope_finish(b->s);
  b->s = weir_scope_create(b->graph);
  check_error(status, WEIR_INVALID_ARGUMENT, text);
}

static void test_errors(void** state) {
  bench_t* b = *state;
  weir_edge_t x = waves(b, WEIR_DIMS(2, 3, 4));
  weir_attention(b->s, x, x, x, .mask = x);
  check_stuck(b, "must be bool");
  weir_multi_head_attention(b->s, x, weir_const_float(b->s, 1), 2, 2);
  check_stuck(b, "the value 'Const_1' must be of rank 3");
  weir_multi_head_attention(b->s, x, x, 0, 2);
  check_stuck(b, "needs heads of at least one number");
  weir_bahdanau_attention(b->s, x, 0);
  check_stuck(b, "bahdanau_attention: ");
  weir_attend(weir_luong_attention(b->s, x, 5), b->s, waves(b, WEIR_DIMS(2, 4)));
  check_stuck(b, "must be a matrix of the keys' width, but has 4");
  weir_positional_encoding(b->s, 0, 4);
  check_stuck(b, "needs positive sizes");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_causal),  TEST(test_dropout_of_weights),
      TEST(test_decoder), TEST(test_decoder_by_products),
      TEST(test_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
