// alarm.c — The one thread of all alarms. There are few at a time, one a resource: a list will do.
#include "base/alarm.h"

#include <signal.h>

enum { IDLE_NS = 1000000000 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static weir_mutex_t mu;
static weir_cond_t changed;   // the earliest deadline may be another
static weir_alarm_t* alarms;  // those that are set; guarded by mu, as the next
static bool has_thread;

static void init(void) {
  weir_mutex_init(&mu);
  weir_cond_init(&changed);
}

static void take_out_locked(weir_alarm_t* alarm) WEIR_REQUIRES(mu);
static void take_out_locked(weir_alarm_t* alarm) {
  if (alarm->next) alarm->next->prev = alarm->prev;
  if (alarm->prev) {
    alarm->prev->next = alarm->next;
  } else {
    alarms = alarm->next;
  }
  alarm->is_set = false;
}

static weir_alarm_t* earliest_locked(void) WEIR_REQUIRES(mu);
static weir_alarm_t* earliest_locked(void) {
  weir_alarm_t* earliest = alarms;
  for (weir_alarm_t* a = alarms; a; a = a->next) {
    if (a->deadline_ns < earliest->deadline_ns) earliest = a;
  }
  return earliest;
}

static void* alarm_main(void* arg) {
  (void)arg;
  weir_mutex_lock(&mu);
  for (bool is_idle = false;;) {
    weir_alarm_t* alarm = earliest_locked();
    const int64_t now = weir_clock_ns();
    if (!alarm && is_idle) break;
    if (alarm && alarm->deadline_ns <= now) {
      take_out_locked(alarm);
      weir_mutex_unlock(&mu);
      alarm->fire(alarm);
      weir_mutex_lock(&mu);
      continue;
    }
    const bool is_woken =
        weir_cond_wait_until(&changed, &mu, alarm ? alarm->deadline_ns : now + IDLE_NS);
    is_idle = !alarm && !is_woken;
  }
  has_thread = false;
  weir_mutex_unlock(&mu);
  return NULL;
}

static bool start_thread_locked(void) WEIR_REQUIRES(mu);
static bool start_thread_locked(void) {
  if (has_thread) return true;
  sigset_t all, old;
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // signals are for the program's own threads
  has_thread = pthread_create(&thread, NULL, alarm_main, NULL) == 0;
  if (has_thread) {
    pthread_setname_np(thread, "weir-alarm");
    pthread_detach(thread);
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return has_thread;
}

bool weir_alarm_set(weir_alarm_t* alarm, int64_t deadline_ns, bool* out_is_new) {
  pthread_once(&once, init);
  weir_mutex_lock(&mu);
  *out_is_new = false;
  const bool has_place = start_thread_locked();
  if (has_place) {
    *out_is_new = !alarm->is_set;
    if (!alarm->is_set) {
      alarm->prev = NULL;
      alarm->next = alarms;
      if (alarms) alarms->prev = alarm;
      alarms = alarm;
      alarm->is_set = true;
    }
    alarm->deadline_ns = deadline_ns;
    weir_cond_signal(&changed);
  }
  weir_mutex_unlock(&mu);
  return has_place;
}

bool weir_alarm_clear(weir_alarm_t* alarm) {
  pthread_once(&once, init);
  weir_mutex_lock(&mu);
  const bool was_set = alarm->is_set;
  if (was_set) take_out_locked(alarm);
  weir_mutex_unlock(&mu);
  return was_set;
}
