// regex_classes.c — Classes of Unicode's characters by name: categories (Lu, or L for all that
// begin so) and scripts (Greek).
#include "base/regex_internal.h"

// Places of names in a table are the low bytes of |starts|.
typedef struct named_starts_t {
  const char* const* names;
  size_t name_count;
  const uint32_t* starts;
  size_t start_count;
} named_starts_t;

#include "base/regex_classes.inc"

static const named_starts_t categories = {category_names, WEIR_COUNT_OF(category_names),
                                          category_starts, WEIR_COUNT_OF(category_starts)};
static const named_starts_t scripts = {script_names, WEIR_COUNT_OF(script_names), script_starts,
                                       WEIR_COUNT_OF(script_starts)};

// Sets the places whose names are |name|, or begin with it where it is one letter.
static bool find(const named_starts_t* in, weir_view_t name, uint8_t* out_first,
                 uint8_t* out_last) {
  *out_first = *out_last = 0;
  for (size_t i = 1; i < in->name_count; ++i) {
    const size_t size = name.size == 1 ? 1 : strlen(in->names[i]);
    if (size != name.size || memcmp(name.data, in->names[i], size) != 0) continue;
    if (!*out_first) *out_first = (uint8_t)i;
    *out_last = (uint8_t)i;  // names are sorted
  }
  return *out_first > 0;
}

bool weir_rune_class_find(weir_view_t name, rune_class_t* out_class) {
  const named_starts_t* in = &categories;
  uint8_t first = 0, last = 0;
  if (name.size == 0) return false;
  if (!find(in, name, &first, &last)) {
    in = &scripts;
    if (name.size == 1 || !find(in, name, &first, &last)) return false;
  }
  *out_class =
      (rune_class_t){.starts = in->starts, .count = in->start_count, .first = first, .last = last};
  return true;
}

bool weir_rune_class_next(rune_class_t* rune_class, rune_range_t* out_range) {
  while (rune_class->at < rune_class->count) {
    const size_t i = rune_class->at++;
    const uint8_t place = rune_class->starts[i] & 0xff;
    if (place < rune_class->first || place > rune_class->last) continue;
    const bool is_last = i + 1 == rune_class->count;
    out_range->low = (int32_t)(rune_class->starts[i] >> 8);
    out_range->high = is_last ? WEIR_LAST_RUNE : (int32_t)(rune_class->starts[i + 1] >> 8) - 1;
    return true;
  }
  return false;
}
