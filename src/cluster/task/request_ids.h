// request_ids.h — Recently seen request numbers, so that a request that arrives twice is refused.
// Thread-safe.
#ifndef WEIR_CLUSTER_TASK_REQUEST_IDS_H_
#define WEIR_CLUSTER_TASK_REQUEST_IDS_H_

#include "base/thread.h"

enum { WEIR_REQUEST_IDS_SIZE = 4096 };

typedef struct weir_request_ids_t {
  weir_mutex_t mu;
  int64_t ids[WEIR_REQUEST_IDS_SIZE];  // a hash table of the newest in each place; 0: none
} weir_request_ids_t;

void weir_request_ids_init(weir_request_ids_t* ids);
void weir_request_ids_free(weir_request_ids_t* ids);
// Remembers |id|. ABORTED naming |method| when it was seen before; 0 is never seen.
WEIR_MUST_USE weir_status_t* weir_request_ids_add(weir_request_ids_t* ids, int64_t id,
                                                  const char* method);

#endif  // WEIR_CLUSTER_TASK_REQUEST_IDS_H_
