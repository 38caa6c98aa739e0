// gif_lzw.h — The pixels of one frame of a GIF, unpacked one run at a time. Private to
// image/gif*.c.
#ifndef WEIR_IMAGE_GIF_LZW_H_
#define WEIR_IMAGE_GIF_LZW_H_

#include "base/base.h"

enum { WEIR_GIF_CODES = 4096 };

typedef struct weir_gif_lzw_t {
  const uint8_t *at, *end;  // what is left of the file
  int block;                // bytes left of the block under way
  uint32_t bits;            // read, but not used; the lowest first
  int bit_count;
  int least;       // bits of a pixel
  int size;        // bits of the next code
  int next, last;  // the code to be defined next; the code before, -1: none
  uint16_t prefix[WEIR_GIF_CODES];
  uint8_t suffix[WEIR_GIF_CODES], first[WEIR_GIF_CODES];
  uint8_t run[WEIR_GIF_CODES];  // pixels of the last code, the last of them first
  int run_size;
} weir_gif_lzw_t;

// Begins at the byte that says how many bits a pixel has. False: that is wrong or not there.
bool weir_gif_lzw_init(weir_gif_lzw_t* lzw, const uint8_t* at, const uint8_t* end);
// Unpacks |count| pixels; into nothing where |pixels| is NULL. False: they are not there.
bool weir_gif_lzw_read(weir_gif_lzw_t* lzw, int64_t count, uint8_t* pixels);
// Passes over the blocks that are left. NULL: the file ends before they do.
const uint8_t* weir_gif_lzw_finish(weir_gif_lzw_t* lzw);

#endif  // WEIR_IMAGE_GIF_LZW_H_
