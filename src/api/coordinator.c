// coordinator.c — Coordinators: threads that stop together; the first error is what stopped them.
#include "api/coordinator.h"

#include <string.h>

#include "base/alloc.h"

typedef struct thread_t {
  weir_coordinator_t* coordinator;
  weir_thread_fn_t fn;
  void* arg;
} thread_t;

weir_status_t* weir_coordinator_create(weir_coordinator_t** out_coordinator) {
  WEIR_REQUIRE_ARG(out_coordinator);
  weir_coordinator_t* c = weir_calloc(1, sizeof(*c));
  if (!c) return weir_out_of_memory();
  weir_mutex_init(&c->mu);
  weir_cond_init(&c->changed);
  *out_coordinator = c;
  return NULL;
}

void weir_coordinator_destroy(weir_coordinator_t* c) {
  if (!c) return;
  weir_coordinator_request_stop(c, NULL);
  weir_status_destroy(weir_coordinator_join(c, -1));
  weir_cond_destroy(&c->changed);
  weir_mutex_destroy(&c->mu);
  weir_free(c->threads);
  weir_free(c);
}

void weir_coordinator_request_stop(weir_coordinator_t* c, weir_status_t* take_status) {
  WEIR_ASSERT_ARG(c);
  if (weir_status_code(take_status) == WEIR_OUT_OF_RANGE) {
    weir_status_destroy(take_status);
    take_status = NULL;
  }
  weir_mutex_lock(&c->mu);
  if (!c->is_stopping) {
    c->stop_ns = weir_clock_ns();
    c->is_stopping = true;
  }
  if (!c->status) {
    c->status = take_status;
    take_status = NULL;
  }
  weir_cond_broadcast(&c->changed);
  weir_mutex_unlock(&c->mu);
  weir_status_destroy(take_status);
}

bool weir_coordinator_should_stop(weir_coordinator_t* c) {
  WEIR_ASSERT_ARG(c);
  weir_mutex_lock(&c->mu);
  bool is_stopping = c->is_stopping;
  weir_mutex_unlock(&c->mu);
  return is_stopping;
}

bool weir_coordinator_wait(weir_coordinator_t* c, int64_t timeout_ms) {
  WEIR_ASSERT_ARG(c);
  const int64_t deadline = weir_clock_ns() + timeout_ms * 1000000;
  weir_mutex_lock(&c->mu);
  bool is_waiting = true;
  while (!c->is_stopping && is_waiting)
    is_waiting = weir_cond_wait_until(&c->changed, &c->mu, deadline);
  bool is_stopping = c->is_stopping;
  weir_mutex_unlock(&c->mu);
  return is_stopping;
}

bool weir_coordinator_wait_flag(weir_coordinator_t* c, const bool* flag) {
  weir_mutex_lock(&c->mu);
  while (!c->is_stopping && !*flag) weir_cond_wait(&c->changed, &c->mu);
  bool is_stopping = c->is_stopping;
  weir_mutex_unlock(&c->mu);
  return is_stopping;
}

void weir_coordinator_set_flag(weir_coordinator_t* c, bool* flag) {
  weir_mutex_lock(&c->mu);
  *flag = true;
  weir_cond_broadcast(&c->changed);
  weir_mutex_unlock(&c->mu);
}

static void* run_thread(void* arg) {
  thread_t thread = *(thread_t*)arg;
  weir_coordinator_t* c = thread.coordinator;
  weir_free(arg);
  weir_status_t* status = thread.fn(c, thread.arg);
  if (status) weir_coordinator_request_stop(c, status);
  weir_mutex_lock(&c->mu);
  --c->running;
  weir_cond_broadcast(&c->changed);
  weir_mutex_unlock(&c->mu);
  return NULL;
}

weir_status_t* weir_coordinator_start(weir_coordinator_t* c, weir_thread_fn_t fn, void* arg) {
  WEIR_REQUIRE_ARG(c);
  WEIR_REQUIRE_ARG(fn);
  thread_t* thread = weir_malloc(sizeof(*thread));
  if (!thread) return weir_out_of_memory();
  *thread = (thread_t){.coordinator = c, .fn = fn, .arg = arg};
  weir_status_t* status = NULL;
  weir_mutex_lock(&c->mu);
  if (!WEIR_GROW(c->threads, c->thread_capacity, c->thread_count + 1)) {
    status = weir_out_of_memory();
  } else {
    int error = pthread_create(&c->threads[c->thread_count], NULL, run_thread, thread);
    if (error) {
      status = WEIR_STATUS(RESOURCE_EXHAUSTED, "cannot start a thread: %s", strerror(error));
    } else {
      ++c->thread_count;
      ++c->running;
    }
  }
  weir_mutex_unlock(&c->mu);
  if (status) weir_free(thread);
  return status;
}

// Waits until no thread runs; false when the grace after a stop is over.
static bool wait_all_locked(weir_coordinator_t* c, int64_t grace_ms) WEIR_REQUIRES(c->mu);
static bool wait_all_locked(weir_coordinator_t* c, int64_t grace_ms) {
  while (c->running > 0) {
    if (!c->is_stopping || grace_ms < 0) {
      weir_cond_wait(&c->changed, &c->mu);
      continue;
    }
    const int64_t deadline = c->stop_ns + grace_ms * 1000000;
    if (!weir_cond_wait_until(&c->changed, &c->mu, deadline) && c->running > 0) return false;
  }
  return true;
}

weir_status_t* weir_coordinator_join(weir_coordinator_t* c, int64_t grace_ms) {
  WEIR_REQUIRE_ARG(c);
  weir_mutex_lock(&c->mu);
  const bool is_done = wait_all_locked(c, grace_ms);
  const int running = c->running;
  // Threads that have ended hold no lock: joining them under the mutex cannot block for long.
  for (size_t i = 0; is_done && i < c->thread_count; ++i) pthread_join(c->threads[i], NULL);
  if (is_done) c->thread_count = 0;
  weir_status_t* status = is_done ? c->status : weir_status_copy(c->status);
  if (is_done) c->status = NULL;
  weir_mutex_unlock(&c->mu);
  if (status || is_done) return status;
  return WEIR_STATUS(DEADLINE_EXCEEDED,
                     "%d threads still run %lld ms after they were asked to stop", running,
                     (long long)grace_ms);
}
