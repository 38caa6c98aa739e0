// softmax.c — Softmax over rows and cross entropies.
#include "kernel/nn/softmax.h"

#include "kernel/elementwise/vmath.h"

enum {
  LANES = 16,
  FEW = 4,      // lanes left when the others have joined them
  LONG = 4096,  // elements summed in lanes
  RUN = 1024,   // elements handed to exp at a time
};

typedef struct job_t {
  int64_t columns;
  const void* x;
  const void* labels;
  const int64_t* classes;
  void* loss;
  void* y;
} job_t;

static void exp_run_double(const double* x, double* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = exp(x[i]);
}

#define T float
#define NAME(x) x##_float
#define EXP_RUN weir_vexp_down
#define LOG logf
#include "kernel/nn/softmax.inc"
#define T double
#define NAME(x) x##_double
#define EXP_RUN exp_run_double
#define LOG log
#include "kernel/nn/softmax.inc"

static void for_rows(weir_pool_t* pool, int64_t rows, weir_range_fn_t fn, job_t* job) {
  if (rows > 0 && job->columns > 0) weir_pool_for(pool, rows, 3.0 * (double)job->columns, fn, job);
}

void weir_softmax(weir_pool_t* pool, weir_dtype_t dtype, int64_t rows, int64_t columns,
                  const void* x, void* y, bool is_log) {
  job_t job = {.columns = columns, .x = x, .y = y};
  bool is_double = dtype == WEIR_DTYPE_DOUBLE;
  weir_range_fn_t plain = is_double ? softmax_rows_double : softmax_rows_float;
  weir_range_fn_t logs = is_double ? log_softmax_rows_double : log_softmax_rows_float;
  for_rows(pool, rows, is_log ? logs : plain, &job);
}

void weir_softmax_loss(weir_pool_t* pool, weir_dtype_t dtype, int64_t rows, int64_t columns,
                       const void* x, const void* labels, void* loss, void* backprop) {
  job_t job = {.columns = columns, .x = x, .labels = labels, .loss = loss, .y = backprop};
  for_rows(pool, rows, dtype == WEIR_DTYPE_DOUBLE ? loss_rows_double : loss_rows_float, &job);
}

void weir_sparse_softmax_loss(weir_pool_t* pool, weir_dtype_t dtype, int64_t rows, int64_t columns,
                              const void* x, const int64_t* labels, void* loss, void* backprop) {
  job_t job = {.columns = columns, .x = x, .classes = labels, .loss = loss, .y = backprop};
  for_rows(pool, rows,
           dtype == WEIR_DTYPE_DOUBLE ? sparse_loss_rows_double : sparse_loss_rows_float, &job);
}
