// election.c — Taking a key of etcd, keeping it, giving it back.
#include "cluster/etcd/election.h"

#include "base/alloc.h"
#include "cluster/etcd/session.h"

struct weir_etcd_election_t {
  weir_etcd_client_t* client;
  char *key, *holder;
  weir_mutex_t mu;
  weir_etcd_session_t session;  // guarded by mu
  bool is_held;                 // by the last answer; guarded by mu
};

static weir_status_t* init(weir_etcd_election_t* election,
                           const weir_etcd_election_options_t* options) {
  election->key = weir_strdup(options->key);
  election->holder = weir_strdup(options->holder);
  if (!election->key || !election->holder) return weir_out_of_memory();
  WEIR_TRY(weir_etcd_client_create(&options->etcd, &election->client));
  election->session = weir_etcd_session(election->client, options->seconds);
  return NULL;
}

weir_status_t* weir_etcd_election_create(const weir_etcd_election_options_t* options,
                                         weir_etcd_election_t** out_election) {
  weir_etcd_election_t* election = weir_calloc(1, sizeof(*election));
  if (!election) return weir_out_of_memory();
  weir_mutex_init(&election->mu);
  weir_status_t* status = init(election, options);
  if (status) weir_etcd_election_destroy(election);
  else *out_election = election;
  return status;
}

void weir_etcd_election_destroy(weir_etcd_election_t* election) {
  if (!election) return;
  weir_status_destroy(weir_etcd_election_release(election));
  weir_etcd_client_destroy(election->client);
  weir_mutex_destroy(&election->mu);
  weir_free(election->key);
  weir_free(election->holder);
  weir_free(election);
}

// ---- asking ----

// What is under the key.
typedef struct seen_t {
  weir_view_t key, holder;  // asked for
  int64_t revision;         // 0: there is no such key
  int64_t lease;
  bool is_holder;
} seen_t;

static weir_status_t* see(void* arg, const weir_etcd_entry_t* entry) {
  seen_t* seen = arg;
  if (!weir_view_equal(entry->key, seen->key) || entry->revision <= 0)
    return WEIR_STATUS(INTERNAL, "etcd was asked for '%.*s' and tells of '%.*s' of revision %lld",
                       WEIR_VIEW_ARG(seen->key), WEIR_VIEW_ARG(entry->key),
                       (long long)entry->revision);
  seen->revision = entry->revision;
  seen->lease = entry->lease;
  seen->is_holder = weir_view_equal(entry->value, seen->holder);
  return NULL;
}

// A lease that is gone is one that the next question asks for anew.
static weir_status_t* take(weir_etcd_election_t* election, const seen_t* seen, int64_t deadline_ns,
                           bool* out_is_taken) {
  weir_etcd_session_t* session = &election->session;
  WEIR_TRY(weir_etcd_session_begin(session, deadline_ns));
  const weir_etcd_put_t put = {.key = seen->key, .value = seen->holder, .lease = session->lease};
  weir_status_t* status =
      weir_etcd_put_if(session->client, deadline_ns, &put, seen->revision, out_is_taken);
  if (weir_status_code(status) == WEIR_NOT_FOUND) session->lease = session->until_ns = 0;
  return status;
}

// A key with the name of this process, but not its lease, is from before it was started again.
static weir_status_t* ask(weir_etcd_election_t* election, bool* out_is_held) {
  weir_etcd_session_t* session = &election->session;
  const int64_t deadline_ns = weir_etcd_session_deadline(session);
  seen_t seen = {.key = weir_view_of(election->key), .holder = weir_view_of(election->holder)};
  WEIR_TRY(weir_etcd_session_keep(session, deadline_ns));
  WEIR_TRY(weir_etcd_get(session->client, deadline_ns, seen.key, (weir_view_t){"", 0}, see, &seen));
  bool is_held = seen.revision && session->lease && seen.lease == session->lease;
  const bool is_free = !is_held && (!seen.revision || seen.is_holder);
  if (is_free) WEIR_TRY(take(election, &seen, deadline_ns, &is_held));
  *out_is_held = is_held;
  return NULL;
}

weir_status_t* weir_etcd_election_ask(weir_etcd_election_t* election, bool* out_is_held) {
  weir_mutex_lock(&election->mu);
  weir_status_t* status = ask(election, &election->is_held);
  const bool is_certain = election->is_held && weir_clock_ns() < election->session.until_ns;
  if (status && is_certain) {
    weir_status_destroy(status);
    status = NULL;
  }
  election->is_held = is_certain;
  weir_mutex_unlock(&election->mu);
  if (!status) *out_is_held = is_certain;
  return status;
}

weir_status_t* weir_etcd_election_release(weir_etcd_election_t* election) {
  weir_mutex_lock(&election->mu);
  election->is_held = false;
  weir_status_t* status =
      weir_etcd_session_end(&election->session, weir_etcd_session_deadline(&election->session));
  weir_mutex_unlock(&election->mu);
  return status;
}
