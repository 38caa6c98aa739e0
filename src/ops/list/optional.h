// optional.h — Optionals, for kernels beside those of optional.c that make one.
#ifndef WEIR_OPS_LIST_OPTIONAL_H_
#define WEIR_OPS_LIST_OPTIONAL_H_

#include "op/kernel.h"

// Makes output 0 an optional of the |count| tensors that |take_items| holds, which are taken out on
// success; NULL: one without a value.
WEIR_MUST_USE weir_status_t* weir_optional_output(weir_kernel_ctx_t* ctx,
                                                  weir_tensor_t** take_items, int count);

#endif  // WEIR_OPS_LIST_OPTIONAL_H_
