// jpeg_color.c — From the planes of a JPEG file to pixels: colours of lower resolution are spread
// as libjpeg spreads them, and turned into RGB.
#include "base/alloc.h"
#include "image/jpeg_internal.h"

// ---- spreading ----

typedef struct spread_t {
  const weir_jpeg_component_t* component;
  int h, v;  // pixels a sample
  bool is_fancy;
  uint8_t* row;  // one row of pixels, or NULL where the plane itself serves
  int* sums;     // fancy, both ways: a row mixed with its neighbour
} spread_t;

static const uint8_t* plane_row(const weir_jpeg_component_t* c, int y) {
  y = WEIR_MAX(0, WEIR_MIN(y, c->height - 1));
  return c->plane + (size_t)y * (size_t)c->plane_stride;
}

// Three parts of a sample and one of the nearer neighbour.
static void spread_wide(const uint8_t* in, int width, uint8_t* out) {
  out[0] = in[0];
  out[1] = (uint8_t)((in[0] * 3 + in[1] + 2) >> 2);
  for (int i = 1; i < width - 1; ++i) {
    out[2 * i] = (uint8_t)((in[i] * 3 + in[i - 1] + 1) >> 2);
    out[2 * i + 1] = (uint8_t)((in[i] * 3 + in[i + 1] + 2) >> 2);
  }
  out[2 * width - 2] = (uint8_t)((in[width - 1] * 3 + in[width - 2] + 1) >> 2);
  out[2 * width - 1] = in[width - 1];
}

static void spread_both(const uint8_t* near, const uint8_t* far, int width, int* sums,
                        uint8_t* out) {
  for (int i = 0; i < width; ++i) sums[i] = near[i] * 3 + far[i];
  out[0] = (uint8_t)((sums[0] * 4 + 8) >> 4);
  out[1] = (uint8_t)((sums[0] * 3 + sums[1] + 7) >> 4);
  for (int i = 1; i < width - 1; ++i) {
    out[2 * i] = (uint8_t)((sums[i] * 3 + sums[i - 1] + 8) >> 4);
    out[2 * i + 1] = (uint8_t)((sums[i] * 3 + sums[i + 1] + 7) >> 4);
  }
  out[2 * width - 2] = (uint8_t)((sums[width - 1] * 3 + sums[width - 2] + 8) >> 4);
  out[2 * width - 1] = (uint8_t)((sums[width - 1] * 4 + 7) >> 4);
}

// The pixels of row |y| of the result.
static const uint8_t* spread_row(spread_t* s, int y) {
  const weir_jpeg_component_t* c = s->component;
  const int from = y / s->v, part = y % s->v;
  const uint8_t* near = plane_row(c, from);
  if (s->h == 1 && s->v == 1) return near;
  const uint8_t* far = plane_row(c, part == 0 ? from - 1 : from + 1);
  if (s->is_fancy && s->h == 2 && s->v == 1) {
    spread_wide(near, c->width, s->row);
  } else if (s->is_fancy && s->h == 2) {
    spread_both(near, far, c->width, s->sums, s->row);
  } else if (s->is_fancy) {
    for (int i = 0; i < c->width; ++i) {
      s->row[i] = (uint8_t)((near[i] * 3 + far[i] + 1 + part) >> 2);
    }
  } else {
    for (int i = 0; i < c->width; ++i) memset(s->row + i * s->h, near[i], (size_t)s->h);
  }
  return s->row;
}

static weir_status_t* spread_init(const weir_jpeg_t* jpeg, int index, spread_t* s) {
  const weir_jpeg_component_t* c = &jpeg->components[index];
  const int all_h = jpeg->max_h * jpeg->scale, all_v = jpeg->max_v * jpeg->scale;
  const int own_h = c->h * c->scale, own_v = c->v * c->scale;
  if (all_h % own_h != 0 || all_v % own_v != 0) {
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "Invalid JPEG data: sampling factors %d,%d of %d,%d are not supported", c->h,
                       c->v, jpeg->max_h, jpeg->max_v);
  }
  s->component = c;
  s->h = all_h / own_h;
  s->v = all_v / own_v;
  const bool is_fancy = jpeg->options.is_fancy && jpeg->scale > 1;
  s->is_fancy = is_fancy && ((s->h == 2 && s->v <= 2 && c->width > 2) || (s->h == 1 && s->v == 2));
  s->row = weir_malloc((size_t)c->width * (size_t)s->h);
  s->sums = weir_alloc_array((size_t)c->width, sizeof *s->sums);
  return s->row && s->sums ? NULL : weir_out_of_memory();
}

// ---- colours ----

enum { kHalf = 1 << 15 };
#define FIX(x) ((int)((x)*65536 + 0.5))

static void to_rgb(int y, int cb, int cr, uint8_t* rgb) {
  cb -= 128;
  cr -= 128;
  rgb[0] = weir_jpeg_clamp(y + ((FIX(1.40200) * cr + kHalf) >> 16));
  rgb[1] = weir_jpeg_clamp(y + ((-FIX(0.34414) * cb - FIX(0.71414) * cr + kHalf) >> 16));
  rgb[2] = weir_jpeg_clamp(y + ((FIX(1.77200) * cb + kHalf) >> 16));
}

static uint8_t to_gray(int r, int g, int b) {
  return (uint8_t)((FIX(0.29900) * r + FIX(0.58700) * g + FIX(0.11400) * b + kHalf) >> 16);
}

// Adobe's files hold inverted inks.
static void cmyk_to_rgb(bool is_inverted, const uint8_t* cmyk, uint8_t* rgb) {
  for (int i = 0; i < 3; ++i) {
    rgb[i] =
        (uint8_t)(is_inverted ? cmyk[3] * cmyk[i] / 255 : (255 - cmyk[3]) * (255 - cmyk[i]) / 255);
  }
}

static void convert_pixel(const weir_jpeg_t* jpeg, const uint8_t* in, uint8_t* out) {
  uint8_t cmyk[4];
  switch (jpeg->color) {
    case WEIR_JPEG_GRAY: out[0] = out[1] = out[2] = in[0]; break;
    case WEIR_JPEG_RGB: memcpy(out, in, 3); break;
    case WEIR_JPEG_YCC: to_rgb(in[0], in[1], in[2], out); break;
    case WEIR_JPEG_CMYK: cmyk_to_rgb(jpeg->has_adobe, in, out); break;
    case WEIR_JPEG_YCCK:
      to_rgb(in[0], in[1], in[2], cmyk);
      for (int i = 0; i < 3; ++i) cmyk[i] = (uint8_t)(255 - cmyk[i]);
      cmyk[3] = in[3];
      cmyk_to_rgb(jpeg->has_adobe, cmyk, out);
      break;
  }
}

static void convert_row(const weir_jpeg_t* jpeg, const uint8_t* const* rows, uint8_t* out) {
  const bool to_one = jpeg->out_channels == 1;
  if (to_one && jpeg->color != WEIR_JPEG_RGB) {
    memcpy(out, rows[0], (size_t)jpeg->out_width);
    return;
  }
  for (int x = 0; x < jpeg->out_width; ++x) {
    uint8_t in[WEIR_JPEG_MAX_COMPONENTS];
    for (int i = 0; i < jpeg->component_count; ++i) in[i] = rows[i][x];
    if (to_one) {
      out[x] = to_gray(in[0], in[1], in[2]);
    } else {
      convert_pixel(jpeg, in, out + 3 * x);
    }
  }
}

weir_status_t* weir_jpeg_convert(weir_jpeg_t* jpeg, uint8_t* pixels) {
  spread_t spreads[WEIR_JPEG_MAX_COMPONENTS] = {{0}};
  const uint8_t* rows[WEIR_JPEG_MAX_COMPONENTS] = {0};
  const int count =
      jpeg->out_channels == 1 && jpeg->color != WEIR_JPEG_RGB ? 1 : jpeg->component_count;
  const size_t row_size = (size_t)jpeg->out_width * (size_t)jpeg->out_channels;
  weir_status_t* status = NULL;
  for (int i = 0; i < count && !status; ++i) status = spread_init(jpeg, i, &spreads[i]);
  for (int y = 0; y < jpeg->rows_read && !status; ++y) {
    for (int i = 0; i < count; ++i) rows[i] = spread_row(&spreads[i], y);
    convert_row(jpeg, rows, pixels + (size_t)y * row_size);
  }
  for (int i = 0; i < count; ++i) {
    weir_free(spreads[i].row);
    weir_free(spreads[i].sums);
  }
  return status;
}
