// recurrence.h — Which nodes of a loop wait for each other from turn to turn. What is no part of
// such a circle may be turns ahead of what reads it.
#ifndef WEIR_PASS_RECURRENCE_H_
#define WEIR_PASS_RECURRENCE_H_

#include "graph/graph.h"

// By node id: the number of the circle that the node is in; no two have the same that are in none.
WEIR_MUST_USE weir_status_t* weir_recurrences_find(const weir_graph_t* graph, weir_arena_t* arena,
                                                   int** out_circles);

#endif  // WEIR_PASS_RECURRENCE_H_
