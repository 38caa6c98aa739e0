// cuda_driver.c — Finding and opening the driver, and saying what it says.
#include "device/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/library.h"

// ---- libraries ----

static void* open_first(const char* const* sonames) {
  void* library = NULL;
  for (; *sonames && !library; ++sonames) library = dlopen(*sonames, RTLD_NOW | RTLD_LOCAL);
  return library;
}

weir_status_t* weir_cuda_open(const char* const* sonames, const char* const* symbols, size_t count,
                              void* out_functions) {
  void* library = open_first(sonames);
  if (!library) return WEIR_STATUS(UNAVAILABLE, "%s cannot be opened", sonames[0]);
  for (size_t i = 0; i < count; ++i) {
    if (!weir_library_find(library, symbols[i], (char*)out_functions + i * sizeof(void*))) {
      dlclose(library);
      return WEIR_STATUS(UNAVAILABLE, "%s has no %s", sonames[0], symbols[i]);
    }
  }
  return NULL;
}

// ---- the driver ----

static cuda_driver_t driver;
static weir_status_t* reason;  // why there is none; for the life of the process
static const cuda_driver_t* replacement;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static weir_status_t* open_driver(void) {
  static const char* const sonames[] = {"libcuda.so.1", NULL};
#define WEIR_CUDA_SYMBOL(name, symbol, arguments) #symbol,
  static const char* const symbols[] = {WEIR_CUDA_DRIVER_FUNCTIONS(WEIR_CUDA_SYMBOL)};
#undef WEIR_CUDA_SYMBOL
  int count = 0;
  WEIR_TRY(weir_cuda_open(sonames, symbols, WEIR_COUNT_OF(symbols), &driver));
  WEIR_TRY(weir_cuda_check(&driver, driver.init(0), "starting CUDA"));
  WEIR_TRY(weir_cuda_check(&driver, driver.device_count(&count), "counting GPUs"));
  return count > 0 ? NULL : WEIR_STATUS(UNAVAILABLE, "there is no GPU");
}

static void open_once(void) { reason = open_driver(); }

weir_status_t* weir_cuda_driver(const cuda_driver_t** out_driver) {
  if (!replacement) {
    pthread_once(&once, open_once);
    if (reason) return weir_status_copy(reason);
  }
  *out_driver = replacement ? replacement : &driver;
  return NULL;
}

void weir_cuda_driver_replace(const cuda_driver_t* with) { replacement = with; }

// ---- errors ----

weir_status_t* weir_cuda_check(const cuda_driver_t* of, cu_result_t result, const char* doing) {
  const char* name = NULL;
  const char* text = NULL;
  if (WEIR_LIKELY(result == 0)) return NULL;
  of->error_name(result, &name);
  of->error_text(result, &text);
  if (result == CU_OUT_OF_MEMORY)
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "%s: %s (%s)", doing, text ? text : "out of memory",
                       name ? name : "2");
  return WEIR_STATUS(INTERNAL, "%s: %s (%s)", doing, text ? text : "unknown error",
                     name ? name : "?");
}
