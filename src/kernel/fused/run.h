// run.h — The kernel of _Fused on a CPU: a program's steps, tile by tile.
#ifndef WEIR_KERNEL_FUSED_RUN_H_
#define WEIR_KERNEL_FUSED_RUN_H_

#include "kernel/fused/program.h"
#include "op/kernel.h"

typedef struct weir_fused_loop_t weir_fused_loop_t;  // a step and the code that runs it

// State of the kernel. Immutable after init.
typedef struct weir_fused_code_t {
  weir_arena_t arena;  // holds all that follows
  weir_fused_program_t program;
  weir_fused_loop_t* loops;  // by step
  uint64_t* sources;         // by value, bit i: input i is behind it
  uint16_t* last_use;        // by value: the last step that reads it, or made it
  int16_t* output_of;        // by value: the output that it is; -1: none
  int register_count;        // for what is neither input nor output
  size_t element_size;       // of the widest value
  double cost;               // ns an element, of all steps
  bool has_bias;             // a step adds one
} weir_fused_code_t;

weir_status_t* weir_fused_init(const weir_kernel_init_t* init, void* state);
void weir_fused_deinit(void* state);
// Errors name the node that a step was.
weir_status_t* weir_fused_compute(weir_kernel_ctx_t* ctx);

#endif  // WEIR_KERNEL_FUSED_RUN_H_
