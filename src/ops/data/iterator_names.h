// iterator_names.h — How ops name an iterator: by their shared_name or, without one, by a name that
// no other node and no other session gets.
#ifndef WEIR_OPS_DATA_ITERATOR_NAMES_H_
#define WEIR_OPS_DATA_ITERATOR_NAMES_H_

#include "ops/data/iterator_resource.h"

// Part of the kernel's state.
typedef struct weir_iterator_names_t {
  const weir_resource_type_t* type;  // what it names; that type's name is the handle's, too
  char* container;
  char* name;
  bool is_private;        // nobody else's: removed with the kernel
  weir_tensor_t* tensor;  // the handle
  weir_mutex_t mu;
  weir_resources_t* manager;  // guarded by mu; where the resource was made; NULL: not yet
} weir_iterator_names_t;

WEIR_MUST_USE weir_status_t* weir_iterator_names_init(const weir_kernel_init_t* init,
                                                      const weir_resource_type_t* type,
                                                      weir_iterator_names_t* names);
void weir_iterator_names_deinit(weir_iterator_names_t* names);  // also after a failed init
// Finds or creates what it names; retained.
WEIR_MUST_USE weir_status_t* weir_iterator_names_find(weir_kernel_ctx_t* ctx,
                                                      weir_iterator_names_t* names,
                                                      weir_resource_create_fn_t create, void* arg,
                                                      weir_resource_t** out_resource);
// The same for an iterator. INVALID_ARGUMENT when it is there with other components.
WEIR_MUST_USE weir_status_t* weir_iterator_names_resource(weir_kernel_ctx_t* ctx,
                                                          weir_iterator_names_t* names,
                                                          const weir_element_spec_t* spec,
                                                          weir_iterator_resource_t** out_resource);

#endif  // WEIR_OPS_DATA_ITERATOR_NAMES_H_
