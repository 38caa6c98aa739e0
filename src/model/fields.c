// fields.c — What readers of model files share.
#include "model/fields.h"

enum { ENTRY_KEY = 1, ENTRY_VALUE = 2 };

weir_status_t* weir_model_check(const weir_wire_reader_t* reader, const char* what) {
  if (!reader->error) return NULL;
  return WEIR_STATUS(DATA_LOSS, "malformed %s: %s", what, reader->error);
}

weir_status_t* weir_model_map_entry(weir_view_t entry, const char* what, weir_view_t* out_key,
                                    weir_view_t* out_value) {
  weir_wire_reader_t r = weir_wire_reader(entry);
  *out_key = weir_view("", 0);
  *out_value = weir_view("", 0);
  while (weir_wire_next(&r)) {
    if (r.type != WEIR_WIRE_BYTES) continue;
    if (r.field == ENTRY_KEY) *out_key = r.bytes;
    if (r.field == ENTRY_VALUE) *out_value = r.bytes;
  }
  return weir_model_check(&r, what);
}
