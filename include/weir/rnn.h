// rnn.h — Recurrent networks: cells (what happens in one step) and what runs them over sequences.
//
//   weir_rnn_cell_t* cells[] = {weir_lstm_cell(s, 256), weir_lstm_cell(s, 256)};
//   weir_rnn_cell_t* cell = weir_multi_rnn_cell(s, cells, 2);
//   weir_rnn_result_t r = weir_rnn(s, cell, inputs, .sequence_length = lengths);
//   weir_edge_t logits = weir_layer_dense(s, r.outputs, 10);
//
// Values, variable names and layouts are those of tf.compat.v1.nn.dynamic_rnn and
// tf.compat.v1.nn.rnn_cell ("rnn/lstm_cell/kernel", gates in the order i, j, f, o), so that
// checkpoints can be exchanged. Cells are owned by the root scope. A cell makes its variables when
// it is first used, and uses them again wherever else it is used. Errors stick in the scope.
// Threading: as the scope's.
#ifndef WEIR_RNN_H_
#define WEIR_RNN_H_

#include "weir/attrs.h"
#include "weir/initializer.h"
#include "weir/layer.h"
#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- cells ----

// One of the functions below makes it; or write your own: fill in all up to |impl|.
typedef struct weir_rnn_cell_t weir_rnn_cell_t;
struct weir_rnn_cell_t {
  const char* name;  // scope of its variables; NULL: they go where the cell is used
  int output_size;   // width of what a step returns
  int state_count;   // edges of a state, [batch, state_sizes[i]] each
  const int* state_sizes;
  // Makes the variables on |scope|, for inputs [batch, input_size].
  void (*build)(weir_rnn_cell_t* cell, weir_scope_t* scope, int input_size, weir_dtype_t dtype);
  // One step: replaces |state| and returns the output.
  weir_edge_t (*step)(weir_rnn_cell_t* cell, weir_scope_t* scope, weir_edge_t input,
                      weir_edge_t* state);
  void* impl;     // the cell's own
  bool is_built;  // set by weir_rnn_cell_build
};

typedef struct weir_rnn_cell_options_t {
  int reserved;
  const char* name;                 // default: "lstm_cell", "gru_cell" or "basic_rnn_cell"
  weir_activation_fn_t activation;  // default: weir_op_tanh
  weir_init_t kernel_init;          // default: weir_init_glorot_uniform(0)
  weir_init_t bias_init;            // default: zeros; the gates of a GRU: ones
  // LSTM only:
  weir_opt_float_t forget_bias;  // added to the forget gate; default: 1
  bool use_peepholes;            // gates see the cell's state, too
  int projection;                // outputs are projected to so many; 0: they are not
  float cell_clip;               // bound of the cell's state; 0: none
  float projection_clip;         // bound of projected outputs; 0: none
} weir_rnn_cell_options_t;
#define WEIR_RNN_CELL_OPTIONS_(...) (&(const weir_rnn_cell_options_t){0, __VA_ARGS__})

// State {c, h}. With the name "basic_lstm_cell" its variables are those of BasicLSTMCell.
WEIR_API weir_rnn_cell_t* weir_lstm_cell_with(weir_scope_t* scope, int units,
                                              const weir_rnn_cell_options_t* options);
// State {h}. Variables "gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias".
WEIR_API weir_rnn_cell_t* weir_gru_cell_with(weir_scope_t* scope, int units,
                                             const weir_rnn_cell_options_t* options);
// State {h}: h = activation([x, h] * kernel + bias).
WEIR_API weir_rnn_cell_t* weir_basic_rnn_cell_with(weir_scope_t* scope, int units,
                                                   const weir_rnn_cell_options_t* options);
#define weir_lstm_cell(scope, units, ...) \
  weir_lstm_cell_with((scope), (units), WEIR_RNN_CELL_OPTIONS_(__VA_ARGS__))
#define weir_gru_cell(scope, units, ...) \
  weir_gru_cell_with((scope), (units), WEIR_RNN_CELL_OPTIONS_(__VA_ARGS__))
#define weir_basic_rnn_cell(scope, units, ...) \
  weir_basic_rnn_cell_with((scope), (units), WEIR_RNN_CELL_OPTIONS_(__VA_ARGS__))

// Cells on top of each other; the state is all of theirs in order. Variables are in
// "multi_rnn_cell/cell_0/…" and so on. |cells| is copied.
WEIR_API weir_rnn_cell_t* weir_multi_rnn_cell(weir_scope_t* scope, weir_rnn_cell_t* const* cells,
                                              int count);

typedef struct weir_dropout_cell_options_t {
  int reserved;
  float input_rate, output_rate, state_rate;  // probability of being dropped; default: 0
  weir_edge_t training;                       // as in weir_layer_dropout
  bool is_training;
  int64_t seed;  // 0: from the machine
} weir_dropout_cell_options_t;
// |cell| with dropout at every step. The memory c of an LSTM is never dropped.
WEIR_API weir_rnn_cell_t* weir_dropout_cell_with(weir_scope_t* scope, weir_rnn_cell_t* cell,
                                                 const weir_dropout_cell_options_t* options);
#define weir_dropout_cell(scope, cell, ...) \
  weir_dropout_cell_with((scope), (cell), &(const weir_dropout_cell_options_t){0, __VA_ARGS__})

// Makes the variables of |cell| unless it has them.
WEIR_API void weir_rnn_cell_build(weir_rnn_cell_t* cell, weir_scope_t* scope, int input_size,
                                  weir_dtype_t dtype);
// One step on |input| [batch, n], building the cell if need be: for loops of one's own.
WEIR_API weir_edge_t weir_rnn_cell_step(weir_rnn_cell_t* cell, weir_scope_t* scope,
                                        weir_edge_t input, weir_edge_t* state);
// A state of zeros for |batch| (an int32 scalar) rows.
WEIR_API void weir_rnn_cell_zero_state(weir_rnn_cell_t* cell, weir_scope_t* scope,
                                       weir_edge_t batch, weir_dtype_t dtype,
                                       weir_edge_t* out_state);

// ---- sequences ----

typedef struct weir_rnn_options_t {
  int reserved;
  const char* name;             // default: "rnn"
  weir_edge_t sequence_length;  // integers [batch]; default: all steps
  // cell->state_count edges; both directions of a bidirectional one: twice as many, forward first.
  const weir_edge_t* initial_state;  // default: zeros
  bool time_major;                   // inputs and outputs are [time, batch, …]
  int64_t parallel_iterations;       // default: 32
} weir_rnn_options_t;
#define WEIR_RNN_OPTIONS_(...) (&(const weir_rnn_options_t){0, __VA_ARGS__})

typedef struct weir_rnn_result_t {
  weir_edge_t outputs;       // [batch, time, output_size]; zero beyond a sequence's length
  const weir_edge_t* state;  // at the end of each sequence; lives as long as the root scope
  int state_count;
} weir_rnn_result_t;

// Runs |cell| over |inputs| [batch, time, n] in a loop; n must be known.
WEIR_API weir_rnn_result_t weir_rnn_with(weir_scope_t* scope, weir_rnn_cell_t* cell,
                                         weir_edge_t inputs, const weir_rnn_options_t* options);
#define weir_rnn(scope, cell, inputs, ...) \
  weir_rnn_with((scope), (cell), (inputs), WEIR_RNN_OPTIONS_(__VA_ARGS__))

// The same without a loop: |inputs| are |count| edges [batch, n], |out_outputs| as many. The
// result's |outputs| is none. |time_major| means nothing here.
WEIR_API weir_rnn_result_t weir_static_rnn_with(weir_scope_t* scope, weir_rnn_cell_t* cell,
                                                const weir_edge_t* inputs, int count,
                                                weir_edge_t* out_outputs,
                                                const weir_rnn_options_t* options);
#define weir_static_rnn(scope, cell, inputs, count, out_outputs, ...)     \
  weir_static_rnn_with((scope), (cell), (inputs), (count), (out_outputs), \
                       WEIR_RNN_OPTIONS_(__VA_ARGS__))

typedef struct weir_bidirectional_rnn_result_t {
  weir_edge_t outputs;  // of both, forward first, along the last dimension
  weir_rnn_result_t forward, backward;
} weir_bidirectional_rnn_result_t;
// Runs one cell forward and one backward over each sequence. Variables are in
// "bidirectional_rnn/fw" and "bidirectional_rnn/bw".
WEIR_API weir_bidirectional_rnn_result_t weir_bidirectional_rnn_with(
    weir_scope_t* scope, weir_rnn_cell_t* forward, weir_rnn_cell_t* backward, weir_edge_t inputs,
    const weir_rnn_options_t* options);
#define weir_bidirectional_rnn(scope, forward, backward, inputs, ...)   \
  weir_bidirectional_rnn_with((scope), (forward), (backward), (inputs), \
                              WEIR_RNN_OPTIONS_(__VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif  // WEIR_RNN_H_
