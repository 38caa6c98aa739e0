// library.c — See library.h.
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

bool weir_library_find(void* library, const char* name, void* out_function) {
  void* symbol = dlsym(library, name);
  // POSIX lets dlsym's result be a function; ISO C needs the copy.
  memcpy(out_function, &symbol, sizeof(symbol));
  return symbol != NULL;
}
