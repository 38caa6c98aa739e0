// png.c — Decoding and encoding PNG images.
#include "image/png.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "file/deflate.h"

enum {
  GRAY = 0,
  RGB = 2,
  PALETTE = 3,
  GRAY_ALPHA = 4,
  RGB_ALPHA = 6,
  kMaxSide = 1000000,  // libpng's limit
  kSignature = 8,
};
static const char kMagic[kSignature + 1] = "\x89PNG\r\n\x1a\n";

static weir_status_t* invalid(const char* what) {
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid PNG: %s", what);
}

static uint32_t big32(const void* data) {
  const uint8_t* p = data;
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint16_t big16(const void* data) {
  const uint8_t* p = data;
  return (uint16_t)(p[0] << 8 | p[1]);
}

// ---- chunks ----

typedef struct chunk_t {
  const char* name;  // four letters
  weir_view_t body;
  size_t end;      // of the chunk, in the file
  bool is_intact;  // the checksum is right
} chunk_t;

static bool is_named(const chunk_t* chunk, const char* name) {
  return memcmp(chunk->name, name, 4) == 0;
}

// Reads the chunk at |at|. A chunk with a wrong checksum is an error if it is needed.
static weir_status_t* read_chunk(weir_view_t data, size_t at, chunk_t* out) {
  if (data.size - at < 12) return invalid("the file is cut off");
  const uint32_t size = big32(data.data + at);
  if (size > INT32_MAX) return invalid("a chunk is too long");
  if (size > data.size - at - 12) return invalid("the file is cut off");
  out->name = data.data + at + 4;
  for (int i = 0; i < 4; ++i) {
    const char c = (char)(out->name[i] | 32);
    if (c < 'a' || c > 'z') return invalid("a chunk's name is no name");
  }
  out->body = weir_view(data.data + at + 8, size);
  out->end = at + 12 + size;
  out->is_intact = weir_crc32(0, out->name, 4 + (size_t)size) == big32(out->body.data + size);
  if (!out->is_intact && !(out->name[0] & 32)) return invalid("a chunk's checksum is wrong");
  return NULL;
}

// ---- the header ----

static weir_status_t* read_header(weir_png_t* png, const chunk_t* chunk) {
  static const uint8_t kChannels[7] = {1, 0, 3, 3, 2, 0, 4};
  static const uint32_t kDepths[7] = {1u << 1 | 1u << 2 | 1u << 4 | 1u << 8 | 1u << 16,
                                      0,
                                      1u << 8 | 1u << 16,
                                      1u << 1 | 1u << 2 | 1u << 4 | 1u << 8,
                                      1u << 8 | 1u << 16,
                                      0,
                                      1u << 8 | 1u << 16};
  const uint8_t* body = (const uint8_t*)chunk->body.data;
  if (!is_named(chunk, "IHDR") || chunk->body.size != 13) return invalid("the header is missing");
  png->width = big32(body);
  png->height = big32(body + 4);
  png->bit_depth = body[8];
  png->color_type = body[9];
  if (png->width == 0 || png->height == 0 || png->width > kMaxSide || png->height > kMaxSide) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid PNG: size %u by %u", png->width, png->height);
  }
  if (png->color_type > 6 || png->bit_depth > 16 ||
      !(kDepths[png->color_type] >> png->bit_depth & 1u)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid PNG: colour type %d with %d bits",
                       png->color_type, png->bit_depth);
  }
  if (body[10] != 0 || body[11] != 0 || body[12] > 1) return invalid("an unknown method is used");
  png->is_interlaced = body[12] == 1;
  png->channels = kChannels[png->color_type];
  return NULL;
}

static weir_status_t* read_palette(weir_png_t* png, weir_view_t body, size_t* out_count) {
  if (png->color_type == GRAY || png->color_type == GRAY_ALPHA) return NULL;
  if (png->color_type != PALETTE) return NULL;  // a proposal for screens of few colours
  if (body.size % 3 != 0 || body.size == 0) return invalid("the palette has an odd size");
  const size_t most = (size_t)1 << png->bit_depth;
  *out_count = WEIR_MIN(body.size / 3, most);
  for (size_t i = 0; i < *out_count; ++i) memcpy(png->palette[i], body.data + 3 * i, 3);
  return NULL;
}

// Transparency that makes no sense is passed over, as libpng does.
static void read_transparency(weir_png_t* png, weir_view_t body, size_t palette_count) {
  if (png->color_type == PALETTE) {
    if (body.size == 0 || body.size > palette_count) return;
    for (size_t i = 0; i < body.size; ++i) png->palette[i][3] = (uint8_t)body.data[i];
    png->channels = 4;
  } else if (png->color_type == GRAY || png->color_type == RGB) {
    const size_t count = png->color_type == GRAY ? 1 : 3;
    if (body.size != 2 * count) return;
    for (size_t i = 0; i < count; ++i) png->transparent[i] = big16(body.data + 2 * i);
  } else {
    return;
  }
  png->has_transparency = true;
}

static bool is_known_critical(const chunk_t* chunk) {
  return is_named(chunk, "IHDR") || is_named(chunk, "PLTE") || is_named(chunk, "IDAT") ||
         is_named(chunk, "IEND");
}

static weir_status_t* read_before_pixels(weir_png_t* png, const chunk_t* chunk,
                                         size_t* palette_count) {
  if (is_named(chunk, "IHDR") || is_named(chunk, "IEND")) return invalid("a chunk is out of place");
  if (is_named(chunk, "PLTE")) {
    if (*palette_count > 0) return invalid("there are two palettes");
    return read_palette(png, chunk->body, palette_count);
  }
  if (!(chunk->name[0] & 32)) return invalid("a chunk that is needed is not known");
  if (!chunk->is_intact) return NULL;
  if (is_named(chunk, "tRNS") && !png->has_transparency) {
    read_transparency(png, chunk->body, *palette_count);
  } else if (is_named(chunk, "gAMA") && chunk->body.size == 4 && png->gamma == 0) {
    const uint32_t gamma = big32(chunk->body.data);
    if (gamma >= 16 && gamma <= 625000000) png->gamma = gamma;
  } else if (is_named(chunk, "sRGB") && chunk->body.size == 1) {
    png->gamma = 45455;
  }
  return NULL;
}

weir_status_t* weir_png_open(weir_view_t data, weir_png_t* out_png) {
  weir_png_t png = {.data = data};
  chunk_t chunk = {0};
  size_t palette_count = 0;
  for (int i = 0; i < 256; ++i) png.palette[i][3] = 255;
  if (data.size < kSignature || memcmp(data.data, kMagic, kSignature) != 0) {
    return invalid("the signature is missing");
  }
  WEIR_TRY(read_chunk(data, kSignature, &chunk));
  WEIR_TRY(read_header(&png, &chunk));
  for (;;) {
    const size_t at = chunk.end;
    WEIR_TRY(read_chunk(data, at, &chunk));
    if (is_named(&chunk, "IDAT")) {
      if (png.color_type == PALETTE && palette_count == 0) return invalid("there is no palette");
      png.pixels_at = at;
      *out_png = png;
      return NULL;
    }
    WEIR_TRY(read_before_pixels(&png, &chunk, &palette_count));
  }
}

// ---- the chunks of pixels as one stream ----

typedef struct pixels_t {
  weir_view_t data;
  size_t at;         // of the next chunk
  weir_view_t rest;  // of the current one
  bool is_at_end;
} pixels_t;

static weir_status_t* pixels_source(void* arg, void* buffer, size_t size, size_t* out_size) {
  pixels_t* p = arg;
  while (p->rest.size == 0 && !p->is_at_end) {
    chunk_t chunk = {0};
    WEIR_TRY(read_chunk(p->data, p->at, &chunk));
    p->is_at_end = !is_named(&chunk, "IDAT");
    if (p->is_at_end) break;
    p->rest = chunk.body;
    p->at = chunk.end;
  }
  *out_size = WEIR_MIN(size, p->rest.size);
  if (*out_size > 0) memcpy(buffer, p->rest.data, *out_size);
  p->rest = weir_view(p->rest.data + *out_size, p->rest.size - *out_size);
  return NULL;
}

// What follows the pixels must be whole, up to the end.
static weir_status_t* check_rest(const pixels_t* p) {
  size_t at = p->at;
  for (;;) {
    chunk_t chunk = {0};
    WEIR_TRY(read_chunk(p->data, at, &chunk));
    if (is_named(&chunk, "IEND")) return NULL;
    if (is_named(&chunk, "IHDR") || is_named(&chunk, "PLTE")) {
      return invalid("a chunk is out of place");
    }
    if (!(chunk.name[0] & 32) && !is_known_critical(&chunk)) {
      return invalid("a chunk that is needed is not known");
    }
    at = chunk.end;
  }
}

// ---- rows ----

static uint8_t paeth(int a, int b, int c) {
  const int pa = abs(b - c), pb = abs(a - c), pc = abs(a + b - 2 * c);
  return (uint8_t)(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

// What filter |filter| predicts of byte |i| of |row|; |prior| is the row above.
static uint8_t predict(int filter, const uint8_t* row, const uint8_t* prior, size_t i,
                       size_t step) {
  const int a = i >= step ? row[i - step] : 0, b = prior[i], c = i >= step ? prior[i - step] : 0;
  switch (filter) {
    case 1: return (uint8_t)a;
    case 2: return (uint8_t)b;
    case 3: return (uint8_t)((a + b) / 2);
    case 4: return paeth(a, b, c);
    default: return 0;
  }
}

static weir_status_t* undo_filter(int filter, uint8_t* row, const uint8_t* prior, size_t size,
                                  size_t step) {
  if (filter > 4) return invalid("a row has an unknown filter");
  if (filter == 0) return NULL;
  for (size_t i = 0; i < size; ++i)
    row[i] = (uint8_t)(row[i] + predict(filter, row, prior, i, step));
  return NULL;
}

// ---- pixels ----

typedef struct convert_t {
  const weir_png_t* png;
  int channels;
  int bits;
  void* pixels;
  uint8_t to_linear[256], from_linear[256];  // where mixing to gray minds the gamma
  bool minds_gamma;
} convert_t;

static void make_gamma(convert_t* c) {
  const double gamma = c->png->gamma / 100000.0;
  // libpng lets differences of up to a twentieth pass.
  c->minds_gamma = c->png->gamma != 0 && c->png->bit_depth <= 8 && fabs(gamma - 1) > 0.05;
  if (!c->minds_gamma) return;
  for (int i = 0; i < 256; ++i) {
    c->to_linear[i] = (uint8_t)floor(255 * pow(i / 255.0, 1 / gamma) + 0.5);
    c->from_linear[i] = (uint8_t)floor(255 * pow(i / 255.0, gamma) + 0.5);
  }
}

// A sample of 1 to 16 bits, as it is.
static unsigned sample(const weir_png_t* png, const uint8_t* row, size_t index) {
  const unsigned depth = png->bit_depth;
  if (depth == 8) return row[index];
  if (depth == 16) return big16(row + 2 * index);
  const size_t bit = index * depth;
  return row[bit / 8] >> (8 - depth - bit % 8) & ((1u << depth) - 1);
}

// Red, green, blue (all alike for gray) and alpha, of 16 bits if the file has those, else of 8.
static void load_pixel(const weir_png_t* png, const uint8_t* row, size_t x, unsigned* rgba) {
  const unsigned depth = png->bit_depth;
  const bool is_gray = png->color_type == GRAY || png->color_type == GRAY_ALPHA;
  rgba[3] = (1u << depth) - 1;  // so it is for less than 8 bits, too: TensorFlow's filler
  if (png->color_type == PALETTE) {
    const uint8_t* color = png->palette[sample(png, row, x)];
    for (int i = 0; i < 3; ++i) rgba[i] = color[i];
    if (png->has_transparency) rgba[3] = color[3];
    return;
  }
  const size_t step = is_gray ? (png->color_type == GRAY ? 1 : 2) : png->color_type == RGB ? 3 : 4;
  const size_t colors = is_gray ? 1 : 3;
  bool is_transparent = png->has_transparency;
  for (size_t i = 0; i < colors; ++i) {
    rgba[i] = sample(png, row, x * step + i);
    is_transparent = is_transparent && rgba[i] == (png->transparent[i] & ((1u << depth) - 1));
  }
  if (is_gray) {
    if (depth < 8) rgba[0] *= 255 / ((1u << depth) - 1);
    rgba[1] = rgba[2] = rgba[0];
  }
  if (step > colors) rgba[3] = sample(png, row, x * step + colors);
  if (png->has_transparency) rgba[3] = is_transparent ? 0 : depth == 16 ? 65535 : 255;
}

// Weights of 15 bits for 0.299, 0.587 and the rest; 8 bits are cut off, 16 rounded.
static unsigned mix_gray(const convert_t* c, const unsigned* rgb) {
  enum { kRed = 9797, kGreen = 19234, kBlue = 32768 - kRed - kGreen };
  if (rgb[0] == rgb[1] && rgb[0] == rgb[2]) return rgb[0];
  if (c->minds_gamma) {
    const unsigned mixed = (unsigned)(kRed * c->to_linear[rgb[0]] + kGreen * c->to_linear[rgb[1]] +
                                      kBlue * c->to_linear[rgb[2]] + 16384) >>
                           15;
    return c->from_linear[mixed];
  }
  const unsigned mixed = kRed * rgb[0] + kGreen * rgb[1] + kBlue * rgb[2];
  return (c->png->bit_depth == 16 ? mixed + 16384 : mixed) >> 15;
}

static void put_sample(const convert_t* c, size_t at, unsigned value) {
  const bool is_wide = c->png->bit_depth == 16;
  if (c->bits == 8) {
    ((uint8_t*)c->pixels)[at] = (uint8_t)(is_wide ? value >> 8 : value);
  } else {
    ((uint16_t*)c->pixels)[at] = (uint16_t)(is_wide ? value : value * 257);
  }
}

static void put_pixel(const convert_t* c, const uint8_t* row, size_t x, size_t at) {
  unsigned rgba[4];
  load_pixel(c->png, row, x, rgba);
  if (c->channels < 3) {
    put_sample(c, at++, mix_gray(c, rgba));
  } else {
    for (int i = 0; i < 3; ++i) put_sample(c, at++, rgba[i]);
  }
  if (c->channels % 2 == 0) put_sample(c, at, rgba[3]);
}

// ---- passes ----

typedef struct pass_t {
  uint8_t x, y, step_x, step_y;
} pass_t;

static size_t row_size(const weir_png_t* png, size_t width) {
  const size_t samples = png->color_type == PALETTE ? 1 : (size_t)png->channels;
  return (width * samples * png->bit_depth + 7) / 8;
}

static weir_status_t* decode_pass(const convert_t* c, pass_t pass, weir_inflater_t* inflater,
                                  uint8_t* rows) {
  const weir_png_t* png = c->png;
  const size_t samples = png->color_type == PALETTE ? 1 : (size_t)png->channels;
  const size_t step = WEIR_MAX(samples * png->bit_depth / 8, (size_t)1);
  if (png->width <= pass.x) return NULL;
  const size_t width = (png->width - pass.x + pass.step_x - 1) / pass.step_x;
  const size_t size = row_size(png, width);
  uint8_t *row = rows, *prior = rows + row_size(png, png->width) + 1;
  memset(prior, 0, size + 1);
  for (size_t y = pass.y; y < png->height; y += pass.step_y) {
    size_t got = 0;
    WEIR_TRY(weir_inflater_read(inflater, row, size + 1, &got));
    if (got < size + 1) return invalid("there is not enough image data");
    WEIR_TRY(undo_filter(row[0], row + 1, prior + 1, size, step));
    for (size_t x = 0; x < width; ++x) {
      const size_t pixel = y * png->width + pass.x + x * pass.step_x;
      put_pixel(c, row + 1, x, pixel * (size_t)c->channels);
    }
    uint8_t* last = prior;
    prior = row;
    row = last;
  }
  return NULL;
}

static weir_status_t* decode_passes(const convert_t* c, weir_inflater_t* inflater, uint8_t* rows) {
  static const pass_t kPasses[7] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                    {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  if (!c->png->is_interlaced) return decode_pass(c, (pass_t){0, 0, 1, 1}, inflater, rows);
  for (int i = 0; i < 7; ++i) WEIR_TRY(decode_pass(c, kPasses[i], inflater, rows));
  return NULL;
}

weir_status_t* weir_png_decode(const weir_png_t* png, int channels, int bits, void* pixels) {
  convert_t c = {.png = png, .channels = channels, .bits = bits, .pixels = pixels};
  pixels_t stream = {.data = png->data, .at = png->pixels_at};
  weir_inflater_t* inflater = NULL;
  uint8_t* rows = weir_alloc_array(2, row_size(png, png->width) + 1);
  weir_status_t* status = rows ? NULL : weir_out_of_memory();
  make_gamma(&c);
  if (!status) status = weir_inflater_create(WEIR_DEFLATE_ZLIB, pixels_source, &stream, &inflater);
  if (!status) status = decode_passes(&c, inflater, rows);
  if (!status) status = check_rest(&stream);
  if (status && weir_status_code(status) == WEIR_DATA_LOSS) {
    weir_status_t* other = invalid(weir_status_message(status));
    weir_status_destroy(status);
    status = other;
  }
  weir_inflater_destroy(inflater);
  weir_free(rows);
  return status;
}

// ---- encoding ----

static void put32(weir_strbuf_t* out, uint32_t value) {
  for (int i = 24; i >= 0; i -= 8) weir_strbuf_putc(out, (char)(value >> i & 255u));
}

static void put_chunk(weir_strbuf_t* out, const char* name, weir_view_t body) {
  put32(out, (uint32_t)body.size);
  weir_strbuf_append(out, name, 4);
  if (body.size > 0) weir_strbuf_append(out, body.data, body.size);
  put32(out, weir_crc32(weir_crc32(0, name, 4), body.data, body.size));
}

// Adds |row| by the filter whose differences are smallest. |scratch| has the room of a row.
static void put_row(weir_strbuf_t* out, const uint8_t* row, const uint8_t* prior, size_t size,
                    size_t step, uint8_t* scratch) {
  int best = 0;
  uint64_t best_sum = UINT64_MAX;
  for (int filter = 0; filter < 5; ++filter) {
    uint64_t sum = 0;
    for (size_t i = 0; i < size && sum < best_sum; ++i) {
      sum += (uint64_t)abs((int8_t)(uint8_t)(row[i] - predict(filter, row, prior, i, step)));
    }
    if (sum < best_sum) {
      best = filter;
      best_sum = sum;
    }
  }
  for (size_t i = 0; i < size; ++i) {
    scratch[i] = (uint8_t)(row[i] - predict(best, row, prior, i, step));
  }
  weir_strbuf_putc(out, (char)best);
  weir_strbuf_append(out, scratch, size);
}

static void load_row(const weir_png_source_t* source, size_t y, uint8_t* row) {
  const size_t count = (size_t)source->width * (size_t)source->channels;
  if (source->bits == 8) {
    memcpy(row, (const uint8_t*)source->pixels + y * count, count);
    return;
  }
  const uint16_t* from = (const uint16_t*)source->pixels + y * count;
  for (size_t i = 0; i < count; ++i) {
    row[2 * i] = (uint8_t)(from[i] >> 8);
    row[2 * i + 1] = (uint8_t)from[i];
  }
}

static weir_status_t* filter_rows(const weir_png_source_t* source, weir_strbuf_t* out) {
  const size_t step = (size_t)source->channels * (size_t)source->bits / 8;
  const size_t size = source->width * step;
  uint8_t* rows = weir_calloc(3, size);
  if (!rows) return weir_out_of_memory();
  for (size_t y = 0; y < source->height; ++y) {
    uint8_t* row = rows + y % 2 * size;
    load_row(source, y, row);
    put_row(out, row, rows + (y + 1) % 2 * size, size, step, rows + 2 * size);
  }
  weir_free(rows);
  return weir_strbuf_finish(out);
}

weir_status_t* weir_png_encode(const weir_png_source_t* source, int level, weir_strbuf_t* out) {
  static const uint8_t kColorTypes[5] = {0, GRAY, GRAY_ALPHA, RGB, RGB_ALPHA};
  weir_strbuf_t header = {0}, rows = {0}, packed = {0};
  weir_status_t* status = NULL;
  if (source->width == 0 || source->height == 0 || source->width > kMaxSide ||
      source->height > kMaxSide) {
    return WEIR_STATUS(INVALID_ARGUMENT, "an image of %u by %u cannot be a PNG", source->width,
                       source->height);
  }
  weir_strbuf_append(out, kMagic, kSignature);
  put32(&header, source->width);
  put32(&header, source->height);
  weir_strbuf_putc(&header, (char)source->bits);
  weir_strbuf_putc(&header, (char)kColorTypes[source->channels]);
  weir_strbuf_append(&header, "\0\0\0", 3);
  status = weir_strbuf_finish(&header);
  if (status) goto done;
  put_chunk(out, "IHDR", weir_strbuf_view(&header));
  status = filter_rows(source, &rows);
  if (status) goto done;
  status = weir_deflate(WEIR_DEFLATE_ZLIB, level, weir_strbuf_view(&rows), &packed);
  if (!status) status = weir_strbuf_finish(&packed);
  if (status) goto done;
  put_chunk(out, "IDAT", weir_strbuf_view(&packed));
  put_chunk(out, "IEND", weir_view("", 0));
  status = weir_strbuf_finish(out);
done:
  weir_strbuf_free(&header);
  weir_strbuf_free(&rows);
  weir_strbuf_free(&packed);
  return status;
}
