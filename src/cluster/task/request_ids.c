// request_ids.c — Recently seen request numbers.
#include "cluster/task/request_ids.h"

#include "base/alloc.h"
#include "base/map.h"
#include "base/philox.h"

static size_t places(const weir_request_ids_t* ids) { return 2 * ids->known; }

weir_status_t* weir_request_ids_init(weir_request_ids_t* ids, size_t known) {
  *ids = (weir_request_ids_t){.known = known, .seed = weir_random_entropy()};
  weir_mutex_init(&ids->mu);
  // Memory that nobody writes to costs nothing.
  ids->newer = weir_calloc(places(ids), sizeof(*ids->newer));
  ids->older = weir_calloc(places(ids), sizeof(*ids->older));
  return ids->newer && ids->older ? NULL : weir_out_of_memory();
}

void weir_request_ids_free(weir_request_ids_t* ids) {
  weir_free(ids->newer);
  weir_free(ids->older);
  weir_mutex_destroy(&ids->mu);
}

// Where |id| is in |table|, or would be.
static int64_t* find(const weir_request_ids_t* ids, int64_t* table, int64_t id) {
  size_t i = weir_hash_mix((uint64_t)id ^ ids->seed) & (places(ids) - 1);
  while (table[i] && table[i] != id) i = (i + 1) & (places(ids) - 1);
  return &table[i];
}

static void forget_older_locked(weir_request_ids_t* ids) {
  int64_t* older = ids->older;
  memset(older, 0, places(ids) * sizeof(*older));
  ids->older = ids->newer;
  ids->newer = older;
  ids->count = 0;
}

static bool add_locked(weir_request_ids_t* ids, int64_t id) {
  if (ids->count == ids->known) forget_older_locked(ids);
  int64_t* place = find(ids, ids->newer, id);
  if (*place || *find(ids, ids->older, id)) return false;
  *place = id;
  ++ids->count;
  return true;
}

weir_status_t* weir_request_ids_add(weir_request_ids_t* ids, int64_t id, const char* method) {
  if (id == 0) return NULL;
  weir_mutex_lock(&ids->mu);
  const bool is_new = add_locked(ids, id);
  weir_mutex_unlock(&ids->mu);
  if (is_new) return NULL;
  return WEIR_STATUS(ABORTED, "%s: request_id %lld has been seen before", method, (long long)id);
}

void weir_request_ids_clear(weir_request_ids_t* ids) {
  weir_mutex_lock(&ids->mu);
  for (int i = 0; i < 2; ++i) forget_older_locked(ids);
  weir_mutex_unlock(&ids->mu);
}
