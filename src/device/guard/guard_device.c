// guard_device.c — A device that shows on any machine what would go wrong on a GPU.
//
// Its memory has no access rights except while its own work runs, so whatever touches it from the
// host dies there and then. Its work runs later, on threads of its own, in the order it was
// submitted, so whoever reads a result too early finds it missing. Its kernels are the CPU's. One
// that is staged copies from and to pinned memory only, and aborts where it is given other.
#include "device/thread_device.h"
#include "guard_memory.h"

static const size_t kMemory = (size_t)1 << 36, kPinned = (size_t)1 << 26;  // bytes at most

typedef struct guard_device_t {
  thread_device_t base;  // first
  guard_memory_t* memory;
  guard_memory_t* pinned;  // always open; NULL: not staged
  double slowness;         // how much longer work takes than its kernels, as a share of their time
} guard_device_t;

// ---- work ----

static void run_in_reach(void* arg, weir_work_t* work) {
  guard_device_t* device = arg;
  weir_guard_memory_open(device->memory);
  work->run(work);
  weir_guard_memory_close(device->memory);
}

static void run_kernel(void* arg, weir_work_t* work) {
  int64_t start = weir_clock_ns();
  run_in_reach(arg, work);
  weir_thread_sleep((double)(weir_clock_ns() - start) * ((guard_device_t*)arg)->slowness);
}

static void guard_copy(weir_device_t* base, weir_stream_t stream, const void* src, void* dst,
                       size_t size, weir_copy_done_fn_t done, void* arg) {
  const guard_device_t* device = (const guard_device_t*)base;
  const void* of_host = stream == WEIR_STREAM_UPLOAD ? src : dst;
  bool is_pinned = !device->pinned || weir_guard_memory_holds(device->pinned, of_host, size);
  WEIR_CHECK(is_pinned && "a staged guard copies pinned memory only");
  weir_thread_device_copy(base, stream, src, dst, size, done, arg);
}

// ---- copies from another guard ----

typedef struct peer_copy_t {
  weir_work_t work;      // first
  guard_memory_t* from;  // in use, for |src| is
  const void* src;
  void* dst;
  size_t size;
  double bandwidth;
  weir_copy_done_fn_t done;
  void* arg;
} peer_copy_t;

static void peer_run(weir_work_t* work) {
  const peer_copy_t* copy = (const peer_copy_t*)work;
  weir_guard_memory_open(copy->from);
  memcpy(copy->dst, copy->src, copy->size);
  weir_guard_memory_close(copy->from);
  if (copy->bandwidth > 0) weir_thread_sleep((double)copy->size / copy->bandwidth * 1e9);
}

static void peer_done(weir_work_t* work) {
  peer_copy_t copy = *(peer_copy_t*)work;
  weir_free(work);
  copy.done(copy.arg, NULL);
}

static void guard_copy_peer(weir_device_t* device, weir_device_t* from, const void* src, void* dst,
                            size_t size, weir_copy_done_fn_t done, void* arg) {
  peer_copy_t* copy = weir_calloc(1, sizeof(*copy));
  if (!copy) {
    done(arg, weir_out_of_memory());
    return;
  }
  *copy = (peer_copy_t){.work = {.run = peer_run, .done = peer_done},
                        .from = ((guard_device_t*)from)->memory,
                        .src = src,
                        .dst = dst,
                        .size = size,
                        .bandwidth = ((thread_device_t*)device)->bandwidth,
                        .done = done,
                        .arg = arg};
  weir_thread_device_submit(device, WEIR_STREAM_UPLOAD, &copy->work);
}

// ---- the device ----

static const weir_device_vtable_t guard_vtable = {
    .destroy = weir_thread_device_destroy,
    .submit = weir_thread_device_submit,
    .record = weir_thread_device_record,
    .wait = weir_thread_device_wait,
    .copy = guard_copy,
    .copy_peer = guard_copy_peer,
};

static weir_status_t* start(guard_device_t* device, const weir_device_params_t* params) {
  weir_device_t* base = &device->base.base;
  base->speed = params->speed;
  device->slowness = params->speed > 0 ? 1 / params->speed - 1 : 0;
  WEIR_TRY(weir_guard_memory_create(base, base->name, kMemory, &device->memory));
  base->memory_limit = (int64_t)weir_guard_memory_size(device->memory);
  WEIR_TRY(weir_thread_device_start(&device->base, weir_guard_memory_base(device->memory),
                                    run_kernel, run_in_reach));
  if (!params->is_staged) return NULL;
  WEIR_TRY(weir_guard_memory_create(NULL, base->name, kPinned, &device->pinned));
  weir_guard_memory_open(device->pinned);
  return weir_thread_device_stage(&device->base, weir_guard_memory_base(device->pinned));
}

static weir_status_t* guard_create(const weir_device_params_t* params, weir_device_t** out_device) {
  guard_device_t* device = weir_calloc(1, sizeof(*device));
  if (!device) return weir_out_of_memory();
  weir_status_t* status = weir_thread_device_init(&device->base, "GUARD", &guard_vtable, params);
  if (status) {
    weir_free(device);
    return status;
  }
  status = start(device, params);
  if (status) weir_device_release(&device->base.base);
  else *out_device = &device->base.base;
  return status;
}

const weir_device_kind_t weir_guard_kind = {.name = "guard",
                                            .type = "GUARD",
                                            .kernel_type = "CPU",
                                            .has_queue = true,
                                            .preference = -1,
                                            .create = guard_create};
