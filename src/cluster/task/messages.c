// messages.c — Pieces of messages that master and worker both write.
#include "cluster/task/messages.h"

#include "base/details.h"
#include "cluster/task/fields.h"
#include "wire/wire.h"

weir_device_attributes_t weir_device_attributes(const weir_device_t* device) {
  return (weir_device_attributes_t){.name = device->name,
                                    .type = device->type,
                                    .memory_limit = device->memory_limit,
                                    .incarnation = device->incarnation,
                                    .description = device->description};
}

void weir_device_attributes_write(const weir_device_attributes_t* device, uint32_t field,
                                  weir_strbuf_t* out) {
  size_t at = weir_wire_begin(out, field);
  weir_wire_put_string(out, DEVICE_ATTRIBUTES_NAME, device->name);
  weir_wire_put_string(out, DEVICE_ATTRIBUTES_TYPE, device->type);
  weir_wire_put_int(out, DEVICE_ATTRIBUTES_MEMORY_LIMIT, device->memory_limit);
  size_t locality = weir_wire_begin(out, DEVICE_ATTRIBUTES_LOCALITY);
  weir_wire_end(out, locality);
  weir_wire_put_fixed64(out, DEVICE_ATTRIBUTES_INCARNATION, device->incarnation);
  if (device->description)
    weir_wire_put_string(out, DEVICE_ATTRIBUTES_DESCRIPTION, device->description);
  weir_wire_put_int(out, DEVICE_ATTRIBUTES_XLA_GLOBAL_ID, -1);  // XLA does not know it
  weir_wire_end(out, at);
}

weir_status_t* weir_step_stats_write(weir_trace_t* trace, const weir_trace_devices_t* devices,
                                     uint32_t field, weir_strbuf_t* out) {
  weir_strbuf_t metadata = {0};
  weir_status_t* status = weir_trace_write_metadata(trace, devices, &metadata);
  weir_wire_reader_t reader = weir_wire_reader(weir_strbuf_view(&metadata));
  while (!status && weir_wire_next(&reader)) {
    if (reader.field == RUN_METADATA_STEP_STATS && reader.type == WEIR_WIRE_BYTES)
      weir_wire_put_bytes(out, field, reader.bytes.data, reader.bytes.size);
  }
  weir_strbuf_free(&metadata);
  return status;
}

// Whether |details| are a GrpcPayloadContainer: a map of names to bytes.
static bool is_payloads(weir_view_t details) {
  weir_wire_reader_t reader = weir_wire_reader(details);
  weir_status_t* status = NULL;
  while (!status && weir_wire_next(&reader)) {
    if (reader.field != PAYLOAD_CONTAINER_PAYLOADS || reader.type != WEIR_WIRE_BYTES) continue;
    weir_wire_reader_t entry = weir_wire_reader(reader.bytes);
    while (weir_wire_next(&entry)) continue;
    status = weir_wire_check(&entry, "payload");
  }
  if (!status) status = weir_wire_check(&reader, "GrpcPayloadContainer");
  bool is_valid = status == NULL;
  weir_status_destroy(status);
  return is_valid;
}

weir_status_t* weir_status_payloads(weir_status_t* take_status) {
  enum { MAX_SIZE = 4096 };  // clients of gRPC take trailers of 8 KiB, message and base64 included
  weir_view_t details = weir_status_details(take_status);
  if (details.size <= MAX_SIZE && is_payloads(details)) return take_status;
  weir_strbuf_t lost = {0};
  size_t entry = weir_wire_begin(&lost, PAYLOAD_CONTAINER_PAYLOADS);
  weir_wire_put_string(&lost, PAYLOADS_ENTRY_KEY,
                       "type.googleapis.com/tensorflow.distributed_runtime.GrpcPayloadsLost");
  weir_wire_put_bytes(&lost, PAYLOADS_ENTRY_VALUE, "", 0);
  weir_wire_end(&lost, entry);
  weir_view_t instead = lost.failed ? weir_view("", 0) : weir_strbuf_view(&lost);
  weir_status_t* status = weir_status_with_details(take_status, instead);
  weir_strbuf_free(&lost);
  return status;
}

// The last field |number| of |message|, where it is bytes; empty otherwise.
static weir_view_t bytes_field(weir_view_t message, uint32_t number) {
  weir_view_t found = weir_view("", 0);
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == number && reader.type == WEIR_WIRE_BYTES) found = reader.bytes;
  }
  return found;
}

static int64_t int_field(weir_view_t message, uint32_t number) {
  int64_t found = 0;
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == number && reader.type == WEIR_WIRE_VARINT) found = weir_wire_int(&reader);
  }
  return found;
}

bool weir_config_is_unoptimized(weir_view_t config) {
  weir_view_t graph_options = bytes_field(config, CONFIG_PROTO_GRAPH_OPTIONS);
  weir_view_t rewrites = bytes_field(graph_options, GRAPH_OPTIONS_REWRITE_OPTIONS);
  weir_view_t optimizer = bytes_field(graph_options, GRAPH_OPTIONS_OPTIMIZER_OPTIONS);
  return int_field(rewrites, REWRITER_CONFIG_DISABLE_META_OPTIMIZER) != 0 ||
         int_field(optimizer, OPTIMIZER_OPTIONS_OPT_LEVEL) == -1;
}

static bool is_on(weir_view_t rewrites, uint32_t field) {
  int64_t toggle = int_field(rewrites, field);
  return toggle == REWRITER_CONFIG_ON || toggle == REWRITER_CONFIG_AGGRESSIVE;
}

const char* weir_config_mixed_precision(weir_view_t config) {
  weir_view_t graph_options = bytes_field(config, CONFIG_PROTO_GRAPH_OPTIONS);
  weir_view_t rewrites = bytes_field(graph_options, GRAPH_OPTIONS_REWRITE_OPTIONS);
  if (is_on(rewrites, REWRITER_CONFIG_AUTO_MIXED_PRECISION_ONEDNN_BFLOAT16) ||
      is_on(rewrites, REWRITER_CONFIG_AUTO_MIXED_PRECISION_MKL))
    return "bf16";
  bool is_half = is_on(rewrites, REWRITER_CONFIG_AUTO_MIXED_PRECISION) ||
                 is_on(rewrites, REWRITER_CONFIG_AUTO_MIXED_PRECISION_CPU);
  return is_half ? "half" : NULL;
}

void weir_config_put_mixed_precision(weir_dtype_t type, weir_strbuf_t* config) {
  if (type == WEIR_DTYPE_INVALID) return;
  size_t graph_options = weir_wire_begin(config, CONFIG_PROTO_GRAPH_OPTIONS);
  size_t rewrites = weir_wire_begin(config, GRAPH_OPTIONS_REWRITE_OPTIONS);
  weir_wire_put_int(config,
                    type == WEIR_DTYPE_HALF ? REWRITER_CONFIG_AUTO_MIXED_PRECISION
                                            : REWRITER_CONFIG_AUTO_MIXED_PRECISION_ONEDNN_BFLOAT16,
                    REWRITER_CONFIG_ON);
  weir_wire_end(config, rewrites);
  weir_wire_end(config, graph_options);
}
