// cuda_timer.c — When a GPU's streams were where: events that keep their time.
//
// An event says how long before another it was, not when. So each time that spans are made times,
// an event is recorded in a stream where nothing else is, and waited for: it happened between two
// looks at the host's clock. The closest of a few is the anchor, good to some microseconds.
#include "device/cuda/cuda.h"
#include "device/span.h"

static const cuda_driver_t* driver_of(const weir_device_t* device) {
  return weir_cuda_core(device)->driver;
}

static void drop(weir_device_t* device, void* mark) { driver_of(device)->event_destroy(mark); }

// In |stream| of the calling thread's device.
static void* record(const cuda_driver_t* driver, cu_stream_t stream) {
  cu_event_t event = NULL;
  if (driver->event_create(&event, CU_EVENT_TIMING) != 0) return NULL;
  if (driver->event_record(event, stream) == 0) return event;
  driver->event_destroy(event);
  return NULL;
}

static void* mark(weir_device_t* device, weir_stream_t stream) {
  return record(driver_of(device), weir_cuda_stream_at(device, stream));
}

// ---- the anchor ----

typedef struct idle_t {
  const cuda_driver_t* driver;
  cu_stream_t stream;
} idle_t;

static weir_status_t* idle_create(weir_device_t* device, void** out_object) {
  idle_t* idle = weir_calloc(1, sizeof(*idle));
  if (!idle) return weir_out_of_memory();
  idle->driver = driver_of(device);
  weir_status_t* status = weir_cuda_check(
      idle->driver, idle->driver->stream_create(&idle->stream, CU_STREAM_INDEPENDENT),
      "making a stream");
  if (status) weir_free(idle);
  else *out_object = idle;
  return status;
}

static void idle_destroy(void* object) {
  idle_t* idle = object;
  idle->driver->stream_destroy(idle->stream);
  weir_free(idle);
}

// |out_width_ns|: how far it may be off.
static void* record_now(const idle_t* idle, int64_t* out_ns, int64_t* out_width_ns) {
  int64_t before = weir_clock_ns();
  cu_event_t event = record(idle->driver, idle->stream);
  if (!event) return NULL;
  if (idle->driver->event_synchronize(event) != 0) {
    idle->driver->event_destroy(event);
    return NULL;
  }
  *out_width_ns = weir_clock_ns() - before;
  *out_ns = before + *out_width_ns / 2;
  return event;
}

static void* anchor(weir_device_t* device, int64_t* out_ns) {
  enum { TRIES = 5 };
  static const char key;
  void *object = NULL, *best = NULL;
  int64_t best_width = INT64_MAX;
  weir_status_t* status = weir_cuda_attachment(device, &key, idle_create, idle_destroy, &object);
  if (status) {
    weir_status_destroy(status);  // a trace without times of the GPU: it never fails a step
    return NULL;
  }
  weir_cuda_stream_at(device, WEIR_STREAM_COMPUTE);  // the device is this thread's
  for (int i = 0; i < TRIES; ++i) {
    int64_t ns = 0, width = 0;
    void* event = record_now(object, &ns, &width);
    bool is_better = event && width < best_width;
    void* worse = is_better ? best : event;
    if (worse) drop(device, worse);
    if (!is_better) continue;
    best = event;
    best_width = width;
    *out_ns = ns;
  }
  return best;
}

static bool before(weir_device_t* device, void* event, void* later, int64_t* out_ns) {
  const cuda_driver_t* driver = driver_of(device);
  float ms = 0;
  weir_cuda_stream_at(device, WEIR_STREAM_COMPUTE);
  if (driver->event_synchronize(event) != 0) return false;
  if (driver->event_elapsed(&ms, event, later) != 0) return false;
  *out_ns = (int64_t)((double)ms * 1e6);
  return true;
}

const weir_timer_vtable_t weir_cuda_timer = {
    .mark = mark, .drop = drop, .anchor = anchor, .before = before};
