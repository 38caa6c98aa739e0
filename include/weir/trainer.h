// trainer.h — The training loop: steps, progress, checkpoints, summaries, early stopping.
//
//   weir_fit_result_t result;
//   check(weir_fit(session, step, loss, &result, .max_steps = 1000, .init = init, .data = data,
//                  .inputs = inputs, .saver = saver, .directory = "runs/mine"));
//
// SIGINT and SIGTERM end it after the step that runs, with a checkpoint; a step that goes on for
// longer than a grace is cancelled. A second signal ends the program. On a terminal, one line shows
// a bar, the loss, the speed and the time left; elsewhere a line is printed now and then.
// Threading: one loop a process may catch signals at a time.
#ifndef WEIR_TRAINER_H_
#define WEIR_TRAINER_H_

#include "weir/file.h"
#include "weir/input.h"
#include "weir/lease.h"
#include "weir/saver.h"

#ifdef __cplusplus
extern "C" {
#endif

// Why the loop ended.
typedef enum weir_stop_t {
  WEIR_STOP_STEPS = 0,    // max_steps were taken
  WEIR_STOP_DATA = 1,     // the data ended (OUT_OF_RANGE)
  WEIR_STOP_METRIC = 2,   // the metric no longer improves
  WEIR_STOP_SIGNAL = 3,   // SIGINT or SIGTERM
  WEIR_STOP_REQUEST = 4,  // a callback or the coordinator asked for it
} weir_stop_t;

// Where the loop stands.
typedef struct weir_fit_state_t {
  int64_t step;    // taken in all, those before a resume included; or the global step
  float loss;      // of that step
  double seconds;  // since the loop began
  weir_session_t* session;
  weir_events_t* events;  // NULL: none. For more scalars
} weir_fit_state_t;

typedef struct weir_fit_result_t {
  int64_t step;   // taken in all; or the global step
  int64_t taken;  // by this loop
  float loss;     // of the last step; NaN when none was taken
  float best_metric;
  int64_t best_step;
  weir_stop_t reason;
  bool is_resumed;
  bool is_cut;  // by a signal: a step was cancelled, of which some variables may have been updated
  int recoveries;  // times that servers were lost, and the loop went on
  int unsaved;     // checkpoints that were left out: there was no space for them, or no time
} weir_fit_result_t;

enum { WEIR_FIT_MAX_FEEDS = 32 };

// Every zero is the default.
typedef struct weir_fit_options_t {
  int reserved;
  int64_t max_steps;  // in all; 0: until something else ends it
  weir_node_t* init;  // run first, unless a checkpoint is resumed; NULL: state is as it is
  // Run after that in any case: what no checkpoint has, such as iterators of datasets. NULL: none.
  weir_node_t* start;

  // What to feed. A resumed run goes on in the data where the checkpoint was made.
  weir_batcher_t* data;       // its batches, into
  const weir_edge_t* inputs;  // one edge a tensor of it
  // Adds feeds of its own to |feeds|, of which |*count| are there; their tensors are released after
  // the step. OUT_OF_RANGE ends the loop.
  weir_status_t* (*feed)(void* arg, int64_t step, weir_feed_t* feeds, int* count);
  void* arg;  // of |feed|, |evaluate| and |on_step|

  // Files. NULL: none are written.
  const char* directory;
  weir_events_t* events;  // NULL: a file of its own in |directory|, with the graph
  weir_edge_t summaries;  // fetched every |summary_every| steps; no node: only the loss
  int summary_every;      // 0: 100; the loss is written at every step
  // Saves "<directory>/model.ckpt-<step>"; NULL: no checkpoints. One that keeps the best is given
  // the metric of |evaluate| where the step was evaluated, and saves steps that are among the best.
  weir_saver_t* saver;
  int save_every;             // steps; 0: by time
  double save_every_seconds;  // 0: 600, unless |save_every| is given. The end is always saved
  bool no_resume;             // do not go on from the newest checkpoint (weir_saver_resume)

  // Early stopping.
  weir_status_t* (*evaluate)(void* arg, const weir_fit_state_t* state, float* out_metric);
  int evaluate_every;     // steps; 0: 1000
  int patience;           // evaluations without improvement that end the loop; 0: any number
  float min_delta;        // what counts as an improvement is more than this
  bool higher_is_better;  // accuracy, not loss

  // After each step. Sets |*stop| to end the loop.
  weir_status_t* (*on_step)(void* arg, const weir_fit_state_t* state, bool* stop);
  weir_coordinator_t* coordinator;  // its stop ends the loop; NULL: none

  // In a cluster (weir/replicas.h). Every process runs the loop.
  // Names of variables without a value (weir_uninitialized). Where there are any, the chief takes
  // the values of the others, too, lest somebody take a step with old and new ones, and restores
  // its latest checkpoint or, without one, runs |init|; a variable that this gives no value gets it
  // by |start|. Where there are none it goes on with what the servers have. It is looked at again
  // when a step ends with UNAVAILABLE or ABORTED, since servers were lost then: the loop waits for
  // them, and goes on. The step that failed may have been taken in part. No node: such errors end
  // the loop.
  weir_edge_t uninitialized;
  bool is_worker;  // not the chief: waits for it, and neither initialises, restores nor writes
  // In place of |is_worker|, in every process: who has it (weir_lease, weir_election_lease) is the
  // chief, and another is when that one is gone. It is asked for between steps, some four times in
  // the time that it holds, and given back at the end; others wait then until the end is saved.
  // Nothing: |is_worker| says it.
  weir_lease_t lease;
  weir_node_t* chief_start;  // in place of |start| where the loop is the chief's; NULL: |start|
  // How long no step may succeed; 0: 600, negative: such errors end the loop. The error then says
  // how often it was tried to begin again, and with what the last attempt ended.
  double lost_seconds;
  // What steps, checkpoints and events are counted by, max_steps too: the value of the variable
  // that all of them count on (weir_global_step). No node: the steps of this loop.
  weir_edge_t global_step;
  // A step that takes longer is cancelled and, with |uninitialized|, counts for a lost server; else
  // DEADLINE_EXCEEDED ends the loop. 0: for ever.
  double step_seconds;

  // Progress.
  bool is_quiet;
  const char* item_name;  // what the first dimension of the first feed counts; NULL: "items"
  int log_every;          // steps between lines where there is no terminal; 0: 100
  bool no_signals;        // leave SIGINT and SIGTERM alone
  // How long a step may go on after a signal before it is cancelled; 0: 5, negative: for ever.
  // Calls of |feed|, |evaluate| and |on_step| are waited for.
  double grace_seconds;

  // Checkpoints are written on a thread while steps go on (weir_save_options_t.in_background),
  // which takes as much memory again as the variables do. When one is due before the last is
  // written, steps wait for that where the step's number or metric asks for it; by time it is put
  // off. This way steps wait for every save.
  bool save_in_foreground;
  bool allow_nan;  // go on when the loss is NaN; else that is INVALID_ARGUMENT, naming the step
} weir_fit_options_t;

// Runs |step| and fetches |loss|, a float scalar, again and again. INVALID_ARGUMENT when either is
// missing, or when options contradict each other. |out_result| may be NULL; it is
// set also when an error is returned. The state is saved at the end but not after an error.
WEIR_API WEIR_MUST_USE weir_status_t* weir_fit_with(weir_session_t* session, weir_node_t* step,
                                                    weir_edge_t loss,
                                                    const weir_fit_options_t* options,
                                                    weir_fit_result_t* out_result);
#define weir_fit(session, step, loss, out_result, ...) \
  weir_fit_with(session, step, loss, &(const weir_fit_options_t){0, __VA_ARGS__}, out_result)

#ifdef __cplusplus
}
#endif
#endif  // WEIR_TRAINER_H_
