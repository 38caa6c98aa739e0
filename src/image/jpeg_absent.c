// jpeg_absent.c — What stands in for the JPEG codec in a build without libjpeg.
#include "image/jpeg.h"

static weir_status_t* absent(void) {
  return WEIR_STATUS(UNIMPLEMENTED, "JPEG files: Weir was built without libjpeg");
}

weir_status_t* weir_jpeg_open(weir_view_t data, const weir_jpeg_options_t* options,
                              weir_jpeg_t** out_jpeg) {
  (void)data, (void)options, (void)out_jpeg;
  return absent();
}

void weir_jpeg_destroy(weir_jpeg_t* jpeg) { (void)jpeg; }

void weir_jpeg_size(const weir_jpeg_t* jpeg, int64_t* out_width, int64_t* out_height,
                    int* out_channels) {
  (void)jpeg;
  *out_width = *out_height = *out_channels = 0;
}

weir_status_t* weir_jpeg_read_size(weir_view_t data, int64_t* out_width, int64_t* out_height,
                                   int* out_channels) {
  (void)data, (void)out_width, (void)out_height, (void)out_channels;
  return absent();
}

weir_status_t* weir_jpeg_decode(weir_jpeg_t* jpeg, uint8_t* pixels) {
  (void)jpeg, (void)pixels;
  return absent();
}

weir_status_t* weir_jpeg_encode(const weir_jpeg_source_t* source, const weir_jpeg_params_t* params,
                                weir_strbuf_t* out) {
  (void)source, (void)params, (void)out;
  return absent();
}
