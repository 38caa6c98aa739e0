// loop.h — A running training loop, as trainer.c (its steps), loop_chief.c (whether it is the
// chief's), loop_begin.c (where it begins, and begins again), loop_save.c (its checkpoints) and
// loop_events.c (its events) share it. Not public.
#ifndef WEIR_LIBRARY_LOOP_H_
#define WEIR_LIBRARY_LOOP_H_

#include <stdatomic.h>

#include "progress.h"
#include "weir/trainer.h"

typedef struct weir_fit_loop_t {
  const weir_fit_options_t* o;
  weir_session_t* session;
  weir_node_t* target;
  weir_edge_t loss;
  weir_fit_state_t state;
  weir_fit_result_t result;
  weir_events_t* own_events;  // to be closed
  double events_pause_until;  // seconds, when to look whether there is space for them; 0: there is
  weir_progress_t progress;
  int64_t taken;        // steps of this loop, and those before a resume
  int64_t step_before;  // state.step before the last step
  double saved_at;      // seconds, of the last checkpoint
  int64_t saved_step;   // -1: none
  bool is_save_late;    // one was due before the last was written, which was said
  float metric;         // of this step; NaN: it was not evaluated
  int evaluations_bad;  // in a row
  bool is_over;         // result.reason says why
  bool is_worker;       // not the chief, as far as is known
  double asked_at;      // seconds, when that was asked for; 0: never
  bool is_unanswered;   // etcd did not say then, which was said
  // Where the state of the last beginning comes from, for who reads of it.
  const char* source;  // in words
  // Servers that are lost:
  double lost_since;   // seconds, of the first failure after the last step; 0: none
  double retry_pause;  // seconds before the next attempt
  bool has_answer;     // servers were there in the last one
  int attempts;        // to begin again since then
  int unready;         // how often a variable had no value since then
  // What ends a step that goes on after a signal:
  weir_cancellation_t* cancellation;  // NULL: nothing
  atomic_bool is_beginning;           // variables are initialised or restored
  atomic_bool is_overdue;             // a signal came, and the grace after it is over
} weir_fit_loop_t;

double weir_loop_now(void);  // seconds of a clock that never goes back
void weir_loop_stop(weir_fit_loop_t* loop, weir_stop_t reason);
// Ends the loop if a signal or the coordinator says so.
void weir_loop_heed(weir_fit_loop_t* loop);
// |seconds| is how long it may take; 0: for ever.
WEIR_MUST_USE weir_status_t* weir_loop_run(weir_fit_loop_t* loop, const weir_step_spec_t* spec,
                                           double seconds, weir_tensor_t** results);

// ---- loop_chief.c ----

// Asks whether the loop is the chief's, if that is not settled and it is time to, or |is_urgent|.
WEIR_MUST_USE weir_status_t* weir_loop_ask(weir_fit_loop_t* loop, bool is_urgent);
// When training is over: waits until the chief, if it is another process, has saved the end; or is
// the chief in its place.
WEIR_MUST_USE weir_status_t* weir_loop_await_save(weir_fit_loop_t* loop);
// Lets another process be the chief.
void weir_loop_resign(weir_fit_loop_t* loop);

// ---- loop_begin.c ----

// Brings the state to where steps can be taken: initialised, restored, or waited for. Waits for
// servers that are not there (yet).
WEIR_MUST_USE weir_status_t* weir_loop_begin(weir_fit_loop_t* loop);
// After a step that failed: if servers were lost, waits for them and begins again. Else, or when it
// takes too long, the error.
WEIR_MUST_USE weir_status_t* weir_loop_recover(weir_fit_loop_t* loop, weir_status_t* take_status);
// Asks for the global step, where there is one; |state.step| is it then.
WEIR_MUST_USE weir_status_t* weir_loop_count(weir_fit_loop_t* loop);
WEIR_MUST_USE weir_status_t* weir_loop_read_step(const weir_tensor_t* value, int64_t* out_step);

// ---- loop_events.c ----

// Opens the events that a chief writes, unless they are open or not asked for.
WEIR_MUST_USE weir_status_t* weir_loop_open_events(weir_fit_loop_t* loop);
// Closes the loop's own.
WEIR_MUST_USE weir_status_t* weir_loop_close_events(weir_fit_loop_t* loop);
// Writes a number, or a serialised summary, of this step.
WEIR_MUST_USE weir_status_t* weir_loop_scalar(weir_fit_loop_t* loop, const char* tag, float value);
WEIR_MUST_USE weir_status_t* weir_loop_summary(weir_fit_loop_t* loop, const weir_tensor_t* summary);

// ---- loop_save.c ----

enum { WEIR_LOOP_PATH_SIZE = 4096 };
// What checkpoints of the directory are called before "-<step>". INVALID_ARGUMENT: it is too long.
WEIR_MUST_USE weir_status_t* weir_loop_prefix(const weir_fit_loop_t* loop,
                                              char out[WEIR_LOOP_PATH_SIZE]);
// Whether the last step was, or passed, one of each |every|: others count the global step on, too.
bool weir_loop_is_due(const weir_fit_loop_t* loop, int every);
// Saves what the last step came to, if it is time to.
WEIR_MUST_USE weir_status_t* weir_loop_save_when_due(weir_fit_loop_t* loop);
// Saves what the loop came to, unless it is saved; returns when it is.
WEIR_MUST_USE weir_status_t* weir_loop_save(weir_fit_loop_t* loop);
// After an error: waits for a save that is under way, and adds its error, if it has one.
WEIR_MUST_USE weir_status_t* weir_loop_end_save(weir_fit_loop_t* loop, weir_status_t* take_status);

#endif  // WEIR_LIBRARY_LOOP_H_
