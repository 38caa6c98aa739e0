// client.h — A client of etcd: unary calls to the first of its endpoints that answers.
//
// Thread-safe. Every call has a deadline and waits for it at most; it must not be made on an io
// thread. Endpoints that are lost are left for the next, which the deadline leaves a part of its
// time for; whoever answered last is asked first. UNAVAILABLE, DEADLINE_EXCEEDED: none has
// answered, and the change may have been made or not.
#ifndef WEIR_CLUSTER_ETCD_CLIENT_H_
#define WEIR_CLUSTER_ETCD_CLIENT_H_

#include "cluster/etcd/messages.h"
#include "rpc/rpc.h"

typedef struct weir_etcd_client_t weir_etcd_client_t;

typedef struct weir_etcd_options_t {
  // Separated by commas: host:port, which "http://" or, for TLS, "https://" may precede; also what
  // else is an address (rpc/rpc.h).
  const char* endpoints;
  weir_rpc_tls_t tls;  // its files; enabled for all endpoints if it says so, or by "https://"
} weir_etcd_options_t;

// Connects at the first call. INVALID_ARGUMENT: no or malformed endpoints.
WEIR_MUST_USE weir_status_t* weir_etcd_client_create(const weir_etcd_options_t* options,
                                                     weir_etcd_client_t** out_client);
void weir_etcd_client_destroy(weir_etcd_client_t* client);  // NULL-safe

// Calls |fn| for |key|, if there is one, or with |end| for all keys from |key| to before it.
WEIR_MUST_USE weir_status_t* weir_etcd_get(weir_etcd_client_t* client, int64_t deadline_ns,
                                           weir_view_t key, weir_view_t end,
                                           weir_etcd_entry_fn_t fn, void* arg);
WEIR_MUST_USE weir_status_t* weir_etcd_put(weir_etcd_client_t* client, int64_t deadline_ns,
                                           const weir_etcd_put_t* put);
// Puts only if the key was last changed at |revision|; 0: if there is none. NOT_FOUND: the lease is
// gone.
WEIR_MUST_USE weir_status_t* weir_etcd_put_if(weir_etcd_client_t* client, int64_t deadline_ns,
                                              const weir_etcd_put_t* put, int64_t revision,
                                              bool* out_is_put);
// A lease of |seconds|, or of |*out_seconds|, as etcd has it.
WEIR_MUST_USE weir_status_t* weir_etcd_grant(weir_etcd_client_t* client, int64_t deadline_ns,
                                             int64_t seconds, int64_t* out_lease,
                                             int64_t* out_seconds);
// |*out_seconds| is 0 when there is no such lease any more.
WEIR_MUST_USE weir_status_t* weir_etcd_keep_alive(weir_etcd_client_t* client, int64_t deadline_ns,
                                                  int64_t lease, int64_t* out_seconds);
// Ends a lease; its keys go with it. NOT_FOUND: there is none.
WEIR_MUST_USE weir_status_t* weir_etcd_revoke(weir_etcd_client_t* client, int64_t deadline_ns,
                                              int64_t lease);

#endif  // WEIR_CLUSTER_ETCD_CLIENT_H_
