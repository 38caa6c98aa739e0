// operation_build.h — A description of an operation, as the setters of attributes see it.
#ifndef WEIR_TENSORFLOW_OPERATION_BUILD_H_
#define WEIR_TENSORFLOW_OPERATION_BUILD_H_

#include "op/attr.h"
#include "tensorflow/c/c_api.h"

weir_arena_t* tf_description_arena(TF_OperationDescription* desc);
// Adds a copy. Another value for a name that has one is the description's failure.
void tf_description_add(TF_OperationDescription* desc, weir_named_attr_t attr);
// The first failure is what finishing the operation says.
void tf_description_fail(TF_OperationDescription* desc, weir_status_t* take_status);
// Reads an AttrValue, which is copied.
WEIR_MUST_USE weir_status_t* tf_description_parse(TF_OperationDescription* desc, weir_view_t proto,
                                                  weir_attr_t* out_value);
// Replaces all requests to be where another operation is.
void tf_description_colocate(TF_OperationDescription* desc, const weir_view_t* places,
                             size_t count);

#endif  // WEIR_TENSORFLOW_OPERATION_BUILD_H_
