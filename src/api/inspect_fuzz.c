// inspect_fuzz.c — Fuzz target: any bytes as a file of which is told what it is. Where that is
// JSON, it can be read.
#include "api/inspect.h"
#include "base/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void check_json(weir_view_t text) {
  weir_arena_t arena = {0};
  const weir_json_t* root = NULL;
  weir_status_t* status = weir_json_parse(text, &arena, &root);
  WEIR_CHECK(!status && root->kind == WEIR_JSON_OBJECT && weir_json_find(root, "kind"));
  weir_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (int is_json = 0; is_json < 2; ++is_json) {
    char* text = NULL;
    // In a folder that is nowhere: neither checkpoints nor variables are beside it.
    weir_status_t* status =
        weir_inspect_bytes(weir_view(data, size), "/nowhere/fuzz", is_json, &text);
    if (!status && is_json) check_json(weir_view_of(text));
    WEIR_CHECK(!status == (text != NULL));
    weir_status_destroy(status);
    weir_free(text);
  }
  return 0;
}
