// partial_run.c — Partial runs: one step whose feeds arrive and whose fetches are taken piece by
// piece.
//
// The step's arguments become receives and its results sends on a rendezvous of its own; a thread
// runs the step meanwhile. The end of the session ends the step; what it left at the rendezvous, or
// why it ended, can be had still.
#include <pthread.h>
#include <stdio.h>

#include "graph/analysis.h"
#include "pass/pass.h"
#include "session/session.h"
#include "weir/argument.h"

struct weir_partial_run_t {
  weir_session_t* session;  // there until the thread has left it
  weir_running_t running;
  weir_graph_t* graph;  // the session's; retained
  weir_plan_t* plan;    // owned
  weir_rendezvous_t* rendezvous;
  weir_cancel_t* cancel;
  pthread_t thread;
  bool has_thread;
  weir_mutex_t mu;  // guards what follows
  weir_edge_t* feeds;
  bool* is_fed;
  int feed_count;
  weir_edge_t* fetches;
  bool* is_fetched;
  int fetch_count;
};

enum { KEY_SIZE = WEIR_PARTIAL_KEY_SIZE };

// As _Send and _Recv spell keys: devices, incarnation, name, frame.
static weir_view_t transfer_key(const char* kind, int index, char buffer[KEY_SIZE]) {
  return weir_partial_run_key(kind, index, buffer);
}

weir_view_t weir_partial_run_key(const char* kind, int index, char buffer[WEIR_PARTIAL_KEY_SIZE]) {
  int size = snprintf(buffer, WEIR_PARTIAL_KEY_SIZE, ";%016x;;%s%d;0:0", 0, kind, index);
  return weir_view(buffer, (size_t)size);
}

static weir_status_t* add_transfer(weir_graph_t* graph, const char* op, const char* device,
                                   const char* kind, int index, weir_edges_t inputs,
                                   weir_dtype_t dtype, weir_node_t** out_node) {
  char name[KEY_SIZE];
  snprintf(name, sizeof(name), "%s%d", kind, index);
  weir_named_attr_t attrs[] = {
      weir_attr_string("tensor_name", name), weir_attr_string("send_device", ""),
      weir_attr_int("send_device_incarnation", 0), weir_attr_string("recv_device", ""),
      weir_attr_type(inputs.count ? "T" : "tensor_type", dtype)};
  weir_node_params_t params = {.op = op,
                               .name = name,
                               .unique_name = true,
                               .device = device,
                               .inputs = inputs,
                               .attrs = {.items = attrs, .count = WEIR_COUNT_OF(attrs)}};
  return weir_graph_add(graph, &params, out_node);
}

static weir_status_t* rewire(weir_graph_t* graph, size_t count, const weir_node_t* from,
                             weir_node_t* to) {
  for (size_t i = 0; i < count; ++i) {
    weir_node_t* node = graph->nodes[i];
    for (int k = 0; k < node->def.input_count; ++k) {
      if (node->inputs[k].node != from) continue;
      WEIR_TRY(weir_graph_set_input(node, k, (weir_edge_t){.node = to, .index = 0}));
    }
  }
  return NULL;
}

// Replaces argument and result nodes by transfers. |targets| gets the sends appended.
static weir_status_t* use_transfers(weir_graph_t* graph, const char* device, weir_node_t** targets,
                                    int* target_count) {
  size_t count = graph->node_count;
  for (size_t i = 0; i < count; ++i) {
    weir_node_t* node = graph->nodes[i];
    if (weir_node_role(node) == WEIR_ROLE_ARG) {
      weir_node_t* recv = NULL;
      int index = (int)weir_attrs_int(node->def.attrs, "index");
      WEIR_TRY(add_transfer(graph, "_Recv", device, "feed", index, WEIR_NO_EDGES,
                            node->def.output_types[0], &recv));
      WEIR_TRY(rewire(graph, count, node, recv));
    }
  }
  for (size_t i = 0; i < count; ++i) {
    weir_node_t* node = graph->nodes[i];
    if (weir_node_role(node) != WEIR_ROLE_RETVAL) continue;
    int index = (int)weir_attrs_int(node->def.attrs, "index");
    WEIR_TRY(add_transfer(graph, "_Send", device, "fetch", index, WEIR_EDGES(node->inputs[0]),
                          weir_dtype_base(node->def.input_types[0]), &targets[(*target_count)++]));
  }
  return NULL;
}

// The RETVAL nodes would keep the plan waiting for results: a copy without them.
static weir_status_t* drop_rets(weir_graph_t* graph, weir_node_t** targets, int target_count,
                                weir_arena_t* arena, weir_graph_t** out_copy,
                                weir_node_t** out_targets) {
  bool* keep = weir_arena_array(arena, graph->node_count + 1, sizeof(*keep));
  if (!keep) return weir_out_of_memory();
  for (size_t i = 0; i < graph->node_count; ++i) {
    weir_role_t role = weir_node_role(graph->nodes[i]);
    keep[i] = role != WEIR_ROLE_RETVAL && role != WEIR_ROLE_ARG;
  }
  weir_node_t** map = NULL;
  WEIR_TRY(weir_graph_copy(graph, keep, arena, out_copy, &map));
  for (int i = 0; i < target_count; ++i) out_targets[i] = map[targets[i]->id];
  return NULL;
}

weir_status_t* weir_signature_prune_partial(weir_graph_t* graph, const weir_step_spec_t* spec,
                                            const char* device, weir_graph_t** out_graph,
                                            weir_node_t*** out_targets, int* out_target_count) {
  weir_graph_t *pruned = NULL, *copy = NULL;
  weir_node_t** targets = NULL;
  weir_arena_t arena = {0};
  int count = spec->target_count;
  size_t capacity = (size_t)(count + spec->fetch_count);
  WEIR_TRY(weir_signature_prune(graph, spec, WEIR_NO_CONNECTIONS, &pruned, &targets));
  weir_status_t* status = NULL;
  weir_node_t** all = weir_arena_array(&arena, capacity, sizeof(*all));
  weir_node_t** mapped = weir_arena_array(&arena, capacity, sizeof(*mapped));
  if (!all || !mapped) status = weir_out_of_memory();
  if (!status && count) memcpy(all, targets, sizeof(*all) * (size_t)count);
  if (!status) status = use_transfers(pruned, device, all, &count);
  if (!status) status = drop_rets(pruned, all, count, &arena, &copy, mapped);
  weir_graph_unref(pruned);
  weir_node_t** kept = status ? NULL : weir_arena_array(&copy->arena, (size_t)count, sizeof(*kept));
  if (!status && !kept) status = weir_out_of_memory();
  if (!status) {
    memcpy(kept, mapped, sizeof(*kept) * (size_t)count);
    *out_graph = copy;
    *out_targets = kept;
    *out_target_count = count;
  } else {
    weir_graph_unref(copy);
  }
  weir_arena_free(&arena);
  return status;
}

static weir_status_t* build_plan(weir_partial_run_t* partial, const weir_step_spec_t* spec) {
  weir_session_t* session = partial->session;
  weir_graph_t* graph = NULL;
  weir_node_t** targets = NULL;
  int count = 0;
  WEIR_TRY(weir_signature_prune_partial(session->graph, spec, NULL, &graph, &targets, &count));
  weir_source_t source = {.graph = graph, .targets = targets, .target_count = count};
  return weir_program_compile(session->program, &source, &partial->plan);
}

static void* run_thread(void* arg) {
  weir_partial_run_t* partial = arg;
  weir_tensor_t* none = NULL;
  weir_session_run_params_t params = {.plan = partial->plan,
                                      .rets = &none,
                                      .cancel = partial->cancel,
                                      .rendezvous = partial->rendezvous};
  weir_status_t* status = weir_session_execute_as(partial->session, &partial->running, &params);
  if (status)
    partial->rendezvous->vtable->abort(partial->rendezvous, status);  // whoever fetches learns why
  weir_status_destroy(status);
  weir_session_leave(partial->session, &partial->running);
  return NULL;
}

static weir_status_t* copy_spec(weir_partial_run_t* partial, const weir_step_spec_t* spec) {
  partial->feed_count = spec->feed_count;
  partial->fetch_count = spec->fetch_count;
  partial->feeds = weir_alloc_array((size_t)spec->feed_count, sizeof(weir_edge_t));
  partial->is_fed = weir_calloc((size_t)spec->feed_count, sizeof(bool));
  partial->fetches = weir_alloc_array((size_t)spec->fetch_count, sizeof(weir_edge_t));
  partial->is_fetched = weir_calloc((size_t)spec->fetch_count, sizeof(bool));
  if (!partial->feeds || !partial->is_fed || !partial->fetches || !partial->is_fetched)
    return weir_out_of_memory();
  for (int i = 0; i < spec->feed_count; ++i) partial->feeds[i] = spec->feeds[i].edge;
  for (int i = 0; i < spec->fetch_count; ++i) partial->fetches[i] = spec->fetches[i];
  return NULL;
}

static weir_status_t* start(weir_partial_run_t* partial, const weir_step_spec_t* spec) {
  weir_status_t* status = weir_signature_check(partial->session->graph, spec);
  if (!status) status = copy_spec(partial, spec);
  if (!status) status = weir_local_rendezvous_create(&partial->rendezvous);
  if (!status) status = weir_cancel_create(NULL, &partial->cancel);
  if (!status) status = build_plan(partial, spec);
  if (status) return status;
  partial->running = weir_session_enter(partial->session);  // here: the thread may be late
  partial->has_thread = pthread_create(&partial->thread, NULL, run_thread, partial) == 0;
  if (partial->has_thread) return NULL;
  weir_session_leave(partial->session, &partial->running);
  return WEIR_STATUS(RESOURCE_EXHAUSTED, "no thread for the partial run");
}

weir_status_t* weir_partial_run_create(weir_session_t* session, const weir_step_spec_t* spec,
                                       weir_partial_run_t** out_partial) {
  WEIR_REQUIRE_ARG(session);
  WEIR_REQUIRE_ARG(spec);
  WEIR_REQUIRE_ARG(out_partial);
  if (session->remote)
    return WEIR_STATUS(UNIMPLEMENTED, "partial runs of a remote session are not supported");
  weir_partial_run_t* partial = weir_calloc(1, sizeof(*partial));
  if (!partial) return weir_out_of_memory();
  partial->session = session;
  partial->graph = weir_graph_ref(session->graph);
  weir_mutex_init(&partial->mu);
  weir_status_t* status = start(partial, spec);
  if (status) {
    weir_partial_run_destroy(partial);
    return status;
  }
  *out_partial = partial;
  return NULL;
}

// Finds |edge| among |edges| and marks it used. INVALID_ARGUMENT when it was not declared or is
// used a second time.
static weir_status_t* claim(weir_edge_t edge, const weir_edge_t* edges, bool* is_used, int count,
                            const char* what, int* out_index) {
  const char* name = edge.node ? edge.node->def.name : "";
  for (int i = 0; i < count; ++i) {
    if (!weir_edge_equal(edges[i], edge)) continue;
    if (is_used[i])
      return WEIR_STATUS(INVALID_ARGUMENT, "The %s '%s:%d' was already used in this partial run",
                         what, name, edge.index);
    is_used[i] = true;
    *out_index = i;
    return NULL;
  }
  return WEIR_STATUS(INVALID_ARGUMENT, "The %s '%s:%d' was not declared for this partial run", what,
                     name, edge.index);
}

static weir_status_t* fetch_one(weir_partial_run_t* partial, int index,
                                weir_tensor_t** out_tensor) {
  char buffer[KEY_SIZE];
  return weir_rendezvous_wait(partial->rendezvous, transfer_key("fetch", index, buffer),
                              partial->cancel, out_tensor);
}

static weir_status_t* send_feeds(weir_partial_run_t* partial, const weir_step_spec_t* spec) {
  for (int i = 0; i < spec->feed_count; ++i) {
    int index = 0;
    char buffer[KEY_SIZE];
    const weir_feed_t* feed = &spec->feeds[i];
    if (feed->edge.node)
      WEIR_TRY(weir_signature_check_feed(feed->edge,
                                         feed->tensor));  // a bad value does not use up the feed
    weir_mutex_lock(&partial->mu);
    weir_status_t* status =
        claim(feed->edge, partial->feeds, partial->is_fed, partial->feed_count, "feed", &index);
    weir_mutex_unlock(&partial->mu);
    if (status) return status;
    weir_view_t key = transfer_key("feed", index, buffer);
    WEIR_TRY(partial->rendezvous->vtable->send(partial->rendezvous, key, feed->tensor, false));
  }
  return NULL;
}

// ---- what can be fetched ----

typedef struct needs_t {
  weir_edges_t feeds;
  const bool* is_fed;
  bool is_missing;  // came to a feed that has not come
} needs_t;

static void need_edge(void* arg, weir_reach_t* reach, weir_edge_t edge) {
  needs_t* needs = arg;
  for (int i = 0; i < needs->feeds.count && edge.index >= 0; ++i) {
    if (!weir_edge_equal(needs->feeds.items[i], edge)) continue;
    needs->is_missing |= !needs->is_fed[i];
    return;
  }
  weir_reach_add(reach, edge.node);
}

weir_status_t* weir_partial_run_check(const weir_graph_t* graph, weir_edges_t fetches,
                                      weir_edges_t feeds, const bool* is_fed) {
  needs_t needs = {.feeds = feeds, .is_fed = is_fed};
  weir_arena_t arena = {0};
  weir_reach_t reach;
  weir_status_t* status = weir_reach_init(&reach, graph, &arena);
  for (int i = 0; i < fetches.count && !status; ++i) {
    need_edge(&needs, &reach, fetches.items[i]);
    weir_reach_walk(&reach, need_edge, &needs);
    if (needs.is_missing)
      status =
          WEIR_STATUS(INVALID_ARGUMENT,
                      "Fetch %s:%d can't be computed from the feeds that have been fed so far.",
                      fetches.items[i].node->def.name, fetches.items[i].index);
  }
  weir_arena_free(&arena);
  return status;
}

// The same for a call, whose own feeds count.
static weir_status_t* check_call(weir_partial_run_t* partial, const weir_step_spec_t* spec) {
  weir_graph_t* graph = partial->graph;
  bool* is_fed = weir_calloc((size_t)partial->feed_count, sizeof(*is_fed));
  if (!is_fed) return weir_out_of_memory();
  weir_mutex_lock(&partial->mu);
  for (int i = 0; i < partial->feed_count; ++i) {
    is_fed[i] = partial->is_fed[i];
    for (int k = 0; k < spec->feed_count; ++k)
      is_fed[i] |= weir_edge_equal(partial->feeds[i], spec->feeds[k].edge);
  }
  weir_mutex_unlock(&partial->mu);
  for (int i = 0; i < spec->fetch_count; ++i) {  // one that is no node is told of when it is used
    if (!spec->fetches[i].node || spec->fetches[i].node->graph != graph) {
      weir_free(is_fed);
      return NULL;
    }
  }
  weir_mutex_lock(&graph->mu);
  weir_status_t* status = weir_partial_run_check(
      graph, (weir_edges_t){.items = spec->fetches, .count = spec->fetch_count},
      (weir_edges_t){.items = partial->feeds, .count = partial->feed_count}, is_fed);
  weir_mutex_unlock(&graph->mu);
  weir_free(is_fed);
  return status;
}

weir_status_t* weir_partial_run_continue(weir_partial_run_t* partial, const weir_step_spec_t* spec,
                                         weir_tensor_t** results) {
  WEIR_REQUIRE_ARG(partial);
  WEIR_REQUIRE_ARG(spec);
  WEIR_REQUIRE_ARG(results);
  WEIR_TRY(weir_signature_check_arrays(spec));
  WEIR_TRY(check_call(partial, spec));
  WEIR_TRY(send_feeds(partial, spec));
  weir_status_t* status = NULL;
  int done = 0;
  for (; done < spec->fetch_count && !status; ++done) {
    int index = 0;
    results[done] = NULL;
    weir_mutex_lock(&partial->mu);
    status = claim(spec->fetches[done], partial->fetches, partial->is_fetched, partial->fetch_count,
                   "fetch", &index);
    weir_mutex_unlock(&partial->mu);
    if (!status) status = fetch_one(partial, index, &results[done]);
  }
  for (int i = 0; i < done && status; ++i) {
    weir_tensor_release(results[i]);
    results[i] = NULL;
  }
  return status;
}

void weir_partial_run_destroy(weir_partial_run_t* partial) {
  if (!partial) return;
  if (partial->has_thread) {
    weir_cancel_start(partial->cancel);
    pthread_join(partial->thread, NULL);
  }
  weir_plan_release(partial->plan);
  weir_graph_unref(partial->graph);
  weir_rendezvous_release(partial->rendezvous);
  weir_cancel_destroy(partial->cancel);
  weir_free(partial->feeds);
  weir_free(partial->is_fed);
  weir_free(partial->fetches);
  weir_free(partial->is_fetched);
  weir_mutex_destroy(&partial->mu);
  weir_free(partial);
}
