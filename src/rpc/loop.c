// loop.c — The io threads: epoll, tasks from other threads, timers, and the turn that runs them.
#include "rpc/loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/outcome.h"
#include "rpc/loop_internal.h"

#define MAX_THREADS 64

static _Thread_local weir_rpc_thread_t* current_thread;

weir_rpc_thread_t* weir_rpc_loop_thread(weir_rpc_loop_t* loop, int index) {
  return &loop->threads[index];
}
int weir_rpc_loop_thread_count(const weir_rpc_loop_t* loop) { return loop->thread_count; }
weir_rpc_loop_t* weir_rpc_thread_loop(weir_rpc_thread_t* thread) { return thread->loop; }
bool weir_rpc_on_thread(const weir_rpc_thread_t* thread) { return current_thread == thread; }
bool weir_rpc_on_any_thread(void) { return current_thread != NULL; }
uint8_t* weir_rpc_thread_spill(weir_rpc_thread_t* thread) { return thread->spill; }

weir_rpc_thread_t* weir_rpc_loop_pick_thread(weir_rpc_loop_t* loop) {
  unsigned turn =
      atomic_fetch_add_explicit(&loop->turn, 1, memory_order_relaxed);  // a counter only
  return &loop->threads[turn % (unsigned)loop->thread_count];
}

// ---- tasks ----
void weir_rpc_post(weir_rpc_thread_t* thread, weir_rpc_task_t* task) {
  task->next = NULL;
  weir_mutex_lock(&thread->mu);
  if (thread->last_task) thread->last_task->next = task;
  else thread->tasks = task;
  thread->last_task = task;
  bool must_wake = thread->is_asleep;
  thread->is_asleep = false;
  weir_mutex_unlock(&thread->mu);
  if (!must_wake) return;
  uint64_t one = 1;
  // A full counter wakes as well; there is no other way for this write to fail.
  while (write(thread->wake.fd, &one, sizeof(one)) < 0 && errno == EINTR) continue;
}

typedef struct errand_t {
  weir_rpc_task_t task;
  void (*fn)(void* arg);
  void* arg;
  weir_outcome_t outcome;
} errand_t;

static void run_errand(weir_rpc_task_t* task) {
  errand_t* errand = (errand_t*)task;
  errand->fn(errand->arg);
  weir_outcome_set(&errand->outcome, NULL);
}

void weir_rpc_run_on(weir_rpc_thread_t* thread, void (*fn)(void* arg), void* arg) {
  WEIR_CHECK(!weir_rpc_on_any_thread());
  errand_t errand = {.task.run = run_errand, .fn = fn, .arg = arg};
  weir_outcome_init(&errand.outcome);
  weir_rpc_post(thread, &errand.task);
  weir_status_destroy(weir_outcome_wait(&errand.outcome));  // there is none
}

static void run_tasks(weir_rpc_thread_t* thread) {
  weir_mutex_lock(&thread->mu);
  weir_rpc_task_t* task = thread->tasks;
  thread->tasks = thread->last_task = NULL;
  weir_mutex_unlock(&thread->mu);
  while (task) {
    weir_rpc_task_t* next = task->next;  // |task| may be gone after it ran
    task->run(task);
    task = next;
  }
}

static void drain_wake(weir_rpc_watch_t* watch, uint32_t events) {
  (void)events;
  uint64_t count;
  while (read(watch->fd, &count, sizeof(count)) < 0 && errno == EINTR) continue;
}

// ---- timers: a binary heap, earliest first ----
static void place_timer(weir_rpc_thread_t* thread, size_t place, weir_rpc_timer_t* timer) {
  thread->timers[place - 1] = timer;
  timer->place = place;
}

static void sift_up(weir_rpc_thread_t* thread, size_t place, weir_rpc_timer_t* timer) {
  while (place > 1) {
    weir_rpc_timer_t* parent = thread->timers[place / 2 - 1];
    if (parent->deadline_ns <= timer->deadline_ns) break;
    place_timer(thread, place, parent);
    place /= 2;
  }
  place_timer(thread, place, timer);
}

static void sift_down(weir_rpc_thread_t* thread, size_t place, weir_rpc_timer_t* timer) {
  for (;;) {
    size_t child = place * 2;
    if (child > thread->timer_count) break;
    if (child < thread->timer_count &&
        thread->timers[child]->deadline_ns < thread->timers[child - 1]->deadline_ns)
      ++child;
    if (timer->deadline_ns <= thread->timers[child - 1]->deadline_ns) break;
    place_timer(thread, place, thread->timers[child - 1]);
    place = child;
  }
  place_timer(thread, place, timer);
}

bool weir_rpc_timer_set(weir_rpc_thread_t* thread, weir_rpc_timer_t* timer, int64_t deadline_ns) {
  weir_rpc_timer_clear(thread, timer);
  if (!WEIR_GROW(thread->timers, thread->timer_capacity, thread->timer_count + 1)) return false;
  timer->deadline_ns = deadline_ns;
  sift_up(thread, ++thread->timer_count, timer);
  return true;
}

void weir_rpc_timer_clear(weir_rpc_thread_t* thread, weir_rpc_timer_t* timer) {
  if (!timer->place) return;
  size_t place = timer->place;
  timer->place = 0;
  weir_rpc_timer_t* last = thread->timers[--thread->timer_count];
  if (last == timer) return;
  // The last one takes the free place, then moves to where it belongs, up or down.
  if (place > 1 && thread->timers[place / 2 - 1]->deadline_ns > last->deadline_ns)
    sift_up(thread, place, last);
  else sift_down(thread, place, last);
}

static void run_timers(weir_rpc_thread_t* thread) {
  if (!thread->timer_count) return;
  int64_t now = weir_clock_ns();
  while (thread->timer_count && thread->timers[0]->deadline_ns <= now) {
    weir_rpc_timer_t* timer = thread->timers[0];
    weir_rpc_timer_clear(thread, timer);
    timer->fire(timer);
  }
}

// ---- file descriptors ----
weir_status_t* weir_rpc_watch_add(weir_rpc_thread_t* thread, weir_rpc_watch_t* watch) {
  struct epoll_event event = {.events = watch->events, .data.ptr = watch};
  if (epoll_ctl(thread->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) == 0) return NULL;
  return WEIR_STATUS(INTERNAL, "cannot watch a file descriptor: %s", strerror(errno));
}

void weir_rpc_watch_change(weir_rpc_thread_t* thread, weir_rpc_watch_t* watch, uint32_t events) {
  if (watch->events == events) return;
  watch->events = events;
  struct epoll_event event = {.events = events, .data.ptr = watch};
  WEIR_CHECK(epoll_ctl(thread->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) == 0);
}

void weir_rpc_watch_remove(weir_rpc_thread_t* thread, weir_rpc_watch_t* watch) {
  WEIR_CHECK(epoll_ctl(thread->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL) == 0);
  for (int i = thread->event_next; i < thread->event_count; ++i) {
    if (thread->events[i].data.ptr == watch) thread->events[i].data.ptr = NULL;
  }
}

// ---- deferred work ----
void weir_rpc_defer(weir_rpc_thread_t* thread, weir_rpc_deferred_t* deferred) {
  if (deferred->is_queued) return;
  deferred->is_queued = true;
  deferred->next = thread->deferred;
  thread->deferred = deferred;
}

void weir_rpc_defer_remove(weir_rpc_thread_t* thread, weir_rpc_deferred_t* deferred) {
  if (!deferred->is_queued) return;
  weir_rpc_deferred_t** link = &thread->deferred;
  while (*link != deferred) link = &(*link)->next;
  *link = deferred->next;
  deferred->is_queued = false;
}

static void run_deferred(weir_rpc_thread_t* thread) {
  while (thread->deferred) {
    weir_rpc_deferred_t* deferred = thread->deferred;
    thread->deferred = deferred->next;
    deferred->is_queued = false;
    deferred->run(deferred);
  }
}

// ---- the thread ----
// Milliseconds until the next timer, rounded up; -1 without one.
static int next_timeout(const weir_rpc_thread_t* thread) {
  if (!thread->timer_count) return -1;
  int64_t left = thread->timers[0]->deadline_ns - weir_clock_ns();
  if (left <= 0) return 0;
  return (int)WEIR_MIN((left + 999999) / 1000000, (int64_t)3600000);
}

// Says that a post has to wake this thread. False when there is work already.
static bool fall_asleep(weir_rpc_thread_t* thread) {
  weir_mutex_lock(&thread->mu);
  thread->is_asleep = thread->tasks == NULL;
  bool is_asleep = thread->is_asleep;
  weir_mutex_unlock(&thread->mu);
  return is_asleep;
}

static int wait_events(weir_rpc_thread_t* thread) {
  if (!fall_asleep(thread)) {  // sockets must not starve behind tasks that beget tasks
    int count = epoll_wait(thread->epoll_fd, thread->events, WEIR_RPC_EVENT_COUNT, 0);
    return WEIR_MAX(count, 0);
  }
  int count = 0;
  if (thread->loop->spin_us > 0) {
    int64_t end = weir_clock_ns() + thread->loop->spin_us * (int64_t)1000;
    do {
      count = epoll_wait(thread->epoll_fd, thread->events, WEIR_RPC_EVENT_COUNT, 0);
    } while (count == 0 && weir_clock_ns() < end);
  }
  if (count == 0)
    count =
        epoll_wait(thread->epoll_fd, thread->events, WEIR_RPC_EVENT_COUNT, next_timeout(thread));
  weir_mutex_lock(&thread->mu);
  thread->is_asleep = false;
  weir_mutex_unlock(&thread->mu);
  return WEIR_MAX(count, 0);  // EINTR is an empty turn
}

static void* thread_main(void* arg) {
  weir_rpc_thread_t* thread = arg;
  current_thread = thread;
  // Signals belong to the program's threads; above all, OpenSSL writes to sockets in a way that
  // raises SIGPIPE when the peer is gone.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  while (!thread->is_stopping) {
    run_tasks(thread);
    run_timers(thread);
    run_deferred(thread);
    if (thread->is_stopping) break;
    thread->event_count = wait_events(thread);
    for (thread->event_next = 0; thread->event_next < thread->event_count;) {
      const struct epoll_event* event = &thread->events[thread->event_next++];
      weir_rpc_watch_t* watch = event->data.ptr;
      if (watch) watch->ready(watch, event->events);
    }
    thread->event_count = 0;
  }
  return NULL;
}

static void stop_thread(weir_rpc_task_t* task) {
  weir_rpc_thread_t* thread = (weir_rpc_thread_t*)((char*)task - offsetof(weir_rpc_thread_t, stop));
  thread->is_stopping = true;
}

static weir_status_t* thread_start(weir_rpc_loop_t* loop, weir_rpc_thread_t* thread) {
  thread->loop = loop;
  thread->wake.fd = -1;
  thread->epoll_fd = -1;
  weir_mutex_init(&thread->mu);
  weir_rpc_budget_thread_init(thread);
  thread->stop.run = stop_thread;
  thread->spill = weir_malloc(WEIR_RPC_SPILL_SIZE);
  if (!thread->spill) return weir_out_of_memory();
  thread->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
  if (thread->epoll_fd < 0) return WEIR_STATUS(INTERNAL, "epoll_create1: %s", strerror(errno));
  thread->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (thread->wake.fd < 0) return WEIR_STATUS(INTERNAL, "eventfd: %s", strerror(errno));
  thread->wake.events = EPOLLIN;
  thread->wake.ready = drain_wake;
  WEIR_TRY(weir_rpc_watch_add(thread, &thread->wake));
  int error = pthread_create(&thread->id, NULL, thread_main, thread);
  if (error) return WEIR_STATUS(RESOURCE_EXHAUSTED, "cannot start a thread: %s", strerror(error));
  thread->is_started = true;
  return NULL;
}

static void thread_stop(weir_rpc_thread_t* thread) {
  if (thread->is_started) {
    weir_rpc_post(thread, &thread->stop);
    pthread_join(thread->id, NULL);
  }
  WEIR_CHECK(thread->timer_count == 0 && !thread->deferred);
  if (thread->wake.fd >= 0) close(thread->wake.fd);
  if (thread->epoll_fd >= 0) close(thread->epoll_fd);
  weir_mutex_destroy(&thread->mu);
  weir_free(thread->timers);
  weir_free(thread->spill);
}

static uint64_t machine_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_size > 0 ? (uint64_t)pages * (uint64_t)page_size : 0;
}

weir_status_t* weir_rpc_loop_create(const weir_rpc_loop_options_t* options,
                                    weir_rpc_loop_t** out_loop) {
  int count = options && options->thread_count ? options->thread_count : 1;
  if (count < 1 || count > MAX_THREADS) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%d io threads; 1 to %d are possible", count, MAX_THREADS);
  }
  weir_rpc_loop_t* loop = weir_calloc(1, sizeof(*loop) + (size_t)count * sizeof(loop->threads[0]));
  if (!loop) return weir_out_of_memory();
  loop->budget_limit =
      options && options->memory_budget ? options->memory_budget : machine_memory();
  int stall_ms = options && options->stall_timeout_ms ? options->stall_timeout_ms : 60000;
  loop->stall_timeout_ns = stall_ms * (int64_t)1000000;
  loop->spin_us = options ? options->spin_us : 0;
  loop->thread_count = count;
  weir_status_t* status = NULL;
  for (int i = 0; i < count && !status; ++i) {
    status = thread_start(loop, &loop->threads[i]);
    if (status) loop->thread_count = i + 1;  // later ones were not initialised
  }
  if (status) {
    weir_rpc_loop_destroy(loop);
    return status;
  }
  *out_loop = loop;
  return NULL;
}

void weir_rpc_loop_destroy(weir_rpc_loop_t* loop) {
  if (!loop) return;
  WEIR_CHECK(!weir_rpc_on_any_thread());
  for (int i = 0; i < loop->thread_count; ++i) thread_stop(&loop->threads[i]);
  weir_free(loop);
}
