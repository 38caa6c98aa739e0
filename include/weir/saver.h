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

// A variable and what it is called in checkpoints.
typedef struct weir_saved_t {
  weir_edge_t variable;  // its value (what weir_variable returned), handle, or reference
  const char* name;      // NULL: the variable's own. Borrowed for the call
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
} weir_saver_options_t;

// Adds the nodes. The caller owns the saver, which is of use as long as the graph. NULL after an
// error, which sticks in the scope; INVALID_ARGUMENT when there is nothing to save, or two
// variables of one name.
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
// Restores the saver's variables, which need not be initialised. NOT_FOUND names one that the
// checkpoint lacks.
WEIR_API WEIR_MUST_USE weir_status_t* weir_saver_restore(weir_saver_t* saver,
                                                         weir_session_t* session,
                                                         const char* prefix);
// Takes over the checkpoints that the state file of |directory| lists, so that they count for
// max_to_keep, as those of an earlier run should. Fine when there is none.
WEIR_API WEIR_MUST_USE weir_status_t* weir_saver_recover(weir_saver_t* saver,
                                                         const char* directory);

// The prefix of the latest checkpoint of |directory|, weir_buffer_free it; NULL when there is
// none.
WEIR_API WEIR_MUST_USE weir_status_t* weir_latest_checkpoint(const char* directory,
                                                             char** out_prefix);
// Whether the checkpoint |prefix| has a tensor |name|.
WEIR_API WEIR_MUST_USE weir_status_t* weir_checkpoint_has(const char* prefix, const char* name,
                                                          bool* out_has);

#ifdef __cplusplus
}
#endif
#endif  // WEIR_SAVER_H_
