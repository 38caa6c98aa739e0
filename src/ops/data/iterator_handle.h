// iterator_handle.h — Handles of iterators as strings, for the kinds of iterators that there are.
#ifndef WEIR_OPS_DATA_ITERATOR_HANDLE_H_
#define WEIR_OPS_DATA_ITERATOR_HANDLE_H_

#include "ops/data/iterator_resource.h"

// Whether a node that declares |spec| may use |resource|.
typedef weir_status_t* (*weir_iterator_match_fn_t)(weir_resource_t* resource,
                                                   const weir_element_spec_t* spec);

// Kernels: input 0 is a handle of a resource of |type|, output 0 that as a string; and the other
// way round, where |match| is asked when the node declares components.
WEIR_MUST_USE weir_status_t* weir_iterator_handle_to_string(weir_kernel_ctx_t* ctx,
                                                            const weir_resource_type_t* type);
WEIR_MUST_USE weir_status_t* weir_iterator_handle_from_string(weir_kernel_ctx_t* ctx,
                                                              const weir_resource_type_t* type,
                                                              weir_iterator_match_fn_t match);
weir_status_t* weir_iterator_handle_shape(weir_shape_ctx_t* ctx);  // of the latter
// The kernel of ops that end the iterator of |type| behind input 0.
WEIR_MUST_USE weir_status_t* weir_iterator_handle_delete(weir_kernel_ctx_t* ctx,
                                                         const weir_resource_type_t* type);

#define WEIR_ITERATOR_SPEC "output_types: list(type) >= 1; output_shapes: list(shape) >= 1"
#define WEIR_ITERATOR_MAYBE_SPEC \
  "output_types: list(type) >= 0 = []; output_shapes: list(shape) >= 0 = []"

#endif  // WEIR_OPS_DATA_ITERATOR_HANDLE_H_
