// patches.h — Windows that slide over channels-last memory, written out one after the other.
// Thread-safe.
#ifndef WEIR_KERNEL_MOVE_PATCHES_H_
#define WEIR_KERNEL_MOVE_PATCHES_H_

#include "base/thread.h"
#include "weir/dtype.h"

// Axes are depth, height and width; an image has a depth of 1.
typedef struct weir_patches_t {
  int64_t batch, channels;
  int64_t in[3], out[3];
  int64_t window[3], stride[3], rate[3], pad[3];
} weir_patches_t;

// out[b][od][oh][ow] = the elements [kd][kh][kw][c] under the window at that place, zero outside of
// |in|. Elements have |size| bytes; sizes of both tensors are known to fit into memory.
void weir_extract_patches(weir_pool_t* pool, size_t size, const weir_patches_t* p, const void* in,
                          void* out);

#endif  // WEIR_KERNEL_MOVE_PATCHES_H_
