// scan.h — JSON from requests, read piece by piece where it lies: no tree is built.
//
// Thread-confined. The first error is to be returned by whoever sees it; a scanner is of no use
// after. Depth is bounded by WEIR_JSON_MAX_DEPTH, everything else by the size of the text.
#ifndef WEIR_SERVING_SCAN_H_
#define WEIR_SERVING_SCAN_H_

#include "base/json.h"
#include "serving/number.h"

typedef struct weir_scan_t {
  const char *begin, *at, *end;
  int depth;
  weir_arena_t* arena;  // of strings with escapes
} weir_scan_t;

WEIR_INLINE weir_scan_t weir_scan(weir_view_t text, weir_arena_t* arena) {
  return (weir_scan_t){text.data, text.data, text.data + text.size, 0, arena};
}
// Of |value|, a member of what |whole| scans: errors tell the place there.
WEIR_INLINE weir_scan_t weir_scan_within(const weir_scan_t* whole, weir_view_t value) {
  weir_scan_t scan = *whole;
  scan.at = value.data;
  scan.depth = 1;
  return scan;
}
// The first byte of what comes next, spaces skipped; -1 at the end.
int weir_scan_peek(weir_scan_t* scan);
// INVALID_ARGUMENT "JSON: line 1, column 2: expected …".
WEIR_MUST_USE weir_status_t* weir_scan_error(const weir_scan_t* scan, const char* expected);

// ---- values ----
WEIR_MUST_USE weir_status_t* weir_scan_string(weir_scan_t* scan, weir_view_t* out_text);
WEIR_MUST_USE weir_status_t* weir_scan_number(weir_scan_t* scan, weir_json_number_t* out_number);
WEIR_MUST_USE weir_status_t* weir_scan_bool(weir_scan_t* scan, bool* out_value);
// Whatever comes, checked; |out_text|: where it lies.
WEIR_MUST_USE weir_status_t* weir_scan_skip(weir_scan_t* scan, weir_view_t* out_text);
WEIR_MUST_USE weir_status_t* weir_scan_end(weir_scan_t* scan);  // nothing but spaces is left

// ---- arrays and objects ----
// At '[' or '{': takes it. Then, until it says false: a member comes.
WEIR_MUST_USE weir_status_t* weir_scan_open(weir_scan_t* scan, char bracket);
WEIR_MUST_USE weir_status_t* weir_scan_more(weir_scan_t* scan, char bracket, bool* is_first,
                                            bool* out_has_more);
WEIR_MUST_USE weir_status_t* weir_scan_key(weir_scan_t* scan, weir_view_t* out_key);

#endif  // WEIR_SERVING_SCAN_H_
