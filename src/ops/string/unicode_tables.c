// unicode_tables.c — Scripts and cases of Unicode's characters.
#include "ops/string/unicode.h"

typedef struct case_range_t {
  int32_t first, last;
  int32_t step;      // every so many characters, from |first| on
  int32_t distance;  // to the character in the other case
} case_range_t;

typedef struct case_special_t {
  int32_t rune;
  int32_t runes[3];  // 0 ends them
} case_special_t;

typedef struct rune_span_t {
  int32_t first, last;
} rune_span_t;

#include "ops/string/unicode_tables.inc"

int32_t weir_rune_script(int32_t rune) {
  if (rune < 0 || rune > WEIR_MAX_RUNE) return -1;
  size_t begin = 0, end = WEIR_COUNT_OF(script_starts);
  while (end - begin > 1) {
    const size_t middle = begin + (end - begin) / 2;
    if ((int32_t)(script_starts[middle] >> 8) <= rune) {
      begin = middle;
    } else {
      end = middle;
    }
  }
  return (int32_t)(script_starts[begin] & 0xff);
}

static bool is_in(const rune_span_t* spans, size_t count, int32_t rune) {
  size_t begin = 0, end = count;
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (rune > spans[middle].last) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin < count && rune >= spans[begin].first;
}

bool weir_rune_is_cased(int32_t rune) { return is_in(cased, WEIR_COUNT_OF(cased), rune); }
bool weir_rune_is_case_ignorable(int32_t rune) {
  return is_in(case_ignorable, WEIR_COUNT_OF(case_ignorable), rune);
}

static int32_t map_one(const case_range_t* ranges, size_t count, int32_t rune) {
  size_t begin = 0, end = count;
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (rune > ranges[middle].last) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  // Ranges of every second character may lie within each other: few do, and then next to it.
  for (; begin < count && ranges[begin].first <= rune; ++begin) {
    if ((rune - ranges[begin].first) % ranges[begin].step == 0)
      return rune + ranges[begin].distance;
  }
  return rune;
}

static int map_several(const case_special_t* specials, size_t count, int32_t rune,
                       int32_t out_runes[3]) {
  size_t begin = 0, end = count;
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    if (rune > specials[middle].rune) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  if (begin == count || specials[begin].rune != rune) return 0;
  int size = 0;
  for (; size < 3 && specials[begin].runes[size]; ++size)
    out_runes[size] = specials[begin].runes[size];
  return size;
}

int weir_rune_lower(int32_t rune, int32_t out_runes[3]) {
  const int size = map_several(lower_specials, WEIR_COUNT_OF(lower_specials), rune, out_runes);
  if (size > 0) return size;
  out_runes[0] = map_one(lower_ranges, WEIR_COUNT_OF(lower_ranges), rune);
  return 1;
}

int weir_rune_upper(int32_t rune, int32_t out_runes[3]) {
  const int size = map_several(upper_specials, WEIR_COUNT_OF(upper_specials), rune, out_runes);
  if (size > 0) return size;
  out_runes[0] = map_one(upper_ranges, WEIR_COUNT_OF(upper_ranges), rune);
  return 1;
}
