// host_allocator.c — Tensor memory of the host: lists of freed blocks, per thread when small,
// shared when big.
//
// Small blocks (to 256 KiB) are rounded up to a size class and kept, when freed, on a list of the
// freeing thread; such an alloc and free touch no shared memory. A thread keeps no more of a size
// than it once lacked: one that only frees what others allocate hoards nothing. Big blocks go to
// one shared cache with a byte limit that evicts the block freed longest ago: fresh pages from the
// system cost more than the lock. A size that it has not evicts what nobody wanted for a while: the
// program does something else now, and should not pay for both. A free is not told the alignment,
// so every block, however it was obtained, holds its whole class and may enter any list.
//
// Accounting: a thread sums its small blocks and adds the sum to the global count when it passes
// ACCOUNT_BATCH, when it asks for the count, and when it ends. So the count is exact for what the
// asking thread and ended threads did and for big blocks, and off by at most ACCOUNT_BATCH for each
// other thread.
#include <pthread.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/alloc_internal.h"
#include "base/thread.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
// Sanitizers must see every free, or they miss uses after it.
#ifndef WEIR_HOST_CACHE
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) ||       \
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define WEIR_HOST_CACHE 0
#else
#define WEIR_HOST_CACHE 1
#endif
#endif

#define MIN_ALIGNMENT ((size_t)64)
#define STEP_CLASSES 16                   // 64, 128, … 1024
#define SMALL_CLASSES (STEP_CLASSES + 8)  // … then 2 KiB, 4 KiB, … 256 KiB
#define STEP_MAX ((size_t)1024)
#define SMALL_MAX_LOG2 18
#define SMALL_MAX ((size_t)1 << SMALL_MAX_LOG2)
#define SMALL_FIRST_BYTES ((size_t)16 << 10)  // bytes a thread keeps of each class unasked,
#define SMALL_KEEP_BYTES ((size_t)4 << 20)    // and when it uses that many
#define BIG_STEPS 8                           // classes for each doubling
#define BIG_MAX_LOG2 28                       // bigger blocks are never kept
#define BIG_CLASSES ((BIG_MAX_LOG2 - SMALL_MAX_LOG2) * BIG_STEPS + 1)
#define BIG_KEEP_BYTES ((size_t)256 << 20)
#define BIG_IDLE_NS INT64_C(2000000000)
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_MIN ((size_t)4 << 20)  // bytes of blocks that are made of huge pages
#define ACCOUNT_BATCH ((int64_t)64 << 10)

// ---- size classes ----

static inline unsigned floor_log2(size_t x) {
  return 63u - (unsigned)__builtin_clzll((unsigned long long)x);
}

static inline size_t small_class(size_t size) {
  if (size <= STEP_MAX) return size ? (size - 1) / 64 : 0;
  return STEP_CLASSES + (floor_log2(size - 1) - 10);
}

static inline size_t small_class_size(size_t class_index) {
  return class_index < STEP_CLASSES ? (class_index + 1) * 64
                                    : (size_t)2048 << (class_index - STEP_CLASSES);
}

static unsigned small_class_first(size_t class_index) {
  return 1 + (unsigned)(SMALL_FIRST_BYTES / small_class_size(class_index));
}

static unsigned small_class_keep(size_t class_index) {
  return (unsigned)(SMALL_KEEP_BYTES / small_class_size(class_index));
}

// |size| > SMALL_MAX. Rounds up to an eighth of the power of two below it.
static size_t big_class_size(size_t size) {
  size_t step = ((size_t)1 << floor_log2(size - 1)) / BIG_STEPS;
  size_t rounded;
  if (__builtin_add_overflow(size, step - 1, &rounded)) return size;
  return rounded & ~(step - 1);
}

static size_t big_class(size_t class_size) {
  unsigned log2 = floor_log2(class_size);
  size_t step = (class_size >> (log2 - 3)) & (BIG_STEPS - 1);
  return (log2 - SMALL_MAX_LOG2) * BIG_STEPS + step;
}

static size_t block_size(size_t size) {
#if WEIR_HOST_CACHE
  if (size <= SMALL_MAX) return small_class_size(small_class(size));
  return size <= (size_t)1 << BIG_MAX_LOG2 ? big_class_size(size) : size;
#else
  return size;  // so that a sanitizer sees the first byte past the end
#endif
}

// ---- accounting ----

static _Atomic(int64_t) bytes_in_use = 0;  // may dip below 0 while threads hold unflushed sums
static _Atomic(int64_t) bytes_peak = 0;

// Relaxed: a statistic, ordered with nothing.
static void account(int64_t delta, int64_t high) {
  int64_t top = atomic_fetch_add_explicit(&bytes_in_use, delta, memory_order_relaxed) + high;
  int64_t peak = atomic_load_explicit(&bytes_peak, memory_order_relaxed);
  while (top > peak && !atomic_compare_exchange_weak_explicit(
                           &bytes_peak, &peak, top, memory_order_relaxed, memory_order_relaxed)) {
  }
}

// Initial-exec: one load instead of a call; a few bytes always fit the static block of a library
// loaded late.
#define FAST_TLS __attribute__((tls_model("initial-exec")))
static _Thread_local weir_alloc_meter_t* thread_meter FAST_TLS;

static __attribute__((noinline)) void count_add(weir_alloc_count_t* count, int64_t size) {
  count->total += WEIR_MAX(size, 0);
  count->live += size;
  count->peak = WEIR_MAX(count->peak, count->live);
}

void weir_alloc_meter_note(const weir_space_t* space, int64_t size) {
  weir_alloc_meter_t* meter = thread_meter;
  if (meter) count_add(space == &weir_host_space ? &meter->host : &meter->device, size);
}

void weir_alloc_meter_begin(weir_alloc_meter_t* meter) {
  *meter = (weir_alloc_meter_t){.host = {0}};
  weir_alloc_meter_resume(meter);
}

void weir_alloc_meter_resume(weir_alloc_meter_t* meter) {
  meter->outer = thread_meter;
  thread_meter = meter;
}

void weir_alloc_meter_end(weir_alloc_meter_t* meter) { thread_meter = meter->outer; }

// ---- the thread's lists ----

typedef struct free_block_t {
  struct free_block_t* next;
} free_block_t;

typedef struct thread_cache_t {
  free_block_t* blocks[SMALL_CLASSES];
  unsigned room[SMALL_CLASSES];  // how many more blocks the list may take
  int64_t delta;                 // bytes allocated less freed since the last flush
  int64_t delta_high;            // highest |delta| since then
} thread_cache_t;

static _Thread_local thread_cache_t* thread_cache FAST_TLS;
static _Thread_local bool thread_cache_gone FAST_TLS;  // the thread is ending
static pthread_key_t thread_key;
static bool has_thread_key = false;
static pthread_once_t setup_once = PTHREAD_ONCE_INIT;

static void flush_account(thread_cache_t* cache) {
  account(cache->delta, cache->delta_high);
  cache->delta = 0;
  cache->delta_high = 0;
}

static void raise_high(thread_cache_t* cache) {
  cache->delta_high = cache->delta;
  if (cache->delta > ACCOUNT_BATCH) flush_account(cache);
}

static inline void account_small(thread_cache_t* cache, int64_t size) {
  if (WEIR_UNLIKELY(thread_meter != NULL)) count_add(&thread_meter->host, size);
  cache->delta += size;
  if (WEIR_UNLIKELY(cache->delta > cache->delta_high)) raise_high(cache);
  if (WEIR_UNLIKELY(cache->delta < -ACCOUNT_BATCH)) flush_account(cache);
}

static void account_any(int64_t size) {
  thread_cache_t* cache = thread_cache;
  if (cache && size <= (int64_t)SMALL_MAX && size >= -(int64_t)SMALL_MAX) {
    account_small(cache, size);
    return;
  }
  if (thread_meter) count_add(&thread_meter->host, size);
  if (cache)
    flush_account(cache);  // so that the peak a big block makes counts this thread's small ones
  account(size, WEIR_MAX(size, 0));
}

static void destroy_thread_cache(void* arg) {
  thread_cache_t* cache = arg;
  thread_cache = NULL;
  thread_cache_gone = true;
  flush_account(cache);
  for (size_t i = 0; i < SMALL_CLASSES; ++i) {
    for (free_block_t* block = cache->blocks[i]; block;) {
      free_block_t* next = block->next;
      weir_free(block);
      block = next;
    }
  }
  weir_free(cache);
}

static void before_fork(void);
static void after_fork(void);

static void setup(void) {
  has_thread_key = pthread_key_create(&thread_key, destroy_thread_cache) == 0;
  pthread_atfork(before_fork, after_fork, after_fork);
}

// Returns the calling thread's lists, or NULL when it has to do without.
static thread_cache_t* get_thread_cache(void) {
  if (thread_cache || thread_cache_gone) return thread_cache;
  pthread_once(&setup_once, setup);
  if (!has_thread_key) return NULL;
  thread_cache_t* cache = weir_calloc(1, sizeof(*cache));
  if (!cache) return NULL;
  for (size_t i = 0; i < SMALL_CLASSES; ++i) cache->room[i] = small_class_first(i);
  if (pthread_setspecific(thread_key, cache) != 0) {
    weir_free(cache);
    return NULL;
  }
  thread_cache = cache;
  return cache;
}

// The thread lacks a block: it may keep one more of that class from now on.
static void make_room(thread_cache_t* cache, size_t class_index) {
  bool is_empty = cache->blocks[class_index] == NULL;  // so that |room| is all it may keep
  if (is_empty && cache->room[class_index] < small_class_keep(class_index))
    ++cache->room[class_index];
}

// ---- the shared cache of big blocks ----

// Lives in the first bytes of a freed block.
typedef struct big_block_t {
  struct big_block_t* class_next;
  struct big_block_t* class_prev;
  struct big_block_t* older;
  struct big_block_t* newer;
  size_t size;
  int64_t freed_ns;
} big_block_t;

static weir_mutex_t big_mu = {PTHREAD_MUTEX_INITIALIZER};
static big_block_t* big_lists[BIG_CLASSES];  // guarded by big_mu; the block freed last first
static big_block_t* big_newest;              // guarded by big_mu
static big_block_t* big_oldest;              // guarded by big_mu
static size_t big_bytes;                     // guarded by big_mu

// A child forked while another thread held the lock would wait forever.
WEIR_NO_THREAD_SAFETY static void before_fork(void) { weir_mutex_lock(&big_mu); }
WEIR_NO_THREAD_SAFETY static void after_fork(void) { weir_mutex_unlock(&big_mu); }

static void big_unlink_locked(big_block_t* block) WEIR_REQUIRES(big_mu);
static void big_unlink_locked(big_block_t* block) {
  if (block->class_prev) {
    block->class_prev->class_next = block->class_next;
  } else {
    big_lists[big_class(block->size)] = block->class_next;
  }
  if (block->class_next) block->class_next->class_prev = block->class_prev;
  if (block->newer) block->newer->older = block->older;
  if (block->older) block->older->newer = block->newer;
  if (big_newest == block) big_newest = block->older;
  if (big_oldest == block) big_oldest = block->newer;
  big_bytes -= block->size;
}

static void big_link_locked(big_block_t* block) WEIR_REQUIRES(big_mu);
static void big_link_locked(big_block_t* block) {
  big_block_t** list = &big_lists[big_class(block->size)];
  block->class_prev = NULL;
  block->class_next = *list;
  if (*list) (*list)->class_prev = block;
  *list = block;
  block->newer = NULL;
  block->older = big_newest;
  if (big_newest) big_newest->newer = block;
  big_newest = block;
  if (!big_oldest) big_oldest = block;
  big_bytes += block->size;
}

// Takes blocks out, the oldest first, until no more than |keep_bytes| are left and none was freed
// before |since_ns|. A list by class_next.
static big_block_t* big_evict_locked(size_t keep_bytes, int64_t since_ns) WEIR_REQUIRES(big_mu);
static big_block_t* big_evict_locked(size_t keep_bytes, int64_t since_ns) {
  big_block_t* evicted = NULL;
  while (big_oldest && (big_bytes > keep_bytes || big_oldest->freed_ns < since_ns)) {
    big_block_t* oldest = big_oldest;
    big_unlink_locked(oldest);
    oldest->class_next = evicted;
    evicted = oldest;
  }
  return evicted;
}

// Returning pages to the system takes long: not under the lock.
static void big_free(big_block_t* evicted) {
  while (evicted) {
    big_block_t* next = evicted->class_next;
    weir_free(evicted);
    evicted = next;
  }
}

static void* big_take(size_t class_size) {
  big_block_t* evicted = NULL;
  weir_mutex_lock(&big_mu);
  big_block_t* block = big_lists[big_class(class_size)];
  if (block) big_unlink_locked(block);
  else if (big_oldest) evicted = big_evict_locked(SIZE_MAX, weir_clock_ns() - BIG_IDLE_NS);
  weir_mutex_unlock(&big_mu);
  big_free(evicted);
  return block;
}

static void big_give(void* pointer, size_t class_size) {
  big_block_t* block = pointer;
  block->size = class_size;
  block->freed_ns = weir_clock_ns();
  weir_mutex_lock(&big_mu);
  big_link_locked(block);
  big_block_t* evicted = big_evict_locked(BIG_KEEP_BYTES, INT64_MIN);
  weir_mutex_unlock(&big_mu);
  big_free(evicted);
}

// Gives all cached big blocks back to the system; true when there were any.
static bool big_trim(void) {
  weir_mutex_lock(&big_mu);
  big_block_t* block = big_newest;
  memset(big_lists, 0, sizeof(big_lists));
  big_newest = big_oldest = NULL;
  big_bytes = 0;
  weir_mutex_unlock(&big_mu);
  bool had_any = block != NULL;
  while (block) {
    big_block_t* older = block->older;
    weir_free(block);
    block = older;
  }
  return had_any;
}

// ---- the allocator ----

// Asks for huge pages where the block covers them whole, so that it takes no more memory: one fault
// instead of 512, and the kernel copies them between processes several times faster.
static void advise_huge(void* pointer, size_t size) {
#ifdef MADV_HUGEPAGE
  (void)madvise(pointer, size & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);  // a kernel without them refuses
#else
  (void)pointer;
  (void)size;
#endif
}

// From the process allocator, in the end at the cost of what is cached.
static void* alloc_fresh(size_t size, size_t alignment) {
  size_t whole = block_size(size);
  bool is_huge = WEIR_HOST_CACHE && size >= HUGE_MIN;
  alignment = WEIR_MAX(alignment, is_huge ? HUGE_PAGE : MIN_ALIGNMENT);
  void* pointer = weir_aligned_malloc(whole, alignment);
  if (!pointer && !weir_alloc_faults_on() && big_trim())
    pointer = weir_aligned_malloc(whole, alignment);
  if (pointer) account_any((int64_t)size);
  if (pointer && is_huge) advise_huge(pointer, size);
  return pointer;
}

static __attribute__((noinline)) void* alloc_slow(size_t size, size_t alignment) {
  if (size > (size_t)PTRDIFF_MAX) return NULL;
  if (!WEIR_HOST_CACHE || weir_alloc_faults_on()) return alloc_fresh(size, alignment);
  if (size <= SMALL_MAX) {
    thread_cache_t* cache = get_thread_cache();
    if (cache) make_room(cache, small_class(size));
    return alloc_fresh(size, alignment);
  }
  if (alignment > MIN_ALIGNMENT || size > (size_t)1 << BIG_MAX_LOG2)
    return alloc_fresh(size, alignment);
  void* pointer = big_take(big_class_size(size));
  if (!pointer) return alloc_fresh(size, alignment);
  account_any((int64_t)size);
  return pointer;
}

static void* host_alloc(weir_allocator_t* self, size_t size, size_t alignment) {
  (void)self;
  thread_cache_t* cache = thread_cache;
  if (WEIR_UNLIKELY(size > SMALL_MAX || alignment > MIN_ALIGNMENT || !cache ||
                    weir_alloc_faults_on())) {
    return alloc_slow(size, alignment);
  }
  size_t class_index = small_class(size);
  free_block_t* block = cache->blocks[class_index];
  if (WEIR_UNLIKELY(!block)) return alloc_slow(size, alignment);
  cache->blocks[class_index] = block->next;
  ++cache->room[class_index];
  account_small(cache, (int64_t)size);
  return block;
}

static __attribute__((noinline)) void free_slow(void* pointer, size_t size) {
  if (!pointer) return;
  thread_cache_t* cache = WEIR_HOST_CACHE && !weir_alloc_faults_on() ? get_thread_cache() : NULL;
  account_any(-(int64_t)size);
  if (WEIR_HOST_CACHE && !weir_alloc_faults_on()) {
    if (size > SMALL_MAX && size <= (size_t)1 << BIG_MAX_LOG2) {
      big_give(pointer, big_class_size(size));
      return;
    }
    size_t class_index = size <= SMALL_MAX ? small_class(size) : 0;
    if (cache && size <= SMALL_MAX && cache->room[class_index] > 0) {
      free_block_t* block = pointer;
      --cache->room[class_index];
      block->next = cache->blocks[class_index];
      cache->blocks[class_index] = block;
      return;
    }
  }
  weir_free(pointer);
}

static void host_free(weir_allocator_t* self, void* pointer, size_t size) {
  (void)self;
  thread_cache_t* cache = thread_cache;
  if (WEIR_UNLIKELY(size > SMALL_MAX || !cache || !pointer || weir_alloc_faults_on())) {
    free_slow(pointer, size);
    return;
  }
  size_t class_index = small_class(size);
  if (WEIR_UNLIKELY(cache->room[class_index] == 0)) {
    free_slow(pointer, size);
    return;
  }
  free_block_t* block = pointer;
  --cache->room[class_index];
  block->next = cache->blocks[class_index];
  cache->blocks[class_index] = block;
  account_small(cache, -(int64_t)size);
}

static const weir_allocator_vtable_t host_vtable = {.alloc = host_alloc, .free = host_free};
const weir_space_t weir_host_space = {.device = NULL};
weir_allocator_t weir_host_memory = {.vtable = &host_vtable, .space = &weir_host_space};

int64_t weir_host_allocator_bytes(void) {
  if (thread_cache) flush_account(thread_cache);
  int64_t bytes = atomic_load_explicit(&bytes_in_use, memory_order_relaxed);
  return WEIR_MAX(bytes, 0);
}

int64_t weir_host_allocator_peak(void) {
  if (thread_cache) flush_account(thread_cache);
  return atomic_load_explicit(&bytes_peak, memory_order_relaxed);
}

void weir_host_allocator_reset_peak(void) {
  atomic_store_explicit(&bytes_peak, weir_host_allocator_bytes(), memory_order_relaxed);
}
