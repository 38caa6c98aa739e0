// jpeg_fuzz.c — Fuzz target: any bytes as a JPEG file, and as pixels to be encoded.
#include "base/alloc.h"
#include "image/jpeg.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void decode(weir_view_t data, const weir_jpeg_options_t* options) {
  weir_jpeg_t* jpeg = NULL;
  int64_t width = 0, height = 0;
  int channels = 0;
  weir_status_t* status = weir_jpeg_open(data, options, &jpeg);
  if (!status) {
    weir_jpeg_size(jpeg, &width, &height, &channels);
    if (width * height <= 1 << 18) {
      uint8_t* pixels = weir_malloc((size_t)(width * height * channels));
      status = weir_jpeg_decode(jpeg, pixels);
      weir_free(pixels);
    }
  }
  weir_status_destroy(status);
  weir_jpeg_destroy(jpeg);
}

// What was encoded can be decoded, to the same size.
static void encode(const uint8_t* data, size_t size, bool is_progressive) {
  const weir_jpeg_source_t source = {.pixels = data + 3,
                                     .width = 1 + data[0] % 40,
                                     .height = 1 + data[1] % 40,
                                     .channels = data[2] % 2 ? 3 : 1};
  if (size - 3 < (size_t)(source.width * source.height * source.channels)) return;
  const weir_jpeg_params_t params = {.quality = data[2] / 2,
                                     .is_progressive = is_progressive,
                                     .is_optimized = data[0] > 127,
                                     .has_small_chroma = data[1] > 127};
  const weir_jpeg_options_t options = {.ratio = 1, .acceptable_fraction = 1};
  weir_strbuf_t file = {0};
  weir_jpeg_t* jpeg = NULL;
  uint8_t pixels[40 * 40 * 3];
  WEIR_CHECK(!weir_jpeg_encode(&source, &params, &file));
  WEIR_CHECK(!weir_jpeg_open(weir_strbuf_view(&file), &options, &jpeg));
  WEIR_CHECK(!weir_jpeg_decode(jpeg, pixels));
  weir_jpeg_destroy(jpeg);
  weir_strbuf_free(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const weir_jpeg_options_t plain = {
      .ratio = 1 << data[size - 1] % 4, .is_fancy = true, .acceptable_fraction = 1};
  const weir_jpeg_options_t other = {
      .channels = 3, .ratio = 1, .is_fast = true, .recovers = true, .acceptable_fraction = 0};
  decode(weir_view(data, size), &plain);
  decode(weir_view(data, size), &other);
  encode(data, size, data[size - 1] > 127);
  return 0;
}
