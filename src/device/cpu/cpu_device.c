// cpu_device.c — The CPU: host memory, kernels that run where they are called.
#include <unistd.h>

#include "base/philox.h"
#include "base/string.h"
#include "device/device.h"

static void cpu_destroy(weir_device_t* device) {
  weir_free(device->name);
  weir_free(device);
}

static weir_status_t* check_copy(const weir_tensor_t* src, const weir_tensor_t* dst) {
  if (src->dtype == dst->dtype && src->count == dst->count) return NULL;
  char from[WEIR_SHAPE_TEXT_SIZE];
  char to[WEIR_SHAPE_TEXT_SIZE];
  return WEIR_STATUS(INVALID_ARGUMENT, "cannot copy %s%s to %s%s",
                     weir_dtype_name(weir_tensor_type(src)), weir_tensor_shape_text(src, from),
                     weir_dtype_name(weir_tensor_type(dst)), weir_tensor_shape_text(dst, to));
}

static void cpu_copy(weir_device_t* device, weir_stream_t* stream, const weir_tensor_t* src,
                     weir_tensor_t* dst, weir_copy_done_fn_t done, void* arg) {
  (void)device;
  (void)stream;
  weir_status_t* status = check_copy(src, dst);
  if (!status) {
    status = weir_elements_copy(weir_tensor_type(src), dst->data, src->data, src->count);
  }
  done(arg, status);
}

static const weir_device_vtable_t cpu_vtable = {
    .destroy = cpu_destroy,
    .copy = cpu_copy,
};

static int64_t physical_memory(void) {
  long pages = sysconf(_SC_PHYS_PAGES);
  long page_size = sysconf(_SC_PAGESIZE);
  return pages > 0 && page_size > 0 ? (int64_t)pages * page_size : 0;
}

weir_status_t* weir_cpu_device_create(const char* task, int index, weir_pool_t* pool,
                                      weir_device_t** out_device) {
  if (!task || !task[0]) task = "/job:localhost/replica:0/task:0";
  weir_strbuf_t name = {0};
  weir_strbuf_printf(&name, "%s/device:CPU:%d", task, index);
  weir_device_t* device = weir_calloc(1, sizeof(*device));
  if (!device || name.failed) {
    weir_strbuf_free(&name);
    weir_free(device);
    return weir_out_of_memory();
  }
  device->vtable = &cpu_vtable;
  weir_ref_init(&device->ref);
  device->type = "CPU";
  device->name = name.data;  // moved
  device->incarnation = weir_random_entropy();
  device->memory_limit = physical_memory();
  device->pool = pool;
  for (int kind = 0; kind < WEIR_MEMORY_KINDS; ++kind)
    device->allocators[kind] = weir_host_allocator();
  *out_device = device;
  return NULL;
}
