// part.h — What a variable's handle says of the tensor it is a slice of, and of the file it lies
// in: attributes, which other programs pass over and GraphDefs keep.
#ifndef WEIR_API_PART_H_
#define WEIR_API_PART_H_

#include "graph/graph.h"
#include "weir/partition.h"

#define WEIR_PART_NAME "_save_name"
#define WEIR_PART_SLICE "_save_slice"
#define WEIR_VARIABLE_FILE "_file"

// Sets both strings, copied into |arena|, or neither where |handle| is a variable by itself.
WEIR_MUST_USE weir_status_t* weir_part_of(const weir_node_t* handle, weir_arena_t* arena,
                                          weir_variable_part_t* out_part);

// Whether |variable| is an output of a node, as |function| requires; if not, an error sticks.
bool weir_part_has_variable(weir_scope_t* scope, weir_edge_t variable, const char* function);
// The handle behind a value, or |variable| itself.
const weir_node_t* weir_part_handle(const weir_node_t* variable);
// An attribute that is a string; NULL: |handle| has none.
const weir_attr_t* weir_part_attr(const weir_node_t* handle, const char* name);
// What |part| says, against |shape| as far as that is known.
WEIR_MUST_USE weir_status_t* weir_part_check(const char* name, const weir_shape_t* shape,
                                             const weir_variable_part_t* part);

#endif  // WEIR_API_PART_H_
