// election_absent.c — Elections of the public API in a build without the cluster: there are none.
#include "base/base.h"
#include "weir/election.h"

static weir_status_t* absent(void) {
  return WEIR_STATUS(UNIMPLEMENTED, "this build of Weir has no cluster (WEIR_CLUSTER=OFF)");
}

weir_status_t* weir_election_create_with(const char* etcd, const char* name,
                                         const weir_election_options_t* options,
                                         weir_election_t** out_election) {
  (void)etcd;
  (void)name;
  (void)options;
  (void)out_election;
  return absent();
}

// No election was ever created, so nobody can ask these.
weir_lease_t weir_election_lease(weir_election_t* election) {
  return (weir_lease_t){.election = election};
}

weir_status_t* weir_election_ask(weir_election_t* election, bool* out_is_held) {
  (void)election;
  (void)out_is_held;
  return absent();
}

weir_status_t* weir_election_release(weir_election_t* election) {
  (void)election;
  return absent();
}

void weir_election_destroy(weir_election_t* election) { (void)election; }
