// done.h — How an asynchronous kernel says that it is through.
#ifndef WEIR_DONE_H_
#define WEIR_DONE_H_

#include "weir/status.h"

// Called exactly once by an asynchronous kernel, on any thread, when its outputs are set or it has
// failed. The kernel's context is gone afterwards. A value type: keep a copy.
typedef struct weir_done_t {
  void (*fn)(void* arg, weir_status_t* take_status);
  void* arg;
} weir_done_t;

#endif  // WEIR_DONE_H_
