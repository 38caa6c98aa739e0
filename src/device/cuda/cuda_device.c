// cuda_device.c — An NVIDIA GPU: three streams of the driver's, events, copies through pinned
// memory.
//
// Kernels launch by themselves (device/cuda/cuda.h), so nothing is submitted: the vtable has no
// |submit|. What the host wants to know, that a copy has arrived or an event was reached, threads
// wait for, one a stream, in the stream's order.
#include <stdlib.h>

#include "device/cuda/cuda.h"
#include "device/cuda/cuda_graph.h"
#include "device/cuda/cuda_memory.h"
#include "device/span.h"
#include "device/staging.h"
#include "device/thread_stream.h"

static const size_t kPinned = (size_t)1 << 30;     // bytes at most
static const size_t kReserve = (size_t)512 << 20;  // left to the driver and libraries

typedef struct attachment_t {
  const void* key;
  void* object;
  void (*destroy)(void* object);
  struct attachment_t* next;
} attachment_t;

typedef struct cuda_device_t {
  weir_device_t base;  // first
  cuda_core_t* core;
  cu_stream_t streams[WEIR_STREAMS];
  thread_stream_t* waiters[WEIR_STREAMS];  // wait for what is in the stream
  thread_stream_t* notifier;               // waits for events
  cuda_memory_t* memory;
  cuda_memory_t* pinned;
  bool is_ieee;  // products of floats are of floats, not of TF32
  bool is_deterministic;
  bool is_synchronous;  // WEIR_CUDA_SYNC=1: a launch waits, so that errors are its own
  cuda_modules_t* modules;
  weir_mutex_t mu;
  attachment_t* attachments;  // guarded by mu
} cuda_device_t;

static cuda_device_t* of(weir_device_t* device) { return (cuda_device_t*)device; }

static weir_status_t* check(const cuda_device_t* device, cu_result_t result, const char* doing) {
  return weir_cuda_check(device->core->driver, result, doing);
}

// Where kernels that this thread calls launch.
static cu_stream_t compute_stream(const cuda_device_t* device) {
  return weir_cuda_graph_stream(device->core, device->streams[WEIR_STREAM_COMPUTE]);
}

// ---- waiting ----

// Something to be called when a stream has come to an event.
typedef struct watch_t {
  weir_work_t work;  // first
  cuda_device_t* device;
  cu_event_t event;
  weir_status_t* status;
  weir_copy_done_fn_t done;
  void* arg;
} watch_t;

static void watch_run(weir_work_t* work) {
  watch_t* watch = (watch_t*)work;
  cuda_core_t* core = watch->device->core;
  weir_cuda_core_enter(core);
  watch->status =
      check(watch->device, core->driver->event_synchronize(watch->event), "waiting for the GPU");
}

static void watch_done(weir_work_t* work) {
  watch_t watch = *(watch_t*)work;
  weir_free(work);
  weir_cuda_core_recycle(watch.device->core, watch.event);
  watch.done(watch.arg, watch.status);
}

// Calls |done| when all that is in |stream| is through.
static void watch(cuda_device_t* device, weir_stream_t stream, weir_copy_done_fn_t done,
                  void* arg) {
  watch_t* made = weir_calloc(1, sizeof(*made));
  if (!made) {
    done(arg, weir_out_of_memory());
    return;
  }
  *made = (watch_t){
      .work = {.run = watch_run, .done = watch_done}, .device = device, .done = done, .arg = arg};
  weir_status_t* status =
      weir_cuda_core_record(device->core, device->streams[stream], &made->event);
  if (status) {
    weir_free(made);
    done(arg, status);
    return;
  }
  weir_thread_stream_submit(device->waiters[stream], &made->work);
}

static void cuda_settle(weir_device_t* base, weir_copy_done_fn_t done, void* arg) {
  watch(of(base), WEIR_STREAM_COMPUTE, done, arg);
}

// Of a tensor in this device's memory, in the order of the compute stream.
static weir_status_t* start_collecting(cuda_device_t* device, weir_tensor_t** tensor) {
  weir_tensor_t *there = *tensor, *here = NULL;
  WEIR_TRY(weir_device_host_tensor(&device->base, weir_tensor_type(there), there->rank, there->dims,
                                   &here));
  cu_result_t result = 0;
  if (there->count) {
    cu_stream_t stream = weir_cuda_stream(&device->base);
    result = device->core->driver->download(here->data, (uintptr_t)there->data,
                                            weir_tensor_byte_size(there), stream);
    weir_span_extend(&device->base, WEIR_STREAM_COMPUTE);
  }
  weir_tensor_release(result ? here : there);  // who gets its memory comes after, in the stream
  if (!result) *tensor = here;
  return check(device, result, "copying a result");
}

static weir_status_t* cuda_collect(weir_device_t* base, weir_tensor_t** tensors, int count) {
  cuda_device_t* device = of(base);
  const weir_space_t* space = weir_device_allocator(base, WEIR_MEMORY_DEVICE)->space;
  weir_status_t* status = NULL;
  weir_cuda_core_enter(device->core);
  for (int i = 0; i < count && !status; ++i) {
    bool is_here = tensors[i] && weir_tensor_space(tensors[i]) == space;
    if (is_here) status = start_collecting(device, &tensors[i]);
  }
  weir_status_t* waited = weir_cuda_synchronize(base);
  if (status) weir_status_destroy(waited);
  return status ? status : waited;
}

// ---- events ----

typedef struct cuda_event_t {
  weir_event_t base;      // first
  cuda_device_t* device;  // borrowed; not used once the event is reached
  cuda_core_t* core;
  cu_event_t event;
} cuda_event_t;

static void event_destroy(weir_event_t* base) {
  cuda_event_t* event = (cuda_event_t*)base;
  weir_cuda_core_recycle(event->core, event->event);
  weir_cuda_core_release(event->core);
  weir_free(event);
}

typedef struct notify_t {
  weir_work_t work;  // first
  cuda_event_t* event;
  weir_notice_t* notice;
} notify_t;

static void notify_run(weir_work_t* work) {
  const cuda_event_t* event = ((notify_t*)work)->event;
  weir_cuda_core_enter(event->core);
  event->core->driver->event_synchronize(event->event);  // an error is whoever reads next's
}

static void notify_done(weir_work_t* work) {
  notify_t notify = *(notify_t*)work;
  weir_free(work);
  weir_event_release(&notify.event->base);
  notify.notice->call(notify.notice);
}

static void event_notify(weir_event_t* base, weir_notice_t* notice) {
  cuda_event_t* event = (cuda_event_t*)base;
  weir_cuda_core_enter(event->core);
  bool is_reached = event->core->driver->event_query(event->event) != CU_NOT_READY;
  notify_t* notify = is_reached ? NULL : weir_calloc(1, sizeof(*notify));
  if (!notify) {  // without memory this thread waits itself
    if (!is_reached) event->core->driver->event_synchronize(event->event);
    notice->call(notice);
    return;
  }
  *notify = (notify_t){.work = {.run = notify_run, .done = notify_done},
                       .event = (cuda_event_t*)weir_event_retain(base),
                       .notice = notice};
  weir_thread_stream_submit(event->device->notifier, &notify->work);
}

static const weir_event_vtable_t event_vtable = {.destroy = event_destroy, .notify = event_notify};

static weir_status_t* cuda_record(weir_device_t* base, weir_stream_t stream,
                                  weir_event_t** out_event) {
  cuda_device_t* device = of(base);
  cuda_event_t* event = weir_calloc(1, sizeof(*event));
  if (!event) return weir_out_of_memory();
  weir_status_t* status =
      weir_cuda_core_record(device->core, device->streams[stream], &event->event);
  if (status) {
    weir_free(event);
    return status;
  }
  event->base.vtable = &event_vtable;
  weir_ref_init(&event->base.ref);
  event->device = device;
  event->core = weir_cuda_core_retain(device->core);
  *out_event = &event->base;
  return NULL;
}

static void await_foreign(void* arg) {
  weir_event_await(arg);
  weir_event_release(arg);
}

static weir_status_t* cuda_wait(weir_device_t* base, weir_stream_t stream, weir_event_t* event) {
  const cuda_device_t* device = of(base);
  const cuda_driver_t* driver = device->core->driver;
  cu_stream_t raw = device->streams[stream];
  weir_cuda_core_enter(device->core);
  if (event->vtable == &event_vtable)
    return check(device, driver->stream_wait(raw, ((cuda_event_t*)event)->event, 0),
                 "waiting for a stream");
  weir_event_retain(event);
  weir_status_t* status =
      check(device, driver->stream_call(raw, await_foreign, event), "waiting for another device");
  if (status) weir_event_release(event);
  return status;
}

// ---- copies ----

static void cuda_copy(weir_device_t* base, weir_stream_t stream, const void* src, void* dst,
                      size_t size, weir_copy_done_fn_t done, void* arg) {
  cuda_device_t* device = of(base);
  const cuda_driver_t* driver = device->core->driver;
  cu_stream_t raw = device->streams[stream];
  weir_cuda_core_enter(device->core);
  weir_span_enter(base, stream);
  cu_result_t result = stream == WEIR_STREAM_UPLOAD
                           ? driver->upload((uintptr_t)dst, src, size, raw)
                           : driver->download(dst, (uintptr_t)src, size, raw);
  weir_span_extend(base, stream);
  weir_status_t* status = check(device, result, "copying");
  if (status) done(arg, status);
  else watch(device, stream, done, arg);
}

static void cuda_copy_peer(weir_device_t* base, weir_device_t* from, const void* src, void* dst,
                           size_t size, weir_copy_done_fn_t done, void* arg) {
  cuda_device_t* device = of(base);
  weir_cuda_core_reach(device->core, of(from)->core);
  weir_cuda_core_enter(device->core);
  weir_span_enter(base, WEIR_STREAM_UPLOAD);
  cu_result_t result = device->core->driver->copy_peer((uintptr_t)dst, device->core->context,
                                                       (uintptr_t)src, of(from)->core->context,
                                                       size, device->streams[WEIR_STREAM_UPLOAD]);
  weir_span_extend(base, WEIR_STREAM_UPLOAD);
  weir_status_t* status = check(device, result, "copying from another GPU");
  if (status) done(arg, status);
  else watch(device, WEIR_STREAM_UPLOAD, done, arg);
}

// ---- kernels ----

weir_status_t* weir_cuda_function(weir_device_t* base, const char* source, const char* name,
                                  weir_cuda_function_t* out_function) {
  return weir_cuda_modules_find(of(base)->modules, source, name, &out_function->function);
}

weir_cuda_size_t weir_cuda_size_for(const weir_device_t* device, int64_t count) {
  enum { BLOCK = 256, WAVES = 16 };
  int64_t most = (int64_t)((const cuda_device_t*)device)->core->multiprocessors * WAVES;
  int64_t blocks = WEIR_MIN((count + BLOCK - 1) / BLOCK, most);
  return (weir_cuda_size_t){.grid = {(unsigned)WEIR_MAX(blocks, 1), 1, 1}, .block = {BLOCK, 1, 1}};
}

// More than a block has if its function does not ask.
static cu_result_t ask_for_shared(const cuda_driver_t* driver, cu_function_t function,
                                  unsigned bytes) {
  const unsigned usual = 48 << 10;
  if (WEIR_LIKELY(bytes <= usual)) return 0;
  return driver->function_set(function, CU_FUNCTION_SHARED_BYTES, (int)bytes);
}

weir_status_t* weir_cuda_launch(weir_device_t* base, weir_cuda_function_t function,
                                const weir_cuda_size_t* size, void** args) {
  const cuda_device_t* device = of(base);
  const cuda_driver_t* driver = device->core->driver;
  cu_function_t compiled = NULL;
  WEIR_TRY(weir_cuda_function_get(function.function, &compiled));
  cu_stream_t stream = weir_cuda_stream(base);
  WEIR_TRY(weir_cuda_graph_count());
  cu_result_t result = ask_for_shared(driver, compiled, size->shared_bytes);
  WEIR_TRY(check(device, result, "asking for shared memory"));
  result = driver->launch(compiled, size->grid[0], size->grid[1], size->grid[2], size->block[0],
                          size->block[1], size->block[2], size->shared_bytes, stream, args, NULL);
  WEIR_TRY(check(device, result, "launching"));
  return weir_cuda_launched(base);
}

weir_status_t* weir_cuda_launched(weir_device_t* base) {
  return of(base)->is_synchronous ? weir_cuda_synchronize(base) : NULL;
}

weir_status_t* weir_cuda_copy(weir_device_t* base, void* dst, const void* src, size_t size) {
  const cuda_device_t* device = of(base);
  cu_stream_t stream = weir_cuda_stream(base);
  return check(device, device->core->driver->copy((uintptr_t)dst, (uintptr_t)src, size, stream),
               "copying");
}

weir_status_t* weir_cuda_set(weir_device_t* base, void* dst, int byte, size_t size) {
  const cuda_device_t* device = of(base);
  cu_stream_t stream = weir_cuda_stream(base);
  return check(device,
               device->core->driver->set_bytes((uintptr_t)dst, (unsigned char)byte, size, stream),
               "setting memory");
}

cu_stream_t weir_cuda_stream_at(weir_device_t* base, weir_stream_t stream) {
  weir_cuda_core_enter(of(base)->core);
  return of(base)->streams[stream];
}

cu_stream_t weir_cuda_stream(weir_device_t* base) {
  weir_span_enter(base, WEIR_STREAM_COMPUTE);
  weir_cuda_core_enter(of(base)->core);
  return compute_stream(of(base));
}

bool weir_cuda_is_recording(const weir_device_t* device) {
  return weir_cuda_graph_is_recording(((const cuda_device_t*)device)->core);
}

weir_status_t* weir_cuda_synchronize(weir_device_t* base) {
  const cuda_device_t* device = of(base);
  if (weir_cuda_is_recording(base))
    return WEIR_STATUS(FAILED_PRECONDITION, "what is recorded cannot be waited for");
  weir_cuda_core_enter(device->core);
  return check(device,
               device->core->driver->stream_synchronize(device->streams[WEIR_STREAM_COMPUTE]),
               "waiting for the GPU");
}

bool weir_cuda_allows_tf32(const weir_device_t* device) {
  return !((const cuda_device_t*)device)->is_ieee;
}

bool weir_cuda_is_deterministic(const weir_device_t* device) {
  return ((const cuda_device_t*)device)->is_deterministic;
}

const cuda_core_t* weir_cuda_core(const weir_device_t* device) {
  return ((const cuda_device_t*)device)->core;
}

// ---- what libraries keep ----

weir_status_t* weir_cuda_attachment(weir_device_t* base, const void* key,
                                    weir_status_t* (*create)(weir_device_t* device,
                                                             void** out_object),
                                    void (*destroy)(void* object), void** out_object) {
  cuda_device_t* device = of(base);
  weir_cuda_core_enter(device->core);
  weir_mutex_lock(&device->mu);
  attachment_t* at = device->attachments;
  while (at && at->key != key) at = at->next;
  weir_status_t* status = NULL;
  if (!at) {
    at = weir_calloc(1, sizeof(*at));
    status = at ? create(base, &at->object) : weir_out_of_memory();
    if (!status) {
      at->key = key;
      at->destroy = destroy;
      at->next = device->attachments;
      device->attachments = at;
    } else {
      weir_free(at);
    }
  }
  if (!status) *out_object = at->object;
  weir_mutex_unlock(&device->mu);
  return status;
}

// ---- recordings ----

cuda_graph_place_t weir_cuda_graph_place(weir_device_t* base) {
  const cuda_device_t* device = of(base);
  return (cuda_graph_place_t){.device = base,
                              .core = device->core,
                              .compute = device->streams[WEIR_STREAM_COMPUTE],
                              .memory = device->memory};
}

// ---- the device ----

static void free_kernels(cuda_device_t* device) {
  while (device->attachments) {
    attachment_t* attachment = device->attachments;
    device->attachments = attachment->next;
    attachment->destroy(attachment->object);
    weir_free(attachment);
  }
  weir_cuda_modules_destroy(device->modules);
}

static void cuda_destroy(weir_device_t* base) {
  cuda_device_t* device = of(base);
  weir_staging_destroy(base->staging);
  for (int i = 0; i < WEIR_STREAMS; ++i) weir_thread_stream_destroy(device->waiters[i]);
  weir_thread_stream_destroy(device->notifier);
  if (device->core && device->core->context) {
    weir_cuda_core_enter(device->core);
    device->core->driver->context_synchronize();
    free_kernels(device);
    for (int i = 0; i < WEIR_STREAMS; ++i) {
      if (device->streams[i]) device->core->driver->stream_destroy(device->streams[i]);
    }
  }
  if (device->pinned) weir_device_memory_leave(weir_cuda_memory_base(device->pinned));
  if (device->memory) weir_device_memory_leave(weir_cuda_memory_base(device->memory));
  weir_cuda_core_release(device->core);
  weir_mutex_destroy(&device->mu);
  weir_free(base->name);
  weir_free(base->description);
  weir_free(device);
}

static double cuda_busy(weir_device_t* base) { return weir_cuda_busy(of(base)->core); }

static const weir_device_vtable_t cuda_vtable = {
    .destroy = cuda_destroy,
    .record = cuda_record,
    .wait = cuda_wait,
    .copy = cuda_copy,
    .copy_peer = cuda_copy_peer,
    .settle = cuda_settle,
    .collect = cuda_collect,
    .timer = &weir_cuda_timer,
    .busy = cuda_busy,
};

bool weir_device_is_cuda(const weir_device_t* device) { return device->vtable == &cuda_vtable; }

static void run_work(void* arg, weir_work_t* work) {
  (void)arg;
  work->run(work);
}

static weir_status_t* start_streams(cuda_device_t* device) {
  const cuda_driver_t* driver = device->core->driver;
  weir_cuda_core_enter(device->core);
  for (int i = 0; i < WEIR_STREAMS; ++i) {
    WEIR_TRY(check(device, driver->stream_create(&device->streams[i], CU_STREAM_INDEPENDENT),
                   "making a stream"));
    WEIR_TRY(weir_thread_stream_create(run_work, NULL, &device->waiters[i]));
  }
  return weir_thread_stream_create(run_work, NULL, &device->notifier);
}

static weir_status_t* start_memory(cuda_device_t* device, const weir_device_params_t* params) {
  weir_device_t* base = &device->base;
  size_t most = device->core->memory > 2 * kReserve ? device->core->memory - kReserve
                                                    : device->core->memory / 2;
  if (params->memory > 0 && params->memory < (double)most) most = (size_t)params->memory;
  base->memory_limit = (int64_t)most;
  WEIR_TRY(weir_cuda_memory_create(device->core, base, base->name, most, &device->memory));
  base->allocators[WEIR_MEMORY_DEVICE] = &weir_cuda_memory_base(device->memory)->allocator;
  WEIR_TRY(weir_cuda_memory_create(device->core, NULL, base->name, kPinned, &device->pinned));
  weir_allocator_t* pinned = &weir_cuda_memory_base(device->pinned)->allocator;
  base->allocators[WEIR_MEMORY_PINNED] = pinned;
  return weir_staging_create(base, pinned, &base->staging);
}

// In TensorFlow's words: programs look for some of them.
static weir_status_t* describe(cuda_device_t* device) {
  const cuda_core_t* core = device->core;
  weir_strbuf_t text = {0};
  weir_strbuf_printf(&text, "device: %d, name: %s, pci bus id: %s, compute capability: %d.%d",
                     core->device, core->name, core->bus, core->architecture / 10,
                     core->architecture % 10);
  weir_status_t* status = weir_strbuf_finish(&text);
  if (status) weir_strbuf_free(&text);
  else device->base.description = text.data;  // moved
  return status;
}

static weir_status_t* cuda_create(const weir_device_params_t* params, weir_device_t** out_device) {
  cuda_core_t* core = NULL;
  WEIR_TRY(weir_cuda_core_create(params->index, &core));
  cuda_device_t* device = weir_calloc(1, sizeof(*device));
  weir_status_t* status =
      device ? weir_device_init(&device->base, WEIR_DEVICE_GPU, params) : weir_out_of_memory();
  if (status) {
    weir_free(device);
    weir_cuda_core_release(core);
    return status;
  }
  const char* sync = getenv("WEIR_CUDA_SYNC");
  const char* graphs = getenv("WEIR_CUDA_GRAPHS");
  device->base.vtable = &cuda_vtable;
  device->base.preference = 1;  // before a CPU, as in TensorFlow
  device->base.allocators[WEIR_MEMORY_HOST] = weir_host_allocator();
  device->core = core;
  device->is_ieee = params->is_ieee;
  device->is_deterministic = params->is_deterministic;
  device->is_synchronous = sync && *sync == '1';
  bool may_record = !device->is_synchronous && !(graphs && *graphs == '0');
  device->base.recorder = may_record ? &weir_cuda_recorder : NULL;
  weir_mutex_init(&device->mu);
  status = weir_cuda_modules_create(core, params->pool, &device->modules);
  if (!status) status = describe(device);
  if (!status) status = start_streams(device);
  if (!status) status = start_memory(device, params);
  if (status) weir_device_release(&device->base);
  else *out_device = &device->base;
  return status;
}

const weir_device_kind_t weir_cuda_kind = {.name = "cuda",
                                           .type = WEIR_DEVICE_GPU,
                                           .kernel_type = WEIR_DEVICE_GPU,
                                           .has_queue = true,
                                           .preference = 1,
                                           .create = cuda_create};
