// png_absent.c — What stands in for the PNG codec in a build without libpng.
#include "image/png.h"

static weir_status_t* absent(void) {
  return WEIR_STATUS(UNIMPLEMENTED, "PNG files: Weir was built without libpng");
}

weir_status_t* weir_png_open(weir_view_t data, weir_png_t** out_png) {
  (void)data, (void)out_png;
  return absent();
}

void weir_png_destroy(weir_png_t* png) { (void)png; }

void weir_png_size(const weir_png_t* png, uint32_t* out_width, uint32_t* out_height,
                   int* out_channels) {
  (void)png;
  *out_width = *out_height = 0;
  *out_channels = 0;
}

weir_status_t* weir_png_decode(weir_png_t* png, int channels, int bits, void* pixels) {
  (void)png, (void)channels, (void)bits, (void)pixels;
  return absent();
}

weir_status_t* weir_png_encode(const weir_png_source_t* source, int level, weir_strbuf_t* out) {
  (void)source, (void)level, (void)out;
  return absent();
}
