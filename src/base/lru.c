// lru.c — A table of the values used last.
#include "base/lru.h"

void weir_lru_init(weir_lru_t* lru, size_t limit) {
  *lru = (weir_lru_t){.items = {.owns_keys = true}, .limit = limit};
}

void weir_lru_free(weir_lru_t* lru) { weir_map_free(&lru->items); }

void* weir_lru_find(weir_lru_t* lru, weir_view_t key) {
  weir_lru_item_t* item = weir_map_find(&lru->items, key);
  if (item) item->last_use = lru->use_count++;
  return item;
}

// A walk over the table is nothing beside what it takes to make a value worth keeping.
static void* evict(weir_lru_t* lru) {
  weir_map_entry_t *entry, *oldest = NULL;
  for (size_t i = 0; (entry = weir_map_next(&lru->items, &i));) {
    const weir_lru_item_t *item = entry->value, *least = oldest ? oldest->value : NULL;
    if (!least || item->last_use < least->last_use) oldest = entry;
  }
  return oldest ? weir_map_remove(&lru->items, oldest->key) : NULL;
}

weir_status_t* weir_lru_put(weir_lru_t* lru, weir_view_t key, void* value, void** out_evicted) {
  weir_lru_item_t* item = value;
  WEIR_TRY(weir_map_put(&lru->items, key, value));
  item->last_use = lru->use_count++;
  *out_evicted = lru->items.count > lru->limit ? evict(lru) : NULL;
  return NULL;
}
