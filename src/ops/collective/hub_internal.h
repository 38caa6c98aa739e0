// hub_internal.h — What the files of the hub share: meetings and their members.
#ifndef WEIR_OPS_COLLECTIVE_HUB_INTERNAL_H_
#define WEIR_OPS_COLLECTIVE_HUB_INTERNAL_H_

#include "device/device.h"
#include "ops/collective/quarrels.h"
#include "ops/collective/rosters.h"

typedef struct meeting_t meeting_t;

// One that takes part. Whoever takes its meeting out of the hub answers and frees it.
typedef struct member_t {
  struct member_t* next;  // in its meeting, in order of arrival
  meeting_t* meeting;     // guarded by the hub's mu; NULL: not in a meeting, or no longer
  weir_hub_t* hub;
  weir_collective_t what;   // its strings and dimensions are its own
  weir_device_name_t name;  // of the device
  char* device;
  int64_t* dims;
  weir_tensor_t* tensor;  // may be NULL
  weir_hub_caller_t caller;
  weir_cancel_token_t token;
  bool is_cancelled;                     // guarded by the hub's mu
  int64_t deadline_ns, watch_ns;         // INT64_MAX: none
  struct member_t *later, **timed_from;  // in the hub's list of those with deadlines; guarded
  weir_status_t* status;                 // what it is told
  weir_tensor_t* output;
} member_t;

struct meeting_t {
  meeting_key_t key;
  meeting_t* next;  // of the same key: a later one, in the hub's table; or of a list of ended ones
  weir_roster_t* group;  // NULL for shards
  member_t *first, **last;
  int count;
};

struct weir_hub_t {
  weir_pool_t* pool;
  weir_hub_enter_fn_t before;  // immutable once kernels run; NULL: none
  void* before_self;
  weir_hub_watch_fn_t watch;  // likewise
  void* watch_self;
  int64_t watch_delay_ns;
  weir_mutex_t mu;      // guards all below
  weir_map_t meetings;  // meeting_key_t → the oldest meeting of it
  weir_rosters_t groups;
  weir_quarrels_t quarrels;
  member_t* timed;   // members with deadlines
  int64_t alarm_ns;  // the timer wakes up then; INT64_MAX: when it is told
  weir_cond_t alarm;
  pthread_t timer;
  bool has_timer, is_ending;
  bool is_watching;  // the watcher was called, and not yet told that nobody waits
};

// ---- hub.c ----
// Takes a meeting out of the table. Its members are the caller's.
void weir_hub_take_out(weir_hub_t* hub, meeting_t* meeting) WEIR_REQUIRES(hub->mu);
// Gives every member that has no status yet a copy of |status|.
void weir_meeting_fail(meeting_t* meeting, const weir_status_t* status);
// What members are told of an error; NULL for none. Nodes that met by a name are told it as it is.
weir_status_t* weir_hub_error(weir_collective_space_t space, weir_status_t* take_status);
// Computes for, answers and frees meetings that were taken out. |own|, in one of them or NULL, is
// answered last and on this thread. No mutex held.
void weir_hub_settle(weir_hub_t* hub, meeting_t* take_meetings, member_t* own);

// ---- meeting.c ----
// All have come: sets the outputs of all members, or an error. No mutex held.
void weir_meeting_complete(weir_hub_t* hub, meeting_t* meeting);

// ---- meeting_there.c ----
// What members, in the order of ranks, get that are on GPUs of this process.
WEIR_MUST_USE weir_status_t* weir_meeting_exchange_there(member_t* const* members, int count,
                                                         weir_tensor_t** outputs);

// ---- hub_timer.c ----
// Watches a member's deadlines, if it has any. RESOURCE_EXHAUSTED where there is no thread to be
// had.
WEIR_MUST_USE weir_status_t* weir_hub_time(weir_hub_t* hub, member_t* member)
    WEIR_REQUIRES(hub->mu);
void weir_hub_untime(weir_hub_t* hub, member_t* member) WEIR_REQUIRES(hub->mu);

#endif  // WEIR_OPS_COLLECTIVE_HUB_INTERNAL_H_
