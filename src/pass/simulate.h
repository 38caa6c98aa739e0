// simulate.h — A step of a placed graph, played through in simulated time: the executor gives each
// device what is ready in the order in which it became ready, copies first; each device does one
// after the other what it was given, and beside that, copies from and to the host. Where no device
// has a stream, the executor runs nodes itself, what became ready last first.
//
// Tasks of a cluster send values to each other, and a sign for every control edge. Where a loop
// spans tasks, each that receives in it gets the condition in every turn, and asks for what the
// next turn brings only when it has it (pass/partition_loops.c): its turns take a message there
// and one back at least.
//
// A loop is played through once, each node doing all its turns. But what is handed on from task to
// task outside of the circles that make each turn wait for the one before flows: it is sent turn by
// turn, and its reader begins with the first and ends after the last.
//
// Thread-confined. All memory is the arena's: one simulation plays any number of placements.
#ifndef WEIR_PASS_SIMULATE_H_
#define WEIR_PASS_SIMULATE_H_

#include "pass/costs.h"

// Who reads an output, or waits for its node.
typedef struct weir_sim_reader_t {
  int node;    // id
  int input;   // -1: it waits
  int output;  // the number of outputs: it waits; -1: it does, but nothing is sent for it
} weir_sim_reader_t;

// What takes time is an item: a node, by its id, or the copy of a value, or of the sign that a node
// has run, to a memory.
typedef struct weir_simulation_t {
  const weir_costs_t* costs;
  int* first_reader;  // of node i: readers[first_reader[i] .. first_reader[i + 1])
  weir_sim_reader_t* readers;
  int* first_output;  // by node id: number of its first output among those of all nodes
  int* node_of;       // by number of an output: the id of its node
  int item_count;
  // Of one placement.
  const int* device_of;         // by node id; the caller's
  double *ready, *start, *end;  // by item
  double* done;                 // by item: when it has done its work, if nothing made it wait
  double* held;                 // by node id: when the last of what flows to it is there
  int* held_by;                 // by node id: what that is; -1: nothing
  double* given;                // by item: when its device had it
  int* cause;                   // by item: what it had to wait for; -1: nothing
  bool* is_made;                // by item: copies that were begun
  int* pending;                 // by node id: what it still waits for
  double* free_at;              // by lane
  int* last;                    // by lane: the item it did last; -1: none
  bool* is_awaited;             // by loop and device: it receives in the loop, as another task
  double* turned;               // by loop and device: when it has the condition of all turns
  double last_turned;           // the latest of them
  struct weir_due_t* heap;      // what is ready, the earliest on top
  int* newest;                  // by processor: the node that became ready last; -1: none
  int* below;                   // by node id: the one that did before it
  bool* is_idle;                // by processor: it waits for a node to become ready
  int heap_size;
  int64_t pushed;  // so far
  // The outcome.
  double step_ns;  // before and after all items, part of the total
  double total_ns;
  double crossed_bytes;  // by all copies
  int last_item;         // the one that ended last; -1: there is none
} weir_simulation_t;

WEIR_MUST_USE weir_status_t* weir_simulation_init(weir_simulation_t* sim, const weir_costs_t* costs,
                                                  weir_arena_t* arena);
// Plays the step with node |i| on |device_of[i]|, and returns how long it takes.
double weir_simulate(weir_simulation_t* sim, const int* device_of);

// The item that copies |edge| to a memory, and back: whose value an item is.
int weir_simulation_copy(const weir_simulation_t* sim, weir_edge_t edge, int memory);
weir_edge_t weir_simulation_edge(const weir_simulation_t* sim, int item);  // no node: not a copy
bool weir_simulation_is_sign(weir_edge_t edge);
// The device that an item keeps busy.
int weir_simulation_device(const weir_simulation_t* sim, int item);
// What is in one lane goes on one after the other.
int weir_simulation_lane(const weir_simulation_t* sim, int item, int device);

#endif  // WEIR_PASS_SIMULATE_H_
