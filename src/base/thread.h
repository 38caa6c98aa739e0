// thread.h — Mutexes, condition variables, clock, and the thread pool.
#ifndef WEIR_BASE_THREAD_H_
#define WEIR_BASE_THREAD_H_

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"

#if defined(__clang__)
#define WEIR_CAPABILITY(name) __attribute__((capability(name)))
#define WEIR_REQUIRES(mu) __attribute__((requires_capability(mu)))
#define WEIR_ACQUIRE(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define WEIR_TRY_ACQUIRE(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
#define WEIR_RELEASE(...) __attribute__((release_capability(__VA_ARGS__)))
#define WEIR_NO_THREAD_SAFETY __attribute__((no_thread_safety_analysis))
#else
#define WEIR_CAPABILITY(name)
#define WEIR_REQUIRES(mu)
#define WEIR_ACQUIRE(...)
#define WEIR_TRY_ACQUIRE(...)
#define WEIR_RELEASE(...)
#define WEIR_NO_THREAD_SAFETY
#endif

typedef struct WEIR_CAPABILITY("mutex") weir_mutex_t {
  pthread_mutex_t raw;
} weir_mutex_t;
typedef struct weir_cond_t {
  pthread_cond_t raw;  // on CLOCK_MONOTONIC
} weir_cond_t;

void weir_mutex_init(weir_mutex_t* mutex);
void weir_mutex_destroy(weir_mutex_t* mutex);
void weir_mutex_lock(weir_mutex_t* mutex) WEIR_ACQUIRE(*mutex);
void weir_mutex_unlock(weir_mutex_t* mutex) WEIR_RELEASE(*mutex);
// False: someone holds it.
bool weir_mutex_try_lock(weir_mutex_t* mutex) WEIR_TRY_ACQUIRE(true, *mutex);
void weir_cond_init(weir_cond_t* cond);
void weir_cond_destroy(weir_cond_t* cond);
void weir_cond_wait(weir_cond_t* cond, weir_mutex_t* mutex);
bool weir_cond_wait_until(weir_cond_t* cond, weir_mutex_t* mutex,
                          int64_t deadline_ns);  // false: the deadline passed
void weir_cond_signal(weir_cond_t* cond);
void weir_cond_broadcast(weir_cond_t* cond);

int64_t weir_clock_ns(void);       // monotonic
int64_t weir_wall_clock_us(void);  // since 1970
int weir_cpu_count(void);          // CPUs this process may use, at least 1

// ---- reference counts ----
typedef atomic_int weir_ref_t;
WEIR_INLINE void weir_ref_init(weir_ref_t* ref) { atomic_init(ref, 1); }
WEIR_INLINE void weir_ref_inc(weir_ref_t* ref, int n) {
  atomic_fetch_add_explicit(ref, n, memory_order_relaxed);
}
// Returns true when the caller held the last reference. A sole owner needs no atomic
// read-modify-write.
WEIR_INLINE bool weir_ref_dec(weir_ref_t* ref) {
  if (atomic_load_explicit(ref, memory_order_acquire) == 1)
    return true;  // pairs with the release below
  return atomic_fetch_sub_explicit(ref, 1, memory_order_acq_rel) == 1;
}
WEIR_INLINE bool weir_ref_is_one(weir_ref_t* ref) {
  return atomic_load_explicit(ref, memory_order_acquire) ==
         1;  // pairs with the release in weir_ref_dec
}

// ---- thread pool. Thread-safe. With one thread it starts none and runs everything on the caller.
// ----
typedef struct weir_pool_t weir_pool_t;
typedef void (*weir_task_fn_t)(void* arg);
typedef void (*weir_range_fn_t)(void* arg, int64_t begin, int64_t end);

// |thread_count| counts the caller: n starts n - 1 threads, on first use; 0 means one a CPU.
WEIR_MUST_USE weir_status_t* weir_pool_create(int thread_count, weir_pool_t** out_pool);
void weir_pool_destroy(weir_pool_t* pool);  // waits for queued tasks
int weir_pool_thread_count(const weir_pool_t* pool);
// Tasks and loops that wait for a thread or are open to more of them, now. A statistic.
int weir_pool_queued(weir_pool_t* pool);
// Runs |fn| on a pool thread, or at once on the caller when the pool has no thread of its own or
// memory is exhausted.
void weir_pool_submit(weir_pool_t* pool, weir_task_fn_t fn, void* arg);
// Calls |fn| on disjoint ranges that cover [0, total). The caller takes part; returns when all are
// done. Splits only when total * cost_ns (the estimated time of one item) pays for it. Nested calls
// are safe: a waiting caller helps.
void weir_pool_for(weir_pool_t* pool, int64_t total, double cost_ns, weir_range_fn_t fn, void* arg);
// What ranges side by side report: the first error, whose owner is whoever reads |status| at the
// end. Zero-initialise to use.
typedef struct weir_first_error_t {
  _Atomic(weir_status_t*) status;
} weir_first_error_t;
void weir_first_error_set(weir_first_error_t* first, weir_status_t* take_status);
// Lends the calling thread to a loop of |pool| that has chunks left, until it has none. False when
// there is no such loop. For a thread that waits for work of the pool anyway.
bool weir_pool_assist(weir_pool_t* pool);

#endif  // WEIR_BASE_THREAD_H_
