// regex_parse.c — The parser of regular expressions: a pattern becomes a tree.
#include <ctype.h>
#include <stdlib.h>

#include "base/regex_internal.h"

#define MAX_REPEAT 1000
#define MAX_DEPTH 1000

typedef struct flags_t {
  bool folds_case;    // i
  bool is_multiline;  // m
  bool dot_is_all;    // s
  bool swaps_greed;   // U
} flags_t;

typedef struct parser_t {
  weir_view_t pattern;
  weir_view_t rest;
  weir_arena_t* arena;
  flags_t flags;
  int depth;
  int group_count;
  rune_range_t* ranges;  // of the class at hand; malloc'd
  size_t range_count, range_capacity;
} parser_t;

int weir_rune_size(weir_view_t text) {
  const unsigned char* s = (const unsigned char*)text.data;
  if (text.size == 0) return 0;
  if (s[0] < 0x80) return 1;
  if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
  const int size = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  if ((size_t)size > text.size) return 0;
  for (int i = 1; i < size; ++i) {
    if ((s[i] & 0xc0) != 0x80) return 0;
  }
  return size;
}

int weir_rune_decode(weir_view_t text, int32_t* out_rune) {
  const unsigned char* s = (const unsigned char*)text.data;
  static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const int size = weir_rune_size(text);
  if (size == 0) return 0;
  int32_t rune = size == 1 ? s[0] : s[0] & (0x7f >> size);
  for (int i = 1; i < size; ++i) rune = rune << 6 | (s[i] & 0x3f);
  if (rune < least[size] || rune > WEIR_LAST_RUNE) return 0;
  *out_rune = rune;
  return size;
}

static weir_status_t* bad(const parser_t* p, const char* what, weir_view_t where) {
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid pattern: %.*s, error: %s: %.*s",
                     WEIR_VIEW_ARG(p->pattern), what, WEIR_VIEW_ARG(where));
}

static void skip(parser_t* p, size_t count) {
  p->rest = weir_view(p->rest.data + count, p->rest.size - count);
}
static bool peek(const parser_t* p, char c) { return p->rest.size > 0 && p->rest.data[0] == c; }
static bool take(parser_t* p, const char* text) {
  const size_t size = strlen(text);
  if (p->rest.size < size || memcmp(p->rest.data, text, size) != 0) return false;
  skip(p, size);
  return true;
}

static weir_status_t* next_rune(parser_t* p, int32_t* out_rune) {
  const int size = weir_rune_decode(p->rest, out_rune);
  if (size == 0) return bad(p, "invalid UTF-8", weir_view(NULL, 0));
  skip(p, (size_t)size);
  return NULL;
}

static tree_t* new_tree(parser_t* p, tree_kind_t kind) {
  tree_t* tree = weir_arena_alloc(p->arena, sizeof(*tree));
  if (tree) *tree = (tree_t){.kind = kind};
  return tree;
}

// A chain under construction: PAIR or EITHER nodes that go on to the right, so that walking it
// takes no recursion.
typedef struct chain_t {
  const tree_t* first;
  tree_t* last;  // its |right| is where the next one goes; NULL while there is one node or none
} chain_t;

// Puts |tree| behind what |chain| has.
static weir_status_t* append(parser_t* p, tree_kind_t kind, chain_t* chain, const tree_t* tree) {
  if (!chain->first) {
    chain->first = tree;
    return NULL;
  }
  tree_t* link = new_tree(p, kind);
  if (!link) return weir_out_of_memory();
  link->left = chain->last ? chain->last->right : chain->first;
  link->right = tree;
  if (chain->last) {
    chain->last->right = link;
  } else {
    chain->first = link;
  }
  chain->last = link;
  return NULL;
}

// ---- sets of characters ----

static weir_status_t* add_range(parser_t* p, int32_t low, int32_t high) {
  if (low > high) return NULL;
  if (!WEIR_GROW(p->ranges, p->range_capacity, p->range_count + 1)) return weir_out_of_memory();
  p->ranges[p->range_count++] = (rune_range_t){low, high};
  return NULL;
}

// Scripts whose upper and lower cases lie apart by |distance|.
static const struct {
  int32_t low, high, distance;
} case_pairs[] = {{'A', 'Z', 32},     {0xc0, 0xd6, 32},   {0xd8, 0xde, 32},  {0x391, 0x3a1, 32},
                  {0x3a3, 0x3a9, 32}, {0x410, 0x42f, 32}, {0x400, 0x40f, 80}};

static weir_status_t* add_other_cases(parser_t* p, int32_t low, int32_t high) {
  for (size_t i = 0; i < WEIR_COUNT_OF(case_pairs); ++i) {
    const int32_t d = case_pairs[i].distance;
    WEIR_TRY(
        add_range(p, WEIR_MAX(low, case_pairs[i].low) + d, WEIR_MIN(high, case_pairs[i].high) + d));
    WEIR_TRY(add_range(p, WEIR_MAX(low, case_pairs[i].low + d) - d,
                       WEIR_MIN(high, case_pairs[i].high + d) - d));
  }
  // The long s, the Kelvin and the Angstrom sign fold to ordinary letters.
  static const int32_t odd[][2] = {{'s', 0x17f},  {'S', 0x17f},   {'k', 0x212a},
                                   {'K', 0x212a}, {0xe5, 0x212b}, {0xc5, 0x212b}};
  for (size_t i = 0; i < WEIR_COUNT_OF(odd); ++i) {
    if (low <= odd[i][0] && odd[i][0] <= high) WEIR_TRY(add_range(p, odd[i][1], odd[i][1]));
    if (low <= odd[i][1] && odd[i][1] <= high) WEIR_TRY(add_range(p, odd[i][0], odd[i][0]));
  }
  return NULL;
}

static weir_status_t* add_folded(parser_t* p, int32_t low, int32_t high) {
  WEIR_TRY(add_range(p, low, high));
  return p->flags.folds_case ? add_other_cases(p, low, high) : NULL;
}

static int compare_ranges(const void* a, const void* b) {
  const rune_range_t* x = a;
  const rune_range_t* y = b;
  return x->low < y->low ? -1 : x->low > y->low;
}

// Sorts and merges the ranges from |first| on.
static void tidy(parser_t* p, size_t first) {
  size_t count = first;
  if (p->range_count <= first) return;
  qsort(p->ranges + first, p->range_count - first, sizeof(*p->ranges), compare_ranges);
  for (size_t i = first; i < p->range_count; ++i) {
    if (count > first && p->ranges[i].low <= p->ranges[count - 1].high + 1) {
      p->ranges[count - 1].high = WEIR_MAX(p->ranges[count - 1].high, p->ranges[i].high);
    } else {
      p->ranges[count++] = p->ranges[i];
    }
  }
  p->range_count = count;
}

// Replaces the ranges from |first| on by what they leave out.
static weir_status_t* negate(parser_t* p, size_t first) {
  tidy(p, first);
  const size_t end = p->range_count;
  int32_t next = 0;
  for (size_t i = first; i < end; ++i) {
    const rune_range_t range = p->ranges[i];
    WEIR_TRY(add_range(p, next, range.low - 1));
    next = range.high + 1;
  }
  WEIR_TRY(add_range(p, next, WEIR_LAST_RUNE));
  const size_t count = p->range_count - end;
  memmove(p->ranges + first, p->ranges + end, count * sizeof(*p->ranges));
  p->range_count = first + count;
  return NULL;
}

// ---- classes by name: pairs of low and high ----

typedef struct named_class_t {
  const char* name;
  const char* pairs;
} named_class_t;
static const named_class_t posix_classes[] = {
    {"alnum", "09AZaz"}, {"alpha", "AZaz"}, {"blank", "\t\t  "},  {"digit", "09"},
    {"graph", "!~"},     {"lower", "az"},   {"print", " ~"},      {"punct", "!/:@[`{~"},
    {"space", "\t\r  "}, {"upper", "AZ"},   {"word", "09AZaz__"}, {"xdigit", "09AFaf"}};

static weir_status_t* add_pairs(parser_t* p, const char* pairs, bool is_negated) {
  const size_t first = p->range_count;
  for (; *pairs; pairs += 2) WEIR_TRY(add_folded(p, pairs[0], pairs[1]));
  return is_negated ? negate(p, first) : NULL;
}

// \pL, \p{Lu}, \p{^Greek} and \P at the head of the rest.
static weir_status_t* add_unicode_class(parser_t* p, bool* out_found) {
  const weir_view_t begin = p->rest;
  const size_t first = p->range_count;
  bool is_negated = p->rest.data[1] == 'P';
  rune_class_t found;
  rune_range_t range;
  skip(p, 2);
  const bool is_braced = take(p, "{");
  const char* end = is_braced ? memchr(p->rest.data, '}', p->rest.size) : NULL;
  const size_t one = (size_t)weir_rune_size(p->rest);
  if (is_braced ? !end : one == 0) return bad(p, "invalid character class range", begin);
  weir_view_t name = weir_view(p->rest.data, is_braced ? (size_t)(end - p->rest.data) : one);
  skip(p, name.size + (is_braced ? 1 : 0));
  if (name.size > 0 && name.data[0] == '^') {
    is_negated = !is_negated;
    name = weir_view(name.data + 1, name.size - 1);
  }
  if (weir_view_is(name, "Any")) {
    WEIR_TRY(add_range(p, 0, WEIR_LAST_RUNE));
  } else if (weir_rune_class_find(name, &found)) {
    while (weir_rune_class_next(&found, &range)) WEIR_TRY(add_folded(p, range.low, range.high));
  } else {
    return bad(p, "invalid character class range",
               weir_view(begin.data, begin.size - p->rest.size));
  }
  *out_found = true;
  return is_negated ? negate(p, first) : NULL;
}

// \d and its kin at the head of the rest; sets whether there was one.
static weir_status_t* add_perl_class(parser_t* p, bool* out_found) {
  *out_found = false;
  if (p->rest.size < 2 || p->rest.data[0] != '\\') return NULL;
  const char c = p->rest.data[1];
  const char lower = (char)tolower((unsigned char)c);
  const char* pairs = lower == 'd'   ? "09"
                      : lower == 's' ? "\t\n\f\r  "
                      : lower == 'w' ? "09AZaz__"
                                     : NULL;
  if (lower == 'p') return add_unicode_class(p, out_found);
  if (!pairs) return NULL;
  skip(p, 2);
  *out_found = true;
  return add_pairs(p, pairs, c != lower);
}

// [:alpha:] and [:^alpha:] within a class.
static weir_status_t* add_posix_class(parser_t* p, bool* out_found) {
  *out_found = false;
  const weir_view_t begin = p->rest;
  if (!take(p, "[:")) return NULL;
  const char* end = NULL;
  for (size_t i = 0; i + 1 < p->rest.size && !end; ++i) {
    if (p->rest.data[i] == ':' && p->rest.data[i + 1] == ']') end = p->rest.data + i;
  }
  if (!end) {
    p->rest = begin;
    return NULL;
  }
  const bool is_negated = take(p, "^");
  const weir_view_t name = weir_view(p->rest.data, (size_t)(end - p->rest.data));
  skip(p, name.size + 2);
  *out_found = true;
  if (weir_view_is(name, "ascii") || weir_view_is(name, "cntrl")) {
    const bool is_ascii = weir_view_is(name, "ascii");
    const size_t first = p->range_count;
    WEIR_TRY(add_range(p, 0, is_ascii ? 127 : 31));
    if (!is_ascii) WEIR_TRY(add_range(p, 127, 127));
    return is_negated ? negate(p, first) : NULL;
  }
  for (size_t i = 0; i < WEIR_COUNT_OF(posix_classes); ++i) {
    if (weir_view_is(name, posix_classes[i].name))
      return add_pairs(p, posix_classes[i].pairs, is_negated);
  }
  return bad(p, "invalid character class range",
             weir_view(begin.data, (size_t)(end + 2 - begin.data)));
}

// ---- escapes ----

static int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int lower = tolower((unsigned char)c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// \x12 or \x{10ffff}, after the x.
static bool parse_hex(parser_t* p, int32_t* out_rune) {
  const bool is_braced = take(p, "{");
  int32_t rune = 0;
  int digits = 0;
  while (p->rest.size > 0 && hex_value(p->rest.data[0]) >= 0 && (is_braced || digits < 2)) {
    rune = rune * 16 + hex_value(p->rest.data[0]);
    if (rune > WEIR_LAST_RUNE) return false;
    ++digits;
    skip(p, 1);
  }
  *out_rune = rune;
  return is_braced ? digits > 0 && take(p, "}") : digits == 2;
}

static bool is_octal(const parser_t* p) {
  return p->rest.size > 0 && p->rest.data[0] >= '0' && p->rest.data[0] <= '7';
}

// A character that an escape stands for, after the backslash.
static weir_status_t* parse_escape(parser_t* p, int32_t* out_rune) {
  const weir_view_t begin = weir_view(p->rest.data - 1, p->rest.size + 1);
  if (p->rest.size == 0) return bad(p, "trailing \\", weir_view(NULL, 0));
  int32_t c = 0;
  WEIR_TRY(next_rune(p, &c));
  static const char letters[] = "afnrtv", values[] = "\a\f\n\r\t\v";
  const char* letter = c < 0x80 && c > 0 ? strchr(letters, (char)c) : NULL;
  if (letter) {
    *out_rune = values[letter - letters];
    return NULL;
  }
  if (c < 0x80 && !isalnum((int)c)) {
    *out_rune = c;
    return NULL;
  }
  if (c == '0' || (c >= '1' && c <= '7' && is_octal(p))) {
    int32_t rune = c - '0';
    for (int i = 0; i < 2 && is_octal(p); ++i) {
      rune = rune * 8 + (p->rest.data[0] - '0');
      skip(p, 1);
    }
    *out_rune = rune;
    return NULL;
  }
  if (c == 'x' && parse_hex(p, out_rune)) return NULL;
  return bad(p, "invalid escape sequence",
             weir_view(begin.data, (size_t)(p->rest.data - begin.data)));
}

// ---- bracketed classes ----

static weir_status_t* class_rune(parser_t* p, int32_t* out_rune) {
  return take(p, "\\") ? parse_escape(p, out_rune) : next_rune(p, out_rune);
}

static weir_status_t* add_class_range(parser_t* p) {
  const weir_view_t begin = p->rest;
  int32_t low = 0;
  WEIR_TRY(class_rune(p, &low));
  int32_t high = low;
  if (p->rest.size >= 2 && p->rest.data[0] == '-' && p->rest.data[1] != ']') {
    skip(p, 1);
    WEIR_TRY(class_rune(p, &high));
    if (high < low) {
      return bad(p, "invalid character class range",
                 weir_view(begin.data, (size_t)(p->rest.data - begin.data)));
    }
  }
  return add_folded(p, low, high);
}

static weir_status_t* finish_class(parser_t* p, const tree_t** out) {
  tidy(p, 0);
  tree_t* tree = new_tree(p, p->range_count ? TREE_CLASS : TREE_NONE);
  if (!tree) return weir_out_of_memory();
  tree->ranges = weir_arena_array(p->arena, p->range_count, sizeof(*tree->ranges));
  if (!tree->ranges) return weir_out_of_memory();
  if (p->range_count) memcpy(tree->ranges, p->ranges, p->range_count * sizeof(*tree->ranges));
  tree->range_count = (int)p->range_count;
  *out = tree;
  return NULL;
}

// After the opening bracket.
static weir_status_t* parse_class(parser_t* p, const tree_t** out) {
  const weir_view_t begin = weir_view(p->rest.data - 1, p->rest.size + 1);
  const bool is_negated = take(p, "^");
  p->range_count = 0;
  for (bool is_first = true; is_first || !peek(p, ']'); is_first = false) {
    bool found = false;
    if (p->rest.size == 0) return bad(p, "missing ]", begin);
    WEIR_TRY(add_posix_class(p, &found));
    if (!found) WEIR_TRY(add_perl_class(p, &found));
    if (!found) WEIR_TRY(add_class_range(p));
  }
  skip(p, 1);
  if (is_negated) WEIR_TRY(negate(p, 0));
  return finish_class(p, out);
}

static weir_status_t* one_rune(parser_t* p, int32_t rune, const tree_t** out) {
  p->range_count = 0;
  WEIR_TRY(add_folded(p, rune, rune));
  return finish_class(p, out);
}

// ---- atoms ----

static weir_status_t* parse_either(parser_t* p, const tree_t** out);

static weir_status_t* assertion(parser_t* p, assertion_t kind, const tree_t** out) {
  tree_t* tree = new_tree(p, TREE_ASSERT);
  if (!tree) return weir_out_of_memory();
  tree->assertion = kind;
  *out = tree;
  return NULL;
}

static bool is_name(weir_view_t name) {
  for (size_t i = 0; i < name.size; ++i) {
    const unsigned char c = (unsigned char)name.data[i];
    if (!isalnum(c) && c != '_' && c < 0x80) return false;
  }
  return name.size > 0;
}

// The name of (?P<name>, after the "<".
static weir_status_t* skip_name(parser_t* p, weir_view_t begin) {
  const char* end = p->rest.size ? memchr(p->rest.data, '>', p->rest.size) : NULL;
  if (!end) return bad(p, "invalid named capture group", begin);
  const weir_view_t name = weir_view(p->rest.data, (size_t)(end - p->rest.data));
  if (!is_name(name)) return bad(p, "invalid named capture group", begin);
  skip(p, name.size + 1);
  return NULL;
}

// Flags after "(?": up to ":" (a group follows) or ")" (they hold from here on).
static weir_status_t* parse_flags(parser_t* p, weir_view_t begin, bool* out_is_group) {
  flags_t flags = p->flags;
  bool is_on = true, has_flag = false;
  for (;;) {
    if (p->rest.size == 0) return bad(p, "missing )", begin);
    const char c = p->rest.data[0];
    skip(p, 1);
    if (c == ':' || c == ')') {
      if (!is_on && !has_flag) break;
      p->flags = flags;
      *out_is_group = c == ':';
      return NULL;
    }
    has_flag = c != '-';
    if (c == '-' && is_on) {
      is_on = false;
    } else if (c == 'i') {
      flags.folds_case = is_on;
    } else if (c == 'm') {
      flags.is_multiline = is_on;
    } else if (c == 's') {
      flags.dot_is_all = is_on;
    } else if (c == 'U') {
      flags.swaps_greed = is_on;
    } else {
      break;
    }
  }
  return bad(p, "invalid perl operator",
             weir_view(begin.data, (size_t)(p->rest.data - begin.data)));
}

// After the opening parenthesis.
static weir_status_t* parse_group(parser_t* p, const tree_t** out) {
  const weir_view_t begin = weir_view(p->rest.data - 1, p->rest.size + 1);
  const flags_t outer = p->flags;
  bool is_remembered = true;
  if (take(p, "?P<")) {
    WEIR_TRY(skip_name(p, begin));
  } else if (take(p, "?")) {
    bool is_group = false;
    is_remembered = false;
    WEIR_TRY(parse_flags(p, begin, &is_group));
    if (!is_group) {
      *out = new_tree(p, TREE_EMPTY);
      return *out ? NULL : weir_out_of_memory();
    }
  }
  if (++p->depth > MAX_DEPTH) return bad(p, "nested too deeply", weir_view(NULL, 0));
  const int number = is_remembered ? ++p->group_count : 0;
  WEIR_TRY(parse_either(p, out));
  --p->depth;
  if (!take(p, ")")) return bad(p, "missing )", p->pattern);
  p->flags = outer;
  if (!is_remembered) return NULL;
  tree_t* group = new_tree(p, TREE_GROUP);
  if (!group) return weir_out_of_memory();
  group->left = *out;
  group->min = number;
  *out = group;
  return NULL;
}

static weir_status_t* parse_dot(parser_t* p, const tree_t** out) {
  p->range_count = 0;
  if (p->flags.dot_is_all) {
    WEIR_TRY(add_range(p, 0, WEIR_LAST_RUNE));
  } else {
    WEIR_TRY(add_range(p, 0, '\n' - 1));
    WEIR_TRY(add_range(p, '\n' + 1, WEIR_LAST_RUNE));
  }
  return finish_class(p, out);
}

static weir_status_t* parse_escaped_atom(parser_t* p, const tree_t** out) {
  if (take(p, "\\b")) return assertion(p, ASSERT_WORD_BOUNDARY, out);
  if (take(p, "\\B")) return assertion(p, ASSERT_NO_WORD_BOUNDARY, out);
  if (take(p, "\\A")) return assertion(p, ASSERT_TEXT_BEGIN, out);
  if (take(p, "\\z")) return assertion(p, ASSERT_TEXT_END, out);
  if (take(p, "\\C")) {
    *out = new_tree(p, TREE_BYTE);
    return *out ? NULL : weir_out_of_memory();
  }
  bool found = false;
  p->range_count = 0;
  WEIR_TRY(add_perl_class(p, &found));
  if (found) return finish_class(p, out);
  skip(p, 1);
  int32_t rune = 0;
  WEIR_TRY(parse_escape(p, &rune));
  return one_rune(p, rune, out);
}

static weir_status_t* parse_atom(parser_t* p, const tree_t** out) {
  if (peek(p, '\\')) return parse_escaped_atom(p, out);
  if (take(p, "(")) return parse_group(p, out);
  if (take(p, "[")) return parse_class(p, out);
  if (take(p, ".")) return parse_dot(p, out);
  if (take(p, "^")) {
    return assertion(p, p->flags.is_multiline ? ASSERT_LINE_BEGIN : ASSERT_TEXT_BEGIN, out);
  }
  if (take(p, "$"))
    return assertion(p, p->flags.is_multiline ? ASSERT_LINE_END : ASSERT_TEXT_END, out);
  int32_t rune = 0;
  WEIR_TRY(next_rune(p, &rune));
  return one_rune(p, rune, out);
}

// ---- repetition ----

static bool parse_count(parser_t* p, int* out_count) {
  int digits = 0, count = 0;
  for (; p->rest.size > 0 && isdigit((unsigned char)p->rest.data[0]); ++digits) {
    if (count < 100000) count = count * 10 + (p->rest.data[0] - '0');
    skip(p, 1);
  }
  *out_count = count;
  return digits > 0;
}

// {2}, {2,} or {2,5}; anything else after a brace is text.
static bool parse_braces(parser_t* p, int* min, int* max) {
  const weir_view_t begin = p->rest;
  bool is_repeat = take(p, "{") && parse_count(p, min);
  *max = *min;
  if (is_repeat && take(p, ",")) {
    if (!parse_count(p, max)) *max = -1;
  }
  is_repeat = is_repeat && take(p, "}");
  if (!is_repeat) p->rest = begin;
  return is_repeat;
}

static bool parse_operator(parser_t* p, int* min, int* max) {
  *min = 0;
  *max = -1;
  if (take(p, "*")) return true;
  if (take(p, "+")) {
    *min = 1;
    return true;
  }
  if (take(p, "?")) {
    *max = 1;
    return true;
  }
  return parse_braces(p, min, max);
}

// How often what counts most within |tree| is repeated in all.
static int repeats_within(const tree_t* tree) {
  int most = 1;
  for (; tree; tree = tree->right) {
    int here = tree->left ? repeats_within(tree->left) : 1;
    if (tree->kind == TREE_REPEAT && here <= MAX_REPEAT)
      here *= WEIR_MAX(WEIR_MAX(tree->min, tree->max), 1);
    most = WEIR_MAX(most, here);
  }
  return most;
}

static weir_status_t* parse_repeat(parser_t* p, const tree_t** out) {
  const weir_view_t begin = p->rest;
  int min, max;
  if (parse_operator(p, &min, &max)) {
    return bad(p, "no argument for repetition operator",
               weir_view(begin.data, (size_t)(p->rest.data - begin.data)));
  }
  WEIR_TRY(parse_atom(p, out));
  const weir_view_t operators = p->rest;
  if (!parse_operator(p, &min, &max)) return NULL;
  if (min > MAX_REPEAT || max > MAX_REPEAT || (max >= 0 && min > max)) {
    return bad(p, "invalid repetition size",
               weir_view(operators.data, (size_t)(p->rest.data - operators.data)));
  }
  tree_t* tree = new_tree(p, TREE_REPEAT);
  if (!tree) return weir_out_of_memory();
  tree->is_lazy = take(p, "?") != p->flags.swaps_greed;
  tree->left = *out;
  tree->min = min;
  tree->max = max;
  *out = tree;
  if (repeats_within(tree) > MAX_REPEAT) return bad(p, "invalid repetition size", operators);
  if (!parse_operator(p, &min, &max)) return NULL;
  return bad(p, "bad repetition operator",
             weir_view(operators.data, (size_t)(p->rest.data - operators.data)));
}

// ---- sequences and alternatives ----

// The text of \Q…\E, character by character; after the \Q.
static weir_status_t* parse_quoted(parser_t* p, chain_t* sequence) {
  while (p->rest.size > 0 && !take(p, "\\E")) {
    int32_t rune = 0;
    const tree_t* one = NULL;
    WEIR_TRY(next_rune(p, &rune));
    WEIR_TRY(one_rune(p, rune, &one));
    WEIR_TRY(append(p, TREE_PAIR, sequence, one));
  }
  return NULL;
}

static weir_status_t* parse_sequence(parser_t* p, const tree_t** out) {
  chain_t sequence = {.first = NULL, .last = NULL};
  while (p->rest.size > 0 && !peek(p, '|') && !peek(p, ')')) {
    if (take(p, "\\Q")) {
      WEIR_TRY(parse_quoted(p, &sequence));
      continue;
    }
    const tree_t* one = NULL;
    WEIR_TRY(parse_repeat(p, &one));
    WEIR_TRY(append(p, TREE_PAIR, &sequence, one));
  }
  *out = sequence.first ? sequence.first : new_tree(p, TREE_EMPTY);
  return *out ? NULL : weir_out_of_memory();
}

static weir_status_t* parse_either(parser_t* p, const tree_t** out) {
  chain_t ways = {.first = NULL, .last = NULL};
  do {
    const tree_t* way = NULL;
    WEIR_TRY(parse_sequence(p, &way));
    WEIR_TRY(append(p, TREE_EITHER, &ways, way));
  } while (take(p, "|"));
  *out = ways.first;
  return NULL;
}

weir_status_t* weir_regex_parse(weir_view_t pattern, weir_arena_t* arena, const tree_t** out_tree,
                                int* out_group_count) {
  parser_t p = {.pattern = pattern, .rest = pattern, .arena = arena};
  weir_status_t* status = parse_either(&p, out_tree);
  if (!status && p.rest.size > 0) status = bad(&p, "unexpected )", pattern);
  weir_free(p.ranges);
  *out_group_count = p.group_count;
  return status;
}
