// messages.h — Pieces of messages that master and worker both write.
#ifndef WEIR_CLUSTER_TASK_MESSAGES_H_
#define WEIR_CLUSTER_TASK_MESSAGES_H_

#include "base/string.h"
#include "device/device.h"
#include "exec/trace.h"

// As PartialRunSetup, of a step that reads variables as whole steps leave them (pass/fence.h).
#define WEIR_SNAPSHOT_SETUP_PATH "/weir.MasterService/SnapshotSetup"

// What clients and other tasks are told of a device.
typedef struct weir_device_attributes_t {
  const char *name, *type;
  int64_t memory_limit;
  uint64_t incarnation;
  const char* description;  // NULL: none
} weir_device_attributes_t;
weir_device_attributes_t weir_device_attributes(const weir_device_t* device);  // borrowed from it
// Appends a DeviceAttributes message as field |field| of |out|.
void weir_device_attributes_write(const weir_device_attributes_t* device, uint32_t field,
                                  weir_strbuf_t* out);
// The StepStats message within the RunMetadata that |trace| writes; empty when there is none.
WEIR_MUST_USE weir_status_t* weir_step_stats_write(weir_trace_t* trace,
                                                   const weir_trace_devices_t* devices,
                                                   uint32_t field, weir_strbuf_t* out);
// An error as it goes on to whoever called: with the payloads that came with it, a
// GrpcPayloadContainer in its details. Where they are none, or more than fits into a trailer, they
// become the payload that says that there were some: GrpcPayloadsLost.
WEIR_MUST_USE weir_status_t* weir_status_payloads(weir_status_t* take_status);
// Whether a ConfigProto asks that graphs be run as they are: by
// graph_options.rewrite_options.disable_meta_optimizer or optimizer_options.opt_level L0.
bool weir_config_is_unoptimized(weir_view_t config);
// The mixed precision that a ConfigProto asks for by graph_options.rewrite_options, as
// weir_mixed_parse reads it: auto_mixed_precision and auto_mixed_precision_cpu are "half",
// auto_mixed_precision_onednn_bfloat16 is "bf16" and has precedence. NULL: none.
const char* weir_config_mixed_precision(weir_view_t config);
// Appends the field of a ConfigProto that asks for |type|; nothing for INVALID.
void weir_config_put_mixed_precision(weir_dtype_t type, weir_strbuf_t* config);

#endif  // WEIR_CLUSTER_TASK_MESSAGES_H_
