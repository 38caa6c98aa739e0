// rnn.c — Cells over sequences: in a loop over TensorArrays, unrolled, and in both directions.
#include "weir/rnn.h"

#include "nodes.h"
#include "weir/control.h"
#include "weir/tensor_array.h"

enum { DEFAULT_PARALLEL_ITERATIONS = 32, TIME = 0, FLOW = 1, STATE = 2 };

typedef struct rnn_t {
  weir_scope_t* scope;
  weir_rnn_cell_t* cell;
  weir_dtype_t dtype;
  weir_edge_t lengths;  // int32; none: all steps
  weir_edge_t steps, batch;
  int64_t known_steps, known_batch;  // -1: unknown
  weir_array_t inputs, outputs;
} rnn_t;

static weir_rnn_result_t no_result(void) { return (weir_rnn_result_t){.outputs = WEIR_LIB_NONE}; }

static weir_edge_t swap_time_and_batch(weir_scope_t* s, weir_edge_t x) {
  return weir_transpose(s, x, weir_lib_vector(s, 1, 0, 2));
}

// ---- one step, of which some sequences see nothing ----

static weir_edge_t step(const rnn_t* r, weir_scope_t* s, weir_edge_t time, weir_edge_t x,
                        weir_edge_t* state) {
  const int count = r->cell->state_count;
  weir_edge_t* before = weir_scope_alloc(s, (size_t)count + 1, sizeof(*before));
  if (!before) return WEIR_LIB_NONE;
  for (int i = 0; i < count; ++i) before[i] = state[i];
  weir_edge_t y = weir_rnn_cell_step(r->cell, s, x, state);
  if (!r->lengths.node || weir_scope_status(s)) return y;
  weir_edge_t is_over = weir_greater_equal(s, time, r->lengths);
  for (int i = 0; i < count; ++i) state[i] = weir_select(s, is_over, before[i], state[i]);
  return weir_select(s, is_over, weir_zeros_like(s, y), y);
}

// What the sequences start with: edges of their own, which a loop may change.
static weir_edge_t* initial_state(const rnn_t* r, const weir_edge_t* given) {
  const int count = r->cell->state_count;
  weir_edge_t* state = weir_scope_alloc(r->scope, (size_t)count + 1, sizeof(*state));
  if (!state) return NULL;
  if (!given) {
    weir_rnn_cell_zero_state(r->cell, r->scope, r->batch, r->dtype, state);
    return state;
  }
  if (!weir_lib_is_ready(r->scope, "initial state of rnn", given, count)) return NULL;
  for (int i = 0; i < count; ++i) state[i] = given[i];
  return state;
}

// No step is made that is beyond all lengths. One always is: an array of nothing has no shape.
static weir_edge_t needed_steps(const rnn_t* r, weir_edge_t steps) {
  weir_scope_t* s = r->scope;
  if (!r->lengths.node) return steps;
  weir_edge_t longest = weir_max(s, r->lengths, weir_const_int(s, 0));
  return weir_minimum(s, steps, weir_maximum(s, longest, weir_const_int(s, 1)));
}

// Zeros for the steps that were not made.
static weir_edge_t pad_steps(const rnn_t* r, weir_edge_t outputs, weir_edge_t steps) {
  weir_scope_t* s = r->scope;
  if (!r->lengths.node || weir_scope_status(s)) return outputs;
  weir_edge_t missing[] = {weir_const_int(s, 0), weir_sub(s, steps, r->steps)};
  weir_edge_t none = weir_lib_vector(s, 0, 0);
  weir_edge_t rows[] = {weir_pack(s, missing, 2), none, none};
  return weir_pad(s, outputs, weir_pack(s, rows, 3));
}

static void set_lengths(rnn_t* r, weir_edge_t lengths) {
  if (!lengths.node || weir_scope_status(r->scope)) return;
  const weir_dtype_t dtype = weir_edge_type(lengths);
  const int rank = weir_lib_rank(lengths);
  if ((dtype != WEIR_DTYPE_INT32 && dtype != WEIR_DTYPE_INT64) || (rank >= 0 && rank != 1)) {
    weir_lib_fail(r->scope,
                  "sequence_length must be a vector of integers, but '%s' is %s of rank %d",
                  weir_node_name(lengths.node), weir_dtype_name(dtype), rank);
    return;
  }
  r->lengths = weir_lib_cast(r->scope, lengths, WEIR_DTYPE_INT32);
}

// ---- in a loop ----

static weir_edge_t has_more(weir_scope_t* s, const weir_edge_t* state, void* user) {
  const rnn_t* r = user;
  return weir_less(s, state[TIME], r->steps);
}

static void loop_body(weir_scope_t* s, weir_edge_t* state, void* user) {
  const rnn_t* r = user;
  weir_edge_t time = state[TIME];
  weir_edge_t y = step(r, s, time, weir_array_read(s, r->inputs, time), state + STATE);
  state[FLOW] = weir_array_write(s, weir_array_at(r->outputs, state[FLOW]), time, y).flow;
  state[TIME] = weir_add_v2(s, time, weir_const_int(s, 1));
}

// State shapes that hold from step to step: all rows, and the widths the cell says.
static weir_shapes_t state_shapes(const rnn_t* r) {
  const int count = r->cell->state_count;
  weir_dims_t* items = weir_scope_alloc(r->scope, (size_t)count + STATE, sizeof(*items));
  int64_t* dims = weir_scope_alloc(r->scope, 2 * (size_t)count + 1, sizeof(*dims));
  if (!items || !dims) return (weir_shapes_t){NULL, 0};
  items[TIME] = items[FLOW] = WEIR_SCALAR_SHAPE;
  for (int i = 0; i < count; ++i) {
    dims[2 * i] = r->known_batch;
    dims[2 * i + 1] = r->cell->state_sizes[i];
    items[STATE + i] = (weir_dims_t){dims + 2 * i, 2, true};
  }
  return (weir_shapes_t){items, count + STATE};
}

static weir_rnn_result_t run_loop(rnn_t* r, const weir_edge_t* given, int64_t parallel) {
  weir_scope_t* s = r->scope;
  const int count = r->cell->state_count;
  weir_edge_t* start = initial_state(r, given);
  weir_edge_t* state = weir_scope_alloc(s, (size_t)count + STATE, sizeof(*state));
  if (!start || !state || weir_scope_status(s)) return no_result();
  weir_shapes_t shapes = state_shapes(r);
  for (int i = 0; i < count; ++i)
    state[STATE + i] = weir_ensure_shape(s, start[i], shapes.items[STATE + i]);
  state[TIME] = weir_const_int(s, 0);
  state[FLOW] = r->outputs.flow;
  weir_while_loop(s, state, count + STATE, has_more, loop_body, r, state,
                  .parallel_iterations = parallel ? parallel : DEFAULT_PARALLEL_ITERATIONS,
                  .shapes = shapes);
  weir_edge_t outputs = weir_array_stack(s, weir_array_at(r->outputs, state[FLOW]));
  return (weir_rnn_result_t){.outputs = outputs, .state = state + STATE, .state_count = count};
}

static bool check_inputs(weir_scope_t* scope, const weir_rnn_cell_t* cell, weir_edge_t inputs) {
  if (!weir_lib_ready(scope, "rnn", inputs)) return false;
  if (!cell) {
    weir_lib_fail(scope, "rnn on '%s' has no cell", weir_node_name(inputs.node));
    return false;
  }
  if (weir_lib_rank(inputs) == 3 && weir_lib_dim(inputs, 2) > 0) return true;
  weir_lib_fail(scope, "rnn: inputs must be of rank 3 with a known last dimension, but '%s' is not",
                weir_node_name(inputs.node));
  return false;
}

weir_rnn_result_t weir_rnn_with(weir_scope_t* scope, weir_rnn_cell_t* cell, weir_edge_t inputs,
                                const weir_rnn_options_t* options) {
  options = options ? options : &(const weir_rnn_options_t){0};
  if (!check_inputs(scope, cell, inputs)) return no_result();
  weir_scope_t* s = weir_scope_in(scope, options->name ? options->name : "rnn");
  rnn_t r = {.scope = s, .cell = cell, .dtype = weir_edge_type(inputs)};
  weir_rnn_cell_build(cell, s, (int)weir_lib_dim(inputs, 2), r.dtype);
  set_lengths(&r, options->sequence_length);
  if (!options->time_major) inputs = swap_time_and_batch(s, inputs);
  if (weir_scope_status(s)) return no_result();
  weir_edge_t shape = weir_shape(s, inputs);
  r.known_steps = weir_lib_dim(inputs, 0);
  r.known_batch = weir_lib_dim(inputs, 1);
  weir_edge_t steps = weir_lib_element(s, shape, 0);
  r.steps = needed_steps(&r, steps);
  r.batch = weir_lib_element(s, shape, 1);
  r.inputs = weir_array_unstack(s, inputs);
  r.outputs = weir_array(s, r.steps, r.dtype,
                         .element_shape = WEIR_SHAPE(r.known_batch, cell->output_size));
  weir_rnn_result_t result = run_loop(&r, options->initial_state, options->parallel_iterations);
  if (weir_scope_status(s)) return no_result();
  result.outputs = pad_steps(&r, result.outputs, steps);
  result.outputs = weir_ensure_shape(s, result.outputs,
                                     WEIR_SHAPE(r.known_steps, r.known_batch, cell->output_size));
  if (!options->time_major) result.outputs = swap_time_and_batch(s, result.outputs);
  return result;
}

// ---- unrolled ----

weir_rnn_result_t weir_static_rnn_with(weir_scope_t* scope, weir_rnn_cell_t* cell,
                                       const weir_edge_t* inputs, int count,
                                       weir_edge_t* out_outputs,
                                       const weir_rnn_options_t* options) {
  options = options ? options : &(const weir_rnn_options_t){0};
  if (count > 0 && !WEIR_HAS_ARG(scope, inputs)) return no_result();
  if (!weir_lib_is_ready(scope, "static rnn", inputs, count)) return no_result();
  if (!cell || count < 1) {
    weir_lib_fail(scope, "static rnn needs a cell and at least one step, got %d", count);
    return no_result();
  }
  weir_scope_t* s = weir_scope_in(scope, options->name ? options->name : "rnn");
  rnn_t r = {.scope = s, .cell = cell, .dtype = weir_edge_type(inputs[0])};
  r.batch = weir_lib_element(s, weir_shape(s, inputs[0]), 0);
  set_lengths(&r, options->sequence_length);
  weir_edge_t* state = initial_state(&r, options->initial_state);
  if (!state || weir_scope_status(s)) return no_result();
  for (int i = 0; i < count; ++i)
    out_outputs[i] = step(&r, s, weir_const_int(s, i), inputs[i], state);
  return (weir_rnn_result_t){.state = state, .state_count = cell->state_count};
}

// ---- both directions ----

// Each sequence backward, up to its length.
static weir_edge_t reverse(weir_scope_t* s, weir_edge_t x, const weir_rnn_options_t* options) {
  const int time = options->time_major ? 0 : 1;
  if (weir_scope_status(s)) return WEIR_LIB_NONE;
  if (!options->sequence_length.node) return weir_reverse_v2(s, x, weir_lib_vector(s, time));
  return weir_reverse_sequence(s, x, options->sequence_length, time, .batch_dim = 1 - time);
}

weir_bidirectional_rnn_result_t weir_bidirectional_rnn_with(weir_scope_t* scope,
                                                            weir_rnn_cell_t* forward,
                                                            weir_rnn_cell_t* backward,
                                                            weir_edge_t inputs,
                                                            const weir_rnn_options_t* options) {
  options = options ? options : &(const weir_rnn_options_t){0};
  weir_bidirectional_rnn_result_t result = {.outputs = WEIR_LIB_NONE};
  if (!check_inputs(scope, forward, inputs) || !check_inputs(scope, backward, inputs))
    return result;
  weir_scope_t* s = weir_scope_in(scope, options->name ? options->name : "bidirectional_rnn");
  weir_rnn_options_t one = *options;
  one.name = "fw";
  result.forward = weir_rnn_with(s, forward, inputs, &one);
  one.name = "bw";
  if (one.initial_state) one.initial_state += forward->state_count;
  result.backward = weir_rnn_with(s, backward, reverse(s, inputs, options), &one);
  result.backward.outputs = reverse(s, result.backward.outputs, options);
  if (!weir_scope_status(s))
    result.outputs = weir_lib_concat(s, result.forward.outputs, result.backward.outputs, 2);
  return result;
}
