// guard_device.c — A device that shows on any machine what would go wrong on a GPU.
//
// Its memory has no access rights except while its own work runs, so whatever touches it from the
// host dies there and then. Its work runs on a thread of its own, in the order it was submitted.
// Its kernels are the CPU's. It is also the template for other devices (docs/adding-a-device.md).
#include <pthread.h>
#include <time.h>

#include "device/device.h"
#include "guard_memory.h"

typedef struct guard_device_t {
  weir_device_t base;  // first
  guard_memory_t* memory;
  double slowness;   // how much longer work takes than its kernels, as a share of their time
  double bandwidth;  // bytes a second; 0: as it is
  pthread_t thread;
  bool has_thread;
  weir_mutex_t mu;  // guards all below
  weir_cond_t wake;
  weir_work_t *first, *last;  // the queue
  bool is_ending;
} guard_device_t;

// ---- the queue ----

static void sleep_ns(double ns) {
  if (ns < 1) return;
  struct timespec time = {.tv_sec = (time_t)(ns / 1e9)};
  time.tv_nsec = (long)(ns - (double)time.tv_sec * 1e9);
  nanosleep(&time, NULL);
}

static void run_work(guard_device_t* device, weir_work_t* work) {
  int64_t start = weir_clock_ns();
  weir_guard_memory_open(device->memory);
  work->run(work);
  weir_guard_memory_close(device->memory);
  if (device->slowness > 0) sleep_ns((double)(weir_clock_ns() - start) * device->slowness);
  work->done(work);
}

static void* serve(void* arg) {
  guard_device_t* device = arg;
  weir_mutex_lock(&device->mu);
  while (device->first || !device->is_ending) {
    weir_work_t* work = device->first;
    if (!work) {
      weir_cond_wait(&device->wake, &device->mu);
      continue;
    }
    device->first = work->next;
    weir_mutex_unlock(&device->mu);
    run_work(device, work);
    weir_mutex_lock(&device->mu);
  }
  weir_mutex_unlock(&device->mu);
  return NULL;
}

static void guard_submit(weir_device_t* base, weir_work_t* work) {
  guard_device_t* device = (guard_device_t*)base;
  work->next = NULL;
  weir_mutex_lock(&device->mu);
  if (device->first) device->last->next = work;
  else device->first = work;
  device->last = work;
  weir_cond_broadcast(&device->wake);
  weir_mutex_unlock(&device->mu);
}

// ---- copies ----

typedef struct copy_t {
  weir_work_t work;  // first
  guard_device_t* device;
  const weir_tensor_t* src;
  weir_tensor_t* dst;
  weir_copy_done_fn_t done;
  void* arg;
} copy_t;

static void copy_run(weir_work_t* work) {
  const copy_t* copy = (const copy_t*)work;
  size_t size = weir_tensor_byte_size(copy->src);
  if (size) memcpy(copy->dst->data, copy->src->data, size);
  if (copy->device->bandwidth > 0) sleep_ns((double)size / copy->device->bandwidth * 1e9);
}

static void copy_done(weir_work_t* work) {
  copy_t copy = *(copy_t*)work;
  weir_free(work);
  copy.done(copy.arg, NULL);
}

static void guard_copy(weir_device_t* device, const weir_tensor_t* src, weir_tensor_t* dst,
                       weir_copy_done_fn_t done, void* arg) {
  weir_status_t* status = weir_device_check_copy(device, src, dst);
  weir_dtype_t dtype = weir_tensor_type(src);
  if (!status && !weir_dtype_is_plain(dtype))
    status = WEIR_STATUS(INVALID_ARGUMENT, "%s: tensors of type %s stay on the host", device->name,
                         weir_dtype_name(dtype));
  copy_t* copy = status ? NULL : weir_calloc(1, sizeof(*copy));
  if (!status && !copy) status = weir_out_of_memory();
  if (status) {
    done(arg, status);
    return;
  }
  *copy = (copy_t){.work = {.run = copy_run, .done = copy_done},
                   .device = (guard_device_t*)device,
                   .src = src,
                   .dst = dst,
                   .done = done,
                   .arg = arg};
  guard_submit(device, &copy->work);
}

// ---- the device ----

static void guard_destroy(weir_device_t* base) {
  guard_device_t* device = (guard_device_t*)base;
  weir_mutex_lock(&device->mu);
  device->is_ending = true;
  weir_cond_broadcast(&device->wake);
  weir_mutex_unlock(&device->mu);
  if (device->has_thread) pthread_join(device->thread, NULL);
  weir_guard_memory_release(device->memory);
  weir_cond_destroy(&device->wake);
  weir_mutex_destroy(&device->mu);
  weir_free(device->base.name);
  weir_free(device);
}

static const weir_device_vtable_t guard_vtable = {
    .destroy = guard_destroy,
    .submit = guard_submit,
    .copy = guard_copy,
};

static weir_status_t* init(guard_device_t* device, const weir_device_params_t* params) {
  weir_device_t* base = &device->base;
  base->kernel_type = "CPU";
  base->preference = -1;  // only what asks for it
  device->slowness = params->speed > 0 ? 1 / params->speed - 1 : 0;
  device->bandwidth = params->bandwidth;
  WEIR_TRY(weir_guard_memory_create(&base->space, &device->memory));
  base->space.device = base;
  base->allocators[WEIR_MEMORY_DEVICE] = weir_guard_memory_allocator(device->memory);
  base->allocators[WEIR_MEMORY_HOST] = weir_host_allocator();
  base->allocators[WEIR_MEMORY_PINNED] = weir_host_allocator();
  int error = pthread_create(&device->thread, NULL, serve, device);
  if (error)
    return WEIR_STATUS(RESOURCE_EXHAUSTED, "no thread for %s: %s", base->name, strerror(error));
  device->has_thread = true;
  return NULL;
}

static weir_status_t* guard_create(const weir_device_params_t* params, weir_device_t** out_device) {
  guard_device_t* device = weir_calloc(1, sizeof(*device));
  if (!device) return weir_out_of_memory();
  weir_status_t* status = weir_device_init(&device->base, "GUARD", params);
  if (status) {
    weir_free(device);
    return status;
  }
  device->base.vtable = &guard_vtable;
  weir_mutex_init(&device->mu);
  weir_cond_init(&device->wake);
  status = init(device, params);
  if (status) weir_device_release(&device->base);
  else *out_device = &device->base;
  return status;
}

const weir_device_kind_t weir_guard_kind = {.name = "guard", .create = guard_create};
