// hub_timer.c — Timeouts of members: one thread, started when the first one comes that has one.
#include <signal.h>

#include "ops/collective/hub_internal.h"

// The first deadline that is not after |now|, and when to look again.
static member_t* find_late(weir_hub_t* hub, int64_t now) WEIR_REQUIRES(hub->mu) {
  hub->alarm_ns = INT64_MAX;
  for (member_t* member = hub->timed; member; member = member->later) {
    if (member->deadline_ns <= now) return member;
    hub->alarm_ns = WEIR_MIN(hub->alarm_ns, member->deadline_ns);
  }
  return NULL;
}

static void end_late(weir_hub_t* hub, member_t* late) {
  meeting_t* meeting = late->meeting;
  weir_status_t* status =
      WEIR_STATUS(DEADLINE_EXCEEDED, "Collective has timed out waiting for other workers.");
  weir_hub_take_out(hub, meeting);
  weir_mutex_unlock(&hub->mu);
  weir_meeting_fail(meeting, status);
  weir_status_destroy(status);
  weir_hub_settle(hub, meeting, NULL);
  weir_mutex_lock(&hub->mu);
}

static void* timer_main(void* arg) {
  weir_hub_t* hub = arg;
  weir_mutex_lock(&hub->mu);
  while (!hub->is_ending) {
    member_t* late = find_late(hub, weir_clock_ns());
    if (late) end_late(hub, late);
    else if (hub->alarm_ns == INT64_MAX) weir_cond_wait(&hub->alarm, &hub->mu);
    else (void)weir_cond_wait_until(&hub->alarm, &hub->mu, hub->alarm_ns);
  }
  weir_mutex_unlock(&hub->mu);
  return NULL;
}

static bool start_timer(weir_hub_t* hub) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);  // signals are for the program's own threads
  bool is_started = pthread_create(&hub->timer, NULL, timer_main, hub) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return is_started;
}

weir_status_t* weir_hub_time(weir_hub_t* hub, member_t* member) {
  if (!hub->has_timer) hub->has_timer = start_timer(hub);
  if (!hub->has_timer)
    return WEIR_STATUS(RESOURCE_EXHAUSTED,
                       "there is no thread to watch the timeout of a collective");
  member->later = hub->timed;
  member->timed_from = &hub->timed;
  if (hub->timed) hub->timed->timed_from = &member->later;
  hub->timed = member;
  if (member->deadline_ns < hub->alarm_ns) weir_cond_signal(&hub->alarm);
  return NULL;
}

void weir_hub_untime(weir_hub_t* hub, member_t* member) {
  (void)hub;
  if (!member->timed_from) return;
  *member->timed_from = member->later;
  if (member->later) member->later->timed_from = member->timed_from;
  member->timed_from = NULL;
}

void weir_hub_stop_timer(weir_hub_t* hub) {
  if (!hub->has_timer) return;
  weir_mutex_lock(&hub->mu);
  hub->is_ending = true;
  weir_cond_signal(&hub->alarm);
  weir_mutex_unlock(&hub->mu);
  pthread_join(hub->timer, NULL);
}
