// partition_internal.h — What partition.c and partition_loops.c share.
#ifndef WEIR_PASS_PARTITION_INTERNAL_H_
#define WEIR_PASS_PARTITION_INTERNAL_H_

#include "base/map.h"
#include "graph/analysis.h"
#include "pass/partition.h"

typedef struct cutter_t {
  const weir_partition_params_t* params;
  weir_arena_t* arena;
  weir_part_t* parts;
  int part_count;
  int* part_of_task;    // by task number; -1: no part
  weir_node_t*** maps;  // by part, by node id: the copy there, or NULL
  weir_map_t receives;  // "part:node:output:reader" → weir_node_t*, the Recv
  weir_loops_t loops;
  weir_node_t** triggers;  // by part * loops.count + loop: the Merge that starts receives there
} cutter_t;

int weir_cut_part(const cutter_t* cutter, const weir_node_t* node);
const weir_placement_t* weir_cut_placement(const cutter_t* cutter, const weir_node_t* node);
// |edge| as seen in |part|: the copy of its node there, or a Recv, which is made when it is new.
// |at| is the reader in the graph that is cut, on whose device and in whose frame it arrives.
WEIR_MUST_USE weir_status_t* weir_cut_edge(cutter_t* cutter, weir_edge_t edge,
                                           const weir_node_t* at, int frame, int part,
                                           weir_edge_t* out_edge);

// ---- partition_loops.c ----
WEIR_MUST_USE weir_status_t* weir_cut_find_loops(cutter_t* cutter);
// The node in |part| that fires once an iteration of |frame| (not 0), made when it is new.
WEIR_MUST_USE weir_status_t* weir_cut_trigger(cutter_t* cutter, const weir_node_t* at, int frame,
                                              int part, weir_node_t** out_trigger);

#endif  // WEIR_PASS_PARTITION_INTERNAL_H_
