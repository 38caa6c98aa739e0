// jxl.c — JPEG XL images, by libjxl, which is opened when the first is decoded.
#include "image/jxl.h"

#include <dlfcn.h>

#include "base/interrupt.h"
#include "base/library.h"
#include "base/thread.h"

// What libjxl's interface has of an image; it has been so since version 0.7.
typedef struct info_t {
  int has_container;
  uint32_t width, height;
  uint32_t bits, exponent_bits;
  float intensity_target, min_nits;
  int is_relative;
  float linear_below;
  int uses_original_profile, has_preview, has_animation, orientation;
  uint32_t color_channels, extra_channels, alpha_bits, alpha_exponent_bits;
  int is_alpha_premultiplied;
  uint32_t rest[8];
  uint8_t padding[100];
} info_t;

typedef struct format_t {
  uint32_t channels;
  int data_type;
  int endianness;
  size_t align;
} format_t;

typedef struct decoder_t decoder_t;

// Of libjxl's enums.
enum { TYPE_UINT8 = 2 };
enum { DONE = 0, NEED_OUTPUT = 5, HAVE_INFO = 0x40, HAVE_IMAGE = 0x1000 };

typedef struct library_t {
  decoder_t* (*create)(const void* memory_manager);
  void (*destroy)(decoder_t* decoder);
  int (*subscribe)(decoder_t* decoder, int events);
  int (*set_input)(decoder_t* decoder, const uint8_t* data, size_t size);
  void (*close_input)(decoder_t* decoder);
  int (*process)(decoder_t* decoder);
  int (*get_info)(const decoder_t* decoder, info_t* info);
  int (*get_size)(const decoder_t* decoder, const format_t* format, size_t* size);
  int (*set_output)(decoder_t* decoder, const format_t* format, void* pixels, size_t size);
} library_t;

static library_t g_library;
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static bool g_is_there;

static void load(void) {
  static const char* const kNames[] = {"libjxl.so.0.11", "libjxl.so.0.10", "libjxl.so.0.9",
                                       "libjxl.so.0.8", "libjxl.so.0.7"};
  void* library = NULL;
  for (size_t i = 0; !library && i < WEIR_COUNT_OF(kNames); ++i)
    library = dlopen(kNames[i], RTLD_NOW | RTLD_LOCAL);
  g_is_there = library && weir_library_find(library, "JxlDecoderCreate", &g_library.create) &&
               weir_library_find(library, "JxlDecoderDestroy", &g_library.destroy) &&
               weir_library_find(library, "JxlDecoderSubscribeEvents", &g_library.subscribe) &&
               weir_library_find(library, "JxlDecoderSetInput", &g_library.set_input) &&
               weir_library_find(library, "JxlDecoderCloseInput", &g_library.close_input) &&
               weir_library_find(library, "JxlDecoderProcessInput", &g_library.process) &&
               weir_library_find(library, "JxlDecoderGetBasicInfo", &g_library.get_info) &&
               weir_library_find(library, "JxlDecoderImageOutBufferSize", &g_library.get_size) &&
               weir_library_find(library, "JxlDecoderSetImageOutBuffer", &g_library.set_output);
}

// A decoder that has all of |data| before it and tells of |events|; NULL: it has not.
static decoder_t* start(weir_view_t data, int events) {
  decoder_t* decoder = g_library.create(NULL);
  if (!decoder) return NULL;
  if (g_library.subscribe(decoder, events) == DONE &&
      g_library.set_input(decoder, (const uint8_t*)data.data, data.size) == DONE) {
    g_library.close_input(decoder);
    return decoder;
  }
  g_library.destroy(decoder);
  return NULL;
}

weir_status_t* weir_jxl_open(weir_view_t data, weir_jxl_t* out_jxl) {
  info_t info = {0};
  pthread_once(&g_once, load);
  if (!g_is_there) {
    return WEIR_STATUS(UNIMPLEMENTED,
                       "JPEG XL files: no library libjxl.so.0.7 to 0.11 is there or can be opened");
  }
  decoder_t* decoder = start(data, HAVE_INFO);
  const bool is_read = decoder && g_library.process(decoder) == HAVE_INFO &&
                       g_library.get_info(decoder, &info) == DONE;
  if (decoder) g_library.destroy(decoder);
  if (!is_read) return WEIR_STATUS(INVALID_ARGUMENT, "Failed to decode JXL header");
  *out_jxl = (weir_jxl_t){.width = info.width,
                          .height = info.height,
                          .channels = (int)info.color_channels + (info.alpha_bits > 0)};
  return NULL;
}

// All frames, one over the other. False where that fails.
static bool decode_frames(decoder_t* decoder, const format_t* format, uint8_t* pixels,
                          size_t size) {
  for (;;) {
    size_t needed = 0;
    switch (g_library.process(decoder)) {
      case DONE: return true;
      case HAVE_IMAGE: break;
      case NEED_OUTPUT:
        if (g_library.get_size(decoder, format, &needed) != DONE || needed != size ||
            g_library.set_output(decoder, format, pixels, size) != DONE)
          return false;
        break;
      default: return false;
    }
    if (weir_is_interrupted()) return false;
  }
}

weir_status_t* weir_jxl_decode(weir_view_t data, const weir_jxl_t* jxl, uint8_t* pixels) {
  const format_t format = {.channels = (uint32_t)jxl->channels, .data_type = TYPE_UINT8};
  const size_t size = (size_t)jxl->width * jxl->height * (size_t)jxl->channels;
  decoder_t* decoder = start(data, HAVE_IMAGE);
  const bool is_decoded = decoder && decode_frames(decoder, &format, pixels, size);
  if (decoder) g_library.destroy(decoder);
  if (is_decoded) return NULL;
  if (weir_is_interrupted()) return WEIR_STATUS(CANCELLED, "the work was interrupted");
  return WEIR_STATUS(INVALID_ARGUMENT, "Failed to decode JXL image");
}
