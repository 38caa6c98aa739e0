// null_device.c — The template for new devices: memory of its own, copies that copy, no kernels.
//
// To write a device, copy this file and replace, in this order:
//   1. the allocator: memory the CPU must not touch says is_host = false, and everyone above
//   believes it;
//   2. copy: enqueue on |stream|, call |done| when the bytes have arrived, on any thread, exactly
//   once;
//   3. create_stream, destroy_stream, synchronize, if work on the device has an order of its own.
//   Leave the slots empty while
//      every call completes before it returns, as here;
//   4. kernels: rows with the device's type in the .kernels tables of ops.
// device_test.c runs the same conformance test on this device as on the others.
#include "base/philox.h"
#include "base/string.h"
#include "device/device.h"

// ---- memory ----

// In truth it is host memory, which lets tests look at what a copy left there. It carries no state
// and so outlives the device: tensors may be released after the last reference on the device is
// gone.
static void* null_alloc(weir_allocator_t* self, size_t size, size_t alignment) {
  (void)self;
  return weir_aligned_malloc(size, alignment);
}

static void null_free(weir_allocator_t* self, void* pointer, size_t size) {
  (void)self;
  (void)size;
  weir_free(pointer);
}

static const weir_allocator_vtable_t null_allocator_vtable = {
    .alloc = null_alloc,
    .free = null_free,
};
static weir_allocator_t null_memory = {.vtable = &null_allocator_vtable, .is_host = false};

// ---- copies ----

static void null_copy(weir_device_t* device, weir_stream_t* stream, const weir_tensor_t* src,
                      weir_tensor_t* dst, weir_copy_done_fn_t done, void* arg) {
  (void)stream;
  weir_dtype_t dtype = weir_tensor_type(src);
  weir_status_t* status = NULL;
  if (src->dtype != dst->dtype || src->count != dst->count) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s: the ends of a copy differ in type or size",
                         device->name);
  } else if (!weir_dtype_is_plain(dtype)) {
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s: tensors of type %s stay on the host", device->name,
                         weir_dtype_name(dtype));
  } else if (src->count) {
    memcpy(dst->data, src->data, weir_tensor_byte_size(src));
  }
  done(arg, status);
}

// ---- the device ----

static void null_destroy(weir_device_t* device) {
  weir_free(device->name);
  weir_free(device);
}

static const weir_device_vtable_t null_vtable = {
    .destroy = null_destroy,
    .copy = null_copy,
};

weir_status_t* weir_null_device_create(const char* task, int index, weir_device_t** out_device) {
  if (!task || !task[0]) task = "/job:localhost/replica:0/task:0";
  weir_strbuf_t name = {0};
  weir_strbuf_printf(&name, "%s/device:NULL:%d", task, index);
  weir_device_t* device = weir_calloc(1, sizeof(*device));
  if (!device || name.failed) {
    weir_strbuf_free(&name);
    weir_free(device);
    return weir_out_of_memory();
  }
  device->vtable = &null_vtable;
  weir_ref_init(&device->ref);
  device->type = "NULL";
  device->name = name.data;  // moved
  device->incarnation = weir_random_entropy();
  device->allocators[WEIR_MEMORY_DEVICE] = &null_memory;
  device->allocators[WEIR_MEMORY_HOST] = weir_host_allocator();
  device->allocators[WEIR_MEMORY_PINNED] = weir_host_allocator();
  *out_device = device;
  return NULL;
}
