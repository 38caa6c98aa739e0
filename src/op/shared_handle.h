// shared_handle.h — What ops that name a resource (VarHandleOp, FIFOQueueV2,
// ConditionalAccumulator, Barrier) share: container and name by TensorFlow's rules, and the handle
// they put out, be it a resource or a Ref(string).
#ifndef WEIR_OP_SHARED_HANDLE_H_
#define WEIR_OP_SHARED_HANDLE_H_

#include "op/kernel.h"

// The first member of such a kernel's state. Immutable after init.
typedef struct weir_shared_handle_t {
  char* container;  // the attribute, or "localhost"
  char* name;       // the attribute shared_name, or the node's name
  weir_tensor_t*
      tensor;  // the handle as a scalar resource tensor; NULL when the output is a reference
  weir_variable_t* ref;  // holds the strings [container, name]; NULL when the output is a resource
} weir_shared_handle_t;

// |handle| is zeroed; deinit also after a failure. |type_name| as in weir_handle_t.
// INVALID_ARGUMENT on a shared_name that begins with '_'.
WEIR_MUST_USE weir_status_t* weir_shared_handle_init(const weir_kernel_init_t* init,
                                                     const char* type_name,
                                                     weir_shared_handle_t* handle);
// The same without a handle to put out: of ops that name the resource they use themselves (Stage).
WEIR_MUST_USE weir_status_t* weir_shared_handle_init_names(const weir_kernel_init_t* init,
                                                           weir_shared_handle_t* handle);
void weir_shared_handle_deinit(weir_shared_handle_t* handle);

// Makes the handle output 0: one increment of a reference count.
void weir_shared_handle_set(weir_kernel_ctx_t* ctx, const weir_shared_handle_t* handle);

// Finds or creates the resource a handle names, in the session's manager; retained.
WEIR_MUST_USE weir_status_t* weir_shared_handle_create(weir_kernel_ctx_t* ctx,
                                                       const weir_shared_handle_t* handle,
                                                       const weir_resource_type_t* type,
                                                       weir_resource_create_fn_t create, void* arg,
                                                       weir_resource_t** out_resource);

// The resource behind input |i|, a resource handle or a Ref(string); retained. NOT_FOUND when there
// is none.
WEIR_MUST_USE weir_status_t* weir_shared_handle_resource(weir_kernel_ctx_t* ctx, int i,
                                                         const weir_resource_type_t* type,
                                                         weir_resource_t** out_resource);

// The shape function of ops that put a handle out: a scalar resource, or a Ref(string) vector of
// two.
weir_status_t* weir_shared_handle_shape(weir_shape_ctx_t* ctx);

#endif  // WEIR_OP_SHARED_HANDLE_H_
