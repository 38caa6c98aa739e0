// prune.c — Cuts out of a graph what one signature needs: feeds become arguments, fetches become
// results, and what is connected to another edge is read from there.
#include <string.h>

#include "graph/analysis.h"
#include "pass/pass.h"

// What is read in place of an edge has a number: feeds come first, in their order, then
// connections.
typedef struct prune_t {
  const weir_prune_params_t* params;
  weir_arena_t arena;  // scratch of this call
  int* first_feed;     // by node id: 1 + the first number for one of its outputs; 0: none
  int* next_feed;      // by number: 1 + the next one for the same node; 0: none
  bool* is_read;       // by number: reached from a fetch or a target
  weir_reach_t reach;  // from fetches and targets
  weir_graph_t* copy;
  weir_node_t** map;   // by node id: its copy
  weir_node_t** args;  // by number; NULL for a connection that nobody reads
} prune_t;

// The number of what stands for |edge|; -1 when that is its node.
static int find_feed(const prune_t* prune, weir_edge_t edge) {
  const weir_prune_params_t* params = prune->params;
  int feeds = params->feeds.count;
  for (int k = prune->first_feed[edge.node->id]; k; k = prune->next_feed[k - 1]) {
    weir_edge_t fed =
        k <= feeds ? params->feeds.items[k - 1] : params->connections.items[k - 1 - feeds].to;
    if (fed.index == edge.index) return k - 1;
  }
  return -1;
}

// A fed placeholder never runs: who waits for it waits for its argument. Any other fed node still
// runs where it is asked for by a control edge or as a target. -1 when |node| stands for itself.
static int find_stand_in(const prune_t* prune, const weir_node_t* node) {
  return weir_node_role(node) == WEIR_ROLE_PLACEHOLDER ? prune->first_feed[node->id] - 1 : -1;
}

// What a target asks for: a connected placeholder, unlike a fed one, runs as a target, and fails.
static int find_target(const prune_t* prune, const weir_node_t* node) {
  int k = find_stand_in(prune, node);
  return k < prune->params->feeds.count ? k : -1;
}

// The edge that connection number |k| reads, and in |out_next| the number of the connection made
// after it that stands for that edge; -1: none.
static weir_edge_t connection_source(const prune_t* prune, int k, int* out_next) {
  weir_edge_t from = prune->params->connections.items[k - prune->params->feeds.count].from;
  int next = find_feed(prune, from);
  *out_next = next > k ? next : -1;
  return from;
}

static weir_status_t* check_edge(const prune_t* prune, weir_edge_t edge, const char* what) {
  if (!edge.node || edge.node->graph != prune->params->graph) {
    return WEIR_STATUS(INVALID_ARGUMENT, "A %s is not in the graph", what);
  }
  if (edge.index < 0 || edge.index >= edge.node->def.output_count) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%s '%s:%d': node '%s' (%s) has %d outputs", what,
                       edge.node->def.name, edge.index, edge.node->def.name, edge.node->def.op_name,
                       edge.node->def.output_count);
  }
  return NULL;
}

// ---- what is reached ----

// Reaches what is read from number |k|.
static void reach_stand_in(prune_t* prune, int k) {
  while (k >= prune->params->feeds.count && !prune->is_read[k]) {
    int next;
    weir_edge_t from = connection_source(prune, k, &next);
    prune->is_read[k] = true;
    if (next < 0) weir_reach_add(&prune->reach, from.node);
    k = next;
  }
}

static void reach_edge(void* arg, weir_reach_t* reach, weir_edge_t edge) {
  prune_t* prune = arg;
  int k = edge.index < 0 ? find_stand_in(prune, edge.node) : find_feed(prune, edge);
  if (k < 0) weir_reach_add(reach, edge.node);
  else reach_stand_in(prune, k);
}

static weir_status_t* mark_kept(prune_t* prune) {
  const weir_prune_params_t* params = prune->params;
  for (int i = 0; i < params->fetches.count; ++i) {
    weir_edge_t edge = params->fetches.items[i];
    WEIR_TRY(check_edge(prune, edge, "fetch"));
    int k = find_feed(prune, edge);
    if (k < 0) weir_reach_add(&prune->reach, edge.node);
    if (k < params->feeds.count) continue;
    return WEIR_STATUS(INVALID_ARGUMENT, "%s:%d is both fed and fetched.", edge.node->def.name,
                       edge.index);
  }
  for (int i = 0; i < params->target_count; ++i) {
    if (!params->targets[i] || params->targets[i]->graph != params->graph) {
      return WEIR_STATUS(INVALID_ARGUMENT, "A target is not in the graph");
    }
    if (find_target(prune, params->targets[i]) < 0)
      weir_reach_add(&prune->reach, params->targets[i]);
  }
  weir_reach_walk(&prune->reach, reach_edge, prune);
  return NULL;
}

// ---- feeds and connections ----

static weir_status_t* index_feed(prune_t* prune, int k, weir_edge_t edge) {
  if (find_feed(prune, edge) >= 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Endpoint \"%s:%d\" fed more than once.",
                       edge.node->def.name, edge.index);
  }
  prune->next_feed[k] = prune->first_feed[edge.node->id];
  prune->first_feed[edge.node->id] = k + 1;
  return NULL;
}

// Whether |from| needs |to|, with the connections made so far.
static bool would_be_cycle(prune_t* prune, const weir_connection_t* connection) {
  const weir_prune_params_t* params = prune->params;
  weir_reach_add(&prune->reach, connection->from.node);
  weir_reach_walk(&prune->reach, reach_edge, prune);
  bool is_reached = prune->reach.is_reached[connection->to.node->id];
  memset(prune->reach.is_reached, 0, params->graph->node_count * sizeof(bool));
  memset(prune->is_read, 0,
         (size_t)(params->feeds.count + params->connections.count) * sizeof(*prune->is_read));
  return is_reached;
}

static weir_status_t* index_feeds(prune_t* prune) {
  const weir_prune_params_t* params = prune->params;
  for (int i = 0; i < params->feeds.count; ++i) {
    WEIR_TRY(check_edge(prune, params->feeds.items[i], "feed"));
    WEIR_TRY(index_feed(prune, i, params->feeds.items[i]));
  }
  for (int i = 0; i < params->connections.count; ++i) {
    const weir_connection_t* connection = &params->connections.items[i];
    WEIR_TRY(check_edge(prune, connection->from, "connection from"));
    WEIR_TRY(check_edge(prune, connection->to, "connection to"));
    if (would_be_cycle(prune, connection)) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Requested Tensor connection between nodes \"%s\" and \"%s\" would create "
                         "a cycle.",
                         connection->to.node->def.name, connection->from.node->def.name);
    }
    WEIR_TRY(index_feed(prune, params->feeds.count + i, connection->to));
  }
  return NULL;
}

static weir_status_t* prune_init(prune_t* prune) {
  const weir_prune_params_t* params = prune->params;
  size_t node_count = params->graph->node_count;
  size_t feed_count = (size_t)params->feeds.count + (size_t)params->connections.count;
  prune->first_feed = weir_arena_array(&prune->arena, node_count + 1, sizeof(int));
  prune->next_feed = weir_arena_array(&prune->arena, feed_count + 1, sizeof(int));
  prune->is_read = weir_arena_array(&prune->arena, feed_count + 1, sizeof(bool));
  prune->args = weir_arena_array(&prune->arena, feed_count + 1, sizeof(*prune->args));
  if (!prune->first_feed || !prune->next_feed || !prune->is_read || !prune->args)
    return weir_out_of_memory();
  WEIR_TRY(weir_reach_init(&prune->reach, params->graph, &prune->arena));
  return index_feeds(prune);
}

// Only placeholders promise the shape of what is fed; any other edge may be fed with anything of
// its type.
static bool is_shape_promised(weir_edge_t edge) {
  return edge.node->shapes && weir_node_role(edge.node) == WEIR_ROLE_PLACEHOLDER;
}

static weir_status_t* add_args(prune_t* prune) {
  for (int k = 0; k < prune->params->feeds.count; ++k) {
    weir_edge_t edge = prune->params->feeds.items[k];
    weir_graph_t* copy = prune->copy;
    const char* name =
        weir_arena_printf(&copy->arena, "_arg_%s_%d_%d", edge.node->def.name, edge.index, k);
    if (!name) return weir_out_of_memory();
    weir_node_params_t params = {
        .op = "_Arg",
        .name = name,
        .unique_name = true,
        .device = edge.node->def.device,
        .attrs = WEIR_ATTRS(weir_attr_type("T", weir_dtype_base(weir_edge_dtype(edge))),
                            weir_attr_int("index", k))};
    WEIR_TRY(weir_graph_add(copy, &params, &prune->args[k]));
    if (!is_shape_promised(edge)) continue;
    prune->args[k]->shapes[0] = edge.node->shapes[edge.index];
    prune->args[k]->values_as_shape[0] = edge.node->values_as_shape[edge.index];
    prune->args[k]->handles[0] = edge.node->handles[edge.index];
  }
  return NULL;
}

static weir_status_t* add_connection(prune_t* prune, int k) {
  weir_graph_t* copy = prune->copy;
  weir_edge_t to = prune->params->connections.items[k - prune->params->feeds.count].to;
  int next;
  weir_edge_t input = connection_source(prune, k, &next);
  if (next >= 0) input = (weir_edge_t){.node = prune->args[next], .index = 0};
  else input.node = prune->map[input.node->id];
  const char* name =
      weir_arena_printf(&copy->arena, "_identity_%s_%d", to.node->def.name, to.index);
  if (!name) return weir_out_of_memory();
  weir_node_params_t params = {
      .op = "Identity",
      .name = name,
      .unique_name = true,
      .device = to.node->def.device,
      .inputs = {.items = &input, .count = 1},
      .attrs = WEIR_ATTRS(weir_attr_type("T", weir_dtype_base(weir_edge_dtype(input))))};
  return weir_graph_add(copy, &params, &prune->args[k]);
}

// The last one first: each reads a node of the source or a connection made after it.
static weir_status_t* add_connections(prune_t* prune) {
  int feeds = prune->params->feeds.count;
  for (int k = feeds + prune->params->connections.count - 1; k >= feeds; --k) {
    if (prune->is_read[k]) WEIR_TRY(add_connection(prune, k));
  }
  return NULL;
}

// Gives the copy of |node| the arguments where its inputs are fed. A consumer that wants a
// reference cannot have a value.
static weir_status_t* link_args(prune_t* prune, const weir_node_t* node) {
  weir_node_t* twin = prune->map[node->id];
  for (int i = 0; i < node->def.input_count; ++i) {
    int k = find_feed(prune, node->inputs[i]);
    if (k < 0) continue;
    WEIR_TRY(weir_graph_set_input(twin, i, (weir_edge_t){.node = prune->args[k], .index = 0}));
  }
  for (int i = 0; i < node->control_count; ++i) {
    int k = find_stand_in(prune, node->control_inputs[i]);
    if (k >= 0) WEIR_TRY(weir_graph_add_control(twin, prune->args[k]));
  }
  return NULL;
}

static weir_status_t* link_all_args(prune_t* prune) {
  const weir_graph_t* graph = prune->params->graph;
  bool is_any = prune->params->feeds.count + prune->params->connections.count > 0;
  for (size_t i = 0; i < graph->node_count && is_any; ++i) {
    if (prune->reach.is_reached[i]) WEIR_TRY(link_args(prune, graph->nodes[i]));
  }
  return NULL;
}

static weir_status_t* add_retvals(prune_t* prune) {
  for (int k = 0; k < prune->params->fetches.count; ++k) {
    weir_edge_t edge = prune->params->fetches.items[k];
    int feed = find_feed(prune, edge);
    weir_edge_t input = feed >= 0
                            ? (weir_edge_t){.node = prune->args[feed], .index = 0}
                            : (weir_edge_t){.node = prune->map[edge.node->id], .index = edge.index};
    const char* name = weir_arena_printf(&prune->copy->arena, "_retval_%s_%d_%d",
                                         edge.node->def.name, edge.index, k);
    if (!name) return weir_out_of_memory();
    weir_node_params_t params = {
        .op = "_Retval",
        .name = name,
        .unique_name = true,
        .device = edge.node->def.device,
        .inputs = {.items = &input, .count = 1},
        .attrs = WEIR_ATTRS(weir_attr_type("T", weir_dtype_base(weir_edge_dtype(edge))),
                            weir_attr_int("index", k))};
    weir_node_t* retval = NULL;
    WEIR_TRY(weir_graph_add(prune->copy, &params, &retval));
  }
  return NULL;
}

// Whether a Merge of a loop says more of its value than the loop keeps to: it was inferred before
// its back edge was there.
static bool is_too_sure(const weir_node_t* node) {
  if (weir_node_role(node) != WEIR_ROLE_MERGE) return false;
  for (int i = 0; i < node->def.input_count; ++i) {
    weir_edge_t edge = node->inputs[i];
    if (weir_node_role(edge.node) != WEIR_ROLE_NEXT_ITERATION) continue;
    const weir_shape_t* merged = weir_edge_shape(edge);
    const weir_shape_t* said = node->shapes[0];
    if (node->values_as_shape[0]) return true;
    if (said->rank < 0) continue;
    if (merged->rank != said->rank) return true;
    for (int k = 0; k < said->rank; ++k) {
      if (said->dims[k] >= 0 && said->dims[k] != merged->dims[k]) return true;
    }
  }
  return false;
}

// Marks what depends on a shape or value that may differ from what the source graph inferred:
// arguments whose shape nobody promised, connections, and loop variables that change shape.
static bool mark_sources(const prune_t* prune, bool* stale) {
  bool is_any = false;
  int feeds = prune->params->feeds.count;
  for (int k = 0; k < feeds; ++k) {
    if (!is_shape_promised(prune->params->feeds.items[k]))
      stale[prune->args[k]->id] = is_any = true;
  }
  for (int k = feeds; k < feeds + prune->params->connections.count; ++k) {
    if (prune->is_read[k]) stale[prune->args[k]->id] = is_any = true;
  }
  for (size_t i = 0; i < prune->copy->node_count; ++i) {
    if (is_too_sure(prune->copy->nodes[i])) stale[i] = is_any = true;
  }
  return is_any;
}

static void mark_stale(const prune_t* prune, weir_node_t* const* order, bool* stale) {
  // One sweep more for each loop that carries it back into its Merge.
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (size_t i = 0; i < prune->copy->node_count; ++i) {
      weir_node_t* node = order[i];
      for (int j = 0; j < node->def.input_count && !stale[node->id]; ++j) {
        if (stale[node->inputs[j].node->id]) stale[node->id] = has_changed = true;
      }
    }
  }
}

static weir_status_t* infer_again(prune_t* prune) {
  size_t count = prune->copy->node_count;
  weir_node_t** order = NULL;
  bool* stale = weir_arena_array(&prune->arena, count + 1, sizeof(*stale));
  if (!stale) return weir_out_of_memory();
  if (!mark_sources(prune, stale)) return NULL;
  WEIR_TRY(weir_graph_order(prune->copy, &prune->arena, &order));
  mark_stale(prune, order, stale);
  for (size_t i = 0; i < count; ++i) {
    if (stale[order[i]->id]) weir_node_forget_shapes(order[i]);
  }
  for (size_t i = 0; i < count; ++i) {
    weir_node_t* node = order[i];
    // A Merge of a loop stays unknown: what it was inferred from is what its loop may change.
    if (!stale[node->id] || weir_node_is_loop_merge(node)) continue;
    weir_status_t* status = weir_graph_infer(node);
    if (!status) continue;
    // The node may be on a branch that never runs; if it does run, its kernel reports what is
    // wrong.
    weir_status_destroy(status);
    weir_node_forget_shapes(node);
  }
  return NULL;
}

static weir_status_t* map_targets(const prune_t* prune, weir_node_t*** out_targets) {
  int count = prune->params->target_count;
  weir_node_t** targets =
      weir_arena_array(&prune->copy->arena, (size_t)count + 1, sizeof(*targets));
  if (!targets) return weir_out_of_memory();
  for (int i = 0; i < count; ++i) {
    weir_node_t* target = prune->params->targets[i];
    int feed = find_target(prune, target);
    targets[i] = feed >= 0 ? prune->args[feed] : prune->map[target->id];
  }
  *out_targets = targets;
  return NULL;
}

weir_status_t* weir_prune(const weir_prune_params_t* params, weir_graph_t** out_copy,
                          weir_node_t*** out_targets) {
  prune_t prune = {.params = params};
  weir_node_t** targets = NULL;
  weir_status_t* status = prune_init(&prune);
  if (status) goto done;
  status = mark_kept(&prune);
  if (status) goto done;
  status =
      weir_graph_copy(params->graph, prune.reach.is_reached, &prune.arena, &prune.copy, &prune.map);
  if (status) goto done;
  status = add_args(&prune);
  if (status) goto done;
  status = add_connections(&prune);
  if (status) goto done;
  status = link_all_args(&prune);
  if (status) goto done;
  status = add_retvals(&prune);
  if (status) goto done;
  status = infer_again(&prune);
  if (status) goto done;
  status = map_targets(&prune, &targets);
  if (status) goto done;
  *out_copy = prune.copy;
  prune.copy = NULL;
  if (out_targets) *out_targets = targets;
done:
  weir_graph_unref(prune.copy);
  weir_arena_free(&prune.arena);
  return status;
}
