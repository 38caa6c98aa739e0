// element_add.h — Adds runs of elements of any number type in place, for scatters and folds.
#ifndef WEIR_KERNEL_ELEMENTWISE_ELEMENT_ADD_H_
#define WEIR_KERNEL_ELEMENTWISE_ELEMENT_ADD_H_

#include "base/base.h"
#include "weir/dtype.h"

// dst[i] += src[i], or -= for the second; integers wrap, bools are or-ed (and dst & !src).
typedef void (*weir_element_add_fn_t)(void* dst, const void* src, int64_t count);

// NULL when the type has no sum.
weir_element_add_fn_t weir_element_add_fn(weir_dtype_t dtype);
weir_element_add_fn_t weir_element_sub_fn(weir_dtype_t dtype);

#endif  // WEIR_KERNEL_ELEMENTWISE_ELEMENT_ADD_H_
