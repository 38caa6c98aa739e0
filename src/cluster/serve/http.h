// http.h — A small HTTP/1.1 server for pages that monitoring asks for: GET and HEAD, one answer a
// connection, all on one thread of its own, in plain text or over TLS.
//
// Thread-safe. Bounded: so many connections at a time, so many bytes of a request, so long for it.
#ifndef WEIR_CLUSTER_SERVE_HTTP_H_
#define WEIR_CLUSTER_SERVE_HTTP_H_

#include "base/base.h"
#include "base/string.h"
#include "rpc/rpc.h"

typedef struct weir_http_t weir_http_t;

typedef struct weir_http_request_t {
  weir_view_t path;           // without its query
  weir_view_t authorization;  // value of the header field; empty: none
} weir_http_request_t;

// Answers a GET: appends the body, sets the type when it is not plain text, and returns the status
// code. On the server's thread; others wait meanwhile.
typedef int (*weir_http_handler_fn_t)(void* arg, const weir_http_request_t* request,
                                      weir_strbuf_t* body, const char** out_content_type);

typedef struct weir_http_options_t {
  const char* address;  // as for RPC servers
  weir_rpc_tls_t tls;
  weir_http_handler_fn_t handler;
  void* arg;  // given to |handler|
} weir_http_options_t;

// UNAVAILABLE when the address cannot be bound.
WEIR_MUST_USE weir_status_t* weir_http_create(const weir_http_options_t* options,
                                              weir_http_t** out_http);
int weir_http_port(const weir_http_t* http);
void weir_http_destroy(weir_http_t* http);  // the handler does not run any more after this

#endif  // WEIR_CLUSTER_SERVE_HTTP_H_
