// wire.h — The protobuf wire format: a bounded zero-copy reader and a writer with 64-bit sizes.
//
// Messages are never turned into object trees: callers walk fields and keep views into the bytes.
// Readers are value types, thread-confined; errors are sticky: after the first malformed field
// weir_wire_next returns false and |error| says why.
#ifndef WEIR_WIRE_WIRE_H_
#define WEIR_WIRE_WIRE_H_

#include "base/base.h"
#include "base/string.h"

typedef enum weir_wire_type_t {
  WEIR_WIRE_VARINT = 0,
  WEIR_WIRE_FIXED64 = 1,
  WEIR_WIRE_BYTES = 2,
  WEIR_WIRE_GROUP = 3,      // skipped whole by the reader, kept in |raw|
  WEIR_WIRE_END_GROUP = 4,  // never returned
  WEIR_WIRE_FIXED32 = 5,
} weir_wire_type_t;

typedef struct weir_wire_reader_t {
  const uint8_t* next;
  const uint8_t* end;
  const char* error;  // static text; NULL while all is well
  uint32_t field;     // number of the current field
  weir_wire_type_t type;
  uint64_t value;     // VARINT, FIXED64, FIXED32: the raw bits
  weir_view_t bytes;  // BYTES: the content
  weir_view_t raw;    // the whole field, tag included: what a round trip keeps of unknown fields
} weir_wire_reader_t;

weir_wire_reader_t weir_wire_reader(weir_view_t message);
bool weir_wire_next(weir_wire_reader_t* reader);  // false at the end or on error
// INVALID_ARGUMENT "malformed |what|: …" when the reader stopped on an error, else NULL.
WEIR_MUST_USE weir_status_t* weir_wire_check(const weir_wire_reader_t* reader, const char* what);

WEIR_INLINE int64_t weir_wire_int(const weir_wire_reader_t* r) { return (int64_t)r->value; }
WEIR_INLINE bool weir_wire_bool(const weir_wire_reader_t* r) { return r->value != 0; }
float weir_wire_float(const weir_wire_reader_t* reader);    // FIXED32 bits
double weir_wire_double(const weir_wire_reader_t* reader);  // FIXED64 bits

// Repeated scalars may be packed (BYTES) or not. Iterates over the current field's values either
// way:
//   weir_wire_packed_t p = weir_wire_packed(&r, WEIR_WIRE_VARINT); uint64_t v; while
//   (weir_wire_packed_next(&p, &v)) …
typedef struct weir_wire_packed_t {
  const uint8_t* next;
  const uint8_t* end;
  weir_wire_type_t type;
  uint64_t single;  // the value of an unpacked field
  bool is_single;
  bool failed;  // truncated content
} weir_wire_packed_t;
weir_wire_packed_t weir_wire_packed(const weir_wire_reader_t* reader, weir_wire_type_t element);
bool weir_wire_packed_next(weir_wire_packed_t* packed, uint64_t* out_bits);
// Number of values, or false when malformed. For sizing an array before the loop.
bool weir_wire_packed_count(weir_wire_packed_t packed, uint64_t* out_count);

// ---- writer: appends fields to a string buffer, whose failure is sticky. ----
void weir_wire_put_varint(weir_strbuf_t* out, uint64_t value);  // without a tag
void weir_wire_put_int(weir_strbuf_t* out, uint32_t field, int64_t value);
void weir_wire_put_bool(weir_strbuf_t* out, uint32_t field, bool value);
void weir_wire_put_float(weir_strbuf_t* out, uint32_t field, float value);
void weir_wire_put_double(weir_strbuf_t* out, uint32_t field, double value);
void weir_wire_put_fixed32(weir_strbuf_t* out, uint32_t field, uint32_t value);
void weir_wire_put_fixed64(weir_strbuf_t* out, uint32_t field, uint64_t value);
void weir_wire_put_bytes(weir_strbuf_t* out, uint32_t field, const void* data, size_t size);
void weir_wire_put_string(weir_strbuf_t* out, uint32_t field, const char* text);
void weir_wire_put_tag(weir_strbuf_t* out, uint32_t field, weir_wire_type_t type);
// A nested message whose size is not known yet: begin, append its fields to the same buffer, end.
size_t weir_wire_begin(weir_strbuf_t* out, uint32_t field);
void weir_wire_end(weir_strbuf_t* out, size_t begin);

#endif  // WEIR_WIRE_WIRE_H_
