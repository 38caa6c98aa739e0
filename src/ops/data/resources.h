// resources.h — State of datasets that a handle carries: caches, seeds, iterators without a name.
#ifndef WEIR_OPS_DATA_RESOURCES_H_
#define WEIR_OPS_DATA_RESOURCES_H_

#include "op/kernel.h"

// Makes output 0 a handle that carries |take_resource| (NULL: none), which lives as long as the
// handle; output 1, where there is one, an empty deleter. Consumes it also on failure.
WEIR_MUST_USE weir_status_t* weir_data_output_handle(weir_kernel_ctx_t* ctx,
                                                     weir_resource_t* take_resource,
                                                     const char* prefix, const char* type_name);
// The kernel of ops that delete such a handle's resource: it goes by itself.
weir_status_t* weir_data_delete_handle(weir_kernel_ctx_t* ctx);

#endif  // WEIR_OPS_DATA_RESOURCES_H_
