// hub_timer.c — Timeouts of members, and whom to watch when they wait for long: one thread, started
// when the first one comes that has a use for it.
#include <signal.h>
#include <stdio.h>

#include "ops/collective/hub_internal.h"

// A member whose deadline or time to be watched is not after |now|, and when to look again.
static member_t* find_late(weir_hub_t* hub, int64_t now) WEIR_REQUIRES(hub->mu) {
  hub->alarm_ns = INT64_MAX;
  for (member_t* member = hub->timed; member; member = member->later) {
    int64_t next_ns = WEIR_MIN(member->deadline_ns, member->watch_ns);
    if (next_ns <= now) return member;
    hub->alarm_ns = WEIR_MIN(hub->alarm_ns, next_ns);
  }
  return NULL;
}

// ---- watching ----

typedef struct watched_t {
  char name[256];
  uint64_t incarnation;
} watched_t;

// Has all devices watched that the member's group is known to have. Without memory to note them
// they are not: nothing is lost but time.
static void watch_group(weir_hub_t* hub, member_t* member) {
  const weir_roster_t* group = member->meeting->group;
  int count = group->device_count;
  watched_t* watched = weir_calloc((size_t)count, sizeof(*watched));
  for (int i = 0; i < count && watched; ++i) {
    snprintf(watched[i].name, sizeof(watched[i].name), "%s", group->devices[i].name);
    watched[i].incarnation = group->devices[i].incarnation;
  }
  member->watch_ns = INT64_MAX;
  hub->is_watching = true;
  weir_mutex_unlock(&hub->mu);
  for (int i = 0; i < count && watched; ++i)
    hub->watch(hub->watch_self, watched[i].name, watched[i].incarnation);
  weir_free(watched);
  weir_mutex_lock(&hub->mu);
}

static void end_watch(weir_hub_t* hub) {
  hub->is_watching = false;
  weir_mutex_unlock(&hub->mu);
  hub->watch(hub->watch_self, NULL, 0);
  weir_mutex_lock(&hub->mu);
}

// ---- deadlines ----

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
    int64_t now = weir_clock_ns();
    member_t* late = find_late(hub, now);
    if (hub->is_watching && hub->meetings.count == 0) end_watch(hub);
    else if (late && late->deadline_ns <= now) end_late(hub, late);
    else if (late) watch_group(hub, late);
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
  int64_t next_ns = WEIR_MIN(member->deadline_ns, member->watch_ns);
  if (next_ns == INT64_MAX) return NULL;
  if (!hub->has_timer) hub->has_timer = start_timer(hub);
  if (!hub->has_timer)
    return WEIR_STATUS(RESOURCE_EXHAUSTED,
                       "there is no thread to watch the timeout of a collective");
  member->later = hub->timed;
  member->timed_from = &hub->timed;
  if (hub->timed) hub->timed->timed_from = &member->later;
  hub->timed = member;
  if (next_ns < hub->alarm_ns) weir_cond_signal(&hub->alarm);
  return NULL;
}

void weir_hub_untime(weir_hub_t* hub, member_t* member) {
  (void)hub;
  if (!member->timed_from) return;
  *member->timed_from = member->later;
  if (member->later) member->later->timed_from = member->timed_from;
  member->timed_from = NULL;
}

void weir_hub_stop(weir_hub_t* hub) {
  if (!hub->has_timer) return;
  hub->has_timer = false;
  weir_mutex_lock(&hub->mu);
  hub->is_ending = true;
  weir_cond_signal(&hub->alarm);
  weir_mutex_unlock(&hub->mu);
  pthread_join(hub->timer, NULL);
}
