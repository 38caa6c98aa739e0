// source.h — CUDA sources: .cu files of this folder and its neighbours, as text in the library, put
// together to what a kernel compiles.
#ifndef WEIR_KERNEL_CUDA_SOURCE_H_
#define WEIR_KERNEL_CUDA_SOURCE_H_

#include "base/string.h"
#include "device/cuda/cuda.h"

// Declares the text of a file: WEIR_CUDA_SOURCE(elementwise) is elementwise.cu, in whatever folder.
#define WEIR_CUDA_SOURCE(name) extern const char weir_cuda_source_##name[]

// What CUDA sources call |dtype|; NULL: they have none like it.
const char* weir_cuda_type_name(weir_dtype_t dtype);
// A type of |size| bytes, 1, 2, 4, 8 or 16, for elements that are only moved; NULL: none.
const char* weir_cuda_bytes_name(size_t size);

// The function |name| of a source: the prelude, |definitions| and |text|. |definitions| is freed.
WEIR_MUST_USE weir_status_t* weir_cuda_build(weir_device_t* device, weir_strbuf_t* take_definitions,
                                             const char* text, const char* name,
                                             weir_cuda_function_t* out_function);

// divisor_t of the prelude, for numbers below 2^31. REQUIRES: 1 <= size < 2^31.
typedef struct weir_cuda_divisor_t {
  uint32_t size, multiplier, shift;
} weir_cuda_divisor_t;
weir_cuda_divisor_t weir_cuda_divisor(int64_t size);

#endif  // WEIR_KERNEL_CUDA_SOURCE_H_
