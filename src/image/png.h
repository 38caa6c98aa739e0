// png.h — PNG images: decoding to what TensorFlow makes of them, and encoding; both by libpng.
//
// Decoders are thread-compatible; the encoder is thread-safe. A build without libpng answers
// UNIMPLEMENTED.
#ifndef WEIR_IMAGE_PNG_H_
#define WEIR_IMAGE_PNG_H_

#include "base/string.h"

// ---- decoding ----

typedef struct weir_png_t weir_png_t;

// Reads all up to the pixels. |data| is borrowed until destroy. INVALID_ARGUMENT says what is
// wrong.
WEIR_MUST_USE weir_status_t* weir_png_open(weir_view_t data, weir_png_t** out_png);
void weir_png_destroy(weir_png_t* png);
// |out_channels|: 1 to 4, what the file holds, a palette looked up.
void weir_png_size(const weir_png_t* png, uint32_t* out_width, uint32_t* out_height,
                   int* out_channels);
// Decodes into |pixels|: height * width * |channels| (1 to 4: gray, gray and alpha, RGB, RGBA)
// numbers of |bits| (8 or 16, host order). To be called once.
WEIR_MUST_USE weir_status_t* weir_png_decode(weir_png_t* png, int channels, int bits, void* pixels);

// ---- encoding ----

typedef struct weir_png_source_t {
  const void* pixels;  // as decoding gives them
  uint32_t width, height;
  int channels;  // 1 to 4
  int bits;      // 8 or 16
} weir_png_source_t;

// Appends a file. |level| is zlib's: 0 to 9, or -1 for the usual one. INTERNAL, as in TensorFlow,
// for sizes that no PNG has.
WEIR_MUST_USE weir_status_t* weir_png_encode(const weir_png_source_t* source, int level,
                                             weir_strbuf_t* out);

#endif  // WEIR_IMAGE_PNG_H_
