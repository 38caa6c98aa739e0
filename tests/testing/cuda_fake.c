// cuda_fake.c — The functions of a driver, as far as they can be had without a GPU. Built as a
// library it is a libcuda.so.1 for programs that open one.
#include "testing/cuda_fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

size_t cuda_fake_memory = (size_t)1 << 30;
atomic_int cuda_fake_launches = 0;

#define CUDA_FAKE_DECLARATION(name, symbol, arguments) \
  __attribute__((visibility("default"))) cu_result_t symbol arguments;
WEIR_CUDA_DRIVER_FUNCTIONS(CUDA_FAKE_DECLARATION)

enum { INVALID = 1, DEVICES = 3 };
static const int architectures[DEVICES] = {80, 90, 100};

// Memory of a device is mapped twice: where everybody knows it, without access, and where copies
// find it.
typedef struct block_t {
  char* address;
  char* memory;
  size_t size;
  struct block_t* next;
} block_t;

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;  // guards all below
static block_t* blocks;                                 // in use, of all devices
static block_t* pinned;                                 // likewise, of the host
static size_t in_use;                                   // bytes of them

cu_result_t cuCtxSynchronize(void) { return 0; }
cu_result_t cuInit(unsigned flags) { return flags ? INVALID : 0; }

cu_result_t cuGetErrorName(cu_result_t error, const char** out_name) {
  *out_name = error == CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return 0;
}

cu_result_t cuGetErrorString(cu_result_t error, const char** out_text) {
  *out_text = error == CU_OUT_OF_MEMORY ? "out of memory" : "a fake error";
  return 0;
}

cu_result_t cuDeviceGetCount(int* out_count) {
  *out_count = DEVICES;
  return 0;
}

cu_result_t cuDeviceGet(int* out_device, int ordinal) {
  *out_device = ordinal;
  return 0;
}

cu_result_t cuDeviceGetName(char* buffer, int size, int device) {
  (void)device;
  strncpy(buffer, "fake", (size_t)size);
  return 0;
}

cu_result_t cuDeviceGetPCIBusId(char* buffer, int size, int device) {
  snprintf(buffer, (size_t)size, "0000:0%d:00.0", device);
  return 0;
}

cu_result_t cuDeviceGetAttribute(int* out_value, int attribute, int device) {
  *out_value = attribute == CU_MAJOR   ? architectures[device] / 10
               : attribute == CU_MINOR ? architectures[device] % 10
                                       : 2;
  return 0;
}

cu_result_t cuDeviceTotalMem_v2(size_t* out_bytes, int device) {
  (void)device;
  *out_bytes = cuda_fake_memory;
  return 0;
}

cu_result_t cuDevicePrimaryCtxRetain(cu_context_t* out_context, int device) {
  static char contexts[DEVICES];
  *out_context = &contexts[device];
  return 0;
}

cu_result_t cuCtxSetCurrent(cu_context_t context) { return context ? 0 : INVALID; }

cu_result_t cuMemGetInfo_v2(size_t* out_free, size_t* out_total) {
  *out_total = cuda_fake_memory;
  pthread_mutex_lock(&mu);
  *out_free = cuda_fake_memory - in_use;
  pthread_mutex_unlock(&mu);
  return 0;
}

static block_t* block_create(size_t size) {
  block_t* block = malloc(sizeof(*block));
  int file = memfd_create("device", 0);
  if (!block || file < 0 || ftruncate(file, (off_t)size) != 0) abort();
  *block = (block_t){.address = mmap(NULL, size, PROT_NONE, MAP_SHARED, file, 0),
                     .memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
                     .size = size};
  if (block->address == MAP_FAILED || block->memory == MAP_FAILED) abort();
  close(file);
  return block;
}

cu_result_t cuMemAlloc_v2(cu_pointer_t* out_pointer, size_t size) {
  pthread_mutex_lock(&mu);
  bool fits = size <= cuda_fake_memory && in_use <= cuda_fake_memory - size;
  block_t* block = fits ? block_create(size) : NULL;
  if (block) {
    in_use += size;
    block->next = blocks;
    blocks = block;
    *out_pointer = (uintptr_t)block->address;
  }
  pthread_mutex_unlock(&mu);
  return fits ? 0 : CU_OUT_OF_MEMORY;
}

cu_result_t cuMemFree_v2(cu_pointer_t pointer) {
  pthread_mutex_lock(&mu);
  block_t** at = &blocks;
  while (*at && (uintptr_t)(*at)->address != pointer) at = &(*at)->next;
  block_t* block = *at;
  if (block) {
    *at = block->next;
    in_use -= block->size;
    munmap(block->address, block->size);
    munmap(block->memory, block->size);
    free(block);
  }
  pthread_mutex_unlock(&mu);
  return block ? 0 : INVALID;
}

// Where |size| bytes at |pointer| of a device can be touched; NULL: they are no device's.
static char* find(cu_pointer_t pointer, size_t size) {
  char* found = NULL;
  pthread_mutex_lock(&mu);
  for (const block_t* block = blocks; block && !found; block = block->next) {
    size_t offset = (size_t)(pointer - (uintptr_t)block->address);
    if (offset <= block->size && size <= block->size - offset) found = block->memory + offset;
  }
  pthread_mutex_unlock(&mu);
  return found;
}

char* cuda_fake_at(const void* address) { return find((uintptr_t)address, 1); }

cu_result_t cuMemHostAlloc(void** out_pointer, size_t size, unsigned flags) {
  (void)flags;
  block_t* block = malloc(sizeof(*block));
  if (!block) abort();
  *block = (block_t){.address = aligned_alloc(512, (size + 511) / 512 * 512), .size = size};
  if (!block->address) abort();
  pthread_mutex_lock(&mu);
  block->next = pinned;
  pinned = block;
  pthread_mutex_unlock(&mu);
  *out_pointer = block->address;
  return 0;
}

cu_result_t cuMemFreeHost(void* pointer) {
  pthread_mutex_lock(&mu);
  block_t** at = &pinned;
  while (*at && (*at)->address != pointer) at = &(*at)->next;
  block_t* block = *at;
  if (block) *at = block->next;
  pthread_mutex_unlock(&mu);
  if (block) free(block->address);
  free(block);
  return block ? 0 : INVALID;
}

// A real driver copies other memory, too, but holds the calling thread meanwhile.
static bool is_pinned(const void* pointer, size_t size) {
  bool is_found = false;
  pthread_mutex_lock(&mu);
  for (const block_t* block = pinned; block && !is_found; block = block->next) {
    size_t offset = (size_t)((uintptr_t)pointer - (uintptr_t)block->address);
    is_found = offset <= block->size && size <= block->size - offset;
  }
  pthread_mutex_unlock(&mu);
  return is_found;
}

cu_result_t cuMemcpyHtoDAsync_v2(cu_pointer_t to, const void* from, size_t size,
                                 cu_stream_t stream) {
  char* memory = is_pinned(from, size) ? find(to, size) : NULL;
  if (memory && stream) memcpy(memory, from, size);
  return memory && stream ? 0 : INVALID;
}

cu_result_t cuMemcpyDtoHAsync_v2(void* to, cu_pointer_t from, size_t size, cu_stream_t stream) {
  const char* memory = is_pinned(to, size) ? find(from, size) : NULL;
  if (memory && stream) memcpy(to, memory, size);
  return memory && stream ? 0 : INVALID;
}

cu_result_t cuMemcpyDtoDAsync_v2(cu_pointer_t to, cu_pointer_t from, size_t size,
                                 cu_stream_t stream) {
  const char* source = find(from, size);
  char* memory = find(to, size);
  if (!source || !memory || !stream) return INVALID;
  memmove(memory, source, size);
  return 0;
}

cu_result_t cuMemcpyPeerAsync(cu_pointer_t to, cu_context_t to_context, cu_pointer_t from,
                              cu_context_t from_context, size_t size, cu_stream_t stream) {
  return to_context == from_context ? INVALID : cuMemcpyDtoDAsync_v2(to, from, size, stream);
}

cu_result_t cuMemsetD8Async(cu_pointer_t to, unsigned char value, size_t size, cu_stream_t stream) {
  char* memory = find(to, size);
  if (memory && stream) memset(memory, value, size);
  return memory && stream ? 0 : INVALID;
}

cu_result_t cuStreamCreate(cu_stream_t* out_stream, unsigned flags) {
  (void)flags;
  *out_stream = malloc(1);
  return *out_stream ? 0 : CU_OUT_OF_MEMORY;
}

cu_result_t cuStreamDestroy_v2(cu_stream_t stream) {
  free(stream);
  return 0;
}

cu_result_t cuStreamWaitEvent(cu_stream_t stream, cu_event_t event, unsigned flags) {
  return stream && event && !flags ? 0 : INVALID;
}

cu_result_t cuStreamSynchronize(cu_stream_t stream) { return stream ? 0 : INVALID; }

cu_result_t cuLaunchHostFunc(cu_stream_t stream, cu_host_fn_t fn, void* arg) {
  (void)stream;
  fn(arg);
  return 0;
}

typedef struct event_t {
  bool keeps_time;
  int64_t ns;  // when it was recorded; 0: never
} event_t;

cu_result_t cuEventCreate(cu_event_t* out_event, unsigned flags) {
  event_t* event = calloc(1, sizeof(*event));
  if (event) event->keeps_time = flags != CU_EVENT_NO_TIMING;
  *out_event = event;
  return event ? 0 : CU_OUT_OF_MEMORY;
}

cu_result_t cuEventRecord(cu_event_t event, cu_stream_t stream) {
  struct timespec now;
  if (!event || !stream) return INVALID;
  clock_gettime(CLOCK_MONOTONIC, &now);
  ((event_t*)event)->ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  return 0;
}

cu_result_t cuEventDestroy_v2(cu_event_t event) {
  free(event);
  return 0;
}

cu_result_t cuEventElapsedTime(float* out_ms, cu_event_t from, cu_event_t to) {
  const event_t *first = from, *last = to;
  if (!first->keeps_time || !last->keeps_time || !first->ns || !last->ns) return INVALID;
  *out_ms = (float)(last->ns - first->ns) * 1e-6F;
  return 0;
}

cu_result_t cuEventQuery(cu_event_t event) { return event ? 0 : INVALID; }
cu_result_t cuEventSynchronize(cu_event_t event) { return cuEventQuery(event); }

cu_result_t cuModuleLoadData(cu_module_t* out_module, const void* image) {
  *out_module = malloc(1);
  return *out_module && image ? 0 : INVALID;
}

cu_result_t cuModuleUnload(cu_module_t module) { return cuStreamDestroy_v2(module); }

cu_result_t cuModuleGetFunction(cu_function_t* out_function, cu_module_t module, const char* name) {
  *out_function = module;
  return name && *name ? 0 : INVALID;
}

cu_result_t cuLaunchKernel(cu_function_t function, unsigned grid_x, unsigned grid_y,
                           unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                           unsigned shared_bytes, cu_stream_t stream, void** args, void** extra) {
  (void)shared_bytes;
  if (!function || !stream || !args || extra) return INVALID;
  if (!grid_x || !grid_y || !grid_z || grid_y > 65535 || grid_z > 65535) return INVALID;
  if (!block_x || !block_y || !block_z || block_x * block_y * block_z > 1024) return INVALID;
  ++cuda_fake_launches;
  return 0;
}

#define CUDA_FAKE_FIELD(name, symbol, arguments) .name = symbol,
const cuda_driver_t cuda_fake_driver = {WEIR_CUDA_DRIVER_FUNCTIONS(CUDA_FAKE_FIELD)};

// Which NVRTC asks of a driver that it finds: it has no such table.
__attribute__((visibility("default"))) cu_result_t cuGetExportTable(const void** out_table,
                                                                    const void* name);
cu_result_t cuGetExportTable(const void** out_table, const void* name) {
  *out_table = NULL;
  return name ? INVALID : 0;
}
