// gif_fuzz.c — Fuzz target: any bytes as a GIF file and as a BMP file.
#include "base/alloc.h"
#include "image/bmp.h"
#include "image/gif.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void decode_gif(weir_view_t data) {
  weir_gif_t* gif = NULL;
  int64_t frames = 0, width = 0, height = 0;
  weir_status_t* status = weir_gif_open(data, &gif);
  if (!status) {
    weir_gif_size(gif, &frames, &width, &height);
    const int64_t bytes = width * height * 3;
    if (bytes <= 1 << 20) {
      frames = WEIR_MIN(frames, 8);
      uint8_t* pixels = weir_malloc((size_t)(frames * bytes));
      status = weir_gif_decode(gif, frames, pixels);
      weir_free(pixels);
    }
  }
  weir_status_destroy(status);
  weir_gif_destroy(gif);
}

static void decode_bmp(weir_view_t data, int channels) {
  weir_bmp_t bmp;
  weir_status_t* status = weir_bmp_open(data, &bmp);
  if (!status) {
    uint8_t* pixels = weir_malloc((size_t)(bmp.width * bmp.height * channels));
    weir_bmp_decode(&bmp, channels, pixels);
    weir_free(pixels);
  }
  weir_status_destroy(status);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  decode_gif(weir_view(data, size));
  decode_bmp(weir_view(data, size), size % 2 ? 3 : 4);
  return 0;
}
