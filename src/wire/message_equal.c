// message_equal.c — Whether two messages say the same: maps may be written in any order.
#include "wire/message.h"

enum { DEPTH_LIMIT = 64 };

static bool equal(const weir_message_t* message, weir_view_t a, weir_view_t b, int depth);

static bool values_equal(const weir_field_t* field, const weir_wire_reader_t* a,
                         const weir_wire_reader_t* b, int depth) {
  if (a->type != b->type) return false;
  bool is_message = field && field->type == WEIR_FIELD_MESSAGE && a->type == WEIR_WIRE_BYTES;
  return is_message ? equal(field->message, a->bytes, b->bytes, depth + 1)
                    : weir_view_equal(a->raw, b->raw);
}

// How many entries of map |number| stand at |reader| and behind it, which is left at the last.
static size_t skip_entries(weir_wire_reader_t* reader, uint32_t number) {
  size_t count = 1;
  for (weir_wire_reader_t ahead = *reader; weir_wire_next(&ahead) && ahead.field == number;) {
    *reader = ahead;
    ++count;
  }
  return count;
}

// The entries of a map, which begin at |a| and |b|: each of one must be in the other.
static bool maps_equal(const weir_field_t* field, weir_wire_reader_t* a, weir_wire_reader_t* b,
                       int depth) {
  weir_wire_reader_t first_a = *a, first_b = *b;
  size_t count = skip_entries(a, field->number);
  if (count != skip_entries(b, field->number)) return false;
  for (size_t i = 0; i < count; ++i) {
    weir_wire_reader_t candidate = first_b;
    bool is_found = values_equal(field, &first_a, &candidate, depth);
    for (size_t k = 1; k < count && !is_found; ++k) {
      weir_wire_next(&candidate);
      is_found = values_equal(field, &first_a, &candidate, depth);
    }
    if (!is_found) return false;
    if (i + 1 < count) weir_wire_next(&first_a);
  }
  return true;
}

static bool equal(const weir_message_t* message, weir_view_t a, weir_view_t b, int depth) {
  if (weir_view_equal(a, b)) return true;
  if (depth > DEPTH_LIMIT || a.size != b.size) return false;
  weir_wire_reader_t x = weir_wire_reader(a), y = weir_wire_reader(b);
  for (;;) {
    bool has_x = weir_wire_next(&x), has_y = weir_wire_next(&y);
    if (!has_x || !has_y) return has_x == has_y && !x.error && !y.error;
    if (x.field != y.field) return false;
    const weir_field_t* field = weir_message_field(message, x.field);
    bool is_map = field && field->is_map;
    if (is_map ? !maps_equal(field, &x, &y, depth) : !values_equal(field, &x, &y, depth))
      return false;
  }
}

bool weir_message_equal(const weir_message_t* message, weir_view_t a, weir_view_t b) {
  return equal(message, a, b, 0);
}
