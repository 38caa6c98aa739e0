// loop_begin.c — How a training loop comes to its state, at its beginning and whenever servers were
// lost: the chief initialises or restores what has no value, the others wait for it.
//
// A step that ends with UNAVAILABLE or ABORTED met a server that died, restarts or cannot be
// reached. The session makes itself anew when they are back, so all there is to do is to try again
// to begin, with growing pauses, until it works or has not for too long. A loop that only waits for
// the chief does the same: what it waits for is UNAVAILABLE. Where several threads share a session
// only one is told of the loss; the others find variables without a value, FAILED_PRECONDITION.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "forget.h"
#include "loop.h"
#include "signals.h"

enum { LOST_SECONDS = 600, MOST_UNREADY = 5 };
// Seconds. Servers that answer are waited for, too: for what the chief restores, or for a session
// that is made anew.
static const double kFirstPause = 0.05, kLongestPause = 2, kLongestOfAnswered = 0.25, kSlice = 0.05;

// ---- patience ----

// Whether servers that are lost are waited for.
static bool is_patient(const weir_fit_loop_t* loop) {
  return loop->o->uninitialized.node && loop->o->lost_seconds >= 0;
}

// Seconds; negative: it is over.
static double patience_left(const weir_fit_loop_t* loop) {
  const double most = loop->o->lost_seconds > 0 ? loop->o->lost_seconds : LOST_SECONDS;
  return loop->lost_since > 0 ? loop->lost_since + most - weir_loop_now() : most;
}

// A master that waits for its tasks answers when they are there, which may be never.
static double limit(const weir_fit_loop_t* loop) {
  return is_patient(loop) ? fmax(patience_left(loop), kFirstPause) : 0;
}

static weir_status_t* run_node(weir_fit_loop_t* loop, weir_node_t* node) {
  weir_tensor_t* none = NULL;
  return weir_loop_run(loop, &(const weir_step_spec_t){WEIR_TARGETS(node)}, limit(loop), &none);
}

static weir_status_t* fetch(weir_fit_loop_t* loop, weir_edge_t edge, weir_tensor_t** out_value) {
  return weir_loop_run(loop, &(const weir_step_spec_t){WEIR_FETCHES(edge)}, limit(loop), out_value);
}

// ---- where it stands ----

// "dir/model.ckpt-120" was made after step 120.
static int64_t step_of(const char* prefix) {
  const char* dash = strrchr(prefix, '-');
  char* end = NULL;
  if (!dash) return 0;
  const int64_t step = strtoll(dash + 1, &end, 10);
  return end != dash + 1 && !*end && step > 0 ? step : 0;
}

weir_status_t* weir_loop_read_step(const weir_tensor_t* value, int64_t* out_step) {
  if (weir_tensor_dtype(value) != WEIR_DTYPE_INT64 || weir_tensor_count(value) != 1)
    return WEIR_STATUS(INVALID_ARGUMENT, "fit: the global step is not an int64 scalar");
  *out_step = *(const int64_t*)weir_tensor_data(value);
  return NULL;
}

weir_status_t* weir_loop_count(weir_fit_loop_t* loop) {
  weir_tensor_t* value = NULL;
  if (!loop->o->global_step.node) return NULL;
  WEIR_TRY(fetch(loop, loop->o->global_step, &value));
  weir_status_t* status = weir_loop_read_step(value, &loop->state.step);
  weir_tensor_release(value);
  return status;
}

// ---- state ----

// Restores the newest checkpoint that is whole, if there is one.
static weir_status_t* resume(weir_fit_loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  char prefix[WEIR_LOOP_PATH_SIZE];
  char what[WEIR_LOOP_PATH_SIZE + 64];
  char *path = NULL, *refused = NULL;
  WEIR_TRY(weir_loop_prefix(loop, prefix));
  weir_status_t* status = weir_saver_resume(o->saver, loop->session, prefix, &path, &refused);
  if (weir_status_code(status) == WEIR_DATA_LOSS)
    status =
        weir_status_prefix(status, "fit: there is nothing to resume (no_resume begins anew): ");
  if (status) return status;
  loop->result.is_resumed = path != NULL;
  if (path) loop->state.step = loop->saved_step = step_of(path);
  if (path) loop->source = "from a checkpoint";
  if (refused) {
    snprintf(what, sizeof(what), "damaged checkpoints passed over, %s%s",
             path ? "going on from " : "beginning anew", path ? path : "");
    weir_progress_note(&loop->progress, what, refused);
  }
  weir_buffer_free(path);
  weir_buffer_free(refused);
  return NULL;
}

// Restores or, without a checkpoint, initialises.
static weir_status_t* make_state(weir_fit_loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  loop->source = "from the beginning";
  if (o->saver && !o->no_resume) WEIR_TRY(resume(loop));
  return !loop->result.is_resumed && o->init ? run_node(loop, o->init) : NULL;
}

static weir_status_t* still_missing(weir_fit_loop_t* loop, const weir_tensor_t* names) {
  char text[256] = "";
  size_t used = 0;
  for (int64_t i = 0; i < weir_tensor_count(names) && used < sizeof(text) - 1; ++i) {
    size_t size = 0;
    const char* name = weir_tensor_string(names, i, &size);
    const int more =
        snprintf(text + used, sizeof(text) - used, "%s%.*s", i ? ", " : "", (int)size, name);
    used += more > 0 ? (size_t)more : 0;
  }
  loop->has_answer = true;
  return WEIR_STATUS(UNAVAILABLE, "the chief has not initialised: %s", text);
}

static weir_status_t* make_anew(weir_fit_loop_t* loop) {
  weir_node_t* forgetting = weir_lib_forgetting(loop->session, loop->o->uninitialized);
  if (forgetting) WEIR_TRY(run_node(loop, forgetting));
  return make_state(loop);
}

// What servers have is kept where none of it is missing: a chief that was started again goes on
// where the others are.
static weir_status_t* make_missing_state(weir_fit_loop_t* loop) {
  weir_tensor_t* names = NULL;
  weir_status_t* status = NULL;
  loop->source = "with what servers have";
  WEIR_TRY(fetch(loop, loop->o->uninitialized, &names));
  if (weir_tensor_count(names))
    status = loop->is_worker ? still_missing(loop, names) : make_anew(loop);
  weir_tensor_release(names);
  return status;
}

static weir_status_t* begin(weir_fit_loop_t* loop) {
  const weir_fit_options_t* o = loop->o;
  atomic_store(&loop->is_beginning, true);
  loop->has_answer = false;
  weir_status_t* status = weir_loop_ask(loop, true);
  if (!status) status = o->uninitialized.node ? make_missing_state(loop) : make_state(loop);
  if (!status) status = weir_loop_count(loop);
  loop->taken = loop->state.step;
  if (!status && loop->result.is_resumed && o->data) weir_batcher_seek(o->data, loop->taken);
  weir_node_t* start = !loop->is_worker && o->chief_start ? o->chief_start : o->start;
  if (!status && start) status = run_node(loop, start);
  atomic_store(&loop->is_beginning, false);
  return status;
}

// ---- again ----

// A step that takes too long hangs, as far as anyone can tell.
static bool is_lost(weir_fit_loop_t* loop, const weir_status_t* status) {
  if (!status || !is_patient(loop)) return false;
  switch (weir_status_code(status)) {
    case WEIR_UNAVAILABLE:
    case WEIR_ABORTED:
    case WEIR_DEADLINE_EXCEEDED: return true;
    case WEIR_FAILED_PRECONDITION: return ++loop->unready <= MOST_UNREADY;  // else it is no loss
    default: return false;
  }
}

// Sleeps, but not past a signal.
static void rest(weir_fit_loop_t* loop) {
  const double longest = loop->has_answer ? kLongestOfAnswered : kLongestPause;
  loop->retry_pause = fmin(fmax(2 * loop->retry_pause, kFirstPause), longest);
  const double until = weir_loop_now() + loop->retry_pause;
  while (!loop->is_over && weir_loop_now() < until) {
    const struct timespec slice = {.tv_nsec = (long)(1e9 * kSlice)};
    nanosleep(&slice, NULL);
    weir_loop_heed(loop);
  }
}

// Says on standard error how it goes on.
static void note_return(weir_fit_loop_t* loop) {
  char what[64];
  snprintf(what, sizeof(what), "going on at step %lld", (long long)loop->state.step);
  weir_progress_note(&loop->progress, what, loop->source);
}

// The error that ends the loop says what was tried before.
static weir_status_t* give_up(const weir_fit_loop_t* loop, weir_status_t* take_status) {
  return weir_status_prefix(
      take_status,
      "fit: servers are lost, or never came: in %.0f s and %d attempts the loop %s; the last ended "
      "with: ",
      weir_loop_now() - loop->lost_since, loop->attempts,
      loop->is_worker ? "waited in vain for the chief to restore or initialise"
                      : "could not restore or initialise what was missing");
}

weir_status_t* weir_loop_recover(weir_fit_loop_t* loop, weir_status_t* take_status) {
  const bool was_lost = is_lost(loop, take_status);
  bool is_still = was_lost;
  if (was_lost && loop->lost_since == 0) loop->lost_since = weir_loop_now();
  while (is_still && patience_left(loop) > 0) {
    if (loop->retry_pause == 0)
      weir_progress_note(&loop->progress, "lost a server, trying again",
                         weir_status_message(take_status));
    weir_status_destroy(take_status);
    rest(loop);
    if (!loop->is_over) ++loop->attempts;
    take_status = loop->is_over ? NULL : begin(loop);
    loop->has_answer = loop->has_answer || weir_status_code(take_status) == WEIR_ABORTED;
    is_still = is_lost(loop, take_status);
  }
  if (!was_lost || loop->is_over) return take_status;
  if (take_status) return give_up(loop, take_status);
  ++loop->result.recoveries;
  note_return(loop);
  return NULL;
}

weir_status_t* weir_loop_begin(weir_fit_loop_t* loop) {
  return weir_loop_recover(loop, begin(loop));
}
