// graph.h — Graphs: created empty, loaded from GraphDefs, looked into, written out.
//
// Threading: thread-safe; a graph may grow while sessions run on it.
#ifndef WEIR_GRAPH_H_
#define WEIR_GRAPH_H_

#include <stddef.h>

#include "weir/edge.h"
#include "weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_graph_t weir_graph_t;

WEIR_API WEIR_MUST_USE weir_status_t* weir_graph_create(weir_graph_t** out_graph);
WEIR_API weir_graph_t* weir_graph_retain(weir_graph_t* graph);
WEIR_API void weir_graph_release(weir_graph_t* graph);

// Creates a graph from a file: a binary GraphDef, or its text form when the name ends in .pbtxt or
// .txt.
WEIR_API WEIR_MUST_USE weir_status_t* weir_graph_load(const char* path, weir_graph_t** out_graph);
// Adds the nodes of a binary GraphDef; |prefix| (or NULL) is put before their names. Nothing is
// added on failure.
WEIR_API WEIR_MUST_USE weir_status_t* weir_graph_import_def(weir_graph_t* graph, const void* data,
                                                            size_t size, const char* prefix);
WEIR_API WEIR_MUST_USE weir_status_t* weir_graph_import_text(weir_graph_t* graph, const char* text,
                                                             size_t size, const char* prefix);
// The graph as a binary GraphDef, or as text. |out_data| is the caller's: weir_buffer_free it.
WEIR_API WEIR_MUST_USE weir_status_t* weir_graph_to_def(weir_graph_t* graph, char** out_data,
                                                        size_t* out_size);
WEIR_API WEIR_MUST_USE weir_status_t* weir_graph_to_text(weir_graph_t* graph, char** out_text,
                                                         size_t* out_size);
WEIR_API void weir_buffer_free(char* data);

// Looking into a graph. Nodes are borrowed and live as long as the graph.
WEIR_API size_t weir_graph_node_count(weir_graph_t* graph);
WEIR_API weir_node_t* weir_graph_node_at(weir_graph_t* graph, size_t index);
WEIR_API weir_node_t* weir_graph_find_node(weir_graph_t* graph,
                                           const char* name);  // NULL when absent
// "name" or "name:index". NOT_FOUND or INVALID_ARGUMENT naming it.
WEIR_API WEIR_MUST_USE weir_status_t* weir_graph_find_output(weir_graph_t* graph, const char* name,
                                                             weir_edge_t* out_edge);

WEIR_API const char* weir_node_name(const weir_node_t* node);
WEIR_API const char* weir_node_op(const weir_node_t* node);
WEIR_API const char* weir_node_device(const weir_node_t* node);
WEIR_API int weir_node_input_count(const weir_node_t* node);
WEIR_API weir_edge_t weir_node_input(const weir_node_t* node, int index);
WEIR_API int weir_node_control_count(const weir_node_t* node);
WEIR_API weir_node_t* weir_node_control(const weir_node_t* node, int index);
WEIR_API int weir_node_output_count(const weir_node_t* node);
WEIR_API weir_dtype_t weir_edge_type(weir_edge_t edge);
// Rank of the inferred shape, -1 when unknown; fills up to |capacity| dimensions, -1 where unknown.
WEIR_API int weir_edge_dims(weir_edge_t edge, int64_t* dims, int capacity);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_GRAPH_H_
