// combine.h — What a collective makes of the tensors of all its members.
#ifndef WEIR_OPS_COLLECTIVE_COMBINE_H_
#define WEIR_OPS_COLLECTIVE_COMBINE_H_

#include "ops/collective/hub.h"

// Checks that a member's tensor, or the shape that stands for it, can take part.
WEIR_MUST_USE weir_status_t* weir_collective_check(const weir_collective_t* what,
                                                   const weir_tensor_t* tensor);
// Sets |outputs| from |inputs|, both |what->group_size| in the order of ranks; all inputs were
// checked and agree. Reductions merge in that order. Of a broadcast all inputs but the source's are
// NULL. Outputs may be shared.
WEIR_MUST_USE weir_status_t* weir_collective_combine(const weir_collective_t* what,
                                                     weir_pool_t* pool,
                                                     weir_tensor_t* const* inputs,
                                                     weir_tensor_t** outputs);

#endif  // WEIR_OPS_COLLECTIVE_COMBINE_H_
