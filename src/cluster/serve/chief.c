// chief.c — Notices that the chief of the cluster is gone.
#include "cluster/serve/chief.h"

#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"
#include "cluster/config/config.h"

#define GET_STATUS "/tensorflow.WorkerService/GetStatus"
#define SECOND_NS INT64_C(1000000000)

struct weir_chief_watch_t {
  weir_rpc_channel_t* channel;  // the task's
  char name[96];                // "/job:chief/task:0"
  int64_t patience_ns;
  void (*fn)(void* arg);
  void* arg;
  pthread_t thread;
  bool is_started;
  weir_mutex_t mu;
  weir_cond_t cond;  // |is_stopping| or |is_answered|
  bool is_stopping;  // guarded by mu
  bool is_answered;  // guarded by mu; the call that is under way has ended
  weir_code_t code;  // guarded by mu; how
};

static void answered(void* self, weir_status_t* take_status, weir_rpc_buffer_t* take_message) {
  weir_chief_watch_t* watch = self;
  weir_mutex_lock(&watch->mu);
  watch->code = weir_status_code(take_status);
  watch->is_answered = true;
  weir_cond_broadcast(&watch->cond);
  weir_mutex_unlock(&watch->mu);
  weir_status_destroy(take_status);
  weir_rpc_buffer_release(take_message);
}

// Whether the chief answered by |deadline_ns|. Any answer will do: it is alive.
static bool ask(weir_chief_watch_t* watch, int64_t deadline_ns) {
  weir_rpc_request_t* request = NULL;
  weir_rpc_call_options_t options = {.deadline_ns = deadline_ns};
  weir_mutex_lock(&watch->mu);
  watch->is_answered = false;
  weir_mutex_unlock(&watch->mu);
  weir_rpc_channel_call_async(watch->channel, GET_STATUS, weir_rpc_message_create(), &options,
                              answered, watch, &request);
  weir_mutex_lock(&watch->mu);
  while (!watch->is_answered && !watch->is_stopping) weir_cond_wait(&watch->cond, &watch->mu);
  if (!watch->is_answered) {
    weir_mutex_unlock(&watch->mu);
    weir_rpc_request_cancel(request);
    weir_mutex_lock(&watch->mu);
    while (!watch->is_answered) weir_cond_wait(&watch->cond, &watch->mu);
  }
  weir_code_t code = watch->code;
  weir_mutex_unlock(&watch->mu);
  weir_rpc_request_release(request);
  return code != WEIR_UNAVAILABLE && code != WEIR_DEADLINE_EXCEEDED && code != WEIR_CANCELLED;
}

// Waits; false when the watch shall end.
static bool pause_until(weir_chief_watch_t* watch, int64_t deadline_ns) {
  weir_mutex_lock(&watch->mu);
  while (!watch->is_stopping && weir_cond_wait_until(&watch->cond, &watch->mu, deadline_ns)) {
  }
  bool goes_on = !watch->is_stopping;
  weir_mutex_unlock(&watch->mu);
  return goes_on;
}

static void* run(void* arg) {
  weir_chief_watch_t* watch = arg;
  int64_t interval_ns = WEIR_MIN(SECOND_NS, watch->patience_ns / 4);
  int64_t seen_ns = 0;  // 0: not yet
  do {
    int64_t now = weir_clock_ns();
    int64_t limit = seen_ns ? seen_ns + watch->patience_ns : now + 5 * SECOND_NS;
    // At least one honest try, even where this process itself was stopped for a while.
    if (ask(watch, WEIR_MAX(limit, now + SECOND_NS))) {
      seen_ns = weir_clock_ns();
    } else if (seen_ns && weir_clock_ns() - seen_ns >= watch->patience_ns) {
      weir_mutex_lock(&watch->mu);
      bool is_stopping = watch->is_stopping;
      weir_mutex_unlock(&watch->mu);
      if (is_stopping) return NULL;
      WEIR_LOG(WARNING, "the chief, %s, has not answered for %lld s", watch->name,
               (long long)(watch->patience_ns / SECOND_NS));
      watch->fn(watch->arg);
      return NULL;
    }
  } while (pause_until(watch, weir_clock_ns() + interval_ns));
  return NULL;
}

static weir_status_t* start(weir_chief_watch_t* watch, weir_task_t* task) {
  WEIR_TRY(weir_task_channel(task, NULL, weir_view_of(watch->name), &watch->channel));
  int error = pthread_create(&watch->thread, NULL, run, watch);
  if (error) return WEIR_STATUS(RESOURCE_EXHAUSTED, "cannot start a thread: %s", strerror(error));
  watch->is_started = true;
  return NULL;
}

weir_status_t* weir_chief_watch_create(weir_task_t* task, int patience_s, void (*fn)(void* arg),
                                       void* arg, weir_chief_watch_t** out_watch) {
  const char* job = NULL;
  *out_watch = NULL;
  if (!weir_cluster_chief(&task->spec, &job))
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "there is no chief to end with: the cluster has no task 0 of job 'chief', "
                       "'master' or 'worker'");
  if (task->index == 0 && strcmp(task->job, job) == 0) return NULL;
  weir_chief_watch_t* watch = weir_calloc(1, sizeof(*watch));
  if (!watch) return weir_out_of_memory();
  weir_mutex_init(&watch->mu);
  weir_cond_init(&watch->cond);
  snprintf(watch->name, sizeof(watch->name), "/job:%s/task:0", job);
  watch->patience_ns = WEIR_MAX(patience_s, 1) * SECOND_NS;
  watch->fn = fn;
  watch->arg = arg;
  weir_status_t* status = start(watch, task);
  if (status) weir_chief_watch_destroy(watch);
  else *out_watch = watch;
  return status;
}

void weir_chief_watch_destroy(weir_chief_watch_t* watch) {
  if (!watch) return;
  if (watch->is_started) {
    weir_mutex_lock(&watch->mu);
    watch->is_stopping = true;
    weir_cond_broadcast(&watch->cond);
    weir_mutex_unlock(&watch->mu);
    pthread_join(watch->thread, NULL);
  }
  weir_cond_destroy(&watch->cond);
  weir_mutex_destroy(&watch->mu);
  weir_free(watch);
}
