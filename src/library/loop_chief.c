// loop_chief.c — Whether a training loop is the chief's: as its options say, or whoever has the
// lease.
//
// The lease is asked for between steps and before each beginning, so a loop that initialises or
// restores has it. One that loses it in the middle of a step goes on as a worker.
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

enum { ASKS = 4, LOOK_MS = 20 };  // in the time that a lease holds; between looks at the end

static bool has_lease(const weir_fit_loop_t* loop) { return loop->o->lease.is_held.node != NULL; }

// ---- the lease ----

static weir_status_t* ask(weir_fit_loop_t* loop, bool* out_is_held) {
  weir_tensor_t* value = NULL;
  const weir_step_spec_t spec = {WEIR_FETCHES(loop->o->lease.is_held)};
  WEIR_TRY(weir_loop_run(loop, &spec, loop->o->step_seconds, &value));
  *out_is_held = *(const bool*)weir_tensor_data(value);
  weir_tensor_release(value);
  return NULL;
}

weir_status_t* weir_loop_ask(weir_fit_loop_t* loop, bool is_urgent) {
  bool is_held = false;
  if (!has_lease(loop)) return NULL;
  if (!is_urgent && weir_loop_now() - loop->asked_at < (double)loop->o->lease.seconds / ASKS)
    return NULL;
  WEIR_TRY(ask(loop, &is_held));
  loop->asked_at = weir_loop_now();
  if (is_held != loop->is_worker) return NULL;
  loop->is_worker = !is_held;
  if (!is_held) {
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
  weir_tensor_t* none = NULL;
  if (!has_lease(loop) || loop->is_worker) return;
  const weir_step_spec_t spec = {WEIR_TARGETS(loop->o->lease.release)};
  weir_status_destroy(weir_session_run(loop->session, &spec, &none));  // else it runs out by itself
}
