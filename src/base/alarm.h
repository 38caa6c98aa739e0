// alarm.h — Calls at a given time, for those who must not wait on a thread of their own: batches
// that end after a while. Thread-safe.
//
// All alarms of the process share one thread. It is there while alarms are set, and ends when none
// was for a second. A call should be short, or hand its work on: others wait behind it.
#ifndef WEIR_BASE_ALARM_H_
#define WEIR_BASE_ALARM_H_

#include "base/thread.h"

typedef struct weir_alarm_t weir_alarm_t;
struct weir_alarm_t {                 // part of its owner's struct; zero but for |fire| at first
  void (*fire)(weir_alarm_t* alarm);  // called without a lock; the alarm is not set any more
  int64_t deadline_ns;                // the rest is private to alarm.c
  weir_alarm_t* next;
  weir_alarm_t* prev;
  bool is_set;
};

// Sets |alarm|, or moves it, to |deadline_ns| of weir_clock_ns. False when that cannot be done for
// want of a thread: it is as it was then. *|out_is_new| when it was not set before; whoever owns
// memory that the call needs keeps it for a set alarm.
bool weir_alarm_set(weir_alarm_t* alarm, int64_t deadline_ns, bool* out_is_new);
// True when |alarm| was set and its call will not come. Never waits.
bool weir_alarm_clear(weir_alarm_t* alarm);

#endif  // WEIR_BASE_ALARM_H_
