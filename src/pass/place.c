// place.c — Placement: groups of nodes that must stay together, each on the first device that all
// of its members allow.
//
// A node may ask for a device in part ("/job:ps", "/device:GPU:0") or not at all, but not every
// node may go where it asks: who takes a reference or a handle must be where the state is, and
// colocation ("loc:@name") ties nodes together. So nodes are united into groups (union-find), and a
// group's wish is what its members' wishes have in common. Where a reader of state asks for another
// place than the state's, the state wins; where two colocated nodes contradict each other, that is
// an error, or with soft placement they go separate ways. Arguments and results of the step are the
// client's and belong to no group.
//
// Each group then goes to the device that fits its wish, has kernels for all members, and is
// preferred most (a GPU to a CPU), the first of several; groups nobody spoke for go by the policy:
// a named device, any by a seed, or, all groups looked at together, where the step is shortest
// (place_cost.c). With soft placement a wish for a kind of device that is not there is dropped,
// with one warning.
//
// Afterwards free nodes follow a neighbour where that saves a transfer, and a NextIteration follows
// its Merge, whatever was asked: the back edge of a loop cannot be cut, because the first turn
// would wait for a value of the second.
//
// The choice is written into the nodes. So passes see devices, and a second placement, for the
// nodes that passes added, leaves the others where they are: they ask for it by then.
#include "pass/place.h"

#include "base/details.h"
#include "base/fingerprint.h"
#include "base/log.h"
#include "base/map.h"
#include "base/string.h"
#include "graph/analysis.h"
#include "pass/place_cost.h"

// The nodes that must be on one device; by the id of the group's root node.
typedef struct group_t {
  weir_device_name_t wanted;    // what the members ask for, taken together
  const weir_node_t* asked_by;  // one that asked for anything; NULL: none did
  const char* name;             // of a member: the one that holds state, where one does
  bool holds_state;
  int home;    // where its state is already, unless somebody asks for another place; -1: nowhere
  int device;  // -1: not chosen yet
  int first, last;  // of the list of members
} group_t;

typedef struct placer_t {
  const weir_place_params_t* params;
  weir_arena_t* arena;
  weir_device_name_t* names;  // of the devices, parsed
  int* parent;                // by node id: union-find
  int* next;                  // by node id: another member of its group; -1: it is the last
  group_t* groups;            // by node id, valid at roots
  int* device_of;             // by node id; -1: not yet
  bool has_warned;
} placer_t;

static const weir_device_name_t kAnywhere = {.replica = -1, .task = -1, .index = -1};

static int find_root(placer_t* placer, int id) {
  while (placer->parent[id] != id) {
    placer->parent[id] = placer->parent[placer->parent[id]];
    id = placer->parent[id];
  }
  return id;
}

static bool is_client(const weir_node_t* node) {
  weir_role_t role = weir_node_role(node);
  return role == WEIR_ROLE_ARG || role == WEIR_ROLE_RETVAL;
}

// ---- groups ----

// Narrows |into| to what |with| says too. False when they contradict each other.
static bool merge_names(weir_device_name_t* into, const weir_device_name_t* with,
                        bool is_type_soft) {
  if (into->job[0] && with->job[0] && strcmp(into->job, with->job)) return false;
  if (into->replica >= 0 && with->replica >= 0 && into->replica != with->replica) return false;
  if (into->task >= 0 && with->task >= 0 && into->task != with->task) return false;
  bool is_other_type = into->type[0] && with->type[0] && strcmp(into->type, with->type);
  bool is_other_index = into->index >= 0 && with->index >= 0 && into->index != with->index;
  if ((is_other_type || is_other_index) && !is_type_soft) return false;
  if (with->job[0]) memcpy(into->job, with->job, sizeof(into->job));
  if (with->replica >= 0) into->replica = with->replica;
  if (with->task >= 0) into->task = with->task;
  if (is_other_type || is_other_index) {
    into->type[0] = 0;
    into->index = -1;
    return true;
  }
  if (with->type[0]) memcpy(into->type, with->type, sizeof(into->type));
  if (with->index >= 0) into->index = with->index;
  return true;
}

static weir_status_t* add_wish(placer_t* placer, const weir_node_t* node) {
  group_t* group = &placer->groups[node->id];
  group->name = node->def.name;
  if (placer->params->home_of) group->home = placer->params->home_of[node->id];
  group->holds_state = weir_node_has(node, WEIR_OP_STATEFUL) && node->def.input_count == 0;
  if (!*node->def.device || is_client(node)) return NULL;
  WEIR_TRY(
      weir_status_at_node(weir_device_name_parse(weir_view_of(node->def.device), &group->wanted),
                          node->def.name, NULL));
  group->asked_by = node;
  return NULL;
}

// Makes one group of those of |a| and |b|. False when their wishes contradict each other; then they
// stay apart, unless they share state: the group that holds it, else that of |a|, has its will.
static bool unite(placer_t* placer, int a, int b, bool share_state) {
  a = find_root(placer, a);
  b = find_root(placer, b);
  if (a == b) return true;
  group_t joined = placer->groups[a];
  const group_t* other = &placer->groups[b];
  bool is_soft = placer->params->allow_soft_placement && !share_state;
  bool is_agreed = merge_names(&joined.wanted, &other->wanted, is_soft);
  if (!is_agreed && !share_state) return false;
  if (!is_agreed && other->holds_state && !joined.holds_state) joined = *other;
  if (is_agreed && !joined.asked_by) joined.asked_by = other->asked_by;
  if (joined.home < 0) joined.home = other->home;
  if (!joined.holds_state && other->holds_state) {
    joined.name = other->name;
    joined.holds_state = true;
  }
  joined.first = placer->groups[a].first;
  joined.last = other->last;
  placer->next[placer->groups[a].last] = other->first;
  int root = a < b ? a : b;
  placer->parent[a] = placer->parent[b] = root;
  placer->groups[root] = joined;
  return is_agreed;
}

// What two wishes do not agree on.
static const char* conflict_of(const weir_device_name_t* a, const weir_device_name_t* b) {
  if (a->job[0] && b->job[0] && strcmp(a->job, b->job)) return "jobs";
  if (a->replica >= 0 && b->replica >= 0 && a->replica != b->replica) return "replicas";
  if (a->task >= 0 && b->task >= 0 && a->task != b->task) return "tasks";
  return a->type[0] && b->type[0] && strcmp(a->type, b->type) ? "types" : "ids";
}

// The group of |node| and that of node |id|, by "loc:@". Soft placement gives up on it where the
// two ask for different places.
static weir_status_t* unite_class(placer_t* placer, const weir_node_t* node, int id) {
  const group_t* mine = &placer->groups[find_root(placer, node->id)];
  const group_t* other = &placer->groups[find_root(placer, id)];
  if (unite(placer, node->id, id, false) || placer->params->allow_soft_placement) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Cannot colocate nodes {{colocation_node %s}} and {{colocation_node %s}}: "
                     "Cannot merge devices with incompatible %s: '%s' and '%s'\n\t [[{{node %s}}]]",
                     node->def.name, placer->params->graph->nodes[id]->def.name,
                     conflict_of(&mine->wanted, &other->wanted), mine->asked_by->def.device,
                     other->asked_by->def.device, node->def.name);
}

// "loc:@name" unites the node with node |name|; where that was pruned away, with all others that
// say the same.
static weir_status_t* unite_classes(placer_t* placer, const weir_node_t* node, weir_map_t* absent) {
  const weir_attr_t* classes = weir_attrs_find(node->def.attrs, "_class");
  if (!classes || !classes->is_list || classes->kind != WEIR_ATTR_STRING) return NULL;
  for (size_t i = 0; i < classes->count; ++i) {
    weir_view_t text = classes->u.strings[i];
    if (text.size < 5 || memcmp(text.data, "loc:@", 5)) continue;
    weir_view_t name = weir_view(text.data + 5, text.size - 5);
    const weir_node_t* other = weir_graph_find(placer->params->graph, name);
    intptr_t first = other ? other->id + 1 : (intptr_t)weir_map_find(absent, name);
    if (first) WEIR_TRY(unite_class(placer, node, (int)first - 1));
    else WEIR_TRY(weir_map_put(absent, name, (void*)(intptr_t)(node->id + 1)));
  }
  return NULL;
}

// A reference or a handle is of use only where the state is: whoever made it has its will.
static void unite_state(placer_t* placer, const weir_node_t* node) {
  for (int i = 0; i < node->def.input_count; ++i) {
    const weir_node_t* source = node->inputs[i].node;
    if (is_client(source) || is_client(node)) continue;
    weir_dtype_t type = weir_edge_dtype(node->inputs[i]);
    bool is_ref = weir_dtype_is_ref(type) && weir_dtype_is_ref(node->def.input_types[i]);
    if (is_ref || weir_dtype_base(type) == WEIR_DTYPE_RESOURCE)
      unite(placer, source->id, node->id, true);
  }
}

// Nodes that name the same state, and ask for the same device, get the same.
static weir_status_t* unite_names(placer_t* placer, const weir_node_t* node, weir_map_t* named) {
  if (!weir_node_has(node, WEIR_OP_STATEFUL)) return NULL;
  const weir_attr_t* shared = weir_attrs_find(node->def.attrs, "shared_name");
  if (!shared || shared->kind != WEIR_ATTR_STRING || shared->u.s.size == 0) return NULL;
  const weir_attr_t* in = weir_attrs_find(node->def.attrs, "container");
  weir_view_t container = in && in->kind == WEIR_ATTR_STRING ? in->u.s : weir_view_of("");
  const char* key = weir_arena_printf(placer->arena, "%.*s\n%.*s", WEIR_VIEW_ARG(container),
                                      WEIR_VIEW_ARG(shared->u.s));
  if (!key) return weir_out_of_memory();
  intptr_t first = (intptr_t)weir_map_find(named, weir_view_of(key));
  if (!first) return weir_map_put(named, weir_view_of(key), (void*)(intptr_t)(node->id + 1));
  const char* device = placer->params->graph->nodes[first - 1]->def.device;
  if (!strcmp(device, node->def.device)) unite(placer, (int)first - 1, node->id, true);
  return NULL;
}

static weir_status_t* make_groups(placer_t* placer) {
  const weir_graph_t* graph = placer->params->graph;
  weir_map_t absent = {.owns_keys = false}, named = {.owns_keys = false};
  weir_status_t* status = NULL;
  for (size_t i = 0; i < graph->node_count && !status; ++i)
    status = add_wish(placer, graph->nodes[i]);
  for (size_t i = 0; i < graph->node_count && !status; ++i)
    status = unite_names(placer, graph->nodes[i], &named);
  for (size_t i = 0; i < graph->node_count && !status; ++i) unite_state(placer, graph->nodes[i]);
  for (size_t i = 0; i < graph->node_count && !status; ++i)
    status = unite_classes(placer, graph->nodes[i], &absent);
  weir_map_free(&absent);
  weir_map_free(&named);
  return status;
}

// ---- choice ----

bool weir_place_can_run(const weir_placement_t* device, const weir_node_t* node) {
  const char* type = device->kernel_type ? device->kernel_type : device->type;
  weir_role_t role = weir_node_role(node);
  if (!device->has_queue || !node->def.op || role == WEIR_ROLE_ARG || role == WEIR_ROLE_RETVAL)
    return true;
  const weir_kernel_def_t* kernel = weir_op_kernel(&node->def, type);
  // One that was written for the device waits for nobody else.
  return kernel && (kernel->compute || !strcmp(kernel->device, device->type));
}

static bool can_run_group(placer_t* placer, int device, int root) {
  const weir_graph_t* graph = placer->params->graph;
  if (!placer->params->devices[device].has_queue) return true;
  for (int id = placer->groups[root].first; id >= 0; id = placer->next[id]) {
    if (!weir_place_can_run(&placer->params->devices[device], graph->nodes[id])) return false;
  }
  return true;
}

// The first of those that are preferred most.
static int best_match(placer_t* placer, const weir_device_name_t* wanted, int root) {
  const weir_placement_t* devices = placer->params->devices;
  int best = -1;
  for (int i = 0; i < placer->params->device_count; ++i) {
    bool is_better = best < 0 || devices[i].preference > devices[best].preference;
    if (is_better && weir_device_name_matches(wanted, &placer->names[i]) &&
        can_run_group(placer, i, root))
      best = i;
  }
  return best;
}

static weir_status_t* no_device(const placer_t* placer, const weir_node_t* node) {
  weir_strbuf_t list = {0};
  for (int i = 0; i < placer->params->device_count && i < 16; ++i)
    weir_strbuf_printf(&list, "%s%s", i ? ", " : "", placer->params->devices[i].device);
  if (placer->params->device_count > 16) weir_strbuf_puts(&list, ", ...");
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT,
      "Cannot assign a device for operation %s: {{node %s}} was explicitly assigned to %s but "
      "available devices are [ %s ]. Make sure the device specification refers to a valid device.",
      node->def.name, node->def.name, node->def.device, list.data ? list.data : "");
  weir_strbuf_free(&list);
  return status;
}

// One line for all that soft placement puts elsewhere.
static void note_moved(placer_t* placer, const group_t* group) {
  if (placer->has_warned) return;
  placer->has_warned = true;
  WEIR_LOG(WARNING, "Node '%s' asks for %s, which is not there or cannot run it: it runs on %s",
           group->asked_by->def.name, group->asked_by->def.device,
           placer->params->devices[group->device].device);
}

// By the policy, for a group that nobody constrained; -1: it has nothing to say.
static int choose_freely(placer_t* placer, int root) {
  const weir_place_policy_t* policy = &placer->params->policy;
  int count = placer->params->device_count;
  if (policy->kind == WEIR_PLACE_NAMED) return best_match(placer, &policy->device, root);
  if (policy->kind != WEIR_PLACE_RANDOM) return -1;
  const char* name = placer->groups[root].name;
  uint64_t drawn = weir_fingerprint64(name, strlen(name)) ^ policy->seed;
  int first = (int)(weir_fingerprint64(&drawn, sizeof(drawn)) % (uint64_t)count);
  for (int i = 0; i < count; ++i) {
    if (can_run_group(placer, (first + i) % count, root)) return (first + i) % count;
  }
  return -1;
}

static weir_status_t* choose(placer_t* placer, int root) {
  group_t* group = &placer->groups[root];
  weir_device_name_t wanted = group->wanted;
  if (!group->asked_by) group->device = choose_freely(placer, root);
  if (group->device >= 0) return NULL;
  group->device = best_match(placer, &wanted, root);
  if (group->device >= 0) return NULL;
  if (placer->params->allow_soft_placement) {
    wanted.type[0] = 0;
    wanted.index = -1;
    if (placer->params->is_alone) wanted = kAnywhere;
    group->device = best_match(placer, &wanted, root);
    if (group->device >= 0) note_moved(placer, group);
  }
  return group->device >= 0 ? NULL : no_device(placer, group->asked_by);
}

static weir_status_t* choose_all(placer_t* placer) {
  const weir_graph_t* graph = placer->params->graph;
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    group_t* group = &placer->groups[find_root(placer, (int)i)];
    if (is_client(node)) {
      placer->device_of[i] = placer->params->client;
      continue;
    }
    if (group->device < 0) WEIR_TRY(choose(placer, find_root(placer, (int)i)));
    placer->device_of[i] = group->device;
  }
  return NULL;
}

// ---- by cost ----

// Whether |node| stays with the client for want of a reason to go: what it takes nobody knows, and
// the files it may read or write are of the task it is on.
static bool stays(placer_t* placer, const weir_node_t* node, int device) {
  const weir_placement_t* devices = placer->params->devices;
  const weir_device_name_t* wanted = &placer->groups[find_root(placer, node->id)].wanted;
  return weir_node_has(node, WEIR_OP_UNBOUNDED) && !wanted->job[0] && wanted->task < 0 &&
         devices[device].task != devices[placer->params->client].task;
}

// Where each group may be: the devices that its members ask for and that can run all of them.
static weir_status_t* find_allowed(placer_t* placer, bool** out_allowed) {
  const weir_place_params_t* params = placer->params;
  size_t count = params->graph->node_count, width = (size_t)params->device_count;
  bool* allowed = weir_arena_array(placer->arena, (count + 1) * width, sizeof(*allowed));
  if (!allowed) return weir_out_of_memory();
  for (size_t i = 0; i < count * width; ++i) {
    const group_t* group = &placer->groups[find_root(placer, (int)(i / width))];
    const weir_device_name_t* name = &placer->names[i % width];
    bool is_open = !params->devices[i % width].is_reserved || group->wanted.type[0];
    int fixed = group->device < 0 && !group->asked_by ? group->home : group->device;
    allowed[i] = fixed >= 0 ? fixed == (int)(i % width)
                            : is_open && weir_device_name_matches(&group->wanted, name);
  }
  for (size_t i = 0; i < count * width; ++i) {
    bool* root = &allowed[(size_t)find_root(placer, (int)(i / width)) * width + i % width];
    const weir_node_t* node = params->graph->nodes[i / width];
    int device = (int)(i % width);
    if (is_client(node)) *root = device == params->client;
    else if (*root &&
             (stays(placer, node, device) || !weir_place_can_run(&params->devices[device], node)))
      *root = false;
  }
  *out_allowed = allowed;
  return NULL;
}

// Groups that nothing is left for are placed as if nobody looked at costs: that may be an error, or
// soft.
static weir_status_t* choose_impossible(placer_t* placer, bool* allowed) {
  size_t width = (size_t)placer->params->device_count;
  for (size_t i = 0; i < placer->params->graph->node_count; ++i) {
    bool is_possible = find_root(placer, (int)i) != (int)i;
    for (size_t k = 0; k < width; ++k) is_possible |= allowed[i * width + k];
    if (is_possible) continue;
    WEIR_TRY(choose(placer, (int)i));
    allowed[i * width + (size_t)placer->groups[i].device] = true;
  }
  return NULL;
}

static weir_status_t* choose_by_cost(placer_t* placer) {
  const weir_place_params_t* params = placer->params;
  const weir_graph_t* graph = params->graph;
  weir_costs_t costs;
  bool* allowed = NULL;
  for (size_t i = 0; i < graph->node_count; ++i) {  // a loop's back edge is not to be crossed
    const weir_node_t* node = graph->nodes[i];
    for (int k = 0; k < node->def.input_count; ++k) {
      if (weir_node_is_back_edge(node, node->inputs[k].node))
        unite(placer, node->id, node->inputs[k].node->id, true);
    }
  }
  WEIR_TRY(find_allowed(placer, &allowed));
  WEIR_TRY(choose_impossible(placer, allowed));
  weir_costs_params_t cost_params = {.graph = graph,
                                     .devices = params->devices,
                                     .device_count = params->device_count,
                                     .times = params->times,
                                     .is_run = params->is_run};
  WEIR_TRY(weir_costs_init(&costs, &cost_params, placer->arena));
  for (size_t i = 0; i < graph->node_count; ++i) placer->parent[i] = find_root(placer, (int)i);
  weir_place_cost_t problem = {.costs = &costs, .group_of = placer->parent, .is_allowed = allowed};
  return weir_place_by_cost(&problem, placer->arena, &placer->device_of);
}

// How each node is used: what follow_neighbours decides by.
typedef struct usage_t {
  int* readers;      // by node id: data edges that leave it
  int* last_reader;  // id
  bool* is_grouped;  // it shares its group with another
} usage_t;

static weir_status_t* find_usage(placer_t* placer, usage_t* usage) {
  const weir_graph_t* graph = placer->params->graph;
  size_t count = graph->node_count + 1;
  usage->readers = weir_arena_array(placer->arena, count, sizeof(int));
  usage->last_reader = weir_arena_array(placer->arena, count, sizeof(int));
  usage->is_grouped = weir_arena_array(placer->arena, count, sizeof(bool));
  if (!usage->readers || !usage->last_reader || !usage->is_grouped) return weir_out_of_memory();
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    int root = find_root(placer, (int)i);
    if (root != (int)i) usage->is_grouped[root] = usage->is_grouped[i] = true;
    for (int k = 0; k < node->def.input_count; ++k) {
      ++usage->readers[node->inputs[k].node->id];
      usage->last_reader[node->inputs[k].node->id] = (int)i;
    }
  }
  return NULL;
}

static bool is_free(placer_t* placer, const usage_t* usage, const weir_node_t* node) {
  return !is_client(node) && !placer->groups[find_root(placer, node->id)].asked_by &&
         !usage->is_grouped[node->id] && !weir_node_has(node, WEIR_OP_STATEFUL);
}

// Nodes nobody placed follow their neighbours, where that saves a transfer: what makes a value for
// one reader goes to the reader, what looks at a shape goes to what it looks at.
static weir_status_t* follow_neighbours(placer_t* placer) {
  const weir_graph_t* graph = placer->params->graph;
  usage_t usage;
  WEIR_TRY(find_usage(placer, &usage));
  for (size_t i = graph->node_count; i-- > 0;) {
    const weir_node_t* node = graph->nodes[i];
    if (!is_free(placer, &usage, node)) continue;
    int device = placer->device_of[i];
    if (node->def.input_count == 0 && node->control_count == 0 && usage.readers[i] == 1)
      device = placer->device_of[usage.last_reader[i]];
    else if (weir_node_has(node, WEIR_OP_SHAPE_ONLY) && node->def.input_count == 1)
      device = placer->device_of[node->inputs[0].node->id];
    if (weir_place_can_run(&placer->params->devices[device], node)) placer->device_of[i] = device;
  }
  return NULL;
}

// A NextIteration stays with the Merge it leads back to, wherever it was asked to be: its value is
// of the next iteration, and the first one would wait in vain for it to come from elsewhere.
static void keep_back_edges(placer_t* placer) {
  const weir_graph_t* graph = placer->params->graph;
  for (size_t i = 0; i < graph->node_count; ++i) {
    const weir_node_t* node = graph->nodes[i];
    if (weir_node_role(node) != WEIR_ROLE_MERGE) continue;
    for (int k = 0; k < node->def.input_count; ++k) {
      const weir_node_t* source = node->inputs[k].node;
      if (weir_node_role(source) == WEIR_ROLE_NEXT_ITERATION)
        placer->device_of[source->id] = placer->device_of[i];
    }
  }
}

static weir_status_t* init(placer_t* placer) {
  const weir_place_params_t* params = placer->params;
  size_t count = params->graph->node_count + 1;
  placer->names =
      weir_arena_array(placer->arena, (size_t)params->device_count, sizeof(*placer->names));
  placer->parent = weir_arena_array(placer->arena, count, sizeof(int));
  placer->next = weir_arena_array(placer->arena, count, sizeof(int));
  placer->groups = weir_arena_array(placer->arena, count, sizeof(group_t));
  placer->device_of = weir_arena_array(placer->arena, count, sizeof(int));
  if (!placer->names || !placer->parent || !placer->next || !placer->groups || !placer->device_of)
    return weir_out_of_memory();
  for (int i = 0; i < params->device_count; ++i) {
    weir_view_t name = weir_view_of(params->devices[i].device);
    WEIR_TRY(weir_device_name_parse(name, &placer->names[i]));
  }
  for (size_t i = 0; i < count; ++i) {
    placer->parent[i] = (int)i;
    placer->next[i] = -1;
    placer->groups[i] = (group_t){.home = -1, .device = -1, .first = (int)i, .last = (int)i};
    placer->groups[i].wanted = kAnywhere;
  }
  return NULL;
}

weir_status_t* weir_place_policy_parse(const char* text, weir_place_policy_t* out_policy) {
  weir_view_t rest = weir_view_of(text ? text : "graph"), head;
  int64_t seed = 0;
  *out_policy = (weir_place_policy_t){.kind = WEIR_PLACE_FIRST};
  if (weir_view_is(rest, "graph")) return NULL;
  if (weir_view_is(rest, "cost") || weir_view_starts_with(rest, "cost:")) {
    out_policy->kind = WEIR_PLACE_COST;
    out_policy->trace = rest.size > strlen("cost:") ? text + strlen("cost:") : NULL;
    return NULL;
  }
  if (weir_view_starts_with(rest, "/")) {
    out_policy->kind = WEIR_PLACE_NAMED;
    return weir_device_name_parse(rest, &out_policy->device);
  }
  bool is_random = weir_view_next(&rest, ':', &head) && weir_view_is(head, "random");
  if (!is_random || !weir_parse_int64(rest, &seed))
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "'%s' is no placement: graph, cost, random:SEED or the name of a device",
                       text);
  *out_policy = (weir_place_policy_t){.kind = WEIR_PLACE_RANDOM, .seed = (uint64_t)seed};
  return NULL;
}

weir_status_t* weir_place(const weir_place_params_t* params, weir_arena_t* arena,
                          int** out_device_of) {
  placer_t placer = {.params = params, .arena = arena};
  WEIR_TRY(init(&placer));
  WEIR_TRY(make_groups(&placer));
  if (params->policy.kind == WEIR_PLACE_COST) WEIR_TRY(choose_by_cost(&placer));
  else WEIR_TRY(choose_all(&placer));
  if (params->policy.kind == WEIR_PLACE_FIRST) WEIR_TRY(follow_neighbours(&placer));
  keep_back_edges(&placer);
  for (size_t i = 0; i < params->graph->node_count; ++i) {
    const char* name = params->devices[placer.device_of[i]].device;
    char* copy = weir_arena_strndup(&params->graph->arena, name, strlen(name));
    if (!copy) return weir_out_of_memory();
    params->graph->nodes[i]->def.device = copy;
  }
  *out_device_of = placer.device_of;
  return NULL;
}
