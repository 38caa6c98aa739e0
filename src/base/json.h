// json.h — JSON (RFC 8259) as a tree of values in an arena. For small documents from outside, such
// as TF_CONFIG: a bounded reader, nothing else.
//
// Threading: a tree is immutable after weir_json_parse. Ownership: the arena's; strings without
// escapes point into the text.
#ifndef WEIR_BASE_JSON_H_
#define WEIR_BASE_JSON_H_

#include "base/alloc.h"
#include "base/string.h"

// Arrays and objects inside each other; deeper ones are refused.
#define WEIR_JSON_MAX_DEPTH 64

typedef enum weir_json_kind_t {
  WEIR_JSON_NULL,
  WEIR_JSON_BOOL,
  WEIR_JSON_NUMBER,
  WEIR_JSON_STRING,
  WEIR_JSON_ARRAY,
  WEIR_JSON_OBJECT,
} weir_json_kind_t;

typedef struct weir_json_t weir_json_t;
struct weir_json_t {
  weir_json_kind_t kind;
  bool boolean;        // BOOL
  double number;       // NUMBER
  weir_view_t text;    // STRING: the decoded bytes, any NULs included; NUMBER: as written
  weir_view_t key;     // the name under which an OBJECT holds this value
  weir_json_t* first;  // ARRAY, OBJECT: the members, in the order of the text
  weir_json_t* next;   // the next member of what holds this value
  size_t count;        // ARRAY, OBJECT: how many members
};

// INVALID_ARGUMENT saying what was expected and at which line and column.
WEIR_MUST_USE weir_status_t* weir_json_parse(weir_view_t text, weir_arena_t* arena,
                                             const weir_json_t** out_value);
// The member |key| of an object, the last one when there are several; NULL when there is none, or
// |value| is no object or NULL.
const weir_json_t* weir_json_find(const weir_json_t* value, const char* key);
// Whether |value| is a whole number that fits. "3", "3.0" and "3e0" do.
bool weir_json_int(const weir_json_t* value, int64_t* out_number);
// Appends |text| as a string, in quotes.
void weir_json_put_view(weir_view_t text, weir_strbuf_t* out);
WEIR_INLINE void weir_json_put_string(const char* text, weir_strbuf_t* out) {
  weir_json_put_view(weir_view_of(text), out);
}
const char* weir_json_kind_name(weir_json_kind_t kind);  // "a string", "an object", … for messages

#endif  // WEIR_BASE_JSON_H_
