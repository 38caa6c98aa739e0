// serving.h — A serving: one task of a cluster with its master and its worker, behind one address,
// and what watches over it: metrics, health, the chief.
#ifndef WEIR_CLUSTER_SERVE_SERVING_H_
#define WEIR_CLUSTER_SERVE_SERVING_H_

#include "cluster/task/task.h"

// Asks a server to end: an empty request, an empty answer. Not TensorFlow's.
#define WEIR_SHUTDOWN_PATH "/weir.ServerService/Shutdown"
// Answers with the task's part of /metrics, as text.
#define WEIR_STATE_PATH "/weir.ServerService/State"

typedef struct weir_serving_t weir_serving_t;

typedef enum weir_serving_wish_t {
  WEIR_SERVING_SHUTDOWN,    // a client asked for the end
  WEIR_SERVING_CHIEF_GONE,  // the chief has not answered for too long
} weir_serving_wish_t;
// Why the serving should be stopped. On a thread of the serving: it must not be stopped from here.
typedef void (*weir_serving_wish_fn_t)(void* arg, weir_serving_wish_t wish);

typedef struct weir_serving_params_t {
  weir_task_options_t task;  // spec is moved from
  const char* address;       // to bind; NULL: the one the cluster gives this task
  const char* host;    // where others find a task whose address the cluster leaves out, at the port
                       // that it has; NULL: where it listens
  weir_rpc_tls_t tls;  // of the server; borrowed strings
  const char* metrics_address;                // of /metrics and /healthz by HTTP; NULL: none
  int max_connections, max_calls, max_steps;  // weir_rpc_server_options_t's
  int chief_patience_s;            // wish for the end when the chief is gone for so long; 0: never
  weir_serving_wish_fn_t wish_fn;  // NULL: Shutdown is refused
  void* wish_arg;
} weir_serving_params_t;

// Binds and serves.
WEIR_MUST_USE weir_status_t* weir_serving_start(weir_serving_params_t* params,
                                                weir_serving_t** out_serving);
int weir_serving_port(const weir_serving_t* serving);
const char* weir_serving_address(const weir_serving_t* serving);  // as clients give it; borrowed
int weir_serving_metrics_port(const weir_serving_t* serving);     // 0: none
weir_task_t* weir_serving_task(const weir_serving_t* serving);    // borrowed
// Lets running calls end for up to |grace_ms|, then cancels them, and frees it.
void weir_serving_stop(weir_serving_t* take_serving, int grace_ms);

#endif  // WEIR_CLUSTER_SERVE_SERVING_H_
