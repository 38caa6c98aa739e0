// npy.h — NumPy's .npy files: one tensor each.
//
// Read: versions 1 to 3, C and Fortran order, either byte order, and the types bool, integers,
// half, float, double, complex64 and complex128; byte strings ('S') become strings without their
// trailing zeros, text ('U') becomes UTF-8. Everything else (structures, objects, dates) is
// UNIMPLEMENTED.
#ifndef WEIR_FILE_NPY_H_
#define WEIR_FILE_NPY_H_

#include "base/string.h"
#include "tensor/tensor.h"

// Reads the bytes of an .npy file. INVALID_ARGUMENT for what is not one, DATA_LOSS when it ends
// early.
WEIR_MUST_USE weir_status_t* weir_npy_parse(weir_view_t bytes, weir_tensor_t** out_tensor);
// Appends |tensor| as an .npy file, byte for byte as NumPy writes it. Strings are written as 'S' of
// the longest one's size; INVALID_ARGUMENT for one that ends with a zero byte, which would be lost.
// UNIMPLEMENTED for types NumPy lacks.
WEIR_MUST_USE weir_status_t* weir_npy_write(const weir_tensor_t* tensor, weir_strbuf_t* out);

WEIR_MUST_USE weir_status_t* weir_npy_load(const char* path, weir_tensor_t** out_tensor);
WEIR_MUST_USE weir_status_t* weir_npy_save(const char* path, const weir_tensor_t* tensor);

#endif  // WEIR_FILE_NPY_H_
