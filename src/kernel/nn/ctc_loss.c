// ctc_loss.c — The CTC loss and its gradient, by forward and backward variables in log space.
#include <math.h>

#include "base/alloc.h"
#include "kernel/nn/ctc.h"

typedef struct job_t {
  const weir_ctc_input_t* in;
  const weir_ctc_labels_t* labels;
  void* loss;
  void* gradient;
  weir_first_error_t error;
} job_t;

// The labels with a blank before each and at the end.
static int64_t put_blanks(const job_t* job, int64_t b, int32_t* out) {
  int64_t count = 0;
  const int32_t blank = (int32_t)job->in->classes - 1;
  for (int64_t i = job->labels->begins[b]; i < job->labels->ends[b]; ++i) {
    out[count++] = blank;
    out[count++] = job->labels->values[i];
  }
  out[count++] = blank;
  return count;
}

#define T float
#define NAME(x) x##_float
#define M(x) x##f
#include "kernel/nn/ctc_loss.inc"
#define T double
#define NAME(x) x##_double
#define M(x) x
#include "kernel/nn/ctc_loss.inc"

weir_status_t* weir_ctc_loss(weir_pool_t* pool, weir_dtype_t dtype, const weir_ctc_input_t* in,
                             const weir_ctc_labels_t* labels, void* loss, void* gradient) {
  job_t job = {.in = in, .labels = labels, .loss = loss, .gradient = gradient};
  const double states = 2.0 * (double)labels->ends[in->batch - 1] / (double)in->batch + 1;
  const double cost = (double)in->time * (100 * states + 10 * (double)in->classes);
  weir_pool_for(pool, in->batch, cost,
                dtype == WEIR_DTYPE_DOUBLE ? loss_range_double : loss_range_float, &job);
  return job.error.status;
}
