// client.h — The client's end of a session on a master elsewhere.
#ifndef WEIR_CLUSTER_CLIENT_CLIENT_H_
#define WEIR_CLUSTER_CLIENT_CLIENT_H_

#include "rpc/rpc.h"
#include "session/session.h"

// Connects lazily: the session is created on the master at the first run. |target| is
// "grpc://host:port". |graph| is retained; what it grows by is sent before the run that needs it.
WEIR_MUST_USE weir_status_t* weir_client_create(weir_graph_t* graph, const char* target,
                                                const weir_session_options_t* options,
                                                weir_remote_session_t** out_remote);

#endif  // WEIR_CLUSTER_CLIENT_CLIENT_H_
