// answer.h — Kernels of a GPU that need numbers back from it before they can go on: how large an
// output is, whether something was wrong.
//
// Such a kernel is an asynchronous one. It launches what finds the numbers and returns; nobody
// waits. When they have arrived in host memory its other half is called, which allocates outputs
// and launches the rest. The host waits for such a node, so a step with one is never recorded
// (exec/recordable.h).
#ifndef WEIR_KERNEL_CUDA_ANSWER_H_
#define WEIR_KERNEL_CUDA_ANSWER_H_

#include "device/cuda/cuda.h"
#include "device/span.h"
#include "op/kernel.h"

enum { WEIR_ANSWER_SCRATCH = 8 };

// One call of such a kernel: the first member of what it keeps between its halves. Thread-confined
// to one half, then to the other.
typedef struct weir_answer_t weir_answer_t;
struct weir_answer_t {
  weir_kernel_ctx_t* ctx;
  weir_tensor_t* numbers;  // int64, on the GPU; NULL after the first half: there is no other
  weir_tensor_t* scratch[WEIR_ANSWER_SCRATCH];  // released at the end; each may be NULL
  // The rest is the helper's.
  weir_tensor_t* told;  // the numbers, in host memory
  weir_status_t* (*after)(weir_answer_t* answer, const int64_t* numbers);
  weir_stream_span_t* span;  // of the node, in traced runs
  weir_done_t done;
};

typedef struct weir_answer_fns_t {
  size_t size;  // of what is kept, zeroed
  // Launches what finds the numbers.
  weir_status_t* (*before)(weir_answer_t* answer);
  // On any thread: allocates outputs and launches what fills them. Inputs are as they were.
  weir_status_t* (*after)(weir_answer_t* answer, const int64_t* numbers);
} weir_answer_fns_t;

// The whole kernel: compute_async of an op calls it with its two halves. Ends with CANCELLED where
// the step is cancelled in between.
void weir_answer_run(weir_kernel_ctx_t* ctx, const weir_answer_fns_t* fns, weir_done_t done);

// Makes scratch |i|, all bytes of it |byte|; ANY: whatever they are. |out_data| is its memory.
enum { WEIR_ANSWER_ANY = -1 };
WEIR_MUST_USE weir_status_t* weir_answer_scratch(weir_answer_t* answer, int i, weir_dtype_t dtype,
                                                 int64_t count, int byte, void** out_data);
// Makes |count| numbers, all 0.
WEIR_MUST_USE weir_status_t* weir_answer_numbers(weir_answer_t* answer, int64_t count,
                                                 int64_t** out_numbers);

#endif  // WEIR_KERNEL_CUDA_ANSWER_H_
