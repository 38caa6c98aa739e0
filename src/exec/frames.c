// frames.c — Which loop each node belongs to.
#include "exec/frames.h"

typedef struct finder_t {
  weir_arena_t* arena;
  weir_plan_frame_t* frames;
  size_t capacity;
  int32_t count;
} finder_t;

// The frame |name| within |parent|, made when it is new.
static weir_status_t* find_child(finder_t* finder, int32_t parent, weir_view_t name,
                                 const weir_node_t* enter, int32_t* out_frame) {
  for (int32_t i = 1; i < finder->count; ++i) {
    weir_plan_frame_t* frame = &finder->frames[i];
    if (frame->parent != parent || !weir_view_is(name, frame->name)) continue;
    ++frame->enter_count;
    *out_frame = i;
    return NULL;
  }
  if (!WEIR_GROW(finder->frames, finder->capacity, (size_t)finder->count + 1))
    return weir_out_of_memory();
  int64_t parallel = weir_attrs_int(enter->def.attrs, "parallel_iterations");
  char* copy = weir_arena_strndup(finder->arena, name.data, name.size);
  if (!copy) return weir_out_of_memory();
  finder->frames[finder->count] =
      (weir_plan_frame_t){.parent = parent,
                          .name = copy,
                          .enter_count = 1,
                          .parallel_iterations = (int32_t)(parallel < 1         ? 1
                                                           : parallel > 1 << 20 ? 1 << 20
                                                                                : parallel)};
  *out_frame = finder->count++;
  return NULL;
}

// The frame in which the outputs of the node at |position| live.
static int32_t frame_after(const finder_t* finder, const weir_node_t* node, int32_t frame,
                           int32_t child) {
  switch (weir_node_role(node)) {
    case WEIR_ROLE_ENTER: return child;
    case WEIR_ROLE_EXIT: return finder->frames[frame].parent;
    default: return frame;
  }
}

static weir_status_t* place_node(finder_t* finder, const weir_node_t* node, const int32_t* position,
                                 int32_t at, int32_t* frame_of, const int32_t* child_of) {
  int32_t frame = -1;
  bool is_merge = weir_node_role(node) == WEIR_ROLE_MERGE;
  for (int i = 0; i < node->def.input_count + node->control_count; ++i) {
    bool is_data = i < node->def.input_count;
    const weir_node_t* source =
        is_data ? node->inputs[i].node : node->control_inputs[i - node->def.input_count];
    if (is_merge && weir_node_role(source) == WEIR_ROLE_NEXT_ITERATION)
      continue;  // a back edge, placed later
    if (weir_node_is_free_const(source) && !(is_merge && is_data)) continue;
    int32_t from = position[source->id];
    int32_t of_source = frame_after(finder, source, frame_of[from], child_of[from]);
    if (frame < 0) frame = of_source;
    if (frame != of_source) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Node '%s' has inputs from different frames: '%s' and, by '%s', '%s'",
                         node->def.name, finder->frames[frame].name, source->def.name,
                         finder->frames[of_source].name);
    }
  }
  frame_of[at] = frame < 0 ? 0 : frame;
  if (weir_node_role(node) == WEIR_ROLE_EXIT && frame_of[at] == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Node '%s' (Exit) is in no loop", node->def.name);
  }
  return NULL;
}

weir_status_t* weir_frames_find(weir_node_t* const* nodes, const int32_t* position, int32_t count,
                                weir_arena_t* arena, int32_t* frame_of, int32_t* child_of,
                                weir_plan_frame_t** out_frames, int32_t* out_frame_count) {
  finder_t finder = {.arena = arena};
  weir_status_t* status = NULL;
  if (!WEIR_GROW(finder.frames, finder.capacity, 4)) return weir_out_of_memory();
  finder.frames[0] = (weir_plan_frame_t){.parent = -1, .name = "", .parallel_iterations = 1};
  finder.count = 1;
  for (int32_t i = 0; i < count && !status; ++i) {
    child_of[i] = -1;
    status = place_node(&finder, nodes[i], position, i, frame_of, child_of);
    if (!status && weir_node_role(nodes[i]) == WEIR_ROLE_ENTER) {
      weir_view_t name = weir_attrs_string(nodes[i]->def.attrs, "frame_name");
      status = find_child(&finder, frame_of[i], name, nodes[i], &child_of[i]);
    }
  }
  if (!status) {
    *out_frames = weir_arena_array(arena, (size_t)finder.count, sizeof(**out_frames));
    if (*out_frames) {
      memcpy(*out_frames, finder.frames, sizeof(**out_frames) * (size_t)finder.count);
      *out_frame_count = finder.count;
    } else {
      status = weir_out_of_memory();
    }
  }
  weir_free(finder.frames);
  return status;
}
