// gru_block.c — GRUBlockCell and GRUBlockCellGrad: one step of a gated recurrent unit.
#include "kernel/elementwise/vmath.h"
#include "kernel/gemm/gemm.h"
#include "ops/nn/block_rnn.h"

enum { X, H_PREV, W_RU, W_C, B_RU, B_C, R, U, C, D_H, INPUTS };

typedef struct gru_t {
  weir_pool_t* pool;
  int64_t batch;
  int64_t inputs;
  int64_t cells;
  const float* in[INPUTS];
  float* out[4];
  float* scratch;  // [batch, 2 * cells]
} gru_t;

static weir_status_t* check_matrices(weir_kernel_ctx_t* ctx, gru_t* out) {
  const weir_tensor_t *x = weir_kernel_input(ctx, X), *h = weir_kernel_input(ctx, H_PREV);
  if (x->rank != 2) return WEIR_STATUS(INVALID_ARGUMENT, "Rank of x must be 2, got %d", x->rank);
  if (h->rank != 2) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Rank of h_prev must be 2, got %d", h->rank);
  }
  out->batch = x->dims[0];
  out->inputs = x->dims[1];
  out->cells = h->dims[1];
  if (out->cells > INT64_MAX / 8 || out->inputs > INT64_MAX / 8) {
    return WEIR_STATUS(INVALID_ARGUMENT, "cell_size is too large: %lld", (long long)out->cells);
  }
  const weir_rnn_dim_t state[] = {{"batch_size", out->batch}, {"cell_size", out->cells}};
  const weir_rnn_dim_t ru[] = {{"input_size + cell_size", out->inputs + out->cells},
                               {"cell_size * 2", 2 * out->cells}};
  const weir_rnn_dim_t c[] = {ru[0], state[1]};
  WEIR_TRY(weir_rnn_check(h, "h_prev", 2, state));
  WEIR_TRY(weir_rnn_check(weir_kernel_input(ctx, W_RU), "w_ru", 2, ru));
  WEIR_TRY(weir_rnn_check(weir_kernel_input(ctx, W_C), "w_c", 2, c));
  WEIR_TRY(weir_rnn_check(weir_kernel_input(ctx, B_RU), "b_ru", 1, ru + 1));
  WEIR_TRY(weir_rnn_check(weir_kernel_input(ctx, B_C), "b_c", 1, c + 1));
  return NULL;
}

static weir_status_t* begin(weir_kernel_ctx_t* ctx, int input_count, gru_t* gru,
                            weir_tensor_t** out_scratch) {
  gru->pool = weir_kernel_pool(ctx);
  for (int i = 0; i < input_count; ++i) gru->in[i] = weir_kernel_input(ctx, i)->data;
  WEIR_TRY(weir_kernel_scratch(ctx, WEIR_DTYPE_FLOAT, 2 * gru->batch * gru->cells, out_scratch));
  gru->scratch = (*out_scratch)->data;
  return NULL;
}

// out = x W, or out += x W: W has |columns| columns.
static void product(const gru_t* gru, const float* x, int64_t inputs, const float* w,
                    int64_t columns, float beta, float* out) {
  weir_gemm(gru->pool, WEIR_NO_TRANS, WEIR_NO_TRANS, gru->batch, columns, inputs, 1, x, inputs, w,
            columns, beta, out, columns);
}
// out = dy W', or out += dy W', of the first |inputs| rows of W.
static void product_back(const gru_t* gru, const float* dy, int64_t columns, const float* w,
                         int64_t inputs, float beta, float* out) {
  weir_gemm(gru->pool, WEIR_NO_TRANS, WEIR_TRANS, gru->batch, inputs, columns, 1, dy, columns, w,
            columns, beta, out, inputs);
}

// ---- forward ----

static void gates_rows(void* arg, int64_t begin_row, int64_t end_row) {
  const gru_t* gru = arg;
  const int64_t n = gru->cells;
  const float* b = gru->in[B_RU];
  for (int64_t row = begin_row; row < end_row; ++row) {
    const float *ru = gru->scratch + 2 * row * n, *h = gru->in[H_PREV] + row * n;
    float *r = gru->out[0] + row * n, *u = gru->out[1] + row * n, *rh = gru->out[3] + row * n;
    WEIR_IVDEP
    for (int64_t i = 0; i < n; ++i) {
      r[i] = weir_vm_sigmoid(ru[i] + b[i]);
      u[i] = weir_vm_sigmoid(ru[n + i] + b[n + i]);
      rh[i] = r[i] * h[i];
    }
  }
}

static void state_rows(void* arg, int64_t begin_row, int64_t end_row) {
  const gru_t* gru = arg;
  const int64_t n = gru->cells;
  for (int64_t row = begin_row; row < end_row; ++row) {
    const float *u = gru->out[1] + row * n, *h_prev = gru->in[H_PREV] + row * n, *b = gru->in[B_C];
    float *c = gru->out[2] + row * n, *h = gru->out[3] + row * n;
    WEIR_IVDEP
    for (int64_t i = 0; i < n; ++i) {
      c[i] = weir_vm_tanh(c[i] + b[i]);
      h[i] = u[i] * (h_prev[i] - c[i]) + c[i];
    }
  }
}

// Output 3, h, holds r * h_prev first.
static void forward(gru_t* gru) {
  const int64_t n = gru->cells, in = gru->inputs;
  if (gru->batch * n == 0) return;
  product(gru, gru->in[X], in, gru->in[W_RU], 2 * n, 0, gru->scratch);
  product(gru, gru->in[H_PREV], n, gru->in[W_RU] + in * 2 * n, 2 * n, 1, gru->scratch);
  weir_pool_for(gru->pool, gru->batch, 10.0 * (double)n, gates_rows, gru);
  product(gru, gru->in[X], in, gru->in[W_C], n, 0, gru->out[2]);
  product(gru, gru->out[3], n, gru->in[W_C] + in * n, n, 1, gru->out[2]);
  weir_pool_for(gru->pool, gru->batch, 10.0 * (double)n, state_rows, gru);
}

static weir_status_t* gru_cpu(weir_kernel_ctx_t* ctx) {
  gru_t gru = {0};
  weir_tensor_t* scratch = NULL;
  WEIR_TRY(check_matrices(ctx, &gru));
  for (int i = 0; i < 4; ++i) {
    weir_tensor_t* out = NULL;
    WEIR_TRY(weir_kernel_output(ctx, i, 2, (const int64_t[]){gru.batch, gru.cells}, &out));
    gru.out[i] = out->data;
  }
  WEIR_TRY(begin(ctx, R, &gru, &scratch));
  forward(&gru);
  weir_tensor_release(scratch);
  return NULL;
}

// ---- backward ----

// The gradients before c's tanh and before u's sigmoid.
static void outer_rows(void* arg, int64_t begin_row, int64_t end_row) {
  const gru_t* gru = arg;
  const int64_t n = gru->cells;
  for (int64_t row = begin_row; row < end_row; ++row) {
    const float *u = gru->in[U] + row * n, *c = gru->in[C] + row * n, *d_h = gru->in[D_H] + row * n;
    const float* h = gru->in[H_PREV] + row * n;
    float *d_c = gru->out[2] + row * n, *d_u = gru->out[3] + 2 * row * n + n;
    WEIR_IVDEP
    for (int64_t i = 0; i < n; ++i) {
      d_c[i] = d_h[i] * (1 - u[i]) * (1 - c[i] * c[i]);
      d_u[i] = d_h[i] * (h[i] - c[i]) * u[i] * (1 - u[i]);
    }
  }
}

// From the gradient of r * h_prev, in scratch, to that before r's sigmoid, and what h_prev has of
// both.
static void inner_rows(void* arg, int64_t begin_row, int64_t end_row) {
  const gru_t* gru = arg;
  const int64_t n = gru->cells;
  for (int64_t row = begin_row; row < end_row; ++row) {
    const float *r = gru->in[R] + row * n, *u = gru->in[U] + row * n, *d_h = gru->in[D_H] + row * n;
    const float *h = gru->in[H_PREV] + row * n, *d_rh = gru->scratch + row * n;
    float *d_h_prev = gru->out[1] + row * n, *d_r = gru->out[3] + 2 * row * n;
    WEIR_IVDEP
    for (int64_t i = 0; i < n; ++i) {
      d_r[i] = d_rh[i] * h[i] * r[i] * (1 - r[i]);
      d_h_prev[i] = d_rh[i] * r[i] + d_h[i] * u[i];
    }
  }
}

static void backward(gru_t* gru) {
  const int64_t n = gru->cells, in = gru->inputs;
  const float *w_ru = gru->in[W_RU], *w_c = gru->in[W_C];
  weir_pool_for(gru->pool, gru->batch, 5.0 * (double)n, outer_rows, gru);
  product_back(gru, gru->out[2], n, w_c + in * n, n, 0, gru->scratch);
  weir_pool_for(gru->pool, gru->batch, 5.0 * (double)n, inner_rows, gru);
  product_back(gru, gru->out[3], 2 * n, w_ru + in * 2 * n, n, 1, gru->out[1]);
  product_back(gru, gru->out[2], n, w_c, in, 0, gru->out[0]);
  product_back(gru, gru->out[3], 2 * n, w_ru, in, 1, gru->out[0]);
}

static weir_status_t* check_states(weir_kernel_ctx_t* ctx, const gru_t* gru) {
  static const char* const names[] = {"r", "u", "c", "d_h"};
  const weir_rnn_dim_t state[] = {{"batch_size", gru->batch}, {"cell_size", gru->cells}};
  for (int i = 0; i < 4; ++i) {
    WEIR_TRY(weir_rnn_check(weir_kernel_input(ctx, R + i), names[i], 2, state));
  }
  return NULL;
}

static weir_status_t* gru_grad_cpu(weir_kernel_ctx_t* ctx) {
  gru_t gru = {0};
  weir_tensor_t* scratch = NULL;
  WEIR_TRY(check_matrices(ctx, &gru));
  WEIR_TRY(check_states(ctx, &gru));
  const int64_t columns[] = {gru.inputs, gru.cells, gru.cells, 2 * gru.cells};
  for (int i = 0; i < 4; ++i) {
    weir_tensor_t* out = NULL;
    WEIR_TRY(weir_kernel_output(ctx, i, 2, (const int64_t[]){gru.batch, columns[i]}, &out));
    gru.out[i] = out->data;
  }
  WEIR_TRY(begin(ctx, INPUTS, &gru, &scratch));
  if (gru.batch > 0) backward(&gru);
  weir_tensor_release(scratch);
  return NULL;
}

// ---- shapes ----

static weir_status_t* gru_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *x = NULL, *h = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, X), 2, &x));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, H_PREV), 2, &h));
  const int64_t dims[] = {weir_shape_dim(x, 0), weir_shape_dim(h, 1)};
  for (int i = 0; i < 4; ++i) WEIR_TRY(weir_shape_set_dims(ctx, i, 2, dims));
  return NULL;
}

static weir_status_t* gru_grad_shape(weir_shape_ctx_t* ctx) {
  const weir_shape_t *x = NULL, *h = NULL, *w = NULL;
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, X), 2, &x));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, H_PREV), 2, &h));
  WEIR_TRY(weir_shape_with_rank(ctx, weir_shape_input(ctx, W_RU), 2, &w));
  const int64_t batch = weir_shape_dim(x, 0);
  const int64_t dims[] = {batch, weir_shape_dim(h, 1)}, gates[] = {batch, weir_shape_dim(w, 1)};
  WEIR_TRY(weir_shape_set(ctx, 0, x));
  WEIR_TRY(weir_shape_set_dims(ctx, 1, 2, dims));
  WEIR_TRY(weir_shape_set_dims(ctx, 2, 2, dims));
  return weir_shape_set_dims(ctx, 3, 2, gates);
}

#define GRU_INPUTS "x: T; h_prev: T; w_ru: T; w_c: T; b_ru: T; b_c: T"

const weir_op_module_t weir_ops_nn_gru_block = {
    .file = __FILE__,
    .ops = (const weir_op_def_t[]){{.name = "GRUBlockCell",
                                    .attrs = "T: {float}",
                                    .inputs = GRU_INPUTS,
                                    .outputs = "r: T; u: T; c: T; h: T",
                                    .summary = "One step of a gated recurrent unit",
                                    .infer_shape = gru_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = gru_cpu)},
                                   {.name = "GRUBlockCellGrad",
                                    .attrs = "T: {float}",
                                    .inputs = GRU_INPUTS "; r: T; u: T; c: T; d_h: T",
                                    .outputs = "d_x: T; d_h_prev: T; d_c_bar: T; d_r_bar_u_bar: T",
                                    .summary = "The gradient of one step of a gated recurrent unit",
                                    .infer_shape = gru_grad_shape,
                                    .kernels = WEIR_CPU_KERNEL(.compute = gru_grad_cpu)},
                                   {0}}};
