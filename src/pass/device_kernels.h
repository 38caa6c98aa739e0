// device_kernels.h — What passes ask about kernels of a placed node's device.
#ifndef WEIR_PASS_DEVICE_KERNELS_H_
#define WEIR_PASS_DEVICE_KERNELS_H_

#include "graph/graph.h"

// What kernels of |node|'s kind of device are registered for; NULL where that is no kind we know.
const char* weir_pass_kernel_type(const weir_node_t* node);
// The kernel that runs |def| on devices of a kind, if it is one of their own; else NULL.
const weir_kernel_def_t* weir_pass_find_kernel(const weir_node_def_t* def, const char* kernel_type);

#endif  // WEIR_PASS_DEVICE_KERNELS_H_
