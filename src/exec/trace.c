// trace.c — Collecting node timings and writing them as RunMetadata or as Chrome's trace JSON.
#include "exec/trace.h"

#include <stdlib.h>

#include "base/json.h"
#include "exec/node_run.h"
#include "graph/graph.h"
#include "tensor/tensor.h"
#include "wire/wire.h"

#define ALLOCATOR_NAME "cpu"

static int thread_number(void) {
  static atomic_int next = 0;
  static _Thread_local int number = -1;
  if (number < 0) number = atomic_fetch_add(&next, 1);
  return number;
}

void weir_trace_init(weir_trace_t* trace) {
  *trace = (weir_trace_t){.wall_start_us = weir_wall_clock_us(), .clock_start_ns = weir_clock_ns()};
  weir_mutex_init(&trace->mu);
}

// Marks in streams become times: what is in a trace is through, or soon will be.
static void resolve_spans(weir_trace_t* trace) {
  for (size_t i = 0; i < trace->count; ++i) {
    weir_stream_span_t* span = &trace->events[i].span;
    if (span->first)
      weir_spans_resolve(span->device, span, trace->count - i, sizeof(trace->events[0]));
    if (!span->end_ns) continue;
    span->start_ns = WEIR_MAX(span->start_ns, trace->events[i].start_ns);  // not before its launch,
    span->end_ns = WEIR_MAX(span->end_ns, span->start_ns);  // however far the clocks are apart
  }
}

void weir_trace_free(weir_trace_t* trace) {
  resolve_spans(trace);
  weir_free(trace->events);
  weir_strbuf_free(&trace->outputs);
  weir_mutex_destroy(&trace->mu);
}

// A NodeOutput: the tensor's type, shape and size.
static void put_output(const weir_device_t* device, const weir_tensor_t* tensor, int slot,
                       weir_strbuf_t* out) {
  size_t output = weir_wire_begin(out, 7);
  if (slot) weir_wire_put_int(out, 1, slot);
  size_t description = weir_wire_begin(out, 3);
  weir_wire_put_int(out, 1, weir_tensor_type(tensor));
  size_t shape = weir_wire_begin(out, 2);
  for (int i = 0; i < tensor->rank; ++i) {
    size_t dim = weir_wire_begin(out, 2);
    weir_wire_put_int(out, 1, tensor->dims[i]);
    weir_wire_end(out, dim);
  }
  weir_wire_end(out, shape);
  size_t allocation = weir_wire_begin(out, 4);
  weir_wire_put_int(out, 1, (int64_t)weir_tensor_byte_size(tensor));
  weir_wire_put_string(out, 3, weir_tensor_is_host(tensor) ? ALLOCATOR_NAME : device->type);
  weir_wire_end(out, allocation);
  weir_wire_end(out, description);
  weir_wire_end(out, output);
}

static int64_t memory_in_use(const weir_device_t* device) {
  weir_allocator_t* allocator = weir_device_allocator(device, WEIR_MEMORY_DEVICE);
  weir_allocator_use_t use = {.in_use = 0};
  bool is_told = !weir_device_is_host(device) && allocator->vtable->get_use;
  if (is_told) allocator->vtable->get_use(allocator, &use);
  return use.in_use;
}

void weir_trace_add(weir_trace_t* trace, weir_trace_event_t event, const weir_value_t* outputs,
                    int output_count) {
  event.thread = thread_number();
  event.output_bytes = weir_node_bytes(outputs, output_count);
  event.in_use = memory_in_use(event.device);
  weir_mutex_lock(&trace->mu);
  event.outputs = trace->outputs.size;
  for (int i = 0; i < output_count; ++i)
    if (outputs[i].tensor) put_output(event.device, outputs[i].tensor, i, &trace->outputs);
  event.outputs_size = trace->outputs.size - event.outputs;
  bool is_kept = WEIR_GROW(trace->events, trace->capacity, trace->count + 1);
  if (is_kept) trace->events[trace->count++] = event;
  weir_mutex_unlock(&trace->mu);
  if (!is_kept && event.span.first) weir_spans_resolve(event.span.device, &event.span, 1, 0);
}

void weir_trace_begin(weir_trace_event_t* event, const weir_node_def_t* node,
                      const weir_device_t* device, int64_t ready_ns) {
  *event = (weir_trace_event_t){
      .node = node, .device = device, .ready_ns = ready_ns, .start_ns = weir_clock_ns()};
  weir_alloc_meter_begin(&event->memory);
  event->outer = weir_span_set(&event->span);
}

void weir_trace_end(weir_trace_t* trace, weir_trace_event_t* event, const weir_value_t* outputs,
                    int output_count) {
  weir_span_close(&event->span);
  weir_span_set(event->outer);
  weir_alloc_meter_end(&event->memory);
  event->end_ns = weir_clock_ns();
  weir_trace_add(trace, *event, outputs, output_count);
}

weir_alloc_meter_t weir_trace_fresh(const weir_value_t* outputs, int output_count) {
  weir_alloc_meter_t memory = {.host = {0}};
  for (int i = 0; i < output_count; ++i) {
    if (!outputs[i].tensor) continue;
    weir_alloc_count_t* count =
        weir_tensor_is_host(outputs[i].tensor) ? &memory.host : &memory.device;
    count->total += (int64_t)weir_tensor_byte_size(outputs[i].tensor);
    count->live = count->peak = count->total;
  }
  return memory;
}

// ---- nodes that stand for several ----

// None: the node stands for itself.
typedef struct members_t {
  const weir_view_t *names, *ops;
  size_t count;
} members_t;

static members_t members_of(const weir_node_def_t* node) {
  bool is_extended = weir_node_is_extended(node);
  bool is_composite = node->op && node->op->flags & WEIR_OP_COMPOSITE;
  if (!is_composite && !is_extended) return (members_t){.count = 0};
  const weir_attr_t* names = weir_attrs_list(node->attrs, is_extended ? "_names" : "names");
  const weir_attr_t* ops = weir_attrs_list(node->attrs, is_extended ? "_ops" : "ops");
  return (members_t){.names = names->u.strings, .ops = ops->u.strings, .count = names->count};
}

// Who looks for a node looks for the name it was given. Several go by that of the last of them, as
// those that TensorFlow fuses do.
static weir_view_t name_of(const weir_node_def_t* node) {
  members_t members = members_of(node);
  return members.count ? members.names[members.count - 1] : weir_view_of(node->name);
}

static void put_input(weir_edge_t edge, weir_strbuf_t* out) {
  const weir_node_def_t* node = &edge.node->def;
  members_t members = members_of(node);
  if (weir_node_is_extended(node)) {
    weir_view_t output = weir_attrs_list(node->attrs, "_outputs")->u.strings[edge.index];
    weir_strbuf_append(out, output.data, output.size);
    return;
  }
  if (members.count) {
    int64_t value = weir_attrs_list(node->attrs, "outputs")->u.ints[edge.index];
    weir_view_t name = members.names[value - node->input_count];
    weir_strbuf_append(out, name.data, name.size);
    return;
  }
  weir_strbuf_puts(out, node->name);
  if (edge.index) weir_strbuf_printf(out, ":%d", edge.index);
}

// ---- RunMetadata ----

static int64_t wall_ns(const weir_trace_t* trace, int64_t clock_ns) {
  return trace->wall_start_us * 1000 + (clock_ns - trace->clock_start_ns);
}

static const char* allocator_name(const weir_trace_event_t* event, bool is_host) {
  return is_host ? ALLOCATOR_NAME : event->device->type;
}

// What a node allocated in all and at most at a time, when that is much.
static void write_much(const char* name, const weir_alloc_count_t* count, weir_strbuf_t* out) {
  enum { MEGABYTE = 1 << 20 };
  if (count->total < MEGABYTE / 10) return;
  weir_strbuf_printf(out, "[%s %.1fMB %.1fMB] ", name, (double)count->total / MEGABYTE,
                     (double)count->peak / MEGABYTE);
}

// "name = Op(inputs)": viewers find there where a node's inputs come from. Behind it, the nodes
// that it stands for: " of Op name, Op name".
static void write_label(const weir_trace_event_t* event, weir_strbuf_t* out) {
  const weir_node_t* node = (const weir_node_t*)event->node;
  weir_view_t name = name_of(event->node);
  members_t members = members_of(event->node);
  write_much(allocator_name(event, true), &event->memory.host, out);
  write_much(allocator_name(event, false), &event->memory.device, out);
  weir_strbuf_printf(out, "%.*s = %s(", WEIR_VIEW_ARG(name), node->def.op_name);
  for (int i = 0; i < node->def.input_count; ++i) {
    if (i) weir_strbuf_puts(out, ", ");
    put_input(node->inputs[i], out);
  }
  weir_strbuf_putc(out, ')');
  for (size_t i = 0; i < members.count; ++i)
    weir_strbuf_printf(out, "%s%.*s %.*s", i ? ", " : " of ", WEIR_VIEW_ARG(members.ops[i]),
                       WEIR_VIEW_ARG(members.names[i]));
}

// AllocatorMemoryUsed. Returns what the kernel gave back before its end.
static int64_t write_used(const char* name, const weir_alloc_count_t* count, int64_t in_use,
                          weir_strbuf_t* out) {
  int64_t live = WEIR_MAX(count->live, 0);
  if (count->total == 0) return 0;
  size_t used = weir_wire_begin(out, 6);
  weir_wire_put_string(out, 1, name);
  weir_wire_put_int(out, 2, count->total);
  weir_wire_put_int(out, 3, count->peak);
  if (live) weir_wire_put_int(out, 4, live);
  if (in_use) weir_wire_put_int(out, 5, in_use);
  weir_wire_end(out, used);
  return count->total - live;
}

static void write_memory(const weir_trace_event_t* event, weir_strbuf_t* out) {
  int64_t temporary =
      write_used(allocator_name(event, true), &event->memory.host, 0, out) +
      write_used(allocator_name(event, false), &event->memory.device, event->in_use, out);
  size_t stats = weir_wire_begin(out, 12);  // MemoryStats
  if (temporary > 0) weir_wire_put_int(out, 1, temporary);
  weir_wire_end(out, stats);
}

// NodeExecStats: name, start, relative times, outputs, label, thread.
static void write_node(const weir_trace_t* trace, const weir_trace_event_t* event,
                       weir_strbuf_t* out) {
  int64_t micros = WEIR_MAX((event->end_ns - event->start_ns) / 1000, 1);
  weir_view_t name = name_of(event->node);
  weir_wire_put_bytes(out, 1, name.data, name.size);
  weir_wire_put_int(out, 2, wall_ns(trace, event->start_ns) / 1000);
  weir_wire_put_int(out, 4, micros);  // op_end_rel_micros
  weir_wire_put_int(out, 5, micros);  // all_end_rel_micros
  if (!trace->outputs.failed && event->outputs_size)
    weir_strbuf_append(out, trace->outputs.data + event->outputs, event->outputs_size);
  size_t label = weir_wire_begin(out, 8);
  write_label(event, out);
  weir_wire_end(out, label);
  weir_wire_put_int(out, 9, wall_ns(trace, event->ready_ns) / 1000);  // scheduled_micros
  weir_wire_put_int(out, 10, event->thread);
  write_memory(event, out);
  weir_wire_put_int(out, 13, wall_ns(trace, event->start_ns));  // all_start_nanos
  weir_wire_put_int(out, 15, event->end_ns - event->start_ns);  // op_end_rel_nanos
  weir_wire_put_int(out, 16, event->end_ns - event->start_ns);  // all_end_rel_nanos
  weir_wire_put_int(out, 17, wall_ns(trace, event->ready_ns));  // scheduled_nanos
}

static void write_device_name(const weir_device_t* device, const char* task, const char* row,
                              weir_strbuf_t* out) {
  const char* own = strstr(device->name, "/device:");
  size_t name = weir_wire_begin(out, 1);
  if (task && own) weir_strbuf_printf(out, "%s%s", task, own);
  else weir_strbuf_puts(out, device->name);
  weir_strbuf_puts(out, row);
  weir_wire_end(out, name);
}

// ---- what a device's streams did ----

static bool has_span(const weir_trace_event_t* event) { return event->span.end_ns != 0; }

// What TensorFlow calls what a stream does for a node.
static const char* span_op(const weir_trace_event_t* event) {
  static const char* const copies[WEIR_STREAMS] = {
      [WEIR_STREAM_UPLOAD] = "MEMCPYHtoD", [WEIR_STREAM_DOWNLOAD] = "MEMCPYDtoH"};
  const char* copy = copies[event->span.stream];
  return copy ? copy : event->node->op_name;
}

// NodeExecStats: "name:Op", when, and which node that is.
static void write_span(const weir_trace_t* trace, const weir_trace_event_t* event,
                       weir_strbuf_t* out) {
  const weir_stream_span_t* span = &event->span;
  int64_t micros = WEIR_MAX((span->end_ns - span->start_ns) / 1000, 1);
  weir_view_t node = name_of(event->node);
  size_t name = weir_wire_begin(out, 1);
  weir_strbuf_printf(out, "%.*s:%s", WEIR_VIEW_ARG(node), span_op(event));
  weir_wire_end(out, name);
  weir_wire_put_int(out, 2, wall_ns(trace, span->start_ns) / 1000);
  weir_wire_put_int(out, 4, micros);
  weir_wire_put_int(out, 5, micros);
  size_t label = weir_wire_begin(out, 8);
  if (span->stream == WEIR_STREAM_COMPUTE) write_label(event, out);
  else weir_strbuf_printf(out, "%s %lld bytes", span_op(event), (long long)event->output_bytes);
  weir_wire_end(out, label);
  weir_wire_put_int(out, 9, wall_ns(trace, event->start_ns) / 1000);  // when the host launched it
  weir_wire_put_int(out, 13, wall_ns(trace, span->start_ns));
  weir_wire_put_int(out, 15, span->end_ns - span->start_ns);
  weir_wire_put_int(out, 16, span->end_ns - span->start_ns);
  weir_wire_put_int(out, 17, wall_ns(trace, event->start_ns));
}

// DeviceStepStats of |device|'s kernels, or of the copies; nothing where there were none.
static void write_streams(const weir_trace_t* trace, const weir_device_t* device, bool are_copies,
                          const char* task, weir_strbuf_t* out) {
  size_t from = out->size;
  bool is_empty = true;
  size_t stats = weir_wire_begin(out, 1);
  write_device_name(device, task, are_copies ? "/memcpy" : "/stream:all", out);
  for (size_t i = 0; i < trace->count; ++i) {
    const weir_trace_event_t* event = &trace->events[i];
    bool is_copy = event->span.stream != WEIR_STREAM_COMPUTE;
    if (!has_span(event) || event->span.device != device || is_copy != are_copies) continue;
    is_empty = false;
    size_t node = weir_wire_begin(out, 2);
    write_span(trace, event, out);
    weir_wire_end(out, node);
  }
  weir_wire_end(out, stats);
  if (is_empty) out->size = from;
}

// ---- all devices ----

// DeviceStepStats; nothing where nothing ran, unless it is the first and nothing ran anywhere.
static void write_device(const weir_trace_t* trace, const weir_device_t* device, bool is_first,
                         const char* task, weir_strbuf_t* out) {
  size_t from = out->size;
  bool is_empty = true;
  size_t stats = weir_wire_begin(out, 1);
  write_device_name(device, task, "", out);
  for (size_t i = 0; i < trace->count; ++i) {
    if (trace->events[i].device != device) continue;
    is_empty = false;
    size_t node = weir_wire_begin(out, 2);
    write_node(trace, &trace->events[i], out);
    weir_wire_end(out, node);
  }
  weir_wire_end(out, stats);
  if (is_empty && !(is_first && trace->count == 0)) out->size = from;
}

weir_status_t* weir_trace_write_metadata(weir_trace_t* trace, const weir_trace_devices_t* devices,
                                         weir_strbuf_t* out) {
  weir_mutex_lock(&trace->mu);
  resolve_spans(trace);
  size_t step_stats = weir_wire_begin(out, 1);
  for (int i = 0; i < devices->count; ++i) {
    write_device(trace, devices->items[i], i == 0, devices->task, out);
    write_streams(trace, devices->items[i], false, devices->task, out);
    write_streams(trace, devices->items[i], true, devices->task, out);
  }
  weir_wire_end(out, step_stats);
  weir_mutex_unlock(&trace->mu);
  return weir_strbuf_finish(out);
}

// ---- Chrome ----

enum { STREAM_THREADS = 1000, MAX_DEVICES = 64 };  // streams are numbered beyond all threads

static void put_members(members_t members, weir_strbuf_t* out) {
  if (!members.count) return;
  weir_strbuf_puts(out, ",\"members\":[");
  for (size_t i = 0; i < members.count; ++i) {
    if (i) weir_strbuf_putc(out, ',');
    weir_json_put_view(members.names[i], out);
  }
  weir_strbuf_putc(out, ']');
}

static void put_event(const weir_trace_t* trace, const weir_trace_event_t* event,
                      const weir_stream_span_t* span, weir_strbuf_t* out) {
  int64_t start = span ? span->start_ns : event->start_ns;
  int64_t end = span ? span->end_ns : event->end_ns;
  weir_strbuf_puts(out, "{\"name\":");
  weir_json_put_string(span ? span_op(event) : event->node->op_name, out);
  weir_strbuf_printf(
      out, ",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"name\":",
      event->device->ordinal, span ? STREAM_THREADS + (int)span->stream : event->thread,
      (double)(start - trace->clock_start_ns) / 1e3, (double)(end - start) / 1e3);
  weir_json_put_view(name_of(event->node), out);
  put_members(members_of(event->node), out);
  if (*event->node->device) {
    weir_strbuf_puts(out, ",\"device\":");
    weir_json_put_string(event->node->device, out);
  }
  if (span)
    weir_strbuf_printf(out, ",\"stream\":\"%s\"",
                       span->stream == WEIR_STREAM_COMPUTE ? "stream:all" : "memcpy");
  weir_strbuf_printf(out, ",\"bytes\":%lld}}", (long long)event->output_bytes);
}

// Says which stream that thread of the device is.
static void put_stream_name(const weir_device_t* device, weir_stream_t stream, weir_strbuf_t* out) {
  static const char* const names[WEIR_STREAMS] = {"stream:all", "memcpy HtoD", "memcpy DtoH"};
  const char* own = strstr(device->name, "/device:");
  weir_strbuf_printf(out,
                     ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,"
                     "\"args\":{\"name\":\"%s %s\"}}",
                     device->ordinal, STREAM_THREADS + (int)stream,
                     own ? own + strlen("/device:") : device->name, names[stream]);
}

static void put_memory(const weir_trace_t* trace, const weir_trace_event_t* event,
                       weir_strbuf_t* out) {
  weir_strbuf_printf(out,
                     ",\n{\"name\":\"memory\",\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,"
                     "\"args\":{\"bytes\":%lld}}",
                     event->device->ordinal, (double)(event->end_ns - trace->clock_start_ns) / 1e3,
                     (long long)event->in_use);
}

static int by_start(const void* a, const void* b) {
  const weir_stream_span_t *x = a, *y = b;
  return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

// The share of the time, from the first of |spans| to the end of the last, that is in any.
static double busy_share(weir_stream_span_t* spans, size_t count) {
  int64_t busy = 0, reached = 0;
  qsort(spans, count, sizeof(*spans), by_start);
  for (size_t i = 0; i < count; ++i) {
    busy += WEIR_MAX(spans[i].end_ns - WEIR_MAX(spans[i].start_ns, reached), 0);
    reached = WEIR_MAX(reached, spans[i].end_ns);
  }
  int64_t whole = count ? reached - spans[0].start_ns : 0;
  return whole > 0 ? (double)busy / (double)whole : 0;
}

// Leaves |device| out where it launched nothing, or there is no memory to find out.
static void put_busy(const weir_trace_t* trace, const weir_device_t* device, bool* is_first,
                     weir_strbuf_t* out) {
  weir_stream_span_t* spans = weir_alloc_array(trace->count, sizeof(*spans));
  size_t count = 0;
  for (size_t i = 0; spans && i < trace->count; ++i) {
    const weir_trace_event_t* event = &trace->events[i];
    if (has_span(event) && event->span.device == device &&
        event->span.stream == WEIR_STREAM_COMPUTE)
      spans[count++] = event->span;
  }
  if (count) {
    weir_strbuf_puts(out, *is_first ? ",\"otherData\":{" : ",");
    weir_strbuf_printf(out, "\"%s busy\":%.3f", device->name, busy_share(spans, count));
    *is_first = false;
  }
  weir_free(spans);
}

// Also says which devices did something in streams.
static void put_all(const weir_trace_t* trace, const weir_device_t** devices, weir_strbuf_t* out) {
  bool is_named[MAX_DEVICES][WEIR_STREAMS] = {{false}};
  for (size_t i = 0; i < trace->count; ++i) {
    const weir_trace_event_t* event = &trace->events[i];
    int ordinal = event->device->ordinal;
    weir_strbuf_puts(out, i ? ",\n" : "\n");
    put_event(trace, event, NULL, out);
    if (event->in_use) put_memory(trace, event, out);
    if (!has_span(event)) continue;
    weir_strbuf_puts(out, ",\n");
    put_event(trace, event, &event->span, out);
    if (ordinal >= MAX_DEVICES || is_named[ordinal][event->span.stream]) continue;
    is_named[ordinal][event->span.stream] = true;
    devices[ordinal] = event->span.device;
    put_stream_name(event->device, event->span.stream, out);
  }
}

weir_status_t* weir_trace_write_chrome(weir_trace_t* trace, weir_strbuf_t* out) {
  const weir_device_t* devices[MAX_DEVICES] = {NULL};  // that told what their streams did
  bool is_first = true;
  weir_mutex_lock(&trace->mu);
  resolve_spans(trace);
  weir_strbuf_puts(out, "{\"traceEvents\":[");
  put_all(trace, devices, out);
  weir_strbuf_puts(out, "\n],\"displayTimeUnit\":\"ns\"");
  for (int i = 0; i < MAX_DEVICES; ++i)
    if (devices[i]) put_busy(trace, devices[i], &is_first, out);
  weir_strbuf_puts(out, is_first ? "}\n" : "}}\n");
  weir_mutex_unlock(&trace->mu);
  return weir_strbuf_finish(out);
}
