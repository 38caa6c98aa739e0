// sort.h — Stable sorting by numbers, on all threads of a pool.
#ifndef WEIR_KERNEL_SPARSE_SORT_H_
#define WEIR_KERNEL_SPARSE_SORT_H_

#include "base/thread.h"

// Sorts |count| pairs of a key and a number by the keys; equal keys stay in their order, so that
// the result does not depend on the number of threads. |pool| may be NULL. RESOURCE_EXHAUSTED.
WEIR_MUST_USE weir_status_t* weir_sort_keys(weir_pool_t* pool, uint64_t* keys, int64_t* numbers,
                                            int64_t count);

#endif  // WEIR_KERNEL_SPARSE_SORT_H_
