// lstm.h — LSTM cells over a sequence, forward and backward, in float. Thread-safe.
//
// Gates are made by one matrix of weights: rows of the input first, then rows of the state before;
// columns are four blocks of |cells|.
#ifndef WEIR_KERNEL_NN_LSTM_H_
#define WEIR_KERNEL_NN_LSTM_H_

#include "base/thread.h"

typedef struct weir_lstm_t {
  int64_t steps;
  int64_t batch;
  int64_t inputs;
  int64_t cells;
  // Weights [inputs + cells, 4 * cells], bias [4 * cells], peepholes [cells] (NULL: there are
  // none).
  const float* w;
  const float* b;
  const float* wci;
  const float* wcf;
  const float* wco;
  bool is_forget_second;  // blocks are i, f, ci, o; else i, ci, f, o
  float forget_bias;
  float clip;  // of cs, to both sides; 0 or less: none
} weir_lstm_t;

// What a sequence goes through; each [steps, batch, cells].
typedef struct weir_lstm_states_t {
  float* i;
  float* cs;
  float* f;
  float* o;
  float* ci;
  float* co;
  float* h;
} weir_lstm_states_t;

// |x| is [steps, batch, inputs], |cs_prev| and |h_prev| are [batch, cells], |gates| is scratch of
// [steps, batch, 4 * cells]. All states are written.
void weir_lstm_forward(weir_pool_t* pool, const weir_lstm_t* lstm, const float* x,
                       const float* cs_prev, const float* h_prev, float* gates,
                       const weir_lstm_states_t* out);

// One step back, of |lstm| the batch alone: from the gradients of cs and h to those of the gates,
// [batch, 4 * cells], and of the cs before. States are those of the step. |cs_prev_grad| may be
// |cs_grad|.
void weir_lstm_step_back(weir_pool_t* pool, const weir_lstm_t* lstm,
                         const weir_lstm_states_t* states, const float* cs_prev,
                         const float* cs_grad, const float* h_grad, float* gates_grad,
                         float* cs_prev_grad);

// Adds the gradients of the peepholes, of one step.
void weir_lstm_peephole_grad(const weir_lstm_t* lstm, const float* cs_prev, const float* cs,
                             const float* gates_grad, float* wci_grad, float* wcf_grad,
                             float* wco_grad);

// The whole sequence back. |gates_grad| is scratch of [steps, batch, 4 * cells]; the gradients of
// the states before the sequence, of the weights and of the peepholes (where the lstm has them) are
// zeroed by the caller.
typedef struct weir_lstm_grads_t {
  const float* cs;  // from above, [steps, batch, cells]
  const float* h;
  float* gates;
  float* x;
  float* cs_prev;
  float* h_prev;
  float* w;
  float* wci;
  float* wcf;
  float* wco;
  float* b;
} weir_lstm_grads_t;
void weir_lstm_backward(weir_pool_t* pool, const weir_lstm_t* lstm, const float* x,
                        const float* cs_prev, const float* h_prev, const weir_lstm_states_t* states,
                        const weir_lstm_grads_t* grads);

#endif  // WEIR_KERNEL_NN_LSTM_H_
