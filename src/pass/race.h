// race.h — Merges of which several inputs may be alive, and which take the first that comes.
#ifndef WEIR_PASS_RACE_H_
#define WEIR_PASS_RACE_H_

#include "pass/rewrite.h"

// By node id: what is made on the way from one input of such a Merge to another of its inputs comes
// after the first, and must go on doing so. |*out_mask| is NULL where there is no such Merge.
WEIR_MUST_USE weir_status_t* weir_race_find(weir_rewrite_t* rewrite, const bool** out_mask);

#endif  // WEIR_PASS_RACE_H_
