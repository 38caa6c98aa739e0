// regex.c — Matching regular expressions: a program of a few instructions, all of whose threads
// walk over the text at once.
#include "base/regex.h"

#include <ctype.h>

#include "base/regex_internal.h"

#define MAX_PROGRAM 200000
#define MAX_RUNE_SIZE 4

// ---- compiling ----

static weir_status_t* emit(weir_regex_t* r, instruction_t instruction, int* out_at) {
  if (r->count >= MAX_PROGRAM) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid pattern: pattern too large - compile failed");
  }
  if (!WEIR_GROW(r->program, r->capacity, r->count + 1)) return weir_out_of_memory();
  r->program[r->count] = instruction;
  if (out_at) *out_at = (int)r->count;
  ++r->count;
  return NULL;
}

static weir_status_t* compile(weir_regex_t* r, const tree_t* tree);

// split(a, b): a … jump end; b … end. The jumps are chained by |next| until the end is known.
static weir_status_t* compile_either(weir_regex_t* r, const tree_t* tree) {
  int jumps = -1;
  for (; tree->kind == TREE_EITHER; tree = tree->right) {
    int split = 0;
    WEIR_TRY(emit(r, (instruction_t){.code = CODE_SPLIT}, &split));
    r->program[split].next = (int)r->count;
    WEIR_TRY(compile(r, tree->left));
    WEIR_TRY(emit(r, (instruction_t){.code = CODE_JUMP, .next = jumps}, &jumps));
    r->program[split].other = (int)r->count;
  }
  WEIR_TRY(compile(r, tree));
  while (jumps >= 0) {
    const int earlier = r->program[jumps].next;
    r->program[jumps].next = (int)r->count;
    jumps = earlier;
  }
  return NULL;
}

// Whether |tree| may match without reading.
static bool is_nullable(const tree_t* tree) {
  for (; tree->kind == TREE_PAIR; tree = tree->right) {
    if (!is_nullable(tree->left)) return false;
  }
  for (; tree->kind == TREE_EITHER; tree = tree->right) {
    if (is_nullable(tree->left)) return true;
  }
  switch (tree->kind) {
    case TREE_PAIR: return is_nullable(tree);  // the last of several ways
    case TREE_REPEAT: return tree->min == 0 || is_nullable(tree->left);
    case TREE_GROUP: return is_nullable(tree->left);
    default: return tree->kind == TREE_EMPTY || tree->kind == TREE_ASSERT;
  }
}

static void set_ways(weir_regex_t* r, int split, bool is_lazy, int turn, int end) {
  r->program[split].next = is_lazy ? end : turn;
  r->program[split].other = is_lazy ? turn : end;
}

// At least one turn: turn … split(turn, end); end
static weir_status_t* compile_plus(weir_regex_t* r, const tree_t* repeat) {
  const int turn = (int)r->count;
  int split = 0;
  WEIR_TRY(compile(r, repeat->left));
  WEIR_TRY(emit(r, (instruction_t){.code = CODE_SPLIT}, &split));
  set_ways(r, split, repeat->is_lazy, turn, (int)r->count);
  return NULL;
}

typedef enum turns_t { TURNS_ONE, TURNS_LOOP, TURNS_PLUS } turns_t;

// Turns that may be left out: split(turn, end); turn … [jump split]; end
static weir_status_t* compile_turn(weir_regex_t* r, const tree_t* repeat, turns_t turns) {
  int split = 0;
  WEIR_TRY(emit(r, (instruction_t){.code = CODE_SPLIT}, &split));
  const int turn = (int)r->count;
  WEIR_TRY(turns == TURNS_PLUS ? compile_plus(r, repeat) : compile(r, repeat->left));
  if (turns == TURNS_LOOP) {
    WEIR_TRY(emit(r, (instruction_t){.code = CODE_JUMP, .next = split}, NULL));
  }
  set_ways(r, split, repeat->is_lazy, turn, (int)r->count);
  return NULL;
}

// A loop around what may be empty is tried in another order than (x+)? would be, which is RE2's.
static weir_status_t* compile_repeat(weir_regex_t* r, const tree_t* tree) {
  const int alone = tree->max < 0 && tree->min > 0 ? tree->min - 1 : tree->min;
  for (int i = 0; i < alone; ++i) WEIR_TRY(compile(r, tree->left));
  if (tree->max < 0 && tree->min > 0) return compile_plus(r, tree);
  if (tree->max < 0) {
    return compile_turn(r, tree, is_nullable(tree->left) ? TURNS_PLUS : TURNS_LOOP);
  }
  for (int i = tree->min; i < tree->max; ++i) WEIR_TRY(compile_turn(r, tree, TURNS_ONE));
  return NULL;
}

static weir_status_t* compile_group(weir_regex_t* r, const tree_t* tree) {
  WEIR_TRY(emit(r, (instruction_t){.code = CODE_SAVE, .other = 2 * tree->min}, NULL));
  WEIR_TRY(compile(r, tree->left));
  return emit(r, (instruction_t){.code = CODE_SAVE, .other = 2 * tree->min + 1}, NULL);
}

static weir_status_t* compile(weir_regex_t* r, const tree_t* tree) {
  for (; tree->kind == TREE_PAIR; tree = tree->right) WEIR_TRY(compile(r, tree->left));
  switch (tree->kind) {
    case TREE_EMPTY: return NULL;
    case TREE_NONE: return emit(r, (instruction_t){.code = CODE_FAIL}, NULL);
    case TREE_CLASS: return emit(r, (instruction_t){.code = CODE_CLASS, .tree = tree}, NULL);
    case TREE_BYTE: return emit(r, (instruction_t){.code = CODE_BYTE}, NULL);
    case TREE_ASSERT:
      return emit(r, (instruction_t){.code = CODE_ASSERT, .assertion = tree->assertion}, NULL);
    case TREE_PAIR: return NULL;  // seen to above
    case TREE_EITHER: return compile_either(r, tree);
    case TREE_REPEAT: return compile_repeat(r, tree);
    case TREE_GROUP: return compile_group(r, tree);
  }
  return NULL;
}

weir_status_t* weir_regex_create(weir_view_t pattern, weir_regex_t** out_regex) {
  weir_regex_t* r = weir_calloc(1, sizeof(*r));
  if (!r) return weir_out_of_memory();
  const tree_t* tree = NULL;
  weir_status_t* status = weir_regex_parse(pattern, &r->arena, &tree, &r->group_count);
  if (!status) status = compile(r, tree);
  if (!status) status = emit(r, (instruction_t){.code = CODE_MATCH}, NULL);
  if (status) {
    weir_regex_destroy(r);
    return status;
  }
  *out_regex = r;
  return NULL;
}

void weir_regex_destroy(weir_regex_t* regex) {
  if (!regex) return;
  weir_free(regex->program);
  weir_arena_free(&regex->arena);
  weir_free(regex);
}

// ---- matching ----

// The instructions that threads wait at, for one position of the text.
typedef struct threads_t {
  int* items;
  int count;
  size_t* seen;  // by instruction: the position it was last added for, plus one
} threads_t;

typedef struct match_t {
  const weir_regex_t* regex;
  weir_view_t text;
  threads_t sets[MAX_RUNE_SIZE + 1];  // for this position and the next ones, in turn
  int* stack;
} match_t;

static bool is_word_at(weir_view_t text, size_t at) {
  return at < text.size && (isalnum((unsigned char)text.data[at]) || text.data[at] == '_') &&
         (unsigned char)text.data[at] < 0x80;
}

bool weir_regex_holds(weir_view_t text, assertion_t assertion, size_t at) {
  switch (assertion) {
    case ASSERT_TEXT_BEGIN: return at == 0;
    case ASSERT_TEXT_END: return at == text.size;
    case ASSERT_LINE_BEGIN: return at == 0 || text.data[at - 1] == '\n';
    case ASSERT_LINE_END: return at == text.size || text.data[at] == '\n';
    case ASSERT_WORD_BOUNDARY:
    case ASSERT_NO_WORD_BOUNDARY: {
      const bool before = at > 0 && is_word_at(text, at - 1);
      return (before != is_word_at(text, at)) == (assertion == ASSERT_WORD_BOUNDARY);
    }
  }
  return false;
}

// Puts a thread at |pc| for position |at|, and all that it comes to without reading.
static void add_thread(match_t* m, int pc, size_t at) {
  threads_t* set = &m->sets[at % WEIR_COUNT_OF(m->sets)];
  int depth = 0;
  m->stack[depth++] = pc;
  while (depth > 0) {
    pc = m->stack[--depth];
    if (set->seen[pc] == at + 1) continue;
    set->seen[pc] = at + 1;
    const instruction_t* i = &m->regex->program[pc];
    switch (i->code) {
      case CODE_JUMP: m->stack[depth++] = i->next; break;
      case CODE_SPLIT:
        m->stack[depth++] = i->other;
        m->stack[depth++] = i->next;
        break;
      case CODE_ASSERT:
        if (weir_regex_holds(m->text, i->assertion, at)) m->stack[depth++] = pc + 1;
        break;
      case CODE_SAVE: m->stack[depth++] = pc + 1; break;
      case CODE_FAIL: break;
      default: set->items[set->count++] = pc;
    }
  }
}

static bool has_rune(const tree_t* tree, int32_t rune) {
  int begin = 0, end = tree->range_count;
  while (begin < end) {
    const int middle = begin + (end - begin) / 2;
    if (rune > tree->ranges[middle].high) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin < tree->range_count && rune >= tree->ranges[begin].low;
}

// Whether |tree| has all that is not ASCII. RE2 then looks at the form of a character only.
static bool has_all_wide(const tree_t* tree) {
  const rune_range_t* last = &tree->ranges[tree->range_count - 1];
  return last->low <= 0x80 && last->high == 0x10ffff;
}

bool weir_regex_has(const tree_t* tree, int decoded_size, int32_t rune) {
  return decoded_size > 0 ? has_rune(tree, rune) : has_all_wide(tree);
}

// Lets the threads of position |at| read on; true when one has matched all.
static bool step(match_t* m, size_t at) {
  threads_t* set = &m->sets[at % WEIR_COUNT_OF(m->sets)];
  int32_t rune = 0;
  const weir_view_t rest = weir_view(m->text.data + at, m->text.size - at);
  const int form_size = weir_rune_size(rest), size = weir_rune_decode(rest, &rune);
  for (int k = 0; k < set->count; ++k) {
    const int pc = set->items[k];
    const instruction_t* i = &m->regex->program[pc];
    if (i->code == CODE_MATCH && rest.size == 0) return true;
    if (i->code == CODE_BYTE && rest.size > 0) add_thread(m, pc + 1, at + 1);
    if (i->code != CODE_CLASS || form_size == 0) continue;
    if (weir_regex_has(i->tree, size, rune)) add_thread(m, pc + 1, at + (size_t)form_size);
  }
  set->count = 0;
  return false;
}

weir_status_t* weir_regex_full_match(const weir_regex_t* regex, weir_view_t text,
                                     bool* out_matches) {
  match_t m = {.regex = regex, .text = text};
  const size_t count = regex->count, sets = WEIR_COUNT_OF(m.sets);
  int* items = weir_calloc(sets * count, sizeof(*items));
  size_t* seen = weir_calloc(sets * count, sizeof(*seen));
  // Every instruction is expanded once a position and leaves at most two on the stack.
  m.stack = weir_calloc(2 * count + 2, sizeof(*m.stack));
  const bool has_memory = items && seen && m.stack;
  if (has_memory) {
    for (size_t i = 0; i < sets; ++i) {
      m.sets[i].items = items + i * count;
      m.sets[i].seen = seen + i * count;
    }
    add_thread(&m, 0, 0);
    *out_matches = false;
    for (size_t at = 0; at <= text.size && !*out_matches; ++at) *out_matches = step(&m, at);
  }
  weir_free(m.stack);
  weir_free(seen);
  weir_free(items);
  return has_memory ? NULL : weir_out_of_memory();
}
