// trace.c — Collecting node timings and writing them as RunMetadata or as Chrome's trace JSON.
#include "exec/trace.h"

#include "base/alloc.h"
#include "wire/wire.h"

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

void weir_trace_free(weir_trace_t* trace) {
  weir_free(trace->events);
  weir_mutex_destroy(&trace->mu);
}

void weir_trace_add(weir_trace_t* trace, const weir_node_def_t* node, int64_t start_ns,
                    int64_t end_ns, int64_t output_bytes) {
  weir_trace_event_t event = {.node = node,
                              .start_ns = start_ns,
                              .end_ns = end_ns,
                              .thread = thread_number(),
                              .output_bytes = output_bytes};
  weir_mutex_lock(&trace->mu);
  if (WEIR_GROW(trace->events, trace->capacity, trace->count + 1))
    trace->events[trace->count++] = event;
  weir_mutex_unlock(&trace->mu);
}

static int64_t wall_us(const weir_trace_t* trace, int64_t clock_ns) {
  return trace->wall_start_us + (clock_ns - trace->clock_start_ns) / 1000;
}

// NodeExecStats: name, start, relative times, label, thread.
static void write_node(const weir_trace_t* trace, const weir_trace_event_t* event,
                       weir_strbuf_t* out) {
  int64_t micros = WEIR_MAX((event->end_ns - event->start_ns) / 1000, 1);
  weir_wire_put_string(out, 1, event->node->name);
  weir_wire_put_int(out, 2, wall_us(trace, event->start_ns));
  weir_wire_put_int(out, 4, micros);  // op_end_rel_micros
  weir_wire_put_int(out, 5, micros);  // all_end_rel_micros
  size_t label = weir_wire_begin(out, 8);
  weir_strbuf_printf(out, "%s = %s()", event->node->name, event->node->op_name);
  weir_wire_end(out, label);
  weir_wire_put_int(out, 10, event->thread);
  weir_wire_put_int(out, 13, wall_us(trace, event->start_ns) * 1000);  // all_start_nanos
  weir_wire_put_int(out, 15, event->end_ns - event->start_ns);         // op_end_rel_nanos
  weir_wire_put_int(out, 16, event->end_ns - event->start_ns);         // all_end_rel_nanos
}

weir_status_t* weir_trace_write_metadata(weir_trace_t* trace, const char* device,
                                         weir_strbuf_t* out) {
  weir_mutex_lock(&trace->mu);
  size_t step_stats = weir_wire_begin(out, 1);
  size_t device_stats = weir_wire_begin(out, 1);
  weir_wire_put_string(out, 1, device);
  for (size_t i = 0; i < trace->count; ++i) {
    size_t node = weir_wire_begin(out, 2);
    write_node(trace, &trace->events[i], out);
    weir_wire_end(out, node);
  }
  weir_wire_end(out, device_stats);
  weir_wire_end(out, step_stats);
  weir_mutex_unlock(&trace->mu);
  return weir_strbuf_finish(out);
}

// Node names are restricted to letters, digits and "_./\->": only the backslash needs an escape,
// imported ones may hold more.
static void put_json_string(const char* text, weir_strbuf_t* out) {
  weir_strbuf_putc(out, '"');
  for (const char* c = text; *c; ++c) {
    if (*c == '"' || *c == '\\') weir_strbuf_putc(out, '\\');
    if ((unsigned char)*c >= 0x20) weir_strbuf_putc(out, *c);
    else weir_strbuf_printf(out, "\\u%04x", (unsigned)(unsigned char)*c);
  }
  weir_strbuf_putc(out, '"');
}

weir_status_t* weir_trace_write_chrome(weir_trace_t* trace, weir_strbuf_t* out) {
  weir_mutex_lock(&trace->mu);
  weir_strbuf_puts(out, "{\"traceEvents\":[");
  for (size_t i = 0; i < trace->count; ++i) {
    const weir_trace_event_t* event = &trace->events[i];
    weir_strbuf_puts(out, i ? ",\n{\"name\":" : "\n{\"name\":");
    put_json_string(event->node->op_name, out);
    weir_strbuf_printf(
        out, ",\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"name\":",
        event->thread, (double)(event->start_ns - trace->clock_start_ns) / 1e3,
        (double)(event->end_ns - event->start_ns) / 1e3);
    put_json_string(event->node->name, out);
    weir_strbuf_printf(out, ",\"bytes\":%lld}}", (long long)event->output_bytes);
  }
  weir_strbuf_puts(out, "\n],\"displayTimeUnit\":\"ns\"}\n");
  weir_mutex_unlock(&trace->mu);
  return weir_strbuf_finish(out);
}
