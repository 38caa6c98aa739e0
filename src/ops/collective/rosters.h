// rosters.h — Which devices form a group, by group key: the first so many that came. Guarded by the
// hub's mutex.
#ifndef WEIR_OPS_COLLECTIVE_ROSTERS_H_
#define WEIR_OPS_COLLECTIVE_ROSTERS_H_

#include "ops/collective/hub.h"

typedef struct weir_roster_device_t {
  char* name;
  uint64_t incarnation;
  uint64_t scope;  // of its last step
  int waiting;     // members on it that are in a meeting
} weir_roster_device_t;

typedef struct weir_roster_t {
  int key, size;
  weir_roster_device_t* devices;
  int device_count;
  size_t device_capacity;
  int meeting_count;  // that have not ended
} weir_roster_t;

typedef struct weir_rosters_t {
  weir_map_t map;  // key (4 bytes) → weir_roster_t
} weir_rosters_t;

void weir_rosters_init(weir_rosters_t* groups);
void weir_rosters_free(weir_rosters_t* groups);
// Finds or makes the group that |what| is about, with its device in it. INTERNAL, in TensorFlow's
// words, where it is of another size or of other devices. Groups outlive their meetings, so that
// later ones can disagree with them; but other sessions may use an idle group's key anew, and take
// the places of devices that do not wait.
// |out_group| is set where a group has the key, also with an error.
WEIR_MUST_USE weir_status_t* weir_rosters_enter(weir_rosters_t* groups,
                                                const weir_collective_t* what,
                                                weir_roster_t** out_group);
// A member on |device| has come to a meeting of the group, or is no longer in one.
void weir_roster_count(weir_roster_t* group, const char* device, int change);
// Whether a device of task |task| is in the group.
bool weir_roster_has_task(const weir_roster_t* group, weir_view_t task);
// All groups forget the devices of |task|.
void weir_rosters_lose(weir_rosters_t* groups, weir_view_t task);
// Whether |device| is of the task |task|.
bool weir_device_is_of_task(const char* device, weir_view_t task);

#endif  // WEIR_OPS_COLLECTIVE_ROSTERS_H_
