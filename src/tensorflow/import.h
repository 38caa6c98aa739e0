// import.h — What an import is asked for, and what it gives back.
#ifndef WEIR_TENSORFLOW_IMPORT_H_
#define WEIR_TENSORFLOW_IMPORT_H_

#include "graph/graph.h"
#include "tensorflow/c/c_api.h"

typedef struct tf_input_mapping_t {
  const char* name;  // in the GraphDef
  int index;         // -1: its control output
  weir_edge_t to;
  bool is_used;  // by the import under way; guarded by the graph's lock
} tf_input_mapping_t;
typedef struct tf_return_t {
  const char* name;
  int index;
} tf_return_t;

// Names are in |arena|.
struct TF_ImportGraphDefOptions {
  weir_arena_t arena;
  const char* prefix;          // NULL: none
  const char* default_device;  // NULL: none
  bool uniquify_names;
  bool uniquify_prefix;
  tf_input_mapping_t* mappings;
  size_t mapping_count, mapping_capacity;
  weir_node_t** controls;
  size_t control_count, control_capacity;
  tf_return_t* outputs;
  size_t output_count, output_capacity;
  tf_return_t* operations;
  size_t operation_count, operation_capacity;
};

// Arrays are in |arena|, with room for all that the options ask for.
struct TF_ImportGraphDefResults {
  weir_arena_t arena;
  TF_Output* outputs;
  int output_count;
  TF_Operation** operations;
  int operation_count;
  const char** missing_names;
  int* missing_indexes;
  int missing_count;
};

// Adds the nodes of a GraphDef. |results| may be NULL.
WEIR_MUST_USE weir_status_t* tf_graph_import(weir_graph_t* graph, weir_view_t graph_def,
                                             const TF_ImportGraphDefOptions* options,
                                             TF_ImportGraphDefResults* results);
// The same for a caller that holds the graph's lock.
WEIR_MUST_USE weir_status_t* tf_graph_import_locked(weir_graph_t* graph, weir_view_t graph_def,
                                                    const TF_ImportGraphDefOptions* options,
                                                    TF_ImportGraphDefResults* results);

#endif  // WEIR_TENSORFLOW_IMPORT_H_
