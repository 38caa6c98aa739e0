// step_stats.c — RunMetadata's step_stats read again, and written as Chrome's trace JSON.
#include "exec/step_stats.h"

#include "base/json.h"
#include "wire/wire.h"

enum {
  METADATA_STEP_STATS = 1,
  STEP_STATS_DEVICE = 1,
  DEVICE_NAME = 1,
  DEVICE_NODE = 2,
  NODE_NAME = 1,
  NODE_START_MICROS = 2,
  NODE_END_MICROS = 5,  // after the start, like NODE_END_NANOS
  NODE_MEMORY = 6,
  NODE_OUTPUT = 7,
  NODE_LABEL = 8,
  NODE_THREAD = 10,
  NODE_START_NANOS = 13,
  NODE_END_NANOS = 16,
  MEMORY_IN_USE = 5,
  OUTPUT_TENSOR = 3,
  TENSOR_ALLOCATION = 4,
  ALLOCATION_BYTES = 1,
};

typedef struct node_t {
  weir_view_t name, label;
  int64_t start_ns, length_ns;
  int64_t thread, bytes;
  int64_t in_use;  // of its device's own memory; 0: not told
} node_t;

typedef struct writer_t {
  weir_strbuf_t* out;
  int device;
  weir_view_t device_name;
  weir_view_t stream;  // of a GPU: "stream:all" or "memcpy"; empty: what the host did for a device
  int64_t first_ns;    // INT64_MAX: not known yet
  bool has_events;
} writer_t;

// ---- reading ----

// The bytes of a NodeOutput's tensor.
static int64_t output_bytes(weir_view_t output) {
  static const uint32_t path[] = {OUTPUT_TENSOR, TENSOR_ALLOCATION};
  weir_view_t at = output;
  for (size_t i = 0; i < WEIR_COUNT_OF(path); ++i) {
    weir_wire_reader_t reader = weir_wire_reader(at);
    at = weir_view("", 0);
    while (weir_wire_next(&reader))
      if (reader.field == path[i] && reader.type == WEIR_WIRE_BYTES) at = reader.bytes;
  }
  weir_wire_reader_t reader = weir_wire_reader(at);
  while (weir_wire_next(&reader))
    if (reader.field == ALLOCATION_BYTES) return weir_wire_int(&reader);
  return 0;
}

static int64_t memory_in_use(weir_view_t memory) {
  int64_t bytes = 0;
  weir_wire_reader_t reader = weir_wire_reader(memory);
  while (weir_wire_next(&reader))
    if (reader.field == MEMORY_IN_USE) bytes = weir_wire_int(&reader);
  return bytes;
}

// TensorFlow's tasks of old say microseconds only.
static weir_status_t* read_node(weir_view_t message, node_t* out) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  int64_t start_us = 0, length_us = 0;
  *out = (node_t){.name = weir_view("", 0), .label = weir_view("", 0)};
  while (weir_wire_next(&reader)) {
    bool is_bytes = reader.type == WEIR_WIRE_BYTES;
    if (is_bytes && reader.field == NODE_NAME) out->name = reader.bytes;
    if (is_bytes && reader.field == NODE_LABEL) out->label = reader.bytes;
    if (is_bytes && reader.field == NODE_MEMORY)
      out->in_use = WEIR_MAX(out->in_use, memory_in_use(reader.bytes));
    if (is_bytes && reader.field == NODE_OUTPUT) out->bytes += output_bytes(reader.bytes);
    if (is_bytes) continue;
    if (reader.field == NODE_START_MICROS) start_us = weir_wire_int(&reader);
    if (reader.field == NODE_END_MICROS) length_us = weir_wire_int(&reader);
    if (reader.field == NODE_THREAD) out->thread = weir_wire_int(&reader);
    if (reader.field == NODE_START_NANOS) out->start_ns = weir_wire_int(&reader);
    if (reader.field == NODE_END_NANOS) out->length_ns = weir_wire_int(&reader);
  }
  if (!out->start_ns) out->start_ns = start_us * 1000;
  if (!out->length_ns) out->length_ns = length_us * 1000;
  return weir_wire_check(&reader, "NodeExecStats");
}

// ---- writing ----

// The op of a label, "[cpu 1.0MB 1.0MB] name = Op(inputs)".
static weir_view_t op_of(weir_view_t label) {
  const char* from = memmem(label.data, label.size, " = ", 3);
  if (!from) return label;
  size_t size = (size_t)(label.data + label.size - (from + 3));
  const char* end = memchr(from + 3, '(', size);
  return weir_view(from + 3, end ? (size_t)(end - (from + 3)) : size);
}

// The nodes of a label that stands for several, "name = Op(inputs) of Op name, Op name".
static void put_members(weir_view_t label, weir_strbuf_t* out) {
  static const char mark[] = ") of ";
  const char* from = memmem(label.data, label.size, mark, sizeof(mark) - 1);
  if (!from) return;
  from += sizeof(mark) - 1;
  weir_view_t rest = weir_view(from, (size_t)(label.data + label.size - from)), member, op;
  weir_strbuf_puts(out, ",\"members\":[");
  for (bool is_first = true; rest.size && weir_view_next(&rest, ',', &member); is_first = false) {
    member = weir_view_trim(member);
    weir_view_next(&member, ' ', &op);
    if (!is_first) weir_strbuf_putc(out, ',');
    weir_json_put_view(member, out);
  }
  weir_strbuf_putc(out, ']');
}

// "…/device:GPU:0/stream:all" is what a device did, and its nodes are called "name:Op".
static void set_device(writer_t* writer, weir_view_t name) {
  static const char* const streams[] = {"/stream:", "/memcpy"};
  writer->device_name = name;
  writer->stream = weir_view("", 0);
  for (size_t i = 0; i < WEIR_COUNT_OF(streams) && !writer->stream.size; ++i) {
    const char* at = memmem(name.data, name.size, streams[i], strlen(streams[i]));
    if (!at) continue;
    writer->device_name.size = (size_t)(at - name.data);
    writer->stream = weir_view(at + 1, (size_t)(name.data + name.size - at) - 1);
  }
}

static weir_view_t name_in_stream(weir_view_t name) {
  const char* colon = memrchr(name.data, ':', name.size);
  return colon ? weir_view(name.data, (size_t)(colon - name.data)) : name;
}

static void put_node(writer_t* writer, const node_t* node) {
  weir_strbuf_t* out = writer->out;
  weir_strbuf_puts(out, writer->has_events ? ",\n{\"name\":" : "\n{\"name\":");
  writer->has_events = true;
  weir_json_put_view(op_of(node->label), out);
  weir_strbuf_printf(
      out, ",\"ph\":\"X\",\"pid\":%d,\"tid\":%lld,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"name\":",
      writer->device, (long long)node->thread, (double)(node->start_ns - writer->first_ns) / 1e3,
      (double)node->length_ns / 1e3);
  weir_json_put_view(writer->stream.size ? name_in_stream(node->name) : node->name, out);
  put_members(node->label, out);
  weir_strbuf_puts(out, ",\"device\":");
  weir_json_put_view(writer->device_name, out);
  if (writer->stream.size) {
    weir_strbuf_puts(out, ",\"stream\":");
    weir_json_put_view(writer->stream, out);
  }
  weir_strbuf_printf(out, ",\"bytes\":%lld}}", (long long)node->bytes);
  if (node->in_use)
    weir_strbuf_printf(out,
                       ",\n{\"name\":\"memory\",\"ph\":\"C\",\"pid\":%d,\"ts\":%.3f,"
                       "\"args\":{\"bytes\":%lld}}",
                       writer->device,
                       (double)(node->start_ns + node->length_ns - writer->first_ns) / 1e3,
                       (long long)node->in_use);
}

static void find_first(writer_t* writer, const node_t* node) {
  writer->first_ns = WEIR_MIN(writer->first_ns, node->start_ns);
}

// ---- all of them ----

typedef void (*visit_t)(writer_t* writer, const node_t* node);

static weir_status_t* each_node(weir_view_t device, writer_t* writer, visit_t visit) {
  weir_wire_reader_t reader = weir_wire_reader(device);
  set_device(writer, weir_view("", 0));
  while (weir_wire_next(&reader)) {
    node_t node;
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == DEVICE_NAME) set_device(writer, reader.bytes);
    if (reader.field != DEVICE_NODE) continue;
    WEIR_TRY(read_node(reader.bytes, &node));
    visit(writer, &node);
  }
  return weir_wire_check(&reader, "DeviceStepStats");
}

static weir_status_t* each_device(weir_view_t stats, writer_t* writer, visit_t visit) {
  weir_wire_reader_t reader = weir_wire_reader(stats);
  while (weir_wire_next(&reader)) {
    if (reader.field != STEP_STATS_DEVICE || reader.type != WEIR_WIRE_BYTES) continue;
    WEIR_TRY(each_node(reader.bytes, writer, visit));
    ++writer->device;
  }
  return weir_wire_check(&reader, "StepStats");
}

static weir_status_t* each_event(weir_view_t metadata, writer_t* writer, visit_t visit) {
  weir_wire_reader_t reader = weir_wire_reader(metadata);
  writer->device = 0;
  while (weir_wire_next(&reader)) {
    if (reader.field != METADATA_STEP_STATS || reader.type != WEIR_WIRE_BYTES) continue;
    WEIR_TRY(each_device(reader.bytes, writer, visit));
  }
  return weir_wire_check(&reader, "RunMetadata");
}

weir_status_t* weir_step_stats_write_chrome(weir_view_t metadata, weir_strbuf_t* out) {
  writer_t writer = {.out = out, .first_ns = INT64_MAX};
  WEIR_TRY(each_event(metadata, &writer, find_first));
  weir_strbuf_puts(out, "{\"traceEvents\":[");
  WEIR_TRY(each_event(metadata, &writer, put_node));
  weir_strbuf_puts(out, "\n],\"displayTimeUnit\":\"ns\"}\n");
  return weir_strbuf_finish(out);
}
