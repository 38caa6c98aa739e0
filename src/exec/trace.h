// trace.h — Timing of every node of a step, for RunMetadata and Chrome traces. Thread-safe.
#ifndef WEIR_EXEC_TRACE_H_
#define WEIR_EXEC_TRACE_H_

#include "base/alloc.h"
#include "base/string.h"
#include "base/thread.h"
#include "device/span.h"
#include "op/kernel.h"

typedef struct weir_trace_event_t {
  // What is known of a node that ran. Times are weir_clock_ns's.
  const weir_node_def_t* node;  // borrowed from the plan's graph
  const weir_device_t* device;  // that it ran on; borrowed from the runtime
  int64_t ready_ns;
  int64_t start_ns;
  int64_t end_ns;
  weir_alloc_meter_t memory;  // of asynchronous kernels copies only: others allocate on any thread
  weir_stream_span_t span;    // what it put in a stream, where the device tells
  weir_stream_span_t* outer;  // what was up on its thread before; only from begin to end
  // Filled in by weir_trace_add.
  int thread;  // small number, in order of first use
  int64_t output_bytes;
  int64_t in_use;  // bytes of the device's own memory, after the node; 0: it has none, or is silent
  size_t outputs, outputs_size;  // NodeOutput messages, within the trace's |outputs|
} weir_trace_event_t;

typedef struct weir_trace_t {
  weir_mutex_t mu;
  weir_trace_event_t* events;  // guarded by mu
  size_t count;
  size_t capacity;
  weir_strbuf_t outputs;  // guarded by mu
  int64_t wall_start_us;  // wall clock at clock_start_ns
  int64_t clock_start_ns;
} weir_trace_t;

void weir_trace_init(weir_trace_t* trace);
void weir_trace_free(weir_trace_t* trace);
// Events are dropped when memory is exhausted: a trace never fails a step.
void weir_trace_add(weir_trace_t* trace, weir_trace_event_t event, const weir_value_t* outputs,
                    int output_count);
// Before and after a kernel on this thread: its times, memory and span. |event| stays where it is.
void weir_trace_begin(weir_trace_event_t* event, const weir_node_def_t* node,
                      const weir_device_t* device, int64_t ready_ns);
void weir_trace_end(weir_trace_t* trace, weir_trace_event_t* event, const weir_value_t* outputs,
                    int output_count);
// The memory that a node took whose |outputs| are all it made.
weir_alloc_meter_t weir_trace_fresh(const weir_value_t* outputs, int output_count);
// The devices of a process as a trace shows them.
typedef struct weir_trace_devices_t {
  weir_device_t* const* items;
  int count;         // at least 1
  const char* task;  // what their names begin with instead of their own task; NULL: they stay
} weir_trace_devices_t;
// Appends a RunMetadata message: the step_stats of each device that ran anything, of the first one
// if none did. What a GPU did, and when, follows under names of their own, as TensorFlow's tools
// want it: "…/device:GPU:0/stream:all" has its kernels, "…/memcpy" copies; nodes are "name:Op".
WEIR_MUST_USE weir_status_t* weir_trace_write_metadata(weir_trace_t* trace,
                                                       const weir_trace_devices_t* devices,
                                                       weir_strbuf_t* out);
// Appends Chrome's trace JSON; its "processes" are the devices, their threads those of the host
// and, of GPUs, the streams; a counter shows memory in use. "otherData" tells for what share of the
// time, from its first kernel to its last, a GPU was busy.
WEIR_MUST_USE weir_status_t* weir_trace_write_chrome(weir_trace_t* trace, weir_strbuf_t* out);

#endif  // WEIR_EXEC_TRACE_H_
