// transport.c — What requests and responses of RecvTensor say about transports, and which one the
// user wants.
#include "cluster/task/transport.h"

#include "cluster/task/fields.h"
#include "wire/wire.h"

enum { PASSED = 1 };  // field of a response's value

static void put_any(weir_strbuf_t* out, uint32_t field, const char* url,
                    const weir_strbuf_t* value) {
  size_t any = weir_wire_begin(out, field);
  weir_wire_put_string(out, ANY_TYPE_URL, url);
  weir_wire_put_bytes(out, ANY_VALUE, value->data, value->size);
  weir_wire_end(out, any);
  if (value->failed) out->failed = true;
}

void weir_transport_put_offer(weir_strbuf_t* request, const char* url, const weir_strbuf_t* value) {
  put_any(request, RECV_TENSOR_REQUEST_TRANSPORT_OPTIONS, url, value);
}

weir_view_t weir_transport_value(weir_view_t any, const char* url) {
  weir_view_t found = weir_view("", 0), value = weir_view("", 0);
  weir_wire_reader_t reader = weir_wire_reader(any);
  while (weir_wire_next(&reader)) {
    if (reader.field == ANY_TYPE_URL && reader.type == WEIR_WIRE_BYTES) found = reader.bytes;
    if (reader.field == ANY_VALUE && reader.type == WEIR_WIRE_BYTES) value = reader.bytes;
  }
  return !reader.error && weir_view_is(found, url) ? value : weir_view("", 0);
}

void weir_transport_put_passed(weir_strbuf_t* response, const weir_transport_t* transport) {
  weir_strbuf_t value = {0};
  weir_wire_put_bool(&value, PASSED, true);
  put_any(response, RECV_TENSOR_RESPONSE_TRANSPORT_OPTIONS, transport->vtable->url, &value);
  if (transport->vtable->ask_again)
    weir_wire_put_bool(response, RECV_TENSOR_RESPONSE_REQUIRE_ACK, true);
  weir_strbuf_free(&value);
}

weir_status_t* weir_transport_parse(const char* text, bool with_tls,
                                    weir_transport_choice_t* out_choice) {
  weir_view_t choice = weir_view_of(text ? text : "");
  bool is_auto = choice.size == 0 || weir_view_is(choice, "auto");
  bool is_plain = weir_view_is(choice, "ucx:plain");
  if (!is_auto && !is_plain && !weir_view_is(choice, "ucx"))
    return WEIR_STATUS(INVALID_ARGUMENT, "transport '%s' is none of auto, ucx, ucx:plain", text);
  if (!is_auto && !is_plain && with_tls)
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "transport 'ucx' would send tensors unencrypted beside TLS; 'ucx:plain' "
                       "says that they may be");
  *out_choice = is_auto ? WEIR_TRANSPORT_AUTO : WEIR_TRANSPORT_UCX;
  return NULL;
}
