// webp.h — WebP images, by libwebp, which is opened when the first is decoded. Thread-safe.
//
// Without the library all is UNIMPLEMENTED, with a message that says what is missing.
#ifndef WEIR_IMAGE_WEBP_H_
#define WEIR_IMAGE_WEBP_H_

#include "base/string.h"

typedef struct weir_webp_t {
  int width, height;
  int channels;    // 3 RGB, 4 RGBA
  int64_t frames;  // 0: it is not animated
} weir_webp_t;

// Reads the header. INVALID_ARGUMENT for what is none.
WEIR_MUST_USE weir_status_t* weir_webp_open(weir_view_t data, weir_webp_t* out_webp);
// Decodes the image, or the first |frames| of an animated one, whose channels are 4, into frames *
// height * width * channels bytes.
WEIR_MUST_USE weir_status_t* weir_webp_decode(weir_view_t data, const weir_webp_t* webp,
                                              int64_t frames, uint8_t* pixels);

#endif  // WEIR_IMAGE_WEBP_H_
