// cuda_graph.h — A GPU's recordings (weir_recorder_t of device/device.h): CUDA graphs, captured
// from what a thread launches.
//
// A thread that records has a stream of its own in place of the device's compute stream, and a pool
// of memory. So others use the device meanwhile, and nothing of theirs is recorded.
#ifndef WEIR_DEVICE_CUDA_GRAPH_H_
#define WEIR_DEVICE_CUDA_GRAPH_H_

#include "device/cuda/cuda_memory.h"
#include "device/device.h"

// What of a device its recordings need.
typedef struct cuda_graph_place_t {
  weir_device_t* device;
  cuda_core_t* core;
  cu_stream_t compute;  // where they are repeated
  cuda_memory_t* memory;
} cuda_graph_place_t;
cuda_graph_place_t weir_cuda_graph_place(weir_device_t* device);
extern const weir_recorder_t weir_cuda_recorder;

// Whether this thread records what it launches on |core|'s GPU.
bool weir_cuda_graph_is_recording(const cuda_core_t* core);
// The stream that this thread launches in: |compute|, or that of a recording.
cu_stream_t weir_cuda_graph_stream(const cuda_core_t* core, cu_stream_t compute);
// A launch is about to be recorded. RESOURCE_EXHAUSTED where they are too many.
WEIR_MUST_USE weir_status_t* weir_cuda_graph_count(void);

#endif  // WEIR_DEVICE_CUDA_GRAPH_H_
