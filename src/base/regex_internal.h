// regex_internal.h — Between the parser of regular expressions and the matcher: the tree.
#ifndef WEIR_BASE_REGEX_INTERNAL_H_
#define WEIR_BASE_REGEX_INTERNAL_H_

#include "base/alloc.h"
#include "base/regex.h"

typedef struct rune_range_t {
  int32_t low, high;
} rune_range_t;

#define WEIR_LAST_RUNE 0x10ffff

// A class of Unicode's characters, and how far it was read.
typedef struct rune_class_t {
  const uint32_t* starts;  // where classes begin, and in the low bytes which
  size_t count, at;
  uint8_t first, last;  // of the classes that it is made of
} rune_class_t;

typedef enum tree_kind_t {
  TREE_EMPTY,
  TREE_NONE,    // matches nothing
  TREE_CLASS,   // one character out of |ranges|
  TREE_BYTE,    // any one byte
  TREE_ASSERT,  // |assertion| holds here
  TREE_PAIR,    // |left|, then |right|
  TREE_EITHER,  // |left| or |right|
  TREE_REPEAT,  // |left|, from |min| to |max| times; max -1: any number
  TREE_GROUP,   // |left|, whose place is remembered as that of group |min|
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
  bool is_lazy;  // REPEAT: as few times as will do
  const struct tree_t* left;
  const struct tree_t* right;
  rune_range_t* ranges;  // sorted, apart from each other
  int range_count;
} tree_t;

typedef enum code_t {
  CODE_CLASS,
  CODE_BYTE,
  CODE_ASSERT,
  CODE_SPLIT,
  CODE_JUMP,
  CODE_SAVE,
  CODE_MATCH,
  CODE_FAIL
} code_t;

typedef struct instruction_t {
  code_t code;
  assertion_t assertion;
  int next;            // SPLIT, JUMP: where to go, SPLIT: rather; others go to the one after
  int other;           // SPLIT: the second way; SAVE: twice a group's number, one more at its end
  const tree_t* tree;  // CLASS
} instruction_t;

struct weir_regex_t {
  weir_arena_t arena;  // holds the tree
  instruction_t* program;
  size_t count, capacity;
  int group_count;
};

// Parses |pattern| into |arena|.
WEIR_MUST_USE weir_status_t* weir_regex_parse(weir_view_t pattern, weir_arena_t* arena,
                                              const tree_t** out_tree, int* out_group_count);
// Whether |assertion| holds at |at|, and whether |tree|, a class, has the character there.
bool weir_regex_holds(weir_view_t text, assertion_t assertion, size_t at);
bool weir_regex_has(const tree_t* tree, int decoded_size, int32_t rune);
// Finds the class that |name| is of: "Lu", "L", "Greek"; and takes its next range.
bool weir_rune_class_find(weir_view_t name, rune_class_t* out_class);
bool weir_rune_class_next(rune_class_t* rune_class, rune_range_t* out_range);
// The bytes that the first one of |text| announces; 0 when they are not there. What they spell may
// be too large, or be spelt too long.
int weir_rune_size(weir_view_t text);
// The character at the beginning of |text| and the bytes it takes; 0 when it is no valid UTF-8.
int weir_rune_decode(weir_view_t text, int32_t* out_rune);

#endif  // WEIR_BASE_REGEX_INTERNAL_H_
