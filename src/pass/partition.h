// partition.h — Partitioning: a placed graph cut into one graph a task, with Send and Recv where an
// edge was cut.
//
// Each output crosses to a task once, however many nodes read it there. Control edges cross as
// empty tensors. Where a loop spans tasks, each task that receives inside it gets a small loop of
// its own (Enter, Merge, Switch, NextIteration) that turns as often as the loop's condition,
// received too, says: it starts the receives of every iteration. Dead values cross as such.
#ifndef WEIR_PASS_PARTITION_H_
#define WEIR_PASS_PARTITION_H_

#include "pass/place.h"

typedef struct weir_part_t {
  int task;             // weir_placement_t.task
  weir_graph_t* graph;  // the caller's reference
  weir_node_t**
      sinks;       // nodes that nothing in the part reads: all of them must run; in the graph's
  int sink_count;  // arena
} weir_part_t;

typedef struct weir_partition_params_t {
  const weir_graph_t* graph;  // placed
  const int* device_of;       // by node id, as weir_place gives it
  const weir_placement_t* devices;
  int device_count;
  // Part of the names of the nodes added. A task keeps the kernels of a session by their nodes'
  // names, so no two graphs that a session cuts may have the same.
  int64_t serial;
} weir_partition_params_t;

// |out_parts|: one for each task that has a node, in |arena|, |out_count| of them. The graph is
// left as it is.
WEIR_MUST_USE weir_status_t* weir_partition(const weir_partition_params_t* params,
                                            weir_arena_t* arena, weir_part_t** out_parts,
                                            int* out_count);
void weir_parts_release(weir_part_t* parts, int count);  // the graphs

// The nodes of |graph| that nothing reads, in its arena.
WEIR_MUST_USE weir_status_t* weir_graph_sinks(weir_graph_t* graph, weir_node_t*** out_sinks,
                                              int* out_count);

#endif  // WEIR_PASS_PARTITION_H_
