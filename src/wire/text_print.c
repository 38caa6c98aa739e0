// text_print.c — The text format's printer: wire bytes as indented text, as protobuf's Python
// prints messages.
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "wire/text.h"
#include "wire/utf8.h"

enum { kMaxDepth = 100, kMaxUnknownDepth = 10 };

typedef struct printer_t {
  weir_strbuf_t* out;
  int depth;  // of messages: two blanks each
} printer_t;

// ---- values ----

// Decimal digits of a number: 0.d0d1… * 10^point.
typedef struct digits_t {
  char text[20];
  int count;
  int point;
} digits_t;

static bool reads_back(const char* text, double value, bool is_float) {
  double read = strtod(text, NULL);
  return is_float ? (float)read == (float)value : read == value;
}

// Adds one to the last digit of the mantissa of |text|. False when all its digits are nines.
static bool round_up(char* text) {
  for (char* c = strchr(text, 'e') - 1; c >= text; --c) {
    if (*c < '0' || *c > '9') continue;
    if (*c < '9') {
      ++*c;
      return true;
    }
    *c = '0';
  }
  return false;
}

// Fewest digits that read back as |value|, which is finite and not negative. A decimal of 6 (float)
// or 15 (double) digits always survives, so shorter ones show as trailing zeros of these. Below the
// normal range a number has fewer digits; Python goes below 15 there, but never below 6 for floats.
static digits_t shortest_digits(double value, bool is_float) {
  char text[40];
  int last = is_float ? 9 : 17;
  for (int precision = is_float ? 6 : value < DBL_MIN ? 1 : 15; precision <= last; ++precision) {
    snprintf(text, sizeof text, "%.*e", precision - 1, value);
    if (reads_back(text, value, is_float)) break;
    // Above a power of two the doubles are twice as far apart as below: the nearest decimal, when
    // it lies below, may miss it where the next one above does not.
    if (precision == 16 && round_up(text) && reads_back(text, value, is_float)) break;
  }
  digits_t digits = {.count = 0};
  const char* c = text;
  for (; *c != 'e'; ++c) {  // what is no digit is the point of some locale
    if (*c >= '0' && *c <= '9') digits.text[digits.count++] = *c;
  }
  digits.point = atoi(c + 1) + 1;
  while (digits.count > 1 && digits.text[digits.count - 1] == '0') --digits.count;
  return digits;
}

// As Python's repr: plain between 1e-4 and 1e16, with at least one digit behind the point.
static void put_real(weir_strbuf_t* out, double value, bool is_float) {
  if (isnan(value)) {
    weir_strbuf_puts(out, "nan");
    return;
  }
  if (signbit(value)) weir_strbuf_putc(out, '-');
  if (isinf(value)) {
    weir_strbuf_puts(out, "inf");
    return;
  }
  digits_t d = shortest_digits(fabs(value), is_float);
  if (d.point <= -4 || d.point > 16) {
    weir_strbuf_putc(out, d.text[0]);
    if (d.count > 1) weir_strbuf_printf(out, ".%.*s", d.count - 1, d.text + 1);
    weir_strbuf_printf(out, "e%c%02d", d.point > 0 ? '+' : '-', abs(d.point - 1));
  } else if (d.point <= 0) {
    weir_strbuf_printf(out, "0.%.*s%.*s", -d.point, "0000", d.count, d.text);
  } else if (d.point >= d.count) {
    weir_strbuf_printf(out, "%.*s%.*s.0", d.count, d.text, d.point - d.count, "0000000000000000");
  } else {
    weir_strbuf_printf(out, "%.*s.%.*s", d.point, d.text, d.count - d.point, d.text + d.point);
  }
}

static size_t escape_byte(char* out, uint8_t c) {
  static const char kNamed[] = "\t\n\r\"'\\";
  static const char kNames[] = "tnr\"'\\";
  out[0] = '\\';
  const char* named = c ? strchr(kNamed, c) : NULL;
  if (named) {
    out[1] = kNames[named - kNamed];
    return 2;
  }
  out[1] = (char)('0' + (c >> 6));
  out[2] = (char)('0' + (c >> 3 & 7));
  out[3] = (char)('0' + (c & 7));
  return 4;
}

// Bytes are escaped unless printable ASCII; a string keeps its other characters.
static void put_quoted(weir_strbuf_t* out, weir_view_t text, bool is_string) {
  weir_strbuf_putc(out, '"');
  size_t plain = 0;  // start of what needs no escape
  size_t i = 0;
  while (i < text.size) {
    uint8_t c = (uint8_t)text.data[i];
    size_t keep = 0;
    if (c >= 0x80) {
      keep = is_string ? weir_utf8_size(weir_view(text.data + i, text.size - i)) : 0;
    } else if (c >= 0x20 && c < 0x7f && c != '"' && c != '\'' && c != '\\') {
      keep = 1;
    }
    i += keep;
    if (keep > 0) continue;
    char escaped[4];
    weir_strbuf_append(out, text.data + plain, i - plain);
    weir_strbuf_append(out, escaped, escape_byte(escaped, c));
    plain = ++i;
  }
  if (text.size > plain) weir_strbuf_append(out, text.data + plain, text.size - plain);
  weir_strbuf_putc(out, '"');
}

static void put_enum(weir_strbuf_t* out, const weir_field_t* field, int32_t number) {
  for (const weir_enum_value_t* value = field->enum_values; value->name; ++value) {
    if (value->number != number) continue;
    weir_strbuf_puts(out, value->name);
    return;
  }
  weir_strbuf_printf(out, "%" PRId32, number);
}

static void put_bits(weir_strbuf_t* out, const weir_field_t* field, uint64_t bits) {
  weir_wire_reader_t reader = {.value = bits};
  switch (field->type) {
    case WEIR_FIELD_INT64: weir_strbuf_printf(out, "%" PRId64, (int64_t)bits); break;
    case WEIR_FIELD_INT32: weir_strbuf_printf(out, "%" PRId32, (int32_t)(uint32_t)bits); break;
    case WEIR_FIELD_UINT32:
    case WEIR_FIELD_FIXED32: weir_strbuf_printf(out, "%" PRIu32, (uint32_t)bits); break;
    case WEIR_FIELD_BOOL: weir_strbuf_puts(out, bits != 0 ? "true" : "false"); break;
    case WEIR_FIELD_ENUM: put_enum(out, field, (int32_t)(uint32_t)bits); break;
    case WEIR_FIELD_FLOAT: put_real(out, (double)weir_wire_float(&reader), true); break;
    case WEIR_FIELD_DOUBLE: put_real(out, weir_wire_double(&reader), false); break;
    default: weir_strbuf_printf(out, "%" PRIu64, bits); break;
  }
}

// ---- fields ----

static void put_indent(const printer_t* p) { weir_strbuf_printf(p->out, "%*s", 2 * p->depth, ""); }

static void print_bits(const printer_t* p, const weir_field_t* field, uint64_t bits) {
  put_indent(p);
  weir_strbuf_puts(p->out, field->name);
  weir_strbuf_puts(p->out, ": ");
  put_bits(p->out, field, bits);
  weir_strbuf_putc(p->out, '\n');
}

static void print_string(const printer_t* p, const weir_field_t* field, weir_view_t text) {
  put_indent(p);
  weir_strbuf_puts(p->out, field->name);
  weir_strbuf_puts(p->out, ": ");
  put_quoted(p->out, text, field->type == WEIR_FIELD_STRING);
  weir_strbuf_putc(p->out, '\n');
}

static weir_status_t* print_body(printer_t* p, const weir_message_t* message, weir_view_t data,
                                 bool is_map_entry);

static weir_status_t* print_message(printer_t* p, const weir_field_t* field, weir_view_t data) {
  if (p->depth == kMaxDepth) {
    return WEIR_STATUS(INVALID_ARGUMENT, "messages are nested deeper than %d", kMaxDepth);
  }
  put_indent(p);
  weir_strbuf_printf(p->out, "%s {\n", field->name);
  ++p->depth;
  WEIR_TRY(print_body(p, field->message, data, field->is_map));
  --p->depth;
  put_indent(p);
  weir_strbuf_puts(p->out, "}\n");
  return NULL;
}

// Whether the reader's field is |field| in a form it may have; any other form makes it an unknown
// field.
static bool is_field(const weir_wire_reader_t* reader, const weir_field_t* field) {
  if (reader->field != field->number) return false;
  if (reader->type == weir_field_wire_type(field->type)) return true;
  return reader->type == WEIR_WIRE_BYTES && field->is_repeated;
}

static weir_status_t* print_packed(printer_t* p, const weir_field_t* field,
                                   const weir_wire_reader_t* reader) {
  weir_wire_packed_t packed = weir_wire_packed(reader, weir_field_wire_type(field->type));
  uint64_t bits = 0;
  while (weir_wire_packed_next(&packed, &bits)) print_bits(p, field, bits);
  if (!packed.failed) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "malformed packed field '%s'", field->name);
}

static weir_status_t* print_repeated(printer_t* p, const weir_field_t* field, weir_view_t data) {
  weir_wire_reader_t reader = weir_wire_reader(data);
  while (weir_wire_next(&reader)) {
    if (!is_field(&reader, field)) continue;
    if (field->type == WEIR_FIELD_MESSAGE) {
      WEIR_TRY(print_message(p, field, reader.bytes));
    } else if (weir_field_is_packable(field->type)) {
      WEIR_TRY(print_packed(p, field, &reader));
    } else {
      print_string(p, field, reader.bytes);
    }
  }
  return weir_wire_check(&reader, "message");
}

// What a singular field holds in the end: the last value; of messages, all of them joined, which
// merges them.
typedef struct singular_t {
  int count;
  uint64_t bits;
  weir_view_t bytes;
  weir_strbuf_t joined;  // owns |bytes| when count > 1
} singular_t;

static weir_status_t* take_singular(singular_t* singular, const weir_field_t* field,
                                    const weir_wire_reader_t* reader) {
  ++singular->count;
  singular->bits = reader->value;
  if (field->type == WEIR_FIELD_MESSAGE && singular->count > 1) {
    if (singular->joined.size == 0) {
      weir_strbuf_append(&singular->joined, singular->bytes.data, singular->bytes.size);
    }
    weir_strbuf_append(&singular->joined, reader->bytes.data, reader->bytes.size);
    singular->bytes = weir_strbuf_view(&singular->joined);
    return weir_strbuf_finish(&singular->joined);
  }
  singular->bytes = reader->bytes;
  return NULL;
}

// Whether the reader's field is another member of |field|'s oneof, which unsets it.
static bool unsets(const weir_wire_reader_t* reader, const weir_message_t* message,
                   const weir_field_t* field) {
  if (field->oneof == 0 || reader->field == field->number) return false;
  const weir_field_t* other = weir_message_field(message, reader->field);
  return other && other->oneof == field->oneof && is_field(reader, other);
}

static weir_status_t* print_singular_value(printer_t* p, const weir_field_t* field,
                                           const singular_t* value, bool is_map_entry) {
  if (value->count == 0 && !is_map_entry) return NULL;
  if (field->type == WEIR_FIELD_MESSAGE) return print_message(p, field, value->bytes);
  bool is_text = !weir_field_is_packable(field->type);
  // A scalar that does not know whether it was set shows only when it is not zero.
  bool is_zero = is_text ? value->bytes.size == 0 : value->bits == 0;
  if (field->type == WEIR_FIELD_INT32 || field->type == WEIR_FIELD_UINT32 ||
      field->type == WEIR_FIELD_ENUM) {
    is_zero = (uint32_t)value->bits == 0;
  }
  if (is_zero && field->oneof == 0) return NULL;
  if (is_text) {
    print_string(p, field, value->bytes);
  } else {
    print_bits(p, field, value->bits);
  }
  return NULL;
}

static weir_status_t* print_singular(printer_t* p, const weir_message_t* message,
                                     const weir_field_t* field, weir_view_t data,
                                     bool is_map_entry) {
  singular_t value = {0};
  weir_status_t* status = NULL;
  weir_wire_reader_t reader = weir_wire_reader(data);
  while (!status && weir_wire_next(&reader)) {
    if (is_field(&reader, field)) {
      status = take_singular(&value, field, &reader);
    } else if (unsets(&reader, message, field)) {
      value.count = 0;
      value.joined.size = 0;
    }
  }
  if (!status) status = weir_wire_check(&reader, "message");
  if (!status) status = print_singular_value(p, field, &value, is_map_entry);
  weir_strbuf_free(&value.joined);
  return status;
}

// ---- maps ----

typedef struct entry_t {
  weir_view_t text;  // key of a string map
  uint64_t bits;     // key of an integer map; all keys are unsigned
  size_t order;      // on the wire: the last of equal keys counts
  weir_view_t data;
} entry_t;

static int compare_keys(const entry_t* a, const entry_t* b) {
  if (a->bits != b->bits) return a->bits < b->bits ? -1 : 1;
  size_t size = WEIR_MIN(a->text.size, b->text.size);
  int order = size > 0 ? memcmp(a->text.data, b->text.data, size) : 0;
  if (order != 0) return order;
  return (a->text.size > b->text.size) - (a->text.size < b->text.size);
}

static int compare_entries(const void* left, const void* right) {
  const entry_t* a = left;
  const entry_t* b = right;
  int order = compare_keys(a, b);
  return order != 0 ? order : (a->order > b->order) - (a->order < b->order);
}

static weir_status_t* read_entry(const weir_field_t* field, weir_view_t data, entry_t* out_entry) {
  const weir_field_t* key = &field->message->fields[0];
  *out_entry = (entry_t){.data = data};
  weir_wire_reader_t reader = weir_wire_reader(data);
  while (weir_wire_next(&reader)) {
    if (!is_field(&reader, key)) continue;
    out_entry->text = reader.bytes;
    out_entry->bits = key->type == WEIR_FIELD_UINT32 ? (uint32_t)reader.value : reader.value;
  }
  return weir_wire_check(&reader, "map entry");
}

static weir_status_t* print_map(printer_t* p, const weir_field_t* field, weir_view_t data) {
  entry_t* entries = NULL;
  size_t capacity = 0;
  size_t count = 0;
  weir_status_t* status = NULL;
  weir_wire_reader_t reader = weir_wire_reader(data);
  while (weir_wire_next(&reader)) {
    if (!is_field(&reader, field)) continue;
    if (!WEIR_GROW(entries, capacity, count + 1)) {
      status = weir_out_of_memory();
      goto done;
    }
    status = read_entry(field, reader.bytes, &entries[count]);
    if (status) goto done;
    entries[count].order = count;
    ++count;
  }
  status = weir_wire_check(&reader, "message");
  if (status) goto done;
  if (count > 1) qsort(entries, count, sizeof *entries, compare_entries);
  for (size_t i = 0; i < count && !status; ++i) {
    if (i + 1 < count && compare_keys(&entries[i], &entries[i + 1]) == 0) continue;
    status = print_message(p, field, entries[i].data);
  }
done:
  weir_free(entries);
  return status;
}

// ---- unknown fields: as protobuf's C++ prints them ----

static bool is_message(weir_view_t data) {
  weir_wire_reader_t reader = weir_wire_reader(data);
  while (weir_wire_next(&reader)) {
  }
  return data.size > 0 && !reader.error;
}

static void print_unknown(printer_t* p, const weir_wire_reader_t* reader, int budget);

static void print_unknown_body(printer_t* p, weir_view_t data, int budget) {
  weir_strbuf_puts(p->out, " {\n");
  ++p->depth;
  weir_wire_reader_t reader = weir_wire_reader(data);
  while (weir_wire_next(&reader)) print_unknown(p, &reader, budget);
  --p->depth;
  put_indent(p);
  weir_strbuf_puts(p->out, "}\n");
}

// |budget|: how many more levels of bytes may be taken for messages, which is a guess.
static void print_unknown(printer_t* p, const weir_wire_reader_t* reader, int budget) {
  put_indent(p);
  weir_strbuf_printf(p->out, "%" PRIu32, reader->field);
  switch (reader->type) {
    case WEIR_WIRE_FIXED64:
      weir_strbuf_printf(p->out, ": 0x%016" PRIx64 "\n", reader->value);
      break;
    case WEIR_WIRE_FIXED32: weir_strbuf_printf(p->out, ": 0x%08" PRIx64 "\n", reader->value); break;
    case WEIR_WIRE_GROUP: print_unknown_body(p, reader->bytes, budget); break;
    case WEIR_WIRE_BYTES:
      if (budget > 0 && is_message(reader->bytes)) {
        print_unknown_body(p, reader->bytes, budget - 1);
        break;
      }
      weir_strbuf_puts(p->out, ": ");
      put_quoted(p->out, reader->bytes, false);
      weir_strbuf_putc(p->out, '\n');
      break;
    default: weir_strbuf_printf(p->out, ": %" PRIu64 "\n", reader->value); break;
  }
}

// ---- messages ----

// Finds which fields of the table are there (bit i: field i), so that the others cost no pass over
// the data.
static weir_status_t* scan(const weir_message_t* message, weir_view_t data, uint64_t* out_present,
                           bool* out_has_unknown) {
  *out_present = 0;
  *out_has_unknown = false;
  weir_wire_reader_t reader = weir_wire_reader(data);
  while (weir_wire_next(&reader)) {
    const weir_field_t* field = weir_message_field(message, reader.field);
    if (field && is_field(&reader, field)) {
      *out_present |= (uint64_t)1 << (field - message->fields);
    } else {
      *out_has_unknown = true;
    }
  }
  return weir_wire_check(&reader, message->name);
}

static weir_status_t* print_body(printer_t* p, const weir_message_t* message, weir_view_t data,
                                 bool is_map_entry) {
  uint64_t present = 0;
  bool has_unknown = false;
  WEIR_TRY(scan(message, data, &present, &has_unknown));
  for (unsigned i = 0; message->fields[i].number != 0; ++i) {
    const weir_field_t* field = &message->fields[i];
    if (!is_map_entry && !(present >> i & 1)) continue;
    if (field->is_map) {
      WEIR_TRY(print_map(p, field, data));
    } else if (field->is_repeated) {
      WEIR_TRY(print_repeated(p, field, data));
    } else {
      WEIR_TRY(print_singular(p, message, field, data, is_map_entry));
    }
  }
  if (!has_unknown) return NULL;
  weir_wire_reader_t reader = weir_wire_reader(data);
  while (weir_wire_next(&reader)) {
    const weir_field_t* field = weir_message_field(message, reader.field);
    if (!field || !is_field(&reader, field)) print_unknown(p, &reader, kMaxUnknownDepth);
  }
  return NULL;
}

weir_status_t* weir_text_print(const weir_message_t* message, weir_view_t data,
                               weir_strbuf_t* out) {
  printer_t p = {.out = out};
  size_t before = out->size;
  weir_status_t* status = print_body(&p, message, data, false);
  if (!status) status = weir_strbuf_finish(out);
  if (status && out->data) {  // nothing half-written
    out->size = before;
    out->data[before] = '\0';
  }
  return status;
}
