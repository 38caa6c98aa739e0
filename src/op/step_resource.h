// step_resource.h — Resources that die with the step: stacks and TensorArrays, made and looked up
// in the innermost loops.
//
// A handle made here carries its resource, so that looking it up is a pointer, without a lock; the
// step's manager knows it by name too, for handles that came over the wire and for Ref(string)
// handles.
#ifndef WEIR_OP_STEP_RESOURCE_H_
#define WEIR_OP_STEP_RESOURCE_H_

#include "op/kernel.h"

// Enters |take_resource| (consumed in every case) in the step's manager under |name|, which is
// unique in the step, and makes its handle output |i|: a resource handle, or, where the output is
// of another type, the strings [container, name] by reference or by value.
WEIR_MUST_USE weir_status_t* weir_step_resource_publish(weir_kernel_ctx_t* ctx, int i,
                                                        weir_resource_t* take_resource,
                                                        const char* name, const char* type_name);

// The resource behind input |i|; borrowed, valid during the kernel's call. INVALID_ARGUMENT for
// another type of resource, NOT_FOUND when there is none.
WEIR_MUST_USE weir_status_t* weir_step_resource_get(weir_kernel_ctx_t* ctx, int i,
                                                    const weir_resource_type_t* type,
                                                    weir_resource_t** out_resource);

#endif  // WEIR_OP_STEP_RESOURCE_H_
