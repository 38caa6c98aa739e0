// cuda_fake.c — The functions of a driver, as far as they can be had without a GPU.
#include "testing/cuda_fake.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

size_t cuda_fake_memory = (size_t)1 << 30;
int cuda_fake_launches = 0;

enum { INVALID = 1, DEVICES = 3 };
static const int architectures[DEVICES] = {80, 90, 100};
static _Atomic(size_t) in_use;  // device memory, of all devices

static cu_result_t nothing(void) { return 0; }
static cu_result_t init(unsigned flags) { return flags ? INVALID : 0; }

static cu_result_t error_name(cu_result_t error, const char** out_name) {
  *out_name = error == CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return 0;
}

static cu_result_t error_text(cu_result_t error, const char** out_text) {
  *out_text = error == CU_OUT_OF_MEMORY ? "out of memory" : "a fake error";
  return 0;
}

static cu_result_t device_count(int* out_count) {
  *out_count = DEVICES;
  return 0;
}

static cu_result_t device_get(int* out_device, int ordinal) {
  *out_device = ordinal;
  return 0;
}

static cu_result_t device_name(char* buffer, int size, int device) {
  (void)device;
  strncpy(buffer, "fake", (size_t)size);
  return 0;
}

static cu_result_t device_attribute(int* out_value, int attribute, int device) {
  *out_value = attribute == CU_MAJOR   ? architectures[device] / 10
               : attribute == CU_MINOR ? architectures[device] % 10
                                       : 2;
  return 0;
}

static cu_result_t device_memory(size_t* out_bytes, int device) {
  (void)device;
  *out_bytes = cuda_fake_memory;
  return 0;
}

static cu_result_t context_retain(cu_context_t* out_context, int device) {
  static char contexts[DEVICES];
  *out_context = &contexts[device];
  return 0;
}

static cu_result_t context_set(cu_context_t context) { return context ? 0 : INVALID; }

static cu_result_t memory_info(size_t* out_free, size_t* out_total) {
  *out_total = cuda_fake_memory;
  *out_free = cuda_fake_memory - in_use;
  return 0;
}

// The size is before the block, for |free_memory|.
static cu_result_t alloc(cu_pointer_t* out_pointer, size_t size) {
  if (size > cuda_fake_memory || in_use > cuda_fake_memory - size) return CU_OUT_OF_MEMORY;
  char* block = aligned_alloc(512, size + 512);
  if (!block) return CU_OUT_OF_MEMORY;
  memcpy(block, &size, sizeof(size));
  in_use += size;
  *out_pointer = (uintptr_t)(block + 512);
  return 0;
}

static cu_result_t free_memory(cu_pointer_t pointer) {
  size_t size = 0;
  char* block = (char*)(uintptr_t)pointer - 512;
  memcpy(&size, block, sizeof(size));
  in_use -= size;
  free(block);
  return 0;
}

static cu_result_t host_alloc(void** out_pointer, size_t size, unsigned flags) {
  (void)flags;
  *out_pointer = aligned_alloc(512, (size + 511) / 512 * 512);
  return *out_pointer ? 0 : CU_OUT_OF_MEMORY;
}

static cu_result_t host_free(void* pointer) {
  free(pointer);
  return 0;
}

static cu_result_t upload(cu_pointer_t to, const void* from, size_t size, cu_stream_t stream) {
  (void)stream;
  memcpy((void*)(uintptr_t)to, from, size);
  return 0;
}

static cu_result_t download(void* to, cu_pointer_t from, size_t size, cu_stream_t stream) {
  (void)stream;
  memcpy(to, (const void*)(uintptr_t)from, size);
  return 0;
}

static cu_result_t copy(cu_pointer_t to, cu_pointer_t from, size_t size, cu_stream_t stream) {
  return upload(to, (const void*)(uintptr_t)from, size, stream);
}

static cu_result_t copy_peer(cu_pointer_t to, cu_context_t to_context, cu_pointer_t from,
                             cu_context_t from_context, size_t size, cu_stream_t stream) {
  return to_context == from_context ? INVALID : copy(to, from, size, stream);
}

static cu_result_t set_bytes(cu_pointer_t to, unsigned char value, size_t size,
                             cu_stream_t stream) {
  (void)stream;
  memset((void*)(uintptr_t)to, value, size);
  return 0;
}

static cu_result_t stream_create(cu_stream_t* out_stream, unsigned flags) {
  (void)flags;
  *out_stream = malloc(1);
  return *out_stream ? 0 : CU_OUT_OF_MEMORY;
}

static cu_result_t stream_destroy(cu_stream_t stream) {
  free(stream);
  return 0;
}

static cu_result_t stream_wait(cu_stream_t stream, cu_event_t event, unsigned flags) {
  return stream && event && !flags ? 0 : INVALID;
}

static cu_result_t stream_synchronize(cu_stream_t stream) { return stream ? 0 : INVALID; }

static cu_result_t stream_call(cu_stream_t stream, cu_host_fn_t fn, void* arg) {
  (void)stream;
  fn(arg);
  return 0;
}

static cu_result_t event_create(cu_event_t* out_event, unsigned flags) {
  return stream_create(out_event, flags);
}

static cu_result_t event_record(cu_event_t event, cu_stream_t stream) {
  return event && stream ? 0 : INVALID;
}

static cu_result_t event_query(cu_event_t event) { return event ? 0 : INVALID; }

static cu_result_t module_load(cu_module_t* out_module, const void* image) {
  *out_module = malloc(1);
  return *out_module && image ? 0 : INVALID;
}

static cu_result_t module_function(cu_function_t* out_function, cu_module_t module,
                                   const char* name) {
  *out_function = module;
  return name && *name ? 0 : INVALID;
}

static cu_result_t launch(cu_function_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                          unsigned block_x, unsigned block_y, unsigned block_z,
                          unsigned shared_bytes, cu_stream_t stream, void** args, void** extra) {
  (void)shared_bytes;
  if (!function || !stream || !args || extra) return INVALID;
  if (!grid_x || !grid_y || !grid_z || grid_y > 65535 || grid_z > 65535) return INVALID;
  if (!block_x || !block_y || !block_z || block_x * block_y * block_z > 1024) return INVALID;
  ++cuda_fake_launches;
  return 0;
}

const cuda_driver_t cuda_fake_driver = {
    .init = init,
    .error_name = error_name,
    .error_text = error_text,
    .device_count = device_count,
    .device_get = device_get,
    .device_name = device_name,
    .device_attribute = device_attribute,
    .device_memory = device_memory,
    .context_retain = context_retain,
    .context_set = context_set,
    .context_synchronize = nothing,
    .memory_info = memory_info,
    .alloc = alloc,
    .free = free_memory,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .upload = upload,
    .download = download,
    .copy = copy,
    .copy_peer = copy_peer,
    .set_bytes = set_bytes,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_wait = stream_wait,
    .stream_synchronize = stream_synchronize,
    .stream_call = stream_call,
    .event_create = event_create,
    .event_destroy = stream_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_query,
    .module_load = module_load,
    .module_unload = stream_destroy,
    .module_function = module_function,
    .launch = launch,
};
