// metrics.h — What a server counts, and Prometheus' text about it.
//
// Thread-safe. Counting is a handful of relaxed atomic additions to the method's own lines of
// memory; everything else is looked up when somebody asks.
#ifndef WEIR_CLUSTER_SERVE_METRICS_H_
#define WEIR_CLUSTER_SERVE_METRICS_H_

#include "cluster/task/task.h"

#define WEIR_METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

typedef struct weir_metrics_t weir_metrics_t;

// For the methods of a server, in the order of its table. The paths are borrowed.
WEIR_MUST_USE weir_status_t* weir_metrics_create(const weir_rpc_method_t* methods,
                                                 weir_metrics_t** out_metrics);
void weir_metrics_destroy(weir_metrics_t* metrics);
// A server's observer; |arg| is the metrics.
void weir_metrics_observe(void* arg, const weir_rpc_record_t* record);

// Writes the counts, what |server| has open now, and what the process uses.
void weir_metrics_write_common(weir_metrics_t* metrics, weir_rpc_server_t* server,
                               weir_strbuf_t* out);
// Writes the state of |task| now: what it is, its cluster, steps, sessions, memory, devices.
void weir_metrics_write_task(weir_task_t* task, weir_strbuf_t* out);
// Writes both.
void weir_metrics_write(weir_metrics_t* metrics, weir_task_t* task, weir_rpc_server_t* server,
                        weir_strbuf_t* out);

#endif  // WEIR_CLUSTER_SERVE_METRICS_H_
