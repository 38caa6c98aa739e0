// answer.c — What a server sends back on a stream: a message with an OK trailer, or an error in
// headers alone.
#include <stdio.h>

#include "base/alloc.h"
#include "base/base64.h"
#include "base/details.h"
#include "rpc/header.h"
#include "rpc/server.h"

static nghttp2_nv pair(const char* name, const char* value, size_t value_size) {
  // nghttp2 copies both, and does not write to them.
  return (nghttp2_nv){.name = (uint8_t*)(uintptr_t)name,
                      .value = (uint8_t*)(uintptr_t)value,
                      .namelen = strlen(name),
                      .valuelen = value_size};
}

static void let_go(weir_rpc_stream_t* stream) {
  stream->owner = NULL;
  weir_rpc_receiver_free(stream);
  weir_rpc_conn_flush_later(stream->conn);
}

static void submit(weir_rpc_stream_t* stream, const nghttp2_nv* headers, size_t count,
                   const nghttp2_data_provider* provider) {
  int rc = nghttp2_submit_response(stream->conn->session, stream->id, headers, count, provider);
  if (rc != 0) {
    weir_rpc_conn_fault(stream->conn,
                        WEIR_STATUS(RESOURCE_EXHAUSTED, "cannot answer: %s", nghttp2_strerror(rc)));
  }
  let_go(stream);
}

void weir_rpc_answer_message(weir_rpc_stream_t* stream, weir_rpc_message_t* take_message) {
  nghttp2_nv headers[] = {pair(":status", "200", 3), pair("content-type", "application/grpc", 16)};
  nghttp2_data_provider provider = weir_rpc_stream_provider(stream, take_message);
  submit(stream, headers, WEIR_COUNT_OF(headers), &provider);
}

void weir_rpc_answer_status(weir_rpc_stream_t* stream, const weir_status_t* status) {
  char code[16];
  snprintf(code, sizeof(code), "%d", (int)weir_status_code(status));
  weir_strbuf_t message = {0}, encoded = {0};
  weir_rpc_percent_encode(&message, weir_view_of(weir_status_message(status)));
  weir_base64_append(weir_status_details(status), false, &encoded);
  nghttp2_nv headers[6] = {pair(":status", "200", 3), pair("content-type", "application/grpc", 16),
                           pair("grpc-status", code, strlen(code))};
  size_t count = 3;
  // Without memory for the words the code still goes out.
  if (message.size && !message.failed)
    headers[count++] = pair("grpc-message", message.data, message.size);
  if (encoded.size && !encoded.failed)
    headers[count++] = pair("grpc-status-details-bin", encoded.data, encoded.size);
  if (weir_status_code(status) == WEIR_UNIMPLEMENTED)
    headers[count++] = pair("grpc-accept-encoding", "identity", 8);
  submit(stream, headers, count, NULL);
  weir_strbuf_free(&message);
  weir_strbuf_free(&encoded);
}

void weir_rpc_answer_http(weir_rpc_stream_t* stream, int http_status) {
  char code[16];
  snprintf(code, sizeof(code), "%d", http_status);
  nghttp2_nv headers[] = {pair(":status", code, strlen(code))};
  submit(stream, headers, WEIR_COUNT_OF(headers), NULL);
}
