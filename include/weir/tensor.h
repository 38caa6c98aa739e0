// tensor.h — Tensors: a type, a shape, and reference-counted memory.
//
// Threading: a tensor is immutable once shared; reading is safe from any thread, writing only by
// its sole holder. Reference counts are thread-safe.
#ifndef WEIR_TENSOR_H_
#define WEIR_TENSOR_H_

#include <stddef.h>
#include <stdint.h>

#include "weir/dtype.h"
#include "weir/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_tensor_t weir_tensor_t;

#define WEIR_MAX_RANK 254

// Creates a tensor on the host whose elements are uninitialised bytes (strings, resources and
// variants: empty). INVALID_ARGUMENT for a negative dimension or an overflowing size,
// RESOURCE_EXHAUSTED when memory is.
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_create(weir_dtype_t dtype, int rank,
                                                         const int64_t* dims,
                                                         weir_tensor_t** out_tensor);

// Creates a tensor and copies |data| (weir_tensor_byte_size bytes) into it. Plain types only.
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_create_from(weir_dtype_t dtype, int rank,
                                                              const int64_t* dims, const void* data,
                                                              weir_tensor_t** out_tensor);

// Wraps memory of the caller, of any alignment, without a copy. |deallocator| (may be NULL) runs
// once when the last reference is gone, also when this function fails. INVALID_ARGUMENT when |size|
// is less than the shape needs.
typedef void (*weir_deallocator_fn_t)(void* data, size_t size, void* arg);
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_wrap(weir_dtype_t dtype, int rank,
                                                       const int64_t* dims, void* data, size_t size,
                                                       weir_deallocator_fn_t deallocator, void* arg,
                                                       weir_tensor_t** out_tensor);

// Creates a view of |tensor|'s memory under another shape with the same number of elements.
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_reshape(weir_tensor_t* tensor, int rank,
                                                          const int64_t* dims,
                                                          weir_tensor_t** out_view);

// Creates a view of rows [begin, end) along dimension 0.
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_slice(weir_tensor_t* tensor, int64_t begin,
                                                        int64_t end, weir_tensor_t** out_view);

// Creates scalars and vectors of strings; sizes may be NULL for terminated strings.
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_create_strings(int rank, const int64_t* dims,
                                                                 const char* const* strings,
                                                                 const size_t* sizes,
                                                                 weir_tensor_t** out_tensor);

WEIR_API weir_tensor_t* weir_tensor_retain(
    weir_tensor_t* tensor);  // returns |tensor|; NULL stays NULL
WEIR_API void weir_tensor_release(weir_tensor_t* tensor);

WEIR_API weir_dtype_t weir_tensor_dtype(const weir_tensor_t* tensor);
WEIR_API int weir_tensor_rank(const weir_tensor_t* tensor);
WEIR_API int64_t weir_tensor_dim(const weir_tensor_t* tensor, int index);
WEIR_API const int64_t* weir_tensor_dims(const weir_tensor_t* tensor);
WEIR_API int64_t weir_tensor_count(const weir_tensor_t* tensor);     // elements
WEIR_API size_t weir_tensor_byte_size(const weir_tensor_t* tensor);  // count * element size
WEIR_API void* weir_tensor_data(const weir_tensor_t* tensor);
// Whether the caller's reference is the only one, and the memory not somebody else's: then the
// elements may be written.
WEIR_API bool weir_tensor_is_writable(weir_tensor_t* tensor);
// The bytes of string |index|; borrowed. Only for string tensors and an index in range.
WEIR_API const char* weir_tensor_string(const weir_tensor_t* tensor, int64_t index,
                                        size_t* out_size);
// Sets string |index| to a copy of |data|.
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_set_string(weir_tensor_t* tensor, int64_t index,
                                                             const void* data, size_t size);

// The elements as text, "[[1 2] [3 4]]", at most |limit| a dimension; weir_buffer_free it.
WEIR_API WEIR_MUST_USE weir_status_t* weir_tensor_to_text(const weir_tensor_t* tensor,
                                                          int64_t limit, char** out_text);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_TENSOR_H_
