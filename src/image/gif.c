// gif.c — GIF images: the frames of a file, each drawn over the one before it.
#include "image/gif.h"

#include "base/alloc.h"
#include "base/interrupt.h"
#include "image/gif_lzw.h"

typedef struct colors_t {
  const uint8_t* rgb;  // borrowed from the data; NULL: none
  int count;
} colors_t;

typedef struct frame_t {
  int left, top, width, height;
  bool is_interlaced;
  int transparent;  // a color that is not drawn; -1: none
  colors_t colors;
  const uint8_t* pixels;  // packed
} frame_t;

struct weir_gif_t {
  const uint8_t *at, *end;  // what is left to read
  colors_t colors;          // of frames without their own
  frame_t* frames;          // owned
  int64_t count, capacity;
  int64_t width, height;
  weir_gif_lzw_t lzw;
};

// ---- reading ----
static int word_at(const uint8_t* at) { return at[0] | at[1] << 8; }

// Passes over |size| bytes and returns where they are; NULL: there are not so many.
static const uint8_t* take(weir_gif_t* gif, int64_t size) {
  if (gif->end - gif->at < size) return NULL;
  gif->at += size;
  return gif->at - size;
}

// A table of colors, where |flags| say that there is one.
static bool read_colors(weir_gif_t* gif, int flags, colors_t* colors) {
  if (!(flags & 0x80)) return true;
  colors->count = 2 << (flags & 7);
  colors->rgb = take(gif, 3 * colors->count);
  return colors->rgb != NULL;
}

static weir_status_t* read_header(weir_gif_t* gif) {
  const uint8_t* header = take(gif, 13);
  if (!header || !read_colors(gif, header[10], &gif->colors)) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid GIF data, failed to open gif file: the header is cut off");
  }
  return NULL;
}

// An extension: of those before a frame, the first that is about graphics says what is transparent.
static bool read_extension(weir_gif_t* gif, bool* has_control, int* transparent) {
  const uint8_t* code = take(gif, 1);
  for (bool is_first = true;; is_first = false) {
    const uint8_t* size = code ? take(gif, 1) : NULL;
    const uint8_t* block = size ? take(gif, *size) : NULL;
    if (!block) return false;
    if (*size == 0) return true;
    if (*code != 0xf9 || !is_first || *has_control) continue;
    *has_control = true;
    if (*size == 4 && (block[0] & 1)) *transparent = block[3];
  }
}

static weir_status_t* append(weir_gif_t* gif, const frame_t* frame) {
  if (gif->count == gif->capacity) {
    const int64_t capacity = gif->capacity ? 2 * gif->capacity : 8;
    frame_t* frames = weir_alloc_array((size_t)capacity, sizeof *frames);
    if (!frames) return weir_out_of_memory();
    if (gif->count) memcpy(frames, gif->frames, (size_t)gif->count * sizeof *frames);
    weir_free(gif->frames);
    gif->frames = frames;
    gif->capacity = capacity;
  }
  gif->frames[gif->count++] = *frame;
  gif->width = WEIR_MAX(gif->width, frame->width);
  gif->height = WEIR_MAX(gif->height, frame->height);
  return NULL;
}

// A frame, with all its pixels. |*out_is_whole| is false where they are not there.
static weir_status_t* read_frame(weir_gif_t* gif, int transparent, bool* out_is_whole) {
  const uint8_t* head = take(gif, 9);
  *out_is_whole = false;
  if (!head) return NULL;
  frame_t frame = {.left = word_at(head),
                   .top = word_at(head + 2),
                   .width = word_at(head + 4),
                   .height = word_at(head + 6),
                   .is_interlaced = head[8] & 0x40,
                   .transparent = transparent,
                   .colors = gif->colors};
  const int64_t count = (int64_t)frame.width * frame.height;
  if (!read_colors(gif, head[8], &frame.colors) || count <= 0 || count > INT32_MAX) return NULL;
  frame.pixels = gif->at;
  if (!weir_gif_lzw_init(&gif->lzw, gif->at, gif->end)) return NULL;
  for (int64_t y = 0; y < frame.height; ++y) {
    WEIR_TRY(weir_interrupt_poll(y));
    if (!weir_gif_lzw_read(&gif->lzw, frame.width, NULL)) return NULL;
  }
  const uint8_t* end = weir_gif_lzw_finish(&gif->lzw);
  if (!end) return NULL;
  gif->at = end;
  *out_is_whole = true;
  return append(gif, &frame);
}

// Reads frames until something is not as it should be.
static weir_status_t* read_frames(weir_gif_t* gif) {
  bool has_control = false, is_whole = true;
  int transparent = -1;
  for (;;) {
    const uint8_t* kind = take(gif, 1);
    if (kind && *kind == '!') {
      if (!read_extension(gif, &has_control, &transparent)) return NULL;
    } else if (kind && *kind == ',') {
      WEIR_TRY(read_frame(gif, transparent, &is_whole));
      if (!is_whole) return NULL;
      has_control = false;
      transparent = -1;
    } else {  // the end, be it said or not
      return NULL;
    }
  }
}

weir_status_t* weir_gif_open(weir_view_t data, weir_gif_t** out_gif) {
  weir_gif_t* gif = weir_calloc(1, sizeof *gif);
  if (!gif) return weir_out_of_memory();
  gif->at = (const uint8_t*)data.data;
  gif->end = gif->at + data.size;
  weir_status_t* status = read_header(gif);
  if (!status) status = read_frames(gif);
  if (!status && gif->count == 0) {
    status = WEIR_STATUS(INVALID_ARGUMENT,
                         "Invalid GIF data (size %zu), failed to slurp gif file: no frame is whole",
                         data.size);
  }
  if (status) {
    weir_gif_destroy(gif);
  } else {
    *out_gif = gif;
  }
  return status;
}

void weir_gif_destroy(weir_gif_t* gif) {
  if (!gif) return;
  weir_free(gif->frames);
  weir_free(gif);
}

void weir_gif_size(const weir_gif_t* gif, int64_t* out_frames, int64_t* out_width,
                   int64_t* out_height) {
  *out_frames = gif->count;
  *out_width = gif->width;
  *out_height = gif->height;
}

// ---- drawing ----
// What is left of a row of the frame within the canvas.
static weir_status_t* draw_row(const weir_gif_t* gif, const frame_t* frame, const uint8_t* row,
                               uint8_t* canvas) {
  const int64_t width = WEIR_MIN(frame->width, gif->width - frame->left);
  for (int64_t x = 0; x < width; ++x) {
    if (row[x] == frame->transparent) continue;
    if (row[x] >= frame->colors.count) {
      return WEIR_STATUS(INVALID_ARGUMENT,
                         "Invalid GIF data, found color index %d outside of color map range %d",
                         row[x], frame->colors.count);
    }
    memcpy(canvas + 3 * (frame->left + x), frame->colors.rgb + 3 * row[x], 3);
  }
  return NULL;
}

static weir_status_t* draw_frame(weir_gif_t* gif, const frame_t* frame, uint8_t* row,
                                 uint8_t* canvas) {
  static const uint8_t kFirst[4] = {0, 4, 2, 1}, kStep[4] = {8, 8, 4, 2};
  const int passes = frame->is_interlaced ? 4 : 1;
  weir_gif_lzw_init(&gif->lzw, frame->pixels, gif->end);  // it was read before
  for (int pass = 0; pass < passes; ++pass) {
    const int step = frame->is_interlaced ? kStep[pass] : 1;
    for (int64_t y = kFirst[pass]; y < frame->height; y += step) {
      WEIR_TRY(weir_interrupt_poll(y));
      weir_gif_lzw_read(&gif->lzw, frame->width, row);
      if (frame->top + y >= gif->height) continue;
      WEIR_TRY(draw_row(gif, frame, row, canvas + (frame->top + y) * gif->width * 3));
    }
  }
  return NULL;
}

weir_status_t* weir_gif_decode(weir_gif_t* gif, int64_t frames, uint8_t* pixels) {
  const size_t size = (size_t)(gif->width * gif->height * 3);
  uint8_t* row = weir_malloc((size_t)gif->width);
  weir_status_t* status = row ? NULL : weir_out_of_memory();
  for (int64_t i = 0; !status && i < frames; ++i) {
    uint8_t* canvas = pixels + (size_t)i * size;
    if (i == 0) {
      memset(canvas, 0, size);
    } else {
      memcpy(canvas, canvas - size, size);
    }
    if (gif->frames[i].colors.rgb) {
      status = draw_frame(gif, &gif->frames[i], row, canvas);
    } else {
      status = WEIR_STATUS(INVALID_ARGUMENT, "Invalid GIF data, missing color map for frame %lld",
                           (long long)i);
    }
  }
  weir_free(row);
  return status;
}
