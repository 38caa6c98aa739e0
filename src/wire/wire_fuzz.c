// wire_fuzz.c — Fuzz target: any bytes through the wire reader; what it accepts must come back
// whole.
#include "base/alloc.h"
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void walk(weir_view_t message, int depth) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  size_t total = 0;
  while (weir_wire_next(&reader)) {
    WEIR_CHECK(reader.field != 0 && reader.raw.size > 0);
    total += reader.raw.size;
    static const weir_wire_type_t kTypes[] = {WEIR_WIRE_VARINT, WEIR_WIRE_FIXED32,
                                              WEIR_WIRE_FIXED64};
    for (size_t i = 0; i < WEIR_COUNT_OF(kTypes); ++i) {
      weir_wire_packed_t packed = weir_wire_packed(&reader, kTypes[i]);
      uint64_t count = 0;
      uint64_t seen = 0;
      uint64_t bits = 0;
      bool is_good = weir_wire_packed_count(packed, &count);
      while (weir_wire_packed_next(&packed, &bits)) ++seen;
      WEIR_CHECK(is_good == !packed.failed && (!is_good || seen == count));
    }
    if (reader.type == WEIR_WIRE_BYTES && depth < 10) walk(reader.bytes, depth + 1);
  }
  WEIR_CHECK(reader.error || total == message.size);
  weir_status_destroy(weir_wire_check(&reader, "input"));
}

// Wraps |data| in a message whose size was not known when it began.
static void wrap(weir_view_t data) {
  weir_strbuf_t out = {0};
  size_t begin = weir_wire_begin(&out, 1);
  weir_strbuf_append(&out, data.data, data.size);
  weir_wire_end(&out, begin);
  weir_wire_reader_t reader = weir_wire_reader(weir_strbuf_view(&out));
  WEIR_CHECK(weir_wire_next(&reader) && weir_view_equal(reader.bytes, data));
  WEIR_CHECK(!weir_wire_next(&reader) && !reader.error);
  weir_strbuf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  walk(weir_view(data, size), 0);
  wrap(weir_view(data, size));
  return 0;
}
