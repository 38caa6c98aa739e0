// jxl.h — JPEG XL images, by libjxl, which is opened when the first is decoded. Thread-safe.
//
// Without the library all is UNIMPLEMENTED, with a message that says what is missing.
#ifndef WEIR_IMAGE_JXL_H_
#define WEIR_IMAGE_JXL_H_

#include "base/string.h"

typedef struct weir_jxl_t {
  uint32_t width, height;  // as it is to be shown
  int channels;            // 1 grey, 3 RGB, and one more with an alpha channel
} weir_jxl_t;

// Reads the header. INVALID_ARGUMENT for what is none.
WEIR_MUST_USE weir_status_t* weir_jxl_open(weir_view_t data, weir_jxl_t* out_jxl);
// Decodes the image, of an animated one the last frame, into height * width * channels bytes.
WEIR_MUST_USE weir_status_t* weir_jxl_decode(weir_view_t data, const weir_jxl_t* jxl,
                                             uint8_t* pixels);

#endif  // WEIR_IMAGE_JXL_H_
