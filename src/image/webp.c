// webp.c — WebP images, by libwebp, which is opened when the first is decoded.
#include "image/webp.h"

#include <dlfcn.h>

#include "base/alloc.h"
#include "base/interrupt.h"
#include "base/library.h"
#include "base/thread.h"
#include "image/webp_frames.h"

// What libwebp's interface has of an image's features; it has been so since version 0.2.
typedef struct features_t {
  int width, height, has_alpha, has_animation, format;
  uint32_t rest[5];
} features_t;

enum { kInterface = 0x0209 };  // the version of that interface

typedef struct library_t {
  int (*get_features)(const uint8_t* data, size_t size, features_t* features, int version);
  uint8_t* (*decode_rgb)(const uint8_t* data, size_t size, uint8_t* out, size_t out_size,
                         int stride);
  uint8_t* (*decode_rgba)(const uint8_t* data, size_t size, uint8_t* out, size_t out_size,
                          int stride);
} library_t;

static library_t g_library;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static bool g_is_there;

static void load(void) {
  void* library = dlopen("libwebp.so.7", RTLD_NOW | RTLD_LOCAL);
  g_is_there = library &&
               weir_library_find(library, "WebPGetFeaturesInternal", &g_library.get_features) &&
               weir_library_find(library, "WebPDecodeRGBInto", &g_library.decode_rgb) &&
               weir_library_find(library, "WebPDecodeRGBAInto", &g_library.decode_rgba);
}

static bool get_features(weir_view_t data, features_t* features) {
  return g_library.get_features((const uint8_t*)data.data, data.size, features, kInterface) == 0;
}

// The next frame with the size of its image.
static weir_status_t* next_frame(weir_webp_reader_t* reader, weir_webp_frame_t* frame,
                                 bool* out_found) {
  features_t features = {0};
  WEIR_TRY(weir_webp_reader_next(reader, frame, out_found));
  if (!*out_found) return NULL;
  if (!get_features(frame->image, &features))
    return WEIR_STATUS(INVALID_ARGUMENT, "Failed to decode WebP Animation: a frame is wrong");
  frame->width = features.width, frame->height = features.height;
  frame->has_alpha = features.has_alpha;
  if (frame->left + frame->width <= reader->width && frame->top + frame->height <= reader->height)
    return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT,
                     "Failed to decode WebP Animation: a frame is outside of the canvas");
}

static weir_status_t* count_frames(weir_view_t data, weir_webp_t* webp) {
  weir_webp_reader_t reader;
  weir_webp_frame_t frame;
  bool is_found = true;
  WEIR_TRY(weir_webp_reader_init(&reader, data));
  if (reader.width != webp->width || reader.height != webp->height)
    return WEIR_STATUS(INVALID_ARGUMENT, "Failed to decode WebP header.");
  for (;;) {
    WEIR_TRY(next_frame(&reader, &frame, &is_found));
    if (!is_found) break;
    ++webp->frames;
  }
  if (webp->frames > 0) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "Failed to decode WebP Animation: it has no frames");
}

weir_status_t* weir_webp_open(weir_view_t data, weir_webp_t* out_webp) {
  features_t features = {0};
  pthread_once(&g_once, load);
  if (!g_is_there) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "WebP files: the library libwebp.so.7 is not there or cannot be opened");
  }
  if (!get_features(data, &features))
    return WEIR_STATUS(INVALID_ARGUMENT, "Failed to decode WebP header.");
  *out_webp = (weir_webp_t){
      .width = features.width, .height = features.height, .channels = features.has_alpha ? 4 : 3};
  return features.has_animation ? count_frames(data, out_webp) : NULL;
}

// ---- decoding ----
static weir_status_t* decode_image(weir_view_t data, int64_t width, int64_t height, int channels,
                                   uint8_t* pixels) {
  const int stride = (int)(width * channels);
  const size_t size = (size_t)(width * height * channels);
  const uint8_t* from = (const uint8_t*)data.data;
  const uint8_t* result = channels == 4
                              ? g_library.decode_rgba(from, data.size, pixels, size, stride)
                              : g_library.decode_rgb(from, data.size, pixels, size, stride);
  return result ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "Failed to decode WebP image.");
}

// The pixels of a frame, for the caller to free.
static weir_status_t* decode_frame(const weir_webp_frame_t* frame, uint8_t** out_pixels) {
  *out_pixels = weir_alloc_array((size_t)(frame->width * frame->height), 4);
  if (!*out_pixels) return weir_out_of_memory();
  return decode_image(frame->image, frame->width, frame->height, 4, *out_pixels);
}

static weir_status_t* decode_frames(weir_view_t data, int64_t frames, uint8_t* pixels) {
  weir_webp_reader_t reader;
  weir_webp_frame_t two[2];  // this frame and the last in turn
  bool is_found = true;
  WEIR_TRY(weir_webp_reader_init(&reader, data));
  const size_t size = (size_t)(reader.width * reader.height * 4);
  weir_status_t* status = NULL;
  for (int64_t i = 0; !status && i < frames; ++i) {
    weir_webp_frame_t* frame = &two[i % 2];
    uint8_t *canvas = pixels + (size_t)i * size, *image = NULL;
    status = next_frame(&reader, frame, &is_found);
    WEIR_CHECK(status || is_found);  // they were counted
    if (!status) status = decode_frame(frame, &image);
    if (!status) {
      weir_webp_draw(&reader, frame, i > 0 ? &two[(i + 1) % 2] : NULL, image,
                     i > 0 ? canvas - size : NULL, canvas);
    }
    weir_free(image);
    if (!status && weir_is_interrupted())
      status = WEIR_STATUS(CANCELLED, "the work was interrupted");
  }
  return status;
}

weir_status_t* weir_webp_decode(weir_view_t data, const weir_webp_t* webp, int64_t frames,
                                uint8_t* pixels) {
  if (webp->frames > 0) return decode_frames(data, frames, pixels);
  return decode_image(data, webp->width, webp->height, webp->channels, pixels);
}
