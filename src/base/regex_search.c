// regex_search.c — Looking for a regular expression within a text: threads of the same program as
// those of regex.c, kept in the order in which Perl would try them, each with the groups it has
// seen.
#include "base/regex_internal.h"

#define MAX_RUNE_SIZE 4
#define SLOTS (2 * (WEIR_REGEX_MAX_GROUP + 1))
#define RESTORE (-1)

typedef struct slots_t {
  size_t at[SLOTS];
} slots_t;

// The threads that wait at one position, the preferred first.
typedef struct waiting_t {
  int* items;
  slots_t* slots;
  int count;
  uint64_t* seen;  // by instruction: when it was last added
} waiting_t;

// What add_thread has yet to do: go to |pc|, or set |slot| back to |value|.
typedef struct todo_t {
  int pc;
  int slot;
  size_t value;
} todo_t;

struct weir_regex_search_t {
  const weir_regex_t* regex;
  waiting_t sets[MAX_RUNE_SIZE + 1];  // for this position and the next ones, in turn
  int* items;
  slots_t* slots;
  uint64_t* seen;
  todo_t* todo;
  weir_view_t text;
  uint64_t base;  // of this search: positions count on from it in |seen|
  int alive;      // threads in all sets
};

int weir_regex_group_count(const weir_regex_t* regex) { return regex->group_count; }

weir_status_t* weir_regex_search_create(const weir_regex_t* regex,
                                        weir_regex_search_t** out_search) {
  weir_regex_search_t* s = weir_calloc(1, sizeof(*s));
  if (!s) return weir_out_of_memory();
  const size_t count = regex->count, sets = WEIR_COUNT_OF(s->sets);
  s->regex = regex;
  s->items = weir_calloc(sets * count, sizeof(*s->items));
  s->slots = weir_calloc(sets * count, sizeof(*s->slots));
  s->seen = weir_calloc(sets * count, sizeof(*s->seen));
  s->todo = weir_calloc(2 * count + 2, sizeof(*s->todo));
  if (!s->items || !s->slots || !s->seen || !s->todo) {
    weir_regex_search_destroy(s);
    return weir_out_of_memory();
  }
  for (size_t i = 0; i < sets; ++i) {
    s->sets[i] = (waiting_t){
        .items = s->items + i * count, .slots = s->slots + i * count, .seen = s->seen + i * count};
  }
  *out_search = s;
  return NULL;
}

void weir_regex_search_destroy(weir_regex_search_t* search) {
  if (!search) return;
  weir_free(search->items);
  weir_free(search->slots);
  weir_free(search->seen);
  weir_free(search->todo);
  weir_free(search);
}

static waiting_t* set_at(weir_regex_search_t* s, size_t at) {
  return &s->sets[at % WEIR_COUNT_OF(s->sets)];
}

// Puts a thread at |pc| for position |at|, and all that it comes to without reading.
static void add_thread(weir_regex_search_t* s, int pc, size_t at, slots_t slots) {
  waiting_t* set = set_at(s, at);
  const uint64_t now = s->base + at + 1;
  int depth = 0;
  s->todo[depth++] = (todo_t){.pc = pc};
  while (depth > 0) {
    const todo_t next = s->todo[--depth];
    if (next.pc == RESTORE) {
      slots.at[next.slot] = next.value;
      continue;
    }
    if (set->seen[next.pc] == now) continue;
    set->seen[next.pc] = now;
    const instruction_t* i = &s->regex->program[next.pc];
    switch (i->code) {
      case CODE_JUMP: s->todo[depth++] = (todo_t){.pc = i->next}; break;
      case CODE_SPLIT:
        s->todo[depth++] = (todo_t){.pc = i->other};
        s->todo[depth++] = (todo_t){.pc = i->next};
        break;
      case CODE_ASSERT:
        if (weir_regex_holds(s->text, i->assertion, at)) {
          s->todo[depth++] = (todo_t){.pc = next.pc + 1};
        }
        break;
      case CODE_SAVE:
        if (i->other < SLOTS) {
          s->todo[depth++] = (todo_t){RESTORE, i->other, slots.at[i->other]};
          slots.at[i->other] = at;
        }
        s->todo[depth++] = (todo_t){.pc = next.pc + 1};
        break;
      case CODE_FAIL: break;
      default:
        set->slots[set->count] = slots;
        set->items[set->count++] = next.pc;
        ++s->alive;
    }
  }
}

// Lets the threads of position |at| read on. One that is through ends those that come after it.
static bool step(weir_regex_search_t* s, size_t at, slots_t* match) {
  waiting_t* set = set_at(s, at);
  int32_t rune = 0;
  const weir_view_t rest = weir_view(s->text.data + at, s->text.size - at);
  const int form_size = weir_rune_size(rest), size = weir_rune_decode(rest, &rune);
  bool is_through = false;
  s->alive -= set->count;
  for (int k = 0; k < set->count && !is_through; ++k) {
    const int pc = set->items[k];
    const instruction_t* i = &s->regex->program[pc];
    if (i->code == CODE_MATCH) {
      *match = set->slots[k];
      match->at[1] = at;
      is_through = true;
    } else if (i->code == CODE_BYTE && rest.size > 0) {
      add_thread(s, pc + 1, at + 1, set->slots[k]);
    } else if (i->code == CODE_CLASS && form_size > 0 && weir_regex_has(i->tree, size, rune)) {
      add_thread(s, pc + 1, at + (size_t)form_size, set->slots[k]);
    }
  }
  set->count = 0;
  return is_through;
}

static slots_t fresh_slots(size_t at) {
  slots_t slots;
  for (int i = 0; i < SLOTS; ++i) slots.at[i] = SIZE_MAX;
  slots.at[0] = at;
  return slots;
}

bool weir_regex_search(weir_regex_search_t* search, weir_view_t text, size_t from,
                       weir_regex_span_t spans[WEIR_REGEX_MAX_GROUP + 1]) {
  slots_t match;
  bool is_found = false;
  search->text = text;
  search->alive = 0;
  for (size_t i = 0; i < WEIR_COUNT_OF(search->sets); ++i) search->sets[i].count = 0;
  for (size_t at = from; at <= text.size && (!is_found || search->alive > 0); ++at) {
    if (!is_found) add_thread(search, 0, at, fresh_slots(at));
    is_found |= step(search, at, &match);
  }
  search->base += text.size + 2;
  if (!is_found) return false;
  for (int i = 0; i <= WEIR_REGEX_MAX_GROUP; ++i) {
    spans[i] = (weir_regex_span_t){match.at[2 * i], match.at[2 * i + 1]};
  }
  return true;
}
