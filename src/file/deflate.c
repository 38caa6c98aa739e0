// deflate.c — Deflating: matches by hash chains, blocks with the cheapest of the three codings.
#include "file/deflate.h"

#include "base/alloc.h"
#include "file/coding.h"

enum {
  kHistory = 1 << 15,
  kMinMatch = 3,
  kMaxMatch = 258,
  kHashBits = 15,
  kBlockItems = 1 << 15,
  kLiterals = 286,
  kDistances = 30,
  kLengths = 19,  // symbols of the code that the two codes' lengths are written in
  kEnd = 256,     // the symbol that ends a block
  kMaxStored = 65535,
};

// ---- checksums ----

uint32_t weir_crc32(uint32_t crc, const void* data, size_t size) {
  // Four bits at a time: the table is small enough to be read at sight.
  static const uint32_t kTable[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac,
                                      0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                      0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                      0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
  const uint8_t* bytes = data;
  crc = ~crc;
  for (size_t i = 0; i < size; ++i) {
    crc ^= bytes[i];
    crc = crc >> 4 ^ kTable[crc & 15u];
    crc = crc >> 4 ^ kTable[crc & 15u];
  }
  return ~crc;
}

uint32_t weir_adler32(uint32_t adler, const void* data, size_t size) {
  enum { kPrime = 65521, kRun = 5552 };  // so many bytes do not overflow 32 bits
  const uint8_t* bytes = data;
  uint32_t a = adler & 0xffffu, b = adler >> 16;
  while (size > 0) {
    const size_t run = WEIR_MIN(size, (size_t)kRun);
    for (size_t i = 0; i < run; ++i) b += a += bytes[i];
    a %= kPrime;
    b %= kPrime;
    bytes += run;
    size -= run;
  }
  return b << 16 | a;
}

// ---- state ----

typedef struct item_t {
  uint16_t length;    // of a match, or the byte itself
  uint16_t distance;  // 0: a literal
} item_t;

typedef struct deflater_t {
  weir_strbuf_t* out;
  uint64_t bits;
  unsigned bit_count;
  weir_view_t data;
  int depth;       // of hash chains
  size_t nice;     // a match as long as this is not improved upon
  int32_t* head;   // by hash: the last position + 1
  int32_t* chain;  // by position within the history: the one before it
  item_t* items;
  size_t item_count;
  size_t block_begin;  // in |data|
  uint32_t literal_uses[kLiterals], distance_uses[kDistances];
} deflater_t;

static void put_bits(deflater_t* d, uint32_t value, unsigned count) {
  d->bits |= (uint64_t)value << d->bit_count;
  d->bit_count += count;
  while (d->bit_count >= 8) {
    weir_strbuf_putc(d->out, (char)(d->bits & 255u));
    d->bits >>= 8;
    d->bit_count -= 8;
  }
}

static void flush_bits(deflater_t* d) {
  if (d->bit_count > 0) put_bits(d, 0, 8 - d->bit_count);
}

// ---- symbols of lengths and distances ----

static unsigned log2_floor(unsigned x) { return 31u - (unsigned)__builtin_clz(x); }

// Symbol, number of extra bits and their value.
static unsigned length_symbol(unsigned length, unsigned* out_bits, unsigned* out_extra) {
  if (length == kMaxMatch) {
    *out_bits = *out_extra = 0;
    return 285;
  }
  const unsigned x = length - kMinMatch;
  const unsigned bits = x < 8 ? 0 : log2_floor(x) - 2;
  *out_bits = bits;
  *out_extra = x & ((1u << bits) - 1);
  return 257 + (bits << 2) + (x >> bits);
}

static unsigned distance_symbol(unsigned distance, unsigned* out_bits, unsigned* out_extra) {
  const unsigned x = distance - 1;
  const unsigned bits = x < 4 ? 0 : log2_floor(x) - 1;
  *out_bits = bits;
  *out_extra = x & ((1u << bits) - 1);
  return (bits << 1) + (x >> bits);
}

// ---- codes ----

typedef struct code_t {
  // By symbol. One array of pairs and not two of different strides: there, GCC 12 for AArch64 loses
  // stores in the loop of assign_codes.
  struct {
    uint16_t bits;  // reversed: the first bit is the lowest
    uint8_t length;
  } of[kLiterals + 2];
} code_t;

typedef struct leaf_t {
  uint32_t uses;
  uint16_t symbol;
} leaf_t;

static void sort_leaves(leaf_t* leaves, int count) {
  for (int gap = count / 2; gap > 0; gap /= 2) {
    for (int i = gap; i < count; ++i) {
      const leaf_t leaf = leaves[i];
      int j = i;
      for (; j >= gap && leaves[j - gap].uses > leaf.uses; j -= gap) leaves[j] = leaves[j - gap];
      leaves[j] = leaf;
    }
  }
}

// How many codes of each length an optimal tree over the sorted |leaves| has. Trees are made from
// two queues: the leaves, and the inner nodes, which come out in order by themselves.
static void count_lengths(const leaf_t* leaves, int count, int* counts, int longest) {
  uint64_t weights[kLiterals];
  int parents[2 * kLiterals], depths[2 * kLiterals];
  int leaf = 0, inner = 0;
  for (int made = 0; made < count - 1; ++made) {
    uint64_t sum = 0;
    for (int k = 0; k < 2; ++k) {
      if (inner == made || (leaf < count && leaves[leaf].uses <= weights[inner])) {
        sum += leaves[leaf].uses;
        parents[leaf++] = count + made;
      } else {
        sum += weights[inner];
        parents[count + inner++] = count + made;
      }
    }
    weights[made] = sum;
  }
  depths[2 * count - 2] = 0;
  for (int i = 2 * count - 3; i >= 0; --i) depths[i] = depths[parents[i]] + 1;
  for (int i = 0; i < count; ++i) counts[WEIR_MIN(depths[i], longest)] += 1;
}

// Cutting long codes off leaves too many codes: lengthens short ones until they fit.
static void limit_lengths(int* counts, int longest) {
  uint32_t used = 0;
  for (int i = 1; i <= longest; ++i) used += (uint32_t)counts[i] << (longest - i);
  while (used > 1u << longest) {
    int i = longest - 1;
    while (counts[i] == 0) --i;
    counts[i] -= 1;  // becomes an inner node over itself and one of the longest
    counts[i + 1] += 2;
    counts[longest] -= 1;
    used -= 1;
  }
}

// The lowest |length| bits of |bits| in reverse.
static unsigned reverse(unsigned bits, int length) {
  bits = (bits & 0x5555u) << 1 | (bits >> 1 & 0x5555u);
  bits = (bits & 0x3333u) << 2 | (bits >> 2 & 0x3333u);
  bits = (bits & 0x0f0fu) << 4 | (bits >> 4 & 0x0f0fu);
  bits = (bits & 0x00ffu) << 8 | (bits >> 8 & 0x00ffu);
  return bits >> (16 - length);
}

// Codes count up among those of a length, and go on doubled with the next length.
static void assign_codes(code_t* code, int symbol_count) {
  unsigned next = 0;
  for (int length = 1; length < 16; ++length, next <<= 1) {
    for (int s = 0; s < symbol_count; ++s) {
      if (code->of[s].length == length) code->of[s].bits = (uint16_t)reverse(next++, length);
    }
  }
}

static void build_code(code_t* code, const uint32_t* uses, int symbol_count, int longest) {
  leaf_t leaves[kLiterals];
  int counts[16] = {0};
  int count = 0;
  memset(code, 0, sizeof *code);
  for (int s = 0; s < symbol_count; ++s) {
    if (uses[s]) leaves[count++] = (leaf_t){.uses = uses[s], .symbol = (uint16_t)s};
  }
  // A code of one symbol would leave room, which inflaters refuse but for distances.
  for (int s = 0; count < 2; ++s) {
    if (!uses[s]) leaves[count++] = (leaf_t){.uses = 1, .symbol = (uint16_t)s};
  }
  sort_leaves(leaves, count);
  count_lengths(leaves, count, counts, longest);
  limit_lengths(counts, longest);
  for (int length = longest, i = 0; length > 0; --length) {  // the rarest get the longest
    for (int k = 0; k < counts[length]; ++k) code->of[leaves[i++].symbol].length = (uint8_t)length;
  }
  assign_codes(code, symbol_count);
}

static void fixed_codes(code_t* literals, code_t* distances) {
  for (int i = 0; i < 288; ++i)
    literals->of[i].length = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  for (int i = 0; i < 30; ++i) distances->of[i].length = 5;
  assign_codes(literals, 288);
  assign_codes(distances, 30);
}

// ---- blocks ----

static uint64_t coded_size(const deflater_t* d, const code_t* literals, const code_t* distances) {
  uint64_t bits = 0;
  for (int i = 0; i < kLiterals; ++i) {
    const int extra = i < 265 || i == 285 ? 0 : (i - 261) / 4;
    bits += (uint64_t)d->literal_uses[i] * (unsigned)(literals->of[i].length + extra);
  }
  for (int i = 0; i < kDistances; ++i) {
    const int extra = i < 4 ? 0 : i / 2 - 1;
    bits += (uint64_t)d->distance_uses[i] * (unsigned)(distances->of[i].length + extra);
  }
  return bits;
}

static void put_symbol(deflater_t* d, const code_t* code, unsigned symbol) {
  put_bits(d, code->of[symbol].bits, code->of[symbol].length);
}

static void put_items(deflater_t* d, const code_t* literals, const code_t* distances) {
  for (size_t i = 0; i < d->item_count; ++i) {
    const item_t item = d->items[i];
    unsigned bits = 0, extra = 0;
    if (item.distance == 0) {
      put_symbol(d, literals, item.length);
      continue;
    }
    put_symbol(d, literals, length_symbol(item.length, &bits, &extra));
    put_bits(d, extra, bits);
    put_symbol(d, distances, distance_symbol(item.distance, &bits, &extra));
    put_bits(d, extra, bits);
  }
  put_symbol(d, literals, kEnd);
}

static void put_stored(deflater_t* d, weir_view_t data, bool is_last) {
  do {
    const size_t size = WEIR_MIN(data.size, (size_t)kMaxStored);
    put_bits(d, is_last && size == data.size, 1);
    put_bits(d, 0, 2);
    flush_bits(d);
    put_bits(d, (uint32_t)size, 16);
    put_bits(d, (uint32_t)size ^ 0xffffu, 16);
    if (size > 0) weir_strbuf_append(d->out, data.data, size);
    data = weir_view(data.data + size, data.size - size);
  } while (data.size > 0);
}

// The lengths of both codes as runs: the symbol, and for 16, 17 and 18 the extra bits above it.
typedef struct header_t {
  uint16_t runs[kLiterals + kDistances];
  int run_count;
  int literal_count, distance_count, length_count;
  code_t code;
  uint64_t size;  // in bits
} header_t;

static void add_run(header_t* h, uint32_t* uses, unsigned symbol, unsigned extra) {
  h->runs[h->run_count++] = (uint16_t)(symbol | extra << 5);
  uses[symbol] += 1;
}

static void make_runs(header_t* h, const uint8_t* lengths, int count, uint32_t* uses) {
  for (int i = 0; i < count;) {
    int run = 1;
    while (i + run < count && lengths[i + run] == lengths[i]) ++run;
    i += run;
    const unsigned length = lengths[i - 1];
    if (length != 0) {
      add_run(h, uses, length, 0);
      --run;
    }
    while (run >= 3) {
      const int part = WEIR_MIN(run, length != 0 ? 6 : 138);
      if (length != 0) {
        add_run(h, uses, 16, (unsigned)part - 3);
      } else if (part < 11) {
        add_run(h, uses, 17, (unsigned)part - 3);
      } else {
        add_run(h, uses, 18, (unsigned)part - 11);
      }
      run -= part;
    }
    for (; run > 0; --run) add_run(h, uses, length, 0);
  }
}

static const uint8_t kLengthOrder[kLengths] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                               11, 4,  12, 3, 13, 2, 14, 1, 15};

static void make_header(header_t* h, const code_t* literals, const code_t* distances) {
  uint8_t lengths[kLiterals + kDistances];
  uint32_t uses[kLengths] = {0};
  h->run_count = 0;
  h->literal_count = kLiterals;
  while (h->literal_count > 257 && literals->of[h->literal_count - 1].length == 0)
    --h->literal_count;
  h->distance_count = kDistances;
  while (h->distance_count > 1 && distances->of[h->distance_count - 1].length == 0) {
    --h->distance_count;
  }
  for (int i = 0; i < h->literal_count; ++i) lengths[i] = literals->of[i].length;
  for (int i = 0; i < h->distance_count; ++i) {
    lengths[h->literal_count + i] = distances->of[i].length;
  }
  make_runs(h, lengths, h->literal_count + h->distance_count, uses);
  build_code(&h->code, uses, kLengths, 7);
  h->length_count = kLengths;
  while (h->length_count > 4 && h->code.of[kLengthOrder[h->length_count - 1]].length == 0) {
    --h->length_count;
  }
  h->size = 14 + 3 * (uint64_t)h->length_count;
  for (int i = 0; i < kLengths; ++i) {
    const int extra = i == 16 ? 2 : i == 17 ? 3 : i == 18 ? 7 : 0;
    h->size += (uint64_t)uses[i] * (unsigned)(h->code.of[i].length + extra);
  }
}

static void put_header(deflater_t* d, const header_t* h) {
  put_bits(d, (uint32_t)h->literal_count - 257, 5);
  put_bits(d, (uint32_t)h->distance_count - 1, 5);
  put_bits(d, (uint32_t)h->length_count - 4, 4);
  for (int i = 0; i < h->length_count; ++i) put_bits(d, h->code.of[kLengthOrder[i]].length, 3);
  for (int i = 0; i < h->run_count; ++i) {
    const unsigned symbol = h->runs[i] & 31u, extra = h->runs[i] >> 5;
    put_symbol(d, &h->code, symbol);
    if (symbol >= 16) put_bits(d, extra, symbol == 16 ? 2 : symbol == 17 ? 3 : 7);
  }
}

// Writes the items since |block_begin|, which stand for the data up to |end|.
static void put_block(deflater_t* d, size_t end, bool is_last) {
  code_t literals = {.of = {{0}}}, distances = {.of = {{0}}};
  header_t header;
  d->literal_uses[kEnd] = 1;
  build_code(&literals, d->literal_uses, kLiterals, 15);
  build_code(&distances, d->distance_uses, kDistances, 15);
  make_header(&header, &literals, &distances);
  const uint64_t dynamic_size = header.size + coded_size(d, &literals, &distances);
  code_t fixed_literals = {.of = {{0}}}, fixed_distances = {.of = {{0}}};
  fixed_codes(&fixed_literals, &fixed_distances);
  const uint64_t fixed_size = coded_size(d, &fixed_literals, &fixed_distances);
  const size_t size = end - d->block_begin;
  const uint64_t stored_size = 8 * (uint64_t)size + 40 * (size / kMaxStored + 1);
  if (stored_size < WEIR_MIN(fixed_size, dynamic_size)) {
    put_stored(d, weir_view(d->data.data + d->block_begin, size), is_last);
  } else if (fixed_size <= dynamic_size) {
    put_bits(d, is_last, 1);
    put_bits(d, 1, 2);
    put_items(d, &fixed_literals, &fixed_distances);
  } else {
    put_bits(d, is_last, 1);
    put_bits(d, 2, 2);
    put_header(d, &header);
    put_items(d, &literals, &distances);
  }
  d->item_count = 0;
  d->block_begin = end;
  memset(d->literal_uses, 0, sizeof d->literal_uses);
  memset(d->distance_uses, 0, sizeof d->distance_uses);
}

// ---- matches ----

static uint32_t hash_at(const deflater_t* d, size_t at) {
  const uint8_t* p = (const uint8_t*)d->data.data + at;
  return (((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16) * 0x9e3779b1u) >>
         (32 - kHashBits);
}

static void note_position(deflater_t* d, size_t at) {
  if (at + kMinMatch > d->data.size) return;
  const uint32_t hash = hash_at(d, at);
  d->chain[at % kHistory] = d->head[hash];
  d->head[hash] = (int32_t)at + 1;
}

// The longest match for what stands at |at|, which is not noted yet; 0 for none.
static size_t find_match(const deflater_t* d, size_t at, size_t* out_distance) {
  const size_t most = WEIR_MIN(d->data.size - at, (size_t)kMaxMatch);
  size_t best = kMinMatch - 1;
  if (most < kMinMatch) return 0;
  const char* here = d->data.data + at;
  size_t limit = at;  // positions must fall, or the chain is of an older round
  int32_t next = d->head[hash_at(d, at)];
  for (int depth = d->depth; next > 0 && depth > 0; --depth) {
    const size_t from = (size_t)next - 1;
    if (from >= limit || at - from > kHistory) break;
    limit = from;
    const char* there = d->data.data + from;
    if (there[best] == here[best]) {
      size_t length = 0;
      while (length < most && there[length] == here[length]) ++length;
      if (length > best) {
        best = length;
        *out_distance = at - from;
        if (length >= d->nice || length == most) break;
      }
    }
    next = d->chain[from % kHistory];
  }
  return best >= kMinMatch ? best : 0;
}

static void add_item(deflater_t* d, unsigned length, unsigned distance) {
  unsigned bits, extra;
  d->items[d->item_count++] = (item_t){.length = (uint16_t)length, .distance = (uint16_t)distance};
  if (distance == 0) {
    d->literal_uses[length] += 1;
  } else {
    d->literal_uses[length_symbol(length, &bits, &extra)] += 1;
    d->distance_uses[distance_symbol(distance, &bits, &extra)] += 1;
  }
}

// A match is taken unless the next byte begins a longer one.
static void deflate_all(deflater_t* d) {
  const size_t size = d->data.size;
  size_t at = 0, next_length = 0, next_distance = 0;
  bool has_next = false;
  while (at < size) {
    size_t length = next_length, distance = next_distance;
    if (!has_next) length = find_match(d, at, &distance);
    note_position(d, at);
    has_next = false;
    if (length > 0 && length < d->nice && at + 1 < size) {
      next_length = find_match(d, at + 1, &next_distance);
      has_next = true;
      if (next_length > length) length = 0;
    }
    if (length == 0) {
      add_item(d, (uint8_t)d->data.data[at], 0);
      at += 1;
    } else {
      add_item(d, (unsigned)length, (unsigned)distance);
      for (size_t i = 1; i < length; ++i) note_position(d, at + i);
      at += length;
      has_next = false;
    }
    if (d->item_count == kBlockItems) put_block(d, at, at == size);
  }
  if (d->item_count > 0 || size == 0) put_block(d, size, true);
}

// ---- the whole ----

static weir_status_t* deflate_body(int level, weir_view_t data, weir_strbuf_t* out) {
  static const struct {
    uint16_t depth, nice;
  } kLevels[10] = {{0, 0},    {4, 16},   {8, 32},    {16, 64},   {24, 96},
                   {48, 128}, {96, 160}, {160, 200}, {400, 258}, {2000, 258}};
  deflater_t d = {.out = out, .data = data};
  if (level == 0) {
    put_stored(&d, data, true);
    return NULL;
  }
  d.depth = kLevels[level].depth;
  d.nice = kLevels[level].nice;
  d.head = weir_calloc((size_t)1 << kHashBits, sizeof *d.head);
  d.chain = weir_calloc(kHistory, sizeof *d.chain);
  d.items = weir_alloc_array(kBlockItems, sizeof *d.items);
  weir_status_t* status = d.head && d.chain && d.items ? NULL : weir_out_of_memory();
  if (!status) {
    deflate_all(&d);
    flush_bits(&d);
  }
  weir_free(d.head);
  weir_free(d.chain);
  weir_free(d.items);
  return status;
}

weir_status_t* weir_deflate(weir_deflate_format_t format, int level, weir_view_t data,
                            weir_strbuf_t* out) {
  static const char kGzip[10] = "\x1f\x8b\x08\0\0\0\0\0\0\xff";
  if (level > 9) return WEIR_STATUS(INVALID_ARGUMENT, "compression level %d is above 9", level);
  if (data.size >= INT32_MAX) {
    return WEIR_STATUS(INVALID_ARGUMENT, "%zu bytes are too many to be deflated", data.size);
  }
  if (!data.data) data = weir_view("", 0);
  if (level < 0) level = 6;
  if (format == WEIR_DEFLATE_ZLIB) weir_strbuf_append(out, "\x78\x9c", 2);
  if (format == WEIR_DEFLATE_GZIP) weir_strbuf_append(out, kGzip, sizeof kGzip);
  WEIR_TRY(deflate_body(level, data, out));
  if (format == WEIR_DEFLATE_ZLIB) {
    const uint32_t adler = weir_adler32(1, data.data, data.size);
    for (int i = 0; i < 4; ++i) weir_strbuf_putc(out, (char)(adler >> (24 - 8 * i) & 255u));
  } else if (format == WEIR_DEFLATE_GZIP) {
    weir_put32(out, weir_crc32(0, data.data, data.size));
    weir_put32(out, (uint32_t)data.size);
  }
  return NULL;
}
