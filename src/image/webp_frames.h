// webp_frames.h — The frames of an animated WebP file, and how they are drawn one over the other.
// Private to image/webp*.c.
#ifndef WEIR_IMAGE_WEBP_FRAMES_H_
#define WEIR_IMAGE_WEBP_FRAMES_H_

#include "base/string.h"

typedef struct weir_webp_frame_t {
  int64_t left, top;
  int64_t width, height;  // set by who decodes it: those of its image count, not those of its chunk
  bool is_blended;        // over what was there; else it is put in its place
  bool is_disposed;       // its place is empty when the next comes
  bool has_alpha;         // set by who decodes it
  bool is_key;            // nothing of what was there is left; set by weir_webp_draw
  weir_view_t image;      // what a file of this image alone has after its first twelve bytes
} weir_webp_frame_t;

// The chunks of a file.
typedef struct weir_webp_reader_t {
  weir_view_t rest;
  int64_t width, height;  // of the canvas
} weir_webp_reader_t;

// Begins at the first chunk of an animated file. INVALID_ARGUMENT: it is not one, or cut off.
WEIR_MUST_USE weir_status_t* weir_webp_reader_init(weir_webp_reader_t* reader, weir_view_t data);
// The next frame; *|out_found| is false where there is none left. INVALID_ARGUMENT for one that is
// cut off.
WEIR_MUST_USE weir_status_t* weir_webp_reader_next(weir_webp_reader_t* reader,
                                                   weir_webp_frame_t* out_frame, bool* out_found);

// Makes |canvas| what is seen when |frame|, of |pixels|, follows |last|, which |before| shows. Both
// canvases and the pixels are RGBA; |last| and |before| are NULL for the first frame.
void weir_webp_draw(const weir_webp_reader_t* reader, weir_webp_frame_t* frame,
                    const weir_webp_frame_t* last, const uint8_t* pixels, const uint8_t* before,
                    uint8_t* canvas);

#endif  // WEIR_IMAGE_WEBP_FRAMES_H_
