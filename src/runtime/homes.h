// homes.h — Where state lives that several programs share, sessions of one master say: it stays
// where the first of them put it. Whoever places holds the lock from looking for homes to giving
// them; it is taken before that of the program's own placing.
#ifndef WEIR_RUNTIME_HOMES_H_
#define WEIR_RUNTIME_HOMES_H_

#include "base/lru.h"
#include "base/thread.h"
#include "pass/place.h"

typedef struct weir_homes_t {
  weir_mutex_t mu;
  weir_lru_t items;  // container, NUL, name → device; guarded by mu
} weir_homes_t;

// Keeps the |limit| homes that were used last.
WEIR_MUST_USE weir_status_t* weir_homes_create(size_t limit, weir_homes_t** out_homes);
void weir_homes_destroy(weir_homes_t* homes);  // NULL-safe

// Whether a node makes what other graphs, and other signatures, will look for on the same device.
bool weir_node_makes_state(const weir_node_t* node);
// The caller holds the lock.
// Which of |devices| is the home of the state that |node| makes; -1: none of them.
WEIR_MUST_USE weir_status_t* weir_homes_find(weir_homes_t* homes, const weir_node_t* node,
                                             const weir_placement_t* devices, int device_count,
                                             int* out_device);
// Gives the state that |node| makes a home, unless it has one.
WEIR_MUST_USE weir_status_t* weir_homes_add(weir_homes_t* homes, const weir_node_t* node,
                                            const char* device);

#endif  // WEIR_RUNTIME_HOMES_H_
