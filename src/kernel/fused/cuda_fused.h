// cuda_fused.h — The kernel of _Fused on GPUs: a program's steps as the body of one kernel, in
// which a thread takes an element, or a few, through all of them.
//
// What the kernel's text depends on besides the program is how each value that it reads lies in
// what it goes over (weir_fused_kind_t), not how large anything is. Texts are compiled when a plan
// is made, for the shapes that are known then; when others come, the first time they do.
#ifndef WEIR_KERNEL_FUSED_CUDA_FUSED_H_
#define WEIR_KERNEL_FUSED_CUDA_FUSED_H_

#include "device/cuda/cuda.h"
#include "kernel/fused/program.h"
#include "op/kernel.h"

typedef struct weir_fused_variant_t weir_fused_variant_t;  // a text, compiled

// State of the kernel. Immutable after init, but for the list of variants.
typedef struct weir_cuda_fused_t {
  weir_arena_t arena;  // holds all that follows, but for variants
  weir_fused_program_t program;
  const weir_dtype_t* types;  // by value
  uint64_t* sources;          // by value, bit i: input i is behind it
  int16_t* output_of;         // by value: the output that it is; -1: none
  weir_mutex_t mu;            // held by who adds a variant
  bool has_mutex;
  _Atomic(weir_fused_variant_t*) variants;  // only ever added to, at the front
} weir_cuda_fused_t;

weir_status_t* weir_cuda_fused_init(const weir_kernel_init_t* init, void* state);
void weir_cuda_fused_deinit(void* state);
// Errors name the node that a step was.
weir_status_t* weir_cuda_fused_compute(weir_kernel_ctx_t* ctx);

#endif  // WEIR_KERNEL_FUSED_CUDA_FUSED_H_
