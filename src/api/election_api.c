// election_api.c — Elections of the public API: a key of etcd that one process has.
#include <unistd.h>

#include "base/alloc.h"
#include "base/live.h"
#include "base/philox.h"
#include "cluster/etcd/election.h"
#include "weir/argument.h"
#include "weir/election.h"

enum { DEFAULT_SECONDS = 10 };
static const float kMostSeconds = 1e9f;

struct weir_election_t {
  weir_live_t live;
  weir_etcd_election_t* etcd;
  float seconds;
};

// No other process, nor this one started again, has the same.
static weir_status_t* make_holder(weir_strbuf_t* out) {
  char host[128] = "";
  gethostname(host, sizeof(host) - 1);
  weir_strbuf_printf(out, "%s:%ld:%016llx", host, (long)getpid(),
                     (unsigned long long)weir_random_entropy());
  return weir_strbuf_finish(out);
}

static weir_status_t* create(const weir_etcd_election_options_t* options,
                             weir_election_t** out_election) {
  weir_election_t* election = weir_calloc(1, sizeof(*election));
  if (!election) return weir_out_of_memory();
  election->seconds = (float)options->seconds;
  weir_status_t* status = weir_etcd_election_create(options, &election->etcd);
  if (status) {
    weir_free(election);
    return status;
  }
  weir_live_add(&election->live, election);
  *out_election = election;
  return NULL;
}

weir_status_t* weir_election_create_with(const char* etcd, const char* name,
                                         const weir_election_options_t* options,
                                         weir_election_t** out_election) {
  WEIR_REQUIRE_ARG(etcd);
  WEIR_REQUIRE_ARG(name);
  WEIR_REQUIRE_ARG(out_election);
  options = options ? options : &(const weir_election_options_t){0};
  const float seconds = options->seconds != 0 ? options->seconds : DEFAULT_SECONDS;
  if (!(seconds > 0) || seconds > kMostSeconds || !*name || (options->holder && !*options->holder))
    return WEIR_STATUS(INVALID_ARGUMENT,
                       "election '%s': needs names and a positive time, got %g seconds", name,
                       (double)seconds);
  weir_strbuf_t made = {0};
  weir_status_t* status = options->holder ? NULL : make_holder(&made);
  const weir_rpc_tls_t tls = {
      .ca_file = options->tls_ca, .cert_file = options->tls_cert, .key_file = options->tls_key};
  if (!status)
    status = create(
        &(weir_etcd_election_options_t){.etcd = {.endpoints = etcd, .tls = tls},
                                        .key = name,
                                        .holder = options->holder ? options->holder : made.data,
                                        .seconds = (double)seconds},
        out_election);
  weir_strbuf_free(&made);
  return status;
}

weir_lease_t weir_election_lease(weir_election_t* election) {
  WEIR_ASSERT_ARG(election);
  return (weir_lease_t){.seconds = election->seconds, .election = election};
}

weir_status_t* weir_election_ask(weir_election_t* election, bool* out_is_held) {
  WEIR_REQUIRE_ARG(election);
  WEIR_REQUIRE_ARG(out_is_held);
  return weir_etcd_election_ask(election->etcd, out_is_held);
}

weir_status_t* weir_election_release(weir_election_t* election) {
  WEIR_REQUIRE_ARG(election);
  return weir_etcd_election_release(election->etcd);
}

void weir_election_destroy(weir_election_t* election) {
  if (!election) return;
  if (!weir_live_remove(election)) weir_abort_ended(__func__, "election");
  weir_etcd_election_destroy(election->etcd);
  weir_free(election);
}
