// png_encode.c — Encoding PNG files by libpng.
#include "base/alloc.h"
#include "base/interrupt.h"
#include "image/png.h"
#include "image/png_error.h"

typedef struct encoder_t {
  png_structp png;
  png_infop info;
  weir_png_error_t error;
  const weir_png_source_t* source;
  int level;
  weir_strbuf_t* out;
} encoder_t;

static void write_bytes(png_structp png, png_bytep from, size_t size) {
  encoder_t* e = png_get_io_ptr(png);
  weir_strbuf_append(e->out, (const char*)from, size);
}

static void flush(png_structp png) { (void)png; }

static weir_status_t* encode(encoder_t* e) {
  static const int kColorTypes[5] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                     PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  enum { kMemoryLevel = 9 };  // the most that zlib takes, as TensorFlow sets it
  const weir_png_source_t* source = e->source;
  const size_t row_size = source->width * (size_t)source->channels * (size_t)source->bits / 8;
  if (setjmp(png_jmpbuf(e->png))) return e->error.status;
  e->info = png_create_info_struct(e->png);
  if (!e->info) return weir_out_of_memory();
  png_set_write_fn(e->png, e, write_bytes, flush);
  png_set_compression_level(e->png, e->level);
  png_set_compression_mem_level(e->png, kMemoryLevel);
  png_set_IHDR(e->png, e->info, source->width, source->height, source->bits,
               kColorTypes[source->channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(e->png, e->info);
  if (source->bits == 16) png_set_swap(e->png);
  for (uint32_t y = 0; y < source->height; ++y) {
    WEIR_TRY(weir_interrupt_poll(y));
    png_write_row(e->png, (png_const_bytep)source->pixels + y * row_size);
  }
  png_write_end(e->png, NULL);
  return weir_strbuf_finish(e->out);
}

weir_status_t* weir_png_encode(const weir_png_source_t* source, int level, weir_strbuf_t* out) {
  encoder_t e = {.source = source, .level = level, .out = out};
  e.error = (weir_png_error_t){.code = WEIR_INTERNAL, .prefix = "PNG encoding failed"};
  e.png = weir_png_create_writer(&e.error);
  weir_status_t* status = e.png ? encode(&e) : weir_out_of_memory();
  png_destroy_write_struct(&e.png, &e.info);
  return status;
}
