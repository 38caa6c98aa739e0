// promise.h — Outputs that are there before their kernel has run.
//
// A device's stream runs in its own time. So that the executor need not wait for it between two
// nodes of the same device, the outputs of the first are promised: their memory is there, what is
// in it comes when the stream gets to it, and so whatever is submitted afterwards finds it.
// Whoever reads it elsewhere waits for the stream, as every copy does.
//
// A kernel that launches its own work (a GPU's) makes such outputs by itself. A kernel borrowed
// from the CPU makes them while it runs; for those the op's shape function says beforehand what
// they will be, and weir_kernel_output gives the kernel the promised memory to write to.
#ifndef WEIR_OP_PROMISE_H_
#define WEIR_OP_PROMISE_H_

#include "op/kernel.h"

// Whether the outputs of a borrowed kernel may be promised: it has no state, all its outputs are in
// the device's memory, and none may share an input's.
bool weir_node_may_promise(const weir_node_def_t* node, const weir_kernel_def_t* kernel);
// Makes |promised|, as many as outputs. False, and none, where shapes are not known before the
// kernel runs, or it will fail.
bool weir_promise_make(const weir_kernel_ctx_t* ctx, weir_value_t* promised);
// Fills |promised| with what the kernel made elsewhere, within the device's reach. INTERNAL where
// it made something of another shape.
WEIR_MUST_USE weir_status_t* weir_promise_keep(const weir_kernel_ctx_t* ctx,
                                               const weir_value_t* promised);

// What a kernel took: its memory, and when its turn came in the stream (0: it never did).
typedef struct weir_submit_trace_t {
  weir_alloc_meter_t memory;
  int64_t start_ns;
} weir_submit_trace_t;

// Runs a synchronous kernel in the compute stream of its device; |promised| may be NULL, and so may
// |trace|. |ctx| and all of them must live until |done|. CANCELLED, and nothing done, where the
// step was before.
void weir_kernel_submit(weir_kernel_ctx_t* ctx, const weir_value_t* promised,
                        weir_submit_trace_t* trace, weir_done_t done);

#endif  // WEIR_OP_PROMISE_H_
