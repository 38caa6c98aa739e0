// hash.h — Hashes for tables that are filled from outside. A random number of each process goes
// into them, so that nobody can choose keys that collide. Nothing that leaves the process, and no
// order, may depend on them; weir_hash_bytes is for that.
#ifndef WEIR_BASE_HASH_H_
#define WEIR_BASE_HASH_H_

#include "base/base.h"

extern uint64_t weir_hash_key[2];  // random, the second one odd; immutable
uint64_t weir_hash_keyed(const void* data, size_t size);

// A number by another: the two halves of the product.
WEIR_INLINE uint64_t weir_hash_fold(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 product_t;
  product_t product = (product_t)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// Twice, since numbers in a row are still in a row after the first time, give or take a factor: in
// a table with linear probing they become one long run.
WEIR_INLINE uint64_t weir_hash_number(uint64_t number) {
  const uint64_t once = weir_hash_fold(number ^ weir_hash_key[0], weir_hash_key[1]);
  return weir_hash_fold(once, weir_hash_key[1]);
}

#endif  // WEIR_BASE_HASH_H_
