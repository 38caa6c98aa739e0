// message.h — Tables that describe the protobuf messages Weir speaks: what text format needs to
// name and type fields.
#ifndef WEIR_WIRE_MESSAGE_H_
#define WEIR_WIRE_MESSAGE_H_

#include "base/base.h"
#include "wire/wire.h"

typedef enum weir_field_type_t {
  WEIR_FIELD_INT64,
  WEIR_FIELD_INT32,
  WEIR_FIELD_UINT64,
  WEIR_FIELD_UINT32,
  WEIR_FIELD_BOOL,
  WEIR_FIELD_ENUM,
  WEIR_FIELD_FLOAT,
  WEIR_FIELD_DOUBLE,
  WEIR_FIELD_FIXED32,
  WEIR_FIELD_FIXED64,
  WEIR_FIELD_STRING,
  WEIR_FIELD_BYTES,
  WEIR_FIELD_MESSAGE,
  // Of messages that are described at run time; Weir's own have none of these.
  WEIR_FIELD_SINT32,
  WEIR_FIELD_SINT64,
  WEIR_FIELD_SFIXED32,
  WEIR_FIELD_SFIXED64,
  WEIR_FIELD_GROUP,
} weir_field_type_t;

typedef struct weir_enum_value_t {
  const char* name;  // NULL ends the table
  int64_t number;
} weir_enum_value_t;

typedef struct weir_message_t weir_message_t;
typedef struct weir_field_t {
  uint32_t number;  // 0 ends the table
  const char* name;
  weir_field_type_t type;
  uint8_t is_repeated;  // scalars are written packed
  uint8_t is_map;       // a repeated entry message {1: key, 2: value}
  uint8_t oneof;  // fields of one message with the same number exclude each other; not 0: printed
                  // even when zero
  const weir_message_t* message;         // MESSAGE only
  const weir_enum_value_t* enum_values;  // ENUM only
} weir_field_t;
struct weir_message_t {
  const char* name;            // "GraphDef"
  const weir_field_t* fields;  // by ascending number, at most 512
};

// Both return NULL when the message has no such field.
const weir_field_t* weir_message_field(const weir_message_t* message, uint32_t number);
const weir_field_t* weir_message_field_named(const weir_message_t* message, weir_view_t name);

// How one value of |type| stands on the wire.
weir_wire_type_t weir_field_wire_type(weir_field_type_t type);
// Whether repeated values of |type| may be packed: all but strings, bytes, messages and groups.
WEIR_INLINE bool weir_field_is_packable(weir_field_type_t type) {
  return weir_field_wire_type(type) != WEIR_WIRE_BYTES && type != WEIR_FIELD_GROUP;
}

// Whether |a| and |b|, messages of the given kind, say the same: the entries of maps may stand in
// any order.
bool weir_message_equal(const weir_message_t* message, weir_view_t a, weir_view_t b);

// The messages of protocol: exported tables, one a message type used at top level.
extern const weir_message_t weir_message_graph_def;
extern const weir_message_t weir_message_node_def;
extern const weir_message_t weir_message_attr_value;
extern const weir_message_t weir_message_tensor;
extern const weir_message_t weir_message_tensor_shape;
extern const weir_message_t weir_message_op_def;
extern const weir_message_t weir_message_op_list;
extern const weir_message_t weir_message_function_def;
extern const weir_message_t weir_message_run_metadata;
extern const weir_message_t weir_message_event;
extern const weir_message_t weir_message_bundle_header;
extern const weir_message_t weir_message_bundle_entry;
extern const weir_message_t weir_message_saver_def;
extern const weir_message_t weir_message_checkpoint_state;
extern const weir_message_t weir_message_meta_graph_def;  // without object_graph_def and any_info
extern const weir_message_t weir_message_saved_model;

#endif  // WEIR_WIRE_MESSAGE_H_
