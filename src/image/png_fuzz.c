// png_fuzz.c — Fuzz target: any bytes as a PNG; what can be decoded must come back when encoded.
#include "base/alloc.h"
#include "image/png.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_png_t png;
  weir_status_t* status = weir_png_open(weir_view(data, size), &png);
  if (!status && (uint64_t)png.width * png.height <= 1 << 20) {
    for (int channels = 1; !status && channels <= 4; ++channels) {
      const int bits = size % 2 ? 8 : 16;
      const size_t bytes = (size_t)png.width * png.height * (size_t)channels * (size_t)bits / 8;
      uint8_t *pixels = weir_malloc(bytes), *again = weir_malloc(bytes);
      status = weir_png_decode(&png, channels, bits, pixels);
      if (!status) {
        weir_strbuf_t file = {0};
        weir_png_t copy;
        const weir_png_source_t source = {.pixels = pixels,
                                          .width = png.width,
                                          .height = png.height,
                                          .channels = channels,
                                          .bits = bits};
        WEIR_CHECK(!weir_png_encode(&source, 1, &file));
        WEIR_CHECK(!weir_png_open(weir_strbuf_view(&file), &copy));
        WEIR_CHECK(copy.width == png.width && copy.channels == channels);
        WEIR_CHECK(!weir_png_decode(&copy, channels, bits, again));
        WEIR_CHECK(memcmp(pixels, again, bytes) == 0);
        weir_strbuf_free(&file);
      }
      weir_free(pixels);
      weir_free(again);
    }
  }
  weir_status_destroy(status);
  return 0;
}
