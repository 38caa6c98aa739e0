// jpeg_encode.h — What the two files of the JPEG encoder share. Private to image/jpeg*.c.
#ifndef WEIR_KERNEL_JPEG_ENCODE_H_
#define WEIR_KERNEL_JPEG_ENCODE_H_

#include "image/jpeg_internal.h"

// A plane of quantized coefficients, filled up to whole MCUs.
typedef struct weir_jpeg_plane_t {
  int h, v;                      // sampling factors
  int blocks_wide, blocks_high;  // that hold pixels
  int stride, rows;              // in blocks
  int table;                     // 0 luminance, 1 chrominance
  int16_t* coefs;                // in zigzag order
} weir_jpeg_plane_t;

typedef struct weir_jpeg_image_t {
  int plane_count;
  weir_jpeg_plane_t planes[3];
  int mcus_wide, mcus_high;
} weir_jpeg_image_t;

// One scan: planes [begin, begin + count), coefficients first to last, with the bits above |high|
// known and those below |low| left out.
typedef struct weir_jpeg_scan_t {
  int begin, count;
  int first, last, high, low;
} weir_jpeg_scan_t;

// Appends Huffman tables (the image's own or, for sequential scans, the standard's), the scan's
// header and its data. |*sent| remembers which standard tables are in the file already.
WEIR_MUST_USE weir_status_t* weir_jpeg_put_scan(const weir_jpeg_image_t* image,
                                                const weir_jpeg_scan_t* scan, bool is_progressive,
                                                bool is_optimized, unsigned* sent,
                                                weir_strbuf_t* out);

// Appends a marker and the length of its segment of |size| bytes to come.
void weir_jpeg_put_marker(weir_strbuf_t* out, int marker, size_t size);

#endif  // WEIR_KERNEL_JPEG_ENCODE_H_
