// session_api.c — Sessions of the public API: here, or on a master elsewhere.
#include "session/session.h"
#include "weir/argument.h"
#ifdef WEIR_HAVE_CLUSTER
#include "cluster/client/client.h"
#endif

static weir_status_t* connect(weir_graph_t* graph, const weir_session_options_t* options,
                              weir_session_t** out_session) {
#ifdef WEIR_HAVE_CLUSTER
  weir_remote_session_t* remote = NULL;
  WEIR_TRY(weir_client_create(graph, options->target, options, &remote));
  return weir_session_create_remote(graph, remote, out_session);
#else
  (void)graph;
  (void)out_session;
  return WEIR_STATUS(UNIMPLEMENTED, "target '%s': this build has no cluster support",
                     options->target);
#endif
}

weir_status_t* weir_session_create(weir_graph_t* graph, const weir_session_options_t* options,
                                   weir_session_t** out_session) {
  WEIR_REQUIRE_ARG(graph);
  WEIR_REQUIRE_ARG(out_session);
  if (graph->adder)
    return WEIR_STATUS(FAILED_PRECONDITION,
                       "%s: the graph is an eager scope's: its nodes have run already", __func__);
  if (options && options->target && *options->target) return connect(graph, options, out_session);
  return weir_session_create_local(graph, options, out_session);
}

weir_graph_t* weir_session_graph(const weir_session_t* session) {
  WEIR_ASSERT_ARG(session);
  return session->graph;
}
