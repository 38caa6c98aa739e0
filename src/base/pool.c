// pool.c — The thread pool: a queue of tasks, and loops whose chunks are claimed by an atomic
// counter.
//
// A loop is a record on its caller's stack. Workers join it under |mu| and leave it by decrementing
// |helpers|, their last touch; the caller runs chunks until none is left, unlinks the record, and
// waits for |helpers| to be 0. It thus only ever waits for chunks that are being run, so loops
// inside loops and tasks cannot wait for each other in a circle.
//
// After fork() the child has no worker threads. Every pool of the child then forgets what was
// queued (it is the parent's work) and runs everything on the caller, as a pool of one thread does.
// Forking inside a task or a loop is not supported, but does not hang.
#include <pthread.h>
#include <signal.h>

#include "base/alloc.h"
#include "base/thread.h"

#define SPLIT_MIN_NS 20000.0  // a loop shorter than this runs on the caller
#define CHUNK_MIN_NS 10000.0  // the least work that pays for claiming a chunk and moving its data
#define CHUNKS_A_THREAD 4     // more chunks than threads even out chunks that take unequal times
#define CHUNK_ALIGNMENT 16    // items: two threads keep off one line, vector loops have no tails
#define WORKER_SPIN_NS 20000  // how long a worker looks for work before it sleeps
#define CALLER_SPIN_NS 50000  // how long a caller looks for its last helper before it sleeps

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
  weir_pool_t* previous;  // guarded by registry_mu
  weir_pool_t* next;      // guarded by registry_mu
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
  // Critical sections are short: a contender had better spin than sleep.
  pthread_mutexattr_t attributes;
  WEIR_CHECK(pthread_mutexattr_init(&attributes) == 0);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
  WEIR_CHECK(pthread_mutex_init(&pool->mu.raw, &attributes) == 0);
  pthread_mutexattr_destroy(&attributes);
  weir_cond_init(&pool->work);
  weir_cond_init(&pool->loop_done);
}

static void reset_forked(weir_pool_t* pool) {
  init_locks(pool);  // the old ones may be held by threads that do not exist here
  pool->thread_count = 1;
  pool->started = 0;
  pool->sleepers = 0;
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
  run_chunks(loop);
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
  for (;;) {
    while (run_one(pool)) {
    }
    spin_for_work(pool);
    if (run_one(pool)) continue;
    if (!sleep_for_work(pool)) return NULL;
  }
}

static void start_threads_locked(weir_pool_t* pool) WEIR_REQUIRES(pool->mu);
static void start_threads_locked(weir_pool_t* pool) {
  pool->was_started = true;
  pool->threads = weir_calloc((size_t)pool->thread_count - 1, sizeof(*pool->threads));
  if (!pool->threads) return;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // signals are for the program's own threads
  while (pool->started < pool->thread_count - 1) {
    pthread_t* thread = &pool->threads[pool->started];
    if (pthread_create(thread, NULL, worker_main, pool) != 0) break;  // fewer have to do
    pthread_setname_np(*thread, "weir-pool");
    ++pool->started;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static bool has_workers_locked(weir_pool_t* pool) WEIR_REQUIRES(pool->mu);
static bool has_workers_locked(weir_pool_t* pool) {
  if (!pool->was_started) start_threads_locked(pool);
  return pool->started > 0;
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
  int started = pool->started;
  weir_mutex_unlock(&pool->mu);
  for (int i = 0; i < started; ++i) WEIR_CHECK(pthread_join(pool->threads[i], NULL) == 0);
  unregister_pool(pool);
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
    if (count > 0) wake(pool, 1);  // under the lock: once |fn| has run, the pool may be destroyed
    weir_mutex_unlock(&pool->mu);
    if (is_queued) return;
  }
  fn(arg);
}

// Items a chunk; |total| or more when splitting does not pay.
static int64_t choose_chunk_size(const weir_pool_t* pool, int64_t total, double cost_ns) {
  int threads = weir_pool_thread_count(pool);
  if (threads <= 1 || total <= 1 || !((double)total * cost_ns > SPLIT_MIN_NS)) return total;
  double paying = CHUNK_MIN_NS / cost_ns;  // < total / 2, by the test above
  int64_t even = total / ((int64_t)threads * CHUNKS_A_THREAD);
  int64_t size = WEIR_MAX(WEIR_MAX((int64_t)paying, even), 1);
  if (size >= CHUNK_ALIGNMENT * 4)
    size = (size + CHUNK_ALIGNMENT - 1) / CHUNK_ALIGNMENT * CHUNK_ALIGNMENT;
  return size;
}

void weir_pool_for(weir_pool_t* pool, int64_t total, double cost_ns, weir_range_fn_t fn,
                   void* arg) {
  if (total <= 0) return;
  int64_t chunk_size = choose_chunk_size(pool, total, cost_ns);
  if (chunk_size >= total) {
    fn(arg, 0, total);
    return;
  }
  loop_t loop = {.fn = fn, .arg = arg, .total = total, .chunk_size = chunk_size};
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
