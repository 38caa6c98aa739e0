// regex.h — Regular expressions in RE2's syntax, matched against whole strings, or looked for in
// them, in time linear in their length. Text is UTF-8; bytes that are not are matched by \C alone.
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
// The number of groups in parentheses that are remembered.
int weir_regex_group_count(const weir_regex_t* regex);

// ---- looking for matches: leftmost first, as Perl would choose among those at one place ----
#define WEIR_REGEX_MAX_GROUP 9  // later ones are not remembered

typedef struct weir_regex_search_t weir_regex_search_t;  // thread-confined

typedef struct weir_regex_span_t {
  size_t begin, end;  // SIZE_MAX: not part of the match
} weir_regex_span_t;

// |regex| must outlive it.
WEIR_MUST_USE weir_status_t* weir_regex_search_create(const weir_regex_t* regex,
                                                      weir_regex_search_t** out_search);
void weir_regex_search_destroy(weir_regex_search_t* search);  // NULL is fine
// Whether there is a match from |from| on; then |spans| are its own and those of its groups.
bool weir_regex_search(weir_regex_search_t* search, weir_view_t text, size_t from,
                       weir_regex_span_t spans[WEIR_REGEX_MAX_GROUP + 1]);

#endif  // WEIR_BASE_REGEX_H_
