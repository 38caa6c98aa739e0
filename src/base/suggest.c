// suggest.c — Edit distance, and the nearest of the names that there are.
#include "base/suggest.h"

#include "base/details.h"
#include "weir/suggest.h"

enum { CHANGE = 2, OTHER_CASE = 1 };

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static int change_cost(char a, char b) {
  if (a == b) return 0;
  return lower(a) == lower(b) ? OTHER_CASE : CHANGE;
}

// A row of the table of distances between beginnings of |a| and |b|, of the one and the two before.
typedef struct rows_t {
  int at[3][WEIR_SUGGEST_MAX + 1];
} rows_t;

static int next_row(rows_t* rows, size_t i, weir_view_t a, weir_view_t b) {
  int* row = rows->at[i % 3];
  const int* before = rows->at[(i + 2) % 3];
  const int* second = rows->at[(i + 1) % 3];
  int least = row[0] = (int)i * CHANGE;
  for (size_t k = 1; k <= b.size; ++k) {
    int best = before[k - 1] + change_cost(a.data[i - 1], b.data[k - 1]);
    best = WEIR_MIN(best, before[k] + CHANGE);
    best = WEIR_MIN(best, row[k - 1] + CHANGE);
    if (i > 1 && k > 1 && a.data[i - 1] == b.data[k - 2] && a.data[i - 2] == b.data[k - 1])
      best = WEIR_MIN(best, second[k - 2] + CHANGE);
    row[k] = best;
    least = WEIR_MIN(least, best);
  }
  return least;
}

int weir_edit_distance(weir_view_t a, weir_view_t b, int limit) {
  rows_t rows;
  size_t longer = WEIR_MAX(a.size, b.size), shorter = WEIR_MIN(a.size, b.size);
  if (longer > WEIR_SUGGEST_MAX || (int)(longer - shorter) * CHANGE > limit) return limit + 1;
  for (size_t k = 0; k <= b.size; ++k) rows.at[0][k] = (int)k * CHANGE;
  for (size_t i = 1; i <= a.size; ++i) {
    // A swap reaches back two rows, so a row alone may be beyond the limit by one change.
    if (next_row(&rows, i, a, b) > limit + CHANGE) return limit + 1;
  }
  return WEIR_MIN(rows.at[a.size % 3][b.size], limit + 1);
}

weir_suggestion_t weir_suggestion(weir_view_t wanted) {
  // A third of the letters may be wrong, of short names one.
  int letters = (int)WEIR_MIN(wanted.size / 3, (size_t)8);
  int limit = CHANGE * WEIR_MAX(letters, 1);
  return (weir_suggestion_t){.wanted = wanted, .limit = limit, .distance = limit + 1};
}

void weir_suggestion_offer(weir_suggestion_t* suggestion, weir_view_t name) {
  int limit = WEIR_MIN(suggestion->distance - 1, suggestion->limit);
  int distance = weir_edit_distance(suggestion->wanted, name, limit);
  bool is_other = distance < (int)WEIR_MAX(suggestion->wanted.size, name.size) * CHANGE;
  if (distance > limit || !is_other) return;
  suggestion->distance = distance;
  suggestion->best = name;
}

void weir_suggestion_append(const weir_suggestion_t* suggestion, weir_strbuf_t* out) {
  if (suggestion->best.data)
    weir_strbuf_printf(out, " (did you mean '%.*s'?)", WEIR_VIEW_ARG(suggestion->best));
}

weir_status_t* weir_suggestion_add(const weir_suggestion_t* suggestion,
                                   weir_status_t* take_status) {
  if (!take_status || !suggestion->best.data) return take_status;
  weir_strbuf_t hint = {0};
  weir_suggestion_append(suggestion, &hint);
  weir_status_t* status = weir_status_append(take_status, weir_strbuf_view(&hint));
  weir_strbuf_free(&hint);
  return status;
}

const char* weir_suggest(const char* wanted, const char* const* names, size_t count) {
  if (!wanted || !names) return NULL;
  weir_suggestion_t suggestion = weir_suggestion(weir_view_of(wanted));
  for (size_t i = 0; i < count; ++i) {
    if (names[i]) weir_suggestion_offer(&suggestion, weir_view_of(names[i]));
  }
  return suggestion.best.data;
}
