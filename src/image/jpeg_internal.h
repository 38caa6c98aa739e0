// jpeg_internal.h — What the files of the JPEG codec share. Private to image/jpeg*.c.
#ifndef WEIR_KERNEL_JPEG_INTERNAL_H_
#define WEIR_KERNEL_JPEG_INTERNAL_H_

#include "image/jpeg.h"

enum {
  WEIR_JPEG_MAX_COMPONENTS = 4,
  WEIR_JPEG_BLOCK = 64,  // coefficients of a block
  WEIR_JPEG_MAX_SIDE = 65500,
};

// The place in a block of the k-th coefficient. Sixteen more say 63: where damaged runs end up.
extern const uint8_t weir_jpeg_order[WEIR_JPEG_BLOCK + 16];

// A Huffman code as files define it.
typedef struct weir_jpeg_huffman_t {
  bool is_defined;
  uint8_t counts[17];   // codes of each length, from 1
  uint8_t values[256];  // in the order of the codes
} weir_jpeg_huffman_t;

// The standard's own tables, of luminance and chrominance. Quantization is in natural order.
extern const uint8_t weir_jpeg_quants[2][WEIR_JPEG_BLOCK];
extern const weir_jpeg_huffman_t weir_jpeg_dc_tables[2];
extern const weir_jpeg_huffman_t weir_jpeg_ac_tables[2];

// A component: a plane of blocks.
typedef struct weir_jpeg_component_t {
  int id;
  int h, v;  // sampling factors
  int quant_index;
  int dc_index, ac_index;        // Huffman tables of the current scan
  int blocks_wide, blocks_high;  // that hold pixels
  int stride;                    // blocks in a row of |coefs|, which is filled up to whole MCUs
  int rows;
  int16_t* coefs;                   // rows * stride blocks, natural order
  uint16_t quant[WEIR_JPEG_BLOCK];  // natural order, as of the component's first scan
  bool has_quant;
  int scale;          // pixels a block side: 8, or 4, 2, 1
  int width, height;  // of the decoded plane
  int plane_stride;
  uint8_t* plane;
} weir_jpeg_component_t;

typedef enum weir_jpeg_color_t {
  WEIR_JPEG_GRAY,
  WEIR_JPEG_RGB,
  WEIR_JPEG_YCC,
  WEIR_JPEG_CMYK,
  WEIR_JPEG_YCCK,
} weir_jpeg_color_t;

struct weir_jpeg_t {
  weir_view_t data;
  size_t at;  // of the next byte to be read
  weir_jpeg_options_t options;
  bool is_progressive;
  bool has_frame;
  bool has_jfif, has_adobe;
  int adobe_transform;
  int width, height;  // of the file
  int component_count;
  weir_jpeg_component_t components[WEIR_JPEG_MAX_COMPONENTS];
  int max_h, max_v;
  weir_jpeg_color_t color;
  uint16_t quants[4][WEIR_JPEG_BLOCK];  // natural order
  bool has_quants[4];
  weir_jpeg_huffman_t dc_tables[4], ac_tables[4];
  int restart_interval;  // MCUs; 0: none
  int unread_marker;     // a marker that decoding ran into; 0: none
  bool is_exhausted;     // the data is cut off, and that is an error
  // The current scan.
  int scan_count;  // components in it
  weir_jpeg_component_t* scan[WEIR_JPEG_MAX_COMPONENTS];
  int first, last, high, low;  // progressive: spectral band and successive approximation
  // The result.
  int scale;  // pixels a block side of the component with the most
  int out_width, out_height, out_channels;
  int rows_read;  // of the result
};

// Decodes one scan into the components' coefficients, to where its data ends. Errors of the Huffman
// code are passed over, as libjpeg does. |*out_mcu_rows|: complete rows of MCUs.
WEIR_MUST_USE weir_status_t* weir_jpeg_read_scan(weir_jpeg_t* jpeg, int* out_mcu_rows);

// Inverse DCT of one block to scale * scale pixels.
void weir_jpeg_idct(const int16_t* coefs, const uint16_t* quant, int scale, uint8_t* pixels,
                    int stride);
// The fast one, of 8 * 8 pixels; |multipliers| come from weir_jpeg_fast_multipliers.
void weir_jpeg_idct_fast(const int16_t* coefs, const int32_t* multipliers, uint8_t* pixels,
                         int stride);
void weir_jpeg_fast_multipliers(const uint16_t* quant, int32_t* multipliers);

// Turns the planes into pixels.
WEIR_MUST_USE weir_status_t* weir_jpeg_convert(weir_jpeg_t* jpeg, uint8_t* pixels);

WEIR_INLINE uint8_t weir_jpeg_clamp(int64_t x) { return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x); }

#endif  // WEIR_KERNEL_JPEG_INTERNAL_H_
