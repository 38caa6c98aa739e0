// rnn.c — Recurrent networks of ONNX: RNN, GRU and LSTM, in one direction or both.
#include "onnx/loop.h"

typedef enum kind_t { KIND_RNN = 1, KIND_GRU = 3, KIND_LSTM = 4 } kind_t;  // gates

// One direction of a network.
typedef struct cell_t {
  kind_t kind;
  int direction;          // 0 or 1: which part of the weights
  weir_edge_t projected;  // inputs by their weights, with biases: {time, batch, gates * hidden}
  weir_edge_t recurrent;  // weights of the state: {hidden, gates * hidden}
  weir_edge_t bias;       // of the state: {gates * hidden}
  weir_edge_t peepholes;  // {3 * hidden}; none: there are none
  weir_edge_t lengths;    // {batch, 1}, int64; none: all are as long as the input
  bool resets_after;      // GRU: the reset gate acts on the product
} cell_t;

// ---- activations ----

static weir_edge_t activate(onnx_call_t* call, const cell_t* cell, int index, const char* otherwise,
                            weir_edge_t x) {
  const onnx_attr_t* names = onnx_attr(call, "activations");
  int count = cell->kind == KIND_RNN ? 1 : cell->kind == KIND_GRU ? 2 : 3;
  weir_view_t name = weir_view_of(otherwise);
  int at = cell->direction * count + index;
  if (names && at < names->strings.count) name = names->strings.items[at];
  float clip = onnx_attr_float(call, "clip", 0);
  if (clip > 0) {
    x = ADD(call, "Maximum", x, onnx_like(call, x, (double)-clip));
    x = ADD(call, "Minimum", x, onnx_like(call, x, (double)clip));
  }
  static const char* const kKnown[] = {"Tanh", "Sigmoid", "Relu", "Softsign", "Softplus"};
  for (size_t i = 0; i < WEIR_COUNT_OF(kKnown); ++i) {
    if (weir_view_is(name, kKnown[i])) return ADD(call, kKnown[i], x);
  }
  onnx_refuse(call, "with the activation %.*s", WEIR_VIEW_ARG(name));
  return x;
}

// ---- cells ----

static weir_edge_t columns(onnx_call_t* call, weir_edge_t x, int count, int index) {
  weir_edge_t first = ADD_WITH(call, "Split", WEIR_ATTRS(weir_attr_int("num_split", count)),
                               onnx_number(call, WEIR_DTYPE_INT32, -1), x);
  return onnx_output(first, index);
}
static weir_edge_t sum(onnx_call_t* call, weir_edge_t a, weir_edge_t b) {
  return ADD(call, "AddV2", a, b);
}
static weir_edge_t product(onnx_call_t* call, weir_edge_t a, weir_edge_t b) {
  return ADD(call, "Mul", a, b);
}

static weir_edge_t rnn_cell(onnx_call_t* call, const cell_t* cell, weir_edge_t x, weir_edge_t h) {
  weir_edge_t state = sum(call, ADD(call, "MatMul", h, cell->recurrent), cell->bias);
  return activate(call, cell, 0, "Tanh", sum(call, x, state));
}

// Gates: update, reset, and the new state.
static weir_edge_t gru_cell(onnx_call_t* call, const cell_t* cell, weir_edge_t x, weir_edge_t h) {
  weir_edge_t state = sum(call, ADD(call, "MatMul", h, cell->recurrent), cell->bias);
  weir_edge_t gate[2], fresh;
  for (int i = 0; i < 2; ++i)
    gate[i] = activate(call, cell, 0, "Sigmoid",
                       sum(call, columns(call, x, 3, i), columns(call, state, 3, i)));
  if (cell->resets_after) {
    fresh = product(call, gate[1], columns(call, state, 3, 2));
  } else {
    weir_edge_t reset = product(call, gate[1], h);
    fresh = sum(call, ADD(call, "MatMul", reset, columns(call, cell->recurrent, 3, 2)),
                columns(call, cell->bias, 3, 2));
  }
  fresh = activate(call, cell, 1, "Tanh", sum(call, columns(call, x, 3, 2), fresh));
  weir_edge_t rest = ADD(call, "Sub", onnx_like(call, gate[0], 1), gate[0]);
  return sum(call, product(call, rest, fresh), product(call, gate[0], h));
}

// Gates: input, output, forget, and the new content.
static weir_edge_t lstm_cell(onnx_call_t* call, const cell_t* cell, weir_edge_t x, weir_edge_t h,
                             weir_edge_t* c) {
  weir_edge_t state = sum(call, ADD(call, "MatMul", h, cell->recurrent), cell->bias);
  weir_edge_t all = sum(call, x, state), gate[4];
  for (int i = 0; i < 4; ++i) gate[i] = columns(call, all, 4, i);
  bool peeps = cell->peepholes.node != NULL;
  if (peeps) {
    gate[0] = sum(call, gate[0], product(call, columns(call, cell->peepholes, 3, 0), *c));
    gate[2] = sum(call, gate[2], product(call, columns(call, cell->peepholes, 3, 2), *c));
  }
  weir_edge_t input = activate(call, cell, 0, "Sigmoid", gate[0]);
  weir_edge_t forget = activate(call, cell, 0, "Sigmoid", gate[2]);
  if (onnx_attr_int(call, "input_forget", 0))
    forget = ADD(call, "Sub", onnx_like(call, input, 1), input);
  weir_edge_t fresh = activate(call, cell, 1, "Tanh", gate[3]);
  *c = sum(call, product(call, forget, *c), product(call, input, fresh));
  if (peeps) gate[1] = sum(call, gate[1], product(call, columns(call, cell->peepholes, 3, 1), *c));
  weir_edge_t output = activate(call, cell, 0, "Sigmoid", gate[1]);
  return product(call, output, activate(call, cell, 2, "Tanh", *c));
}

// Sequences that have ended keep their states, and give zeros.
static weir_edge_t turn(onnx_loop_t* loop, onnx_call_t* call, weir_edge_t index,
                        weir_edge_t* states, weir_edge_t* collected) {
  const cell_t* cell = loop->user;
  weir_edge_t x = ADD(call, "GatherV2", cell->projected, index, onnx_int(call, 0));
  weir_edge_t h = states[0], c = states[1];
  if (cell->kind == KIND_RNN) h = rnn_cell(call, cell, x, h);
  if (cell->kind == KIND_GRU) h = gru_cell(call, cell, x, h);
  if (cell->kind == KIND_LSTM) h = lstm_cell(call, cell, x, h, &c);
  collected[0] = h;
  if (cell->lengths.node) {
    weir_edge_t lives = ADD(call, "Less", index, cell->lengths);
    collected[0] = ADD(call, "SelectV2", lives, h, ADD(call, "ZerosLike", h));
    h = ADD(call, "SelectV2", lives, h, states[0]);
    c = ADD(call, "SelectV2", lives, c, states[1]);
  }
  states[0] = h;
  states[1] = c;
  return WEIR_NO_EDGE;
}

// ---- directions ----

static weir_edge_t part(onnx_call_t* call, int input, int direction) {
  return ADD(call, "GatherV2", onnx_in(call, input), onnx_int(call, direction), onnx_int(call, 0));
}

// Backwards, each sequence up to its own length.
static weir_edge_t reversed(onnx_call_t* call, weir_edge_t x, weir_edge_t lengths) {
  if (!lengths.node) return ADD(call, "ReverseV2", x, INTS(call, 0));
  return ADD_WITH(call, "ReverseSequence",
                  WEIR_ATTRS(weir_attr_int("seq_dim", 0), weir_attr_int("batch_dim", 1)), x,
                  lengths);
}

// A state to start with, {batch, hidden}.
static weir_edge_t first_state(onnx_call_t* call, int input, int direction, weir_edge_t x,
                               weir_edge_t hidden) {
  if (onnx_has_in(call, input)) return part(call, input, direction);
  weir_edge_t batch = onnx_part(call, onnx_shape(call, x), 1, 2);
  return ADD(call, "Fill", JOIN(call, batch, hidden), onnx_like(call, x, 0));
}

static void read_weights(onnx_call_t* call, cell_t* cell, weir_edge_t x, weir_edge_t hidden) {
  static const int64_t kSwap[] = {1, 0};
  weir_edge_t weights = part(call, 1, cell->direction);
  cell->recurrent = onnx_transpose(call, part(call, 2, cell->direction), kSwap, 2);
  cell->projected =
      ADD_WITH(call, "BatchMatMulV2", WEIR_ATTRS(weir_attr_bool("adj_y", true)), x, weights);
  weir_edge_t gates = ADD(call, "Mul", hidden, onnx_int(call, (int)cell->kind));
  cell->bias = ADD(call, "Fill", gates, onnx_like(call, x, 0));
  if (!onnx_has_in(call, 3)) return;
  weir_edge_t both = part(call, 3, cell->direction);
  cell->projected = sum(call, cell->projected, columns(call, both, 2, 0));
  cell->bias = columns(call, both, 2, 1);
}

// Results of one direction: outputs of all steps, and the last states.
static void run(onnx_call_t* call, cell_t* cell, weir_edge_t x, bool is_backward,
                weir_edge_t results[3]) {
  weir_edge_t lengths = onnx_in(call, 4), states[2], outputs;
  weir_edge_t hidden = onnx_part(call, onnx_shape(call, onnx_in(call, 2)), 2, 3);
  if (is_backward) x = reversed(call, x, lengths);
  read_weights(call, cell, x, hidden);
  if (lengths.node)
    cell->lengths = onnx_expand(call, onnx_cast(call, lengths, WEIR_DTYPE_INT64), 1);
  if (cell->kind == KIND_LSTM && onnx_has_in(call, 7))
    cell->peepholes = part(call, 7, cell->direction);
  states[0] = first_state(call, 5, cell->direction, x, hidden);
  states[1] =
      cell->kind == KIND_LSTM ? first_state(call, 6, cell->direction, x, hidden) : states[0];
  const int64_t dims[] = {onnx_dim(x, 1), onnx_dim(onnx_in(call, 2), 2)};
  onnx_loop_t loop = {
      .call = call, .turn = turn, .user = cell, .state_count = 2, .collected_count = 1};
  loop.types[0] = onnx_dtype_of(x);
  loop.shapes[0] = weir_shape_make(&call->importer->arena, 2, dims);
  if (!loop.shapes[0]) weir_scope_fail(call->scope, weir_out_of_memory());
  loop.limit =
      onnx_reshape(call, onnx_part(call, onnx_shape(call, x), 0, 1), onnx_ints(call, NULL, 0));
  if (onnx_failed(call)) return;
  onnx_loop_run(&loop, states, &outputs);
  results[0] = is_backward ? reversed(call, outputs, lengths) : outputs;
  results[1] = states[0];
  results[2] = states[1];
}

// With layout 1 batches come first.
static weir_edge_t moved(onnx_call_t* call, weir_edge_t x, const int64_t* perm, int rank) {
  return onnx_attr_int(call, "layout", 0) ? onnx_transpose(call, x, perm, rank) : x;
}

static void recurrent(onnx_call_t* call, kind_t kind) {
  static const int64_t kBatchSecond[] = {1, 0, 2}, kBatchFirst[] = {2, 0, 1, 3};
  weir_view_t direction = onnx_attr_string(call, "direction", "forward");
  bool is_both = weir_view_is(direction, "bidirectional");
  weir_edge_t parts[3][2] = {{{0}}}, all[3] = {{0}}, inputs[8] = {{0}};
  for (int i = 0; i < 8; ++i) inputs[i] = onnx_in(call, i);
  inputs[0] = moved(call, inputs[0], kBatchSecond, 3);
  for (int i = 5; i < 7; ++i) {
    if (inputs[i].node) inputs[i] = moved(call, inputs[i], kBatchSecond, 3);
  }
  onnx_call_t inner = *call;
  inner.inputs = inputs;
  inner.input_count = 8;
  for (int i = 0; i < 1 + is_both && !onnx_failed(call); ++i) {
    cell_t cell = {.kind = kind,
                   .direction = i,
                   .resets_after = onnx_attr_int(call, "linear_before_reset", 0) != 0};
    weir_edge_t results[3] = {{0}};
    run(&inner, &cell, inputs[0], i == 1 || weir_view_is(direction, "reverse"), results);
    for (int k = 0; k < 3; ++k) parts[k][i] = results[k];
  }
  for (int k = 0; k < 3 && !onnx_failed(call); ++k)
    all[k] = onnx_add(call, "Pack", (weir_edges_t){parts[k], 1 + is_both},
                      WEIR_ATTRS(weir_attr_int("axis", k == 0), weir_attr_int("N", 1 + is_both)));
  if (onnx_failed(call)) return;
  onnx_out(call, 0, moved(call, all[0], kBatchFirst, 4));
  onnx_out(call, 1, moved(call, all[1], kBatchSecond, 3));
  if (kind == KIND_LSTM) onnx_out(call, 2, moved(call, all[2], kBatchSecond, 3));
}
static void rnn(onnx_call_t* call) { recurrent(call, KIND_RNN); }
static void gru(onnx_call_t* call) { recurrent(call, KIND_GRU); }
static void lstm(onnx_call_t* call) { recurrent(call, KIND_LSTM); }

const onnx_row_t onnx_rnn_rows[] = {
    ONNX_OP("GRU", 7, gru), ONNX_OP("LSTM", 7, lstm), ONNX_OP("RNN", 7, rnn), {.op = NULL}};
