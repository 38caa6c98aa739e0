// webp.c — WebP images, by libwebp, which is opened when the first is decoded.
#include "image/webp.h"

#include <dlfcn.h>

#include "base/thread.h"

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

// POSIX lets dlsym's result be a function; ISO C needs the copy.
static bool find(void* library, const char* name, void* out_function) {
  void* symbol = dlsym(library, name);
  memcpy(out_function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static void load(void) {
  void* library = dlopen("libwebp.so.7", RTLD_NOW | RTLD_LOCAL);
  g_is_there = library && find(library, "WebPGetFeaturesInternal", &g_library.get_features) &&
               find(library, "WebPDecodeRGBInto", &g_library.decode_rgb) &&
               find(library, "WebPDecodeRGBAInto", &g_library.decode_rgba);
}

weir_status_t* weir_webp_open(weir_view_t data, weir_webp_t* out_webp) {
  features_t features = {0};
  pthread_once(&g_once, load);
  if (!g_is_there) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "WebP files: the library libwebp.so.7 is not there or cannot be opened");
  }
  if (g_library.get_features((const uint8_t*)data.data, data.size, &features, kInterface) != 0)
    return WEIR_STATUS(INVALID_ARGUMENT, "Failed to decode WebP header.");
  *out_webp = (weir_webp_t){.width = features.width,
                            .height = features.height,
                            .channels = features.has_alpha ? 4 : 3,
                            .is_animated = features.has_animation};
  return NULL;
}

weir_status_t* weir_webp_decode(weir_view_t data, const weir_webp_t* webp, uint8_t* pixels) {
  const int stride = webp->width * webp->channels;
  const size_t size = (size_t)stride * (size_t)webp->height;
  const uint8_t* from = (const uint8_t*)data.data;
  const uint8_t* result = webp->channels == 4
                              ? g_library.decode_rgba(from, data.size, pixels, size, stride)
                              : g_library.decode_rgb(from, data.size, pixels, size, stride);
  return result ? NULL : WEIR_STATUS(INVALID_ARGUMENT, "Failed to decode WebP image.");
}
