// frames.c — The loops of a graph as a plan needs them.
#include "exec/frames.h"

#include "graph/analysis.h"

enum { MAX_PARALLEL = 1 << 20 };

static weir_status_t* fill_frame(const weir_loop_t* loop, weir_arena_t* arena,
                                 weir_plan_frame_t* out_frame) {
  int64_t parallel =
      loop->enter ? weir_attrs_int(loop->enter->def.attrs, "parallel_iterations") : 1;
  *out_frame = (weir_plan_frame_t){
      .parent = loop->parent,
      .name = weir_arena_strndup(arena, loop->name.data, loop->name.size),
      .enter_count = loop->enter_count,
      .parallel_iterations = (int32_t)WEIR_MAX(1, WEIR_MIN(parallel, MAX_PARALLEL))};
  return out_frame->name ? NULL : weir_out_of_memory();
}

weir_status_t* weir_frames_find(const weir_graph_t* graph, weir_node_t* const* nodes, int32_t count,
                                weir_arena_t* scratch, weir_arena_t* arena, int32_t* frame_of,
                                int32_t* child_of, weir_plan_frame_t** out_frames,
                                int32_t* out_frame_count) {
  weir_loops_t loops;
  WEIR_TRY(weir_loops_find(graph, nodes, (size_t)count, scratch, &loops));
  weir_plan_frame_t* frames = weir_arena_array(arena, (size_t)loops.count, sizeof(*frames));
  if (!frames) return weir_out_of_memory();
  for (int i = 0; i < loops.count; ++i) WEIR_TRY(fill_frame(&loops.items[i], arena, &frames[i]));
  for (int32_t i = 0; i < count; ++i) {
    WEIR_TRY(weir_loops_check(&loops, nodes[i]));
    bool is_enter = weir_node_role(nodes[i]) == WEIR_ROLE_ENTER;
    frame_of[i] = loops.inside[nodes[i]->id];
    child_of[i] = is_enter ? loops.outputs[nodes[i]->id] : -1;
  }
  *out_frames = frames;
  *out_frame_count = loops.count;
  return NULL;
}
