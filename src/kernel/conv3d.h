// conv3d.h — Three-dimensional convolution over NDHWC memory: forward and the two gradients.
// Thread-safe.
//
// Like conv.h: products of matrices over tiles of output voxels whose patches are laid out side by
// side. Tiles and blocks depend on the shape alone, so results do not depend on the number of
// threads.
#ifndef WEIR_KERNEL_CONV3D_H_
#define WEIR_KERNEL_CONV3D_H_

#include "base/thread.h"
#include "weir/dtype.h"

// Memory: input [batch, in[0..2], in_c], filter [filter[0..2], group_in, out_c], output [batch,
// out[0..2], out_c]; the three axes are depth, height and width. in_c == groups * group_in, out_c
// == groups * group_out. Padding after the last element of an axis follows from the sizes.
typedef struct weir_conv3d_t {
  int64_t batch, in_c, out_c;
  int64_t groups, group_in, group_out;
  int64_t in[3], filter[3], out[3];
  int64_t stride[3], dilation[3];
  int64_t pad[3];  // before each axis
} weir_conv3d_t;

// |dtype| is float or double. RESOURCE_EXHAUSTED when there is no memory for a tile.
WEIR_MUST_USE weir_status_t* weir_conv3d_forward(weir_pool_t* pool, weir_dtype_t dtype,
                                                 const weir_conv3d_t* conv, const void* in,
                                                 const void* filter, void* out);
// Gradient by the input: |dx| is overwritten.
WEIR_MUST_USE weir_status_t* weir_conv3d_backprop_input(weir_pool_t* pool, weir_dtype_t dtype,
                                                        const weir_conv3d_t* conv,
                                                        const void* filter, const void* dy,
                                                        void* dx);
// Gradient by the filter: |dw| is overwritten.
WEIR_MUST_USE weir_status_t* weir_conv3d_backprop_filter(weir_pool_t* pool, weir_dtype_t dtype,
                                                         const weir_conv3d_t* conv, const void* in,
                                                         const void* dy, void* dw);

#endif  // WEIR_KERNEL_CONV3D_H_
