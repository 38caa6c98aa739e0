// deflate_fuzz.c — Fuzz target: any bytes as compressed streams; and deflated, they must come back.
#include "file/deflate.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const weir_view_t rest = weir_view(data + 1, size - 1);
  const weir_deflate_format_t format = (weir_deflate_format_t)(data[0] % 3);
  weir_strbuf_t out = {0}, deflated = {0}, again = {0};
  weir_status_destroy(weir_inflate(format, rest, 1 << 20, &out));
  WEIR_CHECK(out.size <= (1 << 20) + (1 << 15));
  WEIR_CHECK(!weir_deflate(format, data[0] / 3 % 10, rest, &deflated));
  WEIR_CHECK(!weir_inflate(format, weir_strbuf_view(&deflated), SIZE_MAX, &again));
  WEIR_CHECK(weir_view_equal(weir_strbuf_view(&again), rest));
  weir_strbuf_free(&out);
  weir_strbuf_free(&deflated);
  weir_strbuf_free(&again);
  return 0;
}
