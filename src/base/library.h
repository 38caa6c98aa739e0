// library.h — Functions of libraries that are opened at run time.
#ifndef WEIR_BASE_LIBRARY_H_
#define WEIR_BASE_LIBRARY_H_

#include <stdbool.h>

// Puts the function |name| of |library|, as dlopen gave it, into the pointer to a function at
// |out_function|. False where there is none: it is NULL then.
bool weir_library_find(void* library, const char* name, void* out_function);

#endif  // WEIR_BASE_LIBRARY_H_
