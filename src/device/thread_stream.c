// thread_stream.c — A list, a thread that empties it, and events as entries of the list.
#include "thread_stream.h"

#include <pthread.h>
#include <time.h>

#include "base/subnormal.h"

struct thread_stream_t {
  void (*run)(void* arg, weir_work_t* work);
  void* arg;
  pthread_t thread;
  weir_mutex_t mu;  // guards all below
  weir_cond_t wake;
  weir_work_t *first, *last;
  bool is_ending;
};

// ---- events ----

// Held by whoever recorded it, by the entry that reaches it, and by those that wait for it.
typedef struct thread_event_t {
  weir_event_t base;  // first
  weir_mutex_t mu;
  bool is_reached;         // guarded by mu
  weir_notice_t* notices;  // likewise: to be called then
} thread_event_t;

// An entry of the list that is no work: it reaches an event or waits for one.
typedef struct mark_t {
  weir_work_t work;  // first
  weir_event_t* event;
} mark_t;

static void event_destroy(weir_event_t* base) {
  thread_event_t* event = (thread_event_t*)base;
  weir_mutex_destroy(&event->mu);
  weir_free(event);
}

static void event_notify(weir_event_t* base, weir_notice_t* notice) {
  thread_event_t* event = (thread_event_t*)base;
  weir_mutex_lock(&event->mu);
  bool is_reached = event->is_reached;
  if (!is_reached) {
    notice->next = event->notices;
    event->notices = notice;
  }
  weir_mutex_unlock(&event->mu);
  if (is_reached) notice->call(notice);
}

static const weir_event_vtable_t event_vtable = {.destroy = event_destroy, .notify = event_notify};

static void reach(weir_work_t* work) {
  thread_event_t* event = (thread_event_t*)((mark_t*)work)->event;
  weir_mutex_lock(&event->mu);
  event->is_reached = true;
  weir_notice_t* notice = event->notices;
  event->notices = NULL;
  weir_mutex_unlock(&event->mu);
  while (notice) {
    weir_notice_t* next = notice->next;  // |notice| may be gone after the call
    notice->call(notice);
    notice = next;
  }
}

static void await(weir_work_t* work) { weir_event_await(((mark_t*)work)->event); }

static void mark_done(weir_work_t* work) {
  weir_event_release(((mark_t*)work)->event);
  weir_free(work);
}

static bool is_mark(const weir_work_t* work) { return work->done == mark_done; }

static weir_status_t* submit_mark(thread_stream_t* stream, weir_event_t* event,
                                  void (*run)(weir_work_t* self)) {
  mark_t* mark = weir_calloc(1, sizeof(*mark));
  if (!mark) return weir_out_of_memory();
  *mark = (mark_t){.work = {.run = run, .done = mark_done}, .event = weir_event_retain(event)};
  weir_thread_stream_submit(stream, &mark->work);
  return NULL;
}

weir_status_t* weir_thread_stream_record(thread_stream_t* stream, weir_event_t** out_event) {
  thread_event_t* event = weir_calloc(1, sizeof(*event));
  if (!event) return weir_out_of_memory();
  event->base.vtable = &event_vtable;
  weir_ref_init(&event->base.ref);
  weir_mutex_init(&event->mu);
  weir_status_t* status = submit_mark(stream, &event->base, reach);
  if (status) weir_event_release(&event->base);
  else *out_event = &event->base;
  return status;
}

weir_status_t* weir_thread_stream_wait(thread_stream_t* stream, weir_event_t* event) {
  return submit_mark(stream, event, await);
}

// ---- the stream ----

static void run_one(thread_stream_t* stream, weir_work_t* work) {
  if (is_mark(work)) work->run(work);
  else stream->run(stream->arg, work);
  work->done(work);
}

static void* serve(void* arg) {
  thread_stream_t* stream = arg;
  weir_flush_subnormals();
  weir_mutex_lock(&stream->mu);
  while (stream->first || !stream->is_ending) {
    weir_work_t* work = stream->first;
    if (!work) {
      weir_cond_wait(&stream->wake, &stream->mu);
      continue;
    }
    stream->first = work->next;
    weir_mutex_unlock(&stream->mu);
    run_one(stream, work);
    weir_mutex_lock(&stream->mu);
  }
  weir_mutex_unlock(&stream->mu);
  return NULL;
}

void weir_thread_stream_submit(thread_stream_t* stream, weir_work_t* work) {
  work->next = NULL;
  weir_mutex_lock(&stream->mu);
  if (stream->first) stream->last->next = work;
  else stream->first = work;
  stream->last = work;
  weir_cond_broadcast(&stream->wake);
  weir_mutex_unlock(&stream->mu);
}

static void destroy(thread_stream_t* stream) {
  weir_cond_destroy(&stream->wake);
  weir_mutex_destroy(&stream->mu);
  weir_free(stream);
}

weir_status_t* weir_thread_stream_create(void (*run)(void* arg, weir_work_t* work), void* arg,
                                         thread_stream_t** out_stream) {
  thread_stream_t* stream = weir_calloc(1, sizeof(*stream));
  if (!stream) return weir_out_of_memory();
  stream->run = run;
  stream->arg = arg;
  weir_mutex_init(&stream->mu);
  weir_cond_init(&stream->wake);
  int error = pthread_create(&stream->thread, NULL, serve, stream);
  if (error) {
    destroy(stream);
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "no thread for a stream: %s", strerror(error));
  }
  *out_stream = stream;
  return NULL;
}

void weir_thread_stream_destroy(thread_stream_t* stream) {
  if (!stream) return;
  weir_mutex_lock(&stream->mu);
  stream->is_ending = true;
  weir_cond_broadcast(&stream->wake);
  weir_mutex_unlock(&stream->mu);
  pthread_join(stream->thread, NULL);
  destroy(stream);
}

// ---- copies ----

typedef struct copy_t {
  weir_work_t work;  // first
  double bandwidth;
  const void* src;
  void* dst;
  size_t size;
  weir_copy_done_fn_t done;
  void* arg;
} copy_t;

void weir_thread_sleep(double ns) {
  if (ns < 1) return;
  struct timespec time = {.tv_sec = (time_t)(ns / 1e9)};
  time.tv_nsec = (long)(ns - (double)time.tv_sec * 1e9);
  nanosleep(&time, NULL);
}

static void copy_run(weir_work_t* work) {
  const copy_t* copy = (const copy_t*)work;
  memcpy(copy->dst, copy->src, copy->size);
  if (copy->bandwidth > 0) weir_thread_sleep((double)copy->size / copy->bandwidth * 1e9);
}

static void copy_done(weir_work_t* work) {
  copy_t copy = *(copy_t*)work;
  weir_free(work);
  copy.done(copy.arg, NULL);
}

void weir_thread_stream_copy(thread_stream_t* stream, double bandwidth, const void* src, void* dst,
                             size_t size, weir_copy_done_fn_t done, void* arg) {
  copy_t* copy = weir_calloc(1, sizeof(*copy));
  if (!copy) {
    done(arg, weir_out_of_memory());
    return;
  }
  *copy = (copy_t){.work = {.run = copy_run, .done = copy_done},
                   .bandwidth = bandwidth,
                   .src = src,
                   .dst = dst,
                   .size = size,
                   .done = done,
                   .arg = arg};
  weir_thread_stream_submit(stream, &copy->work);
}
