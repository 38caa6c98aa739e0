// fence.h — The fence: a step that reads variables for a checkpoint reads them between the steps
// that write to them, on all of its tasks at once.
#ifndef WEIR_PASS_FENCE_H_
#define WEIR_PASS_FENCE_H_

#include "pass/place.h"

// Adds the rounds of op/gate.h to a placed graph: all of its nodes that read resource variables
// come after what holds the gates of their tasks, and what uses the values after what opens them.
// The first of |devices| is the one that brings the tasks together. UNIMPLEMENTED naming a
// reference variable, whose reads are no snapshots.
WEIR_MUST_USE weir_status_t* weir_fence_reads(weir_graph_t* graph, const weir_placement_t* devices,
                                              int device_count);

#endif  // WEIR_PASS_FENCE_H_
