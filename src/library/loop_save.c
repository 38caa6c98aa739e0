// loop_save.c — The checkpoints of a training loop: when, under which names, and on which thread.
//
// Between two steps the loop takes the values of the variables; a thread of the saver writes them
// while steps go on. There is one at a time. Where this very step is to be saved, by its number or
// because it is among the best, the loop waits for the one before; where it is time for some step
// to be saved, that is done when the one before is written. Servers take the values between the
// steps of all workers. When steps that have begun to write do not end in time for that, or there
// is no space for the files, that is said, and the next save tries again: what was trained is worth
// more than a checkpoint of it. All other errors end the loop, and so does any of the last save.
#include <math.h>
#include <stdio.h>

#include "loop.h"

enum { SAVE_SECONDS = 600 };

weir_status_t* weir_loop_prefix(const weir_fit_loop_t* loop, char out[WEIR_LOOP_PATH_SIZE]) {
  const int size = snprintf(out, WEIR_LOOP_PATH_SIZE, "%s/model.ckpt", loop->o->directory);
  if (size < WEIR_LOOP_PATH_SIZE) return NULL;
  return WEIR_STATUS(INVALID_ARGUMENT, "fit: the name of the directory is too long");
}

static bool has_saver(const weir_fit_loop_t* loop) { return loop->o->saver && !loop->is_worker; }

// Whether a later save may do what this one did not.
static bool may_pass(const weir_status_t* status) {
  const weir_code_t code = weir_status_code(status);
  return code == WEIR_DEADLINE_EXCEEDED || code == WEIR_RESOURCE_EXHAUSTED;
}

// Goes on without the checkpoint, where that may be.
static weir_status_t* do_without(weir_fit_loop_t* loop, weir_status_t* take_status) {
  if (!may_pass(take_status)) return take_status;
  weir_progress_note(&loop->progress, "a checkpoint was not saved",
                     weir_status_message(take_status));
  weir_status_destroy(take_status);
  ++loop->result.unsaved;
  loop->saved_step = -1;
  loop->saved_at = weir_loop_now();
  return NULL;
}

// The last one is waited for, and must succeed.
static weir_status_t* save(weir_fit_loop_t* loop, bool is_last) {
  const weir_fit_options_t* o = loop->o;
  const bool in_background = !is_last && !o->save_in_foreground;
  const double metric = (double)loop->metric;
  char prefix[WEIR_LOOP_PATH_SIZE];
  WEIR_TRY(weir_loop_count(loop));
  if (loop->saved_step == loop->state.step) return NULL;
  WEIR_TRY(weir_loop_prefix(loop, prefix));
  const double now = weir_loop_now();
  weir_status_t* status = weir_saver_save_with(
      o->saver, loop->session, prefix, loop->state.step,
      &(const weir_save_options_t){.metric = &metric, .in_background = in_background}, NULL);
  if (status) return is_last ? status : do_without(loop, status);
  loop->saved_step = loop->state.step;
  loop->saved_at = in_background ? now : weir_loop_now();
  return NULL;
}

// ---- when ----

bool weir_loop_is_due(const weir_fit_loop_t* loop, int every) {
  return loop->state.step / every != loop->step_before / every;
}

// Whether this step is to be saved, and no other: by its number, or for its metric.
static bool is_step_due(const weir_fit_loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  if (o->save_every > 0 && weir_loop_is_due(loop, o->save_every)) return true;
  return !isnan(loop->metric) && weir_saver_is_best(o->saver, (double)loop->metric);
}

// Whether it is time for a save.
static bool is_time_due(const weir_fit_loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  double seconds = o->save_every_seconds;
  if (seconds <= 0) seconds = o->save_every > 0 ? INFINITY : SAVE_SECONDS;
  return weir_loop_now() - loop->saved_at >= seconds;
}

static void note_late(weir_fit_loop_t* loop, const char* what) {
  char why[96];
  snprintf(why, sizeof(why), "that of step %lld is still being written",
           (long long)loop->saved_step);
  if (!loop->is_save_late) weir_progress_note(&loop->progress, what, why);
  loop->is_save_late = true;
}

weir_status_t* weir_loop_save_when_due(weir_fit_loop_t* loop) {
  weir_saver_t* saver = loop->o->saver;
  if (!has_saver(loop)) return NULL;
  const bool is_busy = weir_saver_is_busy(saver);
  if (!is_busy) WEIR_TRY(do_without(loop, weir_saver_wait(saver)));  // its error, if it had one
  const bool is_step = is_step_due(loop);
  if (!is_step && !is_time_due(loop)) return NULL;
  if (is_busy && !is_step) {
    note_late(loop, "a checkpoint is due, and is put off");
    return NULL;
  }
  if (is_busy) {
    note_late(loop, "a checkpoint is due, and steps wait");
    WEIR_TRY(do_without(loop, weir_saver_wait(saver)));
  } else {
    loop->is_save_late = false;
  }
  return save(loop, false);
}

// ---- the end ----

weir_status_t* weir_loop_save(weir_fit_loop_t* loop) {
  if (!has_saver(loop)) return NULL;
  WEIR_TRY(do_without(loop, weir_saver_wait(loop->o->saver)));
  WEIR_TRY(weir_loop_ask(loop, false));  // waiting may have taken longer than a lease
  return has_saver(loop) ? save(loop, true) : NULL;
}

weir_status_t* weir_loop_end_save(weir_fit_loop_t* loop, weir_status_t* take_status) {
  if (!has_saver(loop)) return take_status;
  weir_status_t* unsaved = weir_saver_wait(loop->o->saver);
  if (!unsaved || !take_status) return take_status ? take_status : unsaved;
  weir_status_t* both = weir_status_create(
      weir_status_code(take_status), __FILE__, __LINE__, "%s; and a checkpoint was not saved: %s",
      weir_status_message(take_status), weir_status_message(unsaved));
  weir_status_destroy(take_status);
  weir_status_destroy(unsaved);
  return both;
}
