// session.c — A lease of etcd: begun, kept, given back.
#include "cluster/etcd/session.h"

#include <math.h>

#define NS_A_SECOND INT64_C(1000000000)
#define LONGEST_WAIT_NS (2 * NS_A_SECOND)
enum { QUESTIONS = 4 };  // in the time of a lease

weir_etcd_session_t weir_etcd_session(weir_etcd_client_t* client, double seconds) {
  return (weir_etcd_session_t){.client = client, .seconds = WEIR_MAX((int64_t)ceil(seconds), 1)};
}

int64_t weir_etcd_session_deadline(const weir_etcd_session_t* session) {
  const int64_t wait_ns = session->seconds * NS_A_SECOND / QUESTIONS;
  return weir_clock_ns() + WEIR_MIN(wait_ns, LONGEST_WAIT_NS);
}

static void hold(weir_etcd_session_t* session, int64_t sent_ns, int64_t seconds) {
  session->until_ns = sent_ns + WEIR_MIN(seconds, session->seconds) * NS_A_SECOND;
}

static void lose(weir_etcd_session_t* session) { session->lease = session->until_ns = 0; }

weir_status_t* weir_etcd_session_begin(weir_etcd_session_t* session, int64_t deadline_ns) {
  const int64_t sent_ns = weir_clock_ns();
  int64_t lease = 0, seconds = 0;
  if (session->lease) return NULL;
  WEIR_TRY(weir_etcd_grant(session->client, deadline_ns, session->seconds, &lease, &seconds));
  session->lease = lease;
  hold(session, sent_ns, seconds);
  return NULL;
}

weir_status_t* weir_etcd_session_keep(weir_etcd_session_t* session, int64_t deadline_ns) {
  const int64_t sent_ns = weir_clock_ns();
  int64_t seconds = 0;
  if (!session->lease) return NULL;
  WEIR_TRY(weir_etcd_keep_alive(session->client, deadline_ns, session->lease, &seconds));
  if (seconds) hold(session, sent_ns, seconds);
  else lose(session);
  return NULL;
}

weir_status_t* weir_etcd_session_end(weir_etcd_session_t* session, int64_t deadline_ns) {
  const int64_t lease = session->lease;
  lose(session);
  return lease ? weir_etcd_revoke(session->client, deadline_ns, lease) : NULL;
}
