// service.h — What the two APIs of a serving process share: models, threads, limits, counts.
#ifndef WEIR_SERVING_SERVICE_H_
#define WEIR_SERVING_SERVICE_H_

#include "cluster/serve/metrics.h"
#include "rpc/http.h"
#include "serving/counts.h"
#include "serving/job.h"

typedef struct weir_service_t {
  weir_catalog_t* catalog;
  weir_counts_t* counts;
  weir_pool_t* pool;        // requests are read, run and answered on it
  int max_requests;         // at a time, of both APIs
  int64_t timeout_ns;       // of a request; 0: none
  weir_rpc_token_t* token;  // NULL: none is asked for
  atomic_int running;
  atomic_bool is_stopping;
  weir_metrics_t* metrics;  // of gRPC's calls
  weir_rpc_server_t* rpc;
} weir_service_t;

// Counts a request in, before it is queued. RESOURCE_EXHAUSTED: there are too many; UNAVAILABLE:
// the process is about to end.
WEIR_MUST_USE weir_status_t* weir_service_enter(weir_service_t* service);
void weir_service_leave(weir_service_t* service);
// When a request that has come now must be answered.
int64_t weir_service_deadline(const weir_service_t* service);

// ---- gRPC: tensorflow.serving.PredictionService and ModelService ----
#define WEIR_SERVICE_METHOD_COUNT 6
extern const weir_rpc_method_t weir_serving_methods[WEIR_SERVICE_METHOD_COUNT];  // self: a service

// ---- REST: a handler of HTTP; |arg| is the service ----
void weir_rest_handle(void* arg, weir_http_call_t* call);

#endif  // WEIR_SERVING_SERVICE_H_
