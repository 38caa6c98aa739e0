// costs.h — The cost model: how long each node of a graph takes on each device, and how long values
// take from one memory to another.
//
// In the caller's arena; holds as long as the graph is not changed. Thread-compatible.
#ifndef WEIR_PASS_COSTS_H_
#define WEIR_PASS_COSTS_H_

#include "graph/analysis.h"
#include "pass/node_times.h"
#include "pass/place.h"

enum {
  WEIR_COST_TRIPS = 10,  // of a loop, where no trace tells
  WEIR_HOST = -1,        // a memory is the host's or a device's, by its number
};

typedef struct weir_costs_t {
  const weir_graph_t* graph;
  const weir_placement_t* devices;
  int device_count;
  bool has_streams;     // some device has; else executors run nodes themselves
  weir_node_t** order;  // topological, back edges of loops not counted
  weir_loops_t loops;
  int* circles;            // by node id (pass/recurrence.h); only between tasks, else NULL
  double* work_ns;         // by node id, all visits: at speed 1, without what is the device's
  double* visits;          // by node id: how often it runs in a step
  double** output_bytes;   // by node id and output, and 0 for what only waits for the node
  uint64_t* host_inputs;   // by node id: those in host memory on any device
  uint64_t* host_outputs;  // likewise
  bool* is_light;          // by node id: hands values on, past the device's streams
  bool* is_promised;       // by node id: its readers on the same device need not wait for its end
} weir_costs_t;

typedef struct weir_costs_params_t {
  const weir_graph_t* graph;
  const weir_placement_t* devices;  // with rates
  int device_count;
  const weir_node_times_t* times;  // measured before; NULL: none
  const bool* is_run;              // by node id: the others cost nothing; NULL: all run
} weir_costs_params_t;
WEIR_MUST_USE weir_status_t* weir_costs_init(weir_costs_t* costs, const weir_costs_params_t* params,
                                             weir_arena_t* arena);
// How long |node| keeps the processor of a device.
double weir_costs_node_ns(const weir_costs_t* costs, const weir_node_t* node, int device);
// How long after that its readers start; 0 where they wait in the stream already.
double weir_costs_delay_ns(const weir_costs_t* costs, const weir_node_t* node, int device);
// How long the copy of a value from, or to, a device that is not the host takes; and how much of
// that, between tasks, keeps others waiting.
double weir_costs_copy_ns(const weir_costs_t* costs, weir_edge_t edge, int device);
double weir_costs_message_ns(const weir_costs_t* costs, weir_edge_t edge, int device);
double weir_costs_sending_ns(const weir_costs_t* costs, weir_edge_t edge, int device);
// The memory of a node's input, or output, |i| when the node is on |device|.
int weir_costs_memory(const weir_costs_t* costs, const weir_node_t* node, int i, bool is_output,
                      int device);
// The same of a control edge: its memory is the process.
int weir_costs_process(const weir_costs_t* costs, int device);
// Whether the edge is one that values are sent along: not to be waited for is a constant, which is
// everywhere, and what the next iteration of a loop gets.
bool weir_costs_is_sent(const weir_node_t* reader, weir_edge_t edge);

#endif  // WEIR_PASS_COSTS_H_
