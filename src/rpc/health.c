// health.c — grpc.health.v1.Health/Check: whether the server, or one of its services, is serving.
#include "rpc/server.h"
#include "wire/wire.h"

enum { SERVING = 1, NOT_SERVING = 2 };              // HealthCheckResponse.ServingStatus
enum { REQUEST_SERVICE = 1, RESPONSE_STATUS = 1 };  // fields of HealthCheckRequest and …Response

// |service| is the part of a path between the two slashes.
static bool has_service(const weir_rpc_server_t* server, weir_view_t service) {
  for (size_t i = 0; i < server->entry_count; ++i) {
    const char* path = server->entries[i].path + 1;
    const char* slash = strchr(path, '/');
    if (slash && weir_view_equal(weir_view(path, (size_t)(slash - path)), service)) return true;
  }
  return service.size == 0;
}

void weir_rpc_health_check(void* self, weir_rpc_call_t* call) {
  weir_rpc_server_t* server = self;
  weir_view_t service = {0};
  weir_wire_reader_t reader = weir_wire_reader(weir_rpc_buffer_view(weir_rpc_call_request(call)));
  while (weir_wire_next(&reader)) {
    if (reader.field == REQUEST_SERVICE && reader.type == WEIR_WIRE_BYTES) service = reader.bytes;
  }
  weir_status_t* status = weir_wire_check(&reader, "HealthCheckRequest");
  if (!status && !has_service(server, service))
    status = WEIR_STATUS(NOT_FOUND, "unknown service '%.*s'", WEIR_VIEW_ARG(service));
  if (status) {
    weir_rpc_call_fail(call, status);
    return;
  }
  weir_strbuf_t body = {0};
  weir_wire_put_int(&body, RESPONSE_STATUS,
                    atomic_load(&server->is_stopping) ? NOT_SERVING : SERVING);
  weir_rpc_message_t* response = weir_rpc_message_create();
  weir_rpc_message_append_strbuf(response, &body);
  weir_rpc_call_respond(call, response);
}
