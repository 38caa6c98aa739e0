// descriptor.h — Messages that are described at run time: what a FileDescriptorSet says of their
// fields. Immutable after create; thread-safe then.
#ifndef WEIR_WIRE_DESCRIPTOR_H_
#define WEIR_WIRE_DESCRIPTOR_H_

#include "base/string.h"
#include "wire/message.h"

typedef struct weir_proto_message_t weir_proto_message_t;

// What there is to say of a field beyond its row in a table.
typedef struct weir_proto_field_t {
  const weir_field_t* row;  // name, number, whether it is repeated; an extension's name is its full
                            // one. Its type is BYTES for strings that need not be UTF-8
  weir_field_type_t type;
  const weir_proto_message_t* message;  // of MESSAGE and GROUP
  bool is_extension;
  bool is_required;
  bool is_packed;             // as it is written; both ways are read
  bool has_presence;          // a value that is set is written even where it is zero
  bool is_closed;             // of ENUM: there are no other values
  bool is_utf8;               // of STRING: other bytes are refused
  uint64_t default_bits;      // of numbers, as on the wire
  weir_view_t default_bytes;  // of strings
} weir_proto_field_t;

struct weir_proto_message_t {
  const char* name;                  // "package.Outer.Inner"
  weir_message_t table;              // for the text format
  const weir_proto_field_t* fields;  // as many as rows of the table, by ascending number
  size_t field_count;
};

typedef struct weir_descriptors_t weir_descriptors_t;

// Of the bytes of a FileDescriptorSet, which are copied. INVALID_ARGUMENT where they are none: the
// message begins with "Failed to load FileDescriptorProto" where a file contradicts itself or those
// before it; UNIMPLEMENTED for editions.
WEIR_MUST_USE weir_status_t* weir_descriptors_create(weir_view_t set,
                                                     weir_descriptors_t** out_descriptors);
// Of the messages that Weir itself speaks, in the package tensorflow.
WEIR_MUST_USE weir_status_t* weir_descriptors_create_local(weir_descriptors_t** out_descriptors);
void weir_descriptors_destroy(weir_descriptors_t* descriptors);

// All return NULL when there is none; messages and fields live as long as the descriptors.
const weir_proto_message_t* weir_descriptors_find(const weir_descriptors_t* descriptors,
                                                  weir_view_t name);
const weir_proto_field_t* weir_proto_field(const weir_proto_message_t* message, uint32_t number);
const weir_proto_field_t* weir_proto_field_named(const weir_proto_message_t* message,
                                                 weir_view_t name);
// "sint32", as descriptors spell types.
const char* weir_proto_type_name(const weir_proto_field_t* field);

// Appends the wire bytes |data| as a parser of the message would write them again: fields by
// ascending number, of a singular one the last, unknown ones at the end. Entries of maps are
// messages like others. DATA_LOSS for what such a parser refuses; with |is_strict| also for values
// that a closed enum does not have.
WEIR_MUST_USE weir_status_t* weir_proto_normalize(const weir_proto_message_t* message,
                                                  weir_view_t data, bool is_strict,
                                                  weir_strbuf_t* out);

#endif  // WEIR_WIRE_DESCRIPTOR_H_
