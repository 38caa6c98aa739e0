// request_ids.h — Recently seen request numbers, so that a request that arrives twice, or once more
// much later, is refused: what it does is done once. Thread-safe.
#ifndef WEIR_CLUSTER_TASK_REQUEST_IDS_H_
#define WEIR_CLUSTER_TASK_REQUEST_IDS_H_

#include "base/thread.h"

// Two sets: when the newer one has as many as are to be known it becomes the older one, whose
// numbers are forgotten.
typedef struct weir_request_ids_t {
  weir_mutex_t mu;
  int64_t *newer, *older;  // hash tables, half full at most; 0: a free place
  size_t known, count;     // numbers to be known; in |newer|
  uint64_t seed;           // lest somebody sends numbers that all want one place
} weir_request_ids_t;

// The last |known| numbers, a power of two, are known for certain.
WEIR_MUST_USE weir_status_t* weir_request_ids_init(weir_request_ids_t* ids, size_t known);
void weir_request_ids_free(weir_request_ids_t* ids);
// Remembers |id|. ABORTED naming |method| when it was seen before; 0 is never seen.
WEIR_MUST_USE weir_status_t* weir_request_ids_add(weir_request_ids_t* ids, int64_t id,
                                                  const char* method);
void weir_request_ids_clear(weir_request_ids_t* ids);

#endif  // WEIR_CLUSTER_TASK_REQUEST_IDS_H_
