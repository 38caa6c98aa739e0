// saver.h — A saver from inside: its nodes (saver_graph.c), the thread that saves
// (saver_background.c), the checkpoints it keeps (saver_keep.c, saver_best.c), what others leave
// (saver_leftovers.c), and which checkpoint a run goes on from (saver_resume.c).
#ifndef WEIR_API_SAVER_H_
#define WEIR_API_SAVER_H_

#include "file/checkpoint_state.h"
#include "graph/graph.h"
#include "weir/saver.h"

// A checkpoint that counts for max_to_keep.
typedef struct weir_kept_t {
  char* prefix;   // owned
  double time;    // seconds since 1970
  double metric;  // NaN: none
} weir_kept_t;

typedef struct weir_saving_t weir_saving_t;  // a save under way

struct weir_saver_t {
  weir_edge_t filename;  // fed: a scalar string
  weir_edge_t saved;     // fetched: runs the saving nodes
  weir_edge_t* values;   // what these save; owned
  int value_count;
  bool is_sharded;            // a folder of shards comes before each checkpoint
  weir_edge_t taken;          // fetched first of a snapshot: all values are read; no node: not made
  weir_node_t* restored;      // target: runs the assignments
  int max_to_keep;            // -1: all
  double keep_every_seconds;  // 0: never
  double next_keep;           // when the next one stays for good
  double last_preserved;      // time of the last that did, or that it is counted from; 0: none
  int keep_best;              // 0: none
  bool higher_is_better;
  weir_kept_t* kept;  // oldest first
  size_t kept_count;
  size_t kept_capacity;
  weir_saving_t* saving;  // on a thread, which has what is above until it has ended; NULL: none
};

// Adds the nodes on |scope| and sets the first fields; errors stick in |scope|.
void weir_saver_build(weir_saver_t* saver, weir_scope_t* scope,
                      const weir_saver_options_t* options);

// What a step that saves is fed, and what becomes of it.
typedef struct weir_save_t {
  char* path;                    // owned
  double metric;                 // NaN: none
  weir_tensor_t* const* values;  // of |saver->values|; NULL: as the variables are when it runs
} weir_save_t;
// Writes the checkpoint, makes it the latest, and drops what is to go.
WEIR_MUST_USE weir_status_t* weir_saver_write(weir_saver_t* saver, weir_session_t* session,
                                              const weir_save_t* save);
// The second half of that: what there is to do when its files are written or, says |take_status|,
// are not.
WEIR_MUST_USE weir_status_t* weir_saver_end(weir_saver_t* saver, const weir_save_t* save,
                                            weir_status_t* take_status);

// ---- saver_snapshot.c: sessions on servers ----

// Has the servers take the values of the variables as whole steps leave them, and starts to write
// them there. UNIMPLEMENTED, NOT_FOUND: one of them, or a variable, knows no such thing.
WEIR_MUST_USE weir_status_t* weir_saver_begin_snapshot(weir_saver_t* saver, weir_session_t* session,
                                                       const char* path, void** out_step);
// Waits until all is written; must be called.
WEIR_MUST_USE weir_status_t* weir_saver_end_snapshot(weir_session_t* session, void* take_step);

// ---- saver_background.c ----

// Takes the values of the variables as they are and starts to write them; consumes |take_path|,
// unless a session's servers know no snapshots (UNIMPLEMENTED, NOT_FOUND).
WEIR_MUST_USE weir_status_t* weir_saver_start(weir_saver_t* saver, weir_session_t* session,
                                              char* take_path, double metric);
// Waits for the thread, and leaves its error to weir_saver_wait.
void weir_saver_join(weir_saver_t* saver);

// ---- saver_keep.c ----

double weir_saver_now(void);  // seconds since 1970
// Borrowed: what follows the last '/'.
const char* weir_saver_base_name(const char* path);
// The caller's, or NULL without memory: "." where |prefix| names none.
char* weir_saver_directory(const char* prefix);
// Sets |out| to where |name| of a state file in |directory| is.
WEIR_MUST_USE weir_status_t* weir_saver_path(const char* directory, const char* name,
                                             weir_strbuf_t* out);
// Whether a file |name| is one of the checkpoint |base|'s.
bool weir_saver_is_part(const char* name, const char* base);
// Adds a checkpoint as the newest; one of the same name is no longer among the older.
WEIR_MUST_USE weir_status_t* weir_saver_add_kept(weir_saver_t* saver, const char* prefix,
                                                 double time, double metric);
// Its files stay, and neither count nor are removed any more.
void weir_saver_forget(weir_saver_t* saver, const char* prefix);
// Makes |prefix| the latest, and drops what is neither among the newest nor among the best.
WEIR_MUST_USE weir_status_t* weir_saver_update_state(weir_saver_t* saver, const char* prefix);
// Whether the checkpoint |kept| is in the directory of |prefix|; |*out_name| is its name there.
bool weir_saver_is_beside(const weir_kept_t* kept, const char* prefix, const char** out_name);

// ---- saver_leftovers.c ----

// Removes what this save, which is over, and those before it left of their shards.
void weir_saver_remove_leftovers(const weir_saver_t* saver, const char* prefix);

// ---- saver_best.c ----

// Whether |kept[index]| is one of those with the best metrics.
bool weir_saver_is_kept_best(const weir_saver_t* saver, size_t index);
// Writes the file that says which are, beside |prefix|. Nothing where none are kept.
WEIR_MUST_USE weir_status_t* weir_saver_write_best(const weir_saver_t* saver, const char* prefix);
// Gives what the saver took over of |directory| the metrics of that file. What cannot be told any
// more to be among the best, or was so for another saver, is left alone from now on.
// INVALID_ARGUMENT: the best were the highest there and are the lowest here, or the other way
// round.
WEIR_MUST_USE weir_status_t* weir_saver_recover_best(weir_saver_t* saver, const char* directory);

#endif  // WEIR_API_SAVER_H_
