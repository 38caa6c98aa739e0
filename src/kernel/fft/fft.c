// fft.c — Runs passes: takes some transforms at a time out of memory, transforms them, puts them
// back.
#include "kernel/fft/fft.h"

#include "base/alloc.h"
#include "base/interrupt.h"
#include "kernel/fft/plan.h"
#include "kernel/simd.h"

// So many elements, and what they are transformed to, are in the nearest caches.
enum { MOST_AT_ONCE = 16, ELEMENTS_AT_ONCE = 8192 };

#define T float
#define SUFFIX float
#include "kernel/fft/fft.inc"

#define T double
#define SUFFIX double
#include "kernel/fft/fft.inc"

typedef struct run_t {
  const weir_fft_pass_t* pass;
  int64_t at_once;
  int64_t count;   // transforms
  int64_t length;  // elements of a scratch array for one
  atomic_bool is_exhausted;
} run_t;

static void find_places(const weir_fft_pass_t* pass, int64_t first, int64_t s, int64_t* in,
                        int64_t* out) {
  for (int64_t q = 0; q < s; ++q) {
    const int64_t c = first + q, k = c % pass->dims[2], j = c / pass->dims[2] % pass->dims[1];
    const int64_t i = c / pass->dims[2] / pass->dims[1];
    in[q] = i * pass->in.strides[0] + j * pass->in.strides[1] + k * pass->in.strides[2];
    out[q] = i * pass->out.strides[0] + j * pass->out.strides[1] + k * pass->out.strides[2];
  }
}

// Groups [begin, end) of transforms.
static void run_range(void* arg, int64_t begin, int64_t end) {
  run_t* run = arg;
  const weir_fft_pass_t* pass = run->pass;
  const int64_t elements = run->length * run->at_once;
  const size_t size = pass->plan->is_double ? sizeof(double) : sizeof(float);
  char* scratch = weir_alloc_array((size_t)(4 * elements), size);
  if (!scratch) {
    // Read after all ranges are through, which orders it.
    atomic_store_explicit(&run->is_exhausted, true, memory_order_relaxed);
    return;
  }
  for (int64_t group = begin; group < end && !weir_is_interrupted(); ++group) {
    int64_t in[MOST_AT_ONCE], out[MOST_AT_ONCE];
    const int64_t first = group * run->at_once, s = WEIR_MIN(run->at_once, run->count - first);
    find_places(pass, first, s, in, out);
    if (pass->plan->is_double) {
      double* a = (double*)(void*)scratch;
      transform_double(pass, s, in, out, (split_double){a, a + elements},
                       (split_double){a + 2 * elements, a + 3 * elements});
    } else {
      float* a = (float*)(void*)scratch;
      transform_float(pass, s, in, out, (split_float){a, a + elements},
                      (split_float){a + 2 * elements, a + 3 * elements});
    }
  }
  weir_free(scratch);
}

weir_status_t* weir_fft_run(weir_pool_t* pool, const weir_fft_pass_t* pass) {
  const weir_fft_plan_t* plan = pass->plan;
  run_t run = {.pass = pass, .count = pass->dims[0] * pass->dims[1] * pass->dims[2]};
  if (run.count == 0) return NULL;
  run.length = plan->longer ? plan->longer->inner : WEIR_MAX(plan->inner, plan->n / 2 + 1);
  // Neighbours in memory are taken together, so that whole cache lines are.
  const int64_t least = pass->in.strides[2] == 1 && pass->in.step != 1 ? 4 : 1;
  run.at_once = WEIR_MAX(least, WEIR_MIN(MOST_AT_ONCE, ELEMENTS_AT_ONCE / run.length));
  run.at_once = WEIR_MIN(run.at_once, run.count);
  const int64_t groups = (run.count + run.at_once - 1) / run.at_once;
  const double ns = 15.0 * (double)run.length * (double)run.at_once;
  if (pool) {
    weir_pool_for(pool, groups, ns, run_range, &run);
  } else {
    run_range(&run, 0, groups);
  }
  return atomic_load(&run.is_exhausted) ? weir_out_of_memory() : NULL;
}
