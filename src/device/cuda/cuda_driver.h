// cuda_driver.h — NVIDIA's driver, opened at run time: the functions that are called, as a table.
//
// Nothing of a CUDA package is needed to build: names, numbers and signatures are the driver's
// stable interface. Tests put a table of their own in its place.
#ifndef WEIR_DEVICE_CUDA_DRIVER_H_
#define WEIR_DEVICE_CUDA_DRIVER_H_

#include "base/base.h"

typedef int cu_result_t;        // 0: success
typedef uint64_t cu_pointer_t;  // an address of device memory
typedef void* cu_context_t;
typedef void* cu_stream_t;
typedef void* cu_event_t;
typedef void* cu_module_t;
typedef void* cu_function_t;
typedef void* cu_graph_t;
typedef void* cu_graph_exec_t;
typedef void* cu_graph_node_t;
typedef void (*cu_host_fn_t)(void* arg);

enum {
  CU_OUT_OF_MEMORY = 2,
  CU_NOT_READY = 600,
  // Attributes of a device.
  CU_MULTIPROCESSORS = 16,
  CU_MAJOR = 75,
  CU_MINOR = 76,
  CU_SHARED_BYTES = 97,  // of a block, at most, where its function asks for so much
  // And of a function.
  CU_FUNCTION_SHARED_BYTES = 8,
  // Flags.
  CU_STREAM_INDEPENDENT = 1,  // does not wait for the default stream
  CU_EVENT_TIMING = 0,
  CU_EVENT_NO_TIMING = 2,
  CU_HOST_PORTABLE = 1,    // pinned for all devices
  CU_CAPTURE_RELAXED = 2,  // nothing is forbidden meanwhile
  // Nodes of graphs.
  CU_NODE_KERNEL = 0,
  CU_NODE_COPY = 1,
  CU_NODE_SET = 2,
  CU_NODE_EMPTY = 5,
  CU_MEMORY_DEVICE = 2,  // kind of memory
};

// One end of a copy, and a copy: of boxes.
typedef struct cu_copy_end_t {
  size_t x, y, z, level;
  int memory;
  void* host;
  cu_pointer_t device;
  void *array, *reserved;
  size_t pitch, height;
} cu_copy_end_t;
typedef struct cu_copy_t {
  cu_copy_end_t from, to;
  size_t width, height, depth;
} cu_copy_t;

// FUNCTION(name, symbol, arguments)
#define WEIR_CUDA_DRIVER_FUNCTIONS(FUNCTION)                                                       \
  FUNCTION(init, cuInit, (unsigned flags))                                                         \
  FUNCTION(error_name, cuGetErrorName, (cu_result_t error, const char** out_name))                 \
  FUNCTION(error_text, cuGetErrorString, (cu_result_t error, const char** out_text))               \
  FUNCTION(device_count, cuDeviceGetCount, (int* out_count))                                       \
  FUNCTION(device_get, cuDeviceGet, (int* out_device, int ordinal))                                \
  FUNCTION(device_name, cuDeviceGetName, (char* buffer, int size, int device))                     \
  FUNCTION(device_bus, cuDeviceGetPCIBusId, (char* buffer, int size, int device))                  \
  FUNCTION(device_attribute, cuDeviceGetAttribute, (int* out_value, int attribute, int device))    \
  FUNCTION(device_memory, cuDeviceTotalMem_v2, (size_t * out_bytes, int device))                   \
  FUNCTION(device_can_reach, cuDeviceCanAccessPeer, (int* out_can, int device, int peer))          \
  FUNCTION(context_retain, cuDevicePrimaryCtxRetain, (cu_context_t * out_context, int device))     \
  FUNCTION(context_set, cuCtxSetCurrent, (cu_context_t context))                                   \
  FUNCTION(context_synchronize, cuCtxSynchronize, (void))                                          \
  FUNCTION(context_reach, cuCtxEnablePeerAccess, (cu_context_t peer, unsigned flags))              \
  FUNCTION(memory_info, cuMemGetInfo_v2, (size_t * out_free, size_t * out_total))                  \
  FUNCTION(alloc, cuMemAlloc_v2, (cu_pointer_t * out_pointer, size_t size))                        \
  FUNCTION(free, cuMemFree_v2, (cu_pointer_t pointer))                                             \
  FUNCTION(host_alloc, cuMemHostAlloc, (void** out_pointer, size_t size, unsigned flags))          \
  FUNCTION(host_free, cuMemFreeHost, (void* pointer))                                              \
  FUNCTION(upload, cuMemcpyHtoDAsync_v2,                                                           \
           (cu_pointer_t to, const void* from, size_t size, cu_stream_t stream))                   \
  FUNCTION(download, cuMemcpyDtoHAsync_v2,                                                         \
           (void* to, cu_pointer_t from, size_t size, cu_stream_t stream))                         \
  FUNCTION(copy, cuMemcpyDtoDAsync_v2,                                                             \
           (cu_pointer_t to, cu_pointer_t from, size_t size, cu_stream_t stream))                  \
  FUNCTION(copy_peer, cuMemcpyPeerAsync,                                                           \
           (cu_pointer_t to, cu_context_t to_context, cu_pointer_t from,                           \
            cu_context_t from_context, size_t size, cu_stream_t stream))                           \
  FUNCTION(set_bytes, cuMemsetD8Async,                                                             \
           (cu_pointer_t to, unsigned char value, size_t size, cu_stream_t stream))                \
  FUNCTION(stream_create, cuStreamCreate, (cu_stream_t * out_stream, unsigned flags))              \
  FUNCTION(stream_destroy, cuStreamDestroy_v2, (cu_stream_t stream))                               \
  FUNCTION(stream_wait, cuStreamWaitEvent, (cu_stream_t stream, cu_event_t event, unsigned flags)) \
  FUNCTION(stream_synchronize, cuStreamSynchronize, (cu_stream_t stream))                          \
  FUNCTION(stream_call, cuLaunchHostFunc, (cu_stream_t stream, cu_host_fn_t fn, void* arg))        \
  FUNCTION(event_create, cuEventCreate, (cu_event_t * out_event, unsigned flags))                  \
  FUNCTION(event_destroy, cuEventDestroy_v2, (cu_event_t event))                                   \
  FUNCTION(event_record, cuEventRecord, (cu_event_t event, cu_stream_t stream))                    \
  FUNCTION(event_query, cuEventQuery, (cu_event_t event))                                          \
  FUNCTION(event_synchronize, cuEventSynchronize, (cu_event_t event))                              \
  FUNCTION(event_elapsed, cuEventElapsedTime, (float* out_ms, cu_event_t from, cu_event_t to))     \
  FUNCTION(module_load, cuModuleLoadData, (cu_module_t * out_module, const void* image))           \
  FUNCTION(module_unload, cuModuleUnload, (cu_module_t module))                                    \
  FUNCTION(module_function, cuModuleGetFunction,                                                   \
           (cu_function_t * out_function, cu_module_t module, const char* name))                   \
  FUNCTION(function_set, cuFuncSetAttribute, (cu_function_t function, int attribute, int value))   \
  FUNCTION(launch, cuLaunchKernel,                                                                 \
           (cu_function_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,             \
            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,           \
            cu_stream_t stream, void** args, void** extra))                                        \
  FUNCTION(capture_begin, cuStreamBeginCapture_v2, (cu_stream_t stream, int mode))                 \
  FUNCTION(capture_end, cuStreamEndCapture, (cu_stream_t stream, cu_graph_t * out_graph))          \
  FUNCTION(graph_nodes, cuGraphGetNodes,                                                           \
           (cu_graph_t graph, cu_graph_node_t * nodes, size_t * count))                            \
  FUNCTION(graph_node_kind, cuGraphNodeGetType, (cu_graph_node_t node, int* out_kind))             \
  FUNCTION(graph_node_copy, cuGraphMemcpyNodeGetParams,                                            \
           (cu_graph_node_t node, cu_copy_t * out_copy))                                           \
  FUNCTION(graph_instantiate, cuGraphInstantiateWithFlags,                                         \
           (cu_graph_exec_t * out_exec, cu_graph_t graph, unsigned long long flags))               \
  FUNCTION(graph_destroy, cuGraphDestroy, (cu_graph_t graph))                                      \
  FUNCTION(graph_exec_destroy, cuGraphExecDestroy, (cu_graph_exec_t exec))                         \
  FUNCTION(graph_launch, cuGraphLaunch, (cu_graph_exec_t exec, cu_stream_t stream))

typedef struct cuda_driver_t {
#define WEIR_CUDA_FIELD(name, symbol, arguments) cu_result_t(*name) arguments;
  WEIR_CUDA_DRIVER_FUNCTIONS(WEIR_CUDA_FIELD)
#undef WEIR_CUDA_FIELD
} cuda_driver_t;

// The driver, opened and initialised once. UNAVAILABLE says what there is not: the library, a
// function of it, a device.
WEIR_MUST_USE weir_status_t* weir_cuda_driver(const cuda_driver_t** out_driver);
// Answers with |driver| from now on; NULL: with the real one. Tests only.
void weir_cuda_driver_replace(const cuda_driver_t* driver);

// NULL for success; else RESOURCE_EXHAUSTED, or INTERNAL with the driver's own words: "|doing|: an
// illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)".
WEIR_MUST_USE weir_status_t* weir_cuda_check(const cuda_driver_t* driver, cu_result_t result,
                                             const char* doing);

// A library that is opened at run time: |symbols| in turn go into |out_functions|, an array of
// function pointers. UNAVAILABLE names what is missing.
WEIR_MUST_USE weir_status_t* weir_cuda_open(const char* const* sonames, const char* const* symbols,
                                            size_t count, void* out_functions);

#endif  // WEIR_DEVICE_CUDA_DRIVER_H_
