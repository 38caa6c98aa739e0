// jpeg_encode.c — Encoding JPEG files: colours, halving them, the forward DCT, quantization and
// headers. Arithmetic and order of things are those of libjpeg-turbo, so that its bytes come out.
#include "image/jpeg_encode.h"

#include "base/alloc.h"

void weir_jpeg_put_marker(weir_strbuf_t* out, int marker, size_t size) {
  const char bytes[4] = {(char)0xff, (char)marker, (char)((size + 2) >> 8), (char)(size + 2)};
  weir_strbuf_append(out, bytes, sizeof bytes);
}

static void put16(weir_strbuf_t* out, int value) {
  weir_strbuf_putc(out, (char)(value >> 8));
  weir_strbuf_putc(out, (char)value);
}

// ---- colours ----

#define FIX16(x) ((int)((x)*65536 + 0.5))

// Luminance and the two colour differences of one pixel.
static void to_ycc(const uint8_t* rgb, uint8_t* ycc) {
  enum { kHalf = 1 << 15, kCenter = 128 << 16 };
  const int r = rgb[0], g = rgb[1], b = rgb[2];
  ycc[0] = (uint8_t)((FIX16(0.29900) * r + FIX16(0.58700) * g + FIX16(0.11400) * b + kHalf) >> 16);
  ycc[1] = (uint8_t)((-FIX16(0.16874) * r - FIX16(0.33126) * g + FIX16(0.50000) * b + kCenter +
                      kHalf - 1) >>
                     16);
  ycc[2] = (uint8_t)((FIX16(0.50000) * r - FIX16(0.41869) * g - FIX16(0.08131) * b + kCenter +
                      kHalf - 1) >>
                     16);
}

// Planes at full resolution, filled up to |width| * |height| by repeating the edges.
static void split_colors(const weir_jpeg_source_t* source, int width, int height, uint8_t* planes) {
  const size_t size = (size_t)width * (size_t)height;
  for (int y = 0; y < height; ++y) {
    const int from_y = WEIR_MIN(y, source->height - 1);
    for (int x = 0; x < width; ++x) {
      const int from_x = WEIR_MIN(x, source->width - 1);
      const size_t from = (size_t)from_y * (size_t)source->width + (size_t)from_x;
      const size_t to = (size_t)y * (size_t)width + (size_t)x;
      if (source->channels == 1) {
        planes[to] = source->pixels[from];
        continue;
      }
      uint8_t ycc[3];
      to_ycc(source->pixels + 3 * from, ycc);
      for (size_t i = 0; i < 3; ++i) planes[i * size + to] = ycc[i];
    }
  }
}

// Means of two by two; the rounding alternates, so that no bias builds up. Rows from |end| on
// repeat the one before.
static void halve(const uint8_t* in, int width, int height, int end, uint8_t* out) {
  for (int y = 0; y < height / 2; ++y) {
    const size_t size = (size_t)(width / 2);
    if (y >= end) {
      memcpy(out + (size_t)y * size, out + (size_t)(end - 1) * size, size);
      continue;
    }
    const uint8_t *above = in + (size_t)(2 * y) * (size_t)width, *below = above + width;
    for (int x = 0; x < width / 2; ++x) {
      const int sum = above[2 * x] + above[2 * x + 1] + below[2 * x] + below[2 * x + 1];
      out[(size_t)y * size + (size_t)x] = (uint8_t)((sum + 1 + x % 2) >> 2);
    }
  }
}

// ---- the forward DCT, of Loeffler, Ligtenberg and Moschytz ----

enum { kConstBits = 13, kPassBits = 2 };
#define FIX13(x) ((int)((x) * (1 << kConstBits) + 0.5))

static int descale(int x, int bits) { return (x + (1 << (bits - 1))) >> bits; }

// Eight values |step| apart, in place. |is_first|: rows, which keep kPassBits more bits.
static void transform(int* d, int step, bool is_first) {
  const int t0 = d[0] + d[7 * step], t7 = d[0] - d[7 * step];
  const int t1 = d[step] + d[6 * step], t6 = d[step] - d[6 * step];
  const int t2 = d[2 * step] + d[5 * step], t5 = d[2 * step] - d[5 * step];
  const int t3 = d[3 * step] + d[4 * step], t4 = d[3 * step] - d[4 * step];
  const int bits = is_first ? kConstBits - kPassBits : kConstBits + kPassBits;
  const int t10 = t0 + t3, t13 = t0 - t3, t11 = t1 + t2, t12 = t1 - t2;
  d[0] = is_first ? (t10 + t11) * (1 << kPassBits) : descale(t10 + t11, kPassBits);
  d[4 * step] = is_first ? (t10 - t11) * (1 << kPassBits) : descale(t10 - t11, kPassBits);
  const int z1 = (t12 + t13) * FIX13(0.541196100);
  d[2 * step] = descale(z1 + t13 * FIX13(0.765366865), bits);
  d[6 * step] = descale(z1 - t12 * FIX13(1.847759065), bits);
  const int z5 = (t4 + t6 + t5 + t7) * FIX13(1.175875602);
  const int a = -(t4 + t7) * FIX13(0.899976223), b = -(t5 + t6) * FIX13(2.562915447);
  const int c = z5 - (t4 + t6) * FIX13(1.961570560), e = z5 - (t5 + t7) * FIX13(0.390180644);
  d[7 * step] = descale(t4 * FIX13(0.298631336) + a + c, bits);
  d[5 * step] = descale(t5 * FIX13(2.053119869) + b + e, bits);
  d[3 * step] = descale(t6 * FIX13(3.072711026) + b + c, bits);
  d[step] = descale(t7 * FIX13(1.501321110) + a + e, bits);
}

// Coefficients come out eight times too large, which the quantization takes into account.
static void encode_block(const uint8_t* pixels, int stride, const uint16_t* quant, int16_t* coefs) {
  int work[WEIR_JPEG_BLOCK];
  for (int i = 0; i < WEIR_JPEG_BLOCK; ++i) work[i] = pixels[i / 8 * stride + i % 8] - 128;
  for (int y = 0; y < 8; ++y) transform(work + 8 * y, 1, true);
  for (int x = 0; x < 8; ++x) transform(work + x, 8, false);
  for (int k = 0; k < WEIR_JPEG_BLOCK; ++k) {
    const int at = weir_jpeg_order[k], by = quant[at] * 8;
    const int value = work[at], size = ((value < 0 ? -value : value) + by / 2) / by;
    coefs[k] = (int16_t)(value < 0 ? -size : size);
  }
}

// ---- planes ----

static void make_quant(int quality, int table, uint16_t* quant) {
  quality = WEIR_MAX(1, WEIR_MIN(quality, 100));
  const int scale = quality < 50 ? 5000 / quality : 200 - quality * 2;
  for (int i = 0; i < WEIR_JPEG_BLOCK; ++i) {
    const int value = (weir_jpeg_quants[table][i] * scale + 50) / 100;
    quant[i] = (uint16_t)WEIR_MAX(1, WEIR_MIN(value, 255));
  }
}

// Blocks beyond the pixels, which only fill up an MCU, repeat the mean of the one before them.
static void fill_dummies(weir_jpeg_plane_t* p) {
  for (int y = 0; y < p->rows; ++y) {
    for (int x = 0; x < p->stride; ++x) {
      int16_t* block = p->coefs + ((size_t)y * (size_t)p->stride + (size_t)x) * WEIR_JPEG_BLOCK;
      if (x < p->blocks_wide && y < p->blocks_high) continue;
      memset(block, 0, WEIR_JPEG_BLOCK * sizeof *block);
      // In an MCU's own order, the block before this one: to the left, or the end of the row above.
      if (y < p->blocks_high) {
        block[0] = block[-WEIR_JPEG_BLOCK];
      } else {
        const int last = x / p->h * p->h + p->h - 1;
        block[0] = p->coefs[((size_t)(y - 1) * (size_t)p->stride + (size_t)last) * WEIR_JPEG_BLOCK];
      }
    }
  }
}

static weir_status_t* encode_plane(weir_jpeg_plane_t* p, const uint8_t* pixels,
                                   const uint16_t* quant) {
  const int width = 8 * p->stride;
  p->coefs =
      weir_alloc_array((size_t)p->stride * (size_t)p->rows, WEIR_JPEG_BLOCK * sizeof *p->coefs);
  if (!p->coefs) return weir_out_of_memory();
  for (int y = 0; y < p->blocks_high; ++y) {
    for (int x = 0; x < p->blocks_wide; ++x) {
      encode_block(pixels + (size_t)(8 * y) * (size_t)width + 8 * x, width, quant,
                   p->coefs + ((size_t)y * (size_t)p->stride + (size_t)x) * WEIR_JPEG_BLOCK);
    }
  }
  fill_dummies(p);
  return NULL;
}

static void lay_out(const weir_jpeg_source_t* source, bool is_halved, weir_jpeg_image_t* image) {
  const int most = is_halved ? 2 : 1;
  image->plane_count = source->channels;
  image->mcus_wide = (source->width + 8 * most - 1) / (8 * most);
  image->mcus_high = (source->height + 8 * most - 1) / (8 * most);
  for (int i = 0; i < image->plane_count; ++i) {
    weir_jpeg_plane_t* p = &image->planes[i];
    p->h = p->v = i == 0 ? most : 1;
    p->table = i > 0;
    p->blocks_wide = (source->width * p->h + 8 * most - 1) / (8 * most);
    p->blocks_high = (source->height * p->v + 8 * most - 1) / (8 * most);
    p->stride = image->mcus_wide * p->h;
    p->rows = image->mcus_high * p->v;
  }
}

static weir_status_t* encode_planes(const weir_jpeg_source_t* source, bool is_halved,
                                    uint16_t quants[2][WEIR_JPEG_BLOCK], weir_jpeg_image_t* image) {
  lay_out(source, is_halved, image);
  const int width = 8 * image->planes[0].stride, height = 8 * image->planes[0].rows;
  const size_t size = (size_t)width * (size_t)height;
  uint8_t* planes = weir_alloc_array((size_t)source->channels, size);
  uint8_t* half = is_halved ? weir_malloc(size / 4) : NULL;
  weir_status_t* status = planes && (half || !is_halved) ? NULL : weir_out_of_memory();
  if (!status) split_colors(source, width, height, planes);
  for (int i = 0; i < image->plane_count && !status; ++i) {
    const uint8_t* pixels = planes + (size_t)i * size;
    if (i > 0 && is_halved) {
      halve(pixels, width, height, (source->height + 1) / 2, half);
      pixels = half;
    }
    status = encode_plane(&image->planes[i], pixels, quants[image->planes[i].table]);
  }
  weir_free(planes);
  weir_free(half);
  return status;
}

// ---- headers ----

static void put_quant(weir_strbuf_t* out, int index, const uint16_t* quant) {
  weir_jpeg_put_marker(out, 0xdb, 1 + WEIR_JPEG_BLOCK);
  weir_strbuf_putc(out, (char)index);
  for (int k = 0; k < WEIR_JPEG_BLOCK; ++k) {
    weir_strbuf_putc(out, (char)quant[weir_jpeg_order[k]]);
  }
}

static void put_xmp(weir_strbuf_t* out, weir_view_t xmp) {
  static const char kName[] = "http://ns.adobe.com/xap/1.0/";  // its zero belongs to it
  if (xmp.size == 0) return;
  weir_jpeg_put_marker(out, 0xe1, sizeof kName + xmp.size);
  weir_strbuf_append(out, kName, sizeof kName);
  weir_strbuf_append(out, xmp.data, xmp.size);
}

static void put_headers(const weir_jpeg_source_t* source, const weir_jpeg_params_t* params,
                        uint16_t quants[2][WEIR_JPEG_BLOCK], const weir_jpeg_image_t* image,
                        weir_strbuf_t* out) {
  weir_strbuf_append(out, "\xff\xd8", 2);
  weir_jpeg_put_marker(out, 0xe0, 14);
  weir_strbuf_append(out, "JFIF\0\1\1", 7);
  weir_strbuf_putc(out, (char)params->density_unit);
  put16(out, params->x_density);
  put16(out, params->y_density);
  weir_strbuf_append(out, "\0\0", 2);
  put_xmp(out, params->xmp);
  for (int i = 0; i < (image->plane_count > 1 ? 2 : 1); ++i) put_quant(out, i, quants[i]);
  weir_jpeg_put_marker(out, params->is_progressive ? 0xc2 : 0xc0,
                       6 + 3 * (size_t)image->plane_count);
  weir_strbuf_putc(out, 8);
  put16(out, source->height);
  put16(out, source->width);
  weir_strbuf_putc(out, (char)image->plane_count);
  for (int i = 0; i < image->plane_count; ++i) {
    const weir_jpeg_plane_t* p = &image->planes[i];
    const char bytes[3] = {(char)(i + 1), (char)(p->h << 4 | p->v), (char)p->table};
    weir_strbuf_append(out, bytes, sizeof bytes);
  }
}

// The order in which libjpeg sends progressive files.
static const weir_jpeg_scan_t kColorScans[] = {
    {0, 3, 0, 0, 0, 1},  {0, 1, 1, 5, 0, 2},  {2, 1, 1, 63, 0, 1}, {1, 1, 1, 63, 0, 1},
    {0, 1, 6, 63, 0, 2}, {0, 1, 1, 63, 2, 1}, {0, 3, 0, 0, 1, 0},  {2, 1, 1, 63, 1, 0},
    {1, 1, 1, 63, 1, 0}, {0, 1, 1, 63, 1, 0}};
static const weir_jpeg_scan_t kGrayScans[] = {{0, 1, 0, 0, 0, 1},  {0, 1, 1, 5, 0, 2},
                                              {0, 1, 6, 63, 0, 2}, {0, 1, 1, 63, 2, 1},
                                              {0, 1, 0, 0, 1, 0},  {0, 1, 1, 63, 1, 0}};

static weir_status_t* put_scans(const weir_jpeg_params_t* params, const weir_jpeg_image_t* image,
                                weir_strbuf_t* out) {
  const bool is_color = image->plane_count > 1;
  unsigned sent = 0;
  if (!params->is_progressive) {
    const weir_jpeg_scan_t all = {.count = image->plane_count, .last = 63};
    return weir_jpeg_put_scan(image, &all, false, params->is_optimized, &sent, out);
  }
  const weir_jpeg_scan_t* scans = is_color ? kColorScans : kGrayScans;
  const size_t count = is_color ? WEIR_COUNT_OF(kColorScans) : WEIR_COUNT_OF(kGrayScans);
  for (size_t i = 0; i < count; ++i) {
    WEIR_TRY(weir_jpeg_put_scan(image, &scans[i], true, true, &sent, out));
  }
  return NULL;
}

weir_status_t* weir_jpeg_encode(const weir_jpeg_source_t* source, const weir_jpeg_params_t* params,
                                weir_strbuf_t* out) {
  enum { kMaxXmp = 65533 - 29 };
  uint16_t quants[2][WEIR_JPEG_BLOCK];
  weir_jpeg_image_t image = {0};
  if (source->width < 1 || source->height < 1 || source->width > WEIR_JPEG_MAX_SIDE ||
      source->height > WEIR_JPEG_MAX_SIDE) {
    return WEIR_STATUS(INVALID_ARGUMENT, "an image of %d by %d cannot be a JPEG", source->width,
                       source->height);
  }
  if (params->xmp.size > kMaxXmp) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%zu bytes of metadata are too many", params->xmp.size);
  }
  for (int i = 0; i < 2; ++i) make_quant(params->quality, i, quants[i]);
  const bool is_halved = params->has_small_chroma && source->channels > 1;
  weir_status_t* status = encode_planes(source, is_halved, quants, &image);
  if (!status) {
    put_headers(source, params, quants, &image, out);
    status = put_scans(params, &image, out);
  }
  weir_strbuf_append(out, "\xff\xd9", 2);
  if (!status) status = weir_strbuf_finish(out);
  for (int i = 0; i < 3; ++i) weir_free(image.planes[i].coefs);
  return status;
}
