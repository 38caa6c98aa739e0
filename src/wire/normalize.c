// normalize.c — Wire bytes as a parser of their message would write them again.
#include <stdlib.h>

#include "base/alloc.h"
#include "wire/descriptor.h"
#include "wire/utf8.h"

enum { kMaxDepth = 100 };

#define LOST(text) WEIR_STATUS(DATA_LOSS, text)

// One field on the wire, in the order of the message.
typedef struct item_t {
  const weir_proto_field_t* field;  // NULL: not known, or not as its type should stand there
  weir_wire_type_t type;
  uint32_t number;
  uint64_t value;
  weir_view_t bytes;
  weir_view_t raw;  // of one that is not known: all of it; none of a value that its enum lacks
  size_t order;
  bool is_dropped;  // another one of its oneof came after it
} item_t;

typedef struct items_t {
  item_t* at;
  size_t count, capacity;
} items_t;

typedef struct writer_t {
  bool is_strict;
  int depth;
  weir_strbuf_t* out;
} writer_t;

static weir_status_t* write_message(writer_t* w, const weir_proto_message_t* message,
                                    weir_view_t data);

// ---- reading ----

static bool has_value(const weir_proto_field_t* field, int64_t number) {
  for (const weir_enum_value_t* v = field->row->enum_values; v->name; ++v) {
    if (v->number == number) return true;
  }
  return false;
}

static bool is_foreign(const weir_proto_field_t* field, uint64_t value) {
  return field->is_closed && !has_value(field, (int32_t)(uint32_t)value);
}

// Whether the reader is at a value of |field|, or at packed ones.
static bool fits(const weir_proto_field_t* field, const weir_wire_reader_t* r) {
  if (r->type == weir_field_wire_type(field->type)) return true;
  return r->type == WEIR_WIRE_BYTES && field->row->is_repeated &&
         weir_field_is_packable(field->type);
}

static weir_status_t* add_item(items_t* items, const item_t* item) {
  if (!WEIR_GROW(items->at, items->capacity, items->count + 1)) return weir_out_of_memory();
  items->at[items->count] = *item;
  items->at[items->count].order = items->count;
  ++items->count;
  return NULL;
}

// Values of one field: packed ones become single ones.
static weir_status_t* add_values(const writer_t* w, items_t* items, const weir_proto_field_t* field,
                                 const weir_wire_reader_t* r) {
  item_t item = {.field = field, .type = r->type, .number = r->field, .bytes = r->bytes};
  if (!weir_field_is_packable(field->type)) {
    if (field->is_utf8 && !weir_utf8_is_valid(r->bytes)) return LOST("a string is not UTF-8");
    return add_item(items, &item);
  }
  item.type = weir_field_wire_type(field->type);
  weir_wire_packed_t packed = weir_wire_packed(r, item.type);
  while (weir_wire_packed_next(&packed, &item.value)) {
    const bool is_unknown = is_foreign(field, item.value);
    if (is_unknown && w->is_strict) return LOST("an enum has no such value");
    item.field = is_unknown ? NULL : field;
    WEIR_TRY(add_item(items, &item));
  }
  return packed.failed ? LOST("packed values are cut short") : NULL;
}

static weir_status_t* read_items(const writer_t* w, const weir_proto_message_t* message,
                                 weir_view_t data, items_t* items) {
  weir_wire_reader_t r = weir_wire_reader(data);
  while (weir_wire_next(&r)) {
    const weir_proto_field_t* field = weir_proto_field(message, r.field);
    if (field && fits(field, &r)) WEIR_TRY(add_values(w, items, field, &r));
    else WEIR_TRY(add_item(items, &(item_t){.type = r.type, .raw = r.raw}));
  }
  return r.error ? LOST("malformed wire bytes") : NULL;
}

// Of a oneof the last member stays, with all of its own that came after the last other.
static void drop_rivals(items_t* items) {
  uint32_t kept[256] = {0};
  bool is_over[256] = {false};
  for (size_t i = items->count; i-- > 0;) {
    item_t* item = &items->at[i];
    const uint8_t oneof = item->field ? item->field->row->oneof : 0;
    if (oneof == 0) continue;
    if (kept[oneof] == 0) kept[oneof] = item->field->row->number;
    if (kept[oneof] != item->field->row->number) is_over[oneof] = true;
    item->is_dropped = is_over[oneof];
  }
}

// ---- writing ----

static uint64_t canonical(const weir_proto_field_t* field, uint64_t value) {
  switch (field->type) {
    case WEIR_FIELD_INT32:
    case WEIR_FIELD_ENUM: return (uint64_t)(int64_t)(int32_t)(uint32_t)value;
    case WEIR_FIELD_UINT32:
    case WEIR_FIELD_SINT32: return (uint32_t)value;
    case WEIR_FIELD_BOOL: return value != 0;
    default: return value;
  }
}

static void put_number(weir_strbuf_t* out, weir_wire_type_t type, uint64_t value) {
  if (type == WEIR_WIRE_VARINT) {
    weir_wire_put_varint(out, value);
    return;
  }
  for (int i = 0; i < (type == WEIR_WIRE_FIXED32 ? 4 : 8); ++i)
    weir_strbuf_putc(out, (char)(value >> (8 * i)));
}

static weir_status_t* write_nested(writer_t* w, const weir_proto_field_t* field,
                                   weir_view_t bytes) {
  const bool is_group = field->type == WEIR_FIELD_GROUP;
  size_t begin = 0;
  if (w->depth == kMaxDepth) return LOST("messages are nested too deep");
  if (is_group) weir_wire_put_tag(w->out, field->row->number, WEIR_WIRE_GROUP);
  else begin = weir_wire_begin(w->out, field->row->number);
  ++w->depth;
  WEIR_TRY(write_message(w, field->message, bytes));
  --w->depth;
  if (is_group) weir_wire_put_tag(w->out, field->row->number, WEIR_WIRE_END_GROUP);
  else weir_wire_end(w->out, begin);
  return NULL;
}

// Parts of one message are as one after the other.
static weir_status_t* write_merged(writer_t* w, const item_t* items, size_t count) {
  weir_strbuf_t all = {0};
  for (size_t i = 0; i < count; ++i) {
    if (!items[i].is_dropped) weir_strbuf_append(&all, items[i].bytes.data, items[i].bytes.size);
  }
  weir_status_t* status = weir_strbuf_finish(&all);
  if (!status) status = write_nested(w, items->field, weir_strbuf_view(&all));
  weir_strbuf_free(&all);
  return status;
}

static weir_status_t* write_item(writer_t* w, const item_t* item) {
  const weir_proto_field_t* field = item->field;
  if (field->message) return write_nested(w, field, item->bytes);
  if (item->type == WEIR_WIRE_BYTES) {
    if (item->bytes.size > 0 || field->has_presence || field->row->is_repeated)
      weir_wire_put_bytes(w->out, field->row->number, item->bytes.data, item->bytes.size);
    return NULL;
  }
  const uint64_t value = canonical(field, item->value);
  if (value == 0 && !field->has_presence && !field->row->is_repeated) return NULL;
  weir_wire_put_tag(w->out, field->row->number, item->type);
  put_number(w->out, item->type, value);
  return NULL;
}

static void write_packed(writer_t* w, const item_t* items, size_t count) {
  const size_t begin = weir_wire_begin(w->out, items->field->row->number);
  for (size_t i = 0; i < count; ++i)
    put_number(w->out, items[i].type, canonical(items[i].field, items[i].value));
  weir_wire_end(w->out, begin);
}

// All items of one field.
static weir_status_t* write_field(writer_t* w, const item_t* items, size_t count) {
  const weir_proto_field_t* field = items->field;
  if (field->is_packed) {
    write_packed(w, items, count);
    return NULL;
  }
  if (field->row->is_repeated) {
    for (size_t i = 0; i < count; ++i) WEIR_TRY(write_item(w, &items[i]));
    return NULL;
  }
  if (items[count - 1].is_dropped) return NULL;
  return field->message ? write_merged(w, items, count) : write_item(w, &items[count - 1]);
}

// By number, then as they came; unknown ones last.
static int by_field(const void* left, const void* right) {
  const item_t *a = left, *b = right;
  const uint32_t x = a->field ? a->field->row->number : UINT32_MAX;
  const uint32_t y = b->field ? b->field->row->number : UINT32_MAX;
  if (x != y) return x < y ? -1 : 1;
  return a->order < b->order ? -1 : 1;
}

static weir_status_t* write_items(writer_t* w, const weir_proto_message_t* message,
                                  const items_t* items) {
  size_t next = 0;  // field that was not looked at yet
  for (size_t i = 0, end; i < items->count && items->at[i].field; i = end) {
    const weir_proto_field_t* field = items->at[i].field;
    for (end = i + 1; end < items->count && items->at[end].field == field;) ++end;
    for (; &message->fields[next] != field; ++next) {
      if (message->fields[next].is_required) return LOST("a required field is missing");
    }
    ++next;
    WEIR_TRY(write_field(w, &items->at[i], end - i));
  }
  for (; next < message->field_count; ++next) {
    if (message->fields[next].is_required) return LOST("a required field is missing");
  }
  return NULL;
}

static void write_unknown(writer_t* w, const items_t* items) {
  for (size_t i = 0; i < items->count; ++i) {
    const item_t* item = &items->at[i];
    if (item->field) continue;
    if (item->raw.data) {
      weir_strbuf_append(w->out, item->raw.data, item->raw.size);
    } else {
      weir_wire_put_tag(w->out, item->number, item->type);
      put_number(w->out, item->type, item->value);
    }
  }
}

static weir_status_t* write_message(writer_t* w, const weir_proto_message_t* message,
                                    weir_view_t data) {
  items_t items = {0};
  weir_status_t* status = read_items(w, message, data, &items);
  if (!status && items.count > 0) {
    drop_rivals(&items);
    qsort(items.at, items.count, sizeof *items.at, by_field);
  }
  if (!status) status = write_items(w, message, &items);
  if (!status) write_unknown(w, &items);
  weir_free(items.at);
  return status;
}

weir_status_t* weir_proto_normalize(const weir_proto_message_t* message, weir_view_t data,
                                    bool is_strict, weir_strbuf_t* out) {
  writer_t w = {.is_strict = is_strict, .out = out};
  WEIR_TRY(write_message(&w, message, data));
  return weir_strbuf_finish(out);
}
