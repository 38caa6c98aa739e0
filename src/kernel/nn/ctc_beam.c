// ctc_beam.c — CTC beam search: the likeliest label sequences, of which each stands for all the
// ways in which blanks and repetitions spell it.
#include <math.h>

#include "base/alloc.h"
#include "kernel/nn/ctc.h"

typedef struct job_t {
  const weir_ctc_input_t* in;
  const weir_ctc_search_t* search;
  weir_ctc_path_t* paths;
  void* log_probs;
  weir_first_error_t error;
} job_t;

#define T float
#define NAME(x) x##_float
#define M(x) x##f
#include "kernel/nn/ctc_beam.inc"
#define T double
#define NAME(x) x##_double
#define M(x) x
#include "kernel/nn/ctc_beam.inc"

weir_status_t* weir_ctc_beam_search(weir_pool_t* pool, weir_dtype_t dtype,
                                    const weir_ctc_input_t* in, const weir_ctc_search_t* search,
                                    weir_ctc_path_t* paths, void* log_probs) {
  job_t job = {.in = in, .search = search, .paths = paths, .log_probs = log_probs};
  const double width = (double)WEIR_MIN(search->beam_width, 1 << 20);
  const double cost = (double)in->time * width * (200 + 20 * (double)in->classes);
  weir_pool_for(pool, in->batch, cost,
                dtype == WEIR_DTYPE_DOUBLE ? search_range_double : search_range_float, &job);
  return job.error.status;
}
