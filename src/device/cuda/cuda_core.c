// cuda_core.c — Context and events of a GPU.
#include "device/cuda/cuda_core.h"

#include "base/alloc.h"

static _Thread_local cu_context_t current;  // what the driver was told on this thread

void weir_cuda_core_enter(cuda_core_t* core) {
  if (WEIR_LIKELY(current == core->context)) return;
  if (core->driver->context_set(core->context) == 0) current = core->context;
}

void weir_cuda_core_forget(void) { current = NULL; }

// Whether nobody has asked for |peer| before. Beyond the first 64, all do each time.
static bool is_first_to_ask(cuda_core_t* core, const cuda_core_t* peer) {
  uint64_t bit = peer->device < 64 ? UINT64_C(1) << peer->device : 0;
  weir_mutex_lock(&core->mu);
  bool is_first = !(core->asked & bit);
  core->asked |= bit;
  weir_mutex_unlock(&core->mu);
  return is_first;
}

void weir_cuda_core_reach(cuda_core_t* core, const cuda_core_t* peer) {
  const cuda_driver_t* driver = core->driver;
  int can = 0;
  if (!is_first_to_ask(core, peer)) return;
  if (driver->device_can_reach(&can, core->device, peer->device) != 0 || !can) return;
  weir_cuda_core_enter(core);
  // Of a context that others in the process use, too. Where there are too many peers already, what
  // is copied takes the longer way.
  (void)driver->context_reach(peer->context, 0);
}

static weir_status_t* look_up(cuda_core_t* core, int number) {
  const cuda_driver_t* driver = core->driver;
  int count = 0, major = 0, minor = 0;
  WEIR_TRY(weir_cuda_check(driver, driver->device_count(&count), "counting GPUs"));
  if (number >= count)
    return WEIR_STATUS(UNAVAILABLE, "GPU %d was asked for; there are %d", number, count);
  WEIR_TRY(weir_cuda_check(driver, driver->device_get(&core->device, number), "opening a GPU"));
  int device = core->device;
  WEIR_TRY(weir_cuda_check(driver, driver->device_attribute(&major, CU_MAJOR, device), "opening"));
  WEIR_TRY(weir_cuda_check(driver, driver->device_attribute(&minor, CU_MINOR, device), "opening"));
  WEIR_TRY(weir_cuda_check(
      driver, driver->device_attribute(&core->multiprocessors, CU_MULTIPROCESSORS, device),
      "opening a GPU"));
  WEIR_TRY(weir_cuda_check(driver,
                           driver->device_attribute(&core->shared_bytes, CU_SHARED_BYTES, device),
                           "opening a GPU"));
  WEIR_TRY(weir_cuda_check(driver, driver->device_memory(&core->memory, device), "opening a GPU"));
  WEIR_TRY(weir_cuda_check(driver, driver->device_name(core->name, sizeof(core->name), device),
                           "opening a GPU"));
  WEIR_TRY(weir_cuda_check(driver, driver->device_bus(core->bus, sizeof(core->bus), device),
                           "opening a GPU"));
  core->architecture = 10 * major + minor;
  return weir_cuda_check(driver, driver->context_retain(&core->context, device), "opening a GPU");
}

weir_status_t* weir_cuda_core_create(int number, cuda_core_t** out_core) {
  const cuda_driver_t* driver = NULL;
  WEIR_TRY(weir_cuda_driver(&driver));
  cuda_core_t* core = weir_calloc(1, sizeof(*core));
  if (!core) return weir_out_of_memory();
  core->driver = driver;
  weir_ref_init(&core->ref);
  weir_mutex_init(&core->mu);
  weir_status_t* status = look_up(core, number);
  if (status) weir_cuda_core_release(core);
  else *out_core = core;
  return status;
}

cuda_core_t* weir_cuda_core_retain(cuda_core_t* core) {
  weir_ref_inc(&core->ref, 1);
  return core;
}

// The context stays: other threads have it as their current one, and the next device wants it soon.
void weir_cuda_core_release(cuda_core_t* core) {
  if (!core || !weir_ref_dec(&core->ref)) return;
  if (core->context) {
    weir_cuda_core_enter(core);
    for (size_t i = 0; i < core->event_count; ++i) core->driver->event_destroy(core->events[i]);
  }
  weir_free(core->events);
  weir_mutex_destroy(&core->mu);
  weir_free(core);
}

static cu_event_t take_event(cuda_core_t* core) {
  cu_event_t event = NULL;
  weir_mutex_lock(&core->mu);
  if (core->event_count > 0) event = core->events[--core->event_count];
  weir_mutex_unlock(&core->mu);
  return event;
}

weir_status_t* weir_cuda_core_record(cuda_core_t* core, cu_stream_t stream, cu_event_t* out_event) {
  const cuda_driver_t* driver = core->driver;
  weir_cuda_core_enter(core);
  cu_event_t event = take_event(core);
  if (!event)
    WEIR_TRY(weir_cuda_check(driver, driver->event_create(&event, CU_EVENT_NO_TIMING),
                             "making an event"));
  weir_status_t* status =
      weir_cuda_check(driver, driver->event_record(event, stream), "recording an event");
  if (status) weir_cuda_core_recycle(core, event);
  else *out_event = event;
  return status;
}

void weir_cuda_core_recycle(cuda_core_t* core, cu_event_t event) {
  weir_mutex_lock(&core->mu);
  bool is_kept = WEIR_GROW(core->events, core->event_capacity, core->event_count + 1);
  if (is_kept) core->events[core->event_count++] = event;
  weir_mutex_unlock(&core->mu);
  if (is_kept) return;
  weir_cuda_core_enter(core);
  core->driver->event_destroy(event);
}
