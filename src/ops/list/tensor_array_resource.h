// tensor_array_resource.h — TensorArrays: arrays of tensors written by index within a step, and the
// gradient arrays that mirror them.
//
// An element is written once and, by default, read once; one that nobody wrote reads as zeros where
// its shape is known. A gradient array adds up what is written to one place. Thread-safe.
#ifndef WEIR_OPS_LIST_TENSOR_ARRAY_RESOURCE_H_
#define WEIR_OPS_LIST_TENSOR_ARRAY_RESOURCE_H_

#include "op/resource.h"

typedef struct weir_tensor_array_item_t {
  weir_tensor_t* tensor;      // NULL: not written, cleared, or zeros of |shape|
  const weir_shape_t* shape;  // of what was written; in the array's arena; NULL before
  bool is_read;
  bool is_cleared;
} weir_tensor_array_item_t;

typedef struct weir_tensor_array_t {
  weir_resource_t base;
  char* name;                 // immutable, owned
  weir_dtype_t dtype;         // immutable
  bool has_identical_shapes;  // immutable: the first write fixes the shape of all
  bool is_grad;               // immutable: writes add up
  bool clears_after_read;     // immutable
  weir_mutex_t mu;
  bool is_dynamic;  // guarded by mu, as all below
  bool is_closed;
  const weir_shape_t* element_shape;
  const weir_shape_t* last_shape;  // of the last write: most are alike and share it
  weir_arena_t arena;
  weir_tensor_array_item_t* items;
  size_t count;
  size_t capacity;
  int64_t marked_size;  // as of the last scatter or split: what a gradient's concat covers
  struct weir_tensor_array_grad_t* grads;  // gradient arrays by source
} weir_tensor_array_t;
extern const weir_resource_type_t weir_tensor_array_type;

typedef struct weir_tensor_array_params_t {
  const char* name;
  weir_dtype_t dtype;
  int64_t size;
  const weir_shape_t* element_shape;
  bool is_dynamic;
  bool clears_after_read;
  bool has_identical_shapes;
} weir_tensor_array_params_t;
WEIR_MUST_USE weir_status_t* weir_tensor_array_create(const weir_tensor_array_params_t* params,
                                                      weir_tensor_array_t** out_array);

// How elements are made and added up where they are; NULL: in host memory.
typedef struct weir_tensor_array_memory_t {
  weir_status_t* (*create_zeros)(void* arg, weir_dtype_t dtype, int rank, const int64_t* dims,
                                 weir_tensor_t** out_tensor);
  // As weir_tensor_accumulate.
  weir_status_t* (*accumulate)(void* arg, weir_tensor_t** take_sum, const weir_tensor_t* value);
  void* arg;
} weir_tensor_array_memory_t;

// All of these are INVALID_ARGUMENT on a closed array, and in TensorFlow's words for what else is
// wrong. Writes, or adds in a gradient array; consumes |take_value| in every case.
WEIR_MUST_USE weir_status_t* weir_tensor_array_write(weir_tensor_array_t* array, int64_t index,
                                                     weir_tensor_t* take_value,
                                                     const weir_tensor_array_memory_t* memory);
WEIR_MUST_USE weir_status_t* weir_tensor_array_read(weir_tensor_array_t* array, int64_t index,
                                                    const weir_tensor_array_memory_t* memory,
                                                    weir_tensor_t** out_value);
WEIR_MUST_USE weir_status_t* weir_tensor_array_size(weir_tensor_array_t* array, int64_t* out_size);
// The number of elements a concat covers.
WEIR_MUST_USE weir_status_t* weir_tensor_array_concat_size(weir_tensor_array_t* array,
                                                           int64_t* out_size);
// Checks that |needed| elements fit, or that the array may grow to them, and notes the size for
// gradients.
WEIR_MUST_USE weir_status_t* weir_tensor_array_mark_size(weir_tensor_array_t* array, int64_t needed,
                                                         int64_t* out_size);
// Narrows what elements may look like; INVALID_ARGUMENT when it contradicts what is known.
WEIR_MUST_USE weir_status_t* weir_tensor_array_merge_shape(weir_tensor_array_t* array,
                                                           const weir_shape_t* shape);
bool weir_tensor_array_has_full_shape(weir_tensor_array_t* array);
void weir_tensor_array_close(weir_tensor_array_t* array);  // drops the elements

// The gradient array of |array| for |source|, made on the first call; retained. From then on
// |array| cannot grow. |prefix| (may be NULL) is put before the shapes of all elements. When made
// now, it is called |name|.
typedef struct weir_tensor_array_grad_params_t {
  weir_view_t source;
  const char* name;
  const weir_shape_t* prefix;
} weir_tensor_array_grad_params_t;
WEIR_MUST_USE weir_status_t* weir_tensor_array_grad(weir_tensor_array_t* array,
                                                    const weir_tensor_array_grad_params_t* params,
                                                    weir_tensor_array_t** out_grad);
// The handle tensor kept for that gradient array, retained; NULL when none is: loops ask for it in
// every iteration.
weir_tensor_t* weir_tensor_array_grad_handle(weir_tensor_array_t* array, weir_view_t source);
void weir_tensor_array_keep_grad_handle(weir_tensor_array_t* array, weir_view_t source,
                                        weir_tensor_t* handle);

#endif  // WEIR_OPS_LIST_TENSOR_ARRAY_RESOURCE_H_
