// text_fuzz.c — Fuzz target: any bytes as text and as wire bytes. What parses must print, and print
// the same again.
#include "base/alloc.h"
#include "wire/text.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void check_text(const weir_message_t* message, weir_view_t text) {
  weir_strbuf_t wire = {0};
  weir_strbuf_t first = {0};
  weir_strbuf_t second = {0};
  weir_status_t* status = weir_text_parse(message, text, &wire);
  if (!status) {
    WEIR_CHECK(!weir_text_print(message, weir_strbuf_view(&wire), &first));
    wire.size = 0;
    WEIR_CHECK(!weir_text_parse(message, weir_strbuf_view(&first), &wire));
    WEIR_CHECK(!weir_text_print(message, weir_strbuf_view(&wire), &second));
    WEIR_CHECK(weir_view_equal(weir_strbuf_view(&first), weir_strbuf_view(&second)));
  }
  weir_status_destroy(status);
  weir_strbuf_free(&wire);
  weir_strbuf_free(&first);
  weir_strbuf_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const weir_message_t* const kMessages[] = {
      &weir_message_graph_def, &weir_message_attr_value, &weir_message_function_def,
      &weir_message_event};
  if (size == 0) return 0;
  const weir_message_t* message = kMessages[data[0] % WEIR_COUNT_OF(kMessages)];
  weir_view_t rest = weir_view(data + 1, size - 1);
  check_text(message, rest);
  weir_strbuf_t out = {0};
  weir_status_destroy(weir_text_print(message, rest, &out));
  weir_strbuf_free(&out);
  return 0;
}
