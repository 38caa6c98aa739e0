// jpeg_scan.c — Entropy decoding of one scan of a JPEG file, sequential or progressive.
//
// Files that are cut off or damaged must give what libjpeg gives, so bits are fetched when and as
// it fetches them: eagerly, up to 57 at a time.
#include "image/jpeg_internal.h"

enum { kLook = 8, kEagerBits = 57, kMaxRewinds = 4096, kEndOfImage = 0xd9 };

typedef struct table_t {
  int32_t last[18];          // the largest code of each length; -1: none
  int32_t offset[18];        // from a code to its place in |values|
  uint8_t bits[1 << kLook];  // of the code that begins so; 0: it is longer
  uint8_t symbols[1 << kLook];
  uint8_t values[256];
} table_t;

typedef struct reader_t {
  weir_jpeg_t* jpeg;
  const uint8_t* data;
  size_t size, at;
  size_t committed;  // where the current MCU's bytes begin, as libjpeg keeps it
  uint64_t bits;
  int left;  // bits that are there
  int rewinds;
  bool has_run_dry;  // zeros stand in for data until the next restart
  weir_status_t* status;
  bool is_suspended;  // the data ends within an MCU
  int last_dc[WEIR_JPEG_MAX_COMPONENTS];
  uint32_t end_run;  // progressive: blocks that are at their end
  int restart_left, next_restart;
  table_t tables[2][WEIR_JPEG_MAX_COMPONENTS];  // DC and AC, by component of the scan
} reader_t;

// ---- tables ----

static weir_status_t* bad_table(void) {
  return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: a Huffman table is bogus");
}

static weir_status_t* make_table(const weir_jpeg_huffman_t* from, bool is_dc, table_t* table) {
  int32_t code = 0;
  int at = 0;
  if (!from->is_defined) {
    return WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: a Huffman table is missing");
  }
  memset(table, 0, sizeof *table);
  memcpy(table->values, from->values, sizeof table->values);
  for (int length = 1; length <= 16; ++length, code <<= 1) {
    const int count = from->counts[length];
    if (at + count > 256 || code + count > 1 << length) return bad_table();
    table->offset[length] = at - code;
    for (int i = 0; i < count; ++i, ++at, ++code) {
      if (is_dc && from->values[at] > 15) return bad_table();
      if (length > kLook) continue;
      const int first = code << (kLook - length);
      memset(table->bits + first, length, (size_t)1 << (kLook - length));
      memset(table->symbols + first, from->values[at], (size_t)1 << (kLook - length));
    }
    table->last[length] = count > 0 ? code - 1 : -1;
  }
  table->last[17] = INT32_MAX;  // ends every search
  return NULL;
}

// ---- bits ----

// No byte is left. False: decoding must stop. libjpeg looks at the position it stored at the end of
// the last MCU: if that is not the end, it takes the same bytes once more, in order to recover.
static bool meet_end(reader_t* r) {
  if (r->committed < r->size && r->rewinds < kMaxRewinds) {
    r->is_suspended = !r->jpeg->options.recovers;
    r->at = r->committed;
    r->rewinds += 1;
    return !r->is_suspended;
  }
  if (!r->jpeg->options.recovers) {
    if (!r->status) r->status = WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: it is cut off");
    return false;
  }
  r->jpeg->unread_marker = kEndOfImage;
  return true;
}

static bool next_byte(reader_t* r, int* out_byte) {
  *out_byte = -1;
  do {
    if (r->at == r->size) {
      if (!meet_end(r)) return false;
      if (r->jpeg->unread_marker) return true;
    }
    *out_byte = r->data[r->at++];
    if (*out_byte != 0xff) return true;
    do {
      if (r->at == r->size) {
        if (!meet_end(r)) return false;
        if (r->jpeg->unread_marker) return true;
      }
      *out_byte = r->data[r->at++];
    } while (*out_byte == 0xff);
    if (*out_byte == 0) {
      *out_byte = 0xff;
    } else {
      r->jpeg->unread_marker = *out_byte;
    }
  } while (false);
  return true;
}

// Fetches bits; where a marker stands, zeros, but only if there are less than |needed|.
static bool fetch(reader_t* r, int needed) {
  while (r->left < kEagerBits && !r->jpeg->unread_marker) {
    int byte = 0;
    if (!next_byte(r, &byte)) return false;
    if (r->jpeg->unread_marker) break;
    r->bits = r->bits << 8 | (unsigned)byte;
    r->left += 8;
  }
  if (r->left < needed) {
    r->has_run_dry = true;
    r->bits <<= kEagerBits - r->left;
    r->left = kEagerBits;
  }
  return true;
}

static bool get_bits(reader_t* r, int count, int* out_value) {
  if (r->left < count && !fetch(r, count)) return false;
  r->left -= count;
  *out_value = (int)(r->bits >> r->left & (((uint64_t)1 << count) - 1));
  return true;
}

static bool get_long_symbol(reader_t* r, const table_t* table, int length, int* out_symbol) {
  int code = 0, bit = 0;
  if (!get_bits(r, length, &code)) return false;
  while (code > table->last[length]) {
    if (!get_bits(r, 1, &bit)) return false;
    code = code << 1 | bit;
    length += 1;
  }
  *out_symbol = length > 16 ? 0 : table->values[(code + table->offset[length]) & 255];
  return true;
}

static bool get_symbol(reader_t* r, const table_t* table, int* out_symbol) {
  if (r->left < kLook) {
    if (!fetch(r, 0)) return false;
    if (r->left < kLook) return get_long_symbol(r, table, 1, out_symbol);
  }
  const unsigned look = (unsigned)(r->bits >> (r->left - kLook)) & ((1u << kLook) - 1);
  if (table->bits[look] == 0) return get_long_symbol(r, table, kLook + 1, out_symbol);
  r->left -= table->bits[look];
  *out_symbol = table->symbols[look];
  return true;
}

// A signed number of |size| bits.
static bool get_number(reader_t* r, int size, int* out_value) {
  if (size == 0) {
    *out_value = 0;
    return true;
  }
  if (!get_bits(r, size, out_value)) return false;
  if (*out_value < 1 << (size - 1)) *out_value -= (1 << size) - 1;
  return true;
}

// ---- blocks. False: the data ended. ----

static bool read_dc(reader_t* r, int index, int* out_value) {
  int size = 0, difference = 0;
  if (!get_symbol(r, &r->tables[0][index], &size)) return false;
  if (!get_number(r, size, &difference)) return false;
  // Damaged files may count without end; only so much can matter.
  r->last_dc[index] = (int)(int16_t)(r->last_dc[index] + difference);
  *out_value = r->last_dc[index];
  return true;
}

static bool read_sequential(reader_t* r, int index, int16_t* block) {
  const table_t* table = &r->tables[1][index];
  int dc = 0, symbol = 0, value = 0;
  if (!read_dc(r, index, &dc)) return false;
  block[0] = (int16_t)dc;
  for (int k = 1; k < WEIR_JPEG_BLOCK; ++k) {
    if (!get_symbol(r, table, &symbol)) return false;
    const int run = symbol >> 4, size = symbol & 15;
    if (size == 0) {
      if (run != 15) break;
      k += 15;
      continue;
    }
    k += run;
    if (!get_number(r, size, &value)) return false;
    block[weir_jpeg_order[k]] = (int16_t)value;
  }
  return true;
}

static bool read_dc_first(reader_t* r, int index, int16_t* block) {
  int dc = 0;
  if (!read_dc(r, index, &dc)) return false;
  block[0] = (int16_t)(dc * (1 << r->jpeg->low));
  return true;
}

static bool read_dc_more(reader_t* r, int16_t* block) {
  int bit = 0;
  if (!get_bits(r, 1, &bit)) return false;
  if (bit) block[0] = (int16_t)(block[0] | 1 << r->jpeg->low);
  return true;
}

// An end-of-band symbol of size class |run|: this block and so many more end here.
static bool read_end_run(reader_t* r, int run) {
  int extra = 0;
  if (run > 0 && !get_bits(r, run, &extra)) return false;
  r->end_run = (1u << run) + (unsigned)extra;
  return true;
}

static bool read_ac_first(reader_t* r, int16_t* block) {
  int symbol = 0, value = 0;
  if (r->end_run > 0) {
    r->end_run -= 1;
    return true;
  }
  for (int k = r->jpeg->first; k <= r->jpeg->last; ++k) {
    if (!get_symbol(r, &r->tables[1][0], &symbol)) return false;
    const int run = symbol >> 4, size = symbol & 15;
    if (size != 0) {
      k += run;
      if (!get_number(r, size, &value)) return false;
      block[weir_jpeg_order[k]] = (int16_t)(value * (1 << r->jpeg->low));
    } else if (run == 15) {
      k += 15;
    } else {
      if (!read_end_run(r, run)) return false;
      r->end_run -= 1;
      break;
    }
  }
  return true;
}

// A correction bit for a coefficient that is not zero.
static bool correct(reader_t* r, int16_t* coef) {
  const int one = 1 << r->jpeg->low;
  int bit = 0;
  if (!get_bits(r, 1, &bit)) return false;
  if (bit && (*coef & one) == 0) *coef = (int16_t)(*coef + (*coef >= 0 ? one : -one));
  return true;
}

// Corrects what is not zero from |*k| on, past |zeros| zeros; |*k| is where it stops.
static bool pass_over(reader_t* r, int16_t* block, int zeros, int* k) {
  for (; *k <= r->jpeg->last; ++*k) {
    int16_t* coef = &block[weir_jpeg_order[*k]];
    if (*coef != 0) {
      if (!correct(r, coef)) return false;
    } else if (--zeros < 0) {
      break;
    }
  }
  return true;
}

static bool read_ac_more(reader_t* r, int16_t* block) {
  const int one = 1 << r->jpeg->low;
  int k = r->jpeg->first, symbol = 0, bit = 0;
  if (r->end_run == 0) {
    for (; k <= r->jpeg->last; ++k) {
      int value = 0;
      if (!get_symbol(r, &r->tables[1][0], &symbol)) return false;
      int run = symbol >> 4;
      if ((symbol & 15) != 0) {
        if (!get_bits(r, 1, &bit)) return false;
        value = bit ? one : -one;
      } else if (run != 15) {
        if (!read_end_run(r, run)) return false;
        break;
      }
      if (!pass_over(r, block, run, &k)) return false;
      if (value) block[weir_jpeg_order[WEIR_MIN(k, 63)]] = (int16_t)value;
    }
  }
  if (r->end_run > 0) {
    if (!pass_over(r, block, INT32_MAX, &k)) return false;
    r->end_run -= 1;
  }
  return true;
}

static bool read_block(reader_t* r, int index, int16_t* block) {
  const weir_jpeg_t* jpeg = r->jpeg;
  if (!jpeg->is_progressive) return read_sequential(r, index, block);
  if (jpeg->first == 0) {
    return jpeg->high == 0 ? read_dc_first(r, index, block) : read_dc_more(r, block);
  }
  return jpeg->high == 0 ? read_ac_first(r, block) : read_ac_more(r, block);
}

// ---- restarts ----

// Goes on to the next marker.
static bool find_marker(reader_t* r) {
  while (!r->jpeg->unread_marker) {
    if (r->at == r->size) {
      if (!r->jpeg->options.recovers) {
        if (!r->status)
          r->status = WEIR_STATUS(INVALID_ARGUMENT, "Invalid JPEG data: it is cut off");
        return false;
      }
      r->jpeg->unread_marker = kEndOfImage;
      return true;
    }
    if (r->data[r->at++] != 0xff) continue;
    while (r->at < r->size && r->data[r->at] == 0xff) r->at += 1;
    if (r->at < r->size && r->data[r->at] != 0) r->jpeg->unread_marker = r->data[r->at];
    if (r->at < r->size) r->at += 1;
  }
  return true;
}

// Not the marker that is due: guesses whether it comes early, late, or is damaged.
static bool resynchronize(reader_t* r) {
  const int due = r->next_restart;
  for (;;) {
    const int marker = r->jpeg->unread_marker;
    const int ahead = (marker - 0xd0 - due) & 7;
    bool skip = false;
    if (marker < 0xc0) {
      skip = true;
    } else if (marker < 0xd0 || marker > 0xd7 || ahead == 1 || ahead == 2) {
      return true;  // the data is missing up to there
    } else if (ahead == 6 || ahead == 7) {
      skip = true;
    }
    r->jpeg->unread_marker = 0;
    if (!skip) return true;
    if (!find_marker(r)) return false;
  }
}

static bool restart(reader_t* r) {
  r->left = 0;
  r->bits = 0;
  if (!find_marker(r)) return false;
  if (r->jpeg->unread_marker == 0xd0 + r->next_restart) {
    r->jpeg->unread_marker = 0;
  } else if (!resynchronize(r)) {
    return false;
  }
  r->next_restart = (r->next_restart + 1) & 7;
  memset(r->last_dc, 0, sizeof r->last_dc);
  r->end_run = 0;
  r->restart_left = r->jpeg->restart_interval;
  if (!r->jpeg->unread_marker) r->has_run_dry = false;
  r->committed = r->at;
  return true;
}

// ---- MCUs ----

static int16_t* block_at(const weir_jpeg_component_t* c, int x, int y) {
  return c->coefs + ((size_t)y * (size_t)c->stride + (size_t)x) * WEIR_JPEG_BLOCK;
}

// An MCU of several components: all the blocks that share its pixels.
static bool read_group(reader_t* r, int mx, int my) {
  for (int i = 0; i < r->jpeg->scan_count; ++i) {
    const weir_jpeg_component_t* c = r->jpeg->scan[i];
    for (int y = 0; y < c->v; ++y) {
      for (int x = 0; x < c->h; ++x) {
        if (!read_block(r, i, block_at(c, mx * c->h + x, my * c->v + y))) return false;
      }
    }
  }
  return true;
}

static bool read_mcu(reader_t* r, int mx, int my) {
  if (r->jpeg->restart_interval > 0 && r->restart_left == 0 && !restart(r)) return false;
  r->rewinds = 0;
  if (!r->has_run_dry) {
    const bool is_single = r->jpeg->scan_count == 1;
    if (!(is_single ? read_block(r, 0, block_at(r->jpeg->scan[0], mx, my))
                    : read_group(r, mx, my))) {
      return false;
    }
    r->committed = r->at;
  }
  r->restart_left -= 1;
  return true;
}

static weir_status_t* make_tables(reader_t* r) {
  const weir_jpeg_t* jpeg = r->jpeg;
  for (int i = 0; i < jpeg->scan_count; ++i) {
    const weir_jpeg_component_t* c = jpeg->scan[i];
    if (!jpeg->is_progressive || (jpeg->first == 0 && jpeg->high == 0)) {
      WEIR_TRY(make_table(&jpeg->dc_tables[c->dc_index], true, &r->tables[0][i]));
    }
    if (!jpeg->is_progressive || jpeg->first > 0) {
      WEIR_TRY(make_table(&jpeg->ac_tables[c->ac_index], false, &r->tables[1][i]));
    }
  }
  return NULL;
}

weir_status_t* weir_jpeg_read_scan(weir_jpeg_t* jpeg, int* out_mcu_rows) {
  reader_t r = {.jpeg = jpeg,
                .data = (const uint8_t*)jpeg->data.data,
                .size = jpeg->data.size,
                .at = jpeg->at,
                .committed = jpeg->at,
                .restart_left = jpeg->restart_interval};
  WEIR_TRY(make_tables(&r));
  const weir_jpeg_component_t* only = jpeg->scan[0];
  const bool is_single = jpeg->scan_count == 1;
  const int wide =
      is_single ? only->blocks_wide : (jpeg->width + 8 * jpeg->max_h - 1) / (8 * jpeg->max_h);
  const int high =
      is_single ? only->blocks_high : (jpeg->height + 8 * jpeg->max_v - 1) / (8 * jpeg->max_v);
  int y = 0;
  for (bool goes_on = true; goes_on && y < high; y += goes_on) {
    for (int x = 0; x < wide && goes_on; ++x) goes_on = read_mcu(&r, x, y);
  }
  *out_mcu_rows = is_single && y < high ? y / only->v : y;
  jpeg->is_exhausted = r.is_suspended;
  jpeg->at = r.at;
  return r.status;
}
