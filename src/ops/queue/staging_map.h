// staging_map.h — The resource of MapStage and its kin: tuples under keys. Thread-safe.
#ifndef WEIR_OPS_QUEUE_STAGING_MAP_H_
#define WEIR_OPS_QUEUE_STAGING_MAP_H_

#include "ops/queue/staging.h"

typedef struct staging_map_t staging_map_t;
extern const weir_resource_type_t weir_staging_map_type;

typedef enum map_request_kind_t { MAP_PUT, MAP_GET, MAP_PEEK, MAP_GET_ANY } map_request_kind_t;

typedef struct map_request_t {
  weir_waiter_t base;
  map_request_kind_t kind;
  int64_t key;             // of MAP_GET_ANY: the one that was got
  weir_tensor_t* indices;  // int32
  tuple_t* tuple;          // PUT: what to put; others: what was got
} map_request_t;

// Creates one as the staging_state_t |arg| says.
WEIR_MUST_USE weir_status_t* weir_staging_map_create(void* arg, weir_resource_t** out_resource);

// Puts the checked request |take_request| of kernel |ctx|, of weir_calloc, to |m|.
void weir_staging_map_submit(staging_map_t* m, map_request_t* take_request, weir_kernel_ctx_t* ctx,
                             weir_done_t done);
// Frees what |r| holds, not itself.
void weir_staging_map_request_deinit(map_request_t* r);

// Tuples that are whole, or that lack parts.
int64_t weir_staging_map_size(staging_map_t* m, bool of_incomplete);
void weir_staging_map_clear(staging_map_t* m);

#endif  // WEIR_OPS_QUEUE_STAGING_MAP_H_
