// lru.h — A table of the values used last: when it is full, a new one takes the place of the one
// that was not used for longest. Thread-compatible.
#ifndef WEIR_BASE_LRU_H_
#define WEIR_BASE_LRU_H_

#include "base/map.h"

// What a value of the table begins with.
typedef struct weir_lru_item_t {
  int64_t last_use;  // the table's
} weir_lru_item_t;

typedef struct weir_lru_t {
  weir_map_t items;  // keys are copied
  size_t limit;      // at least 1
  int64_t use_count;
} weir_lru_t;

void weir_lru_init(weir_lru_t* lru, size_t limit);
void weir_lru_free(weir_lru_t* lru);  // not the values
// NULL when absent; else that is a use.
void* weir_lru_find(weir_lru_t* lru, weir_view_t key);
// Puts a value whose key is new. |out_evicted| is what made room for it, for the caller to free;
// NULL when nothing had to.
WEIR_MUST_USE weir_status_t* weir_lru_put(weir_lru_t* lru, weir_view_t key, void* value,
                                          void** out_evicted);

#endif  // WEIR_BASE_LRU_H_
