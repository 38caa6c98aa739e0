// png_fuzz.c — Fuzz target: any bytes as a PNG; what can be decoded must come back when encoded.
#include "base/alloc.h"
#include "image/png.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void check_again(const weir_png_source_t* source, size_t bytes) {
  weir_strbuf_t file = {0};
  weir_png_t* png = NULL;
  uint32_t width = 0, height = 0;
  int channels = 0;
  uint8_t* again = weir_malloc(bytes);
  WEIR_CHECK(!weir_png_encode(source, 1, &file));
  WEIR_CHECK(!weir_png_open(weir_strbuf_view(&file), &png));
  weir_png_size(png, &width, &height, &channels);
  WEIR_CHECK(width == source->width && height == source->height && channels == source->channels);
  WEIR_CHECK(!weir_png_decode(png, channels, source->bits, again));
  WEIR_CHECK(memcmp(source->pixels, again, bytes) == 0);
  weir_png_destroy(png);
  weir_free(again);
  weir_strbuf_free(&file);
}

static weir_status_t* decode(weir_view_t data, int channels, int bits) {
  weir_png_source_t image = {.channels = channels, .bits = bits};
  weir_png_t* png = NULL;
  int own_channels = 0;
  WEIR_TRY(weir_png_open(data, &png));
  weir_png_size(png, &image.width, &image.height, &own_channels);
  if ((uint64_t)image.width * image.height > 1 << 20) {
    weir_png_destroy(png);
    return NULL;
  }
  const size_t bytes = (size_t)image.width * image.height * (size_t)channels * (size_t)bits / 8;
  uint8_t* pixels = weir_malloc(bytes);
  weir_status_t* status = weir_png_decode(png, channels, bits, pixels);
  image.pixels = pixels;
  if (!status) check_again(&image, bytes);
  weir_png_destroy(png);
  weir_free(pixels);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (int channels = 1; channels <= 4; ++channels) {
    weir_status_t* status = decode(weir_view(data, size), channels, size % 2 ? 8 : 16);
    const bool is_bad = status != NULL;
    weir_status_destroy(status);
    if (is_bad) break;
  }
  return 0;
}
