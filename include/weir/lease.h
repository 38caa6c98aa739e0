// lease.h — Which of several processes is the one that does what only one may: the chief.
//
//   weir_lease_t lease = weir_lease(s, .seconds = 10);    // the same in every process
//   …
//   check(weir_fit(session, step, loss, NULL, .lease = lease, .uninitialized = missing, …));
//
// Whoever asks for a lease that nobody has, has it until so many seconds are over, and for as long
// again each time it asks. When its process dies, hangs or is cut off, the lease runs out, and the
// next to ask is the chief. It is kept beside the global step: by the parameter server that has
// that, and by its clock; clocks of other machines do not matter. A server that was started again
// knows of no lease; where that matters etcd keeps it (weir/election.h).
//
// A process that has lost its lease learns that when it asks; until then there may be two who think
// that they have it. So what they do must bear that: checkpoints do, each is whole.
#ifndef WEIR_LEASE_H_
#define WEIR_LEASE_H_

#include "weir/scope.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_election_t weir_election_t;

typedef struct weir_lease_t {
  weir_edge_t is_held;        // a bool scalar. Running it asks
  weir_node_t* release;       // gives it back, if it is held
  float seconds;              // how long it holds
  weir_election_t* election;  // in place of the nodes: etcd is asked (weir_election_lease)
} weir_lease_t;

typedef struct weir_lease_options_t {
  int reserved;
  float seconds;       // 0: 10. Longer than any step, or two may take turns
  const char* name;    // of the lease; NULL: "chief"
  const char* holder;  // another in each process; NULL: of host, process and a random number. With
                       // a name of its own a process that is started again has it again at once
} weir_lease_options_t;
// Errors stick in |scope|; nothing is there then. INVALID_ARGUMENT: negative seconds, an empty
// name.
WEIR_API weir_lease_t weir_lease_with(weir_scope_t* scope, const weir_lease_options_t* options);
#define weir_lease(scope, ...) weir_lease_with(scope, &(const weir_lease_options_t){0, __VA_ARGS__})

#ifdef __cplusplus
}
#endif
#endif  // WEIR_LEASE_H_
