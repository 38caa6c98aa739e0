// inflate.c — Inflating deflate, zlib and gzip streams, piece by piece.
#include "base/alloc.h"
#include "file/deflate.h"

enum {
  kHistory = 1 << 15,      // how far back a match may reach
  kWindow = 2 * kHistory,  // history and what was not read yet
  kMaxMatch = 258,
  kInput = 1 << 14,
  kMaxBits = 15,   // of a code
  kFastBits = 10,  // codes up to this length are found by one look
  kLiterals = 288,
  kDistances = 32,
};

// ---- codes ----

// A canonical Huffman code. Bits arrive lowest first, so |fast| is indexed by reversed codes.
typedef struct code_t {
  uint16_t fast[1 << kFastBits];  // symbol << 4 | length; 0: longer, or no code
  uint16_t count[kMaxBits + 1];   // codes of each length
  uint16_t symbols[kLiterals];    // in the order of their codes
} code_t;

// The lowest |length| bits of |bits| in reverse.
static unsigned reverse(unsigned bits, int length) {
  bits = (bits & 0x5555u) << 1 | (bits >> 1 & 0x5555u);
  bits = (bits & 0x3333u) << 2 | (bits >> 2 & 0x3333u);
  bits = (bits & 0x0f0fu) << 4 | (bits >> 4 & 0x0f0fu);
  bits = (bits & 0x00ffu) << 8 | (bits >> 8 & 0x00ffu);
  return bits >> (16 - length);
}

static void fill_fast(code_t* code, const uint8_t* lengths, int symbol_count) {
  uint16_t next[kMaxBits + 2] = {0};
  for (int i = 1; i <= kMaxBits; ++i) next[i + 1] = (uint16_t)((next[i] + code->count[i]) << 1);
  memset(code->fast, 0, sizeof code->fast);
  for (int s = 0; s < symbol_count; ++s) {
    const int length = lengths[s];
    if (length == 0) continue;
    const unsigned bits = next[length]++;
    if (length > kFastBits) continue;
    for (unsigned i = reverse(bits, length); i < 1u << kFastBits; i += 1u << length) {
      code->fast[i] = (uint16_t)(s << 4 | length);
    }
  }
}

// False for lengths that no code has. Codes that leave room are wrong, too, unless they are one
// code of one bit, or none.
static bool make_code(code_t* code, const uint8_t* lengths, int symbol_count, bool may_be_short) {
  uint16_t offset[kMaxBits + 2] = {0};
  int left = 1, longest = 0;
  memset(code->count, 0, sizeof code->count);
  for (int s = 0; s < symbol_count; ++s) code->count[lengths[s]] += 1;
  code->count[0] = 0;
  for (int i = 1; i <= kMaxBits; ++i) {
    left = (left << 1) - code->count[i];
    if (left < 0) return false;
    if (code->count[i]) longest = i;
    offset[i + 1] = (uint16_t)(offset[i] + code->count[i]);
  }
  if (left > 0 && longest > 0 && !(may_be_short && longest == 1)) return false;
  if (longest == 0 && !may_be_short) return false;
  for (int s = 0; s < symbol_count; ++s) {
    if (lengths[s]) code->symbols[offset[lengths[s]]++] = (uint16_t)s;
  }
  fill_fast(code, lengths, symbol_count);
  return true;
}

// ---- the inflater ----

typedef enum stage_t {
  STAGE_HEADER,  // of the wrapper
  STAGE_BLOCK,   // of a block
  STAGE_STORED,
  STAGE_CODED,
  STAGE_TRAILER,
  STAGE_END,
} stage_t;

struct weir_inflater_t {
  weir_deflate_format_t format;
  weir_inflate_source_fn_t source;
  void* arg;
  weir_status_t* status;  // an error to report, once what came before is read
  stage_t stage;
  bool is_source_at_end;
  bool is_cut_off;
  bool is_last_block;
  bool has_member;       // a gzip member was read to its end
  uint32_t stored_left;  // bytes of a stored block
  uint32_t checksum;     // crc or adler of what was made
  uint64_t bits;         // input, lowest first
  unsigned bit_count;
  size_t input_next, input_size;
  size_t total;              // bytes of this member, up to the history: how far back one may reach
  size_t read_at, write_at;  // in |window|
  code_t literals, distances;
  uint8_t input[kInput];
  uint8_t window[kWindow];
};

weir_status_t* weir_inflater_create(weir_deflate_format_t format, weir_inflate_source_fn_t source,
                                    void* arg, weir_inflater_t** out_inflater) {
  weir_inflater_t* z = weir_calloc(1, sizeof *z);
  if (!z) return weir_out_of_memory();
  z->format = format;
  z->source = source;
  z->arg = arg;
  *out_inflater = z;
  return NULL;
}

void weir_inflater_destroy(weir_inflater_t* inflater) {
  if (!inflater) return;
  weir_status_destroy(inflater->status);
  weir_free(inflater);
}

bool weir_inflater_is_complete(const weir_inflater_t* inflater) {
  return inflater->stage == STAGE_END && !inflater->status;
}

static bool fail(weir_inflater_t* z, const char* what) {
  if (!z->status) z->status = WEIR_STATUS(DATA_LOSS, "inflate failed: %s", what);
  return false;
}

// ---- bits ----

static bool fill_input(weir_inflater_t* z) {
  if (z->is_source_at_end || z->status) return false;
  size_t got = 0;
  z->status = z->source(z->arg, z->input, sizeof z->input, &got);
  z->input_next = 0;
  z->input_size = got;
  z->is_source_at_end = got == 0;
  return got > 0 && !z->status;
}

// Makes |count| (up to 32) bits ready, or as many as there are.
static bool want_bits(weir_inflater_t* z, unsigned count) {
  while (z->bit_count < count) {
    if (z->input_next == z->input_size && !fill_input(z)) return false;
    z->bits |= (uint64_t)z->input[z->input_next++] << z->bit_count;
    z->bit_count += 8;
  }
  return true;
}

static void drop_bits(weir_inflater_t* z, unsigned count) {
  z->bits >>= count;
  z->bit_count -= count;
}

static bool take_bits(weir_inflater_t* z, unsigned count, uint32_t* out_value) {
  if (!want_bits(z, count)) {
    z->is_cut_off = true;
    return false;
  }
  *out_value = (uint32_t)(z->bits & (((uint64_t)1 << count) - 1));
  drop_bits(z, count);
  return true;
}

static bool take_symbol(weir_inflater_t* z, const code_t* code, uint32_t* out_symbol) {
  const bool has_all = want_bits(z, kMaxBits);
  const uint16_t entry = code->fast[z->bits & ((1u << kFastBits) - 1)];
  if (entry && (entry & 15u) <= z->bit_count) {
    drop_bits(z, entry & 15u);
    *out_symbol = entry >> 4;
    return true;
  }
  int value = 0, first = 0, index = 0;
  for (unsigned length = 1; length <= kMaxBits && length <= z->bit_count; ++length) {
    value |= (int)(z->bits >> (length - 1) & 1);
    const int count = code->count[length];
    if (value - count < first) {
      drop_bits(z, length);
      *out_symbol = code->symbols[index + (value - first)];
      return true;
    }
    index += count;
    first = (first + count) << 1;
    value <<= 1;
  }
  if (has_all) return fail(z, "invalid code");
  z->is_cut_off = true;
  return false;
}

// ---- wrappers ----

static bool zlib_header(weir_inflater_t* z) {
  uint32_t method = 0, flags = 0;
  if (!take_bits(z, 8, &method) || !take_bits(z, 8, &flags)) return false;
  if ((method << 8 | flags) % 31 != 0) return fail(z, "incorrect header check");
  if ((method & 15u) != 8) return fail(z, "unknown compression method");
  if (method >> 4 > 7) return fail(z, "invalid window size");
  if (flags & 32u) return fail(z, "a dictionary is needed");
  z->checksum = 1;
  return true;
}

static bool skip_bytes(weir_inflater_t* z, uint32_t count) {
  uint32_t unused;
  for (uint32_t i = 0; i < count; ++i) {
    if (!take_bits(z, 8, &unused)) return false;
  }
  return true;
}

static bool skip_text(weir_inflater_t* z) {
  uint32_t byte = 0;
  do {
    if (!take_bits(z, 8, &byte)) return false;
  } while (byte != 0);
  return true;
}

static bool gzip_header(weir_inflater_t* z) {
  uint32_t magic = 0, method = 0, flags = 0, size = 0;
  if (z->has_member && !want_bits(z, 1)) {  // that was the last
    z->stage = STAGE_END;
    return false;
  }
  if (!take_bits(z, 16, &magic)) return false;
  if (magic != 0x8b1f) return fail(z, "incorrect header check");
  if (!take_bits(z, 8, &method) || !take_bits(z, 8, &flags)) return false;
  if (method != 8) return fail(z, "unknown compression method");
  if (flags & 0xe0u) return fail(z, "unknown header flags set");
  if (!skip_bytes(z, 6)) return false;
  if ((flags & 4u) && (!take_bits(z, 16, &size) || !skip_bytes(z, size))) return false;
  if ((flags & 8u) && !skip_text(z)) return false;
  if ((flags & 16u) && !skip_text(z)) return false;
  if ((flags & 2u) && !skip_bytes(z, 2)) return false;
  z->checksum = 0;
  z->total = 0;
  return true;
}

static bool run_header(weir_inflater_t* z) {
  if (z->format == WEIR_DEFLATE_ZLIB && !zlib_header(z)) return false;
  if (z->format == WEIR_DEFLATE_GZIP && !gzip_header(z)) return false;
  z->stage = STAGE_BLOCK;
  return true;
}

// The checksum covers what was made so far: it is kept up to date before this is called.
static bool run_trailer(weir_inflater_t* z) {
  uint32_t check = 0, unused = 0;
  drop_bits(z, z->bit_count & 7u);
  if (z->format == WEIR_DEFLATE_RAW) {
    z->stage = STAGE_END;
    return true;
  }
  if (!take_bits(z, 32, &check)) return false;
  if (z->format == WEIR_DEFLATE_GZIP) {
    if (check != z->checksum) return fail(z, "incorrect data check");
    if (!take_bits(z, 32, &unused)) return false;
    z->has_member = true;
    z->stage = STAGE_HEADER;
    return true;
  }
  const uint32_t adler = z->checksum;
  const uint32_t swapped =
      adler << 24 | (adler & 0xff00u) << 8 | (adler >> 8 & 0xff00u) | adler >> 24;
  if (check != swapped) return fail(z, "incorrect data check");
  z->stage = STAGE_END;
  return true;
}

// ---- blocks ----

static bool start_fixed(weir_inflater_t* z) {
  uint8_t lengths[kLiterals];
  for (int i = 0; i < kLiterals; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
  if (!make_code(&z->literals, lengths, kLiterals, false)) return fail(z, "invalid code");
  memset(lengths, 5, kDistances);
  return make_code(&z->distances, lengths, kDistances, false) || fail(z, "invalid code");
}

// The lengths of both codes, themselves coded with |z->literals|.
static bool read_lengths(weir_inflater_t* z, uint8_t* lengths, uint32_t count) {
  uint32_t at = 0;
  while (at < count) {
    uint32_t symbol = 0, repeat = 0;
    uint8_t value = 0;
    if (!take_symbol(z, &z->literals, &symbol)) return false;
    if (symbol < 16) {
      lengths[at++] = (uint8_t)symbol;
      continue;
    }
    if (symbol == 16) {
      if (at == 0) return fail(z, "invalid bit length repeat");
      value = lengths[at - 1];
    }
    if (!take_bits(z, symbol == 16 ? 2 : symbol == 17 ? 3 : 7, &repeat)) return false;
    repeat += symbol == 18 ? 11 : 3;
    if (repeat > count - at) return fail(z, "invalid bit length repeat");
    memset(lengths + at, value, repeat);
    at += repeat;
  }
  return true;
}

static bool start_dynamic(weir_inflater_t* z) {
  static const uint8_t kOrder[19] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                     11, 4,  12, 3, 13, 2, 14, 1, 15};
  uint8_t lengths[kLiterals + kDistances] = {0};
  uint8_t small[19] = {0};
  uint32_t literals = 0, distances = 0, count = 0, length = 0;
  if (!take_bits(z, 5, &literals) || !take_bits(z, 5, &distances) || !take_bits(z, 4, &count)) {
    return false;
  }
  literals += 257;
  distances += 1;
  if (literals > 286 || distances > 30) return fail(z, "too many length or distance symbols");
  for (uint32_t i = 0; i < count + 4; ++i) {
    if (!take_bits(z, 3, &length)) return false;
    small[kOrder[i]] = (uint8_t)length;
  }
  if (!make_code(&z->literals, small, 19, false)) return fail(z, "invalid code lengths set");
  if (!read_lengths(z, lengths, literals + distances)) return false;
  if (lengths[256] == 0) return fail(z, "invalid code -- missing end-of-block");
  if (!make_code(&z->literals, lengths, (int)literals, true)) {
    return fail(z, "invalid literal/lengths set");
  }
  if (!make_code(&z->distances, lengths + literals, (int)distances, true)) {
    return fail(z, "invalid distances set");
  }
  return true;
}

static bool run_block(weir_inflater_t* z) {
  uint32_t is_last = 0, kind = 0, size = 0, inverse = 0;
  if (z->is_last_block) {
    z->is_last_block = false;
    z->stage = STAGE_TRAILER;
    return true;
  }
  if (!take_bits(z, 1, &is_last) || !take_bits(z, 2, &kind)) return false;
  if (kind == 3) return fail(z, "invalid block type");
  if (kind == 0) {
    drop_bits(z, z->bit_count & 7u);
    if (!take_bits(z, 16, &size) || !take_bits(z, 16, &inverse)) return false;
    if (size != (inverse ^ 0xffffu)) return fail(z, "invalid stored block lengths");
    z->stored_left = size;
  } else if (!(kind == 1 ? start_fixed(z) : start_dynamic(z))) {
    return false;
  }
  z->is_last_block = is_last != 0;
  z->stage = kind == 0 ? STAGE_STORED : STAGE_CODED;
  return true;
}

static bool run_stored(weir_inflater_t* z) {
  uint32_t byte = 0;
  while (z->stored_left > 0 && z->write_at < kWindow) {
    if (z->bit_count == 0 && z->input_next < z->input_size) {  // most of it as it is
      size_t size = WEIR_MIN(z->input_size - z->input_next, kWindow - z->write_at);
      size = WEIR_MIN(size, (size_t)z->stored_left);
      memcpy(z->window + z->write_at, z->input + z->input_next, size);
      z->input_next += size;
      z->write_at += size;
      z->stored_left -= (uint32_t)size;
      continue;
    }
    if (!take_bits(z, 8, &byte)) return false;
    z->window[z->write_at++] = (uint8_t)byte;
    z->stored_left -= 1;
  }
  if (z->stored_left == 0) z->stage = STAGE_BLOCK;
  return true;
}

static bool copy_match(weir_inflater_t* z, uint32_t symbol, size_t made) {
  static const uint16_t kLength[29] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                       15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                       67, 83, 99, 115, 131, 163, 195, 227, 258};
  static const uint8_t kLengthBits[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                          2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
  uint32_t extra = 0, code = 0;
  if (symbol > 285) return fail(z, "invalid literal/length code");
  if (!take_bits(z, kLengthBits[symbol - 257], &extra)) return false;
  size_t length = kLength[symbol - 257] + extra;
  if (!take_symbol(z, &z->distances, &code)) return false;
  if (code > 29) return fail(z, "invalid distance code");
  // Distances: 1, 2, 3, 4, then two of each number of extra bits.
  const unsigned bits = code < 4 ? 0 : (code >> 1) - 1;
  if (!take_bits(z, bits, &extra)) return false;
  const size_t distance = code < 4 ? code + 1 : ((size_t)(2 + (code & 1u)) << bits) + 1 + extra;
  if (distance > made) return fail(z, "invalid distance too far back");
  uint8_t* to = z->window + z->write_at;
  for (size_t i = 0; i < length; ++i) to[i] = to[(ptrdiff_t)i - (ptrdiff_t)distance];
  z->write_at += length;
  return true;
}

static bool run_coded(weir_inflater_t* z, size_t begin) {
  uint32_t symbol = 0;
  while (z->write_at <= kWindow - kMaxMatch) {
    if (!take_symbol(z, &z->literals, &symbol)) return false;
    if (symbol < 256) {
      z->window[z->write_at++] = (uint8_t)symbol;
    } else if (symbol == 256) {
      z->stage = STAGE_BLOCK;
      break;
    } else if (!copy_match(z, symbol, z->total + (z->write_at - begin))) {
      return false;
    }
  }
  return true;
}

static bool run_stage(weir_inflater_t* z) {
  const size_t begin = z->write_at;
  bool is_well = false;
  switch (z->stage) {
    case STAGE_HEADER: return run_header(z);
    case STAGE_BLOCK: return run_block(z);
    case STAGE_TRAILER: return run_trailer(z);
    case STAGE_END: return false;
    case STAGE_STORED: is_well = run_stored(z); break;
    case STAGE_CODED: is_well = run_coded(z, begin); break;
  }
  const size_t made = z->write_at - begin;
  z->total = WEIR_MIN(z->total + made, (size_t)kHistory);
  if (z->format == WEIR_DEFLATE_ZLIB) {
    z->checksum = weir_adler32(z->checksum, z->window + begin, made);
  } else if (z->format == WEIR_DEFLATE_GZIP) {
    z->checksum = weir_crc32(z->checksum, z->window + begin, made);
  }
  return is_well;
}

// Makes more bytes; all that were made must have been read.
static void produce(weir_inflater_t* z) {
  if (z->write_at > kHistory) {
    memmove(z->window, z->window + z->write_at - kHistory, kHistory);
    z->write_at = kHistory;
  }
  z->read_at = z->write_at;
  while (z->write_at <= kWindow - kMaxMatch && run_stage(z)) continue;
}

weir_status_t* weir_inflater_read(weir_inflater_t* inflater, void* buffer, size_t size,
                                  size_t* out_size) {
  weir_inflater_t* z = inflater;
  size_t got = 0;
  while (got < size) {
    if (z->read_at == z->write_at) {
      if (z->status || z->is_cut_off || z->stage == STAGE_END) break;
      produce(z);
      if (z->read_at == z->write_at) continue;
    }
    const size_t part = WEIR_MIN(size - got, z->write_at - z->read_at);
    memcpy((char*)buffer + got, z->window + z->read_at, part);
    z->read_at += part;
    got += part;
  }
  *out_size = got;
  if (got < size && z->status) return weir_status_copy(z->status);
  return NULL;
}

// ---- in memory ----

static weir_status_t* view_source(void* arg, void* buffer, size_t size, size_t* out_size) {
  weir_view_t* rest = arg;
  *out_size = WEIR_MIN(size, rest->size);
  if (*out_size > 0) memcpy(buffer, rest->data, *out_size);
  *rest = weir_view(rest->data + *out_size, rest->size - *out_size);
  return NULL;
}

weir_status_t* weir_inflate(weir_deflate_format_t format, weir_view_t data, size_t limit,
                            weir_strbuf_t* out) {
  enum { kStep = 1 << 15 };
  weir_inflater_t* inflater = NULL;
  size_t total = 0;
  weir_status_t* status = weir_inflater_create(format, view_source, &data, &inflater);
  while (!status) {
    size_t got = 0;
    if (!weir_strbuf_reserve(out, kStep)) {
      status = weir_out_of_memory();
      break;
    }
    status = weir_inflater_read(inflater, out->data + out->size, kStep, &got);
    if (status) break;
    out->size += got;
    total += got;
    if (total > limit) {
      status = WEIR_STATUS(RESOURCE_EXHAUSTED, "inflates to more than %zu bytes", limit);
    } else if (got < kStep) {
      if (!weir_inflater_is_complete(inflater)) {
        status = WEIR_STATUS(DATA_LOSS, "inflate failed: the data is cut off");
      }
      break;
    }
  }
  weir_inflater_destroy(inflater);
  return status;
}

// ---- files ----

typedef struct inflated_file_t {
  weir_file_t base;
  weir_deflate_format_t format;
  weir_file_t* source;
  uint64_t source_offset;
  weir_inflater_t* inflater;
  uint64_t offset;  // of the inflater
} inflated_file_t;

static weir_status_t* file_source(void* arg, void* buffer, size_t size, size_t* out_size) {
  inflated_file_t* file = arg;
  WEIR_TRY(weir_file_read(file->source, file->source_offset, buffer, size, out_size));
  file->source_offset += *out_size;
  return NULL;
}

static weir_status_t* inflated_start(inflated_file_t* file) {
  weir_inflater_destroy(file->inflater);
  file->inflater = NULL;
  file->source_offset = file->offset = 0;
  return weir_inflater_create(file->format, file_source, file, &file->inflater);
}

static weir_status_t* inflated_read(weir_file_t* self, uint64_t offset, void* buffer, size_t size,
                                    size_t* out_size) {
  inflated_file_t* file = (inflated_file_t*)self;
  char unused[4096];
  size_t got = 0;
  if (!file->inflater || offset < file->offset) WEIR_TRY(inflated_start(file));
  while (file->offset < offset) {
    const size_t step = (size_t)WEIR_MIN(offset - file->offset, (uint64_t)sizeof unused);
    WEIR_TRY(weir_inflater_read(file->inflater, unused, step, &got));
    file->offset += got;
    if (got < step) {
      *out_size = 0;
      return NULL;
    }
  }
  weir_status_t* status = weir_inflater_read(file->inflater, buffer, size, &got);
  file->offset += got;
  if (status) return weir_status_prefix(status, "%s: ", self->path);
  *out_size = got;
  return NULL;
}

static void inflated_close(weir_file_t* self) {
  inflated_file_t* file = (inflated_file_t*)self;
  weir_inflater_destroy(file->inflater);
  weir_file_close(file->source);
  weir_free(self->path);
  weir_free(file);
}

static const weir_file_vtable_t kInflatedFile = {.read = inflated_read, .close = inflated_close};

weir_status_t* weir_file_open_inflated(const char* path, weir_deflate_format_t format,
                                       weir_file_t** out_file) {
  weir_file_t* source = NULL;
  WEIR_TRY(weir_file_open(path, &source));
  inflated_file_t* file = weir_calloc(1, sizeof *file);
  char* copy = weir_strdup(path);
  if (!file || !copy) {
    weir_free(file);
    weir_free(copy);
    weir_file_close(source);
    return weir_out_of_memory();
  }
  file->base = (weir_file_t){.vtable = &kInflatedFile, .size = UINT64_MAX, .path = copy};
  file->format = format;
  file->source = source;
  *out_file = &file->base;
  return NULL;
}
