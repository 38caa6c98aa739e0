// gif.h — GIF images: the frames of a file, each drawn over the one before it.
//
// Thread-compatible.
#ifndef WEIR_IMAGE_GIF_H_
#define WEIR_IMAGE_GIF_H_

#include "base/string.h"

typedef struct weir_gif_t weir_gif_t;

// Reads all frames, for which it takes memory only of their number: what a file says of its size is
// believed when its pixels are there. Of a file that is cut off or damaged, the frames before
// that are taken, as in TensorFlow; INVALID_ARGUMENT when there are none. |data| is borrowed until
// destroy.
WEIR_MUST_USE weir_status_t* weir_gif_open(weir_view_t data, weir_gif_t** out_gif);
void weir_gif_destroy(weir_gif_t* gif);
// The size is that of the widest and the highest frame.
void weir_gif_size(const weir_gif_t* gif, int64_t* out_frames, int64_t* out_width,
                   int64_t* out_height);
// Decodes the first |frames| of them into |pixels|: frames * height * width * 3 bytes.
WEIR_MUST_USE weir_status_t* weir_gif_decode(weir_gif_t* gif, int64_t frames, uint8_t* pixels);

#endif  // WEIR_IMAGE_GIF_H_
