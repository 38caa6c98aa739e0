// http.h — An HTTP/1.1 server: connections that stay open, bodies, answers from any thread, in
// plain text or over TLS. Pages of monitoring and REST APIs are handlers on it.
//
// Thread-safe. Bounded: so many connections at a time, so many bytes of a request, so long for it.
// A connection's next request is looked at when the one before is answered.
#ifndef WEIR_RPC_HTTP_H_
#define WEIR_RPC_HTTP_H_

#include "rpc/http_parse.h"
#include "rpc/rpc.h"

typedef struct weir_http_t weir_http_t;
typedef struct weir_http_call_t weir_http_call_t;

// Called on an io thread for each request; others of the thread wait meanwhile. Must sooner or
// later, on any thread, call weir_http_call_respond once.
typedef void (*weir_http_handler_fn_t)(void* arg, weir_http_call_t* call);

typedef struct weir_http_options_t {
  const char* address;  // as for RPC servers
  weir_rpc_tls_t tls;
  weir_rpc_loop_t* loop;  // borrowed; NULL: a thread of its own
  weir_http_handler_fn_t handler;
  void* arg;             // given to |handler|
  int max_connections;   // 0: 32. More are closed at once
  size_t max_body_size;  // larger ones are answered with 413; 0: 8 KiB
  int patience_ms;       // for a request's head, and for each further piece; 0: 5 s
  int idle_ms;           // between requests; 0: 60 s
} weir_http_options_t;

// UNAVAILABLE when the address cannot be bound.
WEIR_MUST_USE weir_status_t* weir_http_create(const weir_http_options_t* options,
                                              weir_http_t** out_http);
int weir_http_port(const weir_http_t* http);
int weir_http_connection_count(weir_http_t* http);
// Accepts no more connections, ends those between requests, and lets requests that have come be
// answered for up to |grace_ms|; then closes. Idempotent. Not on an io thread.
void weir_http_shutdown(weir_http_t* http, int grace_ms);
// Shuts down without grace if that has not happened, and waits until all calls are answered: the
// handler does not run any more after this. NULL-safe.
void weir_http_destroy(weir_http_t* http);

// Borrowed until the call is answered.
const weir_http_request_t* weir_http_call_request(const weir_http_call_t* call);
// |content_type| NULL: plain text; static or as long as the server. Consumes |take_body|'s bytes.
void weir_http_call_respond(weir_http_call_t* call, int code, const char* content_type,
                            weir_strbuf_t* take_body);

#endif  // WEIR_RPC_HTTP_H_
