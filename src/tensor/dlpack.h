// dlpack.h — DLPack's structs, as its version 1.1 lays them out in memory.
#ifndef WEIR_TENSOR_DLPACK_H_
#define WEIR_TENSOR_DLPACK_H_

#include <stdint.h>

enum { DLPACK_MAJOR = 1, DLPACK_MINOR = 1, DLPACK_CPU = 1 };
enum { DLPACK_READ_ONLY = 1 };  // of flags

typedef struct dlpack_type_t {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} dlpack_type_t;

typedef struct dlpack_tensor_t {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t rank;
  dlpack_type_t type;
  int64_t* shape;
  int64_t* strides;  // in elements; NULL, which old writers give: row by row
  uint64_t byte_offset;
} dlpack_tensor_t;

struct DLManagedTensor {
  dlpack_tensor_t tensor;
  void* owner;
  void (*deleter)(struct DLManagedTensor* self);  // or NULL
};

struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* owner;
  void (*deleter)(struct DLManagedTensorVersioned* self);  // or NULL
  uint64_t flags;
  dlpack_tensor_t tensor;
};

#endif  // WEIR_TENSOR_DLPACK_H_
