// api_def.h — How ops are presented to users of a language: ApiDef messages, held by a map of ops.
//
// All texts are in the map's arena, or in the messages it was made from, which it keeps.
#ifndef WEIR_TENSORFLOW_API_DEF_H_
#define WEIR_TENSORFLOW_API_DEF_H_

#include "base/alloc.h"
#include "base/string.h"
#include "weir/status.h"

// An argument or an attribute.
typedef struct tf_api_item_t {
  weir_view_t name;
  weir_view_t rename_to;
  weir_view_t description;
  weir_view_t default_value;  // an attribute's, an AttrValue message; data NULL: none
} tf_api_item_t;

typedef struct tf_api_items_t {
  tf_api_item_t* items;
  size_t count;
} tf_api_items_t;

typedef struct tf_api_views_t {
  weir_view_t* items;
  size_t count;
} tf_api_views_t;

typedef struct tf_api_def_t {
  weir_view_t name;
  weir_view_t deprecation_message;
  int64_t deprecation_version;
  int64_t visibility;        // 0: as it was
  tf_api_views_t endpoints;  // ApiDef.Endpoint messages
  tf_api_items_t inputs;
  tf_api_items_t outputs;
  tf_api_views_t arg_order;
  tf_api_items_t attrs;
  weir_view_t summary;
  weir_view_t description;
  weir_view_t description_prefix;  // of changes alone, like the next
  weir_view_t description_suffix;
} tf_api_def_t;

// How an op is presented as its OpDef says; and the changes that an ApiDef describes. Views point
// into the message.
WEIR_MUST_USE weir_status_t* tf_api_def_of_op(weir_view_t op_def, weir_arena_t* arena,
                                              tf_api_def_t* out);
WEIR_MUST_USE weir_status_t* tf_api_def_parse(weir_view_t api_def, weir_arena_t* arena,
                                              tf_api_def_t* out);
// FAILED_PRECONDITION where they speak of arguments or attributes that the op does not have.
WEIR_MUST_USE weir_status_t* tf_api_def_change(tf_api_def_t* def, const tf_api_def_t* changes,
                                               weir_arena_t* arena);
// Makes texts call what is renamed by its new name.
WEIR_MUST_USE weir_status_t* tf_api_def_rename_in_texts(tf_api_def_t* def, weir_arena_t* arena);
void tf_api_def_write(const tf_api_def_t* def, weir_strbuf_t* out);

// The ApiDefs message that |text| spells, in which also texts of several lines may stand as they
// are: "description: <<END", lines, "END".
WEIR_MUST_USE weir_status_t* tf_api_defs_from_text(weir_view_t text, weir_strbuf_t* out);

#endif  // WEIR_TENSORFLOW_API_DEF_H_
