// blas.c — Finding and opening OpenBLAS.
#include "kernel/gemm/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/library.h"
#include "base/log.h"

#ifndef WEIR_BLAS_PATH
#define WEIR_BLAS_PATH ""
#endif

#ifdef WEIR_HAVE_BLAS

static weir_blas_t blas;
static bool is_loaded;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// OpenBLAS starts its threads while it is being loaded, by this variable.
static void* open_with_one_thread(const char* path) {
  const char* old = getenv("OPENBLAS_NUM_THREADS");
  char* kept = old ? strdup(old) : NULL;
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (kept) setenv("OPENBLAS_NUM_THREADS", kept, 1);
  else unsetenv("OPENBLAS_NUM_THREADS");
  free(kept);
  return library;
}

static bool may_be_called_concurrently(void* library) {
  enum { SERIAL = 0, THREADED = 1 };
  int (*get_parallel)(void) = NULL;
  void (*set_num_threads)(int count) = NULL;
  if (!weir_library_find(library, "openblas_get_parallel", &get_parallel) ||
      get_parallel() != THREADED)
    return false;
  if (weir_library_find(library, "openblas_set_num_threads", &set_num_threads)) set_num_threads(1);
  return true;
}

static bool load(const char* path) {
  void* library = open_with_one_thread(path);
  if (!library) return false;
  if (may_be_called_concurrently(library) &&
      weir_library_find(library, "cblas_sgemm", &blas.sgemm) &&
      weir_library_find(library, "cblas_dgemm", &blas.dgemm) &&
      weir_library_find(library, "cblas_cgemm", &blas.cgemm) &&
      weir_library_find(library, "cblas_zgemm", &blas.zgemm) &&
      weir_library_find(library, "cblas_sgemv", &blas.sgemv) &&
      weir_library_find(library, "cblas_dgemv", &blas.dgemv)) {
    return true;
  }
  dlclose(library);
  return false;
}

static void load_once(void) {
  const char* const paths[] = {getenv("WEIR_BLAS"), WEIR_BLAS_PATH, "libopenblas.so.0",
                               "libopenblas.so"};
  for (size_t i = 0; i < WEIR_COUNT_OF(paths) && !is_loaded; ++i) {
    if (paths[i] && *paths[i]) is_loaded = load(paths[i]);
  }
  if (!is_loaded)
    WEIR_LOG(WARNING,
             "no threaded OpenBLAS found: matrix products run on plain loops (see WEIR_BLAS)");
}

const weir_blas_t* weir_blas(void) {
  pthread_once(&once, load_once);
  return is_loaded ? &blas : NULL;
}

#else

const weir_blas_t* weir_blas(void) { return NULL; }

#endif
