// regex_internal.h — Between the parser of regular expressions and the matcher: the tree.
#ifndef WEIR_BASE_REGEX_INTERNAL_H_
#define WEIR_BASE_REGEX_INTERNAL_H_

#include "base/alloc.h"
#include "base/regex.h"

typedef struct rune_range_t {
  int32_t low, high;
} rune_range_t;

typedef enum tree_kind_t {
  TREE_EMPTY,
  TREE_NONE,    // matches nothing
  TREE_CLASS,   // one character out of |ranges|
  TREE_BYTE,    // any one byte
  TREE_ASSERT,  // |assertion| holds here
  TREE_PAIR,    // |left|, then |right|
  TREE_EITHER,  // |left| or |right|
  TREE_REPEAT,  // |left|, from |min| to |max| times; max -1: any number
} tree_kind_t;

typedef enum assertion_t {
  ASSERT_TEXT_BEGIN,
  ASSERT_TEXT_END,
  ASSERT_LINE_BEGIN,
  ASSERT_LINE_END,
  ASSERT_WORD_BOUNDARY,
  ASSERT_NO_WORD_BOUNDARY,
} assertion_t;

typedef struct tree_t {
  tree_kind_t kind;
  assertion_t assertion;
  int min, max;
  const struct tree_t* left;
  const struct tree_t* right;
  rune_range_t* ranges;  // sorted, apart from each other
  int range_count;
} tree_t;

// Parses |pattern| into |arena|.
WEIR_MUST_USE weir_status_t* weir_regex_parse(weir_view_t pattern, weir_arena_t* arena,
                                              const tree_t** out_tree);
// The bytes that the first one of |text| announces; 0 when they are not there. What they spell may
// be too large, or be spelt too long.
int weir_rune_size(weir_view_t text);
// The character at the beginning of |text| and the bytes it takes; 0 when it is no valid UTF-8.
int weir_rune_decode(weir_view_t text, int32_t* out_rune);

#endif  // WEIR_BASE_REGEX_INTERNAL_H_
