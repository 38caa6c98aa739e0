// loop_chief.c — Whether a training loop is the chief's: as its options say, or whoever has the
// lease.
//
// The lease is asked for between steps and before each beginning, so a loop that initialises or
// restores has it. One that loses it in the middle of a step goes on as a worker.
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "lease.h"
#include "loop.h"

enum { LOOK_MS = 20 };  // between looks at the end

static bool has_lease(const weir_fit_loop_t* loop) { return weir_lib_is_lease(&loop->o->lease); }

// ---- the lease ----

// Without an answer of etcd there is no chief, but there is nothing that steps need to wait for.
static void note_silence(weir_fit_loop_t* loop, weir_status_t* take_status) {
  if (take_status && !loop->is_unanswered)
    weir_progress_note(&loop->progress,
                       loop->is_worker ? "nobody knows who is the chief" : "no longer the chief",
                       weir_status_message(take_status));
  loop->is_unanswered = take_status != NULL;
  weir_status_destroy(take_status);
}

static weir_status_t* ask(weir_fit_loop_t* loop, bool* out_is_held) {
  const weir_lease_t* lease = &loop->o->lease;
  const weir_run_options_t options = {.cancellation = loop->cancellation,
                                      .timeout_ms = (int64_t)ceil(1000 * loop->o->step_seconds)};
  weir_status_t* status = weir_lib_lease_ask(lease, loop->session, &options, out_is_held);
  if (!lease->election) return status;
  note_silence(loop, status);
  return NULL;
}

weir_status_t* weir_loop_ask(weir_fit_loop_t* loop, bool is_urgent) {
  bool is_held = false;
  if (!has_lease(loop)) return NULL;
  const double pause = (double)loop->o->lease.seconds / WEIR_LEASE_ASKS;
  if (!is_urgent && weir_loop_now() - loop->asked_at < pause) return NULL;
  WEIR_TRY(ask(loop, &is_held));
  loop->asked_at = weir_loop_now();
  if (is_held != loop->is_worker) return NULL;
  loop->is_worker = !is_held;
  if (!is_held) {
    if (!loop->is_unanswered)
      weir_progress_note(&loop->progress, "no longer the chief", "another process has the lease");
    return weir_loop_close_events(loop);
  }
  loop->saved_at = loop->asked_at;  // what the chief before it saved is not known
  loop->saved_step = -1;
  weir_progress_note(&loop->progress, "the chief now", "nobody had the lease");
  return weir_loop_open_events(loop);
}

// Whether there is a checkpoint of where the loop stands. In a directory that is not this machine's
// there seems to be none, and it is written again.
static weir_status_t* is_saved(weir_fit_loop_t* loop, bool* out_is_saved) {
  char prefix[WEIR_LOOP_PATH_SIZE], index[WEIR_LOOP_PATH_SIZE + 32];
  WEIR_TRY(weir_loop_count(loop));
  WEIR_TRY(weir_loop_prefix(loop, prefix));
  snprintf(index, sizeof(index), "%s-%lld.index", prefix, (long long)loop->state.step);
  *out_is_saved = access(index, F_OK) == 0;
  return NULL;
}

weir_status_t* weir_loop_await_save(weir_fit_loop_t* loop) {
  const double until = weir_loop_now() + 2 * (double)loop->o->lease.seconds;
  const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
  bool is_done = !has_lease(loop) || !loop->is_worker || !loop->o->saver;
  if (is_done) return NULL;
  while (!is_done && weir_loop_now() < until) {
    nanosleep(&pause, NULL);
    weir_loop_heed(loop);
    WEIR_TRY(is_saved(loop, &is_done));
    if (!is_done) WEIR_TRY(weir_loop_ask(loop, true));
    is_done = is_done || !loop->is_worker || loop->result.reason == WEIR_STOP_SIGNAL;
  }
  return NULL;
}

void weir_loop_resign(weir_fit_loop_t* loop) {
  if (!has_lease(loop) || loop->is_worker) return;
  weir_status_destroy(weir_lib_lease_release(&loop->o->lease, loop->session, NULL));  // or runs out
}
