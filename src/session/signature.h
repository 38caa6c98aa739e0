// signature.h — What a signature (feeds, fetches, targets) runs of a graph: for local sessions and
// masters alike.
#ifndef WEIR_SESSION_SIGNATURE_H_
#define WEIR_SESSION_SIGNATURE_H_

#include "pass/pass.h"
#include "weir/session.h"

// INVALID_ARGUMENT when a fed tensor does not fit its edge.
WEIR_MUST_USE weir_status_t* weir_signature_check_feed(weir_edge_t edge,
                                                       const weir_tensor_t* tensor);
// INVALID_ARGUMENT when an array that has a count is NULL.
WEIR_MUST_USE weir_status_t* weir_signature_check_arrays(const weir_step_spec_t* spec);
// INVALID_ARGUMENT when a signature names what is not in the graph, or nothing at all.
WEIR_MUST_USE weir_status_t* weir_signature_check(const weir_graph_t* graph,
                                                  const weir_step_spec_t* spec);
// The pruned and flattened copy of the graph that a signature runs, and its targets there (in its
// arena).
WEIR_MUST_USE weir_status_t* weir_signature_prune(weir_graph_t* graph, const weir_step_spec_t* spec,
                                                  weir_connections_t connections,
                                                  weir_graph_t** out_graph,
                                                  weir_node_t*** out_targets);
// The same for a step that is fed and fetched piece by piece: in place of arguments and results it
// receives and sends, on |device| (NULL: none in particular), under weir_partial_run_key.
WEIR_MUST_USE weir_status_t* weir_signature_prune_partial(
    weir_graph_t* graph, const weir_step_spec_t* spec, const char* device, weir_graph_t** out_graph,
    weir_node_t*** out_targets, int* out_target_count);
// The key under which feed or fetch |index| travels; |kind| is "feed" or "fetch".
#define WEIR_PARTIAL_KEY_SIZE 64
weir_view_t weir_partial_run_key(const char* kind, int index, char buffer[WEIR_PARTIAL_KEY_SIZE]);
// INVALID_ARGUMENT naming a fetch that needs one of |feeds| for which |is_fed| is not true yet. The
// caller holds the graph's lock.
WEIR_MUST_USE weir_status_t* weir_partial_run_check(const weir_graph_t* graph, weir_edges_t fetches,
                                                    weir_edges_t feeds, const bool* is_fed);
// The signature as bytes.
void weir_signature_append(const weir_step_spec_t* spec, weir_strbuf_t* key);

#endif  // WEIR_SESSION_SIGNATURE_H_
