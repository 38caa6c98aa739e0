// coordinator.h — A coordinator from inside, for those who wait for more than its stop.
#ifndef WEIR_API_COORDINATOR_H_
#define WEIR_API_COORDINATOR_H_

#include "base/thread.h"
#include "weir/input.h"

struct weir_coordinator_t {
  weir_mutex_t mu;
  weir_cond_t changed;     // on a stop, when a thread ends, and by weir_coordinator_notify
  weir_status_t* status;   // guarded by mu: the first error
  int64_t stop_ns;         // guarded by mu: when it was requested
  bool is_stopping;        // guarded by mu
  int running;             // guarded by mu: threads
  pthread_t* threads;      // guarded by mu: started and not yet joined
  size_t thread_count;     // guarded by mu
  size_t thread_capacity;  // guarded by mu
};

// Waits until |*flag| (guarded by the coordinator's mutex) is set or a stop is requested; returns
// whether a stop is.
bool weir_coordinator_wait_flag(weir_coordinator_t* coordinator, const bool* flag);
// Sets |*flag| and wakes those who wait for it.
void weir_coordinator_set_flag(weir_coordinator_t* coordinator, bool* flag);

#endif  // WEIR_API_COORDINATOR_H_
