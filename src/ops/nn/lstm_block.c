// lstm_block.c — BlockLSTM, BlockLSTMV2, LSTMBlockCell and their gradients: an LSTM over a whole
// sequence, or of one step, as one op.
#include "kernel/nn/lstm.h"
#include "op/grad_ctx.h"
#include "ops/nn/block_rnn.h"

enum { X, CS_PREV, H_PREV, W, WCI, WCF, WCO, B, I, CS, F, O, CI, CO };  // inputs of a cell
enum { SEQUENCE_H = CO + 1, SEQUENCE_CS_GRAD, SEQUENCE_H_GRAD, SEQUENCE_INPUTS };
enum { CELL_CS_GRAD = CO + 1, CELL_H_GRAD, CELL_INPUTS };
enum { STATES = 7 };

// ---- checks ----

// TensorFlow's kernels of cells look at sizes before they look at ranks, those of sequences after.
static weir_status_t* check(bool is_cell, const weir_tensor_t* t, const char* name, int rank,
                            const weir_rnn_dim_t* dims) {
  if (is_cell) WEIR_TRY(weir_rnn_check_sizes(t, name, rank, dims));
  return weir_rnn_check(t, name, rank, dims);
}

// All of the inputs that forward and backward have, from input |first| on; sizes go to |out|. A
// sequence has one dimension more.
static weir_status_t* check_inputs(weir_kernel_ctx_t* ctx, int first, bool needs_peepholes,
                                   weir_lstm_t* out) {
  const weir_tensor_t *x = weir_kernel_input(ctx, first), *cs = weir_kernel_input(ctx, first + 1);
  const bool is_cell = first == 0;
  const int rank = is_cell ? 2 : 3;
  if (x->rank != rank) {
    return WEIR_STATUS(INVALID_ARGUMENT, "x must be rank %d but is rank %d", rank, x->rank);
  }
  out->steps = first == 0 ? 1 : x->dims[0];
  out->batch = x->dims[rank - 2];
  out->inputs = x->dims[rank - 1];
  out->cells = cs->rank < 2 ? 0 : cs->dims[1];
  if (out->cells > INT64_MAX / 8 || out->inputs > INT64_MAX / 8) {
    return WEIR_STATUS(INVALID_ARGUMENT, "cell_size is too large: %lld", (long long)out->cells);
  }
  const weir_rnn_dim_t state[] = {{"batch_size", out->batch}, {"cell_size", out->cells}};
  const weir_rnn_dim_t w[] = {{"input_size + cell_size", out->inputs + out->cells},
                              {"cell_size * 4", 4 * out->cells}};
  static const char* const names[] = {"wci", "wcf", "wco"};
  WEIR_TRY(check(is_cell, cs, "cs_prev", 2, state));
  WEIR_TRY(check(is_cell, weir_kernel_input(ctx, first + H_PREV), "h_prev", 2, state));
  WEIR_TRY(check(is_cell, weir_kernel_input(ctx, first + W), "w", 2, w));
  WEIR_TRY(check(is_cell, weir_kernel_input(ctx, first + B), "b", 1, w + 1));
  for (int i = 0; i < 3; ++i) {
    const weir_tensor_t* peephole = weir_kernel_input(ctx, first + WCI + i);
    const weir_rnn_dim_t any = {"", peephole->rank > 0 ? peephole->dims[0] : 0};
    WEIR_TRY(check(is_cell, peephole, names[i], 1, needs_peepholes ? state + 1 : &any));
  }
  return NULL;
}

// What only the gradients have: states and their gradients, inputs [I, count).
static weir_status_t* check_states(weir_kernel_ctx_t* ctx, int first, const weir_lstm_t* lstm) {
  static const char* const sequence[] = {"i", "cs", "f", "o", "ci", "co", "h", "cs_grad", "h_grad"};
  static const char* const step[] = {"i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"};
  const weir_rnn_dim_t dims[] = {
      {"timelen", lstm->steps}, {"batch_size", lstm->batch}, {"cell_size", lstm->cells}};
  const int count = (first == 0 ? CELL_INPUTS : SEQUENCE_INPUTS) - I;
  for (int i = 0; i < count; ++i) {
    const weir_tensor_t* t = weir_kernel_input(ctx, first + I + i);
    WEIR_TRY(first == 0 ? check(true, t, step[i], 2, dims + 1)
                        : check(false, t, sequence[i], 3, dims));
  }
  return NULL;
}

static weir_status_t* read_length(weir_kernel_ctx_t* ctx, int64_t steps, int64_t* out_length) {
  const weir_tensor_t* length = weir_kernel_input(ctx, 0);
  if (length->rank != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "`seq_len_max_tensor` must be rank 0 but is rank %d",
                       length->rank);
  }
  *out_length = *WEIR_TENSOR_DATA(length, int64_t);
  if (*out_length >= 0 && *out_length <= steps) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "seq_len_max must be in [0, %lld], got %lld",
                     (long long)steps, (long long)*out_length);
}

// The weights, of what was staged from X on.
static void set_weights(weir_kernel_ctx_t* ctx, const weir_rnn_io_t* io, bool is_forget_second,
                        weir_lstm_t* lstm) {
  const bool has_peepholes = weir_attrs_bool(weir_kernel_attrs(ctx), "use_peephole");
  lstm->w = io->in[W];
  lstm->b = io->in[B];
  lstm->wci = has_peepholes ? io->in[WCI] : NULL;
  lstm->wcf = has_peepholes ? io->in[WCF] : NULL;
  lstm->wco = has_peepholes ? io->in[WCO] : NULL;
  lstm->is_forget_second = is_forget_second;
}

// A single step refuses inputs without elements; peepholes it looks at where it uses them.
static weir_status_t* check_not_empty(weir_kernel_ctx_t* ctx, bool has_peepholes) {
  static const char* const names[] = {"cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b"};
  char text[WEIR_SHAPE_TEXT_SIZE];
  for (int i = CS_PREV; i <= B; ++i) {
    if (weir_kernel_input(ctx, i)->count > 0) continue;
    if (i >= WCI && i <= WCO && !has_peepholes) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s_tensor is empty, has shape: %s", names[i - CS_PREV],
                       weir_tensor_shape_text(weir_kernel_input(ctx, i), text));
  }
  return NULL;
}

// ---- forward ----

static weir_status_t* run_forward(weir_kernel_ctx_t* ctx, weir_rnn_io_t* io, int64_t length,
                                  weir_lstm_t* lstm) {
  weir_tensor_t* gates = NULL;
  const int64_t size = lstm->batch * lstm->cells, used = length * size;
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, 4 * used, &gates));
  for (int i = 0; i < STATES; ++i) {  // beyond the length
    memset(io->out[i] + used, 0, (size_t)(lstm->steps * size - used) * sizeof(float));
  }
  const weir_lstm_states_t out = {.i = io->out[0],
                                  .cs = io->out[1],
                                  .f = io->out[2],
                                  .o = io->out[3],
                                  .ci = io->out[4],
                                  .co = io->out[5],
                                  .h = io->out[6]};
  lstm->steps = length;
  weir_lstm_forward(weir_kernel_pool(ctx), lstm, io->in[X], io->in[CS_PREV], io->in[H_PREV],
                    gates->data, &out);
  weir_tensor_release(gates);
  return NULL;
}

static weir_status_t* forward(weir_kernel_ctx_t* ctx, int first, bool is_v2) {
  const weir_attrs_t attrs = weir_kernel_attrs(ctx);
  weir_lstm_t lstm = {.forget_bias = is_v2 ? 0 : weir_attrs_float(attrs, "forget_bias"),
                      .clip = weir_attrs_float(attrs, "cell_clip")};
  weir_rnn_io_t io = {.output_count = STATES};
  int64_t length = 1;
  const bool has_peepholes = weir_attrs_bool(attrs, "use_peephole");
  WEIR_TRY(check_inputs(ctx, first, first > 0 || has_peepholes, &lstm));
  WEIR_TRY(first > 0 ? read_length(ctx, lstm.steps, &length) : check_not_empty(ctx, has_peepholes));
  const int64_t dims[] = {lstm.steps, lstm.batch, lstm.cells};
  for (int i = 0; i < STATES; ++i) {
    WEIR_TRY(weir_kernel_output(ctx, i, first == 0 ? 2 : 3, first == 0 ? dims + 1 : dims,
                                &io.outputs[i]));
  }
  weir_status_t* status = weir_rnn_stage(ctx, first, B + 1, &io);
  set_weights(ctx, &io, is_v2, &lstm);
  if (!status) status = run_forward(ctx, &io, length, &lstm);
  return weir_rnn_finish(ctx, &io, status);
}

static weir_status_t* cell_cpu(weir_kernel_ctx_t* ctx) { return forward(ctx, 0, false); }
static weir_status_t* sequence_cpu(weir_kernel_ctx_t* ctx) { return forward(ctx, 1, false); }
static weir_status_t* sequence_v2_cpu(weir_kernel_ctx_t* ctx) { return forward(ctx, 1, true); }

// ---- backward ----

// States that are only read.
static weir_lstm_states_t staged_states(const weir_rnn_io_t* io, bool has_h) {
  return (weir_lstm_states_t){.i = io->staged_in[I].data,
                              .cs = io->staged_in[CS].data,
                              .f = io->staged_in[F].data,
                              .o = io->staged_in[O].data,
                              .ci = io->staged_in[CI].data,
                              .co = io->staged_in[CO].data,
                              .h = has_h ? io->staged_in[SEQUENCE_H].data : NULL};
}

static void zero(const weir_rnn_io_t* io, int i) {
  memset(io->out[i], 0, (size_t)io->outputs[i]->count * sizeof(float));
}

static weir_status_t* cell_grad_cpu(weir_kernel_ctx_t* ctx) {
  weir_lstm_t lstm = {0};
  weir_rnn_io_t io = {.output_count = 5};
  WEIR_TRY(check_inputs(ctx, 0, weir_attrs_bool(weir_kernel_attrs(ctx), "use_peephole"), &lstm));
  WEIR_TRY(check_states(ctx, 0, &lstm));
  const int64_t dims[] = {lstm.batch, lstm.cells}, gates[] = {lstm.batch, 4 * lstm.cells};
  WEIR_TRY(weir_kernel_output(ctx, 0, 2, dims, &io.outputs[0]));
  WEIR_TRY(weir_kernel_output(ctx, 1, 2, gates, &io.outputs[1]));
  for (int i = 2; i < 5; ++i) {
    const int64_t* size = weir_kernel_input(ctx, WCI + i - 2)->dims;
    WEIR_TRY(weir_kernel_output(ctx, i, 1, size, &io.outputs[i]));
  }
  weir_status_t* status = weir_rnn_stage(ctx, 0, CELL_INPUTS, &io);
  set_weights(ctx, &io, false, &lstm);
  if (!status) {
    const weir_lstm_states_t states = staged_states(&io, false);
    for (int i = 2; i < 5; ++i) zero(&io, i);
    weir_lstm_step_back(weir_kernel_pool(ctx), &lstm, &states, io.in[CS_PREV], io.in[CELL_CS_GRAD],
                        io.in[CELL_H_GRAD], io.out[1], io.out[0]);
    if (lstm.wci) {
      weir_lstm_peephole_grad(&lstm, io.in[CS_PREV], io.in[CS], io.out[1], io.out[2], io.out[3],
                              io.out[4]);
    }
  }
  return weir_rnn_finish(ctx, &io, status);
}

static weir_status_t* run_backward(weir_kernel_ctx_t* ctx, weir_rnn_io_t* io, int64_t length,
                                   weir_lstm_t* lstm) {
  weir_tensor_t* gates = NULL;
  WEIR_TRY(
      weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, 4 * length * lstm->batch * lstm->cells, &gates));
  const weir_lstm_states_t states = staged_states(io, true);
  const weir_lstm_grads_t grads = {.cs = io->in[SEQUENCE_CS_GRAD],
                                   .h = io->in[SEQUENCE_H_GRAD],
                                   .gates = gates->data,
                                   .x = io->out[0],
                                   .cs_prev = io->out[1],
                                   .h_prev = io->out[2],
                                   .w = io->out[3],
                                   .wci = io->out[4],
                                   .wcf = io->out[5],
                                   .wco = io->out[6],
                                   .b = io->out[7]};
  for (int i = 0; i < io->output_count; ++i) zero(io, i);
  lstm->steps = length;
  weir_lstm_backward(weir_kernel_pool(ctx), lstm, io->in[X], io->in[CS_PREV], io->in[H_PREV],
                     &states, &grads);
  weir_tensor_release(gates);
  return NULL;
}

static weir_status_t* backward(weir_kernel_ctx_t* ctx, bool is_v2) {
  weir_lstm_t lstm = {0};
  weir_rnn_io_t io = {.output_count = 8};
  int64_t length = 0;
  WEIR_TRY(check_inputs(ctx, 1, true, &lstm));
  WEIR_TRY(check_states(ctx, 1, &lstm));
  WEIR_TRY(read_length(ctx, lstm.steps, &length));
  for (int i = 0; i < 8; ++i) {
    const weir_tensor_t* like = weir_kernel_input(ctx, 1 + i);
    WEIR_TRY(weir_kernel_output(ctx, i, like->rank, like->dims, &io.outputs[i]));
  }
  weir_status_t* status = weir_rnn_stage(ctx, 1, SEQUENCE_INPUTS, &io);
  set_weights(ctx, &io, is_v2, &lstm);
  if (!status) status = run_backward(ctx, &io, length, &lstm);
  return weir_rnn_finish(ctx, &io, status);
}

static weir_status_t* sequence_grad_cpu(weir_kernel_ctx_t* ctx) { return backward(ctx, false); }
static weir_status_t* sequence_grad_v2_cpu(weir_kernel_ctx_t* ctx) { return backward(ctx, true); }

// ---- shapes ----

static weir_status_t* cell_sizes(weir_shape_ctx_t* ctx, int64_t out_dims[2]) {
  const weir_shape_t *x = NULL, *cs = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, X), 2, &x));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, CS_PREV), 2, &cs));
  out_dims[0] = weir_shape_dim(x, 0);
  out_dims[1] = weir_shape_dim(cs, 1);
  return NULL;
}

static weir_status_t* cell_shape(weir_shape_ctx_t* ctx) {
  int64_t dims[2];
  WEIR_TRY(cell_sizes(ctx, dims));
  for (int i = 0; i < STATES; ++i) WEIR_TRY(weir_shape_set_dims(ctx, i, 2, dims));
  return NULL;
}

static weir_status_t* cell_grad_shape(weir_shape_ctx_t* ctx) {
  int64_t dims[2];
  WEIR_TRY(cell_sizes(ctx, dims));
  const int64_t gates = dims[1] < 0 || dims[1] > INT64_MAX / 4 ? -1 : 4 * dims[1];
  WEIR_TRY(weir_shape_set_dims(ctx, 0, 2, dims));
  WEIR_TRY(weir_shape_set_dims(ctx, 1, 2, (const int64_t[]){dims[0], gates}));
  for (int i = 2; i < 5; ++i) {  // peepholes that are not used may have any size
    const weir_shape_t* peephole = weir_shape_input(ctx, WCI + i - 2);
    const int64_t size = peephole->rank > 0 ? peephole->dims[0] : -1;
    WEIR_TRY(weir_shape_set_vector(ctx, i, size >= 0 ? size : dims[1]));
  }
  return NULL;
}

static weir_status_t* sequence_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *x = NULL, *b = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1 + X), 3, &x));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1 + B), 1, &b));
  const int64_t gates = weir_shape_dim(b, 0);
  if (gates >= 0 && gates % 4 != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Dimension size must be evenly divisible by 4 but is %lld",
                       (long long)gates);
  }
  const int64_t dims[] = {weir_shape_dim(x, 0), weir_shape_dim(x, 1), gates < 0 ? -1 : gates / 4};
  for (int i = 0; i < STATES; ++i) WEIR_TRY(weir_shape_set_dims(ctx, i, 3, dims));
  return NULL;
}

static weir_status_t* sequence_grad_shape(weir_shape_ctx_t* ctx) {
  static const int ranks[] = {3, 2, 2, 2, 1, 1, 1, 1};
  for (int i = 0; i < 8; ++i) {
    const weir_shape_t* shape = NULL;
    WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, 1 + i), ranks[i], &shape));
    WEIR_TRY(weir_shape_set(ctx, i, shape));
  }
  return NULL;
}

// ---- gradients ----

// Of the outputs only cs and h have one that is passed on. In TensorFlow that of BlockLSTMV2 takes
// the gates for those of BlockLSTM, and is wrong.
static weir_status_t* sequence_build_grad(weir_grad_ctx_t* g) {
  weir_edge_t inputs[1 + SEQUENCE_INPUTS];
  const bool is_v2 = strcmp(g->node->op_name, "BlockLSTMV2") == 0;
  for (int i = 0; i <= B + 1; ++i) inputs[i] = weir_grad_input(g, i);
  for (int i = 0; i < STATES; ++i) inputs[1 + I + i] = weir_grad_output(g, i);
  inputs[1 + SEQUENCE_CS_GRAD] = weir_grad_dy(g, 1);
  inputs[1 + SEQUENCE_H_GRAD] = weir_grad_dy(g, 6);
  weir_edge_t node = weir_grad_node_like(
      g, is_v2 ? "BlockLSTMGradV2" : "BlockLSTMGrad",
      (weir_edges_t){.items = inputs, .count = WEIR_COUNT_OF(inputs)}, WEIR_NAMES("use_peephole"));
  for (int i = 0; i < 8; ++i) {
    WEIR_TRY(weir_grad_set(g, 1 + i, (weir_edge_t){.node = node.node, .index = i}));
  }
  return NULL;
}

#define LSTM_INPUTS "x: T; cs_prev: T; h_prev: T; w: T; wci: T; wcf: T; wco: T; b: T"
#define LSTM_STATES "i: T; cs: T; f: T; o: T; ci: T; co: T"
#define LSTM_V1_ATTRS                                                                        \
  "forget_bias: float = 1.0; cell_clip: float = 3.0; use_peephole: bool = false; T: {half, " \
  "float}"
#define LSTM_GRADS                                                                              \
  "x_grad: T; cs_prev_grad: T; h_prev_grad: T; w_grad: T; wci_grad: T; wcf_grad: T; wco_grad: " \
  "T; b_grad: T"
#define LSTM_SEQUENCE_GRAD(name_, compute_)                                                        \
  {                                                                                                \
    .name = name_, .attrs = "use_peephole: bool; T: {half, float}",                                \
    .inputs = "seq_len_max: int64; " LSTM_INPUTS "; " LSTM_STATES "; h: T; cs_grad: T; h_grad: T", \
    .outputs = LSTM_GRADS, .summary = "The gradient of an LSTM over a sequence",                   \
    .infer_shape = sequence_grad_shape, .kernels = WEIR_CPU_KERNEL(.compute = compute_)            \
  }

const weir_op_module_t weir_ops_nn_lstm_block = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){
        {.name = "LSTMBlockCell",
         .attrs = LSTM_V1_ATTRS,
         .inputs = LSTM_INPUTS,
         .outputs = LSTM_STATES "; h: T",
         .summary = "One step of an LSTM",
         .infer_shape = cell_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = cell_cpu)},
        {.name = "LSTMBlockCellGrad",
         .attrs = "use_peephole: bool; T: {half, float}",
         .inputs = LSTM_INPUTS "; " LSTM_STATES "; cs_grad: T; h_grad: T",
         .outputs = "cs_prev_grad: T; dicfo: T; wci_grad: T; wcf_grad: T; wco_grad: T",
         .summary = "The gradient of one step of an LSTM",
         .infer_shape = cell_grad_shape,
         .kernels = WEIR_CPU_KERNEL(.compute = cell_grad_cpu)},
        {.name = "BlockLSTM",
         .attrs = LSTM_V1_ATTRS,
         .inputs = "seq_len_max: int64; " LSTM_INPUTS,
         .outputs = LSTM_STATES "; h: T",
         .summary = "An LSTM over a sequence, gates in the order i, ci, f, o",
         .infer_shape = sequence_shape,
         .build_grad = sequence_build_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = sequence_cpu)},
        {.name = "BlockLSTMV2",
         .attrs = "cell_clip: float = 0.0; use_peephole: bool = false; T: {half, float}",
         .inputs = "seq_len_max: int64; " LSTM_INPUTS,
         .outputs = LSTM_STATES "; h: T",
         .summary = "An LSTM over a sequence, gates in the order i, f, ci, o",
         .infer_shape = sequence_shape,
         .build_grad = sequence_build_grad,
         .kernels = WEIR_CPU_KERNEL(.compute = sequence_v2_cpu)},
        LSTM_SEQUENCE_GRAD("BlockLSTMGrad", sequence_grad_cpu),
        LSTM_SEQUENCE_GRAD("BlockLSTMGradV2", sequence_grad_v2_cpu),
        {0}}};
