// cuda_fake.h — A GPU that is not there: a driver whose memory only copies may touch, and only from
// and to pinned memory, whose streams do everything at once, and whose kernels are loaded but
// compute nothing, but for those that tests write. Streams that are captured do nothing, and graphs
// then do all of it. For tests of all that is around kernels, and of their compilation.
#ifndef WEIR_TESTING_CUDA_FAKE_H_
#define WEIR_TESTING_CUDA_FAKE_H_

#include <stdatomic.h>

#include "device/cuda/cuda_driver.h"

// Its three devices say that they are sm_80, sm_90 and sm_100.
extern size_t cuda_fake_memory;           // bytes each has
extern atomic_int cuda_fake_launches;     // so far, those in graphs each time
extern int cuda_fake_graph_launches;      // of graphs, so far
extern int cuda_fake_graphs;              // that are there, to be launched
extern int cuda_fake_failing_captures;    // so many of the next fail at their end
extern bool cuda_fake_copies_from_host;   // so graphs say of their copies
extern bool cuda_fake_are_peers;          // whether devices can reach each other's memory
extern atomic_int cuda_fake_reached;      // pairs of devices of which the first now can
extern atomic_int cuda_fake_peer_copies;  // so far
extern const cuda_driver_t cuda_fake_driver;
// Where the memory at an address of a device can be touched; NULL: it is no device's.
char* cuda_fake_at(const void* address);

// A kernel that computes: a function of the driver's. |run| gets addresses of copies of the
// arguments; memory of the device is reached by cuda_fake_at.
typedef struct cuda_fake_function_t {
  void (*run)(void** args);  // NULL: it computes nothing
  int arg_count;
  size_t arg_sizes[8];
} cuda_fake_function_t;
// What such a kernel is compiled to.
extern const char cuda_fake_magic[8];
typedef struct cuda_fake_code_t {
  char magic[8];
  cuda_fake_function_t function;
} cuda_fake_code_t;

#endif  // WEIR_TESTING_CUDA_FAKE_H_
