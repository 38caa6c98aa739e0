// json_fuzz.c — Fuzz target: any bytes as JSON. What is read has members as counted, within depth.
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void check(const weir_json_t* value, int depth) {
  WEIR_CHECK(depth <= WEIR_JSON_MAX_DEPTH);
  size_t count = 0;
  int64_t number = 0;
  if (weir_json_int(value, &number)) WEIR_CHECK(value->kind == WEIR_JSON_NUMBER);
  for (const weir_json_t* member = value->first; member; member = member->next, ++count) {
    WEIR_CHECK(value->kind == WEIR_JSON_ARRAY || value->kind == WEIR_JSON_OBJECT);
    check(member, depth + 1);
  }
  WEIR_CHECK(count == value->count);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_arena_t arena = {0};
  const weir_json_t* value = NULL;
  weir_status_t* status = weir_json_parse(weir_view(data, size), &arena, &value);
  if (!status) check(value, 0);
  weir_status_destroy(status);
  weir_arena_free(&arena);
  return 0;
}
