// webp_fuzz.c — Fuzz target: any bytes as a WebP file, animated or not.
#include "base/alloc.h"
#include "image/webp.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weir_webp_t webp;
  weir_status_t* status = weir_webp_open(weir_view(data, size), &webp);
  if (!status && (int64_t)webp.width * webp.height <= 1 << 16) {
    const int64_t frames = webp.frames > 0 ? WEIR_MIN(webp.frames, 8) : 1;
    uint8_t* pixels = weir_malloc((size_t)frames * (size_t)webp.width * (size_t)webp.height * 4);
    status = weir_webp_decode(weir_view(data, size), &webp, frames, pixels);
    weir_free(pixels);
  }
  weir_status_destroy(status);
  return 0;
}
