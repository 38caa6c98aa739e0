// png_decode.c — Decoding PNG files by libpng, with the conversions that TensorFlow asks it for.
#include "base/alloc.h"
#include "base/interrupt.h"
#include "image/png.h"
#include "image/png_error.h"

struct weir_png_t {
  png_structp png;
  png_infop info;
  weir_png_error_t error;
  weir_view_t rest;  // of the file
  png_uint_32 width, height;
  int bit_depth, color_type;
  int channels, bits;  // of the result
  uint8_t* pixels;
};

static void read_bytes(png_structp png, png_bytep to, size_t size) {
  weir_png_t* p = png_get_io_ptr(png);
  if (size > p->rest.size) png_error(png, "it is cut off");
  memcpy(to, p->rest.data, size);
  p->rest = weir_view(p->rest.data + size, p->rest.size - size);
}

// Whether a part of the file says that it is longer than what is left: libpng would ask for that
// much memory, up to 2 GB, before it reads the first byte of it.
static bool is_cut_off(weir_view_t file) {
  enum { kSignature = 8, kHead = 8, kSum = 4 };
  if (file.size < kSignature || png_sig_cmp((png_const_bytep)file.data, 0, kSignature))
    return false;
  size_t at = kSignature;
  while (file.size - at >= kHead + kSum) {
    png_const_bytep head = (png_const_bytep)file.data + at;
    const size_t length = png_get_uint_32(head);
    if (length > file.size - at - kHead - kSum) return true;
    if (memcmp(head + 4, "IEND", 4) == 0) break;
    at += kHead + length + kSum;
  }
  return false;  // what is missing then is no more than a head: libpng says so
}

// ---- steps, each under a guard ----

// Runs |step|, and returns its error or libpng's.
static weir_status_t* guard(weir_png_t* p, weir_status_t* (*step)(weir_png_t* p)) {
  if (setjmp(png_jmpbuf(p->png))) return p->error.status;
  return step(p);
}

static weir_status_t* read_info(weir_png_t* p) {
  p->info = png_create_info_struct(p->png);
  if (!p->info) return weir_out_of_memory();
  png_set_read_fn(p->png, p, read_bytes);
  png_read_info(p->png, p->info);
  png_get_IHDR(p->png, p->info, &p->width, &p->height, &p->bit_depth, &p->color_type, NULL, NULL,
               NULL);
  return NULL;
}

static void convert_alpha(weir_png_t* p, bool is_wanted) {
  const bool has_alpha = (p->color_type & PNG_COLOR_MASK_ALPHA) != 0;
  const bool has_transparency = png_get_valid(p->png, p->info, PNG_INFO_tRNS) != 0;
  if (!is_wanted) {
    if (has_alpha || has_transparency) png_set_strip_alpha(p->png);
  } else if (!has_alpha && has_transparency) {
    png_set_tRNS_to_alpha(p->png);
  } else if (!has_alpha) {  // for less than 8 bits, too, it is the largest number of so many bits
    png_set_add_alpha(p->png, (1u << p->bit_depth) - 1, PNG_FILLER_AFTER);
  }
}

static void convert_color(weir_png_t* p, bool wants_gray) {
  const bool is_gray = (p->color_type & PNG_COLOR_MASK_COLOR) == 0;
  if (p->color_type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(p->png);
  if (is_gray && p->bit_depth < 8) png_set_expand_gray_1_2_4_to_8(p->png);
  if (is_gray && !wants_gray) png_set_gray_to_rgb(p->png);
  if (!is_gray && wants_gray) {
    enum { kSilent = PNG_ERROR_ACTION_NONE };
    png_set_rgb_to_gray(p->png, kSilent, 0.299, 0.587);  // and the rest of blue
  }
}

// To 16 bits, in place.
static void widen(uint8_t* row, size_t count) {
  uint16_t* to = (uint16_t*)row;
  for (size_t i = count; i-- > 0;) to[i] = (uint16_t)(row[i] * 257);
}

static weir_status_t* decode(weir_png_t* p) {
  const bool is_wide = p->bit_depth == 16 && p->bits == 16;
  const size_t row_count = (size_t)p->width * (size_t)p->channels;
  const size_t row_size = row_count * (size_t)p->bits / 8;
  convert_alpha(p, p->channels % 2 == 0);
  convert_color(p, p->channels < 3);
  if (p->bit_depth == 16 && !is_wide) png_set_strip_16(p->png);
  if (is_wide) png_set_swap(p->png);  // from big-endian; every supported host is little-endian
  png_set_packing(p->png);
  const int passes = png_set_interlace_handling(p->png);
  png_read_update_info(p->png, p->info);
  if (png_get_rowbytes(p->png, p->info) != row_count * (is_wide ? 2 : 1)) {
    png_error(p->png, "its rows have an unexpected size");
  }
  for (int pass = 0; pass < passes; ++pass) {
    for (png_uint_32 y = 0; y < p->height; ++y) {
      WEIR_TRY(weir_interrupt_poll(y));
      png_read_row(p->png, p->pixels + y * row_size, NULL);
    }
  }
  png_read_end(p->png, NULL);
  for (png_uint_32 y = 0; y < p->height && p->bits == 16 && !is_wide; ++y) {
    widen(p->pixels + y * row_size, row_count);
  }
  return NULL;
}

// ---- the interface ----

weir_status_t* weir_png_open(weir_view_t data, weir_png_t** out_png) {
  if (is_cut_off(data)) return WEIR_STATUS(INVALID_ARGUMENT, "Invalid PNG: it is cut off");
  weir_png_t* p = weir_calloc(1, sizeof *p);
  if (!p) return weir_out_of_memory();
  p->rest = data;
  p->error = (weir_png_error_t){.code = WEIR_INVALID_ARGUMENT, .prefix = "Invalid PNG"};
  p->png = weir_png_create_reader(&p->error);
  weir_status_t* status = p->png ? guard(p, read_info) : weir_out_of_memory();
  if (status) {
    weir_png_destroy(p);
  } else {
    *out_png = p;
  }
  return status;
}

void weir_png_destroy(weir_png_t* png) {
  if (!png) return;
  png_destroy_read_struct(&png->png, &png->info, NULL);
  weir_free(png);
}

void weir_png_size(const weir_png_t* png, uint32_t* out_width, uint32_t* out_height,
                   int* out_channels) {
  const bool is_transparent = png_get_valid(png->png, png->info, PNG_INFO_tRNS) != 0;
  *out_width = png->width;
  *out_height = png->height;
  *out_channels = png->color_type == PNG_COLOR_TYPE_PALETTE ? (is_transparent ? 4 : 3)
                                                            : png_get_channels(png->png, png->info);
}

weir_status_t* weir_png_decode(weir_png_t* png, int channels, int bits, void* pixels) {
  png->channels = channels;
  png->bits = bits;
  png->pixels = pixels;
  return guard(png, decode);
}
