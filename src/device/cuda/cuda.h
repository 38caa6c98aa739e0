// cuda.h — What kernels of GPUs call: finding functions of CUDA sources, launching them, and the
// order of the device. Thread-safe.
//
// A kernel of a GPU runs on the host, in no stream: it allocates its outputs, launches, and
// returns. What it launched runs in its own time, after all that was launched before.
#ifndef WEIR_DEVICE_CUDA_H_
#define WEIR_DEVICE_CUDA_H_

#include "base/string.h"
#include "device/cuda/cuda_core.h"
#include "device/cuda/cuda_modules.h"
#include "device/device.h"

#define WEIR_DEVICE_GPU "GPU"

typedef struct weir_cuda_function_t {
  cuda_function_t* function;  // of the device
} weir_cuda_function_t;

// The function |name| of |source|, which begins to be compiled for |device|, beside others, the
// first time it is asked for. What goes wrong then is the error of whoever waits: the maker of a
// plan (device/builds.h), or else the first launch. |name| is an extern "C" one. In a source with
// the line "#define NO_CONTRACTION" products and the sums they are in are rounded apart.
WEIR_MUST_USE weir_status_t* weir_cuda_function(weir_device_t* device, const char* source,
                                                const char* name,
                                                weir_cuda_function_t* out_function);

// How many threads: |grid| blocks of |block|.
typedef struct weir_cuda_size_t {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared_bytes;
} weir_cuda_size_t;
// Blocks of 256 threads, enough for |count| threads, at most as many as keep the GPU busy: kernels
// go on in strides of the grid.
weir_cuda_size_t weir_cuda_size_for(const weir_device_t* device, int64_t count);

// Launches in the compute stream. |args| are addresses of the arguments.
WEIR_MUST_USE weir_status_t* weir_cuda_launch(weir_device_t* device, weir_cuda_function_t function,
                                              const weir_cuda_size_t* size, void** args);
#define WEIR_CUDA_ARGS(...) ((void*[]){__VA_ARGS__})

// In the compute stream, within the device's memory.
WEIR_MUST_USE weir_status_t* weir_cuda_copy(weir_device_t* device, void* dst, const void* src,
                                            size_t size);
WEIR_MUST_USE weir_status_t* weir_cuda_set(weir_device_t* device, void* dst, int byte, size_t size);
WEIR_INLINE weir_status_t* weir_cuda_zero(weir_device_t* device, void* dst, size_t size) {
  return weir_cuda_set(device, dst, 0, size);
}

// For libraries that launch by themselves: their stream. The device is the calling thread's then.
cu_stream_t weir_cuda_stream(weir_device_t* device);
// The same of a stream that nothing is put into now.
cu_stream_t weir_cuda_stream_at(weir_device_t* device, weir_stream_t stream);
// And after they have: waits where every launch is waited for (WEIR_CUDA_SYNC=1).
WEIR_MUST_USE weir_status_t* weir_cuda_launched(weir_device_t* device);
// Waits for the compute stream: when algorithms are measured, never in a step's ordinary course.
WEIR_MUST_USE weir_status_t* weir_cuda_synchronize(weir_device_t* device);
// Whether what this thread launches is recorded, to be repeated (device.h: recordings). Nothing is
// measured then, nor waited for.
bool weir_cuda_is_recording(const weir_device_t* device);
// Of a thread that records: for numbers of the host's that are others each time the recording runs.
// |write|, given a copy of |arg|, writes WEIR_CUDA_ANEW bytes before each run, in the order in
// which they were asked for; recorded kernels find them at |out_address|.
#define WEIR_CUDA_ANEW 32
WEIR_MUST_USE weir_status_t* weir_cuda_anew(weir_device_t* device,
                                            void (*write)(const void* arg, void* bytes),
                                            const void* arg, size_t arg_size, void** out_address);
// Whether products of floats may round their factors to TF32, as TensorFlow's do: unless the device
// was made with @tf32=0.
bool weir_cuda_allows_tf32(const weir_device_t* device);
// Whether sums must have an order, so that results repeat to the bit: @deterministic=1.
bool weir_cuda_is_deterministic(const weir_device_t* device);
const cuda_core_t* weir_cuda_core(const weir_device_t* device);
extern const struct weir_timer_vtable_t weir_cuda_timer;
bool weir_device_is_cuda(const weir_device_t* device);

// The share of the last moments in which the GPU had something to do for anyone, 0 to 1, as NVML
// samples it; negative: it does not tell.
double weir_cuda_busy(const cuda_core_t* core);
// Appends a line for each GPU of the machine, and for the libraries; or why there are none.
void weir_cuda_describe(weir_strbuf_t* out);

// What a library keeps for a device: made by |create| the first time it is asked for, freed with
// the device. |key| is the address of something of the library's own.
WEIR_MUST_USE weir_status_t* weir_cuda_attachment(weir_device_t* device, const void* key,
                                                  weir_status_t* (*create)(weir_device_t* device,
                                                                           void** out_object),
                                                  void (*destroy)(void* object), void** out_object);

#endif  // WEIR_DEVICE_CUDA_H_
