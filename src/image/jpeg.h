// jpeg.h — JPEG images: decoding to TensorFlow's pixels and encoding to its bytes, both by
// libjpeg-turbo.
//
// Decoders are thread-compatible; the encoder is thread-safe. A build without libjpeg answers
// UNIMPLEMENTED.
#ifndef WEIR_IMAGE_JPEG_H_
#define WEIR_IMAGE_JPEG_H_

#include "base/string.h"

// ---- decoding ----

typedef struct weir_jpeg_options_t {
  int channels;               // 1 gray, 3 RGB, 0: as the file has it
  int ratio;                  // 1, 2, 4, 8: so many times smaller
  bool is_fancy;              // colours of lower resolution are interpolated, not repeated
  bool is_fast;               // the less accurate inverse DCT
  bool recovers;              // a file that is cut off is decoded as far as it goes
  float acceptable_fraction;  // of the rows; else what is missing is black
  bool crops;                 // to a window of the (smaller) image:
  int64_t crop_y, crop_x, crop_height, crop_width;
} weir_jpeg_options_t;

typedef struct weir_jpeg_t weir_jpeg_t;

// Reads the headers. |data| is borrowed until destroy. INVALID_ARGUMENT says what is wrong.
WEIR_MUST_USE weir_status_t* weir_jpeg_open(weir_view_t data, const weir_jpeg_options_t* options,
                                            weir_jpeg_t** out_jpeg);
void weir_jpeg_destroy(weir_jpeg_t* jpeg);
void weir_jpeg_size(const weir_jpeg_t* jpeg, int64_t* out_width, int64_t* out_height,
                    int* out_channels);
// Reads the sizes that the headers of |data| say; |out_channels|: of the file.
WEIR_MUST_USE weir_status_t* weir_jpeg_read_size(weir_view_t data, int64_t* out_width,
                                                 int64_t* out_height, int* out_channels);
// Decodes into |pixels|: height * width * channels bytes. To be called once.
WEIR_MUST_USE weir_status_t* weir_jpeg_decode(weir_jpeg_t* jpeg, uint8_t* pixels);

// ---- encoding ----

typedef struct weir_jpeg_source_t {
  const uint8_t* pixels;  // height * width * channels
  int width, height;
  int channels;  // 1 gray, 3 RGB
} weir_jpeg_source_t;

typedef struct weir_jpeg_params_t {
  int quality;  // 0 to 100
  bool is_progressive;
  bool is_optimized;      // Huffman codes of the image's own
  bool has_small_chroma;  // colours at half the resolution
  uint8_t density_unit;   // 1: dots an inch, 2: a centimetre
  uint16_t x_density, y_density;
  weir_view_t xmp;  // metadata to embed; empty for none
} weir_jpeg_params_t;

// Appends a file. INTERNAL, as in TensorFlow, for sizes that no JPEG has and too much metadata.
WEIR_MUST_USE weir_status_t* weir_jpeg_encode(const weir_jpeg_source_t* source,
                                              const weir_jpeg_params_t* params, weir_strbuf_t* out);

#endif  // WEIR_IMAGE_JPEG_H_
