// webp_frames.c — The frames of an animated WebP file, and how they are drawn one over the other.
#include "image/webp_frames.h"

// ---- chunks ----
static uint32_t number_at(weir_view_t data, size_t at, int bytes) {
  uint32_t number = 0;
  for (int i = 0; i < bytes; ++i) number |= (uint32_t)(uint8_t)data.data[at + (size_t)i] << 8 * i;
  return number;
}

// Takes a chunk, which is filled up to an even size; false: it is not whole.
static bool take_chunk(weir_view_t* rest, const char** out_name, weir_view_t* out_chunk) {
  if (rest->size < 8) return false;
  const size_t size = number_at(*rest, 4, 4), padded = size + (size & 1);
  if (rest->size - 8 < padded) return false;
  *out_name = rest->data;
  *out_chunk = weir_view(rest->data + 8, size);
  *rest = weir_view(rest->data + 8 + padded, rest->size - 8 - padded);
  return true;
}

static weir_status_t* bad(const char* what) {
  return WEIR_STATUS(INVALID_ARGUMENT, "Failed to decode WebP Animation: %s", what);
}

weir_status_t* weir_webp_reader_init(weir_webp_reader_t* reader, weir_view_t data) {
  const char* name;
  weir_view_t head;
  if (data.size < 12) return bad("it is cut off");
  const size_t size = number_at(data, 4, 4);
  if (size < 4 || data.size - 8 < size) return bad("it is cut off");
  reader->rest = weir_view(data.data + 12, size - 4);
  if (!take_chunk(&reader->rest, &name, &head) || memcmp(name, "VP8X", 4) != 0 || head.size < 10)
    return bad("it has no canvas");
  reader->width = 1 + number_at(head, 4, 3);
  reader->height = 1 + number_at(head, 7, 3);
  return NULL;
}

weir_status_t* weir_webp_reader_next(weir_webp_reader_t* reader, weir_webp_frame_t* out_frame,
                                     bool* out_found) {
  enum { kHead = 16 };
  const char* name;
  weir_view_t chunk;
  for (*out_found = false; reader->rest.size > 0;) {
    if (!take_chunk(&reader->rest, &name, &chunk)) return bad("a chunk is cut off");
    if (memcmp(name, "ANMF", 4) != 0) continue;
    if (chunk.size < kHead) return bad("a frame is cut off");
    const uint32_t flags = number_at(chunk, 15, 1);
    *out_frame = (weir_webp_frame_t){.left = 2 * (int64_t)number_at(chunk, 0, 3),
                                     .top = 2 * (int64_t)number_at(chunk, 3, 3),
                                     .is_blended = !(flags & 2),
                                     .is_disposed = flags & 1,
                                     .image = weir_view(chunk.data + kHead, chunk.size - kHead)};
    *out_found = true;
    return NULL;
  }
  return NULL;
}

// ---- drawing ----
static bool is_full(const weir_webp_reader_t* reader, const weir_webp_frame_t* frame) {
  return frame->width == reader->width && frame->height == reader->height;
}

static bool is_key(const weir_webp_reader_t* reader, const weir_webp_frame_t* frame,
                   const weir_webp_frame_t* last) {
  if (!last) return true;
  if ((!frame->has_alpha || !frame->is_blended) && is_full(reader, frame)) return true;
  return last->is_disposed && (is_full(reader, last) || last->is_key);
}

// |pixel| over |under|, rounded as libwebp does.
static void blend(const uint8_t* pixel, const uint8_t* under, uint8_t* out) {
  const uint32_t alpha = pixel[3];
  if (alpha == 0) {
    memmove(out, under, 4);
    return;
  }
  const uint32_t left = under[3] * (256 - alpha) >> 8, sum = alpha + left;
  const uint32_t scale = (1u << 24) / sum;
  for (int i = 0; i < 3; ++i)
    out[i] = (uint8_t)((pixel[i] * alpha + under[i] * left) * scale >> 24);
  out[3] = (uint8_t)sum;
}

static bool is_within(const weir_webp_frame_t* frame, int64_t y, int64_t x) {
  return y >= frame->top && y < frame->top + frame->height && x >= frame->left &&
         x < frame->left + frame->width;
}

// What |last| leaves behind.
static void draw_before(const weir_webp_reader_t* reader, const weir_webp_frame_t* last,
                        const uint8_t* before, uint8_t* canvas) {
  memcpy(canvas, before, (size_t)(reader->width * reader->height * 4));
  for (int64_t y = 0; last->is_disposed && y < last->height; ++y) {
    memset(canvas + 4 * ((last->top + y) * reader->width + last->left), 0,
           (size_t)(4 * last->width));
  }
}

void weir_webp_draw(const weir_webp_reader_t* reader, weir_webp_frame_t* frame,
                    const weir_webp_frame_t* last, const uint8_t* pixels, const uint8_t* before,
                    uint8_t* canvas) {
  frame->is_key = is_key(reader, frame, last);
  if (frame->is_key) {
    memset(canvas, 0, (size_t)(reader->width * reader->height * 4));
  } else {
    draw_before(reader, last, before, canvas);
  }
  const bool blends = frame->is_blended && !frame->is_key;
  for (int64_t y = frame->top; y < frame->top + frame->height; ++y) {
    for (int64_t x = frame->left; x < frame->left + frame->width; ++x, pixels += 4) {
      uint8_t* out = canvas + 4 * (y * reader->width + x);
      // Over what was disposed of there is nothing to blend with, and no rounding.
      if (blends && pixels[3] != 255 && !(last->is_disposed && is_within(last, y, x))) {
        blend(pixels, out, out);
      } else {
        memcpy(out, pixels, 4);
      }
    }
  }
}
