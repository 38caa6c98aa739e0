// saver.h — Savers: checkpoints written and read by nodes of the graph, as tf.compat.v1.train.Saver
// makes them, so that they work wherever the session runs.
//
//   weir_saver_t* saver = weir_saver_create(s, .max_to_keep = 3);
//   …
//   check(weir_saver_save(saver, session, "runs/model.ckpt", step, NULL));
//
// The nodes bear the Saver's names ("save/Const", "save/control_dependency", "save/restore_all"),
// and the files are its files, bit for bit interchangeable. Threading: thread-compatible.
#ifndef WEIR_SAVER_H_
#define WEIR_SAVER_H_

#include "weir/scope.h"
#include "weir/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_saver_t weir_saver_t;

// A variable and what it is called in checkpoints. Of one in parts (weir/partition.h) each part is
// a slice of that. Of a table that can change (MutableHashTableV2 and its kin) the keys are "-keys"
// of that name, and the values "-values".
typedef struct weir_saved_t {
  weir_edge_t variable;  // its value (what weir_variable returned), handle, or reference
  const char* name;      // NULL: the variable's own, or its whole's. Borrowed for the call
} weir_saved_t;

// Every zero is the default.
typedef struct weir_saver_options_t {
  int reserved;
  // What to save and restore: a part of the model, or under other names, as transfer learning
  // wants it. NULL: every variable of the root scope; if it has none, of the graph.
  const weir_saved_t* variables;  // borrowed for the call
  int variable_count;
  int max_to_keep;            // 0: the last 5; -1: all
  double keep_every_n_hours;  // of those that are dropped, one in so many hours stays; 0: none
  bool is_sharded;            // the variables of each device are written where they are
  const char* name;           // of the nodes; NULL: "save"
  // Besides, as many stay whose metric (weir_save_options_t) is among the best; 0: none. The file
  // "checkpoint_best" says which, the best first.
  int keep_best;
  bool higher_is_better;  // of the metric: accuracy, not loss
} weir_saver_options_t;

// Adds the nodes. The caller owns the saver, which is of use as long as the graph. NULL after an
// error, which sticks in the scope; INVALID_ARGUMENT when there is nothing to save, or two
// variables of one name that are not slices of it.
WEIR_API weir_saver_t* weir_saver_create_with(weir_scope_t* scope,
                                              const weir_saver_options_t* options);
#define weir_saver_create(scope, ...) \
  weir_saver_create_with(scope, &(const weir_saver_options_t){0, __VA_ARGS__})
WEIR_API void weir_saver_destroy(weir_saver_t* saver);

// Saves as "<prefix>-<step>", or as |prefix| for a negative step; makes it the latest in the file
// "checkpoint" beside it, and removes what is beyond max_to_keep. |out_path| (may be NULL) gets the
// name it was saved under; weir_buffer_free it. FAILED_PRECONDITION names a variable that is not
// initialised.
WEIR_API WEIR_MUST_USE weir_status_t* weir_saver_save(weir_saver_t* saver, weir_session_t* session,
                                                      const char* prefix, int64_t step,
                                                      char** out_path);
// Every zero is the default.
typedef struct weir_save_options_t {
  int reserved;
  const double*
      metric;  // borrowed for the call: how good it is, for keep_best; NULL, NaN: not known
  // Returns when the values are taken, which copies nothing on a CPU, and writes them on a thread
  // while steps go on; a step that updates a variable meanwhile takes memory for its new value. The
  // session must outlive it, and its error is weir_saver_wait's. Where the session has a |target|,
  // its servers take the values as whole steps leave them, whoever's steps, and write them.
  // DEADLINE_EXCEEDED: steps that had begun to write did not end in time; nothing was saved.
  bool in_background;
} weir_save_options_t;
// The same; |options| may be NULL. Waits for a save in the background first, and returns its error
// without saving.
WEIR_API WEIR_MUST_USE weir_status_t* weir_saver_save_with(weir_saver_t* saver,
                                                           weir_session_t* session,
                                                           const char* prefix, int64_t step,
                                                           const weir_save_options_t* options,
                                                           char** out_path);
// Whether a save in the background is under way.
WEIR_API bool weir_saver_is_busy(const weir_saver_t* saver);
// Waits for a save in the background, and returns its error, once. So do saving, restoring and
// recovering. At once where there is none.
WEIR_API WEIR_MUST_USE weir_status_t* weir_saver_wait(weir_saver_t* saver);
// Whether a checkpoint with |metric| would stay for being among the best. Waits for a save in the
// background, too, where any are kept for that.
WEIR_API bool weir_saver_is_best(weir_saver_t* saver, double metric);
// Whether the saver keeps any for that; |out_higher_is_better| may be NULL.
WEIR_API bool weir_saver_keeps_best(const weir_saver_t* saver, bool* out_higher_is_better);
// Restores the saver's variables, which need not be initialised. NOT_FOUND names one that the
// checkpoint lacks.
WEIR_API WEIR_MUST_USE weir_status_t* weir_saver_restore(weir_saver_t* saver,
                                                         weir_session_t* session,
                                                         const char* prefix);
// Takes over the checkpoints that the state file of |directory| lists, so that they count for
// max_to_keep, as those of an earlier run should, and with them the best and the hours. Fine when
// there is none. INVALID_ARGUMENT when the best are the highest there and the lowest here, or the
// other way round.
WEIR_API WEIR_MUST_USE weir_status_t* weir_saver_recover(weir_saver_t* saver,
                                                         const char* directory);
// Restores the newest checkpoint beside |prefix| (as for weir_saver_save) that is whole, and takes
// over the list as weir_saver_recover does: what a run that goes on begins with. One that is
// damaged (a file missing or too short, an index or a checksum that is wrong) is passed over for
// the one before it: first by the file "checkpoint", then, and also where that file itself cannot
// be read, what there is of the name "<prefix>-<step>", last saved first. What was passed over
// stays where it is and is on no list any more. |out_path| (may be NULL) gets what was restored,
// NULL: there is none, which a directory without a file "checkpoint" says. |out_refused| (may be
// NULL: it is logged) gets a line that says what was passed over and why, NULL: nothing was.
// weir_buffer_free both. DATA_LOSS when there are checkpoints, but none is whole. Other errors,
// such as NOT_FOUND for a variable that the checkpoint lacks, are no damage.
WEIR_API WEIR_MUST_USE weir_status_t* weir_saver_resume(weir_saver_t* saver,
                                                        weir_session_t* session, const char* prefix,
                                                        char** out_path, char** out_refused);

// The prefix of the latest checkpoint of |directory| by its file "checkpoint", weir_buffer_free it;
// NULL when there is none. Whether it is whole is not looked at.
WEIR_API WEIR_MUST_USE weir_status_t* weir_latest_checkpoint(const char* directory,
                                                             char** out_prefix);
// The same of the best one by the file "checkpoint_best"; |out_metric| may be NULL.
WEIR_API WEIR_MUST_USE weir_status_t* weir_best_checkpoint(const char* directory, char** out_prefix,
                                                           double* out_metric);
// Whether the checkpoint |prefix| has a tensor |name|.
WEIR_API WEIR_MUST_USE weir_status_t* weir_checkpoint_has(const char* prefix, const char* name,
                                                          bool* out_has);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_SAVER_H_
