// cast.h — Conversion of elements between plain types, as TensorFlow's Cast op does it on the CPU.
#ifndef WEIR_TENSOR_CAST_H_
#define WEIR_TENSOR_CAST_H_

#include "base/base.h"
#include "weir/dtype.h"

// Converts |count| elements; |dst| and |src| do not overlap. Floating to integer truncates and
// makes NaN 0; to bool is "not zero"; complex to real drops the imaginary part; the 16- and 8-bit
// floats go through float; integers wrap. UNIMPLEMENTED when a type is not plain.
//
// Floating numbers beyond the integer type: int32, uint32, int64 and uint64 saturate; narrower
// types take the low bits of the saturated int32, so -1.0 is 255 as uint8. TensorFlow does so for
// single elements on ARM; in its vector loops there, and on x86, what does not fit depends on the
// machine and on the element's place in the tensor. Here it never does.
WEIR_MUST_USE weir_status_t* weir_cast_elements(weir_dtype_t dst_dtype, void* dst,
                                                weir_dtype_t src_dtype, const void* src,
                                                int64_t count);

// Reads one element of a plain type as a double (the real part of a complex one). False when
// |dtype| is not plain.
bool weir_element_to_double(weir_dtype_t dtype, const void* element, double* out_value);

#endif  // WEIR_TENSOR_CAST_H_
