// jpeg_encode_scan.c — Entropy coding of one scan of a JPEG file. Each scan is run through twice
// where it has Huffman tables of its own: once to count symbols, once to write them.
#include "base/alloc.h"
#include "image/jpeg_encode.h"

enum { kMaxCorrections = 1000, kMaxEndRun = 0x7fff };

typedef struct code_t {
  uint32_t bits[256];
  uint8_t sizes[256];
} code_t;

typedef struct writer_t {
  const weir_jpeg_image_t* image;
  const weir_jpeg_scan_t* scan;
  bool is_progressive;
  bool counts;  // the first run
  weir_strbuf_t* out;
  uint64_t bits;
  int bit_count;
  int last_dc[3];
  uint32_t uses[2][2][257];  // DC and AC, by table
  code_t codes[2][2];
  // Progressive: blocks that end alike, and the correction bits that wait for them.
  int end_run, end_table;
  int correction_count;
  uint8_t corrections[kMaxCorrections];
} writer_t;

// ---- bits ----

static void put_bits(writer_t* w, uint32_t value, int size) {
  if (w->counts || size == 0) return;
  w->bits = w->bits << size | (value & ((1u << size) - 1));
  w->bit_count += size;
  while (w->bit_count >= 8) {
    w->bit_count -= 8;
    const uint8_t byte = (uint8_t)(w->bits >> w->bit_count);
    weir_strbuf_putc(w->out, (char)byte);
    if (byte == 0xff) weir_strbuf_putc(w->out, 0);
  }
}

static void put_symbol(writer_t* w, int kind, int table, int symbol) {
  if (w->counts) {
    w->uses[kind][table][symbol] += 1;
  } else {
    put_bits(w, w->codes[kind][table].bits[symbol], w->codes[kind][table].sizes[symbol]);
  }
}

static int size_of(int value) {
  unsigned x = (unsigned)(value < 0 ? -value : value);
  int size = 0;
  for (; x != 0; x >>= 1) ++size;
  return size;
}

static void put_number(writer_t* w, int value, int size) {
  put_bits(w, (uint32_t)(value < 0 ? value - 1 : value), size);
}

// ---- blocks ----

static void put_dc(writer_t* w, int plane, int dc) {
  const int difference = dc - w->last_dc[plane], size = size_of(difference);
  w->last_dc[plane] = dc;
  put_symbol(w, 0, w->image->planes[plane].table, size);
  put_number(w, difference, size);
}

static void put_sequential(writer_t* w, int plane, const int16_t* coefs) {
  const int table = w->image->planes[plane].table;
  int run = 0;
  put_dc(w, plane, coefs[0]);
  for (int k = 1; k < WEIR_JPEG_BLOCK; ++k) {
    if (coefs[k] == 0) {
      ++run;
      continue;
    }
    for (; run > 15; run -= 16) put_symbol(w, 1, table, 0xf0);
    const int size = size_of(coefs[k]);
    put_symbol(w, 1, table, run << 4 | size);
    put_number(w, coefs[k], size);
    run = 0;
  }
  if (run > 0) put_symbol(w, 1, table, 0);
}

static void put_corrections(writer_t* w, int begin, int end) {
  for (int i = begin; i < end; ++i) put_bits(w, w->corrections[i], 1);
}

// Writes the blocks that ended alike, and their corrections.
static void flush_end_run(writer_t* w) {
  if (w->end_run == 0) return;
  const int size = size_of(w->end_run) - 1;
  put_symbol(w, 1, w->end_table, size << 4);
  put_bits(w, (uint32_t)w->end_run, size);
  w->end_run = 0;
  put_corrections(w, 0, w->correction_count);
  w->correction_count = 0;
}

static void put_ac_first(writer_t* w, int plane, const int16_t* coefs) {
  const int table = w->image->planes[plane].table;
  int run = 0;
  w->end_table = table;
  for (int k = w->scan->first; k <= w->scan->last; ++k) {
    const int size_now = (coefs[k] < 0 ? -coefs[k] : coefs[k]) >> w->scan->low;
    if (size_now == 0) {
      ++run;
      continue;
    }
    flush_end_run(w);
    for (; run > 15; run -= 16) put_symbol(w, 1, table, 0xf0);
    const int size = size_of(size_now);
    put_symbol(w, 1, table, run << 4 | size);
    put_number(w, coefs[k] < 0 ? -size_now : size_now, size);
    run = 0;
  }
  if (run > 0 && ++w->end_run == kMaxEndRun) flush_end_run(w);
}

// Writes a symbol: before it the run of ended blocks with its |kept| corrections, after it |sign|,
// if there is one, and the corrections of this block.
static void put_refined(writer_t* w, int table, int symbol, int sign, int kept) {
  uint8_t own[WEIR_JPEG_BLOCK];
  const int count = w->correction_count - kept;
  memcpy(own, w->corrections + kept, (size_t)count);
  w->correction_count = kept;
  flush_end_run(w);
  put_symbol(w, 1, table, symbol);
  if (sign >= 0) put_bits(w, (uint32_t)sign, 1);
  for (int i = 0; i < count; ++i) put_bits(w, own[i], 1);
  w->correction_count = 0;
}

// Corrections of this block wait behind those of blocks before it, |kept| of them.
static void put_ac_more(writer_t* w, int plane, const int16_t* coefs) {
  const int table = w->image->planes[plane].table;
  int values[WEIR_JPEG_BLOCK], last_new = 0, run = 0, kept = w->correction_count;
  w->end_table = table;
  for (int k = w->scan->first; k <= w->scan->last; ++k) {
    values[k] = (coefs[k] < 0 ? -coefs[k] : coefs[k]) >> w->scan->low;
    if (values[k] == 1) last_new = k;
  }
  for (int k = w->scan->first; k <= w->scan->last; ++k) {
    if (values[k] == 0) {
      ++run;
      continue;
    }
    for (; run > 15 && k <= last_new; run -= 16, kept = 0) put_refined(w, table, 0xf0, -1, kept);
    if (values[k] > 1) {
      w->corrections[w->correction_count++] = (uint8_t)(values[k] & 1);
      continue;
    }
    put_refined(w, table, run << 4 | 1, coefs[k] >= 0, kept);
    kept = run = 0;
  }
  if (run > 0 || w->correction_count > kept) {
    w->end_run += 1;
    if (w->end_run == kMaxEndRun || w->correction_count > kMaxCorrections - WEIR_JPEG_BLOCK + 1) {
      flush_end_run(w);
    }
  }
}

static void put_block(writer_t* w, int plane, const int16_t* coefs) {
  const weir_jpeg_scan_t* scan = w->scan;
  if (!w->is_progressive) {
    put_sequential(w, plane, coefs);
  } else if (scan->first > 0) {
    (scan->high == 0 ? put_ac_first : put_ac_more)(w, plane, coefs);
  } else if (scan->high == 0) {
    put_dc(w, plane, coefs[0] >> scan->low);
  } else {
    put_bits(w, (uint32_t)(coefs[0] >> scan->low), 1);
  }
}

static void put_blocks(writer_t* w) {
  const weir_jpeg_image_t* image = w->image;
  const weir_jpeg_scan_t* scan = w->scan;
  const bool is_single = scan->count == 1;
  const weir_jpeg_plane_t* only = &image->planes[scan->begin];
  const int wide = is_single ? only->blocks_wide : image->mcus_wide;
  const int high = is_single ? only->blocks_high : image->mcus_high;
  memset(w->last_dc, 0, sizeof w->last_dc);
  for (int my = 0; my < high; ++my) {
    for (int mx = 0; mx < wide; ++mx) {
      for (int i = scan->begin; i < scan->begin + scan->count; ++i) {
        const weir_jpeg_plane_t* p = &image->planes[i];
        const int h = is_single ? 1 : p->h, v = is_single ? 1 : p->v;
        for (int k = 0; k < h * v; ++k) {
          const size_t x = (size_t)(mx * h + k % h), y = (size_t)(my * v + k / h);
          put_block(w, i, p->coefs + (y * (size_t)p->stride + x) * WEIR_JPEG_BLOCK);
        }
      }
    }
  }
  flush_end_run(w);
}

// ---- tables ----

// The two rarest symbols that are left; the later one wins among equals. False: only one is left.
static bool find_rarest(const uint64_t* uses, int* out_first, int* out_second) {
  *out_first = *out_second = -1;
  for (int i = 0; i <= 256; ++i) {
    if (uses[i] && (*out_first < 0 || uses[i] <= uses[*out_first])) *out_first = i;
  }
  for (int i = 0; i <= 256; ++i) {
    if (i == *out_first || !uses[i]) continue;
    if (*out_second < 0 || uses[i] <= uses[*out_second]) *out_second = i;
  }
  return *out_second >= 0;
}

// The standard's way (K.2): join the rarest two again and again. A symbol 256 keeps the code of all
// ones free.
static void count_sizes(const uint32_t* from, uint8_t* sizes) {
  uint64_t uses[257];
  int others[257], first, second;
  for (int i = 0; i < 257; ++i) {
    uses[i] = i == 256 ? 1 : from[i];
    others[i] = -1;
    sizes[i] = 0;
  }
  while (find_rarest(uses, &first, &second)) {
    uses[first] += uses[second];
    uses[second] = 0;
    for (sizes[first]++; others[first] >= 0; sizes[first]++) first = others[first];
    others[first] = second;
    for (sizes[second]++; others[second] >= 0; sizes[second]++) second = others[second];
  }
}

static void make_own_table(const uint32_t* uses, weir_jpeg_huffman_t* table) {
  uint8_t sizes[257];
  int counts[258] = {0}, at = 0;
  count_sizes(uses, sizes);
  for (int i = 0; i < 257; ++i) counts[sizes[i]] += sizes[i] > 0;
  // Codes beyond 16 bits: a pair gives its prefix to one of them, and the other joins a shorter
  // one.
  for (int i = 257; i > 16; --i) {
    while (counts[i] > 0) {
      int j = i - 2;
      while (counts[j] == 0) --j;
      counts[i] -= 2;
      counts[i - 1] += 1;
      counts[j + 1] += 2;
      counts[j] -= 1;
    }
  }
  int longest = 16;
  while (counts[longest] == 0) --longest;
  counts[longest] -= 1;  // symbol 256's
  memset(table, 0, sizeof *table);
  table->is_defined = true;
  for (int i = 1; i <= 16; ++i) table->counts[i] = (uint8_t)counts[i];
  for (int size = 1; size < 257; ++size) {
    for (int i = 0; i < 256; ++i) {
      if (sizes[i] == size) table->values[at++] = (uint8_t)i;
    }
  }
}

static void make_code(const weir_jpeg_huffman_t* table, code_t* code) {
  uint32_t next = 0;
  int at = 0;
  memset(code, 0, sizeof *code);
  for (int size = 1; size <= 16; ++size, next <<= 1) {
    for (int i = 0; i < table->counts[size]; ++i, ++at) {
      code->bits[table->values[at]] = next++;
      code->sizes[table->values[at]] = (uint8_t)size;
    }
  }
}

static void put_table(writer_t* w, int kind, int index, const weir_jpeg_huffman_t* table) {
  size_t count = 0;
  for (int i = 1; i <= 16; ++i) count += table->counts[i];
  weir_jpeg_put_marker(w->out, 0xc4, 17 + count);
  weir_strbuf_putc(w->out, (char)(kind << 4 | index));
  weir_strbuf_append(w->out, table->counts + 1, 16);
  weir_strbuf_append(w->out, table->values, count);
}

// A plane's tables in the order of libjpeg: DC, AC; each once.
static void put_tables(writer_t* w, bool is_own, unsigned* sent) {
  unsigned here = is_own ? 0 : *sent;
  const weir_jpeg_scan_t* scan = w->scan;
  for (int i = scan->begin; i < scan->begin + scan->count; ++i) {
    const int index = w->image->planes[i].table;
    for (int kind = 0; kind < 2; ++kind) {
      const bool is_needed =
          !w->is_progressive || (kind == 0 ? scan->first == 0 && scan->high == 0 : scan->first > 0);
      const unsigned bit = 1u << (2 * kind + index);
      weir_jpeg_huffman_t table = (kind == 0 ? weir_jpeg_dc_tables : weir_jpeg_ac_tables)[index];
      if (!is_needed || (here & bit)) continue;
      here |= bit;
      if (is_own) make_own_table(w->uses[kind][index], &table);
      make_code(&table, &w->codes[kind][index]);
      put_table(w, kind, index, &table);
    }
  }
  if (!is_own) *sent = here;
}

static void put_scan_header(writer_t* w) {
  const weir_jpeg_scan_t* scan = w->scan;
  weir_jpeg_put_marker(w->out, 0xda, 4 + 2 * (size_t)scan->count);
  weir_strbuf_putc(w->out, (char)scan->count);
  for (int i = scan->begin; i < scan->begin + scan->count; ++i) {
    const int table = w->image->planes[i].table;
    int dc = table, ac = table;
    if (w->is_progressive) {  // only what is used is named
      dc = scan->first == 0 && scan->high == 0 ? table : 0;
      ac = scan->first > 0 ? table : 0;
    }
    weir_strbuf_putc(w->out, (char)(i + 1));
    weir_strbuf_putc(w->out, (char)(dc << 4 | ac));
  }
  weir_strbuf_putc(w->out, (char)scan->first);
  weir_strbuf_putc(w->out, (char)scan->last);
  weir_strbuf_putc(w->out, (char)(scan->high << 4 | scan->low));
}

weir_status_t* weir_jpeg_put_scan(const weir_jpeg_image_t* image, const weir_jpeg_scan_t* scan,
                                  bool is_progressive, bool is_optimized, unsigned* sent,
                                  weir_strbuf_t* out) {
  writer_t* w = weir_calloc(1, sizeof *w);
  if (!w) return weir_out_of_memory();
  w->image = image;
  w->scan = scan;
  w->is_progressive = is_progressive;
  w->out = out;
  if (is_optimized) {
    w->counts = true;
    put_blocks(w);
    w->counts = false;
  }
  put_tables(w, is_optimized, sent);
  put_scan_header(w);
  put_blocks(w);
  if (w->bit_count > 0) put_bits(w, 0x7f, 8 - w->bit_count);
  weir_free(w);
  return NULL;
}
