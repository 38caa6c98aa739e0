// resources.h — State of datasets that a handle carries: caches, seeds, iterators without a name.
#ifndef WEIR_OPS_DATA_RESOURCES_H_
#define WEIR_OPS_DATA_RESOURCES_H_

#include "op/kernel.h"

// Makes output 0 a handle that carries |take_resource| (NULL: none), which lives as long as the
// handle; output 1, where there is one, an empty deleter. Consumes it also on failure.
WEIR_MUST_USE weir_status_t* weir_data_output_handle(weir_kernel_ctx_t* ctx,
                                                     weir_resource_t* take_resource,
                                                     const char* prefix, const char* type_name);
// The same, but the manager has the resource, until it is deleted.
WEIR_MUST_USE weir_status_t* weir_data_output_kept(weir_kernel_ctx_t* ctx,
                                                   weir_resource_t* take_resource,
                                                   const char* prefix, const char* type_name);
// The resource of |type| that a handle of that name carries; retained. NULL: there is none.
weir_resource_t* weir_data_find_named(weir_view_t name, const weir_resource_type_t* type);
// Lets a handle that nobody else has yet carry a resource.
void weir_data_carry(weir_handle_t* handle, weir_resource_t* take_resource);
// The kernel of ops that delete such a handle's resource: it goes by itself.
weir_status_t* weir_data_delete_handle(weir_kernel_ctx_t* ctx);

#endif  // WEIR_OPS_DATA_RESOURCES_H_
