// char_lstm.c — A recurrent network learns to write like Shakespeare, one character after another:
// a loop in the graph, its state fed from step to step, and text sampled from the model.
#include <math.h>
#include <weir/weir.h>

#include "support.h"

enum { BATCH = 32, TIME = 50, UNITS = 128, LAYERS = 2, STATES = 2 * LAYERS, SAMPLE = 400 };

typedef struct model_t {
  weir_edge_t text, next;      // to feed: characters [batch, time], and those that follow them
  weir_edge_t before[STATES];  // to feed: what the network remembers of the text before,
  weir_edge_t after[STATES];   // and afterwards
  weir_edge_t loss, choice;    // nats a character; the next character, drawn at random
  weir_node_t *init, *step;
} model_t;

static model_t build(weir_graph_t* graph, int letters) {
  model_t m = {0};
  weir_rnn_cell_t* cells[LAYERS];
  weir_scope_t* s = weir_scope_create(graph);
  weir_scope_seed(s, 1);
  m.text = weir_placeholder(s, WEIR_DTYPE_INT32, .shape = WEIR_SHAPE(-1, -1));
  m.next = weir_placeholder(s, WEIR_DTYPE_INT32, .shape = WEIR_SHAPE(-1, -1));
  for (int i = 0; i < STATES; ++i)
    m.before[i] = weir_placeholder(s, WEIR_DTYPE_FLOAT, .shape = WEIR_SHAPE(-1, UNITS));

  for (int i = 0; i < LAYERS; ++i) cells[i] = weir_lstm_cell(s, UNITS);
  weir_edge_t x = weir_layer_embedding(s, m.text, letters, 64);
  weir_rnn_result_t rnn =
      weir_rnn(s, weir_multi_rnn_cell(s, cells, LAYERS), x, .initial_state = m.before);
  weir_edge_t scores = weir_layer_dense(s, rnn.outputs, letters);
  for (int i = 0; i < STATES && rnn.state; ++i) m.after[i] = rnn.state[i];

  m.loss = weir_loss_sparse_softmax_cross_entropy(s, m.next, scores);
  weir_edge_t rows = weir_reshape(s, scores, weir_const_ints(s, (int[]){-1, letters}, 2));
  rows = weir_mul(s, rows, weir_const_float(s, 1.5f));  // likely ones become likelier
  m.choice = weir_multinomial(s, rows, weir_const_int(s, 1), .seed = 1);
  weir_optimizer_t adam = weir_adam(0.004f);
  m.step = weir_minimize(s, &adam, m.loss, .clip_global_norm = 5);
  m.init = weir_initializer(s);
  check(weir_scope_finish(s));
  return m;
}

// The state of |rows| texts at their beginning.
static void forget(weir_tensor_t** state, int rows) {
  for (int i = 0; i < STATES; ++i) {
    check(weir_tensor_create(WEIR_DTYPE_FLOAT, WEIR_DIMS(rows, UNITS), &state[i]));
    memset(weir_tensor_data(state[i]), 0, weir_tensor_byte_size(state[i]));
  }
}

// Runs on |rows| pieces of |time| characters, |stride| apart, and moves |state| on. With |is_step|,
// learns and returns the loss; otherwise returns the next character of the last row.
static float run(weir_session_t* session, const model_t* m, const int32_t* text, int rows, int time,
                 size_t stride, weir_tensor_t** state, bool is_step) {
  int32_t now[BATCH * TIME], then[BATCH * TIME];
  for (int i = 0; i < rows * time; ++i) {
    now[i] = text[(size_t)(i / time) * stride + (size_t)(i % time)];
    then[i] = is_step ? text[(size_t)(i / time) * stride + (size_t)(i % time) + 1] : 0;
  }
  weir_feed_t feeds[2 + STATES] = {
      {m->text, tensor_of(WEIR_DTYPE_INT32, WEIR_DIMS(rows, time), now)},
      {m->next, tensor_of(WEIR_DTYPE_INT32, WEIR_DIMS(rows, time), then)}};
  weir_edge_t fetches[1 + STATES] = {is_step ? m->loss : m->choice};
  weir_tensor_t* results[1 + STATES] = {NULL};
  for (int i = 0; i < STATES; ++i) {
    feeds[2 + i] = (weir_feed_t){m->before[i], state[i]};
    fetches[1 + i] = m->after[i];
  }
  weir_step_spec_t spec = {feeds, 2 + STATES, fetches, 1 + STATES, &m->step, is_step};
  check(weir_session_run(session, &spec, results));
  for (int i = 0; i < 2 + STATES; ++i) weir_tensor_release(feeds[i].tensor);
  memcpy(state, results + 1, sizeof(*state) * STATES);
  if (is_step) return float_of(results[0]);
  float choice = (float)((int64_t*)weir_tensor_data(results[0]))[rows * time - 1];
  weir_tensor_release(results[0]);
  return choice;
}

int main(int argc, char** argv) {
  const int steps = steps_option(argc, argv, 2000);
  size_t size = 0;
  char *text = read_text("data/text/shakespeare.txt", &size), letter[256];
  int32_t *codes = calloc(size, sizeof(*codes)), code[256], letters = 0;
  memset(code, -1, sizeof(code));
  for (size_t i = 0; i < size; ++i) {  // the characters that occur, numbered
    unsigned char c = (unsigned char)text[i];
    if (code[c] < 0) letter[code[c] = letters++] = text[i];
    codes[i] = code[c];
  }
  weir_graph_t* graph = NULL;
  weir_session_t* session = NULL;
  check(weir_graph_create(&graph));
  model_t m = build(graph, letters);
  check(weir_session_create(graph, NULL, &session));
  check(weir_session_run_target(session, m.init));

  weir_tensor_t* state[STATES];
  const size_t stride = (size - 1) / BATCH;  // each row reads its own part of the text
  const double start = now();
  float loss = 0;
  forget(state, BATCH);
  for (int i = 0; i < steps; ++i) {
    size_t at = (size_t)i * TIME % (stride - TIME);
    loss += 0.02f * (run(session, &m, codes + at, BATCH, TIME, stride, state, true) - loss);
    if ((i + 1) % 100 && i + 1 < steps) continue;
    double perplexity = exp(loss / (1 - pow(0.98, i + 1)));
    printf("step %d  perplexity %.2f  %.0f characters/s\n", i + 1, perplexity,
           (i + 1) * BATCH * TIME / (now() - start));
    fflush(stdout);
  }
  for (int i = 0; i < STATES; ++i) weir_tensor_release(state[i]);
  forget(state, 1);
  int32_t last = code['\n'];
  for (int i = 0; i < SAMPLE; ++i) {
    last = (int32_t)run(session, &m, &last, 1, 1, 1, state, false);
    putchar(letter[last]);
  }
  puts("");
  for (int i = 0; i < STATES; ++i) weir_tensor_release(state[i]);
  weir_session_destroy(session);
  weir_graph_release(graph);
  free(text);
  free(codes);
  return 0;
}
