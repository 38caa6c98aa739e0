// trial.h — Steps of a few small nodes, timed: what it takes to run nodes besides what they do.
#ifndef WEIR_RUNTIME_TRIAL_H_
#define WEIR_RUNTIME_TRIAL_H_

#include "runtime/program.h"

typedef struct weir_trial_t {
  double step_ns;    // from the start of the step to its end, the shortest of a few
  double submit_ns;  // of that, until the thread that started it had no more to do
} weir_trial_t;

// Times a step of |length| nodes, each of which computes with the number the one before made. They
// are on device |a| and, every other one, on |b|, which may be the same. On devices without streams
// they are conditional, which is the most that the executor may have to do for a node.
WEIR_MUST_USE weir_status_t* weir_trial_run(weir_runtime_t* runtime,
                                            const weir_registry_t* registry, int a, int b,
                                            int length, weir_trial_t* out_trial);

#endif  // WEIR_RUNTIME_TRIAL_H_
