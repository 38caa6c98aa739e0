// decode.h — The bytes of an image file to the output of a node. Private to ops/image/decode*.c.
#ifndef WEIR_OPS_IMAGE_DECODE_H_
#define WEIR_OPS_IMAGE_DECODE_H_

#include "image/jpeg.h"
#include "op/kernel.h"

// Which op it is: not every one takes every format.
typedef enum weir_decode_kind_t {
  WEIR_DECODE_IMAGE,
  WEIR_DECODE_JPEG,
  WEIR_DECODE_CROP,
  WEIR_DECODE_PNG,
  WEIR_DECODE_GIF,
  WEIR_DECODE_BMP,
  WEIR_DECODE_WEBP,
  WEIR_DECODE_JXL
} weir_decode_kind_t;

typedef struct weir_decode_t {
  weir_decode_kind_t kind;  // of the op
  int64_t channels;
  weir_dtype_t dtype;
  bool expands;  // all frames are wanted
  weir_jpeg_options_t jpeg;
} weir_decode_t;

// Decodes a file of any format that the op takes into output 0. The kernel's state is a
// weir_decode_t.
WEIR_MUST_USE weir_status_t* weir_decode(weir_kernel_ctx_t* ctx, weir_view_t contents);

#endif  // WEIR_OPS_IMAGE_DECODE_H_
