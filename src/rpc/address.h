// address.h — Addresses: "host:port", "[v6]:port", ":port", "unix:/path"; listening and connecting.
#ifndef WEIR_RPC_ADDRESS_H_
#define WEIR_RPC_ADDRESS_H_

#include <sys/socket.h>
#include <sys/un.h>

#include "base/base.h"

typedef struct weir_rpc_address_t {
  bool is_unix;
  bool is_tls;     // "grpc+tls://" stood before it
  char host[256];  // "127.0.0.1" when none was given
  char port[8];
  struct sockaddr_un unix_name;  // is_unix
} weir_rpc_address_t;

// A place to connect to.
typedef struct weir_rpc_target_t {
  struct sockaddr_storage name;
  socklen_t size;
} weir_rpc_target_t;
#define WEIR_RPC_MAX_TARGETS 8

// INVALID_ARGUMENT naming |text| when it is malformed.
WEIR_MUST_USE weir_status_t* weir_rpc_address_parse(const char* text,
                                                    weir_rpc_address_t* out_address);
// Whether other machines cannot reach it: a Unix socket, or a host of the loopback interface.
bool weir_rpc_address_is_local(const weir_rpc_address_t* address);
// Fills |out_targets|. Without |may_block| only numeric hosts and Unix paths are resolved and
// others give a count of 0; with it the system's resolver is asked. UNAVAILABLE: unknown host.
WEIR_MUST_USE weir_status_t* weir_rpc_address_resolve(
    const weir_rpc_address_t* address, bool may_block,
    weir_rpc_target_t out_targets[WEIR_RPC_MAX_TARGETS], int* out_count);
// A listening socket, non-blocking. A Unix path that nobody listens on any more is taken over.
WEIR_MUST_USE weir_status_t* weir_rpc_listen(const weir_rpc_address_t* address, int* out_fd);
// A socket whose connection is under way.
WEIR_MUST_USE weir_status_t* weir_rpc_connect(const weir_rpc_target_t* target, int* out_fd);
// No delay, keepalive, time limit on unacknowledged data. Does nothing on Unix sockets.
void weir_rpc_socket_tune(int fd);
#define WEIR_RPC_NAME_SIZE 128
// "127.0.0.1:8080", "[::1]:8080", "unix:/path", "unix".
void weir_rpc_socket_text(const struct sockaddr_storage* name, char out_text[WEIR_RPC_NAME_SIZE]);

#endif  // WEIR_RPC_ADDRESS_H_
