// lstm.c — LSTM cells. What all steps have in common is one product over all of them; a step itself
// is the product with the state before and a loop over the cells.
#include "kernel/nn/lstm.h"

#include "kernel/elementwise/vmath.h"
#include "kernel/gemm/gemm.h"

typedef struct gates_t {  // where the blocks begin
  int64_t ci;
  int64_t f;
  int64_t o;
} gates_t;

static gates_t gates_of(const weir_lstm_t* lstm) {
  const int64_t n = lstm->cells;
  return lstm->is_forget_second ? (gates_t){.ci = 2 * n, .f = n, .o = 3 * n}
                                : (gates_t){.ci = n, .f = 2 * n, .o = 3 * n};
}

static weir_lstm_states_t states_at(const weir_lstm_states_t* s, int64_t at) {
  return (weir_lstm_states_t){.i = s->i + at,
                              .cs = s->cs + at,
                              .f = s->f + at,
                              .o = s->o + at,
                              .ci = s->ci + at,
                              .co = s->co + at,
                              .h = s->h ? s->h + at : NULL};
}

// ---- forward ----

typedef struct forward_t {
  const weir_lstm_t* lstm;
  const float* cs_prev;
  const float* gates;
  weir_lstm_states_t out;
} forward_t;

// The gates of a row, before the cell: without peepholes, these are left out.
static void input_gates(const weir_lstm_t* lstm, const float* gates, const float* cs_prev,
                        const weir_lstm_states_t* out) {
  const gates_t g = gates_of(lstm);
  const int64_t n = lstm->cells;
  const float* b = lstm->b;
  WEIR_IVDEP
  for (int64_t c = 0; c < n; ++c) {
    out->i[c] = gates[c] + b[c];
    out->f[c] = gates[g.f + c] + b[g.f + c] + lstm->forget_bias;
    out->o[c] = gates[g.o + c] + b[g.o + c];
    out->ci[c] = weir_vm_tanh(gates[g.ci + c] + b[g.ci + c]);
  }
  if (!lstm->wci) return;
  WEIR_IVDEP
  for (int64_t c = 0; c < n; ++c) {
    out->i[c] += lstm->wci[c] * cs_prev[c];
    out->f[c] += lstm->wcf[c] * cs_prev[c];
  }
}

static void cell(const weir_lstm_t* lstm, const float* cs_prev, const weir_lstm_states_t* out) {
  const int64_t n = lstm->cells;
  WEIR_IVDEP
  for (int64_t c = 0; c < n; ++c) {
    out->i[c] = weir_vm_sigmoid(out->i[c]);
    out->f[c] = weir_vm_sigmoid(out->f[c]);
    out->cs[c] = out->i[c] * out->ci[c] + out->f[c] * cs_prev[c];
  }
  if (lstm->clip > 0) {
    for (int64_t c = 0; c < n; ++c) {
      const float low = out->cs[c] < -lstm->clip ? -lstm->clip : out->cs[c];
      out->cs[c] = low > lstm->clip ? lstm->clip : low;
    }
  }
  if (lstm->wco) {
    for (int64_t c = 0; c < n; ++c) out->o[c] += lstm->wco[c] * out->cs[c];
  }
  WEIR_IVDEP
  for (int64_t c = 0; c < n; ++c) {
    out->o[c] = weir_vm_sigmoid(out->o[c]);
    out->co[c] = weir_vm_tanh(out->cs[c]);
    out->h[c] = out->o[c] * out->co[c];
  }
}

static void forward_rows(void* arg, int64_t begin, int64_t end) {
  const forward_t* job = arg;
  const int64_t n = job->lstm->cells;
  for (int64_t r = begin; r < end; ++r) {
    const weir_lstm_states_t out = states_at(&job->out, r * n);
    input_gates(job->lstm, job->gates + r * 4 * n, job->cs_prev + r * n, &out);
    cell(job->lstm, job->cs_prev + r * n, &out);
  }
}

void weir_lstm_forward(weir_pool_t* pool, const weir_lstm_t* lstm, const float* x,
                       const float* cs_prev, const float* h_prev, float* gates,
                       const weir_lstm_states_t* out) {
  const int64_t n = lstm->cells, size = lstm->batch * n, rows = lstm->steps * lstm->batch;
  if (rows * n == 0) return;
  weir_gemm(pool, WEIR_NO_TRANS, WEIR_NO_TRANS, rows, 4 * n, lstm->inputs, 1, x, lstm->inputs,
            lstm->w, 4 * n, 0, gates, 4 * n);
  for (int64_t t = 0; t < lstm->steps; ++t) {
    float* now = gates + 4 * t * size;
    weir_gemm(pool, WEIR_NO_TRANS, WEIR_NO_TRANS, lstm->batch, 4 * n, n, 1,
              t == 0 ? h_prev : out->h + (t - 1) * size, n, lstm->w + lstm->inputs * 4 * n, 4 * n,
              1, now, 4 * n);
    forward_t job = {.lstm = lstm,
                     .cs_prev = t == 0 ? cs_prev : out->cs + (t - 1) * size,
                     .gates = now,
                     .out = states_at(out, t * size)};
    weir_pool_for(pool, lstm->batch, 20.0 * (double)n, forward_rows, &job);
  }
}

// ---- backward ----

typedef struct back_t {
  const weir_lstm_t* lstm;
  weir_lstm_states_t states;
  const float* cs_prev;
  const float* cs_grad;
  const float* h_grad;
  float* gates_grad;
  float* cs_prev_grad;
} back_t;

static void row_back(const back_t* job, int64_t at, float* gates) {
  const weir_lstm_t* lstm = job->lstm;
  const weir_lstm_states_t s = states_at(&job->states, at);
  const gates_t g = gates_of(lstm);
  const float *cs_prev = job->cs_prev + at, *cs_grad = job->cs_grad + at;
  const float* h_grad = job->h_grad + at;
  float* cs_prev_grad = job->cs_prev_grad + at;
  WEIR_IVDEP
  for (int64_t c = 0; c < lstm->cells; ++c) {
    const float d_o = s.o[c] * (1 - s.o[c]) * h_grad[c] * s.co[c];
    float dcs = (1 - s.co[c] * s.co[c]) * h_grad[c] * s.o[c] + cs_grad[c];
    if (lstm->wco) dcs += d_o * lstm->wco[c];
    const float df = s.f[c] * (1 - s.f[c]) * dcs * cs_prev[c];
    const float di = s.i[c] * (1 - s.i[c]) * dcs * s.ci[c];
    gates[c] = di;
    gates[g.ci + c] = (1 - s.ci[c] * s.ci[c]) * dcs * s.i[c];
    gates[g.f + c] = df;
    gates[g.o + c] = d_o;
    float before = dcs * s.f[c];
    if (lstm->wci) before += di * lstm->wci[c] + df * lstm->wcf[c];
    cs_prev_grad[c] = before;
  }
}

static void back_rows(void* arg, int64_t begin, int64_t end) {
  const back_t* job = arg;
  const int64_t n = job->lstm->cells;
  for (int64_t r = begin; r < end; ++r) row_back(job, r * n, job->gates_grad + 4 * r * n);
}

void weir_lstm_step_back(weir_pool_t* pool, const weir_lstm_t* lstm,
                         const weir_lstm_states_t* states, const float* cs_prev,
                         const float* cs_grad, const float* h_grad, float* gates_grad,
                         float* cs_prev_grad) {
  back_t job = {.lstm = lstm,
                .states = *states,
                .cs_prev = cs_prev,
                .cs_grad = cs_grad,
                .h_grad = h_grad,
                .gates_grad = gates_grad,
                .cs_prev_grad = cs_prev_grad};
  weir_pool_for(pool, lstm->batch, 10.0 * (double)lstm->cells, back_rows, &job);
}

void weir_lstm_peephole_grad(const weir_lstm_t* lstm, const float* cs_prev, const float* cs,
                             const float* gates_grad, float* wci_grad, float* wcf_grad,
                             float* wco_grad) {
  const int64_t n = lstm->cells;
  const gates_t g = gates_of(lstm);
  for (int64_t r = 0; r < lstm->batch; ++r) {
    const float* gates = gates_grad + 4 * r * n;
    WEIR_IVDEP
    for (int64_t c = 0; c < n; ++c) {
      wci_grad[c] += gates[c] * cs_prev[r * n + c];
      wcf_grad[c] += gates[g.f + c] * cs_prev[r * n + c];
      wco_grad[c] += gates[g.o + c] * cs[r * n + c];
    }
  }
}

// The weights' gradients, of all steps at once.
static void weights_back(weir_pool_t* pool, const weir_lstm_t* lstm, const float* x,
                         const float* h_prev, const float* h, const weir_lstm_grads_t* grads) {
  const int64_t n = lstm->cells, in = lstm->inputs, rows = lstm->steps * lstm->batch;
  float* wh_grad = grads->w + in * 4 * n;
  weir_gemm(pool, WEIR_NO_TRANS, WEIR_TRANS, rows, in, 4 * n, 1, grads->gates, 4 * n, lstm->w,
            4 * n, 0, grads->x, in);
  weir_gemm(pool, WEIR_TRANS, WEIR_NO_TRANS, in, 4 * n, rows, 1, x, in, grads->gates, 4 * n, 0,
            grads->w, 4 * n);
  weir_gemm(pool, WEIR_TRANS, WEIR_NO_TRANS, n, 4 * n, lstm->batch, 1, h_prev, n, grads->gates,
            4 * n, 0, wh_grad, 4 * n);
  if (lstm->steps > 1) {
    weir_gemm(pool, WEIR_TRANS, WEIR_NO_TRANS, n, 4 * n, rows - lstm->batch, 1, h, n,
              grads->gates + lstm->batch * 4 * n, 4 * n, 1, wh_grad, 4 * n);
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < 4 * n; ++c) grads->b[c] += grads->gates[r * 4 * n + c];
  }
}

static void add(float* sum, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] += x[i];
}

void weir_lstm_backward(weir_pool_t* pool, const weir_lstm_t* lstm, const float* x,
                        const float* cs_prev, const float* h_prev, const weir_lstm_states_t* states,
                        const weir_lstm_grads_t* grads) {
  const int64_t n = lstm->cells, size = lstm->batch * n;
  if (lstm->steps * size == 0) return;
  for (int64_t t = lstm->steps - 1; t >= 0; --t) {
    const weir_lstm_states_t now = states_at(states, t * size);
    const float* cs_before = t == 0 ? cs_prev : states->cs + (t - 1) * size;
    float* gates = grads->gates + 4 * t * size;
    add(grads->cs_prev, grads->cs + t * size, size);
    add(grads->h_prev, grads->h + t * size, size);
    weir_lstm_step_back(pool, lstm, &now, cs_before, grads->cs_prev, grads->h_prev, gates,
                        grads->cs_prev);
    weir_gemm(pool, WEIR_NO_TRANS, WEIR_TRANS, lstm->batch, n, 4 * n, 1, gates, 4 * n,
              lstm->w + lstm->inputs * 4 * n, 4 * n, 0, grads->h_prev, n);
    if (lstm->wci) {
      weir_lstm_peephole_grad(lstm, cs_before, now.cs, gates, grads->wci, grads->wcf, grads->wco);
    }
  }
  weights_back(pool, lstm, x, h_prev, states->h, grads);
}
