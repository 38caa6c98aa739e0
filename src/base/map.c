// map.c — The insertion-ordered string map, and the stable hash.
#include "base/map.h"

#include "base/alloc.h"
#include "base/hash.h"

#define MAP_MIN_SLOTS ((size_t)16)

static uint64_t load_le64(const unsigned char* bytes, size_t size) {
  uint64_t word = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  memcpy(&word, bytes, size);
#else
  for (size_t i = 0; i < size; ++i) word |= (uint64_t)bytes[i] << (8 * i);
#endif
  return word;
}

uint64_t weir_hash_bytes(const void* data, size_t size, uint64_t seed) {
  const unsigned char* bytes = data;
  uint64_t hash = seed ^ (0x9e3779b97f4a7c15u * (uint64_t)(size + 1));
  size_t left = size;
  for (; left >= 8; left -= 8, bytes += 8)
    hash = weir_hash_mix(hash ^ load_le64(bytes, 8)) + 0x9e3779b97f4a7c15u;
  if (left > 0) hash ^= load_le64(bytes, left);
  return weir_hash_mix(hash);
}

static uint64_t key_hash(weir_view_t key) { return weir_hash_keyed(key.data, key.size); }

// A removed entry keeps its slot, so that probing goes on over it, but matches no key.
static weir_map_entry_t* find_entry(const weir_map_t* map, weir_view_t key, uint64_t hash) {
  if (map->count == 0) return NULL;
  size_t mask = map->slot_count - 1;
  for (size_t at = hash & mask;; at = (at + 1) & mask) {
    uint32_t index = map->slots[at];
    if (index == 0) return NULL;
    weir_map_entry_t* entry = &map->entries[index - 1];
    if (entry->value && entry->hash == hash && weir_view_equal(entry->key, key)) return entry;
  }
}

static void link_entry(weir_map_t* map, size_t index) {
  size_t mask = map->slot_count - 1;
  size_t at = map->entries[index].hash & mask;
  while (map->slots[at] != 0) at = (at + 1) & mask;
  map->slots[at] = (uint32_t)(index + 1);
}

// Drops removed entries and makes a table at most half full.
static bool rehash(weir_map_t* map) {
  size_t slot_count = MAP_MIN_SLOTS;
  while (slot_count < 2 * (map->count + 1)) slot_count *= 2;
  uint32_t* slots = weir_calloc(slot_count, sizeof(*slots));
  if (!slots) return false;
  weir_free(map->slots);
  map->slots = slots;
  map->slot_count = slot_count;
  size_t kept = 0;
  for (size_t i = 0; i < map->entry_count; ++i) {
    if (map->entries[i].value) map->entries[kept++] = map->entries[i];
  }
  map->entry_count = kept;
  for (size_t i = 0; i < kept; ++i) link_entry(map, i);
  return true;
}

void* weir_map_find(const weir_map_t* map, weir_view_t key) {
  if (map->count == 0) return NULL;
  const weir_map_entry_t* entry = find_entry(map, key, key_hash(key));
  return entry ? entry->value : NULL;
}

weir_status_t* weir_map_put(weir_map_t* map, weir_view_t key, void* value) {
  WEIR_CHECK(value != NULL);
  uint64_t hash = key_hash(key);
  weir_map_entry_t* entry = find_entry(map, key, hash);
  if (entry) {
    entry->value = value;
    return NULL;
  }
  if (map->count >= UINT32_MAX / 2)
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "map is full: %zu entries", map->count);
  if ((map->entry_count + 1) * 4 > map->slot_count * 3 && !rehash(map)) return weir_out_of_memory();
  if (!WEIR_GROW(map->entries, map->entry_capacity, map->entry_count + 1))
    return weir_out_of_memory();
  if (map->owns_keys) {
    key.data = weir_strndup(key.data, key.size);
    if (!key.data) return weir_out_of_memory();
  }
  map->entries[map->entry_count] = (weir_map_entry_t){.key = key, .hash = hash, .value = value};
  link_entry(map, map->entry_count);
  ++map->entry_count;
  ++map->count;
  return NULL;
}

static void free_key(const weir_map_t* map, weir_map_entry_t* entry) {
  if (map->owns_keys) weir_free((void*)(uintptr_t)entry->key.data);
  entry->key = weir_view(NULL, 0);
}

void* weir_map_remove(weir_map_t* map, weir_view_t key) {
  if (map->count == 0) return NULL;
  weir_map_entry_t* entry = find_entry(map, key, key_hash(key));
  if (!entry) return NULL;
  void* value = entry->value;
  free_key(map, entry);
  entry->value = NULL;
  --map->count;
  return value;
}

void weir_map_free(weir_map_t* map) {
  for (size_t i = 0; i < map->entry_count; ++i) {
    if (map->entries[i].value) free_key(map, &map->entries[i]);
  }
  weir_free(map->entries);
  weir_free(map->slots);
  *map = (weir_map_t){.owns_keys = map->owns_keys};
}

weir_map_entry_t* weir_map_next(const weir_map_t* map, size_t* position) {
  while (*position < map->entry_count) {
    weir_map_entry_t* entry = &map->entries[(*position)++];
    if (entry->value) return entry;
  }
  return NULL;
}
