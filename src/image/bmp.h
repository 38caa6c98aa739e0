// bmp.h — BMP images without compression: 8 bits of gray, or 8 bits of each of three or four
// channels.
#ifndef WEIR_IMAGE_BMP_H_
#define WEIR_IMAGE_BMP_H_

#include "base/string.h"

typedef struct weir_bmp_t {
  int64_t width, height;
  int channels;         // 1, 3 or 4: what the file holds
  bool is_top_down;     // the first row is the image's
  const uint8_t* rows;  // borrowed from the data
  int64_t row_size;     // bytes of a row, with what fills it up
} weir_bmp_t;

// Reads the header; |data| is borrowed as long as |out_bmp| is used. INVALID_ARGUMENT says what is
// wrong, in TensorFlow's words.
WEIR_MUST_USE weir_status_t* weir_bmp_open(weir_view_t data, weir_bmp_t* out_bmp);
// Writes height * width * |channels| bytes: gray, RGB or RGBA. |channels| is the file's, or 3 or 4.
void weir_bmp_decode(const weir_bmp_t* bmp, int channels, uint8_t* pixels);

#endif  // WEIR_IMAGE_BMP_H_
