// gif_lzw.c — The pixels of one frame of a GIF.
#include "image/gif_lzw.h"

static void clear(weir_gif_lzw_t* lzw) {
  lzw->size = lzw->least + 1;
  lzw->next = (1 << lzw->least) + 2;
  lzw->last = -1;
}

bool weir_gif_lzw_init(weir_gif_lzw_t* lzw, const uint8_t* at, const uint8_t* end) {
  if (at == end || *at < 1 || *at > 8) return false;
  lzw->least = *at;
  lzw->at = at + 1;
  lzw->end = end;
  lzw->block = lzw->bit_count = lzw->run_size = 0;
  lzw->bits = 0;
  for (int i = 0; i < 1 << lzw->least; ++i) lzw->suffix[i] = lzw->first[i] = (uint8_t)i;
  clear(lzw);
  return true;
}

// -1: the blocks, or the file, are over.
static int next_byte(weir_gif_lzw_t* lzw) {
  if (lzw->block == 0) {
    if (lzw->at == lzw->end || *lzw->at == 0) return -1;
    lzw->block = *lzw->at++;
  }
  if (lzw->at == lzw->end) return -1;
  --lzw->block;
  return *lzw->at++;
}

static int next_code(weir_gif_lzw_t* lzw) {
  while (lzw->bit_count < lzw->size) {
    const int byte = next_byte(lzw);
    if (byte < 0) return -1;
    lzw->bits |= (uint32_t)byte << lzw->bit_count;
    lzw->bit_count += 8;
  }
  const int code = (int)(lzw->bits & ((1u << lzw->size) - 1));
  lzw->bits >>= lzw->size;
  lzw->bit_count -= lzw->size;
  return code;
}

// A code is the one before it and a pixel, the first of the code that follows.
static void define(weir_gif_lzw_t* lzw, uint8_t pixel) {
  if (lzw->last < 0 || lzw->next == WEIR_GIF_CODES) return;
  lzw->prefix[lzw->next] = (uint16_t)lzw->last;
  lzw->first[lzw->next] = lzw->first[lzw->last];
  lzw->suffix[lzw->next++] = pixel;
  if (lzw->next == 1 << lzw->size && lzw->size < 12) ++lzw->size;
}

// Fills the run with the pixels of the next code. False: there is none, or it is not defined.
static bool next_run(weir_gif_lzw_t* lzw) {
  const int pixels = 1 << lzw->least;
  int code = next_code(lzw);
  while (code == pixels) {
    clear(lzw);
    code = next_code(lzw);
  }
  const bool is_pixel = code >= 0 && code < pixels;
  // The code that is being defined may come already: it begins with the pixel that ends it.
  const bool is_new = code == lzw->next && lzw->last >= 0 && lzw->next < WEIR_GIF_CODES;
  if (!is_pixel && !is_new && (code <= pixels + 1 || code >= lzw->next)) return false;
  define(lzw, is_new ? lzw->first[lzw->last] : lzw->first[code]);
  lzw->last = code;
  for (; code >= pixels; code = lzw->prefix[code]) lzw->run[lzw->run_size++] = lzw->suffix[code];
  lzw->run[lzw->run_size++] = (uint8_t)code;
  return true;
}

bool weir_gif_lzw_read(weir_gif_lzw_t* lzw, int64_t count, uint8_t* pixels) {
  while (count > 0) {
    if (lzw->run_size == 0 && !next_run(lzw)) return false;
    const int64_t size = WEIR_MIN(count, lzw->run_size);
    for (int64_t i = 0; pixels && i < size; ++i) *pixels++ = lzw->run[lzw->run_size - 1 - i];
    lzw->run_size -= (int)size;
    count -= size;
  }
  return true;
}

const uint8_t* weir_gif_lzw_finish(weir_gif_lzw_t* lzw) {
  const uint8_t* at = lzw->at;
  int64_t size = lzw->block;
  for (;;) {
    if (lzw->end - at <= size) return NULL;
    at += size;
    size = *at++;
    if (size == 0) return at;
  }
}
