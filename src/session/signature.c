// signature.c — Checking and pruning: from a graph and a signature to what a step of it runs.
#include "session/signature.h"

#include "graph/flatten.h"

static weir_status_t* check_target(const weir_graph_t* graph, const weir_node_t* node, int index) {
  if (!node) return WEIR_STATUS(INVALID_ARGUMENT, "target %d is no node", index);
  if (node->graph == graph) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "target %d is '%s' of another graph", index, node->def.name);
}

weir_status_t* weir_signature_check_arrays(const weir_step_spec_t* spec) {
  const char* missing = spec->feed_count > 0 && !spec->feeds       ? "feeds"
                        : spec->fetch_count > 0 && !spec->fetches  ? "fetches"
                        : spec->target_count > 0 && !spec->targets ? "targets"
                                                                   : NULL;
  if (!missing) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "the %s of a step are counted, but NULL", missing);
}

weir_status_t* weir_signature_check(const weir_graph_t* graph, const weir_step_spec_t* spec) {
  WEIR_TRY(weir_signature_check_arrays(spec));
  for (int i = 0; i < spec->feed_count; ++i) {
    weir_edge_t edge = spec->feeds[i].edge;
    WEIR_TRY(weir_graph_check_edge(graph, edge, "feed", i));
    for (int k = 0; k < i; ++k) {
      if (!weir_edge_equal(spec->feeds[k].edge, edge)) continue;
      return WEIR_STATUS(INVALID_ARGUMENT, "Tensor '%s:%d' is fed more than once",
                         edge.node->def.name, edge.index);
    }
  }
  for (int i = 0; i < spec->fetch_count; ++i)
    WEIR_TRY(weir_graph_check_edge(graph, spec->fetches[i], "fetch", i));
  for (int i = 0; i < spec->target_count; ++i) WEIR_TRY(check_target(graph, spec->targets[i], i));
  if (spec->fetch_count + spec->target_count > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Must specify at least one target to fetch or execute.");
}

weir_status_t* weir_signature_prune(weir_graph_t* graph, const weir_step_spec_t* spec,
                                    weir_connections_t connections, weir_graph_t** out_graph,
                                    weir_node_t*** out_targets) {
  weir_edge_t* feeds = weir_alloc_array((size_t)spec->feed_count, sizeof(*feeds));
  if (!feeds) return weir_out_of_memory();
  for (int i = 0; i < spec->feed_count; ++i) feeds[i] = spec->feeds[i].edge;
  weir_prune_params_t params = {.graph = graph,
                                .feeds = {.items = feeds, .count = spec->feed_count},
                                .connections = connections,
                                .fetches = {.items = spec->fetches, .count = spec->fetch_count},
                                .targets = spec->targets,
                                .target_count = spec->target_count};
  weir_mutex_lock(&graph->mu);
  weir_status_t* status = weir_prune(&params, out_graph, out_targets);
  weir_mutex_unlock(&graph->mu);
  weir_free(feeds);
  if (status) return status;
  status = weir_flatten(*out_graph, WEIR_FLATTEN_MARKED);
  if (status) weir_graph_unref(*out_graph);
  return status;
}

// The signature as bytes: which edges are fed and fetched, which nodes run.
void weir_signature_append(const weir_step_spec_t* spec, weir_strbuf_t* key) {
  int counts[3] = {spec->feed_count, spec->fetch_count, spec->target_count};
  weir_strbuf_append(key, counts, sizeof(counts));
  for (int i = 0; i < spec->feed_count; ++i) {
    weir_strbuf_append(key, &spec->feeds[i].edge.node, sizeof(void*));
    weir_strbuf_append(key, &spec->feeds[i].edge.index, sizeof(int));
  }
  for (int i = 0; i < spec->fetch_count; ++i) {
    weir_strbuf_append(key, &spec->fetches[i].node, sizeof(void*));
    weir_strbuf_append(key, &spec->fetches[i].index, sizeof(int));
  }
  for (int i = 0; i < spec->target_count; ++i)
    weir_strbuf_append(key, &spec->targets[i], sizeof(void*));
}

weir_status_t* weir_signature_check_feed(weir_edge_t edge, const weir_tensor_t* tensor) {
  const char* name = edge.node->def.name;
  if (!tensor)
    return WEIR_STATUS(INVALID_ARGUMENT, "Tensor '%s:%d' is fed without a value", name, edge.index);
  weir_dtype_t want = weir_dtype_base(weir_edge_dtype(edge));
  if (edge.node->def.op && weir_tensor_type(tensor) != want) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Tensor '%s:%d' has type %s, but a %s was fed", name,
                       edge.index, weir_dtype_name(want),
                       weir_dtype_name(weir_tensor_type(tensor)));
  }
  const weir_shape_t* shape = weir_edge_shape(edge);
  if (weir_shape_accepts(shape, tensor->rank, tensor->dims)) return NULL;
  weir_strbuf_t wanted = {0};
  char given[WEIR_SHAPE_TEXT_SIZE];
  weir_shape_append(shape, &wanted);
  weir_status_t* status = WEIR_STATUS(
      INVALID_ARGUMENT, "Cannot feed value of shape %s for Tensor '%s:%d', which has shape %s",
      weir_tensor_shape_text(tensor, given), name, edge.index, wanted.data ? wanted.data : "?");
  weir_strbuf_free(&wanted);
  return status;
}
