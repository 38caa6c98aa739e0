// election.h — Which of several processes has a key of etcd: the leader.
//
// The key goes with a lease, and whoever finds it free puts its name there. Having it ends by
// itself: at etcd when the lease is over, and here, where nobody answers, before that
// (cluster/etcd/session.h). Thread-safe: one question at a time.
#ifndef WEIR_CLUSTER_ETCD_ELECTION_H_
#define WEIR_CLUSTER_ETCD_ELECTION_H_

#include "cluster/etcd/client.h"

typedef struct weir_etcd_election_t weir_etcd_election_t;

typedef struct weir_etcd_election_options_t {
  weir_etcd_options_t etcd;
  const char* key;
  const char* holder;  // no other process has the same
  double seconds;      // how long having it outlives the last question; rounded up to whole ones
} weir_etcd_election_options_t;

// Asks nobody yet.
WEIR_MUST_USE weir_status_t* weir_etcd_election_create(const weir_etcd_election_options_t* options,
                                                       weir_etcd_election_t** out_election);
// Gives back what it has.
void weir_etcd_election_destroy(weir_etcd_election_t* election);  // NULL-safe

// Takes the key if it is free, and has it for longer if it has it. While etcd does not answer it is
// had for as long as is certain; an error, then: nobody knows, and this process must not lead. It
// is an answer of etcd, or UNAVAILABLE or DEADLINE_EXCEEDED.
WEIR_MUST_USE weir_status_t* weir_etcd_election_ask(weir_etcd_election_t* election,
                                                    bool* out_is_held);
// Lets another have it at once. After an error it does when the lease is over.
WEIR_MUST_USE weir_status_t* weir_etcd_election_release(weir_etcd_election_t* election);

#endif  // WEIR_CLUSTER_ETCD_ELECTION_H_
