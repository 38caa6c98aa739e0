// descriptor_fuzz.c — Fuzz target: any bytes as a FileDescriptorSet, and as messages of what it
// describes. What was normalised is normal.
#include "wire/descriptor.h"
#include "wire/text.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void check_normal(const weir_proto_message_t* message, weir_view_t bytes) {
  weir_strbuf_t once = {0}, twice = {0};
  weir_status_t* status = weir_proto_normalize(message, bytes, false, &once);
  if (!status) {
    WEIR_CHECK(!weir_proto_normalize(message, weir_strbuf_view(&once), false, &twice));
    WEIR_CHECK(weir_view_equal(weir_strbuf_view(&once), weir_strbuf_view(&twice)));
  }
  weir_status_destroy(status);
  weir_strbuf_free(&once);
  weir_strbuf_free(&twice);
}

static void check_message(const weir_descriptors_t* all, const char* name, weir_view_t bytes) {
  const weir_proto_message_t* message = weir_descriptors_find(all, weir_view_of(name));
  weir_strbuf_t wire = {0};
  if (!message) return;
  check_normal(message, bytes);
  weir_status_t* status = weir_text_parse(&message->table, bytes, &wire);
  if (!status) check_normal(message, weir_strbuf_view(&wire));
  weir_status_destroy(status);
  weir_strbuf_free(&wire);
}

// The first byte says how many of the others describe, in units of four; those after them are a
// message, or the text of one.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_descriptors_t* all = NULL;
  if (size == 0) return 0;
  const size_t described = WEIR_MIN((size_t)data[0] * 4, size - 1);
  weir_status_t* status = weir_descriptors_create(weir_view(data + 1, described), &all);
  const weir_view_t rest = weir_view(data + 1 + described, size - 1 - described);
  if (!status) {
    check_message(all, "M", rest);
    check_message(all, "p.M", rest);
  }
  weir_status_destroy(status);
  weir_descriptors_destroy(all);
  return 0;
}
