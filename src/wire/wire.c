// wire.c — The protobuf wire format: reader and writer.
#include "wire/wire.h"

enum { kMaxGroupDepth = 100, kMaxVarintSize = 10 };

// ---- reader: the static functions return NULL, or static text that says what is wrong. ----

static const char* read_varint(const uint8_t** next, const uint8_t* end, uint64_t* out_value) {
  const uint8_t* p = *next;
  if (WEIR_LIKELY(p < end && *p < 0x80)) {
    *out_value = *p;
    *next = p + 1;
    return NULL;
  }
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (p == end) return "varint is cut short";
    uint8_t byte = *p++;
    if (shift == 63 && byte > 1) break;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *out_value = value;
      *next = p;
      return NULL;
    }
  }
  return "varint does not fit 64 bits";
}

// Little-endian, whatever the machine.
static const char* read_fixed(const uint8_t** next, const uint8_t* end, size_t size,
                              uint64_t* out_value) {
  if ((size_t)(end - *next) < size) return "fixed-size value is cut short";
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= (uint64_t)(*next)[i] << (8 * i);
  *next += size;
  *out_value = value;
  return NULL;
}

static const char* read_tag(const uint8_t** next, const uint8_t* end, uint32_t* out_field,
                            weir_wire_type_t* out_type) {
  uint64_t tag = 0;
  const char* error = read_varint(next, end, &tag);
  if (error) return error;
  if (tag > UINT32_MAX) return "field number is too large";
  if (tag >> 3 == 0) return "field number is 0";
  if ((tag & 7) > WEIR_WIRE_FIXED32) return "unknown wire type";
  *out_field = (uint32_t)(tag >> 3);
  *out_type = (weir_wire_type_t)(tag & 7);
  return NULL;
}

// Reads a value that is no group: its bits, or its bytes.
static const char* read_value(const uint8_t** next, const uint8_t* end, weir_wire_type_t type,
                              uint64_t* out_value, weir_view_t* out_bytes) {
  if (type == WEIR_WIRE_VARINT) return read_varint(next, end, out_value);
  if (type == WEIR_WIRE_FIXED64) return read_fixed(next, end, 8, out_value);
  if (type == WEIR_WIRE_FIXED32) return read_fixed(next, end, 4, out_value);
  uint64_t size = 0;
  const char* error = read_varint(next, end, &size);
  if (error) return error;
  if (size > (uint64_t)(end - *next)) return "length runs past the end";
  *out_bytes = weir_view(*next, (size_t)size);
  *next += size;
  return NULL;
}

// Skips a group whose start tag was read. Iterative, so that hostile input cannot use up the stack.
static const char* read_group(const uint8_t** next, const uint8_t* end, uint32_t field,
                              weir_view_t* out_bytes) {
  uint32_t open[kMaxGroupDepth] = {field};
  int depth = 1;
  const uint8_t* begin = *next;
  while (depth > 0) {
    const uint8_t* tag = *next;
    if (tag == end) return "group is not closed";
    uint32_t number = 0;
    weir_wire_type_t type = WEIR_WIRE_VARINT;
    const char* error = read_tag(next, end, &number, &type);
    if (error) return error;
    if (type == WEIR_WIRE_GROUP) {
      if (depth == kMaxGroupDepth) return "groups are nested too deep";
      open[depth++] = number;
    } else if (type == WEIR_WIRE_END_GROUP) {
      if (open[--depth] != number) return "group is closed by another field";
      if (depth == 0) *out_bytes = weir_view(begin, (size_t)(tag - begin));
    } else {
      uint64_t value = 0;
      weir_view_t bytes;
      error = read_value(next, end, type, &value, &bytes);
      if (error) return error;
    }
  }
  return NULL;
}

weir_wire_reader_t weir_wire_reader(weir_view_t message) {
  const uint8_t* data = (const uint8_t*)message.data;
  return (weir_wire_reader_t){.next = data, .end = message.size > 0 ? data + message.size : data};
}

bool weir_wire_next(weir_wire_reader_t* reader) {
  if (reader->error || reader->next == reader->end) return false;
  const uint8_t* begin = reader->next;
  reader->value = 0;
  reader->bytes = weir_view(NULL, 0);
  reader->error = read_tag(&reader->next, reader->end, &reader->field, &reader->type);
  if (reader->error) return false;
  if (reader->type == WEIR_WIRE_END_GROUP) {
    reader->error = "end of a group that was not opened";
  } else if (reader->type == WEIR_WIRE_GROUP) {
    reader->error = read_group(&reader->next, reader->end, reader->field, &reader->bytes);
  } else {
    reader->error =
        read_value(&reader->next, reader->end, reader->type, &reader->value, &reader->bytes);
  }
  reader->raw = weir_view(begin, (size_t)(reader->next - begin));
  return reader->error == NULL;
}

weir_status_t* weir_wire_check(const weir_wire_reader_t* reader, const char* what) {
  if (!reader->error) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "malformed %s: %s", what, reader->error);
}

float weir_wire_float(const weir_wire_reader_t* reader) {
  uint32_t bits = (uint32_t)reader->value;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

double weir_wire_double(const weir_wire_reader_t* reader) {
  double value;
  memcpy(&value, &reader->value, sizeof value);
  return value;
}

weir_wire_packed_t weir_wire_packed(const weir_wire_reader_t* reader, weir_wire_type_t element) {
  weir_wire_packed_t packed = {.type = element};
  if (reader->type == element) {
    packed.is_single = true;
    packed.single = reader->value;
  } else if (reader->type == WEIR_WIRE_BYTES && reader->bytes.size > 0) {
    packed.next = (const uint8_t*)reader->bytes.data;
    packed.end = packed.next + reader->bytes.size;
  } else if (reader->type != WEIR_WIRE_BYTES) {
    packed.failed = true;
  }
  return packed;
}

bool weir_wire_packed_next(weir_wire_packed_t* packed, uint64_t* out_bits) {
  if (packed->is_single) {
    packed->is_single = false;
    *out_bits = packed->single;
    return true;
  }
  if (packed->failed || packed->next == packed->end) return false;
  weir_view_t bytes;
  packed->failed = read_value(&packed->next, packed->end, packed->type, out_bits, &bytes) != NULL;
  return !packed->failed;
}

bool weir_wire_packed_count(weir_wire_packed_t packed, uint64_t* out_count) {
  uint64_t count = 0;
  uint64_t bits = 0;
  if (!packed.is_single && !packed.failed && packed.type != WEIR_WIRE_VARINT) {
    size_t width = packed.type == WEIR_WIRE_FIXED32 ? 4 : 8;
    size_t size = (size_t)(packed.end - packed.next);
    packed.failed = size % width != 0;
    count = size / width;
  } else {
    while (weir_wire_packed_next(&packed, &bits)) ++count;
  }
  if (packed.failed) return false;
  *out_count = count;
  return true;
}

// ---- writer ----

static size_t encode_varint(uint8_t* out, uint64_t value) {
  size_t size = 0;
  for (; value >= 0x80; value >>= 7) out[size++] = (uint8_t)(value | 0x80);
  out[size++] = (uint8_t)value;
  return size;
}

static size_t encode_tag(uint8_t* out, uint32_t field, weir_wire_type_t type) {
  return encode_varint(out, (uint64_t)field << 3 | (uint64_t)type);
}

static void put_fixed(weir_strbuf_t* out, uint32_t field, weir_wire_type_t type, uint64_t value) {
  uint8_t text[kMaxVarintSize + 8];
  size_t size = encode_tag(text, field, type);
  size_t width = type == WEIR_WIRE_FIXED32 ? 4 : 8;
  for (size_t i = 0; i < width; ++i) text[size++] = (uint8_t)(value >> (8 * i));
  weir_strbuf_append(out, text, size);
}

void weir_wire_put_varint(weir_strbuf_t* out, uint64_t value) {
  uint8_t text[kMaxVarintSize];
  weir_strbuf_append(out, text, encode_varint(text, value));
}

void weir_wire_put_int(weir_strbuf_t* out, uint32_t field, int64_t value) {
  uint8_t text[2 * kMaxVarintSize];
  size_t size = encode_tag(text, field, WEIR_WIRE_VARINT);
  size += encode_varint(text + size, (uint64_t)value);
  weir_strbuf_append(out, text, size);
}

void weir_wire_put_bool(weir_strbuf_t* out, uint32_t field, bool value) {
  weir_wire_put_int(out, field, value ? 1 : 0);
}

void weir_wire_put_float(weir_strbuf_t* out, uint32_t field, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_fixed(out, field, WEIR_WIRE_FIXED32, bits);
}

void weir_wire_put_double(weir_strbuf_t* out, uint32_t field, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_fixed(out, field, WEIR_WIRE_FIXED64, bits);
}

void weir_wire_put_fixed32(weir_strbuf_t* out, uint32_t field, uint32_t value) {
  put_fixed(out, field, WEIR_WIRE_FIXED32, value);
}

void weir_wire_put_fixed64(weir_strbuf_t* out, uint32_t field, uint64_t value) {
  put_fixed(out, field, WEIR_WIRE_FIXED64, value);
}

void weir_wire_put_bytes(weir_strbuf_t* out, uint32_t field, const void* data, size_t size) {
  uint8_t text[2 * kMaxVarintSize];
  size_t prefix = encode_tag(text, field, WEIR_WIRE_BYTES);
  prefix += encode_varint(text + prefix, size);
  weir_strbuf_append(out, text, prefix);
  if (size > 0) weir_strbuf_append(out, data, size);
}

void weir_wire_put_string(weir_strbuf_t* out, uint32_t field, const char* text) {
  weir_wire_put_bytes(out, field, text, text ? strlen(text) : 0);
}

void weir_wire_put_tag(weir_strbuf_t* out, uint32_t field, weir_wire_type_t type) {
  uint8_t text[kMaxVarintSize];
  weir_strbuf_append(out, text, encode_tag(text, field, type));
}

// One byte is kept for the length: most messages are shorter than 128 bytes, the others move once.
size_t weir_wire_begin(weir_strbuf_t* out, uint32_t field) {
  weir_wire_put_tag(out, field, WEIR_WIRE_BYTES);
  weir_strbuf_putc(out, 0);
  return out->size;
}

void weir_wire_end(weir_strbuf_t* out, size_t begin) {
  if (out->failed) return;
  size_t body = out->size - begin;
  uint8_t text[kMaxVarintSize];
  size_t prefix = encode_varint(text, body);
  if (prefix > 1) {
    static const char kRoom[kMaxVarintSize];
    weir_strbuf_append(out, kRoom, prefix - 1);
    if (out->failed) return;
    memmove(out->data + begin + prefix - 1, out->data + begin, body);
  }
  memcpy(out->data + begin - 1, text, prefix);
}
