// png.h — PNG images: any that libpng reads, converted as TensorFlow asks it to; and encoding.
//
// Thread-safe: the functions keep nothing.
#ifndef WEIR_KERNEL_PNG_H_
#define WEIR_KERNEL_PNG_H_

#include "base/string.h"

// What stands before the pixels. A value type that borrows the file's bytes.
typedef struct weir_png_t {
  weir_view_t data;
  uint32_t width, height;
  uint8_t bit_depth;   // 1, 2, 4, 8, 16
  uint8_t color_type;  // 0 gray, 2 RGB, 3 palette, 4 gray and alpha, 6 RGB and alpha
  bool is_interlaced;
  bool has_transparency;    // of the palette, or one colour
  int channels;             // 1 to 4: what the file holds, a palette looked up
  uint16_t transparent[3];  // the colour, where there is no palette
  uint8_t palette[256][4];  // RGBA
  uint32_t gamma;           // of the file, times 100000; 0 where it does not say
  size_t pixels_at;         // of the first chunk of pixels, in |data|
} weir_png_t;

// Reads all up to the pixels. INVALID_ARGUMENT says what is wrong.
WEIR_MUST_USE weir_status_t* weir_png_open(weir_view_t data, weir_png_t* out_png);

// Decodes into |pixels|: height * width * |channels| (1 to 4: gray, gray and alpha, RGB, RGBA)
// numbers of |bits| (8 or 16, host order).
WEIR_MUST_USE weir_status_t* weir_png_decode(const weir_png_t* png, int channels, int bits,
                                             void* pixels);

typedef struct weir_png_source_t {
  const void* pixels;  // as decoding gives them
  uint32_t width, height;
  int channels;  // 1 to 4
  int bits;      // 8 or 16
} weir_png_source_t;

// Appends a file. |level| as for weir_deflate. INVALID_ARGUMENT for an image without pixels.
WEIR_MUST_USE weir_status_t* weir_png_encode(const weir_png_source_t* source, int level,
                                             weir_strbuf_t* out);

#endif  // WEIR_KERNEL_PNG_H_
