// map.h — Hash maps from strings or 64-bit integers to pointers. Open addressing; insertion order
// is kept for iteration.
#ifndef WEIR_BASE_MAP_H_
#define WEIR_BASE_MAP_H_

#include "base/base.h"

uint64_t weir_hash_bytes(const void* data, size_t size,
                         uint64_t seed);          // stable between runs and machines
WEIR_INLINE uint64_t weir_hash_mix(uint64_t x) {  // splitmix64's finisher
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

typedef struct weir_map_entry_t {
  weir_view_t key;  // borrowed or owned, see weir_map_t.owns_keys
  uint64_t hash;
  void* value;  // never NULL while the entry lives; NULL marks a removed entry
} weir_map_entry_t;

// String → non-NULL pointer. Thread-compatible. Zero-initialise to use. The map never frees values.
typedef struct weir_map_t {
  weir_map_entry_t* entries;  // in insertion order, with removed ones in between
  size_t entry_count;         // used places of |entries|
  size_t entry_capacity;
  uint32_t* slots;  // hash table of 1-based indices into |entries|; power of two
  size_t slot_count;
  size_t count;    // live entries
  bool owns_keys;  // keys are copied in and freed; set before the first put
} weir_map_t;

void* weir_map_find(const weir_map_t* map, weir_view_t key);  // NULL when absent
WEIR_MUST_USE weir_status_t* weir_map_put(weir_map_t* map, weir_view_t key,
                                          void* value);   // replaces
void* weir_map_remove(weir_map_t* map, weir_view_t key);  // returns the value, NULL when absent
void weir_map_free(weir_map_t* map);
// Iterates: for (size_t i = 0; (e = weir_map_next(&map, &i));)
weir_map_entry_t* weir_map_next(const weir_map_t* map, size_t* position);

#endif  // WEIR_BASE_MAP_H_
