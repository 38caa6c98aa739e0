// request_ids.c — Recently seen request numbers.
#include "cluster/task/request_ids.h"

#include "base/map.h"

void weir_request_ids_init(weir_request_ids_t* ids) {
  weir_mutex_init(&ids->mu);
  memset(ids->ids, 0, sizeof(ids->ids));
}

void weir_request_ids_free(weir_request_ids_t* ids) { weir_mutex_destroy(&ids->mu); }

weir_status_t* weir_request_ids_add(weir_request_ids_t* ids, int64_t id, const char* method) {
  if (id == 0) return NULL;
  int64_t* place = &ids->ids[weir_hash_mix((uint64_t)id) % WEIR_REQUEST_IDS_SIZE];
  weir_mutex_lock(&ids->mu);
  bool is_known = *place == id;
  *place = id;
  weir_mutex_unlock(&ids->mu);
  if (!is_known) return NULL;
  return WEIR_STATUS(ABORTED, "%s: request_id %lld has been seen before", method, (long long)id);
}
