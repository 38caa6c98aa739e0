// fuse_join.c — Groups of elementwise nodes that are joined though others read what the first one
// makes.
//
// Those others then wait for all that the second group waits for. So it must not be they that lead
// to it: a search along the edges, through whole groups, looks for a way from one to the other.
// Ways lead on in the topological order, but for groups that others read in the middle of, which
// lead back to their first node, and for loops: what enters one may come out of any of its exits,
// turns later, by another variable. The search is bounded; "not known in time" means no.
//
// And there are ways that are no edges. A dequeue may wait for an enqueue, a Recv for a Send whose
// tensor comes back from another task. So others must not come to wait for an op that waits
// (asynchronous kernels, transfers, calls) if they did not before.
#include "pass/fuse_internal.h"

enum {
  SEARCH_LIMIT = 512,  // nodes
  WAITING_LIMIT = 63,  // waiting nodes that are told apart
};
#define MANY ((uint64_t)1 << WAITING_LIMIT)

typedef struct join_t {
  weir_fuse_t* f;
  int* first_reader;  // by node id: where its readers begin in |readers|; they end at the next's
  weir_node_t** readers;  // by data or control edges, back edges of loops left out
  uint64_t* waits;        // by node id, bit i: for waiting node i; MANY: or for another one
  uint64_t* awaits;       // by group: the same, of what its members wait for by control edges
  int* position;          // by node id: in the topological order
  int* begins;            // by group: position of its first member
  int* ends;              // by group: and of its last
  weir_node_t** exits;    // by loop: its last Exit; before[id]: the one before it
  weir_node_t** before;
  int* exit_begins;      // by loop: position of its first Exit
  int* enter_ends;       // by loop: and of its last Enter
  uint64_t* loop_waits;  // by loop: what its Enter nodes wait for
  bool* is_joined;       // by group: it may be read in the middle of
  int* seen;             // by node id: the last search that came here
  int* group_seen;       // by group: likewise
  int search;
  int limit;  // of the search: position beyond which no way leads back
  weir_node_t** stack;
  size_t depth;
} join_t;

// ---- edges ----

// What members of groups wait for is known more precisely than by their edges.
static weir_fuse_controls_t controls_of(const join_t* j, const weir_node_t* node) {
  if (j->f->group_of[node->id] >= 0) return j->f->controls[node->id];
  return (weir_fuse_controls_t){.nodes = node->control_inputs, .count = node->control_count};
}

static int source_count(const join_t* j, const weir_node_t* node) {
  return node->def.input_count + controls_of(j, node).count;
}

static weir_node_t* source_at(const join_t* j, const weir_node_t* node, int i) {
  int inputs = node->def.input_count;
  return i < inputs ? node->inputs[i].node : controls_of(j, node).nodes[i - inputs];
}

static weir_status_t* list_readers(join_t* j) {
  const weir_rewrite_t* rewrite = &j->f->rewrite;
  weir_arena_t* arena = &j->f->rewrite.arena;
  size_t edges = 0;
  j->first_reader = weir_arena_array(arena, rewrite->count + 2, sizeof(*j->first_reader));
  if (!j->first_reader) return weir_out_of_memory();
  int* ends = j->first_reader + 1;
  for (size_t k = 0; k < rewrite->count; ++k) {
    const weir_node_t* node = rewrite->order[k];
    for (int i = 0; i < source_count(j, node) && j->f->is_live[node->id]; ++i, ++edges)
      ++ends[source_at(j, node, i)->id];
  }
  j->readers = weir_arena_array(arena, edges + 1, sizeof(*j->readers));
  if (!j->readers) return weir_out_of_memory();
  for (size_t i = 0; i < rewrite->count; ++i) ends[i] += j->first_reader[i];
  // Filled from their ends; then the ends are the beginnings of the next ones again.
  for (size_t k = 0; k < rewrite->count; ++k) {
    weir_node_t* node = rewrite->order[k];
    for (int i = 0; i < source_count(j, node) && j->f->is_live[node->id]; ++i)
      j->readers[--ends[source_at(j, node, i)->id]] = node;
  }
  for (size_t i = 0; i + 1 < rewrite->count; ++i) ends[i] = ends[i + 1];
  if (rewrite->count) ends[rewrite->count - 1] = (int)edges;
  j->first_reader[0] = 0;
  return NULL;
}

// ---- what waits ----

static void number_waiting(join_t* j) {
  int count = 0;
  for (size_t k = 0; k < j->f->rewrite.count; ++k) {
    const weir_node_t* node = j->f->rewrite.order[k];
    if (!j->f->is_live[node->id] || !weir_rewrite_may_wait(node)) continue;
    j->waits[node->id] = (uint64_t)1 << count;
    count = WEIR_MIN(count + 1, WAITING_LIMIT);
  }
}

// Hands on what |node| waits for; an Exit waits for all that enters its loop. True: a loop has come
// to wait for more, whose exits may have been before.
static bool pass_waiting(join_t* j, const weir_node_t* node) {
  uint64_t waits = j->waits[node->id];
  for (int i = 0; i < source_count(j, node); ++i) waits |= j->waits[source_at(j, node, i)->id];
  weir_role_t role = weir_node_role(node);
  if (role == WEIR_ROLE_EXIT) waits |= j->loop_waits[j->f->loops.inside[node->id]];
  j->waits[node->id] = waits;
  if (role != WEIR_ROLE_ENTER) return false;
  uint64_t* loop = &j->loop_waits[j->f->loops.outputs[node->id]];
  bool is_news = waits & ~*loop;
  *loop |= waits;
  return is_news;
}

static weir_status_t* mark_waiting(join_t* j) {
  const weir_rewrite_t* rewrite = &j->f->rewrite;
  j->waits = weir_arena_array(&j->f->rewrite.arena, rewrite->count + 1, sizeof(*j->waits));
  if (!j->waits) return weir_out_of_memory();
  number_waiting(j);
  for (bool is_news = true; is_news;) {
    is_news = false;
    for (size_t k = 0; k < rewrite->count; ++k) is_news |= pass_waiting(j, rewrite->order[k]);
  }
  for (size_t k = 0; k < rewrite->count; ++k) {
    const weir_node_t* node = rewrite->order[k];
    int group = j->f->group_of[node->id];
    for (int i = 0; group >= 0 && i < j->f->controls[node->id].count; ++i)
      j->awaits[group] |= j->waits[j->f->controls[node->id].nodes[i]->id];
  }
  return NULL;
}

static int group_at(const join_t* j, const weir_node_t* node) { return j->f->group_of[node->id]; }

// Whether |node| of group |number| is read or awaited outside of it.
static bool is_seen_outside(const join_t* j, const weir_node_t* node, int number, int other) {
  if (j->f->is_awaited[node->id]) return true;
  for (int i = j->first_reader[node->id]; i < j->first_reader[node->id + 1]; ++i) {
    int group = group_at(j, j->readers[i]);
    if (group != number && group != other) return true;
  }
  return false;
}

// Whether whoever reads |from| from outside waits already for all that |to| waits for.
static bool keeps_waiting(const join_t* j, int from, int to) {
  const weir_fuse_group_t* first = j->f->groups[from];
  const weir_fuse_group_t* second = j->f->groups[to];
  uint64_t waits = j->awaits[from] | j->awaits[to];
  for (int i = 0; i < second->input_count; ++i) {
    const weir_node_t* source = second->inputs[i].node;
    if (group_at(j, source) != from) waits |= j->waits[source->id];
  }
  for (int i = 0; i < first->input_count; ++i) waits |= j->waits[first->inputs[i].node->id];
  if (waits & MANY) return false;
  for (const weir_node_t* node = first->first; node; node = j->f->next_member[node->id]) {
    if (is_seen_outside(j, node, from, to) && (waits & ~j->waits[node->id])) return false;
  }
  return true;
}

// ---- ways from one group to another ----

static void visit(join_t* j, weir_node_t* node) {
  if (j->seen[node->id] == j->search || j->position[node->id] > j->limit) return;
  j->seen[node->id] = j->search;
  j->stack[j->depth++] = node;
}

static void visit_readers(join_t* j, const weir_node_t* node, int from) {
  for (int i = j->first_reader[node->id]; i < j->first_reader[node->id + 1]; ++i) {
    weir_node_t* reader = j->readers[i];
    if (!weir_node_is_back_edge(reader, node) && group_at(j, reader) != from) visit(j, reader);
  }
}

static void visit_exits(join_t* j, const weir_node_t* enter) {
  weir_node_t* exit = j->exits[j->f->loops.outputs[enter->id]];
  for (; exit; exit = j->before[exit->id]) visit(j, exit);
}

static void visit_members(join_t* j, int number, int from) {
  if (j->group_seen[number] == j->search) return;
  j->group_seen[number] = j->search;
  for (weir_node_t* m = j->f->groups[number]->first; m; m = j->f->next_member[m->id])
    visit_readers(j, m, from);
}

// The last position from which a way may lead to group |to|.
static int last_position(const join_t* j, int to) {
  int limit = j->ends[to];
  for (int before = -1; before != limit;) {
    before = limit;
    for (int g = 0; g < j->f->group_count; ++g) {
      if (j->is_joined[g] && j->begins[g] <= limit) limit = WEIR_MAX(limit, j->ends[g]);
    }
    for (int i = 1; i < j->f->loops.count; ++i) {
      if (j->exits[i] && j->exit_begins[i] <= limit) limit = WEIR_MAX(limit, j->enter_ends[i]);
    }
  }
  return limit;
}

// Whether something outside is between |from| and |to|. True when it takes too long to tell.
static bool is_between(join_t* j, int from, int to) {
  ++j->search;
  j->depth = 0;
  j->limit = last_position(j, to);
  for (weir_node_t* m = j->f->groups[from]->first; m; m = j->f->next_member[m->id]) {
    for (int i = j->first_reader[m->id]; i < j->first_reader[m->id + 1]; ++i) {
      int group = group_at(j, j->readers[i]);
      if (group != from && group != to) visit(j, j->readers[i]);
    }
  }
  for (int budget = SEARCH_LIMIT; j->depth > 0; --budget) {
    weir_node_t* node = j->stack[--j->depth];
    int group = group_at(j, node);
    if (group == to || budget == 0) return true;
    if (group >= 0) visit_members(j, group, from);
    else visit_readers(j, node, from);
    if (weir_node_role(node) == WEIR_ROLE_ENTER) visit_exits(j, node);
  }
  return false;
}

// ---- joining ----

// The inputs of both, in |out|; false when they are too many.
static bool unite_inputs(const join_t* j, int from, int to, weir_fuse_group_t* out) {
  out->input_count = 0;
  for (int side = 0; side < 2; ++side) {
    const weir_fuse_group_t* group = j->f->groups[side ? from : to];
    for (int i = 0; i < group->input_count; ++i) {
      weir_edge_t edge = group->inputs[i];
      if (group_at(j, edge.node) == from || weir_fuse_find_input(out, edge) >= 0) continue;
      if (out->input_count == WEIR_FUSED_MAX_INPUTS) return false;
      out->inputs[out->input_count++] = edge;
    }
  }
  return true;
}

// Whether |to| reads what a reduction of |from| makes, or both have one.
static bool is_reduction_between(const join_t* j, int from, int to) {
  const weir_fuse_group_t* second = j->f->groups[to];
  if (!j->f->groups[from]->reduces) return false;
  for (int i = 0; i < second->input_count; ++i) {
    const weir_node_t* source = second->inputs[i].node;
    if (group_at(j, source) == from && weir_fuse_reduces(source)) return true;
  }
  return second->reduces;
}

static bool can_join(join_t* j, int from, int to, weir_fuse_group_t* united) {
  const weir_fuse_group_t* first = j->f->groups[from];
  const weir_fuse_group_t* second = j->f->groups[to];
  return first->member_count + second->member_count <= WEIR_FUSED_MAX_STEPS &&
         weir_fuse_is_alike(j->f, first->root, second->root) &&
         !is_reduction_between(j, from, to) && unite_inputs(j, from, to, united) &&
         keeps_waiting(j, from, to) && !is_between(j, from, to);
}

static void join(join_t* j, int from, int to, const weir_fuse_group_t* united) {
  weir_fuse_group_t* first = j->f->groups[from];
  weir_fuse_group_t* second = j->f->groups[to];
  weir_node_t* last = first->first;
  j->f->group_of[last->id] = to;
  while (j->f->next_member[last->id]) {
    last = j->f->next_member[last->id];
    j->f->group_of[last->id] = to;
  }
  j->f->next_member[last->id] = second->first;
  second->first = first->first;
  second->member_count += first->member_count;
  second->reduces |= first->reduces;
  second->input_count = united->input_count;
  memcpy(second->inputs, united->inputs, sizeof(*united->inputs) * (size_t)united->input_count);
  *first = (weir_fuse_group_t){.root = first->root};
  j->begins[to] = WEIR_MIN(j->begins[to], j->begins[from]);
  j->ends[to] = WEIR_MAX(j->ends[to], j->ends[from]);
  j->awaits[to] |= j->awaits[from];
  j->is_joined[to] = true;
  j->is_joined[from] = false;
}

static void join_readers(join_t* j, const weir_node_t* node) {
  weir_fuse_group_t united;
  for (int i = j->first_reader[node->id]; i < j->first_reader[node->id + 1]; ++i) {
    int from = group_at(j, node);
    int to = group_at(j, j->readers[i]);
    if (to >= 0 && to != from && can_join(j, from, to, &united)) join(j, from, to, &united);
  }
}

static weir_status_t* find_ends_of_loops(join_t* j) {
  const weir_loops_t* loops = &j->f->loops;
  weir_arena_t* arena = &j->f->rewrite.arena;
  size_t count = (size_t)loops->count;
  j->exits = weir_arena_array(arena, count, sizeof(weir_node_t*));
  j->before = weir_arena_array(arena, j->f->rewrite.count + 1, sizeof(weir_node_t*));
  j->exit_begins = weir_arena_array(arena, count, sizeof(*j->exit_begins));
  j->enter_ends = weir_arena_array(arena, count, sizeof(*j->enter_ends));
  j->loop_waits = weir_arena_array(arena, count, sizeof(*j->loop_waits));
  if (!j->exits || !j->before || !j->exit_begins || !j->enter_ends || !j->loop_waits)
    return weir_out_of_memory();
  for (size_t k = 0; k < j->f->rewrite.count; ++k) {
    weir_node_t* node = j->f->rewrite.order[k];
    weir_role_t role = weir_node_role(node);
    if (role == WEIR_ROLE_ENTER) j->enter_ends[loops->outputs[node->id]] = (int)k;
    if (role != WEIR_ROLE_EXIT) continue;
    int loop = loops->inside[node->id];
    if (!j->exits[loop]) j->exit_begins[loop] = (int)k;
    j->before[node->id] = j->exits[loop];
    j->exits[loop] = node;
  }
  return NULL;
}

static weir_status_t* init(join_t* j) {
  weir_fuse_t* f = j->f;
  weir_arena_t* arena = &f->rewrite.arena;
  size_t count = f->rewrite.count + 1, groups = (size_t)f->group_count + 1;
  j->position = weir_arena_array(arena, count, sizeof(*j->position));
  j->begins = weir_arena_array(arena, groups, sizeof(*j->begins));
  j->ends = weir_arena_array(arena, groups, sizeof(*j->ends));
  j->is_joined = weir_arena_array(arena, groups, sizeof(*j->is_joined));
  j->awaits = weir_arena_array(arena, groups, sizeof(*j->awaits));
  j->seen = weir_arena_array(arena, count, sizeof(*j->seen));
  j->group_seen = weir_arena_array(arena, groups, sizeof(*j->group_seen));
  j->stack = weir_arena_array(arena, count, sizeof(*j->stack));
  if (!j->position || !j->begins || !j->ends || !j->is_joined || !j->awaits || !j->seen ||
      !j->group_seen || !j->stack)
    return weir_out_of_memory();
  for (size_t k = f->rewrite.count; k-- > 0;) {
    const weir_node_t* node = f->rewrite.order[k];
    int group = f->group_of[node->id];
    j->position[node->id] = (int)k;
    if (group < 0) continue;
    j->begins[group] = (int)k;
    if (node == f->groups[group]->root) j->ends[group] = (int)k;
  }
  WEIR_TRY(find_ends_of_loops(j));
  WEIR_TRY(list_readers(j));
  return mark_waiting(j);
}

weir_status_t* weir_fuse_join_groups(weir_fuse_t* f) {
  join_t j = {.f = f};
  WEIR_TRY(init(&j));
  for (size_t k = f->rewrite.count; k-- > 0;) {  // readers before what they read
    const weir_node_t* node = f->rewrite.order[k];
    if (f->is_live[node->id] && f->group_of[node->id] >= 0) join_readers(&j, node);
  }
  return NULL;
}
