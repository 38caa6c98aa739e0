// pool.c — The thread pool: a queue of tasks, and loops whose chunks are claimed by an atomic
// counter.
//
// A loop is a record on its caller's stack. Workers join it under |mu| and leave it by decrementing
// |helpers|, their last touch; the caller runs chunks until none is left, unlinks the record, and
// waits for |helpers| to be 0. It thus only ever waits for chunks that are being run, so loops
// inside loops and tasks cannot wait for each other in a circle.
//
// An elastic pool also has a watcher (base/elastic.h). It sleeps when no task was queued for a
// while; otherwise it looks every WATCH_NS whether any task was taken since.
//
// After fork() the child has no worker threads. Every pool of the child then forgets what was
// queued (it is the parent's work) and runs everything on the caller, as a pool of one thread does.
// Forking inside a task or a loop is not supported, but does not hang.
#include <pthread.h>
#include <signal.h>

#include "base/alloc.h"
#include "base/elastic.h"
#include "base/interrupt.h"
#include "base/subnormal.h"

#define SPLIT_MIN_NS 20000.0  // a loop shorter than this runs on the caller
#define CHUNK_MIN_NS 10000.0  // the least work that pays for claiming a chunk and moving its data
#define CHUNK_MAX_NS 20000000.0  // the most work between two looks at an interrupt
#define CHUNKS_A_THREAD 4        // more chunks than threads even out chunks that take unequal times
#define CHUNK_ALIGNMENT 16       // items: two threads keep off one line, vector loops have no tails
#define WORKER_SPIN_NS 20000     // how long a worker looks for work before it sleeps
#define CALLER_SPIN_NS 50000     // how long a caller looks for its last helper before it sleeps
#define WATCH_NS 5000000         // how long tasks may wait before an elastic pool grows
#define WATCH_TICKS 200          // how many times nothing happens before the watcher sleeps
#define EXTRA_IDLE_NS 2000000000  // how long a thread beyond the pool's own waits for tasks

typedef struct task_t {
  weir_task_fn_t fn;
  void* arg;
} task_t;

typedef struct loop_t {
  weir_range_fn_t fn;
  void* arg;
  int64_t total;
  int64_t chunk_size;
  int64_t chunk_count;
  weir_interrupt_t* interrupt;   // its caller's; NULL: none
  weir_float_mode_t float_mode;  // its caller's: results do not depend on who helps
  _Atomic(int64_t) next_chunk;
  atomic_int helpers;   // workers inside this loop; incremented under the pool's mu
  bool is_linked;       // guarded by the pool's mu
  struct loop_t* next;  // guarded by the pool's mu
} loop_t;

struct weir_pool_t {
  int thread_count;  // with the caller; written at create and in a forked child only
  bool spins;        // more than one CPU
  weir_mutex_t mu;
  weir_cond_t work;       // something was queued, or |stop|
  weir_cond_t loop_done;  // some loop lost its last helper
  pthread_t* threads;     // guarded by mu; thread_count - 1 places
  int started;            // guarded by mu
  bool was_started;       // guarded by mu; starting was tried
  bool stop;              // guarded by mu
  int sleepers;           // guarded by mu
  task_t* tasks;          // guarded by mu; a ring
  size_t task_capacity;   // guarded by mu
  size_t task_head;       // guarded by mu
  size_t task_count;      // guarded by mu
  loop_t* loops;          // guarded by mu; the newest first
  atomic_int available;   // queued tasks + linked loops; written under mu, read by spinning workers
  atomic_int spinners;    // workers that look at |available|
  atomic_int waiters;     // callers asleep on |loop_done|
  atomic_bool is_forked;  // this is a copy in a child process
  int extra_limit;        // of an elastic pool, else 0; written before first use
  pthread_t watcher;      // guarded by mu
  bool has_watcher;       // guarded by mu
  bool is_watching;       // guarded by mu; the watcher is awake, or about to be
  weir_cond_t watch;      // a task waits, or |stop|
  int extra_count;        // guarded by mu; threads beyond |started|
  int extra_sleepers;     // guarded by mu
  weir_cond_t extra_work;  // for them: a task was queued, or |stop|
  weir_cond_t extra_gone;  // one of them ended
  uint64_t taken_count;    // guarded by mu; tasks taken from the queue so far
  bool is_stuck;           // guarded by mu; the pool's own threads left tasks waiting for a tick
  weir_pool_t* previous;   // guarded by registry_mu
  weir_pool_t* next;       // guarded by registry_mu
};

static inline void cpu_relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ __volatile__(
      "isb" ::
          : "memory");  // yield is a no-op on most cores; isb waits about as long as x86's pause
#endif
}

// ---- fork ----

static weir_mutex_t registry_mu = {PTHREAD_MUTEX_INITIALIZER};
static weir_pool_t* registry;  // guarded by registry_mu; all pools
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void init_locks(weir_pool_t* pool) {
  pthread_mutexattr_t attributes;
  WEIR_CHECK(pthread_mutexattr_init(&attributes) == 0);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
  // Critical sections are short: a contender had better spin than sleep.
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
  WEIR_CHECK(pthread_mutex_init(&pool->mu.raw, &attributes) == 0);
  pthread_mutexattr_destroy(&attributes);
  weir_cond_init(&pool->work);
  weir_cond_init(&pool->loop_done);
  weir_cond_init(&pool->watch);
  weir_cond_init(&pool->extra_work);
  weir_cond_init(&pool->extra_gone);
}

static void reset_forked(weir_pool_t* pool) {
  init_locks(pool);  // the old ones may be held by threads that do not exist here
  pool->thread_count = 1;
  pool->started = 0;
  pool->sleepers = 0;
  pool->has_watcher = pool->is_watching = false;
  pool->extra_limit = pool->extra_count = pool->extra_sleepers = 0;
  pool->tasks = NULL;  // may be half grown: left alone
  pool->task_capacity = pool->task_head = pool->task_count = 0;
  pool->loops = NULL;
  atomic_store(&pool->available, 0);
  atomic_store(&pool->spinners, 0);
  atomic_store(&pool->waiters, 0);
  atomic_store(&pool->is_forked, true);
}

WEIR_NO_THREAD_SAFETY static void before_fork(void) { weir_mutex_lock(&registry_mu); }
WEIR_NO_THREAD_SAFETY static void after_fork_parent(void) { weir_mutex_unlock(&registry_mu); }
WEIR_NO_THREAD_SAFETY static void after_fork_child(void) {
  for (weir_pool_t* pool = registry; pool; pool = pool->next) reset_forked(pool);
  weir_mutex_unlock(&registry_mu);
}
static void watch_fork(void) { pthread_atfork(before_fork, after_fork_parent, after_fork_child); }

static void register_pool(weir_pool_t* pool) {
  pthread_once(&fork_once, watch_fork);
  weir_mutex_lock(&registry_mu);
  pool->next = registry;
  if (registry) registry->previous = pool;
  registry = pool;
  weir_mutex_unlock(&registry_mu);
}

static void unregister_pool(weir_pool_t* pool) {
  weir_mutex_lock(&registry_mu);
  if (pool->previous) {
    pool->previous->next = pool->next;
  } else {
    registry = pool->next;
  }
  if (pool->next) pool->next->previous = pool->previous;
  weir_mutex_unlock(&registry_mu);
}

// ---- loops ----

static bool loop_is_exhausted(loop_t* loop) {
  // Relaxed: only decides whether to try; claiming decides who runs what.
  return atomic_load_explicit(&loop->next_chunk, memory_order_relaxed) >= loop->chunk_count;
}

static void run_chunks(loop_t* loop) {
  for (;;) {
    if (loop->interrupt && weir_interrupt_look(loop->interrupt)) {
      // Relaxed: nobody reads what the chunks that are left out would have made.
      atomic_store_explicit(&loop->next_chunk, loop->chunk_count, memory_order_relaxed);
      return;
    }
    // Relaxed: a claim needs to be unique, not ordered; |mu| and |helpers| order the data.
    int64_t chunk = atomic_fetch_add_explicit(&loop->next_chunk, 1, memory_order_relaxed);
    if (chunk >= loop->chunk_count) return;
    int64_t begin = chunk * loop->chunk_size;
    int64_t end = WEIR_MIN(begin + loop->chunk_size, loop->total);
    loop->fn(loop->arg, begin, end);
  }
}

static void unlink_locked(weir_pool_t* pool, loop_t* loop) WEIR_REQUIRES(pool->mu);
static void unlink_locked(weir_pool_t* pool, loop_t* loop) {
  loop_t** link = &pool->loops;
  while (*link && *link != loop) link = &(*link)->next;
  loop->is_linked = false;
  if (!*link) return;  // forgotten by a fork
  *link = loop->next;
  atomic_fetch_sub(&pool->available, 1);
}

// Joins a loop that has chunks left; drops those that have none, so that spinning workers stop
// seeing them.
static loop_t* join_locked(weir_pool_t* pool) WEIR_REQUIRES(pool->mu);
static loop_t* join_locked(weir_pool_t* pool) {
  while (pool->loops && loop_is_exhausted(pool->loops)) unlink_locked(pool, pool->loops);
  for (loop_t* loop = pool->loops; loop; loop = loop->next) {
    if (loop_is_exhausted(loop)) continue;
    atomic_fetch_add(&loop->helpers, 1);
    return loop;
  }
  return NULL;
}

static void help(weir_pool_t* pool, loop_t* loop) {
  const weir_float_mode_t own_mode = weir_float_mode();
  weir_interrupt_t* before = weir_interrupt_set(loop->interrupt);
  weir_float_mode_restore(loop->float_mode);
  run_chunks(loop);
  weir_float_mode_restore(own_mode);
  weir_interrupt_set(before);
  // After this decrement |loop| may be gone. Sequentially consistent, as is the caller's increment
  // of |waiters| before it looks at |helpers|: one of the two sees the other.
  if (atomic_fetch_sub(&loop->helpers, 1) == 1 && atomic_load(&pool->waiters) > 0) {
    weir_mutex_lock(&pool->mu);
    weir_cond_broadcast(&pool->loop_done);
    weir_mutex_unlock(&pool->mu);
  }
}

static bool spin_for_helpers(const weir_pool_t* pool, loop_t* loop) {
  if (atomic_load(&loop->helpers) == 0) return true;
  if (!pool->spins) return false;
  int64_t deadline = weir_clock_ns() + CALLER_SPIN_NS;
  do {
    for (int i = 0; i < 32; ++i) {
      if (atomic_load(&loop->helpers) == 0) return true;
      cpu_relax();
    }
  } while (weir_clock_ns() < deadline);
  return false;
}

static void wait_for_helpers(weir_pool_t* pool, loop_t* loop) {
  if (spin_for_helpers(pool, loop)) return;
  weir_mutex_lock(&pool->mu);
  atomic_fetch_add(&pool->waiters, 1);
  while (atomic_load(&loop->helpers) > 0 && !atomic_load(&pool->is_forked))
    weir_cond_wait(&pool->loop_done, &pool->mu);
  atomic_fetch_sub(&pool->waiters, 1);
  weir_mutex_unlock(&pool->mu);
}

// ---- tasks ----

static bool push_task_locked(weir_pool_t* pool, task_t task) WEIR_REQUIRES(pool->mu);
static bool push_task_locked(weir_pool_t* pool, task_t task) {
  if (pool->task_count == pool->task_capacity) {
    size_t capacity = pool->task_capacity ? pool->task_capacity * 2 : 64;
    task_t* tasks = weir_alloc_array(capacity, sizeof(*tasks));
    if (!tasks) return false;
    for (size_t i = 0; i < pool->task_count; ++i) {
      tasks[i] = pool->tasks[(pool->task_head + i) & (pool->task_capacity - 1)];
    }
    weir_free(pool->tasks);
    pool->tasks = tasks;
    pool->task_capacity = capacity;
    pool->task_head = 0;
  }
  pool->tasks[(pool->task_head + pool->task_count) & (pool->task_capacity - 1)] = task;
  ++pool->task_count;
  atomic_fetch_add(&pool->available, 1);
  return true;
}

static bool pop_task_locked(weir_pool_t* pool, task_t* out_task) WEIR_REQUIRES(pool->mu);
static bool pop_task_locked(weir_pool_t* pool, task_t* out_task) {
  if (pool->task_count == 0) return false;
  *out_task = pool->tasks[pool->task_head];
  pool->task_head = (pool->task_head + 1) & (pool->task_capacity - 1);
  --pool->task_count;
  ++pool->taken_count;
  atomic_fetch_sub(&pool->available, 1);
  return true;
}

// ---- workers ----

// How many sleepers to wake so that |wanted| workers come, given that spinning ones come by
// themselves.
static int wake_count_locked(weir_pool_t* pool, int64_t wanted) WEIR_REQUIRES(pool->mu);
static int wake_count_locked(weir_pool_t* pool, int64_t wanted) {
  int64_t missing = wanted - atomic_load(&pool->spinners);
  return missing <= 0 ? 0 : (int)WEIR_MIN(missing, (int64_t)pool->sleepers);
}

static void wake(weir_pool_t* pool, int count) {
  if (count > 2) {
    weir_cond_broadcast(&pool->work);  // one system call; those who find nothing sleep again
    return;
  }
  for (int i = 0; i < count; ++i) weir_cond_signal(&pool->work);
}

bool weir_pool_assist(weir_pool_t* pool) {
  // Relaxed: a hint; what is there is read under |mu|.
  if (!pool || atomic_load_explicit(&pool->available, memory_order_relaxed) == 0) return false;
  weir_mutex_lock(&pool->mu);
  loop_t* loop = join_locked(pool);
  weir_mutex_unlock(&pool->mu);
  if (loop) help(pool, loop);
  return loop != NULL;
}

// Runs one loop or task. False when there is none.
static bool run_one(weir_pool_t* pool) {
  task_t task = {0};
  weir_mutex_lock(&pool->mu);
  loop_t* loop = join_locked(pool);
  bool has_task = !loop && pop_task_locked(pool, &task);
  pool->is_stuck = false;
  // The spinner that a submit counted on may be this worker, now busy elsewhere: pass the call on.
  int more = loop || has_task ? wake_count_locked(pool, (int64_t)pool->task_count) : 0;
  weir_mutex_unlock(&pool->mu);
  if (more > 0) wake(pool, 1);
  if (loop) {
    help(pool, loop);
  } else if (has_task) {
    task.fn(task.arg);
  }
  return loop || has_task;
}

static void spin_for_work(weir_pool_t* pool) {
  if (!pool->spins) return;
  atomic_fetch_add(&pool->spinners, 1);
  int64_t deadline = weir_clock_ns() + WORKER_SPIN_NS;
  bool is_over = false;
  while (!is_over) {
    for (int i = 0; i < 32 && !is_over; ++i) {
      // Relaxed: a hint; what is there is read under |mu|.
      is_over = atomic_load_explicit(&pool->available, memory_order_relaxed) > 0;
      cpu_relax();
    }
    is_over = is_over || weir_clock_ns() >= deadline;
  }
  atomic_fetch_sub(&pool->spinners, 1);
}

// Sleeps until there is something to do. False when the pool ends and nothing is left.
static bool sleep_for_work(weir_pool_t* pool) {
  weir_mutex_lock(&pool->mu);
  ++pool->sleepers;
  while (atomic_load(&pool->available) == 0 && !pool->stop) weir_cond_wait(&pool->work, &pool->mu);
  --pool->sleepers;
  bool goes_on = atomic_load(&pool->available) > 0 || !pool->stop;
  weir_mutex_unlock(&pool->mu);
  return goes_on;
}

static void* worker_main(void* arg) {
  weir_pool_t* pool = arg;
  weir_flush_subnormals();
  for (;;) {
    while (run_one(pool)) {
    }
    spin_for_work(pool);
    if (run_one(pool)) continue;
    if (!sleep_for_work(pool)) return NULL;
  }
}

static bool start_thread(weir_pool_t* pool, void* (*main)(void* pool), pthread_t* out_thread) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // signals are for the program's own threads
  bool is_started = pthread_create(out_thread, NULL, main, pool) == 0;
  if (is_started) pthread_setname_np(*out_thread, "weir-pool");
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return is_started;
}

static void start_threads_locked(weir_pool_t* pool) WEIR_REQUIRES(pool->mu);
static void start_threads_locked(weir_pool_t* pool) {
  pool->was_started = true;
  pool->threads = weir_calloc((size_t)pool->thread_count - 1, sizeof(*pool->threads));
  if (!pool->threads) return;
  while (pool->started < pool->thread_count - 1) {
    if (!start_thread(pool, worker_main, &pool->threads[pool->started])) break;  // fewer have to do
    ++pool->started;
  }
}

static bool has_workers_locked(weir_pool_t* pool) WEIR_REQUIRES(pool->mu);
static bool has_workers_locked(weir_pool_t* pool) {
  if (!pool->was_started) start_threads_locked(pool);
  return pool->started > 0;
}

// ---- threads beyond the pool's own ----

// Only for tasks that the pool's own threads leave waiting: else it would compute beside them.
static bool is_needed_locked(const weir_pool_t* pool) WEIR_REQUIRES(pool->mu);
static bool is_needed_locked(const weir_pool_t* pool) {
  return pool->task_count > 0 && (pool->is_stuck || pool->stop);
}

static bool wait_for_task_locked(weir_pool_t* pool) WEIR_REQUIRES(pool->mu);
static bool wait_for_task_locked(weir_pool_t* pool) {
  int64_t deadline = weir_clock_ns() + EXTRA_IDLE_NS;
  bool is_in_time = true;
  ++pool->extra_sleepers;
  while (!is_needed_locked(pool) && !pool->stop && is_in_time)
    is_in_time = weir_cond_wait_until(&pool->extra_work, &pool->mu, deadline);
  --pool->extra_sleepers;
  return is_needed_locked(pool);
}

static void* extra_main(void* arg) {
  weir_pool_t* pool = arg;
  task_t task = {0};
  weir_flush_subnormals();
  weir_mutex_lock(&pool->mu);
  while (wait_for_task_locked(pool)) {
    (void)pop_task_locked(pool, &task);
    weir_mutex_unlock(&pool->mu);
    task.fn(task.arg);
    weir_mutex_lock(&pool->mu);
  }
  --pool->extra_count;
  weir_cond_broadcast(&pool->extra_gone);  // under the lock: the pool may be gone after it
  weir_mutex_unlock(&pool->mu);
  return NULL;
}

static void add_extra_locked(weir_pool_t* pool) WEIR_REQUIRES(pool->mu);
static void add_extra_locked(weir_pool_t* pool) {
  pthread_t thread;
  if (!start_thread(pool, extra_main, &thread)) return;
  pthread_detach(thread);
  ++pool->extra_count;
}

// Tasks wait, and none was taken for a tick.
static void call_extra_locked(weir_pool_t* pool) WEIR_REQUIRES(pool->mu);
static void call_extra_locked(weir_pool_t* pool) {
  pool->is_stuck = true;
  if (pool->extra_sleepers > 0) weir_cond_signal(&pool->extra_work);
  else if (pool->extra_count < pool->extra_limit) add_extra_locked(pool);
}

// Waits for a tick to pass. False when the pool ends.
static bool watch_a_tick_locked(weir_pool_t* pool) WEIR_REQUIRES(pool->mu);
static bool watch_a_tick_locked(weir_pool_t* pool) {
  int64_t deadline = weir_clock_ns() + WATCH_NS;
  while (!pool->stop && weir_cond_wait_until(&pool->watch, &pool->mu, deadline)) {
  }
  return !pool->stop;
}

static void* watcher_main(void* arg) {
  weir_pool_t* pool = arg;
  uint64_t seen = 0;
  int idle_ticks = 0;
  weir_mutex_lock(&pool->mu);
  while (watch_a_tick_locked(pool)) {
    bool is_stuck = pool->task_count > 0 && pool->taken_count == seen;
    idle_ticks = pool->taken_count == seen && !is_stuck ? idle_ticks + 1 : 0;
    seen = pool->taken_count;
    if (is_stuck) call_extra_locked(pool);
    pool->is_watching = idle_ticks < WATCH_TICKS;
    while (!pool->is_watching && !pool->stop) weir_cond_wait(&pool->watch, &pool->mu);
  }
  weir_mutex_unlock(&pool->mu);
  return NULL;
}

// A task was queued. Wakes an idle extra thread if the pool's own are stuck, and sees to it that
// someone watches over the task.
static void watch_locked(weir_pool_t* pool) WEIR_REQUIRES(pool->mu);
static void watch_locked(weir_pool_t* pool) {
  if (pool->is_stuck && pool->extra_sleepers > 0) weir_cond_signal(&pool->extra_work);
  if (pool->is_watching) return;
  pool->is_watching = true;
  if (pool->has_watcher) weir_cond_signal(&pool->watch);
  else pool->has_watcher = start_thread(pool, watcher_main, &pool->watcher);
}

void weir_pool_make_elastic(weir_pool_t* pool, int limit) { pool->extra_limit = limit; }

static void end_extras(weir_pool_t* pool, pthread_t watcher, bool has_watcher) {
  if (has_watcher) WEIR_CHECK(pthread_join(watcher, NULL) == 0);
  weir_mutex_lock(&pool->mu);
  while (pool->extra_count > 0) weir_cond_wait(&pool->extra_gone, &pool->mu);
  weir_mutex_unlock(&pool->mu);
}

// ---- the pool ----

weir_status_t* weir_pool_create(int thread_count, weir_pool_t** out_pool) {
  if (thread_count < 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "thread count must not be negative, got %d", thread_count);
  weir_pool_t* pool = weir_calloc(1, sizeof(*pool));
  if (!pool) return weir_out_of_memory();
  int cpu_count = weir_cpu_count();
  pool->thread_count = thread_count ? thread_count : cpu_count;
  pool->spins = cpu_count > 1;
  init_locks(pool);
  register_pool(pool);
  *out_pool = pool;
  return NULL;
}

void weir_pool_destroy(weir_pool_t* pool) {
  if (!pool) return;
  weir_mutex_lock(&pool->mu);
  pool->stop = true;
  weir_cond_broadcast(&pool->work);
  weir_cond_broadcast(&pool->watch);
  weir_cond_broadcast(&pool->extra_work);
  int started = pool->started;
  pthread_t watcher = pool->watcher;
  bool has_watcher = pool->has_watcher;
  weir_mutex_unlock(&pool->mu);
  end_extras(pool, watcher, has_watcher);
  for (int i = 0; i < started; ++i) WEIR_CHECK(pthread_join(pool->threads[i], NULL) == 0);
  unregister_pool(pool);
  weir_cond_destroy(&pool->extra_gone);
  weir_cond_destroy(&pool->extra_work);
  weir_cond_destroy(&pool->watch);
  weir_cond_destroy(&pool->loop_done);
  weir_cond_destroy(&pool->work);
  weir_mutex_destroy(&pool->mu);
  weir_free(pool->tasks);
  weir_free(pool->threads);
  weir_free(pool);
}

int weir_pool_thread_count(const weir_pool_t* pool) { return pool ? pool->thread_count : 1; }
int weir_pool_queued(weir_pool_t* pool) { return pool ? atomic_load(&pool->available) : 0; }

void weir_pool_submit(weir_pool_t* pool, weir_task_fn_t fn, void* arg) {
  if (weir_pool_thread_count(pool) > 1) {
    weir_mutex_lock(&pool->mu);
    bool is_queued = has_workers_locked(pool) && push_task_locked(pool, (task_t){fn, arg});
    int count = is_queued ? wake_count_locked(pool, (int64_t)pool->task_count) : 0;
    if (is_queued && pool->extra_limit > 0) watch_locked(pool);
    if (count > 0) wake(pool, 1);  // under the lock: once |fn| has run, the pool may be destroyed
    weir_mutex_unlock(&pool->mu);
    if (is_queued) return;
  }
  fn(arg);
}

// Items between two looks at an interrupt.
static int64_t most_items(double cost_ns) {
  double most = CHUNK_MAX_NS / cost_ns;
  return most > 1 ? most < (double)INT64_MAX ? (int64_t)most : INT64_MAX : 1;
}

// Items a chunk; |total| or more when splitting does not pay.
static int64_t choose_chunk_size(const weir_pool_t* pool, int64_t total, double cost_ns) {
  int threads = weir_pool_thread_count(pool);
  if (threads <= 1 || total <= 1 || !((double)total * cost_ns > SPLIT_MIN_NS)) return total;
  double paying = CHUNK_MIN_NS / cost_ns;  // < total / 2, by the test above
  int64_t even = total / ((int64_t)threads * CHUNKS_A_THREAD);
  int64_t size = WEIR_MAX(WEIR_MAX((int64_t)paying, WEIR_MIN(even, most_items(cost_ns))), 1);
  if (size >= CHUNK_ALIGNMENT * 4)
    size = (size + CHUNK_ALIGNMENT - 1) / CHUNK_ALIGNMENT * CHUNK_ALIGNMENT;
  return size;
}

// A loop that does not pay to split or has one thread only: in one go, unless it is long and may be
// interrupted.
static void run_here(int64_t total, double cost_ns, weir_range_fn_t fn, void* arg) {
  weir_interrupt_t* interrupt = weir_interrupt_current();
  bool is_long = (double)total * cost_ns > CHUNK_MAX_NS;
  int64_t size = interrupt && is_long ? most_items(cost_ns) : total;
  for (int64_t begin = 0; begin < total; begin += WEIR_MIN(size, total - begin)) {
    if (is_long && weir_interrupt_look(interrupt)) return;
    fn(arg, begin, begin + WEIR_MIN(size, total - begin));
  }
}

void weir_pool_for(weir_pool_t* pool, int64_t total, double cost_ns, weir_range_fn_t fn,
                   void* arg) {
  if (total <= 0) return;
  int64_t chunk_size = choose_chunk_size(pool, total, cost_ns);
  if (chunk_size >= total) {
    run_here(total, cost_ns, fn, arg);
    return;
  }
  loop_t loop = {.fn = fn,
                 .arg = arg,
                 .total = total,
                 .chunk_size = chunk_size,
                 .interrupt = weir_interrupt_current(),
                 .float_mode = weir_float_mode()};
  loop.chunk_count = total / chunk_size + (total % chunk_size != 0);
  atomic_init(&loop.next_chunk, 0);
  atomic_init(&loop.helpers, 0);
  int count = 0;
  weir_mutex_lock(&pool->mu);
  if (has_workers_locked(pool)) {
    loop.is_linked = true;
    loop.next = pool->loops;
    pool->loops = &loop;
    atomic_fetch_add(&pool->available, 1);
    count = wake_count_locked(pool, loop.chunk_count - 1);
  }
  weir_mutex_unlock(&pool->mu);
  if (count > 0) wake(pool, count);
  run_chunks(&loop);
  weir_mutex_lock(&pool->mu);
  if (loop.is_linked) unlink_locked(pool, &loop);
  weir_mutex_unlock(&pool->mu);
  wait_for_helpers(pool, &loop);
}

void weir_first_error_set(weir_first_error_t* first, weir_status_t* take_status) {
  weir_status_t* none = NULL;
  if (!atomic_compare_exchange_strong(&first->status, &none, take_status))
    weir_status_destroy(take_status);
}
