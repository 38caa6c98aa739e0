// env_system.c — env.h: clocks, threads, libraries.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "tensorflow/c/env.h"
#include "tensorflow/internal.h"

// ---- clocks ----

uint64_t TF_NowNanos(void) {
  struct timespec now = {0};
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
uint64_t TF_NowMicros(void) { return TF_NowNanos() / 1000; }
uint64_t TF_NowSeconds(void) { return TF_NowNanos() / 1000000000; }

// ---- threads ----

struct TF_Thread {
  pthread_t thread;
  void (*work)(void*);
  void* param;
  char name[16];  // as long as the system allows
};

void TF_DefaultThreadOptions(TF_ThreadOptions* options) {
  *options = (TF_ThreadOptions){.stack_size = 0, .guard_size = 0, .numa_node = -1};
}

static void* run(void* arg) {
  const TF_Thread* self = arg;
  pthread_setname_np(pthread_self(), self->name);
  self->work(self->param);
  return NULL;
}

TF_Thread* TF_StartThread(const TF_ThreadOptions* options, const char* thread_name,
                          void (*work_func)(void*), void* param) {
  TF_Thread* self = weir_calloc(1, sizeof(*self));
  if (!self) return NULL;
  self->work = work_func;
  self->param = param;
  snprintf(self->name, sizeof(self->name), "%s", thread_name ? thread_name : "");
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (options->stack_size) pthread_attr_setstacksize(&attributes, options->stack_size);
  if (options->guard_size) pthread_attr_setguardsize(&attributes, options->guard_size);
  const int error = pthread_create(&self->thread, &attributes, run, self);
  pthread_attr_destroy(&attributes);
  if (!error) return self;
  weir_free(self);
  return NULL;
}

void TF_JoinThread(TF_Thread* thread) {
  if (!thread) return;
  pthread_join(thread->thread, NULL);
  weir_free(thread);
}

// ---- libraries ----

void* TF_LoadSharedLibrary(const char* library_filename, TF_Status* status) {
  void* library = dlopen(library_filename, RTLD_NOW | RTLD_LOCAL);
  tf_status_take(status, library ? NULL : WEIR_STATUS(NOT_FOUND, "%s", dlerror()));
  return library;
}

void* TF_GetSymbolFromLibrary(void* handle, const char* symbol_name, TF_Status* status) {
  void* symbol = dlsym(handle, symbol_name);
  tf_status_take(status, symbol ? NULL : WEIR_STATUS(NOT_FOUND, "%s", dlerror()));
  return symbol;
}
