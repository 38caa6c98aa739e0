// jpeg_decode.c — Decoding JPEG files: markers and headers, scan by scan to coefficients, those to
// pixels.
#include "base/alloc.h"
#include "image/jpeg_internal.h"

enum {
  SOF0 = 0xc0,  // baseline
  SOF1 = 0xc1,  // extended
  SOF2 = 0xc2,  // progressive
  DHT = 0xc4,
  JPG = 0xc8,
  DAC = 0xcc,
  RST0 = 0xd0,
  SOI = 0xd8,
  EOI = 0xd9,
  SOS = 0xda,
  DQT = 0xdb,
  DNL = 0xdc,
  DRI = 0xdd,
  APP0 = 0xe0,
  APP14 = 0xee,
  TEM = 0x01,
  kMaxMcuBlocks = 10,
};

static weir_status_t* invalid(const char* what) {
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: %s", what);
}

static int big16(const char* data) {
  const uint8_t* p = (const uint8_t*)data;
  return p[0] << 8 | p[1];
}

// ---- markers ----

// Reads on to the next marker. The end of the data counts as EOI when recovering.
static weir_status_t* next_marker(weir_jpeg_t* jpeg, int* out_marker) {
  const uint8_t* data = (const uint8_t*)jpeg->data.data;
  *out_marker = jpeg->unread_marker;
  jpeg->unread_marker = 0;
  while (*out_marker == 0) {
    while (jpeg->at < jpeg->data.size && data[jpeg->at] != 0xff) jpeg->at += 1;
    while (jpeg->at < jpeg->data.size && data[jpeg->at] == 0xff) jpeg->at += 1;
    if (jpeg->at == jpeg->data.size) {
      if (!jpeg->options.recovers) return invalid("it is cut off");
      *out_marker = EOI;
    } else {
      *out_marker = data[jpeg->at++];
    }
  }
  return NULL;
}

static bool has_segment(int marker) { return marker != TEM && !(marker >= RST0 && marker <= EOI); }

// The bytes that belong to a marker.
static weir_status_t* read_segment(weir_jpeg_t* jpeg, weir_view_t* out_body) {
  const weir_view_t rest = weir_view(jpeg->data.data + jpeg->at, jpeg->data.size - jpeg->at);
  if (rest.size < 2) return invalid("it is cut off");
  const size_t size = (size_t)big16(rest.data);
  if (size < 2) return invalid("a marker's length is bogus");
  if (size > rest.size) return invalid("it is cut off");
  *out_body = weir_view(rest.data + 2, size - 2);
  jpeg->at += size;
  return NULL;
}

static bool is_segment_cut_off(const weir_jpeg_t* jpeg) {
  const size_t left = jpeg->data.size - jpeg->at;
  return left < 2 || (size_t)big16(jpeg->data.data + jpeg->at) > left;
}

static weir_status_t* read_quants(weir_jpeg_t* jpeg, weir_view_t body) {
  while (body.size > 0) {
    const int index = body.data[0] & 15;
    const bool is_wide = (uint8_t)body.data[0] >> 4 != 0;
    const size_t size = 1 + (is_wide ? 128 : 64);
    if (index > 3) return invalid("a quantization table has a bogus index");
    if (size > body.size) return invalid("a quantization table is cut off");
    for (int k = 0; k < WEIR_JPEG_BLOCK; ++k) {
      jpeg->quants[index][weir_jpeg_order[k]] =
          is_wide ? (uint16_t)big16(body.data + 1 + 2 * k) : (uint8_t)body.data[1 + k];
    }
    jpeg->has_quants[index] = true;
    body = weir_view(body.data + size, body.size - size);
  }
  return NULL;
}

static weir_status_t* read_huffman(weir_jpeg_t* jpeg, weir_view_t body) {
  while (body.size > 16) {
    const int kind = (uint8_t)body.data[0] >> 4, index = body.data[0] & 15;
    size_t count = 0;
    if (kind > 1 || index > 3) return invalid("a Huffman table has a bogus index");
    weir_jpeg_huffman_t* table = kind == 0 ? &jpeg->dc_tables[index] : &jpeg->ac_tables[index];
    memset(table, 0, sizeof *table);
    for (int i = 1; i <= 16; ++i) count += table->counts[i] = (uint8_t)body.data[i];
    if (count > 256 || count > body.size - 17) return invalid("a Huffman table is bogus");
    memcpy(table->values, body.data + 17, count);
    table->is_defined = true;
    body = weir_view(body.data + 17 + count, body.size - 17 - count);
  }
  return body.size == 0 ? NULL : invalid("a Huffman table is cut off");
}

static void read_app(weir_jpeg_t* jpeg, int marker, weir_view_t body) {
  if (marker == APP0 && body.size >= 14 && memcmp(body.data, "JFIF", 5) == 0) {
    jpeg->has_jfif = true;
  } else if (marker == APP14 && body.size >= 12 && memcmp(body.data, "Adobe", 5) == 0) {
    jpeg->has_adobe = true;
    jpeg->adobe_transform = (uint8_t)body.data[11];
  }
}

static weir_status_t* read_frame(weir_jpeg_t* jpeg, int marker, weir_view_t body) {
  if (jpeg->has_frame) return invalid("there are two frames");
  if (body.size < 6) return invalid("the frame's header is cut off");
  const int count = (uint8_t)body.data[5];
  if (body.data[0] != 8) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: samples of %d bits", body.data[0]);
  }
  jpeg->height = big16(body.data + 1);
  jpeg->width = big16(body.data + 3);
  if (jpeg->height == 0 || jpeg->width == 0 || jpeg->height > WEIR_JPEG_MAX_SIDE ||
      jpeg->width > WEIR_JPEG_MAX_SIDE || count == 0) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: size %d by %d with %d components",
                       jpeg->width, jpeg->height, count);
  }
  if (body.size != 6 + 3 * (size_t)count) return invalid("the frame's header has a bogus length");
  if (count != 1 && count != 3 && count != 4) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: %d components", count);
  }
  for (int i = 0; i < count; ++i) {
    const uint8_t* from = (const uint8_t*)body.data + 6 + 3 * i;
    weir_jpeg_component_t* c = &jpeg->components[i];
    c->id = from[0];
    c->h = from[1] >> 4;
    c->v = from[1] & 15;
    c->quant_index = from[2];
    if (c->h < 1 || c->h > 4 || c->v < 1 || c->v > 4) return invalid("bogus sampling factors");
    jpeg->max_h = WEIR_MAX(jpeg->max_h, c->h);
    jpeg->max_v = WEIR_MAX(jpeg->max_v, c->v);
  }
  jpeg->component_count = count;
  jpeg->is_progressive = marker == SOF2;
  jpeg->has_frame = true;
  return NULL;
}

static weir_status_t* find_scanned(weir_jpeg_t* jpeg, int id, weir_jpeg_component_t** out) {
  for (int i = 0; i < jpeg->component_count; ++i) {
    weir_jpeg_component_t* c = &jpeg->components[i];
    bool is_taken = false;
    for (int k = 0; k < jpeg->scan_count; ++k) is_taken = is_taken || jpeg->scan[k] == c;
    if (c->id != id || is_taken) continue;
    *out = c;
    return NULL;
  }
  return invalid("a scan names a bogus component");
}

static weir_status_t* check_progression(const weir_jpeg_t* j) {
  bool is_bad = j->low > 13 || (j->high != 0 && j->low != j->high - 1);
  if (j->first == 0) {
    is_bad = is_bad || j->last != 0;
  } else {
    is_bad = is_bad || j->first > j->last || j->last > 63 || j->scan_count != 1;
  }
  return is_bad ? invalid("bogus parameters of a progressive scan") : NULL;
}

static weir_status_t* read_scan_header(weir_jpeg_t* jpeg, weir_view_t body) {
  if (!jpeg->has_frame) return invalid("a scan comes before the frame");
  const int count = body.size > 0 ? (uint8_t)body.data[0] : 0;
  int blocks = 0;
  if (count < 1 || count > 4 || body.size != 4 + 2 * (size_t)count) {
    return invalid("a scan's header has a bogus length");
  }
  jpeg->scan_count = 0;
  for (int i = 0; i < count; ++i) {
    const uint8_t* from = (const uint8_t*)body.data + 1 + 2 * i;
    weir_jpeg_component_t* c = NULL;
    WEIR_TRY(find_scanned(jpeg, from[0], &c));
    c->dc_index = from[1] >> 4;
    c->ac_index = from[1] & 15;
    if (c->dc_index > 3 || c->ac_index > 3) return invalid("a Huffman table is missing");
    jpeg->scan[jpeg->scan_count++] = c;
    blocks += c->h * c->v;
  }
  if (count > 1 && blocks > kMaxMcuBlocks) return invalid("sampling factors are too large");
  const uint8_t* tail = (const uint8_t*)body.data + 1 + 2 * count;
  jpeg->first = tail[0];
  jpeg->last = tail[1];
  jpeg->high = tail[2] >> 4;
  jpeg->low = tail[2] & 15;
  return jpeg->is_progressive ? check_progression(jpeg) : NULL;
}

// Reads markers up to a scan or the end.
static weir_status_t* read_markers(weir_jpeg_t* jpeg, bool* out_is_end) {
  for (;;) {
    int marker = 0;
    weir_view_t body = {0};
    WEIR_TRY(next_marker(jpeg, &marker));
    *out_is_end = marker == EOI;
    if (*out_is_end) return NULL;
    if (marker == SOI) return invalid("it begins twice");
    if (!has_segment(marker)) continue;
    if (jpeg->options.recovers && is_segment_cut_off(jpeg)) {
      jpeg->at = jpeg->data.size;
      *out_is_end = true;
      return NULL;
    }
    WEIR_TRY(read_segment(jpeg, &body));
    switch (marker) {
      case SOF0:
      case SOF1:
      case SOF2: WEIR_TRY(read_frame(jpeg, marker, body)); break;
      case DHT: WEIR_TRY(read_huffman(jpeg, body)); break;
      case DQT: WEIR_TRY(read_quants(jpeg, body)); break;
      case DAC:
      case DNL: break;
      case DRI:
        if (body.size != 2) return invalid("the restart interval has a bogus length");
        jpeg->restart_interval = big16(body.data);
        break;
      case SOS: return read_scan_header(jpeg, body);
      default:
        if (marker > SOF2 && marker <= 0xcf) {
          return WEIR_STATUS(UNIMPLEMENTED,
                             "JPEG files of coding process %d (lossless, hierarchical or "
                             "arithmetic) cannot be read",
                             marker - SOF0);
        }
        if (marker >= 0xe0 && marker <= 0xfe) {
          read_app(jpeg, marker, body);
        } else {
          return invalid("there is an unknown marker");
        }
    }
  }
}

// ---- geometry ----

static int ceil_div(int64_t a, int64_t b) { return (int)((a + b - 1) / b); }

static weir_jpeg_color_t find_color(const weir_jpeg_t* jpeg) {
  const weir_jpeg_component_t* c = jpeg->components;
  if (jpeg->component_count == 1) return WEIR_JPEG_GRAY;
  if (jpeg->component_count == 4) {
    return jpeg->has_adobe && jpeg->adobe_transform != 0 ? WEIR_JPEG_YCCK : WEIR_JPEG_CMYK;
  }
  if (jpeg->has_jfif) return WEIR_JPEG_YCC;
  if (jpeg->has_adobe) return jpeg->adobe_transform == 0 ? WEIR_JPEG_RGB : WEIR_JPEG_YCC;
  return c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B' ? WEIR_JPEG_RGB : WEIR_JPEG_YCC;
}

// A component of lower resolution is decoded at a larger scale where that saves spreading it.
static void lay_out(weir_jpeg_t* jpeg) {
  const int all_h = jpeg->max_h * jpeg->scale, all_v = jpeg->max_v * jpeg->scale;
  const int mcus_wide = ceil_div(jpeg->width, 8 * jpeg->max_h);
  const int mcus_high = ceil_div(jpeg->height, 8 * jpeg->max_v);
  for (int i = 0; i < jpeg->component_count; ++i) {
    weir_jpeg_component_t* c = &jpeg->components[i];
    c->blocks_wide = ceil_div((int64_t)jpeg->width * c->h, 8 * jpeg->max_h);
    c->blocks_high = ceil_div((int64_t)jpeg->height * c->v, 8 * jpeg->max_v);
    c->stride = mcus_wide * c->h;
    c->rows = mcus_high * c->v;
    c->scale = jpeg->scale;
    while (c->scale < 8 && all_h % (c->h * c->scale * 2) == 0 &&
           all_v % (c->v * c->scale * 2) == 0) {
      c->scale *= 2;
    }
    c->width = ceil_div((int64_t)jpeg->width * c->h * c->scale, 8 * jpeg->max_h);
    c->height = ceil_div((int64_t)jpeg->height * c->v * c->scale, 8 * jpeg->max_v);
    c->plane_stride = c->stride * c->scale;
  }
  jpeg->out_width = ceil_div((int64_t)jpeg->width * jpeg->scale, 8);
  jpeg->out_height = ceil_div((int64_t)jpeg->height * jpeg->scale, 8);
}

static weir_status_t* open_headers(weir_jpeg_t* jpeg) {
  const weir_jpeg_options_t* options = &jpeg->options;
  bool is_end = false;
  if (jpeg->data.size < 2 || big16(jpeg->data.data) != 0xffd8) {
    return invalid("it does not begin as one");
  }
  jpeg->at = 2;
  WEIR_TRY(read_markers(jpeg, &is_end));
  if (is_end) return invalid("there is no image");
  jpeg->color = find_color(jpeg);
  jpeg->out_channels = options->channels ? options->channels : WEIR_MIN(jpeg->component_count, 3);
  if (jpeg->out_channels == 1 && (jpeg->color == WEIR_JPEG_CMYK || jpeg->color == WEIR_JPEG_YCCK)) {
    return invalid("CMYK cannot be turned into gray");
  }
  jpeg->scale = 8 / options->ratio;
  lay_out(jpeg);
  if ((int64_t)jpeg->out_width * jpeg->out_height * jpeg->component_count >= 1 << 29) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: %d by %d pixels are too many",
                       jpeg->out_width, jpeg->out_height);
  }
  return NULL;
}

weir_status_t* weir_jpeg_open(weir_view_t data, const weir_jpeg_options_t* options,
                              weir_jpeg_t** out_jpeg) {
  weir_jpeg_t* jpeg = weir_calloc(1, sizeof *jpeg);
  if (!jpeg) return weir_out_of_memory();
  jpeg->data = data;
  jpeg->options = *options;
  for (int i = 0; i < 2; ++i) {  // files of motion pictures leave the usual tables out
    jpeg->dc_tables[i] = weir_jpeg_dc_tables[i];
    jpeg->ac_tables[i] = weir_jpeg_ac_tables[i];
  }
  weir_status_t* status = open_headers(jpeg);
  if (status) {
    weir_jpeg_destroy(jpeg);
  } else {
    *out_jpeg = jpeg;
  }
  return status;
}

void weir_jpeg_destroy(weir_jpeg_t* jpeg) {
  if (!jpeg) return;
  for (int i = 0; i < WEIR_JPEG_MAX_COMPONENTS; ++i) {
    weir_free(jpeg->components[i].coefs);
    weir_free(jpeg->components[i].plane);
  }
  weir_free(jpeg);
}

void weir_jpeg_size(const weir_jpeg_t* jpeg, int64_t* out_width, int64_t* out_height,
                    int* out_channels) {
  *out_width = jpeg->out_width;
  *out_height = jpeg->out_height;
  *out_channels = jpeg->out_channels;
}

// ---- decoding ----

// Tables may be defined anew between scans: a component keeps those of its first one.
static weir_status_t* start_scan(weir_jpeg_t* jpeg) {
  for (int i = 0; i < jpeg->scan_count; ++i) {
    weir_jpeg_component_t* c = jpeg->scan[i];
    if (!c->has_quant) {
      if (c->quant_index > 3 || !jpeg->has_quants[c->quant_index]) {
        return invalid("a quantization table is missing");
      }
      memcpy(c->quant, jpeg->quants[c->quant_index], sizeof c->quant);
      c->has_quant = true;
    }
    if (!c->coefs) {
      c->coefs =
          weir_calloc((size_t)c->stride * (size_t)c->rows, WEIR_JPEG_BLOCK * sizeof *c->coefs);
      if (!c->coefs) return weir_out_of_memory();
    }
  }
  return NULL;
}

// Rows of pixels that libjpeg gives out after |mcu_rows|: where it looks at the rows below, the
// last group waits for them.
static int rows_of(const weir_jpeg_t* jpeg, int mcu_rows) {
  bool looks_below = false;
  for (int i = 0; i < jpeg->component_count; ++i) {
    const weir_jpeg_component_t* c = &jpeg->components[i];
    const int v = jpeg->max_v * jpeg->scale / (c->v * c->scale);
    const int h = jpeg->max_h * jpeg->scale / (c->h * c->scale);
    if (v == 2 && (h == 1 || (h == 2 && c->width > 2))) looks_below = true;
  }
  looks_below = looks_below && jpeg->options.is_fancy && jpeg->scale > 1;
  const int all = jpeg->max_v * jpeg->scale;
  const int rows = mcu_rows * all - (looks_below && mcu_rows > 0 ? jpeg->max_v : 0);
  return WEIR_MIN(rows, jpeg->out_height);
}

// All scans. The data may end within the first one if that is the only one.
static weir_status_t* read_scans(weir_jpeg_t* jpeg) {
  const bool is_alone = !jpeg->is_progressive && jpeg->scan_count == jpeg->component_count;
  bool is_end = false;
  jpeg->rows_read = jpeg->out_height;
  while (!is_end) {
    int mcu_rows = 0;
    WEIR_TRY(start_scan(jpeg));
    WEIR_TRY(weir_jpeg_read_scan(jpeg, &mcu_rows));
    if (jpeg->is_exhausted) {
      if (!is_alone) return invalid("it is cut off");
      jpeg->rows_read = rows_of(jpeg, mcu_rows);
      return NULL;
    }
    WEIR_TRY(read_markers(jpeg, &is_end));
    if (is_alone && !is_end) return invalid("there are more scans than components");
  }
  return NULL;
}

static weir_status_t* make_plane(const weir_jpeg_t* jpeg, weir_jpeg_component_t* c) {
  int32_t multipliers[WEIR_JPEG_BLOCK];
  const bool is_fast = jpeg->options.is_fast && c->scale == 8;
  if (!c->coefs) return invalid("a component is missing");
  c->plane = weir_malloc((size_t)c->plane_stride * (size_t)c->rows * (size_t)c->scale);
  if (!c->plane) return weir_out_of_memory();
  if (is_fast) weir_jpeg_fast_multipliers(c->quant, multipliers);
  for (int y = 0; y < c->rows; ++y) {
    for (int x = 0; x < c->stride; ++x) {
      const int16_t* coefs =
          c->coefs + ((size_t)y * (size_t)c->stride + (size_t)x) * WEIR_JPEG_BLOCK;
      uint8_t* to = c->plane + (size_t)(y * c->scale) * (size_t)c->plane_stride + x * c->scale;
      if (is_fast) {
        weir_jpeg_idct_fast(coefs, multipliers, to, c->plane_stride);
      } else {
        weir_jpeg_idct(coefs, c->quant, c->scale, to, c->plane_stride);
      }
    }
  }
  weir_free(c->coefs);
  c->coefs = NULL;
  return NULL;
}

weir_status_t* weir_jpeg_decode(weir_jpeg_t* jpeg, uint8_t* pixels) {
  WEIR_TRY(read_scans(jpeg));
  const float fraction = (float)jpeg->rows_read / (float)jpeg->out_height;
  if (fraction < WEIR_MIN(1.0f, jpeg->options.acceptable_fraction)) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: it ends at line %d of %d",
                       jpeg->rows_read, jpeg->out_height);
  }
  const bool needs_one = jpeg->out_channels == 1 && jpeg->color != WEIR_JPEG_RGB;
  for (int i = 0; i < (needs_one ? 1 : jpeg->component_count); ++i) {
    WEIR_TRY(make_plane(jpeg, &jpeg->components[i]));
  }
  WEIR_TRY(weir_jpeg_convert(jpeg, pixels));
  const size_t row_size = (size_t)jpeg->out_width * (size_t)jpeg->out_channels;
  memset(pixels + (size_t)jpeg->rows_read * row_size, 0,
         (size_t)(jpeg->out_height - jpeg->rows_read) * row_size);
  return NULL;
}
