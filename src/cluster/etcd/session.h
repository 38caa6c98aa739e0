// session.h — A lease of etcd that this process holds, and until when it does so for certain.
//
// The time counts from before the question that gave the lease, or more of it, was sent, by this
// process's own clock: so it is over here before it is at etcd, whatever either does. It is never
// more than was asked for. Thread-compatible; the client is borrowed.
#ifndef WEIR_CLUSTER_ETCD_SESSION_H_
#define WEIR_CLUSTER_ETCD_SESSION_H_

#include "cluster/etcd/client.h"

typedef struct weir_etcd_session_t {
  weir_etcd_client_t* client;
  int64_t seconds;   // asked for
  int64_t lease;     // 0: none
  int64_t until_ns;  // by weir_clock_ns
} weir_etcd_session_t;

// Of at least |seconds|, which etcd counts in whole ones.
weir_etcd_session_t weir_etcd_session(weir_etcd_client_t* client, double seconds);
// By when a question should be answered, so that there is time for others before the lease is over.
int64_t weir_etcd_session_deadline(const weir_etcd_session_t* session);
// A lease, if there is none.
WEIR_MUST_USE weir_status_t* weir_etcd_session_begin(weir_etcd_session_t* session,
                                                     int64_t deadline_ns);
// More of the lease, if there is one; if etcd knows it no more, there is none.
WEIR_MUST_USE weir_status_t* weir_etcd_session_keep(weir_etcd_session_t* session,
                                                    int64_t deadline_ns);
// Gives the lease back, if there is one, and with it all keys that go with it. After an error they
// go when its time is over.
WEIR_MUST_USE weir_status_t* weir_etcd_session_end(weir_etcd_session_t* session,
                                                   int64_t deadline_ns);

#endif  // WEIR_CLUSTER_ETCD_SESSION_H_
