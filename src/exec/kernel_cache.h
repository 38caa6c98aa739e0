// kernel_cache.h — State of stateful kernels, shared by all plans of a session. Thread-safe.
//
// A random op continues its sequence whichever signature runs it: its generator belongs to the
// node, not to a plan.
#ifndef WEIR_EXEC_KERNEL_CACHE_H_
#define WEIR_EXEC_KERNEL_CACHE_H_

#include "base/map.h"
#include "op/kernel.h"

typedef struct weir_kernel_cache_t {
  weir_mutex_t mu;
  weir_map_t entries;  // node name → entry; guarded by mu
} weir_kernel_cache_t;

void weir_kernel_cache_init(weir_kernel_cache_t* cache);
void weir_kernel_cache_free(weir_kernel_cache_t* cache);  // deinitialises every kernel
// The state for the node of |init|, initialised on first use. Borrowed: lives as long as the cache.
WEIR_MUST_USE weir_status_t* weir_kernel_cache_get(weir_kernel_cache_t* cache,
                                                   const weir_kernel_init_t* init,
                                                   const weir_kernel_def_t* kernel,
                                                   void** out_state);

#endif  // WEIR_EXEC_KERNEL_CACHE_H_
