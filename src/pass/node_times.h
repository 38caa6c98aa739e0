// node_times.h — How long nodes took when a step was traced. Immutable after create.
#ifndef WEIR_PASS_NODE_TIMES_H_
#define WEIR_PASS_NODE_TIMES_H_

#include "base/alloc.h"
#include "base/map.h"

// Of all times the node ran in the step.
typedef struct weir_node_time_t {
  double ns;
  double bytes;  // of its outputs, each time
  int visits;
  bool is_stream;      // it is what the device took, not what the host took to launch
  const char* device;  // full name, where the trace has it; else ""
} weir_node_time_t;

typedef struct weir_node_times_t {
  weir_map_t by_name;  // name → weir_node_time_t
  weir_arena_t arena;
} weir_node_times_t;

// Reads a trace as `weir bench --profile` writes it. INVALID_ARGUMENT says what is wrong with it.
WEIR_MUST_USE weir_status_t* weir_node_times_parse(weir_view_t json, weir_node_times_t** out_times);
// The same of a file.
WEIR_MUST_USE weir_status_t* weir_node_times_load(const char* path, weir_node_times_t** out_times);
void weir_node_times_destroy(weir_node_times_t* times);  // NULL-safe
// NULL when the node was not traced, or |times| is NULL.
const weir_node_time_t* weir_node_times_find(const weir_node_times_t* times, const char* name);

#endif  // WEIR_PASS_NODE_TIMES_H_
