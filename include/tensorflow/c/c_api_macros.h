// c_api_macros.h — What the headers of the drop-in C API share.
#ifndef TENSORFLOW_C_C_API_MACROS_H_
#define TENSORFLOW_C_C_API_MACROS_H_

#include <stddef.h>

#ifndef TF_CAPI_EXPORT
#ifdef TF_CAPI_WEAK  // a program that looks for functions at run time
#define TF_CAPI_EXPORT __attribute__((visibility("default"), weak))
#else
#define TF_CAPI_EXPORT __attribute__((visibility("default")))
#endif
#endif

// A truth value of the API; TF_BOOL is the type of a tensor.
#ifndef TF_Bool
#define TF_Bool unsigned char
#endif

// The size of a struct up to and with |MEMBER|: what its struct_size is set to.
#ifndef TF_OFFSET_OF_END
#define TF_OFFSET_OF_END(TYPE, MEMBER) (offsetof(TYPE, MEMBER) + sizeof(((TYPE*)0)->MEMBER))
#endif

#endif  // TENSORFLOW_C_C_API_MACROS_H_
