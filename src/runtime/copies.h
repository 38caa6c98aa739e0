// copies.h — Copies on the edges of a graph that lead from one memory to another.
#ifndef WEIR_RUNTIME_COPIES_H_
#define WEIR_RUNTIME_COPIES_H_

#include "graph/graph.h"
#include "runtime/runtime.h"

// Adds a node for each value that is read in another memory than it was made in: to the host, and
// from there to a device, or from a device to another that is its peer. Each value goes to each
// memory once; a reference to each reader, when all else that the reader waits for has come.
// |device_of|, by node id, in |arena|, is replaced by one that has the new nodes, too.
// UNIMPLEMENTED for what cannot be copied.
WEIR_MUST_USE weir_status_t* weir_add_copies(const weir_runtime_t* runtime, weir_graph_t* graph,
                                             weir_arena_t* arena, int** device_of);

#endif  // WEIR_RUNTIME_COPIES_H_
