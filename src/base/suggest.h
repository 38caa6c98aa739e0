// suggest.h — What somebody who misspelt a name may have meant: the nearest of the names that there
// are. Value types, thread-confined.
#ifndef WEIR_BASE_SUGGEST_H_
#define WEIR_BASE_SUGGEST_H_

#include "base/base.h"
#include "base/string.h"

// Longer names are neither corrected nor proposed.
#define WEIR_SUGGEST_MAX 255

// A search: the nearest name offered so far.
typedef struct weir_suggestion_t {
  weir_view_t wanted;
  int limit;         // what is farther is no suggestion
  int distance;      // of |best|
  weir_view_t best;  // borrowed from who offered it; data NULL: none yet
} weir_suggestion_t;

weir_suggestion_t weir_suggestion(weir_view_t wanted);
void weir_suggestion_offer(weir_suggestion_t* suggestion, weir_view_t name);
// Appends " (did you mean 'name'?)", or nothing.
void weir_suggestion_append(const weir_suggestion_t* suggestion, weir_strbuf_t* out);
// |take_status| with that behind its message; as it is when nothing is near.
WEIR_MUST_USE weir_status_t* weir_suggestion_add(const weir_suggestion_t* suggestion,
                                                 weir_status_t* take_status);

// How many letters must be changed, added, dropped or swapped with their neighbour to make |b| of
// |a|, twice; other case counts as one half change. Anything above |limit|: limit + 1.
int weir_edit_distance(weir_view_t a, weir_view_t b, int limit);

#endif  // WEIR_BASE_SUGGEST_H_
