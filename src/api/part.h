// part.h — What a variable's handle says of the tensor it is a slice of: two attributes, which
// other programs pass over and GraphDefs keep.
#ifndef WEIR_API_PART_H_
#define WEIR_API_PART_H_

#include "graph/graph.h"
#include "weir/partition.h"

#define WEIR_PART_NAME "_save_name"
#define WEIR_PART_SLICE "_save_slice"

// Sets both strings, copied into |arena|, or neither where |handle| is a variable by itself.
WEIR_MUST_USE weir_status_t* weir_part_of(const weir_node_t* handle, weir_arena_t* arena,
                                          weir_variable_part_t* out_part);

#endif  // WEIR_API_PART_H_
