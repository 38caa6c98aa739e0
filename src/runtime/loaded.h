// loaded.h — Graphs that kernels bring while a program runs: a dataset that was saved as one.
//
// Such a graph has functions of its own and sees none of the program's; state, devices and threads
// are the program's. Who may bring graphs may bring one that brings another: there is a limit to
// that. Thread-safe.
#ifndef WEIR_RUNTIME_LOADED_H_
#define WEIR_RUNTIME_LOADED_H_

#include "runtime/program.h"

// What is to be run.
typedef struct weir_loaded_t {
  weir_view_t graph_def;
  weir_view_t fetch;      // the output that is wanted: "name" or "name:1"
  weir_cancel_t* cancel;  // may be NULL
  int64_t step_id;
} weir_loaded_t;

// Runs what is wanted, on the first CPU, and waits for it. INVALID_ARGUMENT for bytes that are no
// graph, RESOURCE_EXHAUSTED for one too deep, and all that its nodes may fail with.
WEIR_MUST_USE weir_status_t* weir_loaded_run(const weir_program_t* program,
                                             const weir_loaded_t* loaded,
                                             weir_tensor_t** out_tensor);
// Creates a program for the functions of |library|, a FunctionDefLibrary; as weir_program_clone.
WEIR_MUST_USE weir_status_t* weir_loaded_program(const weir_program_t* program, weir_view_t library,
                                                 weir_program_t** out_program);

#endif  // WEIR_RUNTIME_LOADED_H_
