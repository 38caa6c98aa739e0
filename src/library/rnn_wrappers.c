// rnn_wrappers.c — Cells made of cells, and what all cells have in common: building, stepping,
// states of zeros.
#include <stdio.h>

#include "nodes.h"
#include "weir/rnn.h"

// ---- all cells ----

void weir_rnn_cell_build(weir_rnn_cell_t* cell, weir_scope_t* scope, int input_size,
                         weir_dtype_t dtype) {
  if (weir_scope_status(scope) || !cell || cell->is_built) return;
  cell->is_built = true;
  cell->build(cell, cell->name ? weir_scope_in(scope, cell->name) : scope, input_size, dtype);
}

weir_edge_t weir_rnn_cell_step(weir_rnn_cell_t* cell, weir_scope_t* scope, weir_edge_t input,
                               weir_edge_t* state) {
  if (!cell || !weir_lib_ready(scope, "rnn cell", input)) return WEIR_LIB_NONE;
  if (!weir_lib_is_ready(scope, "state of rnn cell", state, cell->state_count))
    return WEIR_LIB_NONE;
  const int64_t size = weir_lib_dim(input, 1);
  if (weir_lib_rank(input) != 2 || size < 1) {
    weir_lib_fail(scope, "rnn cell: its input '%s' must be a matrix of known width",
                  weir_node_name(input.node));
    return WEIR_LIB_NONE;
  }
  weir_rnn_cell_build(cell, scope, (int)size, weir_edge_type(input));
  if (weir_scope_status(scope)) return WEIR_LIB_NONE;
  return cell->step(cell, cell->name ? weir_scope_in(scope, cell->name) : scope, input, state);
}

void weir_rnn_cell_zero_state(weir_rnn_cell_t* cell, weir_scope_t* scope, weir_edge_t batch,
                              weir_dtype_t dtype, weir_edge_t* out_state) {
  if (!cell || !weir_lib_ready(scope, "zero state", batch)) return;
  weir_scope_t* s = weir_scope_in(scope, "zeros");
  weir_edge_t zero = weir_lib_number(s, dtype, 0);
  for (int i = 0; i < cell->state_count; ++i) {
    weir_edge_t dims[] = {batch, weir_const_int(s, cell->state_sizes[i])};
    out_state[i] = weir_fill(s, weir_pack(s, dims, 2), zero);
  }
}

// ---- cells on top of each other ----

typedef struct layers_t {
  weir_rnn_cell_t** cells;
  int count;
} layers_t;

static const char* cell_name(weir_scope_t* scope, int index) {
  char* name = weir_scope_alloc(scope, 1, 24);
  if (name) snprintf(name, 24, "cell_%d", index);
  return name ? name : "cell";
}

static void stack_build(weir_rnn_cell_t* cell, weir_scope_t* scope, int input_size,
                        weir_dtype_t dtype) {
  const layers_t* layers = cell->impl;
  for (int i = 0; i < layers->count; ++i) {
    weir_scope_t* s = weir_scope_in(scope, cell_name(scope, i));
    weir_rnn_cell_build(layers->cells[i], s, input_size, dtype);
    input_size = layers->cells[i]->output_size;
  }
}

static weir_edge_t stack_step(weir_rnn_cell_t* cell, weir_scope_t* scope, weir_edge_t x,
                              weir_edge_t* state) {
  const layers_t* layers = cell->impl;
  for (int i = 0; i < layers->count; ++i) {
    weir_scope_t* s = weir_scope_in(scope, cell_name(scope, i));
    x = weir_rnn_cell_step(layers->cells[i], s, x, state);
    state += layers->cells[i]->state_count;
  }
  return x;
}

weir_rnn_cell_t* weir_multi_rnn_cell(weir_scope_t* scope, weir_rnn_cell_t* const* cells,
                                     int count) {
  if (count > 0 && !WEIR_HAS_ARG(scope, cells)) return NULL;
  if (weir_scope_status(scope)) return NULL;
  if (count < 1) {
    weir_lib_fail(scope, "a multi-layer cell needs at least one cell, got %d", count);
    return NULL;
  }
  weir_rnn_cell_t* cell = weir_scope_alloc(scope, 1, sizeof(*cell));
  layers_t* layers = weir_scope_alloc(scope, 1, sizeof(*layers));
  int state_count = 0;
  for (int i = 0; i < count; ++i) state_count += cells[i] ? cells[i]->state_count : 0;
  int* sizes = weir_scope_alloc(scope, (size_t)state_count + 1, sizeof(*sizes));
  if (layers) layers->cells = weir_scope_alloc(scope, (size_t)count, sizeof(*layers->cells));
  if (!cell || !layers || !sizes || !layers->cells) return NULL;
  layers->count = count;
  for (int i = 0, at = 0; i < count; ++i) {
    if (!cells[i]) {
      weir_lib_fail(scope, "cell %d of a multi-layer cell is missing", i);
      return NULL;
    }
    layers->cells[i] = cells[i];
    for (int k = 0; k < cells[i]->state_count; ++k) sizes[at++] = cells[i]->state_sizes[k];
  }
  *cell = (weir_rnn_cell_t){.name = "multi_rnn_cell",
                            .output_size = cells[count - 1]->output_size,
                            .state_count = state_count,
                            .state_sizes = sizes,
                            .build = stack_build,
                            .step = stack_step,
                            .impl = layers};
  return cell;
}

// ---- dropout ----

typedef struct dropout_t {
  weir_rnn_cell_t* cell;
  weir_dropout_cell_options_t options;
} dropout_t;

static void dropout_build(weir_rnn_cell_t* cell, weir_scope_t* scope, int input_size,
                          weir_dtype_t dtype) {
  const dropout_t* dropout = cell->impl;
  weir_rnn_cell_build(dropout->cell, scope, input_size, dtype);
}

static weir_edge_t drop(weir_scope_t* s, const dropout_t* dropout, weir_edge_t x, float rate,
                        int salt) {
  const weir_dropout_cell_options_t* options = &dropout->options;
  if (rate == 0) return x;
  return weir_layer_dropout(s, x, rate, .training = options->training,
                            .is_training = options->is_training,
                            .seed = options->seed ? options->seed + salt : 0);
}

// Each use has a seed of its own, or equal masks would go together.
static weir_edge_t dropout_step(weir_rnn_cell_t* cell, weir_scope_t* s, weir_edge_t x,
                                weir_edge_t* state) {
  const dropout_t* dropout = cell->impl;
  const weir_dropout_cell_options_t* options = &dropout->options;
  x = drop(s, dropout, x, options->input_rate, 0);
  weir_edge_t y = weir_rnn_cell_step(dropout->cell, s, x, state);
  const bool is_lstm = cell->state_count == 2;
  for (int i = is_lstm ? 1 : 0; i < cell->state_count; ++i)
    state[i] = drop(s, dropout, state[i], options->state_rate, 2 + i);
  return drop(s, dropout, y, options->output_rate, 1);
}

weir_rnn_cell_t* weir_dropout_cell_with(weir_scope_t* scope, weir_rnn_cell_t* cell,
                                        const weir_dropout_cell_options_t* options) {
  options = options ? options : &(const weir_dropout_cell_options_t){0};
  if (weir_scope_status(scope) || !cell) return NULL;
  weir_rnn_cell_t* made = weir_scope_alloc(scope, 1, sizeof(*made));
  dropout_t* dropout = weir_scope_alloc(scope, 1, sizeof(*dropout));
  if (!made || !dropout) return NULL;
  *dropout = (dropout_t){.cell = cell, .options = *options};
  *made = (weir_rnn_cell_t){.output_size = cell->output_size,
                            .state_count = cell->state_count,
                            .state_sizes = cell->state_sizes,
                            .build = dropout_build,
                            .step = dropout_step,
                            .impl = dropout};
  return made;
}
