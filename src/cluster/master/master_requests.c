// master_requests.c — Decoders of the requests that clients send to the master.
#include "cluster/master/master_internal.h"
#include "cluster/task/fields.h"
#include "cluster/task/messages.h"
#include "tensor/tensor_proto.h"

static weir_wire_reader_t reader_of(master_call_t* call) {
  return weir_wire_reader(weir_rpc_buffer_view(weir_rpc_call_request(call->call)));
}

// How many fields |number| of the request are bytes.
static size_t count_field(weir_view_t message, uint32_t number) {
  size_t count = 0;
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == number && reader.type == WEIR_WIRE_BYTES) ++count;
  }
  return count;
}

// All fields |number| as views.
static weir_status_t* collect(weir_arena_t* arena, weir_view_t message, uint32_t number,
                              const weir_view_t** out_items, int* out_count) {
  size_t count = count_field(message, number);
  if (count > INT32_MAX) return WEIR_STATUS(INVALID_ARGUMENT, "too many fields");
  weir_view_t* items = weir_arena_array(arena, count + 1, sizeof(*items));
  if (!items) return weir_out_of_memory();
  size_t at = 0;
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    if (reader.field == number && reader.type == WEIR_WIRE_BYTES) items[at++] = reader.bytes;
  }
  *out_items = items;
  *out_count = (int)count;
  return weir_wire_check(&reader, "request");
}

static weir_status_t* parse_options(master_call_t* call, weir_view_t message) {
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    // Masters collect nothing for the other levels.
    if (reader.field == RUN_OPTIONS_TRACE_LEVEL)
      call->is_traced = reader.value == RUN_OPTIONS_FULL_TRACE;
    if (reader.field == RUN_OPTIONS_TIMEOUT_IN_MS) call->timeout_ms = weir_wire_int(&reader);
    if (reader.field == RUN_OPTIONS_OUTPUT_PARTITION_GRAPHS)
      call->wants_partitions = weir_wire_bool(&reader);
  }
  return weir_wire_check(&reader, "RunOptions");
}

// ---- feeds ----

static weir_status_t* parse_feeds(master_call_t* call, const weir_view_t* messages, int count) {
  weir_view_t* names = weir_arena_array(&call->arena, (size_t)count + 1, sizeof(*names));
  call->tensors = weir_arena_array(&call->arena, (size_t)count + 1, sizeof(*call->tensors));
  if (!names || !call->tensors) return weir_out_of_memory();
  weir_rpc_buffer_t* buffer = weir_rpc_call_request(call->call);
  for (int i = 0; i < count; ++i) {
    weir_view_t proto = {.data = NULL};
    weir_wire_reader_t reader = weir_wire_reader(messages[i]);
    names[i] = weir_view("", 0);
    while (weir_wire_next(&reader)) {
      if (reader.field == NAMED_TENSOR_NAME && reader.type == WEIR_WIRE_BYTES)
        names[i] = reader.bytes;
      if (reader.field == NAMED_TENSOR_TENSOR && reader.type == WEIR_WIRE_BYTES)
        proto = reader.bytes;
    }
    WEIR_TRY(weir_wire_check(&reader, "NamedTensorProto"));
    if (!proto.data) proto = weir_view("", 0);
    WEIR_TRY(weir_status_prefix(weir_message_get_tensor(buffer, proto, &call->tensors[i]),
                                "Unable to parse feed \"%.*s\": ", WEIR_VIEW_ARG(names[i])));
    ++call->tensor_count;
  }
  call->signature.feeds = names;
  call->signature.feed_count = count;
  return NULL;
}

weir_status_t* weir_parse_run_step(master_call_t* call) {
  weir_view_t message = weir_rpc_buffer_view(weir_rpc_call_request(call->call));
  const weir_view_t* feeds = NULL;
  int feed_count = 0;
  weir_wire_reader_t reader = reader_of(call);
  while (weir_wire_next(&reader)) {
    bool is_bytes = reader.type == WEIR_WIRE_BYTES;
    if (reader.field == RUN_STEP_REQUEST_SESSION_HANDLE && is_bytes)
      call->session_handle = reader.bytes;
    if (reader.field == RUN_STEP_REQUEST_OPTIONS && is_bytes)
      WEIR_TRY(parse_options(call, reader.bytes));
    if (reader.field == RUN_STEP_REQUEST_PARTIAL_RUN_HANDLE && is_bytes)
      call->partial_handle = reader.bytes;
    if (reader.field == RUN_STEP_REQUEST_STORE_ERRORS_IN_RESPONSE_BODY)
      call->errors_in_body = weir_wire_bool(&reader);
    if (reader.field == RUN_STEP_REQUEST_REQUEST_ID) call->request_id = weir_wire_int(&reader);
  }
  WEIR_TRY(weir_wire_check(&reader, "RunStepRequest"));
  weir_master_signature_t* s = &call->signature;
  WEIR_TRY(collect(&call->arena, message, RUN_STEP_REQUEST_FETCH, &s->fetches, &s->fetch_count));
  WEIR_TRY(collect(&call->arena, message, RUN_STEP_REQUEST_TARGET, &s->targets, &s->target_count));
  WEIR_TRY(collect(&call->arena, message, RUN_STEP_REQUEST_FEED, &feeds, &feed_count));
  return parse_feeds(call, feeds, feed_count);
}

weir_status_t* weir_parse_partial_setup(master_call_t* call) {
  weir_view_t message = weir_rpc_buffer_view(weir_rpc_call_request(call->call));
  weir_wire_reader_t reader = reader_of(call);
  while (weir_wire_next(&reader)) {
    if (reader.field == PARTIAL_RUN_SETUP_REQUEST_SESSION_HANDLE && reader.type == WEIR_WIRE_BYTES)
      call->session_handle = reader.bytes;
    if (reader.field == PARTIAL_RUN_SETUP_REQUEST_REQUEST_ID)
      call->request_id = weir_wire_int(&reader);
  }
  WEIR_TRY(weir_wire_check(&reader, "PartialRunSetupRequest"));
  weir_master_signature_t* s = &call->signature;
  s->is_partial = true;
  WEIR_TRY(
      collect(&call->arena, message, PARTIAL_RUN_SETUP_REQUEST_FEED, &s->feeds, &s->feed_count));
  WEIR_TRY(collect(&call->arena, message, PARTIAL_RUN_SETUP_REQUEST_FETCH, &s->fetches,
                   &s->fetch_count));
  return collect(&call->arena, message, PARTIAL_RUN_SETUP_REQUEST_TARGET, &s->targets,
                 &s->target_count);
}

// ---- callables ----

static weir_status_t* parse_connections(master_call_t* call, weir_view_t options) {
  const weir_view_t* messages = NULL;
  weir_master_signature_t* s = &call->signature;
  WEIR_TRY(collect(&call->arena, options, CALLABLE_OPTIONS_TENSOR_CONNECTION, &messages,
                   &s->connection_count));
  weir_named_connection_t* items =
      weir_arena_array(&call->arena, (size_t)s->connection_count + 1, sizeof(*items));
  if (!items) return weir_out_of_memory();
  for (int i = 0; i < s->connection_count; ++i) {
    items[i] = (weir_named_connection_t){.from = weir_view("", 0), .to = weir_view("", 0)};
    weir_wire_reader_t reader = weir_wire_reader(messages[i]);
    while (weir_wire_next(&reader)) {
      if (reader.field == TENSOR_CONNECTION_FROM_TENSOR && reader.type == WEIR_WIRE_BYTES)
        items[i].from = reader.bytes;
      if (reader.field == TENSOR_CONNECTION_TO_TENSOR && reader.type == WEIR_WIRE_BYTES)
        items[i].to = reader.bytes;
    }
    WEIR_TRY(weir_wire_check(&reader, "TensorConnection"));
  }
  s->connections = items;
  return NULL;
}

weir_status_t* weir_parse_make_callable(master_call_t* call) {
  weir_view_t options = weir_view("", 0);
  weir_wire_reader_t reader = reader_of(call);
  while (weir_wire_next(&reader)) {
    bool is_bytes = reader.type == WEIR_WIRE_BYTES;
    if (reader.field == MAKE_CALLABLE_REQUEST_SESSION_HANDLE && is_bytes)
      call->session_handle = reader.bytes;
    if (reader.field == MAKE_CALLABLE_REQUEST_OPTIONS && is_bytes) options = reader.bytes;
    if (reader.field == MAKE_CALLABLE_REQUEST_REQUEST_ID) call->request_id = weir_wire_int(&reader);
  }
  WEIR_TRY(weir_wire_check(&reader, "MakeCallableRequest"));
  if (count_field(options, CALLABLE_OPTIONS_FEED_DEVICES) ||
      count_field(options, CALLABLE_OPTIONS_FETCH_DEVICES))
    return WEIR_STATUS(UNIMPLEMENTED,
                       "CallableOptions::feed_devices and CallableOptions::fetch_devices to "
                       "configure feeding/fetching tensors to/from device memory is not yet "
                       "supported when using a remote session.");
  weir_master_signature_t* s = &call->signature;
  const weir_view_t* run_options = NULL;
  int count = 0;
  WEIR_TRY(collect(&call->arena, options, CALLABLE_OPTIONS_RUN_OPTIONS, &run_options, &count));
  for (int i = 0; i < count; ++i) WEIR_TRY(parse_options(call, run_options[i]));
  WEIR_TRY(parse_connections(call, options));
  WEIR_TRY(collect(&call->arena, options, CALLABLE_OPTIONS_FEED, &s->feeds, &s->feed_count));
  WEIR_TRY(collect(&call->arena, options, CALLABLE_OPTIONS_FETCH, &s->fetches, &s->fetch_count));
  return collect(&call->arena, options, CALLABLE_OPTIONS_TARGET, &s->targets, &s->target_count);
}

weir_status_t* weir_parse_run_callable(master_call_t* call) {
  weir_view_t message = weir_rpc_buffer_view(weir_rpc_call_request(call->call));
  weir_rpc_buffer_t* buffer = weir_rpc_call_request(call->call);
  const weir_view_t* feeds = NULL;
  int count = 0;
  weir_wire_reader_t reader = reader_of(call);
  while (weir_wire_next(&reader)) {
    if (reader.field == RUN_CALLABLE_REQUEST_SESSION_HANDLE && reader.type == WEIR_WIRE_BYTES)
      call->session_handle = reader.bytes;
    if (reader.field == RUN_CALLABLE_REQUEST_HANDLE) call->callable = weir_wire_int(&reader);
    if (reader.field == RUN_CALLABLE_REQUEST_REQUEST_ID) call->request_id = weir_wire_int(&reader);
  }
  WEIR_TRY(weir_wire_check(&reader, "RunCallableRequest"));
  WEIR_TRY(collect(&call->arena, message, RUN_CALLABLE_REQUEST_FEED, &feeds, &count));
  call->tensors = weir_arena_array(&call->arena, (size_t)count + 1, sizeof(*call->tensors));
  if (!call->tensors) return weir_out_of_memory();
  for (; call->tensor_count < count; ++call->tensor_count) {
    int i = call->tensor_count;
    WEIR_TRY(weir_message_get_tensor(buffer, feeds[i], &call->tensors[i]));
  }
  return NULL;
}

// ---- sessions ----

weir_status_t* weir_parse_create_session(master_call_t* call) {
  weir_wire_reader_t reader = reader_of(call);
  while (weir_wire_next(&reader)) {
    if (reader.type != WEIR_WIRE_BYTES) continue;
    if (reader.field == CREATE_SESSION_REQUEST_GRAPH_DEF) call->graph_def = reader.bytes;
    if (reader.field == CREATE_SESSION_REQUEST_CONFIG) call->config = reader.bytes;
    if (reader.field == CREATE_SESSION_REQUEST_TARGET) call->target = reader.bytes;
  }
  return weir_wire_check(&reader, "CreateSessionRequest");
}

weir_status_t* weir_parse_extend_session(master_call_t* call) {
  weir_wire_reader_t reader = reader_of(call);
  while (weir_wire_next(&reader)) {
    bool is_bytes = reader.type == WEIR_WIRE_BYTES;
    if (reader.field == EXTEND_SESSION_REQUEST_SESSION_HANDLE && is_bytes)
      call->session_handle = reader.bytes;
    if (reader.field == EXTEND_SESSION_REQUEST_GRAPH_DEF && is_bytes)
      call->graph_def = reader.bytes;
    if (reader.field == EXTEND_SESSION_REQUEST_CURRENT_GRAPH_VERSION)
      call->version = weir_wire_int(&reader);
  }
  return weir_wire_check(&reader, "ExtendSessionRequest");
}

// Requests that name a session and perhaps a callable: all are as ReleaseCallableRequest.
weir_status_t* weir_parse_handle(master_call_t* call, const char* what) {
  weir_wire_reader_t reader = reader_of(call);
  while (weir_wire_next(&reader)) {
    if (reader.field == RELEASE_CALLABLE_REQUEST_SESSION_HANDLE && reader.type == WEIR_WIRE_BYTES)
      call->session_handle = reader.bytes;
    if (reader.field == RELEASE_CALLABLE_REQUEST_HANDLE && reader.type == WEIR_WIRE_VARINT)
      call->callable = weir_wire_int(&reader);
  }
  return weir_wire_check(&reader, what);
}

weir_status_t* weir_parse_reset(master_call_t* call) {
  weir_view_t message = weir_rpc_buffer_view(weir_rpc_call_request(call->call));
  WEIR_TRY(
      collect(&call->arena, message, RESET_REQUEST_CONTAINER, &call->names, &call->name_count));
  return collect(&call->arena, message, RESET_REQUEST_DEVICE_FILTERS, &call->filters,
                 &call->filter_count);
}

weir_status_t* weir_parse_config(weir_view_t message, weir_arena_t* arena,
                                 weir_master_config_t* out_config) {
  *out_config = (weir_master_config_t){
      .cluster_def = weir_view("", 0), .target = weir_view("", 0), .message = message};
  out_config->is_unoptimized = weir_config_is_unoptimized(message);
  weir_wire_reader_t reader = weir_wire_reader(message);
  while (weir_wire_next(&reader)) {
    switch (reader.field) {
      case CONFIG_PROTO_ALLOW_SOFT_PLACEMENT:
        out_config->allow_soft_placement = weir_wire_bool(&reader);
        break;
      case CONFIG_PROTO_OPERATION_TIMEOUT_IN_MS:
        out_config->timeout_ms = weir_wire_int(&reader);
        break;
      case CONFIG_PROTO_CLUSTER_DEF:
        if (reader.type == WEIR_WIRE_BYTES) out_config->cluster_def = reader.bytes;
        break;
      case CONFIG_PROTO_ISOLATE_SESSION_STATE:
        out_config->is_isolated = weir_wire_bool(&reader);
        break;
      default: break;
    }
  }
  WEIR_TRY(weir_wire_check(&reader, "ConfigProto"));
  return collect(arena, message, CONFIG_PROTO_DEVICE_FILTERS, &out_config->filters,
                 &out_config->filter_count);
}
