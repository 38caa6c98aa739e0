// element_set.h — A set of rows of elements under TensorFlow's equality: 0 equals -0, a NaN equals
// nothing. For Unique and ListDiff. Thread-confined.
#ifndef WEIR_OPS_ARRAY_ELEMENT_SET_H_
#define WEIR_OPS_ARRAY_ELEMENT_SET_H_

#include "base/hash.h"
#include "ops/array/common.h"
#include "tensor/numeric.h"

typedef struct element_set_t {
  weir_dtype_t dtype;
  size_t size;        // bytes an element
  int64_t row;        // elements a row
  int64_t* slots;     // 1-based numbers of members; open addressing
  uint64_t mask;      // slots - 1
  const char** rows;  // of the members
  int64_t count;
} element_set_t;

static inline weir_status_t* element_set_create(element_set_t* set, weir_dtype_t dtype, int64_t row,
                                                int64_t capacity) {
  uint64_t slots = 16;
  while (slots < 2 * (uint64_t)capacity) slots *= 2;
  *set = (element_set_t){
      .dtype = dtype, .size = weir_dtype_size(dtype), .row = row, .mask = slots - 1};
  set->slots = weir_calloc(slots, sizeof(*set->slots));
  set->rows = weir_alloc_array((size_t)capacity, sizeof(*set->rows));
  return set->slots && set->rows ? NULL : weir_out_of_memory();
}

static inline void element_set_free(element_set_t* set) {
  weir_free(set->slots);
  weir_free(set->rows);
}

// The element as bits that are equal exactly when the values are; false for a NaN.
static inline bool element_bits(weir_dtype_t dtype, const char* p, uint64_t* out_bits) {
  switch (weir_dtype_size(dtype)) {
    case 1: *out_bits = *(const uint8_t*)p; return true;
    case 2: {
      uint16_t x;
      memcpy(&x, p, sizeof(x));
      *out_bits = x;
      if (dtype != WEIR_DTYPE_HALF && dtype != WEIR_DTYPE_BFLOAT16) return true;
      if (x == 0x8000) *out_bits = 0;
      return (x & 0x7fff) <= (dtype == WEIR_DTYPE_HALF ? 0x7c00 : 0x7f80);
    }
    case 4: {
      uint32_t x;
      memcpy(&x, p, sizeof(x));
      *out_bits = x;
      if (dtype != WEIR_DTYPE_FLOAT) return true;
      if (x == 0x80000000u) *out_bits = 0;
      return (x & 0x7fffffffu) <= 0x7f800000u;
    }
    default: {
      memcpy(out_bits, p, sizeof(*out_bits));
      if (dtype != WEIR_DTYPE_DOUBLE) return true;
      if (*out_bits == (uint64_t)1 << 63) *out_bits = 0;
      return (*out_bits & ~((uint64_t)1 << 63)) <= (uint64_t)0x7ff << 52;
    }
  }
}

// False when the row equals nothing, not even itself.
static inline bool element_row_hash(const element_set_t* set, const char* row, uint64_t* out_hash) {
  uint64_t hash = weir_hash_key[0];
  for (int64_t i = 0; i < set->row; ++i) {
    const char* p = row + (size_t)i * set->size;
    uint64_t bits = 0;
    if (set->dtype == WEIR_DTYPE_STRING) {
      weir_view_t text = weir_string_view((const weir_string_t*)p);
      bits = weir_hash_keyed(text.data, text.size);
    } else if (!element_bits(set->dtype, p, &bits)) {
      return false;
    }
    hash = weir_hash_fold(hash ^ bits, weir_hash_key[1]);
  }
  *out_hash = weir_hash_fold(hash, weir_hash_key[1]);  // again: see weir_hash_number
  return true;
}

static inline bool element_row_equal(const element_set_t* set, const char* a, const char* b) {
  for (int64_t i = 0; i < set->row; ++i) {
    const char* p = a + (size_t)i * set->size;
    const char* q = b + (size_t)i * set->size;
    if (set->dtype == WEIR_DTYPE_STRING) {
      if (!weir_view_equal(weir_string_view((const weir_string_t*)p),
                           weir_string_view((const weir_string_t*)q))) {
        return false;
      }
    } else {
      uint64_t x = 0, y = 0;
      if (!element_bits(set->dtype, p, &x) || !element_bits(set->dtype, q, &y) || x != y)
        return false;
    }
  }
  return true;
}

// The number of the member equal to |row|; when there is none: adds it if |add|, giving the next
// number, else -1.
static inline int64_t element_set_find(element_set_t* set, const char* row, bool add) {
  uint64_t hash = 0;
  if (element_row_hash(set, row, &hash)) {
    uint64_t slot = hash & set->mask;
    for (; set->slots[slot]; slot = (slot + 1) & set->mask) {
      int64_t member = set->slots[slot] - 1;
      if (element_row_equal(set, set->rows[member], row)) return member;
    }
    if (add) set->slots[slot] = set->count + 1;
  }
  if (!add) return -1;
  set->rows[set->count] = row;
  return set->count++;
}

#endif  // WEIR_OPS_ARRAY_ELEMENT_SET_H_
