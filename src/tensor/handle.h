// handle.h — Elements of resource and variant tensors: references to objects that live outside the
// tensor.
#ifndef WEIR_TENSOR_HANDLE_H_
#define WEIR_TENSOR_HANDLE_H_

#include "base/thread.h"
#include "tensor/shape.h"
#include "tensor/tensor.h"

// The element of a resource tensor is a weir_handle_t* (NULL when empty). Immutable after create;
// reference counted.
typedef struct weir_handle_t {
  weir_ref_t ref;
  char* device;
  char* container;
  char* name;
  char* type_name;  // as TensorFlow spells it, e.g. "N10tensorflow3VarE"; for messages and protos
  uint64_t type_hash;
  weir_dtype_t dtype;   // of what the resource holds; INVALID when unknown
  weir_shape_t* shape;  // owned; NULL when unknown
  void* object;  // optional: the resource itself, kept alive by the handle (anonymous resources)
  void (*release_object)(void* object);
} weir_handle_t;

WEIR_MUST_USE weir_status_t* weir_handle_create(const char* device, const char* container,
                                                const char* name, const char* type_name,
                                                weir_handle_t** out_handle);
weir_handle_t* weir_handle_retain(weir_handle_t* handle);
void weir_handle_release(weir_handle_t* handle);
// Creates a scalar resource tensor that holds |handle| (its own reference is added).
WEIR_MUST_USE weir_status_t* weir_tensor_create_handle(weir_handle_t* handle,
                                                       weir_tensor_t** out_tensor);
WEIR_INLINE weir_handle_t* weir_tensor_handle(const weir_tensor_t* t) {
  return t->dtype == WEIR_DTYPE_RESOURCE && t->count > 0 ? ((weir_handle_t**)t->data)[0] : NULL;
}

// Creates what takes the place of |tensor| in a copy of the object that holds it.
typedef struct weir_tensor_map_t {
  weir_status_t* (*fn)(void* arg, weir_tensor_t* tensor, weir_tensor_t** out_tensor);
  void* arg;
} weir_tensor_map_t;

// The element of a variant tensor: a reference-counted object and what can be done with it. Objects
// are immutable once shared.
typedef struct weir_variant_type_t {
  const char* type_name;          // "tensorflow::TensorList"
  void (*destroy)(void* object);  // required: the last reference is gone
  // optional, default UNIMPLEMENTED: for AddN and ZerosLike, which gradients of loops need.
  weir_status_t* (*add)(const void* a, const void* b, void** out_sum);
  weir_status_t* (*zeros_like)(const void* object, void** out_zeros);
  // optional, default INTERNAL: for Conj.
  weir_status_t* (*conj)(const void* object, void** out_object);
  // optional, default the type's name: appends what AsString says of the object.
  void (*describe)(const void* object, struct weir_strbuf_t* out);
  // optional, default: it holds no tensors. Creates the same object with others in place of the
  // tensors that it holds, all of which |map| is given: for copies to another memory.
  weir_status_t* (*map)(const void* object, weir_tensor_map_t map, void** out_object);
} weir_variant_type_t;
typedef struct weir_variant_object_t {  // every variant object starts with this
  const weir_variant_type_t* type;
  weir_ref_t ref;
} weir_variant_object_t;
typedef struct weir_variant_t {
  weir_variant_object_t* object;  // NULL when empty
  void* reserved;                 // element size 16, as the dtype table says
} weir_variant_t;

weir_variant_object_t* weir_variant_retain(weir_variant_object_t* object);
void weir_variant_release(weir_variant_object_t* object);
// Creates a scalar variant tensor; consumes the reference |take_object|, also on failure.
WEIR_MUST_USE weir_status_t* weir_tensor_create_variant(weir_variant_object_t* take_object,
                                                        weir_tensor_t** out_tensor);
// Creates a variant tensor like |tensor|, but with others in place of the tensors that its elements
// hold. |map| sees those that are variants themselves as well.
WEIR_MUST_USE weir_status_t* weir_variants_map(const weir_tensor_t* tensor, weir_tensor_map_t map,
                                               weir_tensor_t** out_tensor);

#endif  // WEIR_TENSOR_HANDLE_H_
