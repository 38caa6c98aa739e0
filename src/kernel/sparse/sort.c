// sort.c — Radix sort of runs, then merges of neighbouring runs.
#include "kernel/sparse/sort.h"

#include <string.h>

#include "base/alloc.h"

#define DIGIT_BITS 8
#define DIGITS (1 << DIGIT_BITS)
#define RUN_MIN 32768  // pairs that are worth a thread

typedef struct sort_t {
  uint64_t* keys[2];  // the caller's and ours, in turn
  int64_t* numbers[2];
  int64_t count;
  int64_t run;    // pairs in each sorted run, fewer in the last
  int from;       // which of the two holds the pairs
  uint64_t bits;  // that differ between keys
} sort_t;

static bool is_sorted(const uint64_t* keys, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (keys[i - 1] > keys[i]) return false;
  }
  return true;
}

// Moves pairs [begin, end) to the other side in the order of the digit at |shift|.
static void sort_digit(sort_t* s, int from, int64_t begin, int64_t end, int shift) {
  int64_t at[DIGITS] = {0};
  const uint64_t* keys = s->keys[from];
  for (int64_t i = begin; i < end; ++i) ++at[keys[i] >> shift & (DIGITS - 1)];
  int64_t next = begin;
  for (int d = 0; d < DIGITS; ++d) {
    int64_t n = at[d];
    at[d] = next;
    next += n;
  }
  for (int64_t i = begin; i < end; ++i) {
    int64_t to = at[keys[i] >> shift & (DIGITS - 1)]++;
    s->keys[1 - from][to] = keys[i];
    s->numbers[1 - from][to] = s->numbers[from][i];
  }
}

// Every run goes through the same digits, so that all end on the same side.
static void sort_runs(void* arg, int64_t begin, int64_t end) {
  sort_t* s = arg;
  for (int64_t r = begin; r < end; ++r) {
    int from = s->from;
    for (int shift = 0; shift < 64; shift += DIGIT_BITS) {
      if (!(s->bits >> shift & (DIGITS - 1))) continue;
      sort_digit(s, from, r * s->run, WEIR_MIN((r + 1) * s->run, s->count), shift);
      from = 1 - from;
    }
  }
}

static void merge_runs(void* arg, int64_t begin, int64_t end) {
  sort_t* s = arg;
  const uint64_t* keys = s->keys[s->from];
  const int64_t* numbers = s->numbers[s->from];
  for (int64_t pair = begin; pair < end; ++pair) {
    int64_t at = pair * 2 * s->run;
    int64_t a = at, a_end = WEIR_MIN(at + s->run, s->count);
    int64_t b = a_end, b_end = WEIR_MIN(at + 2 * s->run, s->count);
    for (; at < b_end; ++at) {
      int64_t pick = b >= b_end || (a < a_end && keys[a] <= keys[b]) ? a++ : b++;
      s->keys[1 - s->from][at] = keys[pick];
      s->numbers[1 - s->from][at] = numbers[pick];
    }
  }
}

static void sort_pairs(weir_pool_t* pool, sort_t* s) {
  int64_t threads = pool ? weir_pool_thread_count(pool) : 1;
  int64_t runs = WEIR_MAX(WEIR_MIN(threads, s->count / RUN_MIN), 1);
  s->run = (s->count + runs - 1) / runs;
  runs = (s->count + s->run - 1) / s->run;
  int digits = 0;
  for (int shift = 0; shift < 64; shift += DIGIT_BITS)
    digits += (s->bits >> shift & (DIGITS - 1)) != 0;
  weir_pool_for(pool, runs, 2.0 * digits * (double)s->run, sort_runs, s);
  s->from ^= digits & 1;
  for (; s->run < s->count; s->run *= 2) {
    int64_t pairs = (s->count + 2 * s->run - 1) / (2 * s->run);
    weir_pool_for(pool, pairs, 4.0 * (double)s->run, merge_runs, s);
    s->from = 1 - s->from;
  }
}

weir_status_t* weir_sort_keys(weir_pool_t* pool, uint64_t* keys, int64_t* numbers, int64_t count) {
  if (is_sorted(keys, count)) return NULL;
  sort_t s = {.keys = {keys, weir_alloc_array((size_t)count, sizeof(*keys))},
              .numbers = {numbers, weir_alloc_array((size_t)count, sizeof(*numbers))},
              .count = count};
  weir_status_t* status = NULL;
  if (s.keys[1] && s.numbers[1]) {
    for (int64_t i = 1; i < count; ++i) s.bits |= keys[i] ^ keys[0];
    sort_pairs(pool, &s);
    if (s.from == 1) {
      memcpy(keys, s.keys[1], (size_t)count * sizeof(*keys));
      memcpy(numbers, s.numbers[1], (size_t)count * sizeof(*numbers));
    }
  } else {
    status = weir_out_of_memory();
  }
  weir_free(s.keys[1]);
  weir_free(s.numbers[1]);
  return status;
}
