// origin.h — What made a dataset: op, attributes and arguments, from which it can be made again.
//
// All datasets of one node share its op and attributes, which the node's kernel keeps from the
// start of a plan; a dataset by itself holds a reference and its arguments. That is all that
// serialising costs those who never ask for it. Immutable after create.
#ifndef WEIR_OPS_DATA_ORIGIN_H_
#define WEIR_OPS_DATA_ORIGIN_H_

#include "op/kernel.h"

typedef struct weir_origin_t {
  weir_ref_t ref;
  const weir_op_t* op;         // of the registry
  weir_attrs_t attrs;          // all that the op declares
  weir_arena_t arena;          // holds them
  weir_tensor_list_t tensors;  // of them
} weir_origin_t;

weir_origin_t* weir_origin_retain(weir_origin_t* origin);  // NULL stays NULL
void weir_origin_release(weir_origin_t* origin);           // NULL-safe

// A kernel whose state is its node's origin: of every op that makes datasets.
weir_status_t* weir_origin_init(const weir_kernel_init_t* init, void* state);
void weir_origin_deinit(void* state);
#define WEIR_DATASET_KERNEL(fn)                                                          \
  WEIR_CPU_KERNEL(.compute = fn, .init = weir_origin_init, .deinit = weir_origin_deinit, \
                  .state_size = sizeof(weir_origin_t*), .names_functions = true)

#endif  // WEIR_OPS_DATA_ORIGIN_H_
