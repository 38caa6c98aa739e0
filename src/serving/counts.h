// counts.h — What requests to models are counted by, and Prometheus' text about it.
//
// Thread-safe: counting is relaxed atomic additions.
#ifndef WEIR_SERVING_COUNTS_H_
#define WEIR_SERVING_COUNTS_H_

#include "serving/catalog.h"

typedef enum weir_serving_api_t { WEIR_API_REST, WEIR_API_GRPC, WEIR_API_COUNT } weir_serving_api_t;
typedef enum weir_serving_method_t {
  WEIR_METHOD_PREDICT,
  WEIR_METHOD_CLASSIFY,
  WEIR_METHOD_REGRESS,
  WEIR_METHOD_INFER,
  WEIR_METHOD_METADATA,
  WEIR_METHOD_STATUS,
  WEIR_METHOD_COUNT,
} weir_serving_method_t;

typedef struct weir_counts_t weir_counts_t;

// |catalog| is borrowed, its list of models complete.
WEIR_MUST_USE weir_status_t* weir_counts_create(weir_catalog_t* catalog,
                                                weir_counts_t** out_counts);
void weir_counts_destroy(weir_counts_t* counts);  // NULL-safe

// A request that has ended.
typedef struct weir_counted_t {
  weir_view_t model;  // none that is served: counted as ""
  weir_serving_api_t api;
  weir_serving_method_t method;
  weir_code_t code;
  int64_t duration_ns;
  int64_t run_ns;  // of it, the model's; 0: it did not run
} weir_counted_t;
void weir_counts_add(weir_counts_t* counts, const weir_counted_t* counted);
void weir_counts_write(weir_counts_t* counts, weir_strbuf_t* out);

#endif  // WEIR_SERVING_COUNTS_H_
