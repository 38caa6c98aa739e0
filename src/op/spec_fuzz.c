// spec_fuzz.c — The parser of op definitions and of OpDef messages on arbitrary bytes: statuses,
// never crashes.
#include <stddef.h>
#include <stdint.h>

#include "op/shape_ctx.h"
#include "op/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// The first byte chooses what the rest is: attrs, attrs|inputs, or an OpDef.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  weir_arena_t arena = {0};
  weir_tensor_list_t tensors = {0};
  weir_op_t op;
  weir_op_t* parsed = NULL;
  if (data[0] % 2) {
    weir_view_t proto = weir_view(data + 1, size - 1);
    weir_status_destroy(weir_op_parse(proto, &arena, &tensors, &parsed));
  } else {
    char* text = weir_strndup((const char*)data + 1, size - 1);
    char* inputs = text ? strchr(text, '|') : NULL;
    if (inputs) *inputs++ = '\0';
    weir_op_def_t def = {
        .name = "Fuzz", .attrs = text, .inputs = inputs, .infer_shape = weir_shape_fn_unknown};
    weir_status_t* status = weir_spec_parse("fuzz", &def, &arena, &tensors, &op);
    if (!status) parsed = &op;
    weir_status_destroy(status);
    weir_strbuf_t bytes = {0};
    if (parsed) weir_status_destroy(weir_op_write(parsed, &bytes));
    weir_strbuf_free(&bytes);
    weir_free(text);
  }
  weir_tensor_list_free(&tensors);
  weir_arena_free(&arena);
  return 0;
}
