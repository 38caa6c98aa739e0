// builds.h — What the inits of kernels have begun and not waited for, such as compiling: gathered
// by whoever calls them, who waits for all of it before the first step.
//
//   weir_builds_t builds = {0}, *outer = weir_builds_gather(&builds);
//   …inits of kernels; |builds.owner| says whose is next…
//   weir_builds_gather(outer);
//   status = weir_builds_finish(&builds, &owner);
#ifndef WEIR_DEVICE_BUILDS_H_
#define WEIR_DEVICE_BUILDS_H_

#include "base/base.h"

// Something of a device's that is on its way. Lives as long as the device.
typedef struct weir_build_t {
  // Does the work in the calling thread, if nobody has begun it; does not wait.
  void (*assist)(struct weir_build_t* self);
  // Returns when it is there, or with the reason why it is not. May be called again, by any thread.
  weir_status_t* (*finish)(struct weir_build_t* self);
} weir_build_t;

// Thread-confined. Zero-initialise to use.
typedef struct weir_builds_t {
  struct {
    weir_build_t* build;
    int32_t owner;
  } * items;
  size_t count, capacity;
  int32_t owner;  // of what is added next
} weir_builds_t;

// What this thread adds goes to |builds|, which may be NULL: to nobody. Returns who had it before.
weir_builds_t* weir_builds_gather(weir_builds_t* builds);
// For devices. Where nobody gathers, |build| is finished when it is used.
WEIR_MUST_USE weir_status_t* weir_builds_add(weir_build_t* build);
// Waits for all of it, and takes part in it; then frees the list. The first error, and whose it is.
WEIR_MUST_USE weir_status_t* weir_builds_finish(weir_builds_t* builds, int32_t* out_owner);
void weir_builds_free(weir_builds_t* builds);

#endif  // WEIR_DEVICE_BUILDS_H_
