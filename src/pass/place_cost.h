// place_cost.h — Placement by cost: groups of nodes go where a simulated step ends first.
#ifndef WEIR_PASS_PLACE_COST_H_
#define WEIR_PASS_PLACE_COST_H_

#include "pass/simulate.h"

typedef struct weir_place_cost_t {
  const weir_costs_t* costs;
  const int* group_of;     // by node id: the id of the node that stands for its group
  const bool* is_allowed;  // by group and device, group * device_count + device; one at least
} weir_place_cost_t;

// Gives each group one of the devices it may be on, |out_device_of| (by node id, in |arena|). The
// same graph, devices and costs give the same placement; in the simulation, it is never worse than
// all nodes on any one of the devices, as far as they may be there.
WEIR_MUST_USE weir_status_t* weir_place_by_cost(const weir_place_cost_t* problem,
                                                weir_arena_t* arena, int** out_device_of);

#endif  // WEIR_PASS_PLACE_COST_H_
