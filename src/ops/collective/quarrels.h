// quarrels.h — Meetings that ended because members disagreed, for those who come to them later: a
// session of their own may run them, and nobody else would tell. Guarded by the hub's mutex.
#ifndef WEIR_OPS_COLLECTIVE_QUARRELS_H_
#define WEIR_OPS_COLLECTIVE_QUARRELS_H_

#include "ops/collective/hub.h"

// What is alike for all members of a meeting. Compared as bytes.
typedef struct meeting_key_t {
  int64_t space, group_key, instance_key, iteration;
  uint64_t id;
} meeting_key_t;

typedef struct weir_quarrel_t weir_quarrel_t;
typedef struct weir_quarrels_t {
  weir_quarrel_t* newest;
} weir_quarrels_t;

void weir_quarrels_free(weir_quarrels_t* quarrels);
// Notes one, about a meeting or, where |is_of_group|, about the size of the group. Without memory
// it is not noted.
weir_quarrel_t* weir_quarrels_add(weir_quarrels_t* quarrels, const meeting_key_t* key,
                                  bool is_of_group, int group_size, const weir_status_t* status);
// |what| has been told. NULL-safe.
void weir_quarrel_tell(weir_quarrel_t* quarrel, const weir_collective_t* what);
// The error that |what| missed, and tells it; NULL: none.
weir_status_t* weir_quarrels_find(weir_quarrels_t* quarrels, const meeting_key_t* key,
                                  const weir_collective_t* what);

#endif  // WEIR_OPS_COLLECTIVE_QUARRELS_H_
