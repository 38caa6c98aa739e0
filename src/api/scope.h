// scope.h — Scopes from inside, for what builds graphs.
#ifndef WEIR_API_SCOPE_H_
#define WEIR_API_SCOPE_H_

#include "base/live.h"
#include "graph/graph.h"
#include "weir/attrs.h"
#include "weir/eager.h"
#include "weir/partition.h"
#include "weir/scope.h"

// The edges collected under one key.
typedef struct weir_scope_collection_t weir_scope_collection_t;
struct weir_scope_collection_t {
  const char* key;
  weir_edge_t* edges;
  size_t count, capacity;
  weir_scope_collection_t* next;
};

// The loop or branch that nodes belong to (api/control.h).
typedef struct weir_control_t weir_control_t;

typedef struct weir_scope_root_t {
  weir_live_t live;       // of the root scope
  weir_graph_t* graph;    // retained
  weir_status_t* status;  // sticky
  weir_arena_t arena;     // every scope but nothing of the graph
  weir_variable_info_t* variables;
  size_t variable_count, variable_capacity;
  weir_scope_collection_t* collections;
  weir_control_t** controls;  // by node id, where a node is inside a loop or branch; on the heap
  size_t control_capacity;
  struct weir_capture_t* tokens;           // nodes → values that come after them
  int64_t seed;                            // of what is random; 0: the machine's
  struct weir_function_scope_t* function;  // NULL: nodes are no function's (api/function.h)
} weir_scope_root_t;

struct weir_scope_t {
  weir_scope_root_t* root;
  const char* prefix;                         // "" or "a/b"
  const char* device;                         // NULL: none
  weir_variable_device_fn_t variable_device;  // of variables; NULL: |device|
  void* variable_device_arg;
  const char* next_name;  // NULL: after the op
  weir_node_t* const* controls;
  int control_count;
  weir_control_t* control;  // NULL: the graph itself
};

// Adds a node; NULL after an error, which sticks.
weir_node_t* weir_scope_add(weir_scope_t* scope, const char* op, const char* name,
                            weir_edges_t inputs, weir_attrs_t attrs);
WEIR_INLINE weir_edge_t weir_scope_first(weir_node_t* node) {
  return (weir_edge_t){.node = node, .index = 0};
}

// A variable; |part|: NULL, or which slice of a larger tensor it is. What weir_variable does.
weir_edge_t weir_scope_add_variable(weir_scope_t* scope, const char* name, weir_edge_t initial,
                                    const weir_variable_part_t* part, bool is_trainable);

// The two ends of that, for variables that start in another way: the handle, on |device|, outside
// of loops; and a place among the root scope's.
weir_node_t* weir_scope_add_handle(weir_scope_t* scope, const char* name, const char* device,
                                   weir_attrs_t attrs);
void weir_scope_remember(weir_scope_t* scope, const weir_variable_info_t* variable);

// |edge|, which may be of another eager scope where |scope| is one: what stands for it here. As it
// is on other scopes, and where it is none.
weir_edge_t weir_scope_local(weir_scope_t* scope, weir_edge_t edge);

// Whether |count| is one; if not, INVALID_ARGUMENT that names |function| and |name| sticks.
bool weir_scope_has_count(weir_scope_t* scope, int count, const char* function, const char* name);

#endif  // WEIR_API_SCOPE_H_
