// cuda_pick.h — Elements that are chosen, counted and numbered on a GPU, in their order.
#ifndef WEIR_KERNEL_MOVE_CUDA_PICK_H_
#define WEIR_KERNEL_MOVE_CUDA_PICK_H_

#include "kernel/cuda/answer.h"
#include "kernel/reduce/cuda_scan.h"

// Immutable after it was found.
typedef struct weir_cuda_pick_t {
  weir_cuda_function_t count, put;
  weir_cuda_scan_t scan;
} weir_cuda_pick_t;

// |choice| is a source with what pick.cu asks for.
WEIR_MUST_USE weir_status_t* weir_cuda_pick_find(weir_device_t* device, const char* definitions,
                                                 const char* choice, weir_cuda_pick_t* out);

// What is chosen of |count| elements.
typedef struct weir_cuda_picks_t {
  const weir_cuda_pick_t* functions;
  const void* choice;  // the address of a choice_t of the source
  int64_t count;       // at least 1
} weir_cuda_picks_t;
// How many they are becomes the first number of |answer|. Takes its scratch 0 and 1.
WEIR_MUST_USE weir_status_t* weir_cuda_pick_count(weir_answer_t* answer,
                                                  const weir_cuda_picks_t* picks);
// Afterwards, maybe with more in the choice: puts each where it says.
WEIR_MUST_USE weir_status_t* weir_cuda_pick_put(weir_answer_t* answer,
                                                const weir_cuda_picks_t* picks);

#endif  // WEIR_KERNEL_MOVE_CUDA_PICK_H_
