// regex.h — Regular expressions in RE2's syntax, matched against whole strings in time linear in
// their length. Text is UTF-8; bytes that are not are matched by \C alone.
//
// Not there: classes of Unicode properties (\pN), which are UNIMPLEMENTED. Letters match either
// case under (?i) where they are ASCII, Latin-1, Greek or Cyrillic.
#ifndef WEIR_BASE_REGEX_H_
#define WEIR_BASE_REGEX_H_

#include "base/base.h"
#include "base/string.h"

typedef struct weir_regex_t weir_regex_t;  // immutable after create

// INVALID_ARGUMENT "Invalid pattern: …, error: …" names what is wrong.
WEIR_MUST_USE weir_status_t* weir_regex_create(weir_view_t pattern, weir_regex_t** out_regex);
void weir_regex_destroy(weir_regex_t* regex);  // NULL is fine
// Whether all of |text| matches.
WEIR_MUST_USE weir_status_t* weir_regex_full_match(const weir_regex_t* regex, weir_view_t text,
                                                   bool* out_matches);

#endif  // WEIR_BASE_REGEX_H_
