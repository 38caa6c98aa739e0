// alloc_internal.h — Fault injection as the files of base/ that hand out memory see it.
#ifndef WEIR_BASE_ALLOC_INTERNAL_H_
#define WEIR_BASE_ALLOC_INTERNAL_H_

#include <stdatomic.h>

#include "base/base.h"

// Set while weir_alloc_fail_at is in force. Relaxed everywhere: a test sets it before the threads
// it watches allocate.
extern atomic_bool weir_alloc_faults_active;

// Counts one allocation; true when it has to fail. Only while faults are active.
bool weir_alloc_count_fault(void);

WEIR_INLINE bool weir_alloc_faults_on(void) {
  return WEIR_UNLIKELY(atomic_load_explicit(&weir_alloc_faults_active, memory_order_relaxed));
}
WEIR_INLINE bool weir_alloc_must_fail(void) {
  return weir_alloc_faults_on() && weir_alloc_count_fault();
}

#endif  // WEIR_BASE_ALLOC_INTERNAL_H_
