// election.h — Which of several processes is the chief, where etcd decides: a lease (weir/lease.h)
// that outlives every parameter server.
//
//   weir_election_t* election = NULL;                     // the same name in every process
//   check(weir_election_create("etcd-0:2379,etcd-1:2379", "jobs/mnist/chief", &election,
//                              .seconds = 60));
//   …
//   check(weir_fit(session, step, loss, NULL, .lease = weir_election_lease(election),
//                  .uninitialized = missing, …));
//   weir_election_destroy(election);                      // another may lead at once
//
// Whoever asks while nobody has the name's key in etcd has it, until so many seconds after it asked
// last. It is over for the process itself before it is over for etcd, by its own clock, also while
// etcd does not answer: never two at a time know that they have it, unless a machine is suspended
// with its clock. While etcd is gone for longer nobody has it.
//
// Threading: thread-safe; questions wait for each other. A question takes up to a quarter of
// |seconds|, and at most two seconds, when etcd does not answer. In a build without the cluster
// every function that returns a status says UNIMPLEMENTED.
#ifndef WEIR_ELECTION_H_
#define WEIR_ELECTION_H_

#include "weir/lease.h"
#include "weir/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_election_options_t {
  int reserved;
  float seconds;       // 0: 10. Whole ones, rounded up; longer than any step. etcd may hold it
                       // longer: by default two seconds at least
  const char* holder;  // another in each process, for who looks into etcd; NULL: of host, process
                       // and a random number. With a name of its own a process that is started
                       // again has it again at once
  const char* tls_ca;  // PEM files, for endpoints with "https://": whom to trust (NULL: the
                       // system's authorities) and, where etcd asks for it, who this is
  const char *tls_cert, *tls_key;
} weir_election_options_t;

// |etcd|: addresses of its members, separated by commas: "host:2379", "https://host:2379".
// |name|: the key. Asks nobody yet. INVALID_ARGUMENT: malformed addresses, an empty name, negative
// seconds.
WEIR_API WEIR_MUST_USE weir_status_t* weir_election_create_with(
    const char* etcd, const char* name, const weir_election_options_t* options,
    weir_election_t** out_election);
#define weir_election_create(etcd, name, out_election, ...)                               \
  weir_election_create_with(etcd, name, &(const weir_election_options_t){0, __VA_ARGS__}, \
                            out_election)
// For weir_fit and weir_sync_replicas. Borrows |election|.
WEIR_API weir_lease_t weir_election_lease(weir_election_t* election);
// For loops of your own: asks. An error, UNAVAILABLE for one: nobody knows, and this process has it
// not.
WEIR_API WEIR_MUST_USE weir_status_t* weir_election_ask(weir_election_t* election,
                                                        bool* out_is_held);
// Gives it back, if it is held. After an error it runs out by itself.
WEIR_API WEIR_MUST_USE weir_status_t* weir_election_release(weir_election_t* election);
// Gives it back, and ends. NULL is fine.
WEIR_API void weir_election_destroy(weir_election_t* election);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_ELECTION_H_
