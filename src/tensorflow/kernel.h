// kernel.h — What the files of kernels.h share: a kernel that a program registers, and the
// contexts that its functions are given.
#ifndef WEIR_TENSORFLOW_KERNEL_H_
#define WEIR_TENSORFLOW_KERNEL_H_

#include "op/kernel.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/internal.h"

// What a program says of a kernel; once registered, immutable and kept to the end of the process.
struct TF_KernelBuilder {
  void* (*create)(TF_OpKernelConstruction*);    // NULL: instances are NULL
  void (*compute)(void*, TF_OpKernelContext*);  // NULL: asynchronous
  void (*compute_async)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*);
  void (*destroy)(void*);     // NULL: nothing is to be done
  weir_arena_t arena;         // of the texts
  const char* host_args;      // "sizes, axis"; NULL: none
  bool is_exhausted;          // there was no memory for a text
  weir_kernel_def_t rows[2];  // the kernel as Weir's registry reads it
  weir_op_def_t ops[2];       // its op, with the rows alone
  weir_op_module_t module;    // that
  TF_KernelBuilder* next;     // of those whose op is not there yet
};

// The state of a node.
typedef struct tf_instance_t {
  const TF_KernelBuilder* kernel;  // NULL: not made
  void* instance;                  // the program's
} tf_instance_t;

struct TF_OpKernelConstruction {
  const weir_kernel_init_t* init;
  weir_status_t* failure;  // what the program said was wrong
};

struct TF_OpKernelContext {
  weir_kernel_ctx_t* ctx;
  weir_status_t* failure;  // what the program said was wrong
};

// Functions of |rows|.
weir_status_t* tf_kernel_init(const weir_kernel_init_t* init, void* state);
void tf_kernel_deinit(void* state);
weir_status_t* tf_kernel_compute(weir_kernel_ctx_t* ctx);
void tf_kernel_compute_async(weir_kernel_ctx_t* ctx, weir_done_t done);

// Adds the kernels that were registered before their op |name| was.
WEIR_MUST_USE weir_status_t* tf_kernels_of_new_op(const char* name);

#endif  // WEIR_TENSORFLOW_KERNEL_H_
