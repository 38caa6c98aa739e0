// descriptor_internal.h — Descriptors under construction. Private to wire/descriptor*.c.
#ifndef WEIR_WIRE_DESCRIPTOR_INTERNAL_H_
#define WEIR_WIRE_DESCRIPTOR_INTERNAL_H_

#include "base/alloc.h"
#include "base/map.h"
#include "wire/descriptor.h"

// A field or extension as it stands in the set.
typedef struct weir_field_source_t {
  weir_view_t bytes;  // FieldDescriptorProto
  const char* scope;  // where names are looked up from: a message's or package's
  bool is_proto3;
  bool is_extension;
  struct weir_field_source_t* next;
} weir_field_source_t;

// A message or an enum that has a name.
typedef struct weir_proto_type_t {
  weir_proto_message_t message;  // unless it is an enum
  bool is_enum;
  bool is_proto3;
  const weir_enum_value_t* values;  // of an enum
  weir_field_source_t* first;       // of a message
  weir_field_source_t** last;
  size_t source_count;
} weir_proto_type_t;

struct weir_descriptors_t {
  weir_arena_t arena;
  weir_map_t types;  // by full name; what it holds is in the arena
  weir_map_t files;  // names of those read
};

// Makes the fields of a message of their sources. All types must be there.
WEIR_MUST_USE weir_status_t* weir_descriptors_build(weir_descriptors_t* all,
                                                    weir_proto_type_t* type);
// The type that |name| means within |scope|; NULL: none.
WEIR_MUST_USE weir_status_t* weir_descriptors_resolve(const weir_descriptors_t* all,
                                                      const char* scope, weir_view_t name,
                                                      weir_proto_type_t** out_type);

#endif  // WEIR_WIRE_DESCRIPTOR_INTERNAL_H_
