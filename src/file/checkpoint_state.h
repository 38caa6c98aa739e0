// checkpoint_state.h — The file "checkpoint" in a training directory: which checkpoints there are.
#ifndef WEIR_FILE_CHECKPOINT_STATE_H_
#define WEIR_FILE_CHECKPOINT_STATE_H_

#include "file/fs.h"

// CheckpointState. Zero-initialise to use. Paths are as the file has them: relative to its
// directory or absolute.
typedef struct weir_checkpoint_state_t {
  char* latest;           // model_checkpoint_path; NULL for none
  weir_names_t all;       // all_model_checkpoint_paths, oldest first
  double* timestamps;     // seconds since 1970, one a path of |all|; NULL for none
  double last_preserved;  // last_preserved_timestamp
} weir_checkpoint_state_t;

void weir_checkpoint_state_free(weir_checkpoint_state_t* state);

// Reads |directory|/checkpoint. NOT_FOUND when there is none, INVALID_ARGUMENT when it does not
// parse.
WEIR_MUST_USE weir_status_t* weir_checkpoint_state_load(const char* directory,
                                                        weir_checkpoint_state_t* out_state);
// Writes it, atomically.
WEIR_MUST_USE weir_status_t* weir_checkpoint_state_save(const char* directory,
                                                        const weir_checkpoint_state_t* state);

// Appends the prefix of the latest checkpoint of |directory|. NOT_FOUND when there is none.
WEIR_MUST_USE weir_status_t* weir_checkpoint_latest(const char* directory,
                                                    weir_strbuf_t* out_prefix);

#endif  // WEIR_FILE_CHECKPOINT_STATE_H_
