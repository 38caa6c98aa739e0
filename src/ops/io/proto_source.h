// proto_source.h — Messages and fields that nodes name. Private to ops/io/*_proto.c.
#ifndef WEIR_OPS_IO_PROTO_SOURCE_H_
#define WEIR_OPS_IO_PROTO_SOURCE_H_

#include "op/kernel.h"
#include "wire/descriptor.h"

// What attributes name, made once a plan.
typedef struct proto_source_t {
  weir_descriptors_t* descriptors;
  const weir_proto_message_t* message;
  const weir_proto_field_t** fields;  // as field_names has them
  size_t* order;                      // places in |fields|, by ascending number
  size_t count;
} proto_source_t;

// Reads the attributes descriptor_source, message_type and field_names.
WEIR_MUST_USE weir_status_t* proto_source_init(weir_attrs_t attrs, bool with_extensions,
                                               proto_source_t* source);
void proto_source_deinit(proto_source_t* source);
// Whether values of the field may be in a tensor of that type.
bool proto_source_fits(const weir_proto_field_t* field, weir_dtype_t dtype);

#endif  // WEIR_OPS_IO_PROTO_SOURCE_H_
