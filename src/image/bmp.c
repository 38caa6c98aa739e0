// bmp.c — BMP images without compression.
#include "image/bmp.h"

enum { kHeaderSize = 32 };  // of what is read of it

static uint32_t word_at(weir_view_t data, size_t at) {
  const uint8_t* bytes = (const uint8_t*)data.data + at;
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static weir_status_t* check_sizes(const weir_bmp_t* bmp, int64_t height, int64_t offset) {
  if (bmp->channels != 1 && bmp->channels != 3 && bmp->channels != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Number of channels inherent in the image must be 1, 3 or 4, was %d",
                       bmp->channels);
  }
  if (bmp->width <= 0) return WEIR_STATUS(INVALID_ARGUMENT, "Width must be positive");
  if (height == 0) return WEIR_STATUS(INVALID_ARGUMENT, "Height must be nonzero");
  if (offset < 0) return WEIR_STATUS(INVALID_ARGUMENT, "header size must be nonnegative");
  if (bmp->width * bmp->height < INT32_MAX / 8) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Total possible pixel bytes must be less than 2^30");
}

weir_status_t* weir_bmp_open(weir_view_t data, weir_bmp_t* out_bmp) {
  if (data.size < kHeaderSize) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Incomplete bmp content, requires at least 32 bytes to find the header "
                       "size, width, height, and bpp, got %zu bytes",
                       data.size);
  }
  const int64_t offset = (int32_t)word_at(data, 10), height = (int32_t)word_at(data, 22);
  weir_bmp_t bmp = {.width = (int32_t)word_at(data, 18),
                    .height = height < 0 ? -height : height,
                    .channels = (int16_t)(word_at(data, 28) & 0xffff) / 8,
                    .is_top_down = height < 0};
  WEIR_TRY(check_sizes(&bmp, height, offset));
  bmp.row_size = (bmp.width * bmp.channels + 3) / 4 * 4;
  const int64_t rest = (int64_t)data.size - offset - bmp.row_size * bmp.height;
  if (rest != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Input size should match (header_size + row_size * abs_height) but they "
                       "differ by %lld",
                       (long long)rest);
  }
  bmp.rows = (const uint8_t*)data.data + offset;
  *out_bmp = bmp;
  return NULL;
}

// Blue comes first in the file.
static void convert_row(const uint8_t* from, int from_channels, int64_t width, int to_channels,
                        uint8_t* to) {
  const bool is_gray = from_channels == 1;
  for (int64_t x = 0; x < width; ++x, from += from_channels, to += to_channels) {
    to[0] = from[is_gray ? 0 : 2];
    if (to_channels == 1) continue;
    to[1] = from[is_gray ? 0 : 1];
    to[2] = from[0];
    if (to_channels == 4) to[3] = from_channels == 4 ? from[3] : 255;
  }
}

void weir_bmp_decode(const weir_bmp_t* bmp, int channels, uint8_t* pixels) {
  for (int64_t y = 0; y < bmp->height; ++y) {
    const int64_t row = bmp->is_top_down ? y : bmp->height - 1 - y;
    convert_row(bmp->rows + row * bmp->row_size, bmp->channels, bmp->width, channels,
                pixels + y * bmp->width * channels);
  }
}
