// iterator_resource.h — Iterators as resources: what steps share, by name or by handle.
// Thread-safe.
#ifndef WEIR_OPS_DATA_ITERATOR_RESOURCE_H_
#define WEIR_OPS_DATA_ITERATOR_RESOURCE_H_

#include "ops/data/dataset.h"

// The components that an iterator's elements must have, as its op declares them. Borrowed.
typedef struct weir_element_spec_t {
  int count;
  const weir_dtype_t* types;
  const weir_shape_t* const* shapes;
} weir_element_spec_t;
// Of attributes output_types and output_shapes. INVALID_ARGUMENT when they differ in length.
WEIR_MUST_USE weir_status_t* weir_element_spec_of(weir_attrs_t attrs,
                                                  weir_element_spec_t* out_spec);

// Whether an element is what a node with those attributes declares. INVALID_ARGUMENT otherwise.
WEIR_MUST_USE weir_status_t* weir_element_check(weir_attrs_t attrs, weir_tensor_t* const* items,
                                                int count);
// Shape function of nodes that give an element: inputs are scalars, outputs as declared.
weir_status_t* weir_iterator_next_shape(weir_shape_ctx_t* ctx);

typedef struct weir_iterator_resource_t weir_iterator_resource_t;
extern const weir_resource_type_t weir_iterator_resource_type;
#define WEIR_ITERATOR_TYPE_NAME "N10tensorflow4data16IteratorResourceE"

WEIR_MUST_USE weir_status_t* weir_iterator_resource_create(const weir_element_spec_t* spec,
                                                           weir_resource_t** out_resource);
// One with the components of |like|, not set.
WEIR_MUST_USE weir_status_t* weir_iterator_resource_like(const weir_iterator_resource_t* like,
                                                         weir_resource_t** out_resource);
// Whether an op that declares |spec| may use it. INVALID_ARGUMENT otherwise.
WEIR_MUST_USE weir_status_t* weir_iterator_resource_matches(weir_iterator_resource_t* resource,
                                                            const weir_element_spec_t* spec);
// Walks over |dataset| from its start, whatever was walked over before; with a clone of the step's
// functions. INVALID_ARGUMENT when its components are not the resource's.
WEIR_MUST_USE weir_status_t* weir_iterator_resource_set(weir_iterator_resource_t* resource,
                                                        const weir_kernel_ctx_t* ctx,
                                                        weir_data_t* dataset);
// Saves what the walk holds, between two pulls; ends |state|. FAILED_PRECONDITION when there is no
// walk.
WEIR_MUST_USE weir_status_t* weir_iterator_resource_save(weir_iterator_resource_t* resource,
                                                         weir_state_t* state);
// Replaces the walk by one over the same dataset that goes on from |state|, which it ends; leaves
// the walk as it is where that fails. FAILED_PRECONDITION when there is none.
WEIR_MUST_USE weir_status_t* weir_iterator_resource_restore(weir_iterator_resource_t* resource,
                                                            const weir_kernel_ctx_t* ctx,
                                                            weir_state_t* state);
bool weir_iterator_resource_is_set(weir_iterator_resource_t* resource);
// The next element: spec.count owned references. FAILED_PRECONDITION when it was not set. Waits for
// others that ask for theirs; CANCELLED with |cancel|.
WEIR_MUST_USE weir_status_t* weir_iterator_resource_next(weir_iterator_resource_t* resource,
                                                         weir_cancel_t* cancel, weir_tensor_t** out,
                                                         bool* out_is_end);
int weir_iterator_resource_width(const weir_iterator_resource_t* resource);

#endif  // WEIR_OPS_DATA_ITERATOR_RESOURCE_H_
