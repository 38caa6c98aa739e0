// background.c — Threads that are started when none is idle, and end when they have been for long.
#include "ops/data/background.h"

#include <pthread.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/subnormal.h"

#define IDLE_NS 2000000000  // how long a thread waits for the next task

typedef struct idle_t {  // a thread that waits; on its stack
  weir_task_fn_t fn;     // guarded by mu; NULL: nothing yet
  void* arg;             // likewise
  weir_cond_t wake;
  struct idle_t* next;  // guarded by mu
} idle_t;

typedef struct first_t {
  weir_task_fn_t fn;
  void* arg;
} first_t;

static weir_mutex_t mu = {PTHREAD_MUTEX_INITIALIZER};
static idle_t* idle;  // guarded by mu; the one that began to wait last comes first
static pid_t owner;   // guarded by mu; whose threads |idle| are: a forked child has none

static void unlink_locked(idle_t* self) {
  idle_t** at = &idle;
  while (*at && *at != self) at = &(*at)->next;
  if (*at) *at = self->next;
}

// Waits for a task; false when none came for long.
static bool wait_for_task(idle_t* self) {
  self->fn = NULL;
  weir_mutex_lock(&mu);
  self->next = idle;
  idle = self;
  int64_t deadline = weir_clock_ns() + IDLE_NS;
  while (!self->fn && weir_cond_wait_until(&self->wake, &mu, deadline)) continue;
  if (!self->fn) unlink_locked(self);
  weir_mutex_unlock(&mu);
  return self->fn != NULL;
}

static void* thread_main(void* arg) {
  first_t first = *(first_t*)arg;
  weir_free(arg);
  weir_flush_subnormals();
  idle_t self = {.fn = NULL};
  weir_cond_init(&self.wake);
  first.fn(first.arg);
  while (wait_for_task(&self)) self.fn(self.arg);
  weir_cond_destroy(&self.wake);
  return NULL;
}

static bool give_to_idle(weir_task_fn_t fn, void* arg) {
  weir_mutex_lock(&mu);
  if (owner != getpid()) idle = NULL;
  owner = getpid();
  idle_t* thread = idle;
  if (thread) {
    idle = thread->next;
    thread->fn = fn;
    thread->arg = arg;
    weir_cond_signal(&thread->wake);
  }
  weir_mutex_unlock(&mu);
  return thread != NULL;
}

weir_status_t* weir_background_run(weir_task_fn_t fn, void* arg) {
  if (give_to_idle(fn, arg)) return NULL;
  first_t* first = weir_malloc(sizeof(*first));
  if (!first) return weir_out_of_memory();
  *first = (first_t){.fn = fn, .arg = arg};
  pthread_t thread;
  if (pthread_create(&thread, NULL, thread_main, first) != 0) {
    weir_free(first);
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "no thread could be started for an iterator");
  }
  pthread_detach(thread);
  return NULL;
}
