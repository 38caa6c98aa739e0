// lead.c — The chief's thread of synchronous training: step after step until the last, through the
// loss of servers.
//
// A parameter server that restarts has neither accumulators nor queues, and no variables until
// somebody restores them. All of that shows as an error of |advance|, and is over when
// |chief_begin| works again: it makes accumulators and queues anew and reads the global step.
//
// With a lease every process has this thread, and it leads while it has the lease. The thread that
// watches asks for it, so that a leader who waits for gradients keeps it, and one who has lost it
// stops waiting.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "lease.h"
#include "weir/replicas.h"

enum { LOST_SECONDS = 600, FIRST_PAUSE_MS = 50, LONGEST_PAUSE_MS = 2000, LOOK_MS = 50 };
enum { LONGEST_OF_ANSWERED_MS = 250 };  // pauses while servers are there, but their state is not
enum { ASK_TIMEOUT_MS = 5000 };

// Shared by the thread that leads and the one that wakes it; the last to leave frees it.
typedef struct lead_t {
  weir_sync_replicas_t sync;
  weir_session_t* session;
  weir_coordinator_t* coordinator;
  pthread_mutex_t mu;
  weir_cancellation_t* cancellation;  // of the steps; the lead's to replace; guarded by mu
  int64_t step, last_step;            // last 0: without end
  time_t lost_since;                  // seconds; 0: no server is lost
  int64_t pause_ms;                   // before the next attempt
  atomic_int users;
  atomic_bool is_done;
  atomic_bool is_leader;  // always, without a lease
  atomic_bool is_over;    // the term: the lease was lost since it began, perhaps had again
} lead_t;

static void release(lead_t* l) {
  if (atomic_fetch_sub(&l->users, 1) > 1) return;
  weir_cancellation_destroy(l->cancellation);
  pthread_mutex_destroy(&l->mu);
  free(l);
}

static time_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1;  // never 0
}

static weir_status_t* run(lead_t* l, const weir_step_spec_t* spec, weir_tensor_t** results) {
  const weir_run_options_t options = {.cancellation = l->cancellation};
  return weir_session_run_with(l->session, spec, &options, results, NULL, NULL);
}

static weir_status_t* read_step(lead_t* l) {
  weir_tensor_t* value = NULL;
  const weir_step_spec_t spec = {WEIR_FETCHES(l->sync.global_step)};
  WEIR_TRY(run(l, &spec, &value));
  l->step = *(const int64_t*)weir_tensor_data(value);
  weir_tensor_release(value);
  return NULL;
}

static bool is_at_last(const lead_t* l) { return l->last_step > 0 && l->step >= l->last_step; }

// ---- the lease ----

static bool has_lease(const lead_t* l) { return weir_lib_is_lease(&l->sync.lease); }

static void cancel(lead_t* l) {
  pthread_mutex_lock(&l->mu);
  weir_cancellation_cancel(l->cancellation);
  pthread_mutex_unlock(&l->mu);
}

static void learn(lead_t* l, bool is_held) {
  if (!atomic_exchange(&l->is_leader, is_held) || is_held) return;
  atomic_store(&l->is_over, true);
  cancel(l);
}

// What a parameter server cannot be asked has not changed. An election itself says how long it is
// held without an answer.
static void ask(lead_t* l) {
  bool is_held = false;
  const weir_lease_t* lease = &l->sync.lease;
  const weir_run_options_t options = {.timeout_ms = ASK_TIMEOUT_MS};
  if (!has_lease(l)) return;
  weir_status_t* status = weir_lib_lease_ask(lease, l->session, &options, &is_held);
  if (!status || lease->election) learn(l, is_held);
  weir_status_destroy(status);
}

// What the last term was ended by is not this one's.
static weir_status_t* renew(lead_t* l) {
  weir_cancellation_t* fresh = NULL;
  WEIR_TRY(weir_cancellation_create(&fresh));
  pthread_mutex_lock(&l->mu);
  weir_cancellation_destroy(l->cancellation);
  l->cancellation = fresh;
  atomic_store(&l->is_over, false);
  pthread_mutex_unlock(&l->mu);
  return NULL;
}

// False: a stop was asked for.
static bool await_lease(lead_t* l) {
  while (!atomic_load(&l->is_leader)) {
    if (weir_coordinator_wait(l->coordinator, LOOK_MS)) return false;
  }
  return !weir_coordinator_should_stop(l->coordinator);
}

// One that is lost as the term begins is waited for again.
static weir_status_t* begin_term(lead_t* l) {
  while (has_lease(l) && await_lease(l)) {
    WEIR_TRY(renew(l));
    if (atomic_load(&l->is_leader)) break;
  }
  return NULL;
}

static weir_status_t* resign(lead_t* l) {
  const weir_run_options_t options = {.timeout_ms = ASK_TIMEOUT_MS};
  return weir_lib_lease_release(&l->sync.lease, l->session, &options);
}

// ---- leading ----

// Where another led before, the last step may have been taken.
static weir_status_t* begin(lead_t* l) {
  weir_tensor_t* none = NULL;
  const weir_step_spec_t spec = {WEIR_TARGETS(l->sync.chief_begin)};
  if (has_lease(l)) WEIR_TRY(read_step(l));
  if (is_at_last(l)) return NULL;
  WEIR_TRY(run(l, &spec, &none));
  return read_step(l);
}

static weir_status_t* advance(lead_t* l) {
  weir_tensor_t* none = NULL;
  const weir_step_spec_t spec = {WEIR_TARGETS(l->sync.advance)};
  WEIR_TRY(run(l, &spec, &none));
  ++l->step;
  l->lost_since = 0;
  l->pause_ms = 0;
  return NULL;
}

// FAILED_PRECONDITION: a variable without a value.
static bool is_lost(const weir_status_t* status) {
  const weir_code_t code = weir_status_code(status);
  return code == WEIR_UNAVAILABLE || code == WEIR_ABORTED || code == WEIR_FAILED_PRECONDITION;
}

static int64_t longer(int64_t pause_ms, const weir_status_t* status) {
  const bool is_gone = weir_status_code(status) == WEIR_UNAVAILABLE;
  const int64_t longest = is_gone ? LONGEST_PAUSE_MS : LONGEST_OF_ANSWERED_MS;
  pause_ms = pause_ms ? 2 * pause_ms : FIRST_PAUSE_MS;
  return pause_ms < longest ? pause_ms : longest;
}

// Begins (again), as soon as that works.
static weir_status_t* rejoin(lead_t* l, weir_status_t* take_status) {
  while (is_lost(take_status)) {
    if (l->lost_since == 0) l->lost_since = now();
    if (now() - l->lost_since >= LOST_SECONDS) return take_status;
    l->pause_ms = longer(l->pause_ms, take_status);
    weir_status_destroy(take_status);
    if (weir_coordinator_wait(l->coordinator, l->pause_ms)) return NULL;
    ask(l);
    take_status = atomic_load(&l->is_over) ? NULL : begin(l);
  }
  return take_status;
}

static bool is_at_end(const lead_t* l) {
  return weir_coordinator_should_stop(l->coordinator) || is_at_last(l);
}

// What a step ends with once a stop is requested, or the lease is lost, says nothing.
static weir_status_t* unless_stopping(const lead_t* l, weir_status_t* take_status) {
  const bool is_led = !atomic_load(&l->is_over) && !weir_coordinator_should_stop(l->coordinator);
  if (!take_status || is_led) return take_status;
  weir_status_destroy(take_status);
  return NULL;
}

static weir_status_t* lead_term(lead_t* l) {
  WEIR_TRY(begin_term(l));
  if (is_at_end(l)) return NULL;
  weir_status_t* status = rejoin(l, begin(l));
  while (!status && !is_at_end(l) && !atomic_load(&l->is_over)) status = rejoin(l, advance(l));
  return unless_stopping(l, status);
}

// Others go on where there is a lease, unless it was the last step.
static weir_status_t* end(lead_t* l) {
  if (has_lease(l) && !is_at_last(l)) return atomic_load(&l->is_leader) ? resign(l) : NULL;
  return weir_session_run_target(l->session, l->sync.close);
}

static weir_status_t* lead(weir_coordinator_t* coordinator, void* arg) {
  lead_t* l = arg;
  (void)coordinator;
  weir_status_t* status = NULL;
  while (!status && !is_at_end(l)) status = lead_term(l);
  atomic_store(&l->is_done, true);
  if (!status) status = unless_stopping(l, end(l));
  release(l);
  return status;
}

// Wakes the other when a stop is requested, or the lease is lost, while it waits for gradients.
static weir_status_t* watch(weir_coordinator_t* coordinator, void* arg) {
  lead_t* l = arg;
  const int64_t pause_ms = (int64_t)(1000 * (double)l->sync.lease.seconds / WEIR_LEASE_ASKS);
  int64_t left_ms = 0;  // to the next question
  while (!atomic_load(&l->is_done)) {
    if (left_ms <= 0) ask(l);
    left_ms = left_ms > 0 ? left_ms - LOOK_MS : pause_ms;
    if (weir_coordinator_wait(coordinator, LOOK_MS)) break;
  }
  cancel(l);
  release(l);
  return NULL;
}

weir_status_t* weir_sync_replicas_lead(const weir_sync_replicas_t* sync, weir_session_t* session,
                                       weir_coordinator_t* coordinator, int64_t last_step) {
  WEIR_REQUIRE_ARG(sync);
  if (!sync->advance || !session || !coordinator)
    return WEIR_STATUS(INVALID_ARGUMENT, "nothing to lead: no nodes, session or coordinator");
  lead_t* l = calloc(1, sizeof(*l));
  if (!l) return WEIR_STATUS(RESOURCE_EXHAUSTED, "no memory to lead replicas");
  l->sync = *sync;
  l->session = session;
  l->coordinator = coordinator;
  l->last_step = last_step;
  pthread_mutex_init(&l->mu, NULL);
  atomic_store(&l->users, 2);
  atomic_store(&l->is_leader, !has_lease(l));
  weir_status_t* status = weir_cancellation_create(&l->cancellation);
  if (!status) status = weir_coordinator_start(coordinator, watch, l);
  if (status) release(l);  // for the one who watches
  else status = weir_coordinator_start(coordinator, lead, l);
  if (!status) return NULL;
  atomic_store(&l->is_done, true);
  release(l);
  return status;
}
