// rnn_cell.c — Recurrent cells: LSTM, GRU and the plain one.
#include <string.h>

#include "nodes.h"
#include "weights.h"
#include "weir/rnn.h"

// What all three keep: their options and variables.
typedef struct weights_t {
  int units;
  weir_rnn_cell_options_t options;
  int sizes[2];
  weir_dtype_t dtype;
  weir_edge_t kernel, bias;
  weir_edge_t candidate_kernel, candidate_bias;  // of a GRU
  weir_edge_t peephole_f, peephole_i, peephole_o;
  weir_edge_t projection;
} weights_t;

static const char* copy_name(weir_scope_t* scope, const char* name) {
  const size_t size = strlen(name) + 1;
  char* copy = weir_scope_alloc(scope, size, 1);
  if (copy) memcpy(copy, name, size);
  return copy;
}

static weir_rnn_cell_t* make_cell(weir_scope_t* scope, int units, const char* name,
                                  const weir_rnn_cell_options_t* options) {
  weir_rnn_cell_t* cell = weir_scope_alloc(scope, 1, sizeof(*cell));
  weights_t* w = weir_scope_alloc(scope, 1, sizeof(*w));
  if (!cell || !w) return NULL;
  if (units < 1 || options->projection < 0) {
    weir_lib_fail(scope, "%s needs at least one unit, got %d (projected to %d)", name, units,
                  options->projection);
    return NULL;
  }
  w->units = units;
  w->options = *options;
  w->options.name = NULL;
  if (!w->options.activation) w->options.activation = weir_op_tanh;
  cell->name = copy_name(scope, options->name ? options->name : name);
  cell->output_size = units;
  cell->state_count = 1;
  w->sizes[0] = units;
  cell->state_sizes = w->sizes;
  cell->impl = w;
  return cell;
}

static weir_edge_t affine(weir_scope_t* s, weir_edge_t x, weir_edge_t kernel, weir_edge_t bias) {
  return weir_bias_add(s, weir_mat_mul(s, x, kernel), bias);
}

static weir_edge_t part(weir_edge_t split, int index) { return (weir_edge_t){split.node, index}; }

static weir_edge_t make_kernel(weir_scope_t* s, const weights_t* w, int64_t rows, int64_t columns) {
  return weir_lib_weight(s, "kernel", WEIR_LIB_NONE, w->options.kernel_init,
                         weir_init_glorot_uniform(0), w->dtype, WEIR_SHAPE(rows, columns));
}

static weir_edge_t make_bias(weir_scope_t* s, const weights_t* w, weir_init_t fallback,
                             int64_t columns) {
  return weir_lib_weight(s, "bias", WEIR_LIB_NONE, w->options.bias_init, fallback, w->dtype,
                         WEIR_SHAPE(columns));
}

// ---- LSTM ----

static weir_edge_t make_peephole(weir_scope_t* s, const weights_t* w, const char* name) {
  return weir_lib_weight(s, name, WEIR_LIB_NONE, w->options.kernel_init,
                         weir_init_glorot_uniform(0), w->dtype, WEIR_SHAPE(w->units));
}

static void lstm_build(weir_rnn_cell_t* cell, weir_scope_t* s, int input_size, weir_dtype_t dtype) {
  weights_t* w = cell->impl;
  w->dtype = dtype;
  w->kernel = make_kernel(s, w, (int64_t)input_size + cell->output_size, 4 * (int64_t)w->units);
  w->bias = make_bias(s, w, weir_init_zeros(), 4 * (int64_t)w->units);
  if (w->options.use_peepholes) {
    w->peephole_f = make_peephole(s, w, "w_f_diag");
    w->peephole_i = make_peephole(s, w, "w_i_diag");
    w->peephole_o = make_peephole(s, w, "w_o_diag");
  }
  if (w->options.projection)
    w->projection = make_kernel(weir_scope_in(s, "projection"), w, w->units, w->options.projection);
}

static weir_edge_t clip(weir_scope_t* s, weir_edge_t x, weir_dtype_t dtype, float bound) {
  if (bound <= 0) return x;
  return weir_clip_by_value(s, x, weir_lib_number(s, dtype, -(double)bound),
                            weir_lib_number(s, dtype, (double)bound));
}

// A gate, which looks at |c| through a peephole where there is one.
static weir_edge_t gate(weir_scope_t* s, weir_edge_t x, weir_edge_t peephole, weir_edge_t c) {
  if (peephole.node) x = weir_add_v2(s, x, weir_mul(s, peephole, c));
  return weir_sigmoid(s, x);
}

static weir_edge_t lstm_step(weir_rnn_cell_t* cell, weir_scope_t* s, weir_edge_t x,
                             weir_edge_t* state) {
  const weights_t* w = cell->impl;
  const weir_opt_float_t* bias = &w->options.forget_bias;
  weir_edge_t c = state[0];
  weir_edge_t all = affine(s, weir_lib_concat(s, x, state[1], 1), w->kernel, w->bias);
  weir_edge_t split = weir_split(s, weir_const_int(s, 1), all, 4);  // i, j, f, o
  weir_edge_t forget = weir_add_v2(
      s, part(split, 2), weir_lib_number(s, w->dtype, bias->is_set ? (double)bias->value : 1));
  weir_edge_t kept = weir_mul(s, c, gate(s, forget, w->peephole_f, c));
  weir_edge_t fresh = weir_mul(s, gate(s, part(split, 0), w->peephole_i, c),
                               w->options.activation(s, part(split, 1)));
  c = clip(s, weir_add_v2(s, kept, fresh), w->dtype, w->options.cell_clip);
  weir_edge_t h =
      weir_mul(s, w->options.activation(s, c), gate(s, part(split, 3), w->peephole_o, c));
  if (w->projection.node)
    h = clip(s, weir_mat_mul(s, h, w->projection), w->dtype, w->options.projection_clip);
  state[0] = c;
  state[1] = h;
  return h;
}

weir_rnn_cell_t* weir_lstm_cell_with(weir_scope_t* scope, int units,
                                     const weir_rnn_cell_options_t* options) {
  options = options ? options : &(const weir_rnn_cell_options_t){0};
  weir_rnn_cell_t* cell = make_cell(scope, units, "lstm_cell", options);
  if (!cell) return NULL;
  weights_t* w = cell->impl;
  if (options->projection) cell->output_size = options->projection;
  cell->state_count = 2;
  w->sizes[1] = cell->output_size;
  cell->build = lstm_build;
  cell->step = lstm_step;
  return cell;
}

// ---- GRU ----

static void gru_build(weir_rnn_cell_t* cell, weir_scope_t* s, int input_size, weir_dtype_t dtype) {
  weights_t* w = cell->impl;
  const int64_t rows = (int64_t)input_size + w->units;
  w->dtype = dtype;
  weir_scope_t* gates = weir_scope_in(s, "gates");
  w->kernel = make_kernel(gates, w, rows, 2 * (int64_t)w->units);
  w->bias = make_bias(gates, w, weir_init_ones(), 2 * (int64_t)w->units);
  weir_scope_t* candidate = weir_scope_in(s, "candidate");
  w->candidate_kernel = make_kernel(candidate, w, rows, w->units);
  w->candidate_bias = make_bias(candidate, w, weir_init_zeros(), w->units);
}

static weir_edge_t gru_step(weir_rnn_cell_t* cell, weir_scope_t* s, weir_edge_t x,
                            weir_edge_t* state) {
  const weights_t* w = cell->impl;
  weir_edge_t h = state[0];
  weir_edge_t gates = weir_sigmoid(s, affine(s, weir_lib_concat(s, x, h, 1), w->kernel, w->bias));
  weir_edge_t split = weir_split(s, weir_const_int(s, 1), gates, 2);  // reset, update
  weir_edge_t seen = weir_lib_concat(s, x, weir_mul(s, part(split, 0), h), 1);
  weir_edge_t candidate =
      w->options.activation(s, affine(s, seen, w->candidate_kernel, w->candidate_bias));
  weir_edge_t update = part(split, 1);
  weir_edge_t rest = weir_sub(s, weir_lib_number(s, w->dtype, 1), update);
  state[0] = weir_add_v2(s, weir_mul(s, update, h), weir_mul(s, rest, candidate));
  return state[0];
}

weir_rnn_cell_t* weir_gru_cell_with(weir_scope_t* scope, int units,
                                    const weir_rnn_cell_options_t* options) {
  options = options ? options : &(const weir_rnn_cell_options_t){0};
  weir_rnn_cell_t* cell = make_cell(scope, units, "gru_cell", options);
  if (!cell) return NULL;
  cell->build = gru_build;
  cell->step = gru_step;
  return cell;
}

// ---- the plain one ----

static void basic_build(weir_rnn_cell_t* cell, weir_scope_t* s, int input_size,
                        weir_dtype_t dtype) {
  weights_t* w = cell->impl;
  w->dtype = dtype;
  w->kernel = make_kernel(s, w, (int64_t)input_size + w->units, w->units);
  w->bias = make_bias(s, w, weir_init_zeros(), w->units);
}

static weir_edge_t basic_step(weir_rnn_cell_t* cell, weir_scope_t* s, weir_edge_t x,
                              weir_edge_t* state) {
  const weights_t* w = cell->impl;
  weir_edge_t both = weir_lib_concat(s, x, state[0], 1);
  state[0] = w->options.activation(s, affine(s, both, w->kernel, w->bias));
  return state[0];
}

weir_rnn_cell_t* weir_basic_rnn_cell_with(weir_scope_t* scope, int units,
                                          const weir_rnn_cell_options_t* options) {
  options = options ? options : &(const weir_rnn_cell_options_t){0};
  weir_rnn_cell_t* cell = make_cell(scope, units, "basic_rnn_cell", options);
  if (!cell) return NULL;
  cell->build = basic_build;
  cell->step = basic_step;
  return cell;
}
