// frames.h — Which loop each node of a plan belongs to.
#ifndef WEIR_EXEC_FRAMES_H_
#define WEIR_EXEC_FRAMES_H_

#include "exec/plan.h"

// |nodes| in topological order. |frame_of| and |child_of| (by position), and the frames' parent,
// name, enter_count and parallel_iterations are filled; frames are in |arena|. INVALID_ARGUMENT
// naming the node when inputs come from different frames.
WEIR_MUST_USE weir_status_t* weir_frames_find(const weir_graph_t* graph, weir_node_t* const* nodes,
                                              int32_t count, weir_arena_t* scratch,
                                              weir_arena_t* arena, int32_t* frame_of,
                                              int32_t* child_of, weir_plan_frame_t** out_frames,
                                              int32_t* out_frame_count);

#endif  // WEIR_EXEC_FRAMES_H_
