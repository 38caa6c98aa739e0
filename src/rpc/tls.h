// tls.h — TLS on OpenSSL: contexts from files, and non-blocking reads and writes.
#ifndef WEIR_RPC_TLS_H_
#define WEIR_RPC_TLS_H_

#include <sys/types.h>

#include "rpc/rpc.h"

typedef struct weir_rpc_tls_context_t weir_rpc_tls_context_t;  // immutable after create
typedef struct weir_rpc_tls_stream_t weir_rpc_tls_stream_t;    // thread-confined to its connection

// INVALID_ARGUMENT naming the file and OpenSSL's reason.
WEIR_MUST_USE weir_status_t* weir_rpc_tls_context_create(const weir_rpc_tls_t* options,
                                                         bool is_server,
                                                         weir_rpc_tls_context_t** out_context);
void weir_rpc_tls_context_destroy(weir_rpc_tls_context_t* context);

// |server_name|: whom a client expects; ignored by servers.
WEIR_MUST_USE weir_status_t* weir_rpc_tls_stream_create(weir_rpc_tls_context_t* context, int fd,
                                                        const char* server_name,
                                                        weir_rpc_tls_stream_t** out_stream);
void weir_rpc_tls_stream_destroy(weir_rpc_tls_stream_t* stream);  // says good-bye if it can

typedef enum weir_rpc_tls_result_t {
  WEIR_RPC_TLS_OK,
  WEIR_RPC_TLS_WANT_READ,
  WEIR_RPC_TLS_WANT_WRITE,
  WEIR_RPC_TLS_END,     // orderly end of the peer
  WEIR_RPC_TLS_FAILED,  // see weir_rpc_tls_error
} weir_rpc_tls_result_t;

weir_rpc_tls_result_t weir_rpc_tls_handshake(weir_rpc_tls_stream_t* stream);
weir_rpc_tls_result_t weir_rpc_tls_read(weir_rpc_tls_stream_t* stream, void* data, size_t size,
                                        size_t* out_size);
weir_rpc_tls_result_t weir_rpc_tls_write(weir_rpc_tls_stream_t* stream, const void* data,
                                         size_t size, size_t* out_size);
// Whether bytes have been taken from the socket that no read has returned yet.
bool weir_rpc_tls_has_pending(const weir_rpc_tls_stream_t* stream);
const char* weir_rpc_tls_error(const weir_rpc_tls_stream_t* stream);  // text of the failure

#endif  // WEIR_RPC_TLS_H_
